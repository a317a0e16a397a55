"""What a fit learned as one matplotlib figure (extra ``plots``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..core.image import Array
from ..core.plotting import BLUE, GREY, ORANGE, require_matplotlib
from .selection import SecantSearch, Sure


def flat_view(pixels: Array, channel_axis: int | None) -> Array:
    """Return what can be shown of an image: (height, width) or (height, width, 3).

    The middle slice of a volume; three channels as colour, any other number of them as their mean.

    Examples
    --------
    >>> flat_view(np.zeros((2, 9, 8)), 0).shape, flat_view(np.zeros((5, 9, 8, 3)), 3).shape
    ((9, 8), (9, 8, 3))
    """
    if channel_axis is not None:
        pixels = np.moveaxis(pixels, channel_axis, -1)
        if pixels.shape[-1] != 3:
            pixels = pixels.mean(axis=-1)
            channel_axis = None
    dims = 2 if channel_axis is None else 3
    return pixels[len(pixels) // 2] if pixels.ndim > dims else pixels


def sure_curve(sure: Sure, points: int = 61) -> tuple[Array, Array]:
    """Return lambda, around d and around its best, and SURE there in parts of sigma^2."""
    best = sure.best_fidelity
    centre = best if 0.0 < best < np.inf else float(sure.coverage)
    low, high = min(centre, sure.coverage) / 100.0, max(centre, sure.coverage) * 100.0
    fidelities = np.geomspace(low, high, points)
    variance = sure.sigma**2 or 1.0
    return fidelities, np.array([sure(fidelity) for fidelity in fidelities]) / variance


def gsf_figure(
    search: SecantSearch | None,
    deviation: tuple[int, float],
    sure: Sure,
    fidelity: float,
    pictures: Mapping[str, Array],
) -> Any:
    """Return a figure: delta(k) with the secant's steps, SURE against lambda, and pictures below.

    Parameters
    ----------
    search : SecantSearch or None
    deviation : (int, float)
        k and delta(k) of the fit.
    sure : Sure
    fidelity : float
        lambda that was used.
    pictures : mapping
        Label -> pixels (height, width) or (height, width, 3); shown with the range of the last.
    """
    require_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.6, 7.2), layout="constrained")
    halves: Any = figure.subfigures(2, 1)
    upper, lower = halves
    left, right = upper.subplots(1, 2)
    _draw_search(left, search, deviation)
    _draw_sure(right, sure, fidelity)
    low, high = np.nanquantile(list(pictures.values())[-1], [0.001, 0.999])
    span = (high - low) or 1.0
    for axes, (label, pixels) in zip(
        np.atleast_1d(lower.subplots(1, len(pictures))), pictures.items(), strict=True
    ):
        shown = np.clip((np.nan_to_num(pixels, nan=low) - low) / span, 0.0, 1.0)
        axes.imshow(shown, cmap="gray", vmin=0.0, vmax=1.0, interpolation="nearest")
        axes.set_title(label, fontsize=10)
        axes.set_axis_off()
    return figure


def _draw_search(axes: Any, search: SecantSearch | None, deviation: tuple[int, float]) -> None:
    k, delta = deviation
    steps = search.steps if search is not None else ()
    if steps:
        axes.plot(*zip(*steps, strict=True), ":s", color=BLUE, markersize=4.5, linewidth=1)
        for number, (at, value) in enumerate(steps, start=1):
            axes.annotate(str(number), (at, value), (4, 4), textcoords="offset points", fontsize=8)
    axes.plot([k], [delta], "o", color=ORANGE, label=f"k = {k} of the fit")
    axes.axhline(1.0, color=GREY, linewidth=1, linestyle="--")
    axes.set(xscale="log", xlabel="clusters k", ylabel="delta(k)", title="clusters: delta(k) = 1")
    axes.legend(frameon=False, fontsize=9)


def _draw_sure(axes: Any, sure: Sure, fidelity: float) -> None:
    axes.plot(*sure_curve(sure), color=BLUE)
    if 0.0 < fidelity < np.inf:
        axes.axvline(
            fidelity, color=ORANGE, linestyle=":", label=f"lambda = {fidelity:.3g} was used"
        )
        axes.legend(frameon=False, fontsize=9)
    axes.set(xscale="log", xlabel="lambda", ylabel="SURE / sigma²", title="blending: least SURE")
