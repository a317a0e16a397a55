"""All overlapping patches of a plane, strip by strip: P, a function of patches, and P's adjoint."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..core.image import Float
from ..core.parallel import Pool

_PATCHES = 16384  # in a strip, about


def filter_patches(
    plane: Float, side: int, function: Callable[[Float], Float], pool: Pool, stage: str
) -> Float:
    """Return sum_j P_j^T f(P_j plane), over the patches that lie wholly inside a plane (y, x).

    ``function`` takes patches (m, side^2) and returns as many.
    """
    height, width = (size - side + 1 for size in plane.shape)
    rows = max(1, _PATCHES // width)

    def strip(top: int) -> Float:
        count = min(rows, height - top)
        band = plane[top : top + count + side - 1]
        return put_patches(function(take_patches(band, side)), band.shape, side)

    out = np.zeros_like(plane)
    for top, total in pool.map(strip, range(0, height, rows), stage):
        out[top : top + len(total)] += total
    return out


def take_patches(plane: Float, side: int) -> Float:
    """Return all patches inside a plane (y, x) in raster order, (m, side^2)."""
    windows = np.lib.stride_tricks.sliding_window_view(plane, (side, side))
    return windows.reshape(-1, side * side)


def put_patches(patches: Float, shape: tuple[int, ...], side: int) -> Float:
    """Return sum_j P_j^T patches_j, the adjoint of :func:`take_patches`: (y, x)."""
    height, width = (size - side + 1 for size in shape)
    pieces = patches.reshape(height, width, side, side)
    total = np.zeros(shape, patches.dtype)
    for y, x in np.ndindex(side, side):
        total[y : y + height, x : x + width] += pieces[:, :, y, x]
    return total


def coverage(shape: tuple[int, ...], side: int) -> Float:
    """Return how many patches cover each pixel of a plane: sum_j P_j^T 1."""
    counts = [
        np.convolve(np.ones(size - side + 1, np.float32), np.ones(side, np.float32))
        for size in shape
    ]
    return np.multiply.outer(*counts)


def mirror(plane: Float, side: int) -> Float:
    """Return the plane mirrored at its ends by a quarter of a patch, or until it is as large as one."""
    widths = [max(side // 4, (side - size + 1) // 2) for size in plane.shape]
    return np.pad(plane, [(width, width) for width in widths], mode="symmetric")


def unmirror(plane: Float, shape: tuple[int, ...]) -> Float:
    """Return the plane of this shape without what :func:`mirror` added."""
    starts = [(padded - size) // 2 for padded, size in zip(plane.shape, shape, strict=True)]
    return plane[tuple(slice(at, at + size) for at, size in zip(starts, shape, strict=True))]
