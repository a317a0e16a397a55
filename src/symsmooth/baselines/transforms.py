"""The small transforms of BM3D as matrices: DCT and the wavelet bior1.5; the Kaiser window."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..core.image import Array, Float

# Analysis low-pass filter of the biorthogonal spline wavelet 1.5; its synthesis low-pass is Haar's.
_LOW = np.array([3, -3, -22, 22, 128, 128, 22, -22, -3, 3]) / 128.0


@dataclass(frozen=True)
class Basis:
    """A transform and its inverse, (side, side); row 0 of ``forward`` is a mean."""

    forward: Float
    backward: Float


def dct(side: int) -> Basis:
    """Return the orthonormal DCT-II."""
    k, x = np.indices((side, side))
    matrix = np.sqrt(2.0 / side) * np.cos(np.pi * (x + 0.5) * k / side)
    matrix[0] /= np.sqrt(2.0)
    return Basis(matrix.astype(np.float32), np.ascontiguousarray(matrix.T.astype(np.float32)))


def bior15(side: int) -> Basis:
    """Return the full periodic wavelet transform bior1.5 of 2^k samples.

    Its rows have norm one, so that white noise has the same variance in every coefficient.

    References
    ----------
    A. Cohen, I. Daubechies, J.-C. Feauveau, "Biorthogonal bases of compactly supported wavelets",
    Comm. Pure Appl. Math. 45 (1992), doi:10.1002/cpa.3160450502.
    """
    matrix: Array = np.eye(side)
    length = side
    while length > 1:
        level = np.eye(side)
        level[:length, :length] = 0.0
        for i in range(length // 2):
            for tap, value in enumerate(_LOW):
                level[i, (2 * i + tap - 4) % length] += value
            level[length // 2 + i, 2 * i : 2 * i + 2] = 1.0, -1.0
        matrix = level @ matrix
        length //= 2
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    return Basis(matrix.astype(np.float32), np.linalg.inv(matrix).astype(np.float32))


def kaiser(side: int, beta: float) -> Float:
    """Return the Kaiser window (side,)."""
    return np.kaiser(side, beta).astype(np.float32)
