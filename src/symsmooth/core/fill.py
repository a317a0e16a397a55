"""Missing pixels, filled from those around them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Float = NDArray[Any]


def fill_missing(noisy: Float, mask: NDArray[np.bool_]) -> Float:
    """Fill missing pixels smoothly from those around them (push-pull pyramid).

    Averages of the observed pixels are taken over cells of 2, 4, 8, ... pixels until no cell is
    empty; each missing pixel takes the value of the smallest cell that knows one.
    """
    weight = (~mask).astype(np.float32)[..., None]
    values = np.where(mask[..., None], np.float32(0.0), noisy)
    if not mask.any() or max(mask.shape) == 1:
        return values
    coarse_sum, coarse_weight = _halve(values), _halve(weight)
    empty = coarse_weight[..., 0] == 0
    coarse = np.divide(
        coarse_sum, coarse_weight, out=np.zeros_like(coarse_sum), where=coarse_weight > 0
    )
    coarse = fill_missing(coarse, empty)
    for axis, size in enumerate(mask.shape):
        coarse = _double(coarse, axis, size)
    return np.where(mask[..., None], coarse, values)


def _halve(values: Float) -> Float:
    """Sum over cells of two pixels along each spatial axis."""
    for axis in range(values.ndim - 1):
        values = np.add.reduceat(values, np.arange(0, values.shape[axis], 2), axis=axis)
    return values


def _double(values: Float, axis: int, size: int) -> Float:
    """Interpolate cells of two pixels back to pixels along one axis, linearly."""
    at = (np.arange(size, dtype=np.float32) - 0.5) / 2
    low = np.clip(np.floor(at).astype(int), 0, values.shape[axis] - 1)
    high = np.minimum(low + 1, values.shape[axis] - 1)
    part = np.clip(at - low, 0.0, 1.0).astype(np.float32)
    part = part.reshape([-1 if a == axis else 1 for a in range(values.ndim)])
    return np.take(values, low, axis) * (1 - part) + np.take(values, high, axis) * part
