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
from .blotches import blotch_scene, remove_blotches
from .observation import Observation, Scene
from .presets import Quality, for_noise
from .stages import Wanted, run_gsfw

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
    bias: Bias
    n_bounded: int
    find_std: Callable[[], Float]


def remove_noise(
    picture: Picture,
    noise: Noise,
    how: How,
    rng: np.random.Generator,
    pool: Pool,
    *,
    with_std: bool = True,
) -> Removed:
    """Remove noise, given in the image's units; ``with_std`` if deviations may be asked for."""
    task = replace(_task(picture, noise, how, rng), with_std=with_std)
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
    find_std = _std_later(task.picture, task.model, found)
    n_bounded = max(found.n_bounded, other.n_bounded)
    return Removed(denoised, found.bias, n_bounded, find_std)


def _task(picture: Picture, noise: Noise, how: How, rng: np.random.Generator) -> _Task:
    """Return what is to be done to a picture."""
    if noise.white_sigma is not None:
        noise = White(check_level(picture, noise.white_sigma))
    model = _if_any(noise.in_units(picture.offset, picture.scale), picture)
    return _Task(_without_constant(picture), model, how.quality, how.tone, rng)


@dataclass(frozen=True)
class Decided:
    """What holds for all pieces of a picture, asked of a sample of it."""

    bias: Bias
    scene: Scene  # of pixels whose noise is white
    blotches: Scene | None

    @property
    def tone(self) -> float:
        """How much of the correction of tone bias is used, 0 to 1."""
        return self.bias.tone


def decide(sample: Picture, noise: Noise, options: Mapping[str, Any]) -> Decided:
    """Return what pieces must know, from a sample and the options of :func:`symsmooth.denoise`."""
    tone, quality = options.get("tone", "auto"), options.get("quality", "balanced")
    check_one_of("tone", tone, ("auto", "srgb", "linear"))
    how = How(quality, 1.0, 1.0, 0.0, tone)
    with Pool(options.get("workers", 1)) as pool:
        return decide_for_pieces(sample, noise, how, pool)


def decide_for_pieces(
    sample: Picture, noise: Noise, how: How, pool: Pool, smaller: Picture | None = None
) -> Decided:
    """Return what pieces must know, from a sample; to see its bias a ``smaller`` one is denoised."""
    sample = replace(sample, channels=sample.groups)
    # "fast" is enough to see how noise is skewed.
    quality: Quality = "preview" if how.quality == "preview" else "fast"
    how = How(quality, 1.0, 1.0, 0.0, how.tone)
    task = _task(sample, noise, how, make_rng(0))
    bias, smaller = Bias(), smaller or sample
    if may_be_biased(smaller, how.tone):
        bias = remove_noise(smaller, noise, how, make_rng(0), pool, with_std=False).bias
    scene = _scene_of(task.picture, task.model)
    return Decided(bias, scene, blotch_scene(task.picture, task.model))


def _scene_of(picture: Picture, model: Noise) -> Scene:
    """Return the scene of a picture in which its noise is white."""
    noisy = picture.noisy
    if model.white_sigma is None:
        noisy = model.bind(noisy).whiten(noisy)
    return Scene.of(noisy, picture.groups)


def _without_constant(picture: Picture) -> Picture:
    """Return a picture whose constant regions are missing: patches at their edge see what has noise alone.

    Inside 36 masks that is worth 0.07 dB on average, 0.28 at most.  What is blown out stays: that it is
    bright says something about its neighbours (0.12 dB on phones).
    """
    constant = picture.constant
    if constant is None:
        return picture
    brightest = np.maximum(picture.brightest, picture.scene.brightest)
    empty = constant & (picture.noisy < brightest).all(axis=-1)
    missing = empty if picture.mask is None else empty | picture.mask
    return picture if missing.all() or not empty.any() else picture.with_missing(empty)


@dataclass(frozen=True)
class _Estimate:
    """What one strength gave: the image, the bias that was removed, the result in white noise."""

    image: Float
    bias: Bias
    white: Float
    white_variance: Float | None
    n_bounded: int


@dataclass(frozen=True)
class _Task:
    """A picture and its noise, to be removed at some strength."""

    picture: Picture
    model: Noise
    quality: Quality
    tone: Tone
    rng: np.random.Generator
    with_std: bool = False

    def run(self, strength: float, pool: Pool) -> _Estimate:
        """Remove the noise."""
        picture, sigma = self.picture, self.model.white_sigma
        if strength == 0.0:
            return _Estimate(picture.noisy, Bias(), picture.noisy, np.zeros_like(picture.noisy), 0)
        preset = for_noise(self.quality, self.model.coarse_share)
        own, scene = self.model.bind(picture.noisy), self._scene()
        wanted = Wanted(variance=self.with_std)
        if sigma is not None:
            observation = Observation.of_picture(picture, strength * sigma, scene=scene)
            found = run_gsfw(observation, preset, self.rng, pool, wanted=wanted)
            denoised = white = found.image
        else:
            white = own.whiten(picture.noisy)
            observation = Observation.of_picture(picture, strength, white, scene)
            with pool.part(_BEFORE_BLOTCHES):
                found = run_gsfw(observation, preset, self.rng, pool, wanted=wanted)
            white = found.image
            denoised = own.restore(white)
            if denoised.shape[-1] == 3 and len(picture.groups) == 1:
                denoised = self._without_blotches(denoised, strength, pool)
        known = None
        if picture.whole is not None:
            decided = self._decided()
            known = Bias() if decided is None else decided.bias
        denoised, bias = remove_bias(picture, denoised, self.tone, own.level_at_end(), known)
        return _Estimate(denoised, bias, white, found.variance, found.n_bounded)

    def _decided(self) -> Decided | None:
        """Return what is known of the picture that this is a piece of."""
        whole = self.picture.whole
        known = None if whole is None else whole.decided
        assert known is None or isinstance(known, Decided)
        return known

    def _scene(self) -> Scene | None:
        """Return the scene that this is a piece of; None if it is none."""
        known, whole = self._decided(), self.picture.whole
        if known is not None:
            return known.scene
        return None if whole is None else _scene_of(whole, self.model)

    def _without_blotches(self, denoised: Float, strength: float, pool: Pool) -> Float:
        """Return denoised pixels whose colours have no blotches; frame by frame in a series."""
        preset = for_noise(self.quality, self.model.coarse_share)
        if self.picture.time_axis is None:
            known = self._decided()
            scene = None if known is None else known.blotches
            return remove_blotches(
                self.picture, denoised, self.model, strength, preset, self.rng, pool, scene
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
    if found.white_variance is None:
        return _not_kept
    if model.white_sigma is None:
        kept = replace(picture, original=picture.original[:0].copy(), mask=None, whole=None)
        return partial(_std_in_units, kept, model, found.white, found.white_variance)
    kept = replace(
        picture, original=picture.original[:0].copy(), noisy=picture.noisy[:0].copy(), mask=None, whole=None
    )  # fmt: skip
    return partial(_std_in_units, kept, model, kept.noisy, found.white_variance)


def _not_kept() -> Float:
    raise RuntimeError("deviations were not asked for")


def _std_in_units(picture: Picture, model: Noise, white: Float, variance: Float) -> Float:
    """Return the standard deviation of the estimate as the image is given."""
    std = np.sqrt(variance)
    if model.white_sigma is None:
        std = model.bind(picture.noisy).std_back(white, std)
    return picture.deviations(std)


def _if_any(model: Noise, picture: Picture) -> Noise:
    """Return a model, or no noise where float32 pixels are rounded by more."""
    return White(0.0) if model.is_negligible(picture.brightest) else model
