"""Noise: its level, how it depends on the signal, on the channel and on its neighbours; synthetic noise."""

from .level import (
    NATURAL_SPREAD,
    add_noise,
    contrast,
    estimate_sigma,
    grey_levels,
    picture_sigma,
    resolve_sigma,
)
from .models import NoiseModel, Uneven, White, estimate_noise
from .resolve import NoiseEstimator, resolve
from .rician import Rician
from .signal import PoissonGaussian
from .spectrum import Correlated

__all__ = [
    "NATURAL_SPREAD",
    "Correlated",
    "NoiseEstimator",
    "NoiseModel",
    "PoissonGaussian",
    "Rician",
    "Uneven",
    "White",
    "add_noise",
    "contrast",
    "estimate_noise",
    "estimate_sigma",
    "grey_levels",
    "picture_sigma",
    "resolve",
    "resolve_sigma",
]
