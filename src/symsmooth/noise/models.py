"""Models of noise, and the choice between them.

A model says what must be done to an image so that its noise is white with variance 1 (``whiten``), and how
that is undone (``restore``).  GSF-W stands between the two.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from ..core.image import Array, ChannelAxis, Float, Picture, open_image
from .coarse import CoarseNoise, fit_coarse
from .finding import Finding, Found
from .level import channel_sigmas, sample_patches
from .regions import SIDE, Regions, measure, transform_of
from .rician import fit_rician
from .signal import SURE_EVIDENCE, Growth, PoissonGaussian, fit_signal_dependence
from .spectrum import Correlated, away_from_zero, spectrum_of_ground

NoiseName = Literal["auto", "gaussian", "poisson-gaussian", "correlated", "rician"]
NAMES = ("auto", "gaussian", "poisson-gaussian", "correlated", "rician")

_SMALLEST_UNIT = 1e-140  # of a picture: squares of much smaller ones are 0
_SMALLEST = 32  # pixels a side: in a smaller picture noise is taken for white
_SUSPICIOUS = 2.0  # times the white level: coarse noise that may be there is worth a word
# Noise is seen at the finest frequencies of the calmest regions.  Texture is there, too: it has about this
# share of the energy that it has one ring below, .1 to .5, which is taken off.
#
# Photon noise is seen in dark and in bright parts (quantiles of brightness), in the calmest share of both:
# at least that share of the model's variance, and less with evidence above some.  Photon noise leaves .6
# to 1.0, .2 where there is much evidence; texture in bright parts that looks like it mostly less than .5.
_PARTS, _CALM, _TEXTURE = (0.5, 0.67), 0.2, 0.45
_SEEN, _SEEN_SLOPE, _MUCH_EVIDENCE = 0.6, 0.02, 10.0
# White noise is nowhere less than it is; this is what noise of variance 1 has in the calmest regions.
# Texture .45: little noise is taken for none (-.05 dB at sigma 5); 0: texture all over is taken for noise,
# and clean pictures fall to 34 dB.
_CALMEST, _CALMEST_OF_WHITE, _LEAST_TEXTURE = 0.05, 0.8, 0.3
_HARDLY_LESS = 0.9  # of the level: not worth a word
_FEWEST = 10  # regions that say something
_DEAD = 0.05  # times the square of a rounding step: less is no noise, but a border or a drawing
_CUT_OFF = 0.01  # share of pixels at black or white: where noise is cut off there is less of it
_UNEVEN = 1.5  # largest over smallest noise level of the channels


@runtime_checkable
class NoiseModel(Protocol):
    """What all models of noise can do; ``str`` says in words what they are."""

    @property
    def kind(self) -> str:
        """Its name."""

    def fits(self, shape: tuple[int, ...]) -> bool:
        """Whether it can be the noise of (*spatial, channels)."""

    def in_units(self, offset: float, scale: float) -> NoiseModel:
        """Return the model for pixels (image - offset) / scale."""

    def bind(self, noisy: Float) -> NoiseModel:
        """Return the model for one picture, (*spatial, channels), which ``restore`` is not shown."""

    def whiten(self, noisy: Float) -> Float:
        """Make the noise of (*spatial, channels) white, of variance 1."""

    def restore(self, denoised: Float) -> Float:
        """Undo ``whiten``."""


@dataclass(frozen=True)
class White(Found):
    """White Gaussian noise of one level."""

    sigma: float

    kind = "gaussian"

    def __str__(self) -> str:
        return f"white Gaussian noise, sigma {self.sigma:.4g}"

    def fits(self, shape: tuple[int, ...]) -> bool:
        """Whether it can be the noise of (*spatial, channels): always."""
        return True

    def in_units(self, offset: float, scale: float) -> White:
        """Return the model for pixels (image - offset) / scale."""
        return replace(self, sigma=self.sigma / scale, finding=self.finding_in(scale))

    def whiten(self, noisy: Float) -> Float:
        """Divide by the level."""
        return noisy / np.float32(self.sigma)

    def restore(self, denoised: Float) -> Float:
        """Multiply by it."""
        return denoised * np.float32(self.sigma)


@dataclass(frozen=True)
class Uneven(Found):
    """White Gaussian noise whose level depends on the channel, (channels,), or the place, (*spatial, 1)."""

    levels: Array

    kind = "uneven"

    def __str__(self) -> str:
        if self.levels.ndim > 1:
            return f"Gaussian noise, sigma from {self.levels.min():.4g} to {self.levels.max():.4g}"
        return f"white Gaussian noise, sigma {', '.join(f'{v:.4g}' for v in self.levels)}"

    def fits(self, shape: tuple[int, ...]) -> bool:
        """Whether it can be the noise of (*spatial, channels)."""
        return self.levels.shape in ((shape[-1],), (*shape[:-1], 1))

    def in_units(self, offset: float, scale: float) -> Uneven:
        """Return the model for pixels (image - offset) / scale."""
        return replace(self, levels=self.levels / scale, finding=self.finding_in(scale))

    def whiten(self, noisy: Float) -> Float:
        """Divide by the level."""
        return (noisy / self.levels).astype(np.float32)

    def restore(self, denoised: Float) -> Float:
        """Multiply by it."""
        return (denoised * self.levels).astype(np.float32)


def estimate_noise(
    image: ArrayLike,
    *,
    noise: NoiseName = "auto",
    channel_axis: ChannelAxis = "auto",
    mask: ArrayLike | None = None,
    region: tuple[int, int, int, int] | None = None,
) -> NoiseModel:
    """Find out what noise an image has, in its own units.

    Parameters
    ----------
    image : array_like
        2-D or 3-D, plus channels if ``channel_axis`` is given.
    noise : {"auto", "gaussian", "poisson-gaussian", "correlated", "rician"}
        "auto" chooses: correlated if there is far more noise at middle than at high frequencies, else
        Poisson-Gaussian if it grows with the signal, else white.  "rician" is for magnitudes (MR).
    channel_axis : int, None or "auto"
        Axis of the channels; None if there is none; "auto": as a Pillow image or an xarray.DataArray
        says, else none.
    mask : array_like of bool or None
        True where a pixel is missing.
    region : (x, y, width, height) or None
        A rectangle of flat ground, at least 16 pixels a side: the noise is measured there, and nothing
        is guessed.

    Returns
    -------
    NoiseModel
        To be given to :func:`denoise` as ``noise``; ``str(model)`` says what it is, ``model.finding``
        why, and how sure that is.

    Examples
    --------
    >>> import numpy as np, symsmooth
    >>> noisy = np.random.default_rng(0).normal(100.0, 20.0, (64, 64))
    >>> symsmooth.estimate_noise(noisy).kind
    'gaussian'
    """
    picture = open_image(image, channel_axis, mask)
    check_name(noise)
    if region is not None:
        return in_image_units(picture, fit_region(picture, noise, region))
    return in_image_units(picture, fit_noise(picture, noise, measure_level(picture)))


def in_image_units(picture: Picture, model: NoiseModel) -> NoiseModel:
    """Return a model that was found in the picture's units in those of the image."""
    squared = isinstance(model, Correlated | PoissonGaussian)
    if squared and not _SMALLEST_UNIT < picture.scale < 1 / _SMALLEST_UNIT:
        raise ValueError(
            f"pixels of about {picture.scale:.0e} have a variance that no number can hold; divide the "
            "image by that, or give sigma"
        )
    return model.in_units(-picture.offset / picture.scale, 1 / picture.scale)


class Level(NamedTuple):
    """The level of white noise, in the picture's units, and what it was measured on."""

    samples: list[Array]  # patches of each channel
    sigmas: Array  # of each channel

    @property
    def sigma(self) -> float:
        """Root mean square over the channels."""
        return float(np.sqrt(np.mean(self.sigmas**2)))


def measure_level(picture: Picture) -> Level:
    """Measure the level of white noise."""
    samples = [sample_patches(picture, c) for c in range(picture.noisy.shape[-1])]
    return Level(samples, channel_sigmas(picture, samples))


def fit_noise(picture: Picture, noise: NoiseName, level: Level) -> NoiseModel:
    """Estimate a model of the given name, or the one that fits, in the picture's units."""
    samples, sigmas = level
    white = White(level.sigma)
    if noise == "auto":
        return _choose(picture, samples, sigmas, white)
    if noise == "correlated":
        return cast(Correlated, _fit_correlated(picture, _regions(picture), sigmas, True)[0])
    if noise == "rician":
        return fit_rician(picture, samples) or white
    found = fit_signal_dependence(picture, samples) if noise == "poisson-gaussian" else None
    return white if found is None else found.model


def _choose(picture: Picture, samples: list[Array], sigmas: Array, white: White) -> NoiseModel:
    """Return the model that fits, with what speaks for it."""
    if min(picture.noisy.shape[-3:-1]) < _SMALLEST:
        too_small = f"it is taken for white: a picture below {_SMALLEST} pixels shows no more"
        finding, suspected = Finding(0.5, (too_small,)), 0.0
    else:
        regions = _regions(picture)
        model, suspected = _fit_correlated(picture, regions, sigmas, forced=False)
        if model is not None:
            return model
        found = fit_signal_dependence(picture, samples, only_sure=True)
        if found is not None and _is_seen(found, regions):
            return replace(found.model, finding=_of_growth(found, suspected))
        seen = _share_seen(picture, sigmas, regions)
        finding = _of_white(suspected, float(sigmas.max()), seen)
        sigmas, white = seen * sigmas, White(seen * white.sigma)
    if sigmas.max() > _UNEVEN * sigmas.min() > 0.0:
        return Uneven(sigmas, finding=finding)
    return replace(white, finding=finding)


def _regions(picture: Picture) -> list[Regions]:
    """Measure the regions of one or three channels together, of others one by one."""
    transform = transform_of(picture)
    n_channels = len(transform)
    if n_channels in (1, 3):
        return [measure(picture, transform)]
    return [measure(picture, transform[:, c : c + 1]) for c in range(n_channels)]


def _of_white(suspected: float, sigma: float, seen: float) -> Finding:
    """Say why noise is taken for white, and why for no more than a share of what was measured."""
    if suspected > _SUSPICIOUS * sigma:
        doubt = "there may be coarser noise, but it cannot be told from texture"
        return Finding(0.5, (doubt,), suspected)
    plain = "nothing says that it is coarse or grows with brightness"
    if seen > _HARDLY_LESS:
        return Finding(1.0, (plain,))
    return Finding(
        seen, (f"texture is everywhere, so {1 - seen:.0%} of what may be it is kept", plain)
    )


def _of_growth(found: Growth, suspected: float) -> Finding:
    """Say why noise is taken for that of photons."""
    grows = f"its variance grows {found.times:.1f} times from the darkest to the brightest parts"
    sure = float(np.clip(found.evidence / (2 * SURE_EVIDENCE), 0.0, 1.0))
    return Finding(sure, (grows,), suspected)


def _of_coarse(found: list[CoarseNoise]) -> Finding:
    """Say why noise is taken for coarse."""
    best = max(found, key=lambda each: each.trust)
    reasons = [
        f"{best.share:.0%} of the picture is nothing but noise, alike in all directions",
        f"there it is {2**best.coarseness:.1f} times stronger at middle than at high frequencies",
    ]
    if best.trust == 1.0:
        return Finding(1.0, tuple(reasons))
    reasons.append(f"some of it may be texture, so {1 - best.trust:.0%} of it is kept")
    return Finding(best.trust, tuple(reasons), best.level)


def fit_region(picture: Picture, noise: NoiseName, region: tuple[int, int, int, int]) -> Correlated:
    """Measure the noise on a rectangle of flat ground, in the picture's units."""
    if noise not in ("auto", "correlated"):
        raise ValueError(f"on flat ground noise is measured, not {noise}; leave out one of the two")
    x, y, width, height = region
    rows, columns = picture.spatial[-2:]
    inside = 0 <= x <= x + width <= columns and 0 <= y <= y + height <= rows
    if len(picture.spatial) != 2 or not inside or min(width, height) < 2 * SIDE:
        raise ValueError(
            f"the region must be x, y, width, height of at least {2 * SIDE} pixels a side inside a "
            f"picture of {columns} x {rows} pixels, got {', '.join(map(str, region))}"
        )
    box = slice(y, y + height), slice(x, x + width)
    if picture.mask is not None and picture.mask[box].any():
        raise ValueError("the region must have no missing pixel")
    found = spectrum_of_ground(picture.noisy[box])
    return replace(found, finding=Finding(1.0, ("it was measured on the ground you gave",)))


def _is_seen(found: Growth, regions: list[Regions]) -> bool:
    """Whether the calmest regions of a grey picture have the noise of the model; True in colour."""
    model = found.model
    if len(model.gain) > 1:
        return True
    brightness = regions[0].brightness.astype(np.float64)
    expected = model.gain[0] * brightness + model.offset[0]
    known = expected > 0.0
    if known.sum() < _FEWEST / _CALM:
        return True
    rings = regions[0].energy[known, 0] / expected[known, np.newaxis]
    dark, bright = np.quantile(brightness[known], _PARTS)
    parts = rings[brightness[known] <= dark], rings[brightness[known] >= bright]
    needed = _SEEN - _SEEN_SLOPE * max(found.evidence - _MUCH_EVIDENCE, 0.0)
    return all(_finest(part, _CALM, _TEXTURE) > needed for part in parts)


def _finest(rings: Array, share: float, texture: float) -> float:
    """Return the energy at the finest frequencies in the calmest of some regions (m, rings).

    Without that of texture, which has a share of what it has one ring below.
    """
    energy = rings[:, -2:].sum(axis=1)
    calm = rings[energy <= np.quantile(energy, share)].mean(axis=0, dtype=np.float64)
    return float((calm[-1] - texture * calm[-2]) / (1.0 - texture))


def _share_seen(picture: Picture, sigmas: Array, regions: list[Regions]) -> float:
    """Return the share of a white level that is found at the finest frequencies of the calmest regions.

    White noise is everywhere and at all frequencies, so nothing is less noisy than it; texture, which is
    mistaken for noise where it fills a picture, is not.
    """
    transform = transform_of(picture).astype(np.float64)
    floors = np.split(sigmas**2 @ transform**2, len(regions))
    seen = 0.0
    for each, floor in zip(regions, floors, strict=True):
        finest = each.energy[..., -1]
        live = finest.sum(axis=1) > _DEAD * max(picture.step**2, 1e-14)
        live &= each.clipped < _CUT_OFF
        if live.sum() < _FEWEST:
            return 1.0
        channels = np.moveaxis(each.energy[live], 1, 0)
        noise = [_finest(rings, _CALMEST, _LEAST_TEXTURE) for rings in channels]
        seen += float(np.clip(np.array(noise) / _CALMEST_OF_WHITE, 0.0, floor).sum())
    total = sum(float(floor.sum()) for floor in floors)
    return float(np.sqrt(seen / total)) if total > 0.0 else 1.0


def _fit_correlated(
    picture: Picture, regions: list[Regions], sigmas: Array, forced: bool
) -> tuple[Correlated | None, float]:
    """Return the spectrum of coarse noise, None if there is none or no trust in it, and its level then."""
    transform = transform_of(picture)
    floors = np.split(sigmas**2 @ transform.astype(np.float64) ** 2, len(regions))
    span = float(np.ptp(picture.noisy))
    found = [
        fit_coarse(each, floor, picture.step, span, forced)
        for each, floor in zip(regions, floors, strict=True)
    ]
    if forced and None in found:
        raise ValueError(
            f"correlated noise cannot be estimated from {min(picture.noisy.shape[-3:-1])} pixels, it "
            f"takes {SIDE} by {SIDE}; give a sample of the noise"
        )
    known = [each for each in found if each is not None]
    trusted = [each for each in known if forced or each.trust > 0.0]
    if not trusted:
        return None, max((each.level for each in known), default=0.0)
    variances = np.concatenate(
        [
            np.full((1, SIDE, SIDE), floor[0]) if each is None else each.variances
            for each, floor in zip(found, floors, strict=True)
        ]
    )
    finding = None if forced else _of_coarse(trusted)
    curve = None
    if len(regions) == 1 and trusted[0].curve is not None:
        curve = trusted[0].curve.in_units(0.0, float(transform[:, 0].sum()))
    return Correlated(away_from_zero(variances), transform, curve, finding=finding), 0.0


def check_name(noise: str) -> None:
    """Refuse what is no kind of noise."""
    if noise not in NAMES:
        raise ValueError(f"noise must be one of {', '.join(NAMES)}, got {noise!r}")
