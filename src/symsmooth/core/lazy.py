"""Dask arrays: methods that are marked with :func:`dask_aware` take them block by block, lazily.

Those that are not need all pixels at once; ``core.image`` says so instead of loading them.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from .image import holds_dask

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

# Imported by name when the first dask array comes: core knows no module above it, but somebody must answer.
BACKEND = "symsmooth.dask"


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
