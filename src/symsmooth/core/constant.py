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
_OBSERVED = 0.5  # of such a square, or nothing is known of it
_MAX_VALUES = 16  # that regions may have: a drawing has many, and is none of noise


def constant_regions(pixels: Array, missing: Array | None = None) -> Array | None:
    """Return where pixels (*spatial, channels) lie in a constant region, (*spatial); None if nowhere.

    Missing pixels (*spatial) lie in none, but do not end one either.
    """
    slices = pixels.reshape(-1, *pixels.shape[-3:])
    if min(slices.shape[1:3]) < _SIDE:
        return None
    holes = [None] * len(slices) if missing is None else missing.reshape(slices.shape[:3])
    found = [_of_slice(*each) for each in zip(slices, holes, strict=True)]
    if all(each is None for each in found):
        return None
    nowhere = np.zeros(slices.shape[1:3], bool)
    together = np.stack([nowhere if each is None else each for each in found])
    return together.reshape(pixels.shape[:-1])


def _of_slice(pixels: Array, missing: Array | None) -> Array | None:
    """Return where pixels (y, x, channels) lie in a constant region."""
    if missing is not None:
        pixels = _bridged(pixels, missing)
    some = pixels[::_SIDE]  # each square has a pixel of one of these lines, and of its columns
    if not _runs((some[:, 1:] == some[:, :-1]).all(axis=-1), 1).any():
        return None
    right = (pixels[:-1, 1:] == pixels[:-1, :-1]).all(axis=-1)
    down = (pixels[1:, :-1] == pixels[:-1, :-1]).all(axis=-1)
    core = _runs(_runs(right & down, 0), 1)
    if missing is not None:
        observed = scipy.ndimage.uniform_filter((~missing).astype(np.float32), _SIDE)
        core &= observed[:-1, :-1] > _OBSERVED
    if not core.any():
        return None
    core = np.pad(core, ((0, 1), (0, 1)))
    found = np.zeros(core.shape, bool)
    for value in _most_common(pixels[core]):
        labels, number = scipy.ndimage.label((pixels == value).all(axis=-1))
        reached = np.zeros(number + 1, bool)
        reached[labels[core]] = True
        reached[0] = False  # other values
        found |= reached[labels]
    return found if missing is None else found & ~missing


def _most_common(pixels: Array) -> Array:
    """Return the most common values of pixels (n, channels), of which many that follow are alike."""
    starts = np.flatnonzero((pixels[1:] != pixels[:-1]).any(axis=-1)) + 1
    starts = np.concatenate([[0], starts])
    lengths = np.diff(starts, append=len(pixels))
    values, run = np.unique(pixels[starts], axis=0, return_inverse=True)
    counts = np.bincount(run.reshape(-1), lengths)
    return values[np.argsort(-counts, kind="stable")[:_MAX_VALUES]]


def _runs(equal: Array, axis: int) -> Array:
    """Return the middles of runs as long as a square, of places that equal the next."""
    return scipy.ndimage.minimum_filter1d(equal, _SIDE - 1, axis=axis, mode="constant", cval=0)


def _bridged(pixels: Array, missing: Array) -> Array:
    """Return pixels (y, x, channels) whose missing ones have the value of the next observed to the left."""
    columns = np.arange(missing.shape[1])
    source = np.maximum.accumulate(np.where(missing, -1, columns), axis=1)
    first = np.argmin(missing, axis=1)[:, np.newaxis]  # of a line: for what has none to its left
    source = np.where(source < 0, first, source)
    return np.take_along_axis(pixels, source[..., np.newaxis], axis=1)
