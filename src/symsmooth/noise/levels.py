"""The level of noise against brightness, and how pixels are divided or bent by it: to variance 1.

Three laws: a constant, that of photons, and a curve.  Each is undone without bias: what the
denoiser returns is the mean of stabilised pixels, and the pixel is sought whose stabilised noise
has this mean.

References
----------
M. Makitalo, A. Foi, "Optimal inversion of the generalized Anscombe transformation for Poisson-Gaussian
noise", IEEE Trans. Image Processing 22 (2013), doi:10.1109/TIP.2012.2202675.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

import numpy as np
import scipy.special

from ..core.image import Array, Float
from ..core.multiscale import blurred, double

_MANY_COUNTS = 1e4  # photons, from which on their law is nearly a Gaussian
# Counts up to which the inverse of photon noise is a table; its expansion serves above.
_TABLE_END = 400.0
_FAR = 1e6  # times the span of a curve: beyond it the level stays as it is at its end
_PLACE = 4.0  # pixels: deviation of the window in which the brightness of a place is measured
_N_QUANTILES = 128  # of the noise around a clean pixel: a mean to a hundredth of its spread
_SHARES = (np.arange(_N_QUANTILES) + 0.5) / _N_QUANTILES
_BELOW_BLACK = 3.0  # deviations of read noise that the darkest pixel lies below black, at least
_READ, _READ_SHARES = np.polynomial.hermite_e.hermegauss(7)  # of read noise, and their weights
_READ_SHARES /= _READ_SHARES.sum()


class Level(ABC):
    """Standard deviation of noise against brightness; of any number of channels unless it says so."""

    @property
    def n_channels(self) -> int | None:
        """How many channels it is about; None if any number."""
        return None

    def of_channels(self, own: Array) -> Level:
        """Return the level of some channels, given by their numbers."""
        return self

    def fits(self, shape: tuple[int, ...]) -> bool:
        """Whether it can be the level of (*spatial, channels)."""
        return self.n_channels in (None, shape[-1])

    def bind(self, noisy: Float) -> Level:
        """Return the level for one picture, which ``undo`` is not shown."""
        return self

    @abstractmethod
    def in_units(self, offset: float, scale: float) -> Level:
        """Return the level of pixels (image - offset) / scale."""

    @abstractmethod
    def stabilise(self, noisy: Float) -> Float:
        """Give the noise of (*spatial, channels) the variance 1."""

    @abstractmethod
    def undo(self, stabilised: Float) -> Float:
        """Return the pixels whose stabilised noise has these means."""

    @abstractmethod
    def at(self, pixels: Array) -> list[Array]:
        """Return the standard deviation of each channel at pixel values."""

    @property
    @abstractmethod
    def typical(self) -> float:
        """Root mean square over what is known of the picture."""


@dataclass(frozen=True)
class Constant(Level):
    """One level; or one for each channel, (channels,); or one for each pixel, (*spatial, 1)."""

    values: Array

    @property
    def n_channels(self) -> int | None:
        """How many channels it is about; None if any number."""
        return len(self.values) if self.values.ndim == 1 else None

    def of_channels(self, own: Array) -> Constant:
        """Return the level of some channels, given by their numbers."""
        return Constant(self.values[own]) if self.values.ndim == 1 else self

    def fits(self, shape: tuple[int, ...]) -> bool:
        """Whether it can be the level of (*spatial, channels)."""
        return self.values.shape in ((), (shape[-1],), (*shape[:-1], 1))

    def in_units(self, offset: float, scale: float) -> Constant:
        """Return the level of pixels (image - offset) / scale."""
        return Constant(self.values / scale)

    def stabilise(self, noisy: Float) -> Float:
        """Divide by the level."""
        return (noisy / self.values).astype(np.float32)

    def undo(self, stabilised: Float) -> Float:
        """Multiply by it."""
        return (stabilised * self.values).astype(np.float32)

    def at(self, pixels: Array) -> list[Array]:
        """Return the standard deviation of each channel at pixel values."""
        levels = self.values.ravel() if self.values.ndim < 2 else [self.values.mean()]
        return [np.full(np.shape(pixels), float(level)) for level in levels]

    @property
    def typical(self) -> float:
        """Root mean square."""
        if self.values.ndim == 0:  # its square may be no number
            return float(self.values)
        return float(np.sqrt(np.mean(np.square(self.values, dtype=np.float64))))


@dataclass(frozen=True)
class Photons(Level):
    """Photon noise: variance gain * x + offset, x the clean pixel, each for every channel.

    ``black`` is the pixel without light: y = black + gain * Poisson + Gaussian.  If not given it is
    0, or where the variance is 0 if that is above.  A sensor with read noise s has offset s^2 -
    gain * black.
    """

    gain: tuple[float, ...]
    offset: tuple[float, ...]
    black: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        lines = list(zip(self.gain, self.offset, strict=True))
        if not all(0.0 < a < np.inf and np.isfinite(b) for a, b in lines):
            raise ValueError(
                f"gain must be positive and finite, got {self.gain} with offset {self.offset}; "
                "without gain the noise is Gaussian: give sigma"
            )
        black = tuple(
            max(m, -b / a)
            for (a, b), m in zip(lines, self.black or (0.0,) * len(lines), strict=True)
        )
        object.__setattr__(self, "black", black)

    @property
    def n_channels(self) -> int | None:
        """How many channels it is about; None if any number."""
        return len(self.gain)

    def of_channels(self, own: Array) -> Photons:
        """Return the level of some channels, given by their numbers."""
        gain, offset, black = (
            tuple(values[c] for c in own) for values in (self.gain, self.offset, self.black)
        )
        return Photons(gain, offset, black)

    def in_units(self, offset: float, scale: float) -> Photons:
        """Return the level of pixels (image - offset) / scale."""
        moved = zip(self.gain, self.offset, strict=True)
        return Photons(
            tuple(a / scale for a in self.gain),
            tuple((a * offset + b) / scale**2 for a, b in moved),
            tuple((m - offset) / scale for m in self.black),
        )

    def stabilise(self, noisy: Float) -> Float:
        """Apply the generalised Anscombe transform: 2 sqrt(y/a + 3/8 + b/a^2), the root cut at zero."""
        a, b = np.array(self.gain, np.float32), np.array(self.offset, np.float32)
        root = np.maximum(noisy / a + (np.float32(0.375) + b / a**2), 0)
        return 2 * np.sqrt(root)

    def undo(self, stabilised: Float) -> Float:
        """Undo it without bias: the signal whose transform has this mean."""
        planes = np.moveaxis(stabilised, -1, 0)
        channels = zip(self.gain, self.offset, self.black, planes, strict=True)
        restored = [
            black + gain * _photons(plane, max(gain * black + offset, 0.0) / gain**2)
            for gain, offset, black, plane in channels
        ]
        return np.stack(restored, axis=-1).astype(np.float32)

    def at(self, pixels: Array) -> list[Array]:
        """Return the standard deviation of each channel at pixel values."""
        lines = zip(self.gain, self.offset, strict=True)
        return [np.sqrt(np.maximum(gain * pixels + offset, 0.0)) for gain, offset in lines]

    @property
    def typical(self) -> float:
        """Standard deviation at one photon above black, where nothing is known of the picture."""
        lines = zip(self.gain, self.offset, self.black, strict=True)
        return float(np.sqrt(np.mean([max(a * (m + a) + b, 0.0) for a, b, m in lines])))


def _photons(stabilised: Array, read: float) -> Array:
    """Return E^-1, the photons whose transform has this mean: a table, its expansion beyond.

    ``read`` is the variance of the read noise in photons squared.
    """
    counts, means = _expected_root(float(f"{read:.6g}"))
    table = np.interp(stabilised, means, counts)
    d = np.maximum(stabilised, 1.0)
    root = np.sqrt(1.5)
    expansion = d**2 / 4 + root / (4 * d) - 11 / (8 * d**2) + 5 * root / (8 * d**3) - 0.125 - read
    return np.where(stabilised < means[-1], table, expansion)


@lru_cache(maxsize=16)
def _expected_root(read: float) -> tuple[Array, Array]:
    """Tabulate E[2 sqrt(max(p + n + 3/8 + read, 0))] over counts, p Poisson, n N(0, read)."""
    counts = np.concatenate([[0.0], np.geomspace(1e-3, _TABLE_END, 400)])
    photons = np.arange(int(_TABLE_END + 12 * np.sqrt(_TABLE_END)))
    log_pmf = scipy.special.xlogy(photons, counts[:, None]) - counts[:, None]
    pmf = np.exp(log_pmf - scipy.special.gammaln(photons + 1))
    nodes, weights = np.polynomial.hermite_e.hermegauss(21)
    spread = np.sqrt(read) * nodes[:, None]
    roots = 2 * np.sqrt(np.maximum(photons + spread + 0.375 + read, 0.0))
    return counts, pmf @ (weights @ roots / weights.sum())


@dataclass(frozen=True)
class Curve(Level):
    """A level that follows the brightness of each pixel, channel by channel.

    Pixels are bent by the integral of one over the level, so that their noise has variance 1.

    Attributes
    ----------
    brightness : ndarray (channels, n), ascending
    level : ndarray (channels, n), positive
    span : ndarray (channels, 2)
        The least and the largest pixel, of what it was found from and of what it is bound to.
    """

    brightness: Array
    level: Array
    span: Array

    @property
    def n_channels(self) -> int | None:
        """How many channels it is about; None if any number."""
        return len(self.brightness)

    def of_channels(self, own: Array) -> Curve:
        """Return the level of some channels, given by their numbers."""
        return Curve(self.brightness[own], self.level[own], self.span[own])

    def in_units(self, offset: float, scale: float) -> Curve:
        """Return the level of pixels (image - offset) / scale."""
        return Curve(
            (self.brightness - offset) / scale, self.level / scale, (self.span - offset) / scale
        )

    def bind(self, noisy: Float) -> Curve:
        """Return the curve for (*spatial, channels): pixels may lie beyond those it was found from."""
        around = tuple(range(noisy.ndim - 1))
        low = np.minimum(self.span[:, 0], noisy.min(axis=around))
        high = np.maximum(self.span[:, 1], noisy.max(axis=around))
        bound = Curve(self.brightness, self.level, np.stack([low, high], axis=-1))
        if (low == self.span[:, 0]).all():  # tables follow from the darkest pixel
            bound.__dict__["_tables"] = self._tables
        return bound

    def stabilise(self, noisy: Float) -> Float:
        """Bend pixels."""
        bent = [np.interp(noisy[..., c], x, f) for c, (x, f, _) in enumerate(self._tables)]
        return np.stack(bent, axis=-1).astype(np.float32)

    def undo(self, stabilised: Float) -> Float:
        """Return the pixels whose bent noise has these means."""
        found = [
            np.clip(np.interp(stabilised[..., c], mean, x), *self.span[c])
            for c, (x, _, mean) in enumerate(self._tables)
        ]
        return np.stack(found, axis=-1).astype(np.float32)

    def at(self, pixels: Array) -> list[Array]:
        """Return the standard deviation of each channel at pixel values."""
        return [np.interp(pixels, x, s) for x, s in zip(self.brightness, self.level, strict=True)]

    @property
    def typical(self) -> float:
        """Root mean square over the curve."""
        return float(np.sqrt(np.mean(np.square(self.level))))

    @cached_property
    def _tables(self) -> list[tuple[Array, Array, Array]]:
        """Return pixels, what they are bent to, and the mean of bent noise around them, by channel."""
        return [
            _bend(x.astype(np.float64), s.astype(np.float64), float(low))
            for x, s, (low, _) in zip(self.brightness, self.level, self.span, strict=True)
        ]


def _bend(x: Array, s: Array, darkest: float) -> tuple[Array, Array, Array]:
    """Return pixels, what they are bent to, and the mean of bent noise around these pixels.

    The slope is one over the level; as in Anscombe's transform, which this is where the variance v follows
    a line, that of v + 3/8 v'^2, which counts where there are few photons.  Noise is taken as that of a
    detector: photons, each of which adds v', and read noise, which is the least level there is, but no more
    than the pixels below black show.  So it is skewed where there is little light, whatever black is.
    """
    if -np.inf < darkest < x[0] - s[0]:
        x = np.concatenate([np.linspace(darkest, x[0], len(x), endpoint=False), x])
        s = np.concatenate([np.full(len(x) - len(s), s[0]), s])
    reach = _FAR * (6 * max(s[0], s[-1]) + float(np.ptp(x)))
    x = np.concatenate([[x[0] - reach], x, [x[-1] + reach]])
    s = np.concatenate([s[:1], s, s[-1:]])
    growth = np.maximum(np.gradient(s**2, x), 0.0)
    slope = 1 / np.sqrt(s**2 + 0.375 * growth**2)
    bent = np.concatenate([[0.0], np.cumsum(np.diff(x) * (slope[1:] + slope[:-1]) / 2)])
    bent -= bent[1]  # small numbers where pixels are: float32 holds them
    each = np.maximum(growth, 1e-3 * s)  # a million photons are as good as Gaussian
    black = x - (s**2 - s.min() ** 2) / each
    read = np.minimum(s.min(), np.maximum(black - darkest, 0.0) / _BELOW_BLACK)
    counts = (s**2 - read**2) / each**2
    light = (_poisson_quantiles(counts) - counts[:, None]) * each[:, None]
    noisy = (x[:, None] + light)[..., None] + read[:, None, None] * _READ
    mean = np.interp(np.maximum(noisy, darkest), x, bent).mean(axis=1) @ _READ_SHARES
    return x, bent, np.maximum.accumulate(mean + 1e-9 * np.arange(len(mean)))


def _poisson_quantiles(means: Array) -> Array:
    """Return quantiles, at equal distances, of Poisson laws with these means: (means, quantiles).

    Of many counts those of a Gaussian, with its first correction for skewness (Cornish and Fisher), which
    are 0.05 deviations off at most; the exact search takes the longer the more there are.
    """
    z = scipy.special.ndtri(_SHARES)
    counts = means[:, None] + np.sqrt(means)[:, None] * z + (z**2 - 1) / 6
    few = means < _MANY_COUNTS
    exact = scipy.special.pdtrik(_SHARES, means[few][:, None])
    counts[few] = np.ceil(np.nan_to_num(exact))
    return counts


@dataclass(frozen=True)
class PlaceCurve(Level):
    """A level that follows the brightness of a place: the mean of the channels in a window of some pixels.

    For noise that pixels and channels share, as that of cameras: it comes from around a pixel, not
    from the pixel.

    Attributes
    ----------
    brightness : ndarray (n,), ascending
    level : ndarray (n,), positive
    bound : ndarray (*spatial, 1) or None
        The level at each pixel of the picture that it was bound to.
    """

    brightness: Array
    level: Array
    bound: Float | None = field(default=None, compare=False, repr=False)

    def in_units(self, offset: float, scale: float) -> PlaceCurve:
        """Return the level of pixels (image - offset) / scale."""
        return PlaceCurve((self.brightness - offset) / scale, self.level / scale)

    def bind(self, noisy: Float) -> PlaceCurve:
        """Return the curve with its level at each pixel of (*spatial, channels)."""
        mean = np.full((noisy.shape[-1], 1), 1 / noisy.shape[-1], np.float32)
        bound = np.empty((*noisy.shape[:-1], 1), np.float32)
        for index in np.ndindex(noisy.shape[:-3]):
            smooth = blurred(noisy[index] @ mean, _PLACE, 1)
            at = np.interp(smooth, self.brightness, self.level).astype(np.float32)
            bound[index] = double(at, noisy.shape[-3:-1])
        return replace(self, bound=bound)

    def stabilise(self, noisy: Float) -> Float:
        """Divide by the level."""
        assert self.bound is not None
        return noisy / self.bound

    def undo(self, stabilised: Float) -> Float:
        """Multiply by it."""
        assert self.bound is not None
        return stabilised * self.bound

    def at(self, pixels: Array) -> list[Array]:
        """Return the standard deviation at pixel values."""
        return [np.interp(pixels, self.brightness, self.level)]

    @property
    def typical(self) -> float:
        """Root mean square over the curve."""
        return float(np.sqrt(np.mean(np.square(self.level))))
