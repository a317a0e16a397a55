"""Which noise an image has: the one place that answers, for functions, files, blocks and comparisons.

What was said (a level, a model, a kind of noise, a rectangle of flat ground) is taken; what was not said
is measured, and nothing is measured twice.  Answers are in the units of the image.
"""

from __future__ import annotations

import numbers
import statistics
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import ArrayLike

from ..core.image import Array, ChannelAxis, Picture, open_image
from .evidence import SIDE
from .fit import find_model, photon_law
from .level import (
    ask_about_units,
    check_level,
    check_sigma,
    extremes,
    picture_sigma,
    sample_patches,
)
from .levels import Constant
from .model import (
    Finding,
    Heteroscedastic,
    Noise,
    NoiseModel,
    PixelRange,
    White,
    noise_of_ground,
    noise_of_sample,
)
from .rician import fit_rician
from .specks import without_specks

NoiseName = Literal["auto", "gaussian", "poisson-gaussian", "correlated", "rician"]
NAMES = ("auto", "gaussian", "poisson-gaussian", "correlated", "rician")
Region = tuple[int, int, int, int]  # x, y, width, height of flat ground


def estimate_noise(
    image: ArrayLike,
    *,
    noise: NoiseName = "auto",
    channel_axis: ChannelAxis = "auto",
    mask: ArrayLike | None = None,
    region: Region | None = None,
) -> Noise:
    """Find out what noise an image has, in its own units.

    Parameters
    ----------
    image : array_like
        2-D or 3-D, plus channels if ``channel_axis`` is given.
    noise : {"auto", "gaussian", "poisson-gaussian", "correlated", "rician"}
        What is known of it.  "auto": nothing; "gaussian": it is white, of one level; "poisson-
        gaussian": it is white, and its variance follows a line; "correlated": it is coarse, of one
        level; "rician": that of magnitudes (MR).
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
    >>> bool(abs(symsmooth.estimate_noise(noisy).sigma - 20.0) < 2.0)
    True
    """
    picture = without_specks(open_image(image, channel_axis, mask))
    check_name(noise)
    if region is not None and noise not in ("auto", "correlated"):
        raise ValueError(
            f"a region measures all noise on it, not {noise} noise; leave out one of the two"
        )
    return resolve(picture, noise="auto" if region is not None else noise, region=region)


class NoiseEstimator:
    """What the pixels of an image say about its noise; each thing is measured when first asked for.

    Parameters
    ----------
    open_picture : callable
        Returns the picture that is looked at: the image, a slice of a stack, a sample of a large one.
    slices : callable or None
        Returns pictures of a stack that share their noise.  The picture itself may be among them.
    """

    def __init__(
        self,
        open_picture: Callable[[], Picture],
        slices: Callable[[Picture], Iterable[Picture]] | None = None,
    ) -> None:
        self._open, self._slices = open_picture, slices
        self._models: dict[NoiseName, Noise] = {}

    @cached_property
    def picture(self) -> Picture:
        """The picture that is looked at."""
        return self._open()

    @cached_property
    def _pictures(self) -> list[Picture]:
        others = [] if self._slices is None else self._slices(self.picture)
        return [self.picture, *(each for each in others if each is not self.picture)]

    @cached_property
    def sigma(self) -> float:
        """The level of white noise."""
        return statistics.median(picture_sigma(each) * each.scale for each in self._pictures)

    def model(self, name: NoiseName) -> Noise:
        """Return the noise of a kind, or with "auto" what there is."""
        if name not in self._models:
            check_name(name)
            self._models[name] = self._about(self._find(name))
        return self._models[name]

    def _find(self, name: NoiseName) -> Noise:
        if name == "gaussian":
            return White(self.sigma)
        if name == "rician":
            samples = [sample_patches(self.picture, c) for c in range(self.picture.noisy.shape[-1])]
            found: Noise = fit_rician(self.picture, samples) or White(picture_sigma(self.picture))
        elif name == "poisson-gaussian":
            found = photon_law(self._pictures)
        elif name == "correlated":
            known = cast(NoiseModel, self.model("auto"))
            return replace(known, level=Constant(np.array(known.level.typical)))
        else:
            found = find_model(self._pictures)
        return in_image_units(self.picture, found)

    def in_region(self, region: Region) -> Noise:
        """Return what is measured on a rectangle of flat ground."""
        return self._about(in_image_units(self.picture, _fit_region(self.picture, region)))

    def _about(self, model: Any) -> Noise:
        """Return a model that knows which pixels it is about."""
        return cast(Noise, replace(model, pixels=pixel_range(self.picture.original)))


def pixel_range(pixels: Array) -> PixelRange:
    """Return dtype and extremes of pixels."""
    return PixelRange(pixels.dtype.name, *extremes(pixels))


def in_image_units(picture: Picture, model: Noise) -> Noise:
    """Return a model that was found in the picture's units in those of the image."""
    return model.in_units(-picture.offset / picture.scale, 1 / picture.scale)


def _fit_region(picture: Picture, region: Region) -> NoiseModel:
    """Measure the noise on a rectangle of flat ground, in the picture's units."""
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
    found = noise_of_ground(picture.noisy[box])
    return replace(found, finding=Finding(1.0, ("it was measured on the ground you gave",)))


def check_name(noise: str) -> None:
    """Refuse what is no kind of noise."""
    if noise not in NAMES:
        raise ValueError(f"noise must be one of {', '.join(NAMES)}, got {noise!r}")


def resolve(
    image: Picture | NoiseEstimator,
    sigma: float | ArrayLike | None = None,
    noise: NoiseName | Noise | ArrayLike = "auto",
    *,
    region: Region | None = None,
    white_only: bool = False,
) -> Noise:
    """Return the noise that an image has, in its units.

    Parameters
    ----------
    image : Picture or NoiseEstimator
    sigma : float, array_like or None
        The level of Gaussian noise, if it is known: one number, one for each channel, or a map.
    noise : {"auto", "gaussian", "poisson-gaussian", "correlated", "rician"}, model or array_like
        Its kind, if that is known, a model, or a sample of pure noise.
    region : (x, y, width, height) or None
        Flat ground to measure it on.
    white_only : bool
        Whether the method that asks knows of white noise of one level only.

    Raises
    ------
    ValueError
        If two of these contradict each other, or do not fit the image.
    """
    check_one_noise(sigma, noise, region)
    estimator = image if isinstance(image, NoiseEstimator) else NoiseEstimator(lambda: image)
    if sigma is not None:
        return _given(estimator, sigma, white_only)
    if white_only:
        return White(estimator.sigma)
    if region is not None:
        return estimator.in_region(region)
    if isinstance(noise, str):
        return estimator.model(cast(NoiseName, noise))
    picture = estimator.picture
    if hasattr(noise, "whiten"):
        return _for_picture(cast(Noise, noise), picture)
    return _fitting(_of_sample(cast(ArrayLike, noise), picture), picture)


def _for_picture(model: Noise, picture: Picture) -> Noise:
    """Return a model for the channels of a picture that count; refuse one that is about other pixels."""
    own = picture.counted
    if own is not None and model.n_channels == picture.original.shape[-1] != len(own.own):
        model = cast(NoiseModel, model).of_channels(own.own)
    about = model.pixels
    if about is not None and picture.whole is None:
        found = pixel_range(picture.original)
        if not about.same_units(found):
            raise ValueError(
                f"this noise model is for {about}, and the image has {found}; give a model that was "
                "made from pixels in the same units"
            )
    return _fitting(model, picture)


def _fitting(model: Noise, picture: Picture) -> Noise:
    """Return a model, or say why it cannot be that of a picture."""
    n_channels = picture.noisy.shape[-1]
    if model.n_channels is not None and model.n_channels != n_channels:
        raise ValueError(
            f"this noise model is for {_count(model.n_channels)}, and the image has "
            f"{_count(n_channels)}; give one that was made from pictures with as many"
        )
    if not model.fits(picture.noisy.shape):
        raise ValueError(
            f"this model of noise ({model}) does not fit an image of shape {picture.spatial} with "
            f"{_count(n_channels)}; estimate it from an image of the same shape"
        )
    return model


def _count(n_channels: int) -> str:
    return "one channel" if n_channels == 1 else f"{n_channels} channels"


def _of_sample(sample: ArrayLike, picture: Picture) -> NoiseModel:
    """Return the noise of a sample of it, for the channels of a picture that count."""
    if picture.counted is None:
        return noise_of_sample(sample, picture.channel_axis)
    axis = picture.channel_axis
    assert axis is not None
    return noise_of_sample(np.take(np.asarray(sample), picture.counted.own, axis), axis)


def check_one_noise(sigma: object, noise: object, region: Region | None = None) -> None:
    """Refuse a level of Gaussian noise together with noise of another kind, or with flat ground."""
    is_auto = isinstance(noise, str) and noise == "auto"
    if region is not None and (sigma is not None or not is_auto):
        raise ValueError("a region measures the noise; give it without sigma and noise")
    if sigma is not None and not (is_auto or (isinstance(noise, str) and noise == "gaussian")):
        raise ValueError(
            "sigma says that noise is Gaussian of a known level; give it alone or with Gaussian noise, "
            f"not with {f'{noise} noise' if isinstance(noise, str) else 'another model of noise'}"
        )


def _given(estimator: NoiseEstimator, sigma: Any, white_only: bool) -> Noise:
    """Return the model of a given level: one number, one for each channel, or one for each pixel."""
    if white_only or isinstance(sigma, numbers.Real) or np.ndim(sigma) == 0:
        level = check_sigma(sigma)
        if 0.0 < level < 1.0:  # no other can be in question, and none is opened for it
            ask_about_units(estimator.picture, level)
        return White(level)
    with np.errstate(over="ignore"):
        levels, picture = np.asarray(sigma, np.float32), estimator.picture
    n_channels = picture.original.shape[-1]
    if not (np.isfinite(levels).all() and (levels > 0).all()):
        raise ValueError(
            "sigma must be positive and finite everywhere; use mask for missing pixels"
        )
    check_level(picture, float(levels.max()))
    if levels.shape == picture.spatial:
        return Heteroscedastic(levels[..., np.newaxis])
    if levels.shape == (n_channels,):
        return Heteroscedastic(levels if picture.counted is None else levels[picture.counted.own])
    raise ValueError(
        f"sigma must be a number, one for each of {n_channels} channels or a map of shape "
        f"{picture.spatial}, got shape {levels.shape}"
    )
