"""A method's own options on the command line, read off its signature.

``--n-clusters 300`` is ``n_clusters=300`` if the method has a keyword-only ``n_clusters``; its
annotation says how to read the value.  So a new method needs no line here.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Union, get_args, get_origin

_SHARED = {"image", "sigma", "channel_axis", "mask", "rng", "workers", "progress"}
_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


class UsageError(ValueError):
    """The command line asks for something that does not exist; the message is one line."""


@dataclass(frozen=True)
class Option:
    """One keyword-only parameter of a method."""

    name: str  # as in Python: n_clusters
    kinds: tuple[Any, ...]  # the types its annotation allows; NoneType among them, or literals
    default: object

    @property
    def flag(self) -> str:
        """The name on the command line."""
        return "--" + self.name.replace("_", "-")

    def parse(self, text: str) -> object:
        """Return the value that ``text`` stands for."""
        if text.lower() == "none" and type(None) in self.kinds:
            return None
        for kind in self.kinds:
            try:
                return _parse_as(kind, text)
            except ValueError:
                continue
        raise UsageError(f"{self.flag} must be {self.expects}, got {text!r}")

    @property
    def expects(self) -> str:
        """What a value may be, in words."""
        names = {int: "a whole number", float: "a number", str: "a word", bool: "true or false"}
        words = [names.get(kind, repr(kind)) for kind in self.kinds if kind is not type(None)]
        return " or ".join(words + ["none"] * (type(None) in self.kinds))


def _parse_as(kind: Any, text: str) -> object:
    """Read a value as one type or literal; ValueError if it is none of that."""
    if kind is bool:
        if text.lower() in _TRUE + _FALSE:
            return text.lower() in _TRUE
    elif kind in (int, float, str):
        return kind(text)
    elif not isinstance(kind, type) and str(kind) == text:
        return kind
    raise ValueError(text)


def own_options(function: Callable[..., Any]) -> dict[str, Option]:
    """Return the options that are a method's own, by their flag."""
    options = (
        Option(name, _kinds(parameter.annotation, function), parameter.default)
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY and name not in _SHARED
    )
    return {option.flag: option for option in options}


def _kinds(annotation: Any, function: Callable[..., Any]) -> tuple[Any, ...]:
    """Return the types (or literal values) an annotation allows; a string is evaluated first."""
    if isinstance(annotation, str):
        names = getattr(inspect.unwrap(function), "__globals__", {})
        annotation = eval(annotation, dict(names))  # the package's own source, not user input
    if get_origin(annotation) in (Union, types.UnionType):
        return tuple(kind for part in get_args(annotation) for kind in _kinds(part, function))
    if get_origin(annotation) is Literal:
        return get_args(annotation)
    return (str,) if annotation is inspect.Parameter.empty else (annotation,)


def split_arguments(arguments: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Part input names from ``--option value`` and ``--option=value``, in any order."""
    inputs: list[str] = []
    given: dict[str, str] = {}
    rest = iter(arguments)
    for argument in rest:
        if not argument.startswith("-") or argument == "-":
            inputs.append(argument)
            continue
        flag, equals, value = argument.partition("=")
        if not equals:
            following = next(rest, None)
            if following is None:
                raise UsageError(f"{flag} needs a value")
            value = following
        if flag in given:
            raise UsageError(f"{flag} is given twice")
        given[flag] = value
    return inputs, given


def parse_options(
    method: str, function: Callable[..., Any], given: Mapping[str, str]
) -> dict[str, object]:
    """Return the keyword arguments that the options on the command line stand for."""
    known = own_options(function)
    for flag in given:
        if flag not in known:
            has = f"it has {', '.join(known)}" if known else "it has none"
            raise UsageError(f"method {method} has no option {flag}; {has}")
    return {known[flag].name: known[flag].parse(value) for flag, value in given.items()}
