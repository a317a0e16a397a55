"""One model of noise: how it follows brightness, how channels share it, how it spreads over frequencies.

y = x + noise.  Pixels are divided (or bent) by their level, channels are mixed so that their noise
is independent, and each is divided by the root of its spectrum: then the noise is white, of
variance 1.  GSF-W stands between :meth:`NoiseModel.whiten` and :meth:`NoiseModel.restore`.  White,
photon and coarse noise are special cases: a constant level, the law of photons, a spectrum that is
not flat.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike

from ..core.channels import decorrelate, mix
from ..core.image import Array, Float
from ..core.plotting import BLUE, GREY, ORANGE, require_matplotlib
from .evidence import CENTRES, N_RINGS, RING, SIDE
from .level import FINEST
from .levels import Constant, Curve, Level, Photons, PlaceCurve
from .spectrum import coarse_shares, filter_by_root, sample_energies, without_plane

_SMALLEST_UNIT = 1e-140  # of a picture: squares of much smaller ones are 0
_LEAST_ENERGY = 1e-4  # of the mean: what is less cannot be divided by
_CALLED_COARSE, _CALLED_GROWING = 0.3, 1.5  # share, times from dark to bright: in words only
_DARK_MIDDLE_BRIGHT = [0.02, 0.5, 0.98]  # quantiles of the pixels
_ASKED = 1 << 20  # pixels, about, that tell what is dark and bright in a picture
_COLOURS, _PLOTTED = (GREY, BLUE, ORANGE), 200  # of curves, and their points
_UNIT = 1.0  # the largest pixel of pictures of 0 to 1
_WHOLE_NUMBERS = 50.0  # pictures with larger pixels are no such ones
_WORDS = {
    "gaussian": "white",
    "poisson-gaussian": "photon (Poisson)",
    "correlated": "coarse (correlated)",
}


@dataclass(frozen=True)
class Finding:
    """Why an estimate is what it is.

    Attributes
    ----------
    confidence : float
        0 to 1: the share of simulated pictures of which as much was said, whose result lies within
        half a decibel of that with the true noise.
    reasons : tuple of str
        What was found, in words.
    suspected : float
        How much more noise there may be, in the image's units: what could be texture as well.
    """

    confidence: float
    reasons: tuple[str, ...]
    suspected: float = 0.0


@dataclass(frozen=True)
class PixelRange:
    """Which pixels a model of noise was found in: a level means nothing without their units.

    Attributes
    ----------
    dtype : str
        That of the image, such as "uint16".
    low, high : float
        The least and the largest pixel that was seen.
    """

    dtype: str
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.dtype} pixels from {self.low:.6g} to {self.high:.6g}"

    def same_units(self, other: PixelRange) -> bool:
        """Whether both can be in the same units: not 8 bits and more, nor 0 to 1 and whole numbers."""
        if self.low == self.high or other.low == other.high:
            return True  # constant pixels say nothing of their units
        of_floats = ["float" in each.dtype for each in (self, other)]
        if not any(of_floats):
            return self.dtype.endswith("int8") == other.dtype.endswith("int8")
        ends = sorted(max(abs(each.low), abs(each.high)) for each in (self, other))
        return all(of_floats) or not ends[0] <= _UNIT < _WHOLE_NUMBERS < ends[1]


class Noise(Protocol):
    """What models of noise answer: :class:`NoiseModel`, and :class:`Rician`."""

    @property
    def finding(self) -> Finding | None:
        """How it was found; None if it was given."""

    @property
    def pixels(self) -> PixelRange | None:
        """Which pixels it was found in; None if that is not known."""

    @property
    def n_channels(self) -> int | None:
        """How many channels it is about; None if any number."""

    @property
    def kind(self) -> str:
        """What people call it: the name of the argument ``noise`` that is nearest."""

    @property
    def sigma(self) -> float:
        """Its level: root mean square."""

    @property
    def white_sigma(self) -> float | None:
        """Its level if it is white, of one level; else None."""

    @property
    def coarse_share(self) -> float:
        """How far it is coarse: 0 if white, 1 if there is none at high frequencies."""

    def fits(self, shape: tuple[int, ...]) -> bool:
        """Whether it can be the noise of (*spatial, channels)."""

    def in_units(self, offset: float, scale: float) -> Noise:
        """Return the model for pixels (image - offset) / scale."""

    def bind(self, noisy: Float) -> Noise:
        """Return the model for one picture, (*spatial, channels), which ``restore`` is not shown."""

    def whiten(self, noisy: Float) -> Float:
        """Make the noise of (*spatial, channels) white, of variance 1."""

    def restore(self, denoised: Float) -> Float:
        """Undo ``whiten`` without bias."""

    def std_back(self, denoised: Float, std: Float) -> Float:
        """Return the standard deviation of ``restore`` from that of white pixels."""

    def coarse_levels(self) -> tuple[Array, Float] | None:
        """Return the levels of coarse noise at low frequencies and its channels; None if there is none."""

    def level_at_end(self) -> float:
        """Return the level before clipping at an end of the range; 0 if that is not known."""

    def level_at(self, pixels: Array) -> list[Array]:
        """Return the standard deviation at pixel values, of each (mixed) channel."""

    def rings(self) -> tuple[Array, list[Array]]:
        """Return frequencies in cycles a pixel, and the relative level of each channel there."""

    def is_negligible(self, brightest: Array) -> bool:
        """Whether float32 pixels, in units of their spread, are rounded by more than this noise."""

    def words(self, pixels: Array) -> Words:
        """Say in plain words what it is; ``pixels`` are those of the image, or a sample of them."""


class Words(NamedTuple):
    """A model in plain words."""

    kind: str  # "white", "photon (Poisson)": what comes before "noise"
    level: float  # at the median pixel
    law: str  # how it follows brightness; empty if it does not
    fields: dict[str, Any]  # for a script


@dataclass(frozen=True, eq=False)
class NoiseModel:
    """Noise of a picture, in its units.

    Attributes
    ----------
    level : Level
        Standard deviation against brightness.
    transform : ndarray (channels, channels) or None
        Orthonormal: channels of ``pixels @ transform`` have independent noise; None: they have it
        as they are.
    spectrum : ndarray (channels, 8, 8) or None
        Energies of 8 x 8 cosines of each mixed channel, 1 on average over all; None: the noise is white.
    margin : ndarray (channels,) or None
        How many times its level the denoiser is told, for each mixed channel: what is known less
        well is removed with a margin.  None: just its level.
    finding : Finding or None
        How it was found; None if it was given.
    pixels : PixelRange or None
        Which pixels it was found in; None if that is not known.
    """

    level: Level
    transform: Array | None = None
    spectrum: Array | None = None
    margin: Array | None = None
    finding: Finding | None = field(default=None, compare=False, repr=False, kw_only=True)
    pixels: PixelRange | None = field(default=None, compare=False, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        for name in ("transform", "spectrum", "margin"):  # a model from a file has the same bits
            if (values := getattr(self, name)) is not None:
                object.__setattr__(self, name, np.asarray(values, np.float64))

    def __str__(self) -> str:
        return describe(self)

    def __eq__(self, other: object) -> bool:
        """Whether both are the same noise, however it was found."""
        return isinstance(other, NoiseModel) and self._numbers() == other._numbers()

    def __hash__(self) -> int:
        return hash(self._numbers())

    def _numbers(self) -> tuple[object, ...]:
        """Return all that it is made of, to be compared."""
        level: Any = self.level
        parts = [getattr(level, each.name) for each in fields(level) if each.compare]
        arrays = [*parts, self.transform, self.spectrum, self.margin]
        known = [None if each is None else np.asarray(each, np.float64) for each in arrays]
        stored = [None if each is None else (each.shape, each.tobytes()) for each in known]
        return type(self.level).__name__, *stored

    @property
    def kind(self) -> str:
        """What people call it: coarse is "correlated", what grows "poisson-gaussian", else "gaussian"."""
        if self.coarse_share > _CALLED_COARSE:
            return "correlated"
        level = self.level
        if isinstance(level, Curve | PlaceCurve):
            ends = level.level[..., [0, -1]].reshape(-1, 2).mean(axis=0)
            return "poisson-gaussian" if ends[1] > _CALLED_GROWING * ends[0] else "gaussian"
        return "poisson-gaussian" if isinstance(level, Photons) else "gaussian"

    @property
    def sigma(self) -> float:
        """Root mean square of its level over the channels."""
        return self.level.typical

    @property
    def white_sigma(self) -> float | None:
        """Its level if it is white, of one level; else None."""
        if (
            self.spectrum is not None
            or self.margin is not None
            or not isinstance(self.level, Constant)
        ):
            return None
        return self.level.typical if self.level.values.ndim == 0 else None

    @cached_property
    def coarse_share(self) -> float:
        """How far it is coarse: 0 if white, 1 if there is none at high frequencies."""
        if self.spectrum is None:
            return 0.0
        return float(
            np.average(coarse_shares(self.spectrum), weights=self.spectrum.mean(axis=(1, 2)))
        )

    def coarse_levels(self) -> tuple[Array, Float] | None:
        """Return the levels of coarse noise at low frequencies and its channels; None if there is none."""
        if self.spectrum is None or self.transform is None:
            return None
        lowest = np.sqrt(self.spectrum[:, :2, :2].mean(axis=(1, 2)) * coarse_shares(self.spectrum))
        lowest = self.level.typical * np.maximum(lowest, 1e-3 * lowest.max())
        return (lowest, self.transform.astype(np.float32)) if lowest.max() > 0.0 else None

    def level_at_end(self) -> float:
        """Return the level before clipping at an end of the range; 0 if that is not known.

        Not where it follows the brightness of pixels: then its own inverse knows; nor for coarse noise,
        which was made coarse after the cut.
        """
        own_inverse = isinstance(self.level, Photons | Curve)
        return 0.0 if own_inverse or self.coarse_share > 0.5 else self.level.typical

    @property
    def photons(self) -> Photons:
        """The law of photon noise: gain, offset and black of each channel."""
        if not isinstance(self.level, Photons):
            raise TypeError(
                f"this is not photon noise but {self}; PoissonGaussian(gain, offset) makes a model of it"
            )
        return self.level

    @property
    def sensor_law(self) -> Photons | None:
        """The law of photon noise if that is all there is, as on a sensor; else None."""
        is_all = isinstance(self.level, Photons) and self.spectrum is None
        return self.photons if is_all else None

    def fits(self, shape: tuple[int, ...]) -> bool:
        """Whether it can be the noise of (*spatial, channels)."""
        return self.n_channels in (None, shape[-1]) and self.level.fits(shape)

    @property
    def n_channels(self) -> int | None:
        """How many channels it is about; None if any number."""
        for values in (self.transform, self.spectrum, self.margin):
            if values is not None:
                return len(values)
        return self.level.n_channels

    def of_channels(self, own: Array) -> NoiseModel:
        """Return the noise of some channels alone, given by their numbers.

        Of mixed channels the covariance at each frequency is cut, and mixed anew.
        """
        level = self.level.of_channels(own)
        if self.transform is None:
            spectrum, margin = (None if v is None else v[own] for v in (self.spectrum, self.margin))
            return replace(self, level=level, spectrum=spectrum, margin=margin)
        flat = np.ones((len(self.transform), SIDE, SIDE))
        energies = flat if self.spectrum is None else self.spectrum
        if self.margin is not None:
            energies = energies * np.square(self.margin)[:, None, None]
        rows = self.transform[own]
        covariance = np.einsum("kc,cuv,lc->kluv", rows, energies, rows)
        mixed = np.linalg.eigh(covariance.mean(axis=(2, 3)))[1]
        spectrum = np.einsum("ka,kluv,la->auv", mixed, covariance, mixed)
        return replace(self, level=level, transform=mixed, spectrum=spectrum, margin=None)

    def in_units(self, offset: float, scale: float) -> Self:
        """Return the model for pixels (image - offset) / scale."""
        squared = self.spectrum is not None or not isinstance(self.level, Constant)
        if squared and not _SMALLEST_UNIT < scale < 1 / _SMALLEST_UNIT:
            unit = max(scale, 1 / scale)
            raise ValueError(
                f"pixels that differ by a factor of {unit:.0e} from their spread have a variance that no "
                "number can hold; divide the image by that, or give sigma"
            )
        finding = self.finding
        if finding is not None:
            finding = replace(finding, suspected=finding.suspected / scale)
        level = self.level.in_units(offset, scale)
        return replace(self, level=level, finding=finding, pixels=None)

    def bind(self, noisy: Float) -> Self:
        """Return the model for one picture, (*spatial, channels), which ``restore`` is not shown."""
        level = self.level.bind(noisy)
        return self if level is self.level else replace(self, level=level)

    def whiten(self, noisy: Float) -> Float:
        """Divide by the level, then by the root of the spectrum, channel by channel."""
        return self._filter(self.level.stabilise(noisy), inverse=True)

    def restore(self, denoised: Float) -> Float:
        """Undo :meth:`whiten`, without bias."""
        return self.level.undo(self._filter(denoised, inverse=False))

    def std_back(self, denoised: Float, std: Float) -> Float:
        """Return the standard deviation of :meth:`restore` from that of white pixels.

        Exact where the noise is white; else the errors of all pixels are tied together, and each
        channel's own share of the noise is taken.
        """
        factors = self._factors(std.shape[-1])
        if self.transform is not None:
            squares = mix(std**2, self.transform.astype(np.float32) ** 2) * factors**2
            std = np.sqrt(mix(squares, self.transform.T.astype(np.float32) ** 2))
        elif self.spectrum is not None or self.margin is not None:
            std = std * factors
        middle = self._filter(denoised, inverse=False)
        return np.abs(self.level.undo(middle + std) - self.level.undo(middle - std)) / 2

    def _factors(self, n_channels: int) -> Float:
        """Return the level of each mixed channel in that of all, with its margin."""
        factors = np.ones(n_channels, np.float32)
        if self.spectrum is not None:
            factors *= np.sqrt(self.spectrum.mean(axis=(1, 2)))
        return factors if self.margin is None else factors * self.margin

    def _filter(self, pixels: Float, inverse: bool) -> Float:
        """Divide the mixed channels by the roots of their spectra, or multiply."""
        if self.spectrum is None and self.margin is None:
            return pixels
        energies = np.ones((pixels.shape[-1], 1, 1)) if self.spectrum is None else self.spectrum
        if self.margin is not None:
            energies = energies * np.square(self.margin)[:, None, None]
        transform = None if self.transform is None else self.transform.astype(np.float32)
        mixed = pixels if transform is None else mix(pixels, transform)
        filtered = filter_by_root(mixed, energies, inverse)
        return filtered if transform is None else mix(filtered, transform.T)

    def level_at(self, pixels: Array) -> list[Array]:
        """Return the standard deviation at pixel values, of each (mixed) channel."""
        levels = self.level.at(pixels)
        if self.spectrum is None:
            return levels
        rms = np.sqrt(self.spectrum.mean(axis=(1, 2)))
        levels = levels * len(rms) if len(levels) == 1 else levels
        return [level * share for level, share in zip(levels, rms, strict=True)]

    def rings(self) -> tuple[Array, list[Array]]:
        """Return frequencies in cycles a pixel, and the relative level of each channel there."""
        frequencies = CENTRES / (2 * SIDE)
        if self.spectrum is None:
            return frequencies, [np.ones(N_RINGS)]
        masks = [np.equal(RING, k) for k in range(N_RINGS)]
        return frequencies, [np.sqrt([own[mask].mean() for mask in masks]) for own in self.spectrum]

    def is_negligible(self, brightest: Array) -> bool:
        """Whether float32 pixels, in units of their spread, are rounded by more than this noise."""
        largest = max(
            float(np.max(level)) for level in self.level.at(np.asarray(brightest, np.float64))
        )
        return not largest >= FINEST

    def words(self, pixels: Array) -> Words:
        """Say in plain words what it is; ``pixels`` are those of the image, or a sample of them."""
        # One more than a multiple of six: of two, three or six channels each has its turn.
        every = pixels.size // _ASKED // 6 * 6 + 1
        some = pixels.reshape(-1)[::every]
        finite = some[np.isfinite(some)]
        asked = np.quantile(finite, _DARK_MIDDLE_BRIGHT) if finite.size else np.zeros(3)
        levels = np.array(self.level.at(asked))  # (channels, 3)
        level = float(np.sqrt(np.mean(levels[:, 1] ** 2)))
        fields: dict[str, Any] = {"kind": self.kind}
        law = ""
        if isinstance(self.level, Photons):
            gain, offset = self.level.gain, self.level.offset
            fields |= {"gain": list(map(float, gain)), "offset": list(map(float, offset))}
            slope, start = float(np.mean(gain)), float(np.mean(offset))
            law = f"variance {slope:.3g} x signal {'-' if start < 0 else '+'} {abs(start):.3g}"
        elif isinstance(self.level, Constant):
            level = self.level.typical
            if self.level.values.ndim == 1:
                fields["levels"] = self.level.values.tolist()
                law = "different from channel to channel"
        else:
            dark, _, bright = levels.mean(axis=0)
            fields["levels"] = [float(dark), float(bright)]
            if f"{dark:.3g}" != f"{bright:.3g}":
                law = f"{dark:.3g} in dark and {bright:.3g} in bright parts"
        if self.spectrum is not None:
            fields["coarse_share"] = self.coarse_share
        return Words(_WORDS[self.kind], level, law, fields)

    def plot(self, signal: tuple[float, float] = (0.0, 255.0)) -> Any:
        """Return a matplotlib figure: the level between two pixel values, and the spectrum.

        Needs the extra ``plots``.

        Examples
        --------
        >>> import numpy as np, symsmooth
        >>> noisy = np.random.default_rng(0).normal(100.0, 20.0, (64, 64))
        >>> figure = symsmooth.estimate_noise(noisy).plot()
        """
        require_matplotlib()
        from matplotlib.figure import Figure

        figure = Figure(figsize=(8, 3.2), layout="constrained")
        left, right = figure.subplots(1, 2)
        x = np.linspace(*signal, _PLOTTED)
        for number, level in enumerate(self.level_at(x)):
            left.plot(x, level, color=_COLOURS[number % 3])
        left.set(xlabel="pixel value", ylabel="standard deviation of the noise", ylim=(0, None))
        frequencies, spectra = self.rings()
        for number, spectrum in enumerate(spectra):
            right.plot(frequencies, spectrum, "o-", color=_COLOURS[number % 3])
        told = "relative standard deviation there"
        right.set(xlabel="frequency, cycles a pixel", ylabel=told, ylim=(0, None))
        figure.suptitle(str(self), fontsize="medium")
        return figure


def White(sigma: float, *, finding: Finding | None = None) -> NoiseModel:  # noqa: N802
    """Return white Gaussian noise of one level, in the units of the image."""
    return NoiseModel(Constant(np.array(float(sigma))), finding=finding)


def Heteroscedastic(levels: ArrayLike, *, finding: Finding | None = None) -> NoiseModel:  # noqa: N802
    """Return white Gaussian noise of a level for each channel, (channels,), or place, (*spatial, 1)."""
    given = np.asarray(levels)
    # A map is as large as its picture.
    exact = given if given.ndim > 1 else given.astype(np.float64)
    return NoiseModel(Constant(exact), finding=finding)


def PoissonGaussian(  # noqa: N802
    gain: tuple[float, ...],
    offset: tuple[float, ...],
    black: tuple[float, ...] = (),
    *,
    finding: Finding | None = None,
) -> NoiseModel:
    """Return noise of variance gain * x + offset, x the clean pixel, for each channel."""
    return NoiseModel(Photons(tuple(gain), tuple(offset), tuple(black)), finding=finding)


def Correlated(  # noqa: N802
    variances: ArrayLike, transform: ArrayLike | None = None, *, finding: Finding | None = None
) -> NoiseModel:
    """Return noise with a spectrum: variances (channels, 8, 8) of its DCT coefficients.

    They are those of the channels ``pixels @ transform``, an orthonormal matrix (channels, channels).
    """
    energies = np.asarray(variances, np.float64)
    if energies.ndim != 3 or energies.shape[1:] != (SIDE, SIDE) or not (energies >= 0).all():
        raise ValueError(
            f"variances must be (channels, {SIDE}, {SIDE}) and not negative, got {energies.shape}"
        )
    mean = float(energies.mean())
    matrix = None if transform is None else np.asarray(transform, np.float64)
    if mean == 0.0:
        return White(0.0, finding=finding)
    energies = np.maximum(energies, _LEAST_ENERGY * mean)
    return NoiseModel(Constant(np.array(np.sqrt(mean))), matrix, energies / mean, finding=finding)


def noise_of_sample(sample: ArrayLike, channel_axis: int | None = None) -> NoiseModel:
    """Return the model of a piece of pure noise, (y, x) or with channels.

    Examples
    --------
    >>> import numpy as np
    >>> noise = np.random.default_rng(0).normal(0.0, 3.0, (64, 64))
    >>> bool(abs(noise_of_sample(noise).sigma - 3.0) < 0.2)
    True
    """
    noise = np.asarray(sample, np.float64)
    if channel_axis is not None and not -noise.ndim <= channel_axis < noise.ndim:
        raise ValueError(
            f"a sample of noise must have the channels of the image, got shape {noise.shape}"
        )
    noise = noise[..., np.newaxis] if channel_axis is None else np.moveaxis(noise, channel_axis, -1)
    if noise.ndim != 3 or min(noise.shape[:2]) < 2 * SIDE:
        raise ValueError(
            f"a sample of noise must be 2-D, plus channels, and at least {2 * SIDE} pixels wide, "
            f"got shape {np.shape(sample)}"
        )
    noise = noise - noise.mean(axis=(0, 1))
    transform = decorrelate(noise.astype(np.float32), 0.0)
    return Correlated(sample_energies(noise @ transform), transform)


def noise_of_ground(ground: Array) -> NoiseModel:
    """Return the model of the noise on flat ground (y, x, channels): what is left of it without a plane.

    Examples
    --------
    >>> import numpy as np
    >>> slope = np.add.outer(np.arange(40.0), np.arange(50.0))[..., np.newaxis]
    >>> noise = np.random.default_rng(0).normal(0.0, 3.0, slope.shape)
    >>> bool(abs(noise_of_ground(slope + noise).sigma - 3.0) < 0.3)
    True
    """
    return noise_of_sample(without_plane(ground), -1)


def describe(model: NoiseModel) -> str:
    """Say in one line what a model is, with its numbers."""
    level = model.level
    if isinstance(level, Photons):
        gains, offsets = (
            ", ".join(f"{v:.4g}" for v in values) for values in (level.gain, level.offset)
        )
        return f"Poisson-Gaussian noise, variance {gains} * signal + {offsets}"
    if isinstance(level, Constant) and level.values.ndim > 1:
        amount = f"sigma from {level.values.min():.4g} to {level.values.max():.4g}"
    elif isinstance(level, Constant):
        amount = f"sigma {', '.join(f'{v:.4g}' for v in level.values.ravel())}"
    elif isinstance(level, Curve | PlaceCurve):
        known = level.level.reshape(-1, level.level.shape[-1]).mean(axis=0)
        amount = f"sigma from {known[0]:.4g} (dark) to {known[-1]:.4g} (bright)"
    else:
        amount = f"sigma {level.typical:.4g}"
    if model.spectrum is None:
        return f"white Gaussian noise, {amount}"
    shares = np.sqrt(model.spectrum.mean(axis=(1, 2)))
    channels = f", channels {', '.join(f'{v:.2g}' for v in shares)}" if len(shares) > 1 else ""
    return f"noise of {amount}, {model.coarse_share:.0%} coarse{channels}"
