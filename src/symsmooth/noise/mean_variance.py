"""Variance against brightness, from blocks of frames: a line, and a smooth curve that no outlier bends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.special

from ..core.image import Array
from .frames import CHANCE, Blocks

_NODES = 8  # of brightness, in each scene
_BLOCKS_A_NODE = 12  # at least, if a scene has so many
_SPREAD = 1 / scipy.special.ndtri(3 / 4)  # deviation over median distance, of Gaussian numbers
_LEAST = 1e-9  # of the largest variance: what is less cannot be divided by


class Line(NamedTuple):
    """Variance = gain * brightness + offset, by weighted least squares.

    It is known best at a ``centre``; ``precision`` is one over the variances of its value there, and of
    the gain.
    """

    gain: float
    offset: float
    centre: float
    precision: tuple[float, float]

    @classmethod
    def fit(cls, x: Array, v: Array, weight: Array) -> Line:
        """Return the line that variances follow."""
        total = float(weight.sum())
        centre, mean = float(weight @ x) / total, float(weight @ v) / total
        away = x - centre
        sure = max(float(weight @ away**2), 1e-300)
        gain = float(weight @ (away * v)) / sure
        return cls(gain, mean - gain * centre, centre, (total, sure))

    def at(self, x: Array, least: Array | float) -> Array:
        """Return its variance, not below the least."""
        return np.maximum(self.gain * x + self.offset, least)


@dataclass(frozen=True, eq=False)
class MeanVariance:
    """How variance follows brightness in one channel.

    Attributes
    ----------
    line : Line
    nodes, variances, errors : ndarray (nodes,)
        Brightness, ascending; mean variance there; its standard error.
    span : (float, float)
        The least and the largest brightness of blocks that count.
    good : ndarray of bool (blocks,)
        Blocks that count.
    scatter : float
        How much more blocks differ than white noise makes them, at least 1.
    rejected : float
        Share of the blocks that differ by too much.
    """

    line: Line
    nodes: Array
    variances: Array
    errors: Array
    span: tuple[float, float]
    good: Array
    scatter: float
    rejected: float

    def smooth(self, brightness: Array) -> Array:
        """Return the variance that blocks of a brightness have."""
        return _curve(brightness, self.line, self.nodes, self.variances)

    def error_at(self, brightness: float) -> float:
        """Return the standard error of the line at a brightness."""
        centre_error = self.scatter / np.sqrt(self.line.precision[0])
        return float(np.hypot(centre_error, self.gain_error * (brightness - self.line.centre)))

    @property
    def gain_error(self) -> float:
        """Standard error of the gain."""
        return float(self.scatter / np.sqrt(self.line.precision[1]))

    @property
    def mean(self) -> float:
        """Mean variance of the nodes."""
        return float(self.variances.mean())

    @property
    def width(self) -> float:
        """How far brightnesses are apart."""
        return self.span[1] - self.span[0]

    @property
    def bend(self) -> float:
        """How far the level lies from the line."""
        return self._away_from(self.line.at(self.nodes, _LEAST * float(self.variances.max())))

    @property
    def change(self) -> float:
        """How far the level lies from a constant."""
        return self._away_from(np.full_like(self.nodes, self.mean))

    def _away_from(self, law: Array) -> float:
        """Return how far the level at the nodes lies from a law there, beyond its error: relative, rms."""
        law = np.maximum(law, 1e-300)
        squares = (np.sqrt(self.variances / law) - 1) ** 2 - (self.errors / law / 2) ** 2
        return float(np.sqrt(max(float(squares.mean()), 0.0)))


def fit_blocks(blocks: Blocks, c: int, *, with_low: bool) -> MeanVariance | None:
    """Return how the variance of channel ``c`` follows brightness; None if too few blocks count.

    Those with pixels at the low end of the range count if ``with_low``.
    """
    x, v, n = (values[:, c] for values in (blocks.brightness, blocks.variance, blocks.n_pixels))
    use = (n > 0.5 * n.max()) & ~blocks.at_high[:, c] & (with_low | ~blocks.at_low[:, c])
    if use.sum() < 4 or not v[use].any():  # of the smallest frames
        return None
    nodes = _nodes(x, v, blocks.scene, use, np.median)
    if not nodes[1].any():  # a photon here and there
        nodes = _nodes(x, v, blocks.scene, use, np.mean)
    line = Line.fit(*nodes[:2], 1 / np.maximum(nodes[1], _LEAST * nodes[1].max()) ** 2)
    for _ in range(4):  # each line weighs blocks for the next, and says which count
        curve = _curve(x, line, *nodes[:2])
        kurtosis = max(line.gain, 0.0) ** 2 / curve  # of photons
        error = np.sqrt((2 / (blocks.n_frames - 1) + kurtosis / blocks.n_frames) / np.maximum(n, 1))
        z = (v / curve - 1) / error
        scatter = max(_SPREAD * float(np.median(np.abs(z[use] - np.median(z[use])))), 1.0)
        good = use & (np.abs(z) < CHANCE * scatter)
        expected = line.at(
            x, curve / 4
        )  # not of the curve: blocks would weigh more where it is too low
        line = Line.fit(x, v, np.where(good, 1 / (expected * error) ** 2, 0.0))
        nodes = _nodes(x, v, blocks.scene, good, np.mean)
    span = float(x[good].min()), float(x[good].max())
    return MeanVariance(line, *nodes, span, good, scatter, float(1 - good.sum() / use.sum()))


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
    nodes, variances, errors = np.array(sorted(found)).T
    return nodes, variances, errors


def _curve(x: Array, line: Line, nodes: Array, variances: Array) -> Array:
    """Return variances between nodes, and beyond them as the line goes on, to a quarter of the least."""
    least = max(float(variances.min()) / 4, _LEAST * float(variances.max()))
    bent = np.interp(x, nodes, variances / line.at(nodes, least))
    return np.maximum(line.at(x, least) * bent, least)
