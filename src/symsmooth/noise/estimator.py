"""Noise against brightness, from the evidence of regions: means of measured energies, by a small network.

Every region is given a few scores by what it shows; each score pools the energies of the regions,
once near each of nine nodes of brightness and once everywhere.  At each node, channel and group of
frequencies the answer is a mixture of these pooled energies and of the white floors, corrected by a
learnt factor, with its own uncertainty.  So the estimate is exact in scale, and there is no choice
between kinds of noise.  The weights were fitted on simulated pictures by ``benchmarks/noise_fit``;
their file says on which, from which seed and by which version.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np

from ..core.image import Array, Float
from .evidence import GROUPS, N_FLOORS, N_RINGS, Evidence, near_nodes

_N_REGIONS = 2500  # that are looked at: more say no more
_SCORE_LIMIT = np.float32(
    20.0
)  # weights of regions differ by e^40 at most: none is lost to rounding
_N_ENERGIES = 3 * N_RINGS

_TO_GROUPS = np.zeros((_N_ENERGIES, 9), np.float32)  # means over groups of rings
for _c in range(3):
    for _g, (_first, _last) in enumerate(GROUPS):
        _TO_GROUPS[_c * N_RINGS + _first : _c * N_RINGS + _last, _c * 3 + _g] = 1 / (_last - _first)
_FROM_GROUPS = (_TO_GROUPS > 0).astype(np.float32)


@dataclass(frozen=True)
class Estimate:
    """Noise at nodes of brightness.

    Attributes
    ----------
    energy : ndarray (nodes, channels, rings), in the units of the pixels squared
    spread : ndarray (nodes, channels, rings)
        Standard deviation of log2 of the level, as the network says.
    brightness : ndarray (nodes,)
    """

    energy: Array
    spread: Array
    brightness: Array


@cache
def load_weights() -> dict[str, Any]:
    """Return the fitted numbers, and what is known of the fit."""
    with files(__package__).joinpath("estimator.npz").open("rb") as file, np.load(file) as stored:
        return {name: stored[name] for name in stored.files}


def estimate(evidence: Evidence, weights: dict[str, Any] | None = None) -> Estimate:
    """Return the noise that regions show."""
    weights = load_weights() if weights is None else weights
    near = near_nodes(evidence.brightness)
    if len(near) > _N_REGIONS:
        take = np.linspace(0, len(near) - 1, _N_REGIONS).astype(np.intp)
        evidence, near = evidence.of_regions(take), near[take]
    near = near / near.sum(axis=0, keepdims=True)
    hidden, context, score = _look_at_regions(evidence, weights)
    pooled = _pool(evidence, near, score)
    log_energy, spread = _answer(evidence, near.T @ hidden, context, pooled, weights)
    n_channels = evidence.n_channels
    found = np.exp2(log_energy.astype(np.float64))[:, :n_channels] * evidence.reference
    centres = evidence.brightness @ near
    return Estimate(found, spread[:, :n_channels], centres.astype(np.float64))


def _look_at_regions(evidence: Evidence, p: dict[str, Any]) -> tuple[Float, Float, Float]:
    """Return hidden numbers of each region, those of the picture, and the scores of each region."""
    features = (evidence.features - p["feature_mean"]) / p["feature_std"]
    wide = (evidence.wide - p["wide_mean"]) / p["wide_std"]
    hidden = _layer(features, p, "one")
    context = _layer(np.concatenate([hidden.mean(axis=0), wide]), p, "context")
    everywhere = np.broadcast_to(context, (len(hidden), len(context)))
    hidden = _layer(np.concatenate([hidden, everywhere], axis=1), p, "two")
    return hidden, context, _SCORE_LIMIT * np.tanh(_dense(hidden, p, "score") / _SCORE_LIMIT)


class _Pooled(NamedTuple):
    """Energies of regions, pooled by their scores: log2."""

    here: Float  # (nodes, scores, energies)
    everywhere: Float  # (scores, energies)
    support: Float  # (nodes, scores): logarithm of what has these scores near a node
    support_everywhere: Float  # (scores,)


def _pool(evidence: Evidence, near: Float, score: Float) -> _Pooled:
    """Pool the energies of regions by their scores, near each node and everywhere.

    Half of the scores pool fourth roots: outliers count less.
    """
    (n, k), heads = near.shape, score.shape[1]
    half, small = heads // 2, np.float32(evidence.floor / 4)
    energy = evidence.energy.reshape(n, _N_ENERGIES)
    both = np.concatenate([energy, np.sqrt(np.sqrt(energy + small))], axis=1)

    def logs(pooled: Float) -> Float:
        plain = np.log2(pooled[..., :half, :_N_ENERGIES] + small)
        return np.concatenate([plain, 4 * np.log2(pooled[..., half:, _N_ENERGIES:])], axis=-2)

    top = score.max(axis=0)
    weight = np.exp(score - top)
    sums, total = near.T @ weight + np.float32(1e-30), weight.sum(axis=0)
    joint = (near[:, :, None] * weight[:, None, :]).reshape(n, k * heads)
    return _Pooled(
        logs((joint.T @ both).reshape(k, heads, -1) / sums[..., None]),
        logs((weight.T @ both) / total[:, None]),
        np.log(sums) + top,
        np.log(total) + top - np.float32(np.log(n)),
    )


def _answer(
    evidence: Evidence, hidden: Float, context: Float, pooled: _Pooled, p: dict[str, Any]
) -> tuple[Float, Float]:
    """Return log2 of the energies of noise (nodes, 3, rings), and the deviation of log2 of the level.

    They are mixtures of what was pooled and of the white floors, which are alike at all frequencies.
    """
    k, wide = len(hidden), evidence.wide
    white = wide[-3 * N_FLOORS :].reshape(N_FLOORS, 3)
    floors = np.repeat(white, N_RINGS, axis=1)
    # of flat patches of the colours, for all channels: film grain and texture have little colour, and
    # noise that is added to each channel has the same level in any mixture of them
    alike = white[0, 1:].mean() if evidence.n_channels == 3 else white[0, 0]
    # near a node: that of flat patches everywhere, as much higher or lower as luminance has it there
    lift = (evidence.local - wide[-3 * N_FLOORS])[:, None]
    middle = pooled.everywhere[-1:]
    shared = [
        ((pooled.everywhere - middle) @ _TO_GROUPS).ravel(),
        pooled.support_everywhere,
        context,
        (middle[0] - p["feature_mean"][:_N_ENERGIES]) / p["feature_std"][:_N_ENERGIES],
        ((floors - middle) @ _TO_GROUPS).ravel(),
    ]
    own = [((pooled.here - middle) @ _TO_GROUPS).reshape(k, -1), pooled.support, hidden, lift]
    whole = np.broadcast_to(np.concatenate(shared), (k, sum(map(len, shared))))
    t = _layer(_layer(np.concatenate([*own, whole], axis=1), p, "three"), p, "four")
    same = np.concatenate([pooled.everywhere, floors, np.full((1, _N_ENERGIES), alike, np.float32)])
    candidates = np.concatenate(
        [pooled.here, np.broadcast_to(same, (k, *same.shape)), (floors[0] + lift)[:, None]], axis=1
    )
    gate = _dense(t, p, "gate").reshape(k, _TO_GROUPS.shape[1], candidates.shape[1])
    gate = np.exp(gate - gate.max(axis=2, keepdims=True))
    gate /= gate.sum(axis=2, keepdims=True)
    share = np.einsum("eg,kgm->kme", _FROM_GROUPS, gate)
    found = (share * candidates).sum(axis=1) + _dense(t, p, "correction")
    least = np.float32(np.log2(evidence.floor))
    found = least + np.logaddexp(0, 2 * (found - least)) / 2
    spread = np.exp(np.clip(_dense(t, p, "spread") - 1.0, -5, 3))
    return found.reshape(k, 3, N_RINGS), spread.reshape(k, 3, N_RINGS)


def _layer(x: Float, p: dict[str, Any], name: str) -> Float:
    return np.maximum(_dense(x, p, name), 0)


def _dense(x: Float, p: dict[str, Any], name: str) -> Float:
    return x @ p[f"{name}.weight"].T + p[f"{name}.bias"]
