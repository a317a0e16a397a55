"""The eigenvectors of a symmetric smoothing filter from some of its rows (Nystrom), for a batch of blocks.

Arrays are (blocks, pixels, ...).  K_ij = exp(-|f_i - f_j|^2 / 2) is never formed, only its columns
at the sampled pixels A; what they say of K is K_:A K_A^+ K_A: = B B'.

References
----------
C. Fowlkes, S. Belongie, F. Chung, J. Malik, "Spectral grouping using the Nystrom method", IEEE Trans.
Pattern Anal. Mach. Intell. 26 (2004), doi:10.1109/TPAMI.2004.1262185.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..core.image import Array, Float

_MIN_EIGENVALUE = 1e-5  # of K_A, as a share of its largest: smaller ones are rounding
_MIN_SUM = np.float32(1e-6)  # a row of B B' may fall below zero where no sample is alike


class Spectrum(NamedTuple):
    """The filter W = V diag(values) V', V = factor @ turn.

    W is symmetric, its rows sum to one; values fall from 1 to 0 and are 0 beyond its rank.
    """

    factor: Float  # C, (blocks, n, p): W = C C'
    turn: Float  # (blocks, p, p)
    values: Float  # (blocks, p)

    @property
    def vectors(self) -> Float:
        """V, (blocks, n, p): orthonormal columns (over the observed pixels)."""
        return self.factor @ self.turn

    @property
    def rank(self) -> Array:
        """Number of eigenvalues above 0: (blocks, 1, 1)."""
        return (self.values > 0).sum(axis=1)[:, np.newaxis, np.newaxis]

    def analyse(self, pixels: Float) -> Float:
        """Return V' pixels: (blocks, p, channels)."""
        return _transposed(self.turn) @ (_transposed(self.factor) @ pixels)

    def synthesise(self, coefficients: Float) -> Float:
        """Return V coefficients: (blocks, n, channels)."""
        return self.factor @ (self.turn @ coefficients)


def nystrom(features: Float, sampled: Array) -> Float:
    """Return B (blocks, n, p) with B B' = K_:A K_A^+ K_A:, equal to K if all pixels are sampled."""
    norms = (features**2).sum(axis=-1) / 2
    columns = features @ _transposed(features[:, sampled])
    columns -= norms[:, :, np.newaxis]
    columns -= norms[:, np.newaxis, sampled]
    np.minimum(columns, np.float32(0.0), out=columns)
    np.exp(columns, out=columns)
    values, vectors = np.linalg.eigh(columns[:, sampled])
    large = values > _MIN_EIGENVALUE * values[:, -1:]
    root = np.where(large, 1.0 / np.sqrt(np.where(large, values, 1.0)), 0.0)
    return columns @ (vectors * root[:, np.newaxis]).astype(np.float32)


def balance_factor(factor: Float, observed: Float, rounds: int = 20) -> Float:
    """Return C = diag(s) B, C C' doubly stochastic over the observed pixels: Sinkhorn-Knopp.

    The iteration is that of :func:`symsmooth.filters.sinkhorn.balance`, s <- sqrt(s / K s), for all blocks
    at once.  A pixel that is not observed gives nothing and has its own row sum to one all the same.
    """
    sums = _row_sums(factor, observed)
    s = 1.0 / np.sqrt(sums)
    for _ in range(rounds):
        s = np.sqrt(s / _row_sums(factor, s * observed))
    return s[..., np.newaxis] * factor


def _row_sums(factor: Float, s: Float) -> Float:
    """Return B B' s, kept positive."""
    sums = factor @ (_transposed(factor) @ s[..., np.newaxis])
    return np.maximum(sums[..., 0], _MIN_SUM)


def decompose(factor: Float, observed: Float) -> Spectrum:
    """Return the eigenvalues and orthonormal eigenvectors of W = C C', from the p x p matrix C'C."""
    gram = _transposed(factor) @ (factor * observed[..., np.newaxis])
    values, vectors = np.linalg.eigh(gram)
    values, vectors = values[:, ::-1], vectors[:, :, ::-1]
    large = values > _MIN_EIGENVALUE
    root = np.where(large, 1.0 / np.sqrt(np.where(large, values, 1.0)), 0.0)
    turn = (vectors * root[:, np.newaxis]).astype(np.float32)
    return Spectrum(factor, turn, np.clip(np.where(large, values, 0.0), 0.0, 1.0))


def _transposed(matrices: Float) -> Float:
    return np.swapaxes(matrices, -1, -2)
