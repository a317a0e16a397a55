"""Variance against brightness, from blocks of frames: a line, and a smooth curve that no outlier bends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..core.image import Array
from .frames import Blocks

_FEWEST = 4  # blocks
_NODES = 8  # of brightness, in each scene
_BLOCKS_A_NODE = 12  # at least, if a scene has so many
_FEWEST_ROUNDS, _ROUNDS = 4, 12  # of fitting: each line weighs blocks for the next
_REJECTED = 6.0  # deviations from the curve: blocks that are further away do not count
_SPREAD = 1.4826  # standard deviation over median distance, of Gaussian numbers
_LEAST = 1e-9  # of the largest variance: what is less cannot be divided by
_BELOW = 0.2  # of the least variance at a node, to which the line may fall beyond the nodes


@dataclass(frozen=True, eq=False)
class MeanVariance:
    """How variance follows brightness in one channel.

    Attributes
    ----------
    gain, offset : float
        Of the line: variance = gain * brightness + offset.
    gain_error : float
        Standard error of the gain.
    centre, centre_error : float
        The brightness at which the line is known best, and the standard error of its variance there.
    nodes, variances, errors : ndarray (nodes,)
        Brightness, ascending; mean variance there; its standard error.
    span : (float, float)
        The least and the largest brightness of blocks that count.
    good : ndarray of bool (blocks,)
        Blocks that count, of all scenes.
    scatter : float
        How much more blocks differ than white noise makes them.
    rejected : float
        Share of the blocks that differ by too much.
    """

    gain: float
    offset: float
    gain_error: float
    centre: float
    centre_error: float
    nodes: Array
    variances: Array
    errors: Array
    span: tuple[float, float]
    good: Array
    scatter: float
    rejected: float

    def line(self, brightness: Array) -> Array:
        """Return the variance that the line has, not below what can be divided by."""
        return np.maximum(
            self.gain * brightness + self.offset, _LEAST * float(self.variances.max())
        )

    def smooth(self, brightness: Array) -> Array:
        """Return the variance that blocks of a brightness have."""
        return _curve(brightness, self.nodes, self.variances, self.gain, self.offset)

    def error_at(self, brightness: float) -> float:
        """Return the standard error of the line at a brightness."""
        return float(np.hypot(self.centre_error, self.gain_error * (brightness - self.centre)))

    @property
    def mean(self) -> float:
        """Mean variance of the nodes."""
        return float(self.variances.mean())

    @property
    def width(self) -> float:
        """How far these are apart."""
        return self.span[1] - self.span[0]

    def is_wide_of(self, share: float) -> bool:
        """Whether brightness differs by a share of the largest."""
        return self.width >= share * max(map(abs, self.span))

    def bent_from(self, law: Array) -> float:
        """Return how far the level at the nodes lies from a law there, beyond its error: relative, rms."""
        away = np.sqrt(np.maximum(self.variances, 0.0) / np.maximum(law, 1e-300)) - 1
        error = self.errors / np.maximum(law, 1e-300) / 2
        return float(np.sqrt(max(float(np.mean(away**2 - error**2)), 0.0)))


def fit_blocks(blocks: Sequence[Blocks], c: int, *, with_low: bool) -> MeanVariance | None:
    """Return how the variance of channel ``c`` follows brightness in all scenes; None if too few count.

    Parameters
    ----------
    blocks : sequence of Blocks
        Of each scene.
    c : int
    with_low : bool
        Whether blocks with pixels at the low end of the range count.
    """
    x, v, n = (
        np.concatenate([getattr(each, name)[:, c] for each in blocks])
        for name in ("brightness", "variance", "n_pixels")
    )
    frames = np.concatenate([np.full(len(each.brightness), each.n_frames) for each in blocks])
    scene = np.concatenate([np.full(len(each.brightness), i) for i, each in enumerate(blocks)])
    use = (n > 0.5 * n.max()) & ~np.concatenate([each.at_high[:, c] for each in blocks])
    if not with_low:
        use &= ~np.concatenate([each.at_low[:, c] for each in blocks])
    if use.sum() < _FEWEST or not v[use].any():
        return None
    nodes = _nodes(x, v, scene, use, np.median)
    if not nodes[1].any():  # a photon here and there
        nodes = _nodes(x, v, scene, use, np.mean)
    fit = _least_squares(*nodes[:2], 1 / np.maximum(nodes[1], 1e-3 * nodes[1].max()) ** 2)
    good, scatter, rejected = use, 1.0, 0.0
    for number in range(_ROUNDS):
        curve = _curve(x, nodes[0], nodes[1], fit.gain, fit.offset)
        expected = np.sqrt(
            (2 / (frames - 1) + max(fit.gain, 0.0) ** 2 / curve / frames) / np.maximum(n, 1)
        )
        z = (v / curve - 1) / expected
        scatter = _SPREAD * float(np.median(np.abs(z[use] - np.median(z[use]))))
        before, good = good, use & (np.abs(z) < _REJECTED * max(scatter, 1.0))
        line = np.maximum(fit.gain * x + fit.offset, 1e-3 * curve)
        weight = np.where(good, 1 / (line * expected) ** 2, 0.0)
        fit = _least_squares(x, v, weight)
        nodes = _nodes(x, v, scene, good, np.mean)
        rejected = float(1 - good.sum() / use.sum())
        if number >= _FEWEST_ROUNDS and (good == before).all():
            break
    span = float(x[good].min()), float(x[good].max())
    errors = (max(scatter, 1.0) / np.sqrt(max(known, 1e-300)) for known in (fit.sure, fit.total))
    gain_error, centre_error = map(float, errors)
    return MeanVariance(
        fit.gain, fit.offset, gain_error, fit.centre, centre_error, *nodes, span, good, scatter, rejected
    )  # fmt: skip


def _nodes(
    x: Array, v: Array, scene: Array, use: Array, middle: Callable[[Array], Any]
) -> tuple[Array, Array, Array]:
    """Return brightness, variance and its error at nodes: groups of blocks of one scene, by brightness."""
    found = []
    for number in np.unique(scene[use]):
        own = np.flatnonzero(use & (scene == number))
        own = own[np.argsort(x[own], kind="stable")]
        for group in np.array_split(own, max(1, min(_NODES, len(own) // _BLOCKS_A_NODE))):
            error = float(v[group].std() / np.sqrt(len(group)))
            found.append((float(middle(x[group])), float(middle(v[group])), error))
    found.sort()
    nodes, variances, errors = (np.array(values) for values in zip(*found, strict=True))
    return (
        nodes + 1e-12 * np.arange(len(nodes)) * (float(np.abs(nodes).max()) or 1.0),
        variances,
        errors,
    )


def _curve(x: Array, nodes: Array, variances: Array, gain: float, offset: float) -> Array:
    """Return variances between nodes, and beyond them as the line goes on."""
    least = max(_BELOW * float(variances.min()), _LEAST * float(variances.max()))
    line, at_nodes = (np.maximum(gain * each + offset, least) for each in (x, nodes))
    return np.maximum(line * np.interp(x, nodes, variances / at_nodes), least)


class _Line(NamedTuple):
    """A line by weighted least squares; ``sure`` and ``total`` are one over variances, of gain and mean."""

    gain: float
    offset: float
    centre: float
    sure: float
    total: float


def _least_squares(x: Array, v: Array, weight: Array) -> _Line:
    """Return the line that variances follow."""
    total = float(weight.sum())
    centre, mean = float(weight @ x) / total, float(weight @ v) / total
    away = x - centre
    sure = float(weight @ away**2)
    gain = float(weight @ (away * v)) / max(sure, 1e-300)
    return _Line(gain, mean - gain * centre, centre, sure, total)
