"""METHODS: name -> function, the only registry.

The command line, the experiments and the contract test go through it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike

from . import (
    denoise,
    denoise_bilateral,
    denoise_bm3d,
    denoise_epll,
    denoise_gaussian,
    denoise_glide,
    denoise_gsf,
    denoise_gsfw,
    denoise_lark,
    denoise_nl_bayes,
    denoise_nlm,
    denoise_ple,
)
from .image import Array

METHODS: Mapping[str, Callable[..., Array]] = MappingProxyType(
    {
        "denoise": denoise,
        "gaussian": denoise_gaussian,
        "bilateral": denoise_bilateral,
        "nlm": denoise_nlm,
        "lark": denoise_lark,
        "gsf": denoise_gsf,
        "gsfw": denoise_gsfw,
        "bm3d": denoise_bm3d,
        "nl_bayes": denoise_nl_bayes,
        "epll": denoise_epll,
        "ple": denoise_ple,
        "glide": denoise_glide,
    }
)


def identity(
    image: ArrayLike, sigma: float | None = None, *, channel_axis: int | None = None
) -> Array:
    """Return a copy of the image: to see what reading and writing a file alone does to it."""
    return np.array(image)


UNLISTED: Mapping[str, Callable[..., Array]] = MappingProxyType({"identity": identity})
"""No denoisers: the command line knows them by name but does not show them."""
