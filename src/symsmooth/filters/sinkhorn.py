"""Sinkhorn-Knopp: W -> the scalings that make it row-, one-step- or doubly stochastic.

W is anything with ``@`` and ``.T``: a dense array, a sparse matrix, or an operator of
:mod:`symsmooth.filters.weights`.  The scaled matrix ``D_r^-1 W D_c^-1`` is never formed; scalings are
float64.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..core.image import Array


class Scalings(NamedTuple):
    """``row_scale[i] * W[i, j] * col_scale[j]`` is the normalised filter."""

    row_scale: Array
    col_scale: Array


class BalanceError(ValueError):
    """W has no scaling that makes it doubly stochastic."""


def normalize_rows(W: Any) -> Scalings:
    """Return the scalings of the original filter, D^-1 W (eq. standard nlm)."""
    ones = np.ones(W.shape[1])
    return Scalings(_invert(W @ ones, "row"), ones)


def sinkhorn_knopp(W: Any, iterations: int, start: Scalings | None = None) -> Scalings:
    """Normalise columns, then rows, ``iterations`` times (Algorithm 1; 1 is one-step).

    One iteration gives D_r^-1 W D_c^-1 of eq. (sinkhorn one step); zero the original filter.
    ``start``, the scalings of earlier iterations, goes on from there.
    """
    if iterations == 0:
        return normalize_rows(W) if start is None else start
    row_scale = np.ones(W.shape[0]) if start is None else start.row_scale
    col_scale = column_scaling(W, iterations, row_scale)
    return Scalings(_invert(W @ col_scale, "row"), col_scale)


def column_scaling(W: Any, iterations: int, row_scale: Array) -> Array:
    """Return the diagonal of D_c^-1 after so many iterations (at least 1); rows are left as they are.

    For those who normalise rows in the same product in which they apply W.  Computed in the dtype of
    ``row_scale``, where it begins.
    """
    col_scale = _invert(W.T @ row_scale, "column")
    for _ in range(iterations - 1):
        row_scale = _invert(W @ col_scale, "row")
        col_scale = _invert(W.T @ row_scale, "column")
    return col_scale


def balance(W: Any, *, tol: float = 1e-6, max_iter: int = 500) -> Scalings:
    """Return s with ``diag(s) W diag(s)`` doubly stochastic, for symmetric W: the limit of Algorithm 1.

    Notes
    -----
    s <- sqrt(s / (W s)) has the limit of the alternation as its fixed point and reaches it in some
    ten steps, where the alternation can stall for thousands on a peaked W.
    """
    s = np.sqrt(_invert(W @ np.ones(W.shape[0]), "row"))
    worst = np.inf
    for _ in range(max_iter):
        rows = W @ s
        worst = float(np.max(np.abs(s * rows - 1.0)))
        if worst <= tol:
            return Scalings(s, s)
        s = np.sqrt(s * _invert(rows, "row"))
    raise BalanceError(_no_scaling(worst, tol, max_iter))


def balance_general(W: Any, *, tol: float = 1e-6, max_iter: int = 2000) -> Scalings:
    """Return scalings that make any W doubly stochastic, by alternation (Algorithm 1)."""
    row_scale = np.ones(W.shape[0])
    worst = np.inf
    for _ in range(max_iter):
        col_scale = _invert(W.T @ row_scale, "column")
        row_scale = _invert(W @ col_scale, "row")
        worst = float(np.max(np.abs(col_scale * (W.T @ row_scale) - 1.0)))
        if worst <= tol:
            return Scalings(row_scale, col_scale)
    raise BalanceError(_no_scaling(worst, tol, max_iter))


def degrees_of_freedom(diagonal: Array, scalings: Scalings) -> float:
    """Return the trace of the normalised filter: how many numbers it leaves free.

    ``diagonal`` is the diagonal of W (ones for the filters of Table I).
    """
    return float(np.sum(scalings.row_scale * diagonal * scalings.col_scale, dtype=np.float64))


def _invert(sums: Array, what: str) -> Array:
    if not np.all(sums > 0) or not np.all(np.isfinite(sums)):
        raise BalanceError(
            f"W cannot be normalised: it has a {what} whose sum is not a positive number; "
            "W must be non-negative and have no empty row or column"
        )
    return 1.0 / sums


def _no_scaling(worst: float, tol: float, iterations: int) -> str:
    return (
        f"W has no doubly stochastic scaling, or is too close to one that has none: after "
        f"{iterations} iterations a row or column sum is still off by {worst:.1e} (wanted {tol:.0e}); "
        "W needs total support (a positive diagonal is enough); or ask for a fixed number of iterations"
    )
