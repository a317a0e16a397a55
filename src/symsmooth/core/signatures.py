"""One list of parameters for two functions: the one that returns an image and the one that returns all."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def parameters_of(
    other: Callable[Parameters, Any],
) -> Callable[[Callable[..., Result]], Callable[Parameters, Result]]:
    """Give a function that hands all its arguments on to ``other`` the parameters of ``other``.

    For readers, editors and ``inspect`` alike; what it returns is its own.

    Examples
    --------
    >>> def fit(image, sigma=None, *, rounds=3): ...
    >>> @parameters_of(fit)
    ... def denoise(*args, **options): ...
    >>> inspect.signature(denoise)
    <Signature (image, sigma=None, *, rounds=3)>
    """

    def decorate(function: Callable[..., Result]) -> Callable[Parameters, Result]:
        returned = function.__annotations__.get("return", inspect.Signature.empty)
        signature = inspect.signature(other).replace(return_annotation=returned)
        shared = {name: kind for name, kind in other.__annotations__.items() if name != "return"}
        if returned is not inspect.Signature.empty:
            shared["return"] = returned
        function.__annotations__ = shared
        function.__signature__ = signature  # type: ignore[attr-defined]
        return function

    return decorate
