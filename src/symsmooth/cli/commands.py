"""Commands whose help and errors are for people: no types of Python, numbers refused in one sentence."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from .plugins import find_command, find_plugins

TYPER_ERROR: Any = typer.BadParameter.__mro__[1]  # its UsageError, wherever it lives


class PlainCommand(TyperCommand):
    """A command whose help does not say that a flag is a ``<bool>`` and an input a ``<list[str]>``."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return its parameters."""
        return [_plain(param) for param in super().get_params(ctx)]


class PlainGroup(TyperGroup):
    """The same for a command that has others, also such as other packages bring."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of our own commands, then those of other packages."""
        own: list[str] = super().list_commands(ctx)
        return own + [name for name in find_plugins() if name not in own]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command; of those of other packages what is known without loading them."""
        own = super().get_command(ctx, cmd_name)
        return find_command(cmd_name, PlainCommand) if own is None else own

    def load_commands(self) -> dict[str, Any]:
        """Return all commands by name, those of other packages loaded."""
        others = [name for name in find_plugins() if name not in self.commands]
        found = {name: find_command(name, PlainCommand) for name in others}
        return {**self.commands, **{name: each.load() for name, each in found.items() if each}}

    def get_params(self, ctx: Any) -> list[Any]:
        """Return its parameters."""
        return [_plain(param) for param in super().get_params(ctx)]


def _plain(param: Any) -> Any:
    if param.param_type_name == "argument":
        param.display_type_rich = lambda ctx: ""  # newer versions of typer ask for it
    elif getattr(param, "is_flag", False) and param.metavar is None:
        param.metavar = ""
    return param


def describe_usage_error(error: Any) -> str:
    """Return what typer says is wrong, and where help is."""
    text = str(error.format_message()).rstrip(".")
    context = getattr(error, "ctx", None)
    return text if context is None else f"{text}; see {context.command_path} --help"


def whole_number(flag: str, low: int, high: int | None = None) -> Callable[[Any], int]:
    """Return a parser for whole numbers within limits."""
    limits = f"of at least {low}" if high is None else f"from {low} to {high}"

    def parse(text: Any) -> int:
        try:
            number = int(text)
        except ValueError:
            number = low - 1
        if not low <= number <= (math.inf if high is None else high):
            raise TYPER_ERROR(f"{flag} must be a whole number {limits}, got {str(text)!r}")
        return number

    return parse


def any_number(flag: str, low: float | None = None) -> Callable[[Any], float]:
    """Return a parser for numbers; finite ones from ``low`` on, if that is given."""
    limit = "" if low is None else f" of at least {low:g}"

    def parse(text: Any) -> float:
        try:
            number = float(text)
            if low is None or low <= number < math.inf:
                return number
        except ValueError:
            pass
        raise TYPER_ERROR(f"{flag} must be a number{limit}, got {str(text)!r}")

    return parse
