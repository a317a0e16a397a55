"""Pixels of a mosaic that did not measure light: hot and dead ones, missing ones, clipped highlights."""

from __future__ import annotations

import itertools

import numpy as np

from ..core.image import Array, Float
from .mosaic import neighbour_steps, over_neighbours, tiled

# How far a defect lies beyond all eight neighbours of its colour: in standard deviations of the noise, and
# in what these lie from each other.  On 24 Kodak pictures at peak 500, whose details no lens has blurred,
# 4 pixels a picture are replaced in error and 74 % of hot ones found; with 1 for 1.5: 9 and 78 %.
_OUTLIER, _APART = 6.0, 1.5
# Of that: the highest that pixels beside it may stand out; light through a lens spreads.
_ALONE = 0.3
_MOSTLY = 5  # of a pixel and its eight neighbours
_ROUNDS = 32  # in which a hole is filled from its border inwards


def find_defects(stabilised: Float, pattern: Array) -> Array:
    """Return where a pixel (y, x) stands out alone, from mosaic pixels with noise of variance 1."""
    found = _stands_out(stabilised, pattern)
    found |= _stands_out(-stabilised, pattern)
    return found


def _stands_out(values: Float, pattern: Array) -> Array:
    """Return which pixels lie above all around them, of their colour and of the others."""
    highest = over_neighbours(values, pattern, np.maximum, -np.inf)
    spread = highest - over_neighbours(values, pattern, np.minimum, np.inf)
    found = values - highest > np.maximum(np.float32(_APART) * spread, _OUTLIER)
    found &= np.isfinite(highest)  # not where nothing is around
    at = np.argwhere(found)
    excess = values[tuple(at.T)] - _mean_around(values, at, pattern)
    last = np.array(values.shape) - 1
    for step in itertools.product((-1, 0, 1), repeat=2):
        beside = np.clip(at + step, 0, last)
        lit = values[tuple(beside.T)] - _mean_around(values, beside, pattern) > _ALONE * excess
        own = (beside == at).all(axis=1)
        found[tuple(at[lit & ~own].T)] = False
    return found


def _mean_around(values: Float, at: Array, pattern: Array) -> Float:
    """Return the mean of the neighbours of the same colour, of the given pixels (m, 2) alone."""
    around, inside = _neighbours(at, pattern, values.shape)
    total = np.where(inside, values[tuple(np.moveaxis(around, -1, 0))], 0).sum(axis=1)
    return total / np.maximum(inside.sum(axis=1), 1)


def _neighbours(at: Array, pattern: Array, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Return the neighbours of the same colour of pixels (m, 2): (m, 8, 2), and which there are."""
    steps = np.stack([neighbour_steps(pattern, colour) for colour in range(3)])
    own = pattern[tuple((at % pattern.shape).T)]
    around = at[:, np.newaxis] + steps[own]
    inside = ((around >= 0) & (around < shape)).all(axis=-1)
    return np.where(inside[..., np.newaxis], around, 0), inside


def find_highlights(clipped: Array, pattern: Array) -> Array:
    """Return which clipped pixels are in a highlight, not clipped by their noise alone."""
    if not clipped.any():
        return clipped
    count = clipped.astype(np.uint8)
    return clipped & (over_neighbours(count, pattern, np.add, 0) + count >= _MOSTLY)


def fill_from_neighbours(values: Float, missing: Array, pattern: Array) -> Float:
    """Fill missing pixels with the mean of known neighbours of their colour, from the border inwards.

    What is deeper than 32 rounds has the median of the colour.
    """
    if not missing.any():
        return values
    filled, unknown = values.copy(), missing.copy()
    for _ in range(_ROUNDS):
        at = np.argwhere(unknown)
        around, inside = _neighbours(at, pattern, values.shape)
        y, x = np.moveaxis(around, -1, 0)
        known = inside & ~unknown[y, x]
        count = known.sum(axis=1)
        total = np.where(known, filled[y, x], 0).sum(axis=1)
        can = count > 0
        filled[tuple(at[can].T)] = total[can] / count[can]
        unknown[tuple(at[can].T)] = False
        if not unknown.any():
            return filled
    colours = tiled(pattern, values.shape)
    for colour in range(3):
        own = colours == colour
        known = values[own & ~missing]
        filled[own & unknown] = np.median(known) if known.size else np.median(values[~missing])
    return filled
