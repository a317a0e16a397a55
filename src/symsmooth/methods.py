"""METHODS: name -> function, the only registry.

The command line, the experiments and the contract test go through it.  Here, above the methods, is also
the one place that sends dask arrays to :func:`~symsmooth.blocks.denoise_blocks`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, ParamSpec

import numpy as np
from numpy.typing import ArrayLike

from . import automatic, filters, gsf, gsfw
from .baselines import bm3d, epll, glide, nl_bayes, ple
from .blocks import denoise_blocks
from .image import Array

Parameters = ParamSpec("Parameters")


def _lazy(function: Callable[Parameters, Array]) -> Callable[Parameters, Array]:
    """Return the method with dask arrays, and DataArrays of them, denoised in blocks, lazily."""
    name = function.__name__.removeprefix("denoise_")

    @functools.wraps(function)
    def method(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Any:
        image: Any = args[0] if args else kwargs.get("image")
        pixels = image.data if _is_from("xarray", image) and hasattr(image, "dims") else image
        if not _is_from("dask", pixels):
            return function(*args, **kwargs)
        options: dict[str, Any] = dict(zip(("image", "sigma"), args, strict=False)) | kwargs
        del options["image"]
        denoised = denoise_blocks(pixels, name, **options)
        return denoised if pixels is image else image.copy(data=denoised)

    method.__module__ = __name__  # where pickle finds it
    return method


def _is_from(library: str, value: object) -> bool:
    return type(value).__module__.partition(".")[0] == library


denoise = _lazy(automatic.denoise)
denoise_gaussian = _lazy(filters.denoise_gaussian)
denoise_bilateral = _lazy(filters.denoise_bilateral)
denoise_nlm = _lazy(filters.denoise_nlm)
denoise_lark = _lazy(filters.denoise_lark)
denoise_gsf = _lazy(gsf.denoise_gsf)
denoise_gsfw = _lazy(gsfw.denoise_gsfw)
denoise_bm3d = _lazy(bm3d.denoise_bm3d)
denoise_nl_bayes = _lazy(nl_bayes.denoise_nl_bayes)
denoise_epll = _lazy(epll.denoise_epll)
denoise_ple = _lazy(ple.denoise_ple)
denoise_glide = _lazy(glide.denoise_glide)

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
