"""Constant regions of a picture: a mask, a border, what is empty or blown out.  They have no noise.

A region is constant where a square of 16 pixels a side, more than a block of a JPEG, has one value in all
channels, and wherever that value goes on from there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.ndimage
from numpy.typing import NDArray

Array = NDArray[Any]

_SIDE = 16  # pixels
_FEW = 0.01  # share of pixels equal to their neighbour: with fewer there is no such region
_MAX_VALUES = 16  # that regions may have: a drawing has many, and is none of noise


def constant_regions(pixels: Array) -> Array | None:
    """Return where pixels (*spatial, channels) lie in a constant region, (*spatial); None if nowhere."""
    slices = pixels.reshape(-1, *pixels.shape[-3:])
    if min(slices.shape[1:3]) < _SIDE:
        return None
    found = [_of_slice(each) for each in slices]
    if all(each is None for each in found):
        return None
    nowhere = np.zeros(slices.shape[1:3], bool)
    together = np.stack([nowhere if each is None else each for each in found])
    return together.reshape(pixels.shape[:-1])


def _of_slice(pixels: Array) -> Array | None:
    """Return where pixels (y, x, channels) lie in a constant region."""
    some = pixels[::7]
    if (some[:, 1:] == some[:, :-1]).all(axis=-1).mean() < _FEW:
        return None
    right = (pixels[:-1, 1:] == pixels[:-1, :-1]).all(axis=-1)
    down = (pixels[1:, :-1] == pixels[:-1, :-1]).all(axis=-1)
    core = right & down
    for axis in (0, 1):  # a minimum over windows
        core = scipy.ndimage.minimum_filter1d(core, _SIDE - 1, axis=axis, mode="constant", cval=0)
    if not core.any():
        return None
    core = np.pad(core, ((0, 1), (0, 1)))
    values, counts = np.unique(pixels[core], axis=0, return_counts=True)
    found = np.zeros(core.shape, bool)
    for value in values[np.argsort(-counts, kind="stable")[:_MAX_VALUES]]:
        alike = (pixels == value).all(axis=-1)
        found |= scipy.ndimage.binary_propagation(core & alike, mask=alike)
    return found
