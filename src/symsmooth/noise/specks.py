"""Specks: single pixels that no noise explains, as salt and pepper, dead and hot pixels, cosmic rays.

A speck lies far beyond its eight neighbours and lights none of them; a star, through any lens, does.
How far is told by the middling deviation of pixels of the same brightness, which specks do not move.

Single pixels that stand out are in clean pictures too (gravel, glitter, a catch light), so they are
replaced unasked only where they are many and nothing else can have made them: where most have one of two
values (salt and pepper; phones cut the noise of shadows at 0, so not if all are dark), or where grey pixels
that are finer than 8 bits stand out on the dark side only, on calm ground as often as elsewhere (pepper;
photons and stars stand out on the bright side).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import scipy.special

from ..core.image import Array, Float, Picture
from .level import middle

Specks = Literal["auto", "keep", "remove"]

_N_BINS = 12  # of brightness
_MIDDLING = scipy.special.ndtri(3 / 4)  # median distance of Gaussian numbers, in deviations
_FAR = 4.5  # deviations of a Gaussian: that of 1 of 150,000 pixels
# Where specks are known to be: of Gaussian noise it takes 1 pixel of 700 with it.
_NEAR = 3.0
_APART = 1.5  # times what neighbours lie apart, without the two outermost
_LIT = 0.3  # of its height over the ground: at most one neighbour of a speck is higher
_MANY_OF_ONE, _MANY_DARK = 0.0003, 0.004  # of the pixels
_OFTEN = 4.0  # times as often as any other value
_ONE_SIDED = 5.0  # times as many are dark as bright
_CALM = 0.6  # as often on the calmer half of the ground: details of pictures at most .5, specks .7 and more
_CELL, _FEWEST_CELLS = 32, 25  # pixels a side; fewer cells do not tell
# Variance of their number in cells over its mean: dots of letters have more, pepper has 1.
_EVEN = 2.0
_FINE = 1 / 400  # of the range: steps of 8 bits are coarser
_ASKED = 1 << 14  # pixels whose deviations are asked: a thousand of each brightness
_LOOKED_AT = 256  # pixels a side, in the middle, that are looked at first


def without_specks(picture: Picture, specks: Specks = "auto") -> Picture:
    """Return a picture whose specks are missing pixels: if they are asked for, or many and certain."""
    return replace_specks(picture, speck_rules(picture, specks))


def replace_specks(picture: Picture, rules: Rules | None) -> Picture:
    """Return a picture whose specks by these rules are missing pixels."""
    found = find_specks(picture, rules)
    return picture if found is None else picture.with_missing(found)


def count_specks(opened: Picture, picture: Picture) -> int:
    """Return how many pixels are missing that were there when the image was opened."""
    counts = [0 if each.mask is None else int(each.mask.sum()) for each in (opened, picture)]
    return counts[1] - counts[0]


def speck_rules(picture: Picture, specks: Specks = "auto") -> Rules | None:
    """Return what is a speck in each channel; None if nothing is, or it may be detail.

    It is asked of the whole picture: pieces of one have the same.
    """
    if specks == "keep" or min(picture.spatial[-2:]) < 3:
        return None
    scene, n_channels = picture.scene, picture.noisy.shape[-1]
    if specks == "remove":
        return (_any_speck,) * n_channels
    sample = middle(scene.noisy, _LOOKED_AT)

    def is_fine() -> bool:
        return n_channels == 1 and bool(scene.step < _FINE * float(np.ptp(sample)))

    chosen = [_choose(_Look.at(sample[..., c]), is_fine) for c in range(n_channels)]
    return (
        None
        if all(rule is None for rule in chosen)
        else tuple(rule or _no_speck for rule in chosen)
    )


def find_specks(picture: Picture, rules: Rules | None) -> Array | None:
    """Return where specks are, (*spatial); None if there is none."""
    if rules is None:
        return None
    noisy = picture.noisy
    slices = noisy.reshape(-1, *noisy.shape[-3:])
    found = np.zeros(slices.shape[:3], bool)
    for z, pixels in enumerate(slices):
        for c, rule in enumerate(rules):
            found[z] |= _all_rounds(pixels[..., c], rule)
    if picture.mask is not None:
        found &= ~picture.mask.reshape(found.shape)
    return found.reshape(picture.spatial) if found.any() else None


@dataclass(frozen=True, eq=False)
class _Look:
    """Pixels (y, x) beside their neighbours."""

    pixels: Float
    middle: Float  # the median of the eight neighbours
    apart: Float  # how far these lie apart, without the two outermost
    is_alone: Array

    @classmethod
    def at(cls, pixels: Float) -> _Look:
        """Look at pixels."""
        around, ground = _sorted_neighbours(pixels, 1), _median(_sorted_neighbours(pixels, 2))
        middle, apart = _median(around), around[6] - around[1]
        away = pixels - middle
        size = np.abs(away)
        beside = np.where(away > 0, around[6] - ground, ground - around[1])
        is_alone = (beside < _LIT * np.abs(pixels - ground)) & (size > _APART * apart)
        is_cut = around[7] == pixels.max()  # noise on one side is clipped: the other is no speck's
        return cls(pixels, middle, apart, is_alone & ~is_cut)

    @cached_property
    def far(self) -> Float:
        """How far pixels lie from the median, in deviations of their brightness."""
        return self._far(np.ones(self.pixels.shape, bool))

    @cached_property
    def far_alone(self) -> Float:
        """The same of those that are alone, which are few; 0 of others."""
        return self._far(self.is_alone)

    def _far(self, of: Array) -> Float:
        edges, deviations = self._levels
        away, far = (self.pixels - self.middle)[of], np.zeros(self.pixels.shape, np.float32)
        level = deviations[np.searchsorted(edges, self.middle[of], side="right")]
        far[of] = np.divide(away, level, out=np.zeros_like(away), where=level > 0)
        return far

    @cached_property
    def _levels(self) -> tuple[Float, Float]:
        """The deviation of pixels of the same brightness, were it Gaussian, and between which ones."""
        step = int(np.ceil(np.sqrt(self.pixels.size / _ASKED)))
        some = self.middle[::step, ::step].ravel()
        sizes = np.abs(self.pixels - self.middle)[::step, ::step].ravel()
        order = np.argsort(some)
        some, sizes = some[order], sizes[order]
        edges = np.quantile(some, np.linspace(0, 1, _N_BINS + 1)[1:-1]).astype(np.float32)
        bins = np.split(sizes, np.searchsorted(some, edges))
        deviations = [np.median(own) / _MIDDLING if own.size else 0.0 for own in bins]
        return edges, np.array(deviations, np.float32)


def _sorted_neighbours(pixels: Float, step: int) -> Float:
    """Return the eight pixels around each, some steps away, (8, y, x), ascending."""
    height, width = pixels.shape
    padded = np.pad(pixels, step, mode="symmetric")
    starts = [(step * y, step * x) for y in range(3) for x in range(3) if (y, x) != (1, 1)]
    around = np.stack([padded[y : y + height, x : x + width] for y, x in starts])
    for i, j in _sorting_network(len(around)):  # ten times as fast as a sort along the first axis
        low = np.minimum(around[i], around[j])
        np.maximum(around[i], around[j], out=around[j])
        around[i] = low
    return around


@functools.cache
def _sorting_network(n: int) -> list[tuple[int, int]]:
    """Return pairs to be put in order, one after the other: Batcher's merge exchange, n a power of 2."""
    run, pairs = 1, []
    while run < n:
        step = run
        while step:
            starts = range(step % run, n - step, 2 * step)
            lows = [start + i for start in starts for i in range(step) if start + i < n - step]
            pairs += [(i, i + step) for i in lows if i // (2 * run) == (i + step) // (2 * run)]
            step //= 2
        run *= 2
    return pairs


def _median(around: Float) -> Float:
    return (around[3] + around[4]) / 2


_Rule = Callable[[_Look], Array]  # returns which pixels are specks
Rules = tuple[_Rule, ...]  # of the channels


def _any_speck(look: _Look) -> Array:
    return look.is_alone & (np.abs(look.far_alone) > _FAR)


def _no_speck(look: _Look) -> Array:
    return np.zeros(look.pixels.shape, bool)


def _dark_speck(look: _Look) -> Array:
    return look.is_alone & (look.far_alone < -_NEAR)


def _of_two_values(values: Array, look: _Look) -> Array:
    beyond = np.abs(look.pixels - look.middle) > look.apart / 2
    return np.isin(look.pixels, values) & beyond & (np.abs(look.far) > _NEAR)


def _choose(look: _Look, is_fine: Callable[[], bool]) -> _Rule | None:
    """Return what is a speck here without any doubt; None if nothing is."""
    ends = [_frequent_value(look, sign, _FAR) for sign in (-1, 1)]
    # Of the other kind may be nearer, as in a dark picture.
    if any(end is not None for end in ends):
        ends = [_frequent_value(look, sign, _NEAR) for sign in (-1, 1)]
        if all(end is not None for end in ends):
            rule = functools.partial(_of_two_values, np.array(ends))
            calm = _calm(look) & (look.apart > 0.0)  # what is constant, or missing, has none
            return rule if not calm.any() or _is_everywhere(rule(look), calm) else None
    dark, bright = (_any_speck(look) & (sign * look.far_alone > 0) for sign in (-1, 1))
    if dark.sum() > max(_MANY_DARK * dark.size, _ONE_SIDED * bright.sum()) and is_fine():
        calm = _calm(look)
        if calm.any() and _is_everywhere(dark, calm) and _dispersion(dark) < _EVEN:
            return _dark_speck
    return None


def _calm(look: _Look) -> Array:
    """Return the calmer half of the pixels; none, if half of the picture is constant."""
    return look.apart < np.median(look.apart)


def _is_everywhere(found: Array, calm: Array) -> bool:
    """Whether specks lie on calm ground about as often as elsewhere; detail of the picture does not."""
    return bool(found[calm].mean() > _CALM * found.mean())


def _dispersion(found: Array) -> float:
    """Return the variance of the numbers found in cells over their mean: 1 if they are spread at random."""
    rows, columns = (size // _CELL for size in found.shape)
    if rows * columns < _FEWEST_CELLS:
        return np.inf
    inside = found[: rows * _CELL, : columns * _CELL]
    counts = inside.reshape(rows, _CELL, columns, _CELL).sum(axis=(1, 3))
    return float(counts.var(ddof=1) / max(counts.mean(), 1e-30))


def _frequent_value(look: _Look, sign: int, far: float) -> float | None:
    """Return the value that specks above (or below) their neighbours have most often, if one stands out."""
    specks = look.is_alone & (sign * look.far_alone > far)
    if not specks.any():
        return None
    values, counts = np.unique(look.pixels[specks], return_counts=True)
    top = int(counts.argmax())
    n_next = int(np.delete(counts, top).max(initial=0))
    is_frequent = counts[top] > max(_OFTEN * n_next, _MANY_OF_ONE * specks.size)
    return float(values[top]) if is_frequent else None


def _all_rounds(pixels: Float, rule: _Rule) -> Array:
    """Return where specks are; those found give way to their neighbours, and others are seen."""
    found, seen = np.zeros(pixels.shape, bool), pixels
    for _ in range(2):  # the second finds specks beside specks
        look = _Look.at(seen)
        new = rule(look) & ~found
        if not new.any():
            break
        found |= new
        seen = np.where(new, look.middle, seen)
    return found
