"""Noise of a series where it stands still, beside what its frames show one by one.

How far it is believed follows from how well still regions of one brightness agree: their noise is the same;
what is left of motion, and what a codec left out, is not.  Where nothing is proven nothing changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from ..core.image import Array
from .changes import TINY, Changes, in_groups
from .evidence import GROUPS, node_weights

# Degrees of freedom of the energies of white noise in a region, by ring and by group: (tr A)^2 / tr A^2 of
# the quadratic form (tests/noise/test_stillness.py).
RING_FREEDOM = np.array([18.9, 27.7, 46.7, 72.7, 89.6, 120.9, 102.5])
GROUP_FREEDOM = np.array([60.1, 133.9, 190.1])
_OVERLAP = 6.25  # regions of 20 pixels a side lie 8 pixels apart: so many share a pixel
_GATE = 3.0  # deviations from the other regions of a brightness: farther ones do not count
# Noise is in all regions: the energies of those below this quantile lie so many deviations below its mean.
_LOW, _BELOW = 0.05, 1.645
# Deviations of such a quantile of Gaussian values, and of their variance by quartiles: in the deviation
# (the variance) of one value over the root of their number.
_LOW_ERROR, _QUARTILE_ERROR = 2.11, 2.33
_QUARTILES = 1.349  # deviations between the quartiles of Gaussian values
# Of log2 of the level: what need not be known better, as 0.01 dB is lost by it; and errors of the estimator
# beyond what it says, at least: its errors are 0.26, 0.07 and 0.03 at sigma 2, 5 and 25, root mean square
# over every eighth picture of train400.
_FINEST, _UNSAID = 0.01, 0.1
_SHARED = 0.5  # share of the variance of its errors that nodes of brightness have in common
_TO_LEVEL = 1 / (2 * np.log(2))  # from the natural logarithm of an energy to log2 of the level


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


def find_stillness(changes: Changes, brightness: Array) -> Stillness:
    """Return what still regions show at the nodes of a picture whose regions have these brightnesses."""
    n_regions, ordered = len(brightness), np.sort(brightness)
    rank = (np.searchsorted(ordered, changes.brightness) + 0.5) / (n_regions + 1)
    near = node_weights(rank).astype(np.float64)
    energy = (changes.first + changes.second) / 2
    shape = near.shape[1], *energy.shape[1:]
    found = Stillness(np.zeros(shape), np.full(shape, np.inf), np.full(shape, np.inf))
    logs = [np.log(in_groups(each) + TINY) for each in (energy, changes.first, changes.second)]
    frozen = float(changes.frozen.mean())
    for channel, (group, rings) in product(range(shape[1]), enumerate(GROUPS)):
        sure, (start, stop) = changes.sure[:, channel, group], rings
        weights = near * sure[:, np.newaxis]
        known = np.flatnonzero(weights.sum(axis=0) > _OVERLAP)
        if not known.size:
            continue
        own, first, second = (each[:, channel, group] for each in logs)
        away = _from_middle(own, weights[:, known], changes.brightness)
        # as if one place, in all runs, were wrong by a factor of two
        risk = _OVERLAP * changes.n_runs / sure.sum()
        for k in known:
            chance = 1 / GROUP_FREEDOM[group]
            kept, doubt = _doubt(away, first - second, weights[:, k], near[:, k], chance)
            number = kept.sum() / _OVERLAP
            if number < 1:
                continue
            by_chance = _TO_LEVEL**2 / (RING_FREEDOM[start:stop] * number)
            mean = kept @ energy[:, channel, start:stop] / kept.sum()
            at = np.s_[k, channel, start:stop]
            found.energy[at] = mean
            found.chance[at] = np.sqrt(by_chance + _FINEST**2)
            found.shared[at] = np.sqrt(_TO_LEVEL**2 * doubt + risk**2 + frozen**2)
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
    """Return an estimate of noise, and its spread, corrected by still regions; and how far it is, 0 to 1.

    Errors of the estimate are taken for Gaussian, and nodes of brightness share a part of them: so what is
    measured at some nodes says something of the others, too.  Their variance is what the estimate says, and
    at least what makes the disagreement likely that is seen (empirical Bayes).  The more still regions
    disagree, the less sure is it that they show noise alone: their doubt grows as its square where it
    exceeds the errors that are to be corrected.

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
