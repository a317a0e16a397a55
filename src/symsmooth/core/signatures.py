"""Parameters written once: those of a pair of functions, and what all methods say about those they share.

A method and its ``fit_*`` have one signature (:func:`parameters_of`).  Its docstring describes the
parameters that are its own; the others are described here, or by a function it names
(:func:`described_like`), and ``help`` and the reference show all of them, in the order of the signature.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Function = TypeVar("Function", bound=Callable[..., Any])

SHARED = """\
image : array_like
    2-D or 3-D, plus channels if ``channel_axis`` is given; any real dtype but bool.
sigma : float or None
    Standard deviation of white noise, in the units of the image; None estimates it.
channel_axis : int, None or "auto"
    Axis of the channels; None if there is none; "auto": as a Pillow image or an xarray.DataArray
    says, else none.
mask : array_like of bool or None
    True where a pixel is missing; non-finite pixels are missing too.
rng : int, Generator or None
    Seed; the same seed gives the same bits.
workers : int or None
    Threads; None takes all cores.
progress : callable or None
    Called as ``progress(fraction, what)``: how much is done of all, 0 to 1, and what is being done.
"""
"""What methods say about the parameters that they share."""

_HEADING = "Parameters\n----------\n"
_SECTION = re.compile(rf"^{_HEADING}(.*?)(?=\n\n\w[\w ]*\n--|\Z)", re.MULTILINE | re.DOTALL)
_ENTRY = re.compile(r"^(\*{0,2}\w+(?:, \w+)*)(?: : [^\n]*)?(?:\n[ ]+[^\n]*)+", re.MULTILINE)


def parameters_of(
    other: Callable[Parameters, Any],
) -> Callable[[Callable[..., Result]], Callable[Parameters, Result]]:
    """Give a function that hands all its arguments on to ``other`` the parameters of ``other``.

    For readers, type checkers, editors and ``inspect`` alike; what it returns is its own.  It describes the
    parameters, and where ``other`` describes none, its docstring gets the description.

    Examples
    --------
    >>> def fit(image, sigma=None, *, rounds=3):
    ...     '''Denoise and return all that was found.'''
    >>> @parameters_of(fit)
    ... def denoise(*args, **options):
    ...     '''Denoise.
    ...
    ...     Parameters
    ...     ----------
    ...     rounds : int
    ...         How often.
    ...     '''
    >>> inspect.signature(denoise)
    <Signature (image, sigma=None, *, rounds=3)>
    >>> list(described(denoise.__doc__)), list(described(fit.__doc__))
    (['image', 'sigma', 'rounds'], ['image', 'sigma', 'rounds'])
    """

    def decorate(function: Callable[..., Result]) -> Callable[Parameters, Result]:
        returned = function.__annotations__.get("return", inspect.Signature.empty)
        signature = inspect.signature(other).replace(return_annotation=returned)
        shared = {name: kind for name, kind in other.__annotations__.items() if name != "return"}
        if returned is not inspect.Signature.empty:
            shared["return"] = returned
        function.__annotations__ = shared
        function.__signature__ = signature  # type: ignore[attr-defined]
        described_like()(function)
        if not described(other.__doc__):
            described_like(function)(other)
        return function

    return decorate


def described_like(*others: Callable[..., Any]) -> Callable[[Function], Function]:
    """Complete the docstring of a function: what it does not say about its parameters is said elsewhere.

    By ``others``, the first that describes a parameter of the same name, or by :data:`SHARED`.
    """

    def decorate(function: Function) -> Function:
        if function.__doc__ is None:  # python -OO
            return function
        doc = inspect.cleandoc(function.__doc__)
        known = _entries(SHARED)
        for other in reversed(others):
            known |= described(other.__doc__)
        known |= described(doc)
        listed = list(
            dict.fromkeys(known[n] for n in inspect.signature(function).parameters if n in known)
        )
        function.__doc__ = _with_section(doc, "\n".join(listed))
        return function

    return decorate


def described(doc: str | None) -> dict[str, str]:
    """Return what a docstring says about parameters, by name; several may have one entry."""
    section = _SECTION.search(inspect.cleandoc(doc or ""))
    return {} if section is None else _entries(section[1])


def _entries(text: str) -> dict[str, str]:
    return {name.lstrip("*"): m[0] for m in _ENTRY.finditer(text) for name in m[1].split(", ")}


def _with_section(doc: str, listed: str) -> str:
    """Return a docstring whose parameters are these; they come after the first paragraphs."""
    section = _SECTION.search(doc)
    if section is not None:
        return f"{doc[: section.start()]}{_HEADING}{listed}{doc[section.end() :]}"
    start = re.search(r"\n\n\w[\w ]*\n--", doc)
    at = len(doc) if start is None else start.start()
    return f"{doc[:at]}\n\n{_HEADING}{listed}{doc[at:]}" if listed else doc
