"""Noise of a series where the scene stands still: there, what changes from frame to frame is noise alone.

Of three frames in a row two contrasts are taken, (f2 - f0) / sqrt 2 and (f0 - 2 f1 + f2) / sqrt 6, and
their sum, (f0 + f1 + f2) / sqrt 3.  These are orthonormal: noise that frames do not share has the same
covariance in all three, and they are uncorrelated.  What stands still is in the sum only.  What moves
steadily is more in the first contrast than in the second, and so is what a codec carries over from frame to
frame; what moved so far that it is another is as much in the contrasts as in the sum.

So a region is proven to stand still if both contrasts have the same energy and the sum has more; nothing
needs to be known of the noise.  Of two gamma variates of one law, ratio and sum are independent: regions
that are chosen by the ratio of their contrasts have a mean energy without bias, that of the noise.

How far it is believed follows from how well regions of one brightness agree: their noise is the same; what
is left of motion, and what a codec left out, is not.  Where nothing is proven nothing changes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.ndimage

from ..core.image import Array, Float
from .evidence import (
    GROUPS,
    N_RINGS,
    PER_RING,
    SIDE,
    energies,
    is_live,
    node_weights,
    region_mean,
)

RUN = 3  # frames that are compared: of two, motion cannot be told from noise
_MOST_RUNS = 4  # more say no more
# Degrees of freedom of white noise in the energies of a region, by ring and by group, and of three by three
# regions, by group: (tr A)^2 / tr A^2 of the quadratic form (tests/noise/test_stillness.py).
RING_FREEDOM = np.array([18.9, 27.7, 46.7, 72.7, 89.6, 120.9, 102.5])
GROUP_FREEDOM = np.array([60.1, 133.9, 190.1])
SQUARE_FREEDOM = np.array([170.1, 378.1, 527.5])
_SQUARE, _AROUND = 3, 9  # regions a side that are asked together
_OVERLAP = 6.25  # regions of 20 pixels a side lie 8 pixels apart: so many share a pixel
# Deviations by which contrasts differ, in the worst of three groups: by chance up to, surely not from.  On the
# larger squares many regions depend, so it is stricter what is no chance.
_CHANCE, _CHANCE_AROUND = (2.0, 4.0), (3.0, 5.0)
# Energy of the sum in that of the contrasts, (1 + 2 r) / (1 - r) where frames share r of their variance: half
# of it, which what moves may, and three quarters, of which no motion leaves both contrasts alike.
_PROOF = 4.0, 10.0
# Share of the regions around that are steady, of those with structure: surely chance up to, surely still
# from.  Of still ones it is 0.96 by the law of chance.
_TOGETHER = 0.6, 0.9
_GATE = 3.0  # deviations from the other regions of a brightness: farther ones do not count
# Noise is in all regions: the energies of those below this quantile lie so many deviations below its mean.
_LOW, _BELOW = 0.05, 1.645
# Deviations, in those of one value over the root of their number, of quantiles of Gaussian values, and of
# their variance by quartiles
_LOW_ERROR, _QUARTILE_ERROR = 2.11, 2.33
_QUARTILES = 1.349  # deviations between the quartiles of Gaussian values
_CELL = 4  # pixels a side: so many are equal in two frames by no chance
_MISSING = 0.1  # share of missing pixels in a region that is used, as in a picture
# Of log2 of the level: what need not be known better, by which less than 0.01 dB is lost (frames.TOLERANCE);
# and errors that the estimator does not know of: the least that it is taken to have.
_FINEST, _UNSAID = 0.01, 0.1
_SHARED = 0.5  # share of the variance of its errors that nodes of brightness have in common
_TO_LEVEL = 1 / (2 * np.log(2))  # from the natural logarithm of an energy to log2 of the level
_TINY = 1e-30


class Changes(NamedTuple):
    """What regions of runs of frames show of their changes.

    Attributes
    ----------
    first, second : ndarray (regions, channels, rings)
        Energies of both contrasts.
    sure : ndarray (regions, groups)
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


@dataclass(frozen=True)
class Stillness:
    """The noise of regions that stand still, at nodes of brightness.

    Attributes
    ----------
    energy : ndarray (nodes, channels, rings)
    chance, shared : ndarray (nodes, channels, rings)
        Standard deviations of log2 of the level: by chance, and of what all nodes have in common, such as
        motion that was not seen; infinite where nothing is proven.
    """

    energy: Array
    chance: Array
    shared: Array


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
    """Measure windows of runs, (runs, 3, y, x, 1 or 3), and where pixels are not missing; None if constant."""
    found = [_measure_window(runs, valid) for runs, valid in windows]
    if not any(len(each.brightness) for each in found):
        return None
    *values, n_runs = zip(*found, strict=True)
    return Changes(*map(np.concatenate, values), max(n_runs))


def _measure_window(runs: Float, valid: Array | None) -> Changes:
    first, second, total = (np.stack(each) for each in zip(*map(_contrasts, runs), strict=True))
    live = np.stack([np.all([is_live(frame) for frame in frames], axis=0) for frames in runs])
    if valid is not None:
        missing = (~valid.all(axis=1)).astype(np.float32)
        live &= np.stack([region_mean(own) for own in missing]) <= _MISSING
    sure = _sureness(*(_in_groups(each[..., 0, :]) for each in (first, second, total)), live)
    frozen = np.stack([region_mean(_frozen(frames)) for frames in runs])
    sure = sure * (1 - frozen)[..., np.newaxis]
    brightness = np.stack([region_mean(frames.mean(axis=(0, -1))) for frames in runs])
    values = (each[live] for each in (first, second, sure, brightness, frozen))
    return Changes(*values, len(runs))


def _contrasts(frames: Float) -> tuple[Float, Float, Float]:
    """Return the energies of both contrasts of three frames and of their sum, (ry, rx, channels, rings)."""
    before, middle, after = frames - frames.mean(axis=(1, 2), keepdims=True)
    total = (before + middle + after) / np.float32(np.sqrt(3))
    first = (after - before) / np.float32(np.sqrt(2))
    second = (before - 2 * middle + after) / np.float32(np.sqrt(6))
    steady = (_without_light(each, total) for each in (first, second))
    return (*map(energies, steady), energies(total))


def _without_light(contrast: Float, total: Float) -> Float:
    """Return a contrast without what light that became brighter makes of the scene, channel by channel."""
    sharp, change = (
        each - scipy.ndimage.uniform_filter(each, (SIDE, SIDE, 1)) for each in (total, contrast)
    )
    power = np.square(sharp).sum(axis=(0, 1))
    factor = (sharp * change).sum(axis=(0, 1)) / np.maximum(power, np.float32(_TINY))
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


def _in_groups(values: Array) -> Array:
    """Return means over the frequencies of groups of rings, (..., rings) -> (..., groups)."""
    means = [
        values[..., first:last] @ (PER_RING[first:last] / PER_RING[first:last].sum())
        for first, last in GROUPS
    ]
    return np.stack(means, axis=-1)


def _sureness(first: Array, second: Array, total: Array, live: Array) -> Array:
    """Return how sure it is that regions stand still, from energies (runs, ry, rx, groups) of luminance.

    Asked are all runs of a place and the regions around it: what moves does so for a while and not alone.
    A group is proven by its own structure, or by that of the next lower one.
    """
    alive = live[..., np.newaxis].astype(np.float64)
    one, two, both = ((each * alive).sum(axis=0) for each in (first, second, total))
    freedom = len(first) * SQUARE_FREEDOM
    wide = _apart(_around(one, _AROUND), _around(two, _AROUND), freedom * (_AROUND / _SQUARE) ** 2)
    one, two, both = (_around(each, _SQUARE) for each in (one, two, both))
    steady = 1 - _rising(_apart(one, two, freedom), *_CHANCE)
    shows = _rising(2 * both / (one + two + _TINY), *_PROOF)
    proven = shows.copy()
    proven[..., 1:] = np.maximum(shows[..., 1:], shows[..., :-1])
    most = shows.max(axis=-1)
    share = _around(most * steady, _AROUND) / np.maximum(_around(most, _AROUND), 1e-6)
    together = _rising(share, *_TOGETHER) * (1 - _rising(wide, *_CHANCE_AROUND))
    sure = proven * (steady * together)[..., np.newaxis]
    return np.broadcast_to(sure, first.shape)


def _apart(first: Array, second: Array, freedom: Array) -> Array:
    """Return by how many deviations two energies (..., groups) differ, in the group where they do most."""
    ratio = np.log((first + _TINY) / (second + _TINY))
    return np.abs(ratio / np.sqrt(4 / freedom)).max(axis=-1)


def _around(values: Array, side: int) -> Array:
    """Return means of (ry, rx, ...) over squares of regions."""
    sides = (side, side) + (1,) * (values.ndim - 2)
    return np.maximum(scipy.ndimage.uniform_filter(values, sides, mode="nearest"), 0.0)


def _rising(values: Array, low: float, high: float) -> Array:
    """Return 0 up to ``low``, 1 from ``high``, and a line between."""
    return np.clip((values - low) / (high - low), 0.0, 1.0)


def find_stillness(changes: Changes, brightness: Array) -> Stillness:
    """Return what still regions show at the nodes of a picture whose regions have these brightnesses."""
    n_regions, ordered = len(brightness), np.sort(brightness)
    rank = (np.searchsorted(ordered, changes.brightness) + 0.5) / (n_regions + 1)
    near = node_weights(rank).astype(np.float64)
    energy = (changes.first + changes.second) / 2
    shape = near.shape[1], *energy.shape[1:]
    found = Stillness(np.zeros(shape), np.full(shape, np.inf), np.full(shape, np.inf))
    luminance, first, second = (
        np.log(_in_groups(each[:, 0]) + _TINY) for each in (energy, changes.first, changes.second)
    )
    frozen = float(changes.frozen.mean())
    for group, (start, stop) in enumerate(GROUPS):
        weights = near * changes.sure[:, group, np.newaxis]
        known = np.flatnonzero(weights.sum(axis=0) > _OVERLAP)
        if not known.size:
            continue
        away = _from_middle(luminance[:, group], weights[:, known], changes.brightness)
        # as if one place, in all runs, were wrong by a factor of two
        risk = _OVERLAP * changes.n_runs / changes.sure[:, group].sum()
        ratio, chance = (first - second)[:, group], 1 / GROUP_FREEDOM[group]
        for k in known:
            kept, doubt = _doubt(away, ratio, weights[:, k], near[:, k], chance)
            number = kept.sum() / _OVERLAP
            if number < 1:
                continue
            own = 1 / (RING_FREEDOM[start:stop] * number)
            mean = np.tensordot(kept, energy[:, :, start:stop], 1) / kept.sum()
            found.energy[k, :, start:stop] = mean
            found.chance[k, :, start:stop] = np.sqrt(_TO_LEVEL**2 * own + _FINEST**2)
            found.shared[k, :, start:stop] = np.sqrt(_TO_LEVEL**2 * doubt + risk**2 + frozen**2)
    return found


def _from_middle(values: Array, weights: Array, brightness: Array) -> Array:
    """Return how far values lie from the line between the medians near nodes, (values, nodes)."""
    at = brightness @ weights / weights.sum(axis=0)
    middle = np.array([_quantiles(values, own, [0.5])[0] for own in weights.T])
    order = np.argsort(at)
    return values - np.interp(brightness, at[order], middle[order])


def _doubt(
    away: Array, ratio: Array, sure: Array, near: Array, chance: float
) -> tuple[Array, float]:
    """Return the weights of regions that agree, and a variance: of what shifts all, beyond chance.

    Regions that are ``sure`` may differ by more than ``chance``; their contrasts may differ on average; and
    among all that are ``near`` there may be some with less, which noise alone does not allow.
    """
    few = (sure.sum() / _OVERLAP) ** -0.5
    low, middle, high = _quantiles(away, sure, [0.25, 0.5, 0.75])
    spread = ((high - low) / _QUARTILES) ** 2
    excess = max(spread - chance * (1 + _QUARTILE_ERROR * few), 0.0)
    kept = sure * (np.abs(away - middle) < _GATE * np.sqrt(chance + excess))
    if kept.sum() < _OVERLAP:
        return kept, np.inf
    drift = (kept @ ratio / kept.sum()) ** 2 - 4 * chance * _OVERLAP / kept.sum()
    least = _quantiles(away, near, [_LOW])[0] + _BELOW * np.sqrt(chance)
    above = max(middle - least - _LOW_ERROR * few * np.sqrt(chance), 0.0)
    return kept, excess + max(drift, 0.0) / 4 + above**2


def _quantiles(values: Array, weights: Array, shares: list[float]) -> Array:
    """Return weighted quantiles."""
    order = np.argsort(values, kind="stable")
    total = np.cumsum(weights[order])
    at = np.searchsorted(total, np.array(shares) * total[-1])
    return values[order][np.minimum(at, len(values) - 1)]


def correct(
    energy: Array, spread: Array, still: Stillness, least: float
) -> tuple[Array, Array, float]:
    """Return an estimate of noise, and its spread, corrected by what still regions show; and how far, 0 to 1.

    Errors of the estimate are taken for Gaussian, and nodes of brightness share a part of them: so what is
    measured at some nodes says something of the others, too.  Its variance is what it says, and at least as
    much as makes the disagreement likely that is seen (empirical Bayes).  The more still regions disagree, the less is
    it sure that they show noise alone: their doubt grows as its square where it exceeds the errors that
    are to be corrected.

    Parameters
    ----------
    energy, spread : ndarray (nodes, channels, rings)
        An estimate, and the standard deviation of log2 of its level.
    still : Stillness
    least : float
        Energy below which the estimate knows nothing.
    """
    n_nodes = len(energy)
    known = np.maximum(energy, least)
    error = np.log2(np.maximum(still.energy, least * 2.0**-10) / known) / 2
    corrected, left, learnt = energy.copy(), spread.copy(), np.zeros(energy.shape)
    for c, ring in np.ndindex(energy.shape[1:]):
        at = np.s_[:, c, ring]
        seen = np.isfinite(still.shared[at])
        if not seen.any():
            continue
        chance, shared = still.chance[at][seen], still.shared[at][seen]
        doubt = shared * np.hypot(1, shared / _UNSAID)
        said = np.hypot(spread[at], _UNSAID)
        unsaid = np.mean(error[at][seen] ** 2 - chance**2 - doubt**2 - said[seen] ** 2)
        said = np.sqrt(said**2 + max(unsaid, 0.0))
        prior = np.outer(said, said) * (_SHARED + (1 - _SHARED) * np.eye(n_nodes))
        noise = np.diag(chance**2 + len(doubt) * doubt**2)  # all nodes together say it once
        gain = np.linalg.solve(prior[np.ix_(seen, seen)] + noise, prior[seen]).T
        times = np.exp2(2 * gain @ error[at][seen])
        corrected[at] = np.maximum(known[at] * times - (known[at] - energy[at]), 0.0)
        learnt[at] = np.clip((gain * prior[:, seen]).sum(axis=1) / said**2, 0.0, 1.0)
        measured = np.zeros(n_nodes)
        measured[seen] = np.minimum(np.hypot(chance, shared), spread[at][seen])
        left[at] = np.maximum(spread[at] * np.sqrt(1 - learnt[at]), measured)
    return corrected, left, float(learnt.mean())
