"""What becomes of an opened picture whose noise is known: made white, removed, undone without bias."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ..core.channels import luminance
from ..core.image import Float, Picture
from ..core.options import check_one_of, make_rng
from ..core.parallel import Pool
from ..noise import Noise, White
from ..noise.level import check_level
from .bias import Bias, Tone, may_be_biased, remove_bias
from .blotches import remove_blotches
from .presets import Quality, for_noise
from .stages import run_gsfw

_BEFORE_BLOTCHES = 0.9  # of the time, for the progress callback


@dataclass(frozen=True)
class How:
    """How noise is removed: see the parameters of :func:`symsmooth.denoise`."""

    quality: Quality
    strength: float
    chroma_strength: float
    grain: float
    tone: Tone


_TO_DECIDE = How("fast", 1.0, 1.0, 0.0, "auto")  # enough to see how noise is skewed


@dataclass(frozen=True)
class Removed:
    """A denoised picture, in its own units, and what was found on the way."""

    image: Float
    bias: Bias
    n_bounded: int
    find_std: Callable[[], Float]


def remove_noise(
    picture: Picture, noise: Noise, how: How, rng: np.random.Generator, pool: Pool
) -> Removed:
    """Remove noise, given in the image's units, from a picture."""
    if noise.white_sigma is not None:
        noise = White(check_level(picture, noise.white_sigma))
    model = _if_any(noise.in_units(picture.offset, picture.scale), picture)
    task = _Task(_without_constant(picture), model, how.quality, how.tone, rng)
    luma, chroma = how.strength, how.chroma_strength
    if picture.noisy.shape[-1] == 1:
        chroma = luma  # grey pictures have no colour
    with pool.part(1.0 if luma == chroma else 0.5):
        found = task.run(luma, pool)
    other = found if luma == chroma else task.run(chroma, pool)
    denoised = found.image
    if luma != chroma:
        denoised = other.image + luminance(found.image - other.image)
    if picture.constant is not None:  # there is no noise there
        denoised = np.where(picture.constant[..., np.newaxis], picture.noisy, denoised)
    if how.grain > 0.0:
        denoised = denoised + np.float32(how.grain) * _removed_luminance(picture, denoised)
    find_std = _std_later(task.picture, model, found)
    n_bounded = max(found.n_bounded, other.n_bounded)
    return Removed(denoised, found.bias, n_bounded, find_std)


def decide_bias(sample: Picture, noise: Noise, options: Mapping[str, Any]) -> Bias:
    """Return what pieces of a picture must know of its bias, from a sample and the options of denoise."""
    tone = options.get("tone", "auto")
    check_one_of("tone", tone, ("auto", "srgb", "linear"))
    if not may_be_biased(sample, tone):
        return Bias()
    sample = replace(sample, channels=sample.groups)
    with Pool(options.get("workers", 1)) as pool:
        found = remove_noise(sample, noise, replace(_TO_DECIDE, tone=tone), make_rng(0), pool)
    return found.bias


def _without_constant(picture: Picture) -> Picture:
    """Return a picture whose constant regions are missing: patches at their edge see what has noise alone.

    Inside 36 masks that is worth 0.07 dB on average, 0.28 at most.  What is blown out stays: that it is
    bright says something about its neighbours (0.12 dB on phones).
    """
    constant = picture.constant
    if constant is None:
        return picture
    n_channels = picture.noisy.shape[-1]
    brightest = picture.noisy.reshape(-1, n_channels).max(axis=0)
    empty = constant & (picture.noisy < brightest).all(axis=-1)
    missing = empty if picture.mask is None else empty | picture.mask
    return picture if missing.all() or not empty.any() else picture.with_missing(empty)


@dataclass(frozen=True)
class _Estimate:
    """What one strength gave: the image, the bias that was removed, the result in white noise."""

    image: Float
    bias: Bias
    white: Float
    white_variance: Float
    n_bounded: int


@dataclass(frozen=True)
class _Task:
    """A picture and its noise, to be removed at some strength."""

    picture: Picture
    model: Noise
    quality: Quality
    tone: Tone
    rng: np.random.Generator

    def run(self, strength: float, pool: Pool) -> _Estimate:
        """Remove the noise."""
        picture, sigma = self.picture, self.model.white_sigma
        if strength == 0.0:
            return _Estimate(picture.noisy, Bias(), picture.noisy, np.zeros_like(picture.noisy), 0)
        preset = for_noise(self.quality, self.model.coarse_share)
        if sigma is not None:
            own = self.model
            found = run_gsfw(picture, strength * sigma, preset, self.rng, pool)
            denoised = white = found.image
        else:
            own = self.model.bind(picture.noisy)
            with pool.part(_BEFORE_BLOTCHES):
                found = run_gsfw(_whiten(picture, own), strength, preset, self.rng, pool)
            white = found.image
            denoised = own.restore(white)
            if denoised.shape[-1] == 3 and len(picture.groups) == 1:
                denoised = self._without_blotches(denoised, strength, pool)
        denoised, bias = remove_bias(picture, denoised, self.tone, own.level_at_end())
        return _Estimate(denoised, bias, white, found.variance, found.n_bounded)

    def _without_blotches(self, denoised: Float, strength: float, pool: Pool) -> Float:
        """Return denoised pixels whose colours have no blotches; frame by frame in a series."""
        preset = for_noise(self.quality, self.model.coarse_share)
        if self.picture.time_axis is None:
            return remove_blotches(
                self.picture, denoised, self.model, strength, preset, self.rng, pool
            )
        frames = [
            remove_blotches(
                self.picture.frame(t), frame, self.model, strength, preset, self.rng, pool
            )
            for t, frame in enumerate(denoised)
        ]
        return np.stack(frames)


def _removed_luminance(picture: Picture, denoised: Float) -> Float:
    """Return the luminance noise that was removed, (*spatial, 1); missing pixels had none."""
    removed = luminance(picture.noisy - denoised)
    return removed if picture.mask is None else removed * picture.observed[..., np.newaxis]


def _std_later(picture: Picture, model: Noise, found: _Estimate) -> Callable[[], Float]:
    """Return what finds the deviations when they are asked for; it holds no array that it will not need."""
    if model.white_sigma is None:
        kept = replace(picture, original=picture.original[:0].copy(), mask=None, whole=None)
        return partial(_std_in_units, kept, model, found.white, found.white_variance)
    kept = replace(
        picture, original=picture.original[:0].copy(), noisy=picture.noisy[:0].copy(), mask=None, whole=None
    )  # fmt: skip
    return partial(_std_in_units, kept, model, kept.noisy, found.white_variance)


def _std_in_units(picture: Picture, model: Noise, white: Float, variance: Float) -> Float:
    """Return the standard deviation of the estimate as the image is given."""
    std = np.sqrt(variance)
    if model.white_sigma is None:
        std = model.bind(picture.noisy).std_back(white, std)
    return picture.deviations(std)


def _if_any(model: Noise, picture: Picture) -> Noise:
    """Return a model, or no noise where float32 pixels are rounded by more."""
    n_channels = picture.noisy.shape[-1]
    brightest = picture.noisy.reshape(-1, n_channels).max(axis=0)
    return White(0.0) if model.is_negligible(brightest) else model


def _whiten(picture: Picture, model: Noise) -> Picture:
    """Return the picture that a model is bound to with white noise of variance 1, its whole likewise."""
    whole = picture.whole
    if whole is not None:
        whole = replace(whole, channels=whole.groups)
        whole = _whiten(whole, model.bind(whole.noisy))
    return replace(picture, noisy=model.whiten(picture.noisy), whole=whole)
