"""Noise: the one model of it, how it is found in a picture, and synthetic noise."""

from .calibration import calibrate_noise
from .level import (
    NATURAL_SPREAD,
    add_noise,
    contrast,
    estimate_sigma,
    grey_levels,
    picture_sigma,
    resolve_sigma,
)
from .model import Correlated, Heteroscedastic, Noise, NoiseModel, PoissonGaussian, White
from .resolve import NoiseEstimator, estimate_noise, resolve
from .rician import Rician

__all__ = [
    "NATURAL_SPREAD",
    "Correlated",
    "Heteroscedastic",
    "Noise",
    "NoiseEstimator",
    "NoiseModel",
    "PoissonGaussian",
    "Rician",
    "White",
    "add_noise",
    "calibrate_noise",
    "contrast",
    "estimate_noise",
    "estimate_sigma",
    "grey_levels",
    "picture_sigma",
    "resolve",
    "resolve_sigma",
]
