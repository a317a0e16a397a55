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
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from ..core.image import Picture
from ..core.user_warnings import UnitsWarning, warn_user
from .level import check_sigma, question_units
from .models import (
    Level,
    NoiseModel,
    NoiseName,
    Uneven,
    White,
    check_name,
    fit_noise,
    fit_region,
    in_image_units,
    measure_level,
)
from .spectrum import spectrum_of_noise

Region = tuple[int, int, int, int]  # x, y, width, height of flat ground


class NoiseEstimator:
    """What the pixels of an image say about its noise; each thing is measured when first asked for.

    Parameters
    ----------
    open_picture : callable
        Returns the picture that is looked at: the image, a slice of a stack, a sample of a large one.
    slices : callable or None
        Returns pictures of a stack; the level of white noise is the median over them.  The picture
        itself may be among them.
    """

    def __init__(
        self,
        open_picture: Callable[[], Picture],
        slices: Callable[[Picture], Iterable[Picture]] | None = None,
    ) -> None:
        self._open, self._slices = open_picture, slices
        self._models: dict[NoiseName, NoiseModel] = {}

    @cached_property
    def picture(self) -> Picture:
        """The picture that is looked at."""
        return self._open()

    @cached_property
    def _level(self) -> Level:
        return measure_level(self.picture)

    @cached_property
    def sigma(self) -> float:
        """The level of white noise."""
        slices = [self.picture] if self._slices is None else self._slices(self.picture)
        return statistics.median(self._sigma_of(each) for each in slices)

    def _sigma_of(self, picture: Picture) -> float:
        level = self._level if picture is self.picture else measure_level(picture)
        return level.sigma * picture.scale

    def model(self, name: NoiseName) -> NoiseModel:
        """Return the noise of a kind, or with "auto" of the kind that fits best."""
        if name not in self._models:
            check_name(name)
            picture = self.picture
            found = in_image_units(picture, fit_noise(picture, name, self._level))
            if self._slices is not None and isinstance(found, White):
                measured = self._sigma_of(picture)
                share = found.sigma / measured if measured > 0.0 else 1.0
                found = replace(found, sigma=share * self.sigma)
            self._models[name] = found
        return self._models[name]

    def in_region(self, region: Region) -> NoiseModel:
        """Return what is measured on a rectangle of flat ground."""
        return in_image_units(self.picture, fit_region(self.picture, "auto", region))


def resolve(
    image: Picture | NoiseEstimator,
    sigma: float | ArrayLike | None = None,
    noise: NoiseName | NoiseModel | ArrayLike = "auto",
    *,
    region: Region | None = None,
    white_only: bool = False,
) -> NoiseModel:
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
    model = (
        noise if isinstance(noise, NoiseModel) else spectrum_of_noise(noise, picture.channel_axis)
    )
    if not model.fits(picture.noisy.shape):
        raise ValueError(
            f"this model of noise ({model}) does not fit an image of shape {picture.spatial} with "
            f"{picture.noisy.shape[-1]} channels; estimate it from an image of the same shape"
        )
    return model


def check_one_noise(sigma: object, noise: object, region: Region | None = None) -> None:
    """Refuse a level of Gaussian noise together with noise of another kind, or with flat ground."""
    is_auto = isinstance(noise, str) and noise == "auto"
    if region is not None and (sigma is not None or not is_auto):
        raise ValueError(
            "on flat ground noise is measured; give the region without sigma and noise"
        )
    if sigma is not None and not (is_auto or (isinstance(noise, str) and noise == "gaussian")):
        raise ValueError(
            "sigma says that noise is Gaussian of a known level; give it alone or with Gaussian noise, "
            f"not with {f'{noise} noise' if isinstance(noise, str) else 'another model of noise'}"
        )


def _given(estimator: NoiseEstimator, sigma: Any, white_only: bool) -> NoiseModel:
    """Return the model of a given level: one number, one for each channel, or one for each pixel."""
    if white_only or isinstance(sigma, numbers.Real) or np.ndim(sigma) == 0:
        level = check_sigma(sigma)
        if 0.0 < level < 1.0 and estimator.picture.whole is None:  # no other can be in question
            question = question_units(estimator.picture.original, level)
            if question:
                warn_user(question, UnitsWarning)
        return White(level)
    levels, picture = np.asarray(sigma, np.float32), estimator.picture
    n_channels = picture.noisy.shape[-1]
    if not (np.isfinite(levels).all() and (levels > 0).all()):
        raise ValueError(
            "sigma must be positive and finite everywhere; use mask for missing pixels"
        )
    if levels.shape == picture.spatial:
        return Uneven(levels[..., np.newaxis])
    if levels.shape == (n_channels,):
        return Uneven(levels)
    raise ValueError(
        f"sigma must be a number, one for each of {n_channels} channels or a map of shape "
        f"{picture.spatial}, got shape {levels.shape}"
    )
