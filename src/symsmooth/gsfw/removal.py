"""What becomes of an opened picture whose noise is known: made white, removed, undone without bias."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np

from ..core.channels import luminance
from ..core.image import Float, Picture
from ..core.parallel import Pool
from ..noise import Noise, White
from ..noise.clipping import correct_clipping
from ..noise.tone import correct_tone
from .blotches import remove_blotches
from .presets import Quality, for_noise
from .stages import run_gsfw

Tone = Literal["auto", "srgb", "linear"]

_BEFORE_BLOTCHES = 0.9  # of the time, for the progress callback


@dataclass(frozen=True)
class How:
    """How noise is removed: see the parameters of :func:`symsmooth.denoise`."""

    quality: Quality
    strength: float
    chroma_strength: float
    grain: float
    tone: Tone


@dataclass(frozen=True)
class Removed:
    """A denoised picture, in its own units, and what was found on the way."""

    image: Float
    tone: float
    n_bounded: int
    find_std: Callable[[], Float]


def remove_noise(
    picture: Picture, noise: Noise, how: How, rng: np.random.Generator, pool: Pool
) -> Removed:
    """Remove noise, given in the image's units, from a picture."""
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
    find_std = partial(_std_in_units, task.picture, model, found.white, found.white_variance)
    n_bounded = max(found.n_bounded, other.n_bounded)
    return Removed(denoised, found.tone, n_bounded, find_std)


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
    """What one strength gave: the image, the share of the tone correction, the result in white noise."""

    image: Float
    tone: float
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
            return _Estimate(picture.noisy, 0.0, picture.noisy, np.zeros_like(picture.noisy), 0)
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
        denoised, used = _without_tone_bias(picture, denoised, self.tone)
        level_at_end = own.level_at_end()
        if used == 0.0 and level_at_end > 0.0 and picture.whole is None:
            denoised = correct_clipping(picture.noisy, denoised, level_at_end)
        return _Estimate(denoised, used, white, found.variance, found.n_bounded)

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


def _std_in_units(picture: Picture, model: Noise, white: Float, variance: Float) -> Float:
    """Return the standard deviation of the estimate as the image is given."""
    std = np.sqrt(variance)
    if model.white_sigma is None:
        std = model.bind(picture.noisy).std_back(white, std)
    return picture.in_axes(std * np.float32(picture.scale))


def _without_tone_bias(picture: Picture, denoised: Float, tone: Tone) -> tuple[Float, float]:
    """Remove tone bias from a flat picture of gamma-encoded pixels, and say how much of that was used.

    Not in a piece of a larger image: whether noise is skewed must be asked of the whole.
    """
    white = _white_of(picture, tone)
    if white is None or picture.whole is not None or len(picture.spatial) != 2:
        return denoised, 0.0
    scale, offset = np.float32(picture.scale / white), np.float32(picture.offset / white)
    noisy, shown = picture.noisy * scale + offset, denoised * scale + offset
    corrected, used = correct_tone(noisy, shown)
    return (denoised + (corrected - shown) / scale, used) if used > 0.0 else (denoised, 0.0)


def _white_of(picture: Picture, tone: Tone) -> float | None:
    """Return the pixel value of white if pixels are gamma-encoded, else None."""
    if tone == "linear":
        return None
    dtype = picture.original.dtype
    low, high = picture.original.min(), picture.original.max()
    if dtype == np.uint8:
        eight_bit, white = True, 255.0
    elif dtype.kind == "f":  # 8 bits that became floats
        step = picture.step * picture.scale
        unit = max(float(round(step)), 1.0) if step >= 0.5 else 1 / 255
        eight_bit = bool(abs(step / unit - 1) < 0.01 and low >= 0 and high <= 255.5 * unit)
        white = 255 * unit if eight_bit else 1.0
    else:
        eight_bit, white = False, float(np.iinfo(dtype).max)
    if tone == "srgb":
        return white
    return white if eight_bit and picture.noisy.shape[-1] == 3 else None


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
