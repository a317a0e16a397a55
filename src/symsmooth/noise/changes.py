"""What changes between frames of a series: in regions that are proven to stand still it is noise alone.

Of three frames in a row two contrasts are taken, (f2 - f0) / sqrt 2 and (f0 - 2 f1 + f2) / sqrt 6, and
their sum, (f0 + f1 + f2) / sqrt 3.  These are orthonormal: noise that frames do not share has the same
covariance in all three, and they are uncorrelated.  What stands still is in the sum only.  What moves
steadily is more in the first contrast than in the second, and so is what a codec or a filter in time
carries over from frame to frame; what moved so far that it is another is as much in the contrasts as in
the sum.

So a region is proven to stand still if both contrasts have the same energy and the sum has much more;
nothing needs to be known of the noise.  Of two gamma variates of one law, ratio and sum are independent:
regions that are chosen by the ratio of their contrasts have a mean energy without bias, that of the noise.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import scipy.ndimage

from ..core.image import Array, Float
from .evidence import GROUPS, PER_RING, SIDE, energies, is_live, region_mean

RUN = 3  # frames that are compared: of two, motion cannot be told from noise
_MOST_RUNS = 4  # more say no more
# Degrees of freedom of the energies of white noise in three by three regions, by group: (tr A)^2 / tr A^2
# of the quadratic form (tests/noise/test_stillness.py).
SQUARE_FREEDOM = np.array([170.1, 378.1, 527.5])
_SQUARE, _AROUND = 3, 9  # regions a side that are asked together
# Deviations by which contrasts differ, in the worst of three groups: by chance up to, surely not from.  On
# the larger squares many regions depend, so more is left to chance.
_CHANCE, _CHANCE_AROUND = (2.0, 4.0), (3.0, 5.0)
# Energy of the sum in that of the contrasts, (1 + 2 r) / (1 - r) where frames share r of their variance:
# half of it, which what moves may, and three quarters, of which no motion leaves both contrasts alike.
_PROOF = 4.0, 10.0
# Share of the regions around that are steady, of those with structure: surely chance up to, surely still
# from.  Of still ones it is 0.96 by the law of chance.
_TOGETHER = 0.6, 0.9
_CELL = 4  # pixels a side: so many are equal in two frames by no chance
_MISSING = 0.1  # share of missing pixels in a region that is used, as in a picture
TINY = 1e-30  # keeps logarithms finite


class Changes(NamedTuple):
    """What regions of runs of frames show of their changes.

    Attributes
    ----------
    first, second : ndarray (regions, channels, rings)
        Energies of both contrasts.
    sure : ndarray (regions, channels, groups)
        How sure it is that nothing moves in them, 0 to 1.
    brightness : ndarray (regions,)
    frozen : ndarray (regions,)
        Share of pixels that show something and did not change by a bit.
    n_runs : int
        In which a region was measured at each place.
    """

    first: Array
    second: Array
    sure: Array
    brightness: Array
    frozen: Array
    n_runs: int


def runs_of(frames: Float) -> list[Array]:
    """Return the numbers of the frames of up to four runs from all over, that share none.

    Frames that are the same as the one before are left out: they were repeated to have more of them.

    Examples
    --------
    >>> [run.tolist() for run in runs_of(np.arange(8.0))]
    [[0, 1, 2], [3, 4, 5]]
    """
    differ = [t for t in range(len(frames)) if t == 0 or (frames[t] != frames[t - 1]).any()]
    number = len(differ) // RUN
    chosen = np.linspace(0, number - 1, min(number, _MOST_RUNS)).round().astype(int)
    return [np.array(differ[RUN * run : RUN * (run + 1)]) for run in chosen]


def measure_changes(windows: Iterable[tuple[Float, Array | None]]) -> Changes | None:
    """Measure windows of runs, (runs, 3, y, x, 1 or 3), and where none is missing; None if constant."""
    found = [_measure_window(runs, valid) for runs, valid in windows]
    if not any(len(each.brightness) for each in found):
        return None
    return Changes(
        np.concatenate([each.first for each in found]),
        np.concatenate([each.second for each in found]),
        np.concatenate([each.sure for each in found]),
        np.concatenate([each.brightness for each in found]),
        np.concatenate([each.frozen for each in found]),
        max(each.n_runs for each in found),
    )


def _measure_window(runs: Float, valid: Array | None) -> Changes:
    contrasts = [_contrasts(frames) for frames in runs]
    first, second, total = (np.stack([own[k] for own in contrasts]) for k in range(3))
    live = np.stack([_is_live(frames) for frames in runs])
    if valid is not None:
        live &= np.stack([_is_known(own) for own in valid])
    sure = _sureness(in_groups(first), in_groups(second), in_groups(total), live)
    frozen = np.stack([region_mean(_frozen(frames)) for frames in runs])
    sure = sure * (1 - frozen)[..., np.newaxis, np.newaxis]
    brightness = np.stack([region_mean(frames.mean(axis=(0, -1))) for frames in runs])
    return Changes(first[live], second[live], sure[live], brightness[live], frozen[live], len(runs))


def _is_live(frames: Float) -> Array:
    """Return which regions of frames (frames, y, x, channels) are constant in none: (ry, rx)."""
    return np.logical_and.reduce([is_live(frame) for frame in frames])


def _is_known(valid: Array) -> Array:
    """Return which regions have few missing pixels, from where there are none (frames, y, x): (ry, rx)."""
    missing: Array = ~np.logical_and.reduce(valid)
    few: Array = region_mean(missing.astype(np.float32)) <= _MISSING
    return few


def _contrasts(frames: Float) -> list[Float]:
    """Return the energies of both contrasts of three frames and of their sum, (ry, rx, channels, rings)."""
    light = frames - frames.mean(axis=(1, 2), keepdims=True)
    before, middle, after = light[0], light[1], light[2]
    total = (before + middle + after) / np.float32(np.sqrt(3))
    first = (after - before) / np.float32(np.sqrt(2))
    second = (before - 2 * middle + after) / np.float32(np.sqrt(6))
    steady = [_without_light(each, total) for each in (first, second)]
    return [energies(each) for each in (*steady, total)]


def _without_light(contrast: Float, total: Float) -> Float:
    """Return a contrast without what light that became brighter makes of the scene, channel by channel."""
    sharp, change = (
        each - scipy.ndimage.uniform_filter(each, (SIDE, SIDE, 1)) for each in (total, contrast)
    )
    power = np.square(sharp).sum(axis=(0, 1))
    factor = (sharp * change).sum(axis=(0, 1)) / np.maximum(power, np.float32(TINY))
    return contrast - factor * total


def _frozen(frames: Float) -> Float:
    """Return 1 in cells that are not constant and the same in two frames, 0 elsewhere: (y, x)."""
    height, width = (size // _CELL * _CELL for size in frames.shape[1:3])
    cells = frames[:, :height, :width].reshape(
        len(frames), height // _CELL, _CELL, width // _CELL, _CELL, -1
    )
    shows = (cells != cells[:, :, :1, :, :1]).any(axis=(2, 4, 5))
    same = (cells[1:] == cells[:-1]).all(axis=(2, 4, 5)) & shows[1:]
    found = np.zeros(frames.shape[1:3], np.float32)
    found[:height, :width] = same.any(axis=0).repeat(_CELL, axis=0).repeat(_CELL, axis=1)
    return found


def in_groups(values: Array) -> Array:
    """Return means over the frequencies of groups of rings, (..., rings) -> (..., groups)."""
    means = [
        values[..., first:last] @ (PER_RING[first:last] / PER_RING[first:last].sum())
        for first, last in GROUPS
    ]
    return np.stack(means, axis=-1)


def _sureness(first: Array, second: Array, total: Array, live: Array) -> Array:
    """Return how sure it is that regions stand still, from energies (runs, ry, rx, channels, groups).

    Asked are all runs of a place and the regions around it: what moves does so for a while and not alone.
    A group is proven by the structure of luminance, its own or that of the next lower group.  Contrasts
    must be alike in luminance, and in the channel itself: codecs carry colours over where luminance is new.
    """
    alive = live[..., np.newaxis, np.newaxis].astype(np.float64)
    one, two, both = ((each * alive).sum(axis=0) for each in (first, second, total))
    freedom = len(first) * SQUARE_FREEDOM
    wide = _apart(_around(one, _AROUND), _around(two, _AROUND), freedom * (_AROUND / _SQUARE) ** 2)
    one, two, both = (_around(each, _SQUARE) for each in (one, two, both))
    steady = 1 - _rising(_apart(one, two, freedom), *_CHANCE)  # (ry, rx, channels)
    shows = _rising((2 * both / (one + two + TINY))[:, :, 0], *_PROOF)
    proven = shows.copy()
    proven[..., 1:] = np.maximum(shows[..., 1:], shows[..., :-1])
    most = shows.max(axis=-1)
    share = _around(most * steady[..., 0], _AROUND) / np.maximum(_around(most, _AROUND), 1e-6)
    alike = steady * (1 - _rising(wide, *_CHANCE_AROUND))
    alike[..., 1:] *= alike[..., :1]
    together = alike * _rising(share, *_TOGETHER)[..., np.newaxis]
    return np.broadcast_to(proven[:, :, np.newaxis] * together[..., np.newaxis], first.shape)


def _apart(first: Array, second: Array, freedom: Array) -> Array:
    """Return by how many deviations two energies (..., groups) differ, in the group where they do most."""
    ratio = np.log((first + TINY) / (second + TINY))
    return np.abs(ratio / np.sqrt(4 / freedom)).max(axis=-1)


def _around(values: Array, side: int) -> Array:
    """Return means of (ry, rx, ...) over squares of regions."""
    sides = (side, side) + (1,) * (values.ndim - 2)
    return np.maximum(scipy.ndimage.uniform_filter(values, sides, mode="nearest"), 0.0)


def _rising(values: Array, low: float, high: float) -> Array:
    """Return 0 up to ``low``, 1 from ``high``, and a line between."""
    return np.clip((values - low) / (high - low), 0.0, 1.0)
