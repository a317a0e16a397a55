"""Dask arrays: methods that are marked with :func:`dask_aware` take them block by block, lazily.

Those that are not need all pixels at once and say so (:func:`refuse_dask`) instead of loading them.
Libraries are known by the name of a value's type: none is imported here.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

# Imported by name when the first dask array comes: core knows no module above it, but somebody must answer.
BACKEND = "symsmooth.dask"


def library_of(value: object) -> str:
    """Return the name of the library that a value's type comes from."""
    return type(value).__module__.partition(".")[0]


def holds_dask(image: Any) -> bool:
    """Whether an image is a dask array, or an xarray.DataArray of one."""
    is_xarray = library_of(image) == "xarray" and hasattr(image, "dims")
    return library_of(image.data if is_xarray else image) == "dask"


def dask_aware(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Mark a method, called as ``function(image, sigma, **options)``, to take dask arrays too.

    They go to ``denoise_lazily`` of :mod:`symsmooth.dask`; every other image goes to the function itself.
    """

    @functools.wraps(function)
    def method(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        image: Any = args[0] if args else kwargs.get("image")
        if not holds_dask(image):
            return function(*args, **kwargs)
        options = dict(zip(("image", "sigma"), args, strict=False)) | kwargs
        del options["image"]
        result: Result = importlib.import_module(BACKEND).denoise_lazily(method, image, options)
        return result

    return method


def refuse_dask(image: Any) -> None:
    """Say what to do with a dask array where all pixels are needed at once."""
    if holds_dask(image):
        raise TypeError(
            "image is a dask array, and all its pixels are needed at once here; pass a part of it, such as "
            "image[:2048, :2048].compute(), or image.compute() if it fits into memory; "
            "symsmooth.denoise and the other methods take it as it is, block by block"
        )
