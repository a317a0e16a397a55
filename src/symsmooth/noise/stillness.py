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

# Degrees of freedom of white noise in the energies of a region, by ring, and of three by three regions, by
# group: (tr A)^2 / tr A^2 of the quadratic form (tests/noise/test_stillness.py).
RING_FREEDOM = np.array([18.9, 27.7, 46.7, 72.7, 89.6, 120.9, 102.5])
GROUP_FREEDOM = np.array([60.1, 133.9, 190.1])
SQUARE_FREEDOM = np.array([170.1, 378.1, 527.5])
_OVERLAP = 6.25  # regions of 20 pixels a side lie 8 pixels apart: so many share a pixel
_CHANCE = 2.0, 4.0  # deviations: by chance up to, surely not from
_PROOF = 3.0, 6.0  # those by which the sum exceeds the contrasts: chance up to, surely still from
_SQUARE, _AROUND = 3, 9  # regions a side that are asked together
# Share of the regions around that have structure, and are steady: of still ones 0.9 by the law of chance
_TOGETHER = 0.6, 0.9
_GATE = 3.0  # deviations from the other regions of a brightness: farther ones do not count
_LOW = 0.05  # quantile of the energies of all regions, which noise cannot exceed
_LOW_NORMAL = 1.645  # deviations that it lies below the mean
_CELL = 4  # pixels a side
_MISSING = 0.1  # share of missing pixels in a region that is used, as in a picture
_MOST_RUNS = 4  # of three frames: more say no more
# Of log2 of the level.  Levels that are off by less cost nothing; errors that the estimator does not know
# of; share of its errors that nodes of brightness have in common.
_FINEST = 0.01
_UNSAID = 0.1
_SHARED = 0.5
_TO_LEVEL = 1 / (2 * np.log(2))  # from the natural logarithm of an energy to log2 of the level


class Changes(NamedTuple):
    """What regions of a series show of its changes; of two frames the second contrast is the first.

    Attributes
    ----------
    first, second : ndarray (regions, channels, rings)
        Energies of both contrasts.
    sure : ndarray (regions, groups)
        How sure it is that nothing moves in them, 0 to 1.
    brightness : ndarray (regions,)
    frozen : ndarray (regions,)
        Share of cells of 4 x 4 pixels that show something and did not change by a bit.
    n_contrasts : int
        1 of two frames, else 2.
    """

    first: Array
    second: Array
    sure: Array
    brightness: Array
    frozen: Array
    n_contrasts: int


def runs_of(n_frames: int) -> list[slice]:
    """Return runs of three frames that share none, at most four, from all over; of two frames both.

    Examples
    --------
    >>> runs_of(2), runs_of(7)
    ([slice(0, 2, None)], [slice(0, 3, None), slice(3, 6, None)])
    """
    if n_frames < 3:
        return [slice(0, 2)] if n_frames == 2 else []
    count = min(n_frames // 3, _MOST_RUNS)
    starts = np.linspace(0, n_frames // 3 - 1, count).round().astype(int) * 3
    return [slice(int(start), int(start) + 3) for start in starts]


def measure_changes(windows: Iterable[tuple[Float, Array | None]]) -> Changes | None:
    """Measure windows of runs of frames, (runs, frames, y, x, 1 or 3), and where none is missing."""
    found = [_of_window(runs, valid) for runs, valid in windows]
    if not any(len(each.brightness) for each in found):
        return None
    *values, counts = zip(*found, strict=True)
    return Changes(*map(np.concatenate, values), min(counts))


def _of_window(runs: Float, valid: Array | None) -> Changes:
    contrasts = [_contrasts(frames) for frames in runs]
    first, second, total = (np.stack(each) for each in zip(*contrasts, strict=True))
    live = np.stack(
        [np.logical_and.reduce([is_live(frame) for frame in frames]) for frames in runs]
    )
    if valid is not None:
        missing = [(~own.all(axis=0)).astype(np.float32) for own in valid]
        live &= np.stack([region_mean(own) for own in missing]) <= _MISSING
    n_contrasts = 1 if runs.shape[1] == 2 else 2
    sure = _sureness(*(each[..., 0, :] for each in (first, second, total)), live, n_contrasts)
    frozen = np.stack([region_mean(_frozen_cells(frames)) for frames in runs])
    sure = sure * (1 - frozen[..., np.newaxis])
    brightness = np.stack([region_mean(frames.mean(axis=(0, -1))) for frames in runs])
    values = (each[live] for each in (first, second, sure, brightness, frozen))
    return Changes(*values, n_contrasts)


def _contrasts(frames: Float) -> tuple[Float, Float, Float]:
    """Return the energies of both contrasts of frames and of their sum, (ry, rx, channels, rings)."""
    total = frames.sum(axis=0) / np.float32(np.sqrt(len(frames)))
    if len(frames) == 2:
        own = energies(_without_light((frames[1] - frames[0]) / np.float32(np.sqrt(2)), total))
        return own, own, energies(total)
    before, middle, after = frames
    first = (after - before) / np.float32(np.sqrt(2))
    second = (before - 2 * middle + after) / np.float32(np.sqrt(6))
    return (
        energies(_without_light(first, total)),
        energies(_without_light(second, total)),
        energies(total),
    )


def _sureness(
    first: Array, second: Array, total: Array, live: Array, n_contrasts: int
) -> Array:
    """Return how sure it is that regions stand still, (runs, ry, rx, groups), from energies of luminance.

    Asked are all runs of a place and the regions around it: what moves does so for a while and not alone.
    A group is proven by its own structure, or by that of the next lower one.
    """
    alive = live[..., np.newaxis].astype(np.float64)
    sums = [(_in_groups(each) * alive).sum(axis=0) for each in (first, second, total)]
    freedom = SQUARE_FREEDOM * len(first)
    one, two, both = (np.maximum(_mean_around(each, _SQUARE), 1e-30) for each in sums)
    steady = _steadiness(one, two, freedom)
    wide = [np.maximum(_mean_around(each, _AROUND), 1e-30) for each in sums[:2]]
    steady = np.minimum(steady, _steadiness(*wide, freedom * (_AROUND / _SQUARE) ** 2))
    noise = np.sqrt(2 / freedom * (1 + 1 / n_contrasts))
    shows = _rising(np.log(2 * both / (one + two)) / noise, *_PROOF)
    proven = shows.copy()
    proven[..., 1:] = np.maximum(proven[..., 1:], shows[..., :-1])
    most = shows.max(axis=-1)
    known, all_of_it = (_mean_around(each[..., np.newaxis], _AROUND) for each in (most * steady, most))
    together = _rising((known / np.maximum(all_of_it, 1e-6))[..., 0], *_TOGETHER)
    sure = proven * (steady * together)[..., np.newaxis]
    return np.broadcast_to(sure, (len(first), *sure.shape))


def _without_light(contrast: Float, total: Float) -> Float:
    """Return a contrast without what light that became brighter makes of the scene, channel by channel."""
    sharp, change = (
        each - scipy.ndimage.uniform_filter(each, (SIDE, SIDE, 1)) for each in (total, contrast)
    )
    power = np.square(sharp).sum(axis=(0, 1))
    return contrast - (sharp * change).sum(axis=(0, 1)) / np.maximum(power, 1e-30) * total


def _frozen_cells(frames: Float) -> Float:
    """Return 1 in cells of pixels that are not constant and equal in two frames, else 0: (y, x)."""
    height, width = (size // _CELL * _CELL for size in frames.shape[1:3])
    cells = frames[:, :height, :width].reshape(
        len(frames), height // _CELL, _CELL, width // _CELL, _CELL, -1
    )
    shows = (cells != cells[:, :, :1, :, :1]).any(axis=(2, 4, 5))
    same = (cells[1:] == cells[:-1]).all(axis=(2, 4, 5)) & shows[1:]
    found = np.zeros(frames.shape[1:3], np.float32)
    found[:height, :width] = np.kron(same.any(axis=0), np.ones((_CELL, _CELL), np.float32))
    return found


def _in_groups(values: Array) -> Array:
    """Return means over groups of rings, (..., rings) -> (..., groups): each frequency counts."""
    return np.stack(
        [
            values[..., first:last] @ (PER_RING[first:last] / PER_RING[first:last].sum())
            for first, last in GROUPS
        ],
        axis=-1,
    )


@dataclass(frozen=True)
class Stillness:
    """The noise of regions that stand still, at nodes of brightness.

    Attributes
    ----------
    energy : ndarray (nodes, channels, rings)
    chance, shared : ndarray (nodes, channels, rings)
        Standard deviations of log2 of the level: by chance, and of what all nodes have in common, such as
        motion that was not seen; infinite where nothing is proven.
    share : float
        Of the regions that are proven to stand still.
    """

    energy: Array
    chance: Array
    shared: Array
    share: float


def find_stillness(changes: Changes, brightness: Array) -> Stillness:
    """Return what still regions show at the nodes of a picture whose regions have these brightnesses."""
    ordered = np.sort(brightness)
    rank = (np.searchsorted(ordered, changes.brightness) + 0.5) / (len(ordered) + 1)
    near = node_weights(np.clip(rank, 0.5 / len(ordered), 1 - 0.5 / len(ordered))).astype(np.float64)
    energy = (changes.first + changes.second) / 2
    sure = changes.sure
    frozen = float(changes.frozen.mean())
    n_nodes, (_, n_channels, _) = near.shape[1], energy.shape
    found = np.zeros((n_nodes, n_channels, N_RINGS))
    by_chance, together = (np.full((n_nodes, n_channels, N_RINGS), np.inf) for _ in range(2))
    for g, (first, last) in enumerate(GROUPS):
        own = np.log(np.maximum(_in_groups(energy[:, 0])[:, g], 1e-30))
        ratio = np.log(
            np.maximum(_in_groups(changes.first[:, 0])[:, g], 1e-30)
            / np.maximum(_in_groups(changes.second[:, 0])[:, g], 1e-30)
        )
        chance = 2 / (changes.n_contrasts * GROUP_FREEDOM[g])
        weights = near * sure[:, g : g + 1]
        is_known = weights.sum(axis=0) > _OVERLAP
        if not is_known.any():
            continue
        at = (weights.T @ changes.brightness)[is_known] / weights.sum(axis=0)[is_known]
        middle = np.array([_quantiles(own, weights[:, k], [0.5])[0] for k in np.flatnonzero(is_known)])
        order = np.argsort(at)
        away = own - np.interp(changes.brightness, at[order], middle[order])
        for k in np.flatnonzero(is_known):
            w = weights[:, k]
            few = (w.sum() / _OVERLAP) ** -0.5
            low, mid, high = _quantiles(away, w, [0.25, 0.5, 0.75])
            excess = max(((high - low) / 1.349) ** 2 - chance * (1 + 2.33 * few), 0.0)
            w = w * (np.abs(away - mid) < _GATE * np.sqrt(chance + excess))
            n = w.sum() / _OVERLAP
            if n < 1:
                continue
            drift = max(float(w @ ratio / w.sum()) ** 2 - 4 * chance / n, 0.0)
            least = _quantiles(away, near[:, k], [_LOW])[0]
            over = max(mid - least - (_LOW_NORMAL + 2.1 * few) * np.sqrt(chance), 0.0)
            own_chance = 2 / (changes.n_contrasts * RING_FREEDOM[first:last]) / n
            found[k, :, first:last] = np.einsum("n,ncr->cr", w, energy[:, :, first:last]) / w.sum()
            by_chance[k, :, first:last] = np.sqrt(
                _TO_LEVEL**2 * own_chance + 1 / n**2 + _FINEST**2
            )
            together[k, :, first:last] = np.sqrt(
                _TO_LEVEL**2 * (excess + drift / 4 + over**2) + frozen**2
            )
    return Stillness(found, by_chance, together, float(sure.max(axis=1).mean()))


def _steadiness(first: Array, second: Array, freedom: Array) -> Array:
    """Return how sure it is that two energies (..., groups) have one law in all groups."""
    far = np.abs(np.log(first / second) / np.sqrt(4 / freedom)).max(axis=-1)
    return 1 - _rising(far, *_CHANCE)


def _mean_around(values: Array, side: int) -> Array:
    """Return means of (ry, rx, n) over squares of regions."""
    return scipy.ndimage.uniform_filter(values, (side, side, 1), mode="nearest")


def _rising(values: Array, low: float, high: float) -> Array:
    """Return 0 up to ``low``, 1 from ``high``, and a line between."""
    return np.clip((values - low) / (high - low), 0.0, 1.0)


def _quantiles(values: Array, weights: Array, shares: list[float]) -> Array:
    """Return weighted quantiles."""
    order = np.argsort(values, kind="stable")
    total = np.cumsum(weights[order])
    at = np.searchsorted(total, np.array(shares) * total[-1])
    return values[order][np.minimum(at, len(values) - 1)]


def correct(energy: Array, spread: Array, still: Stillness, least: float) -> tuple[Array, Array]:
    """Return energies of noise (nodes, channels, rings) that are known by so much, with what is still.

    The errors of an estimate are Gaussian, and nodes share a part of them: so what is measured at some
    nodes says something of the others, too.

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
    error = (np.log2(np.maximum(still.energy, least * 2.0**-10)) - np.log2(known)) / 2
    new_energy, new_spread = energy.copy(), spread.copy()
    for c, ring in np.ndindex(energy.shape[1:]):
        seen = np.isfinite(still.shared[:, c, ring])
        if not seen.any():
            continue
        said = np.hypot(spread[:, c, ring], _UNSAID)
        prior = np.outer(said, said) * (_SHARED + (1 - _SHARED) * np.eye(n_nodes))
        chance, shared = still.chance[seen, c, ring], still.shared[seen, c, ring]
        doubt = shared * np.sqrt(1 + (shared / _UNSAID) ** 2)
        noise = np.diag(chance**2 + len(doubt) * doubt**2)  # all nodes say it once
        gain = np.linalg.solve(prior[np.ix_(seen, seen)] + noise, prior[seen]).T
        times = np.exp2(2 * gain @ error[seen, c, ring])
        missing = known[:, c, ring] - energy[:, c, ring]
        new_energy[:, c, ring] = np.maximum(known[:, c, ring] * times - missing, 0.0)
        left = np.sqrt(np.maximum(1 - (gain * prior[:, seen]).sum(axis=1) / said**2, 0.0))
        own = np.full(n_nodes, np.inf)
        own[seen] = np.hypot(chance, shared)
        bound = np.minimum(spread[:, c, ring], own)
        new_spread[:, c, ring] = np.maximum(spread[:, c, ring] * left, np.where(seen, bound, 0.0))
    return new_energy, new_spread
