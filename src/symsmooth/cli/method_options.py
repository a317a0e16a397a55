"""The options of methods as options of ``symsmooth denoise``: in its help, parsed, completed by the shell.

They come from the records of ``methods``, which are loaded when the command is asked for and not before.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import typer

from ..app.errors import UsageError
from .commands import PlainCommand

if TYPE_CHECKING:
    from ..methods import OptionDescription

_GIVEN, _PARAMETERS = "symsmooth.given", "symsmooth.parameters"  # where a context keeps them


class MethodCommand(PlainCommand):
    """A command that takes the options of all methods; :func:`given_options` returns those given."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the command's own parameters and those of the methods."""
        own = super().get_params(ctx)
        if _PARAMETERS not in ctx.meta:
            ctx.meta[_PARAMETERS] = _parameters({param.name for param in own})
        return [*own, *ctx.meta[_PARAMETERS]]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse, and take the options of methods out of what the function is called with."""
        rest = super().parse_args(ctx, _with_names_after_dashes(args))
        own = {param.name for param in self.params}
        others = [name for name in ctx.params if name not in own]
        given = {name: ctx.params.pop(name) for name in others}
        ctx.meta[_GIVEN] = {_flag(name): values for name, values in given.items() if values}
        return rest


def _with_names_after_dashes(args: list[str]) -> list[str]:
    """Return arguments in which names after ``--`` that begin with a dash look like names: ``./-x.png``."""
    if "--" not in args:
        return args
    end = args.index("--") + 1
    names = [f"./{name}" if name.startswith("-") and name != "-" else name for name in args[end:]]
    return args[:end] + names


def given_options(context: typer.Context) -> dict[str, str]:
    """Return the options of methods that were given, with their words."""
    given: dict[str, Sequence[str]] = context.meta[_GIVEN]
    for flag, values in given.items():
        if len(values) > 1:
            raise UsageError(f"{flag} is given twice")
    return {flag: values[0] for flag, values in given.items()}


def complete_method(incomplete: str) -> list[str]:
    """Return the methods that begin so."""
    from ..methods import METHODS

    return [name for name in METHODS if name.startswith(incomplete)]


def complete_methods(incomplete: str) -> list[str]:
    """Return the lists of methods that begin so: ``nlm,bm3d``."""
    before, comma, last = incomplete.rpartition(",")
    return [before + comma + name for name in complete_method(last)]


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _parameters(taken: set[str]) -> list[Any]:
    """Return the options of all methods as typer makes them, each once."""
    from ..methods import describe_options

    parameters = [_declare(option) for option in describe_options() if option.name not in taken]

    def collect(**_: list[str] | None) -> None: ...

    collect.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    collect.__annotations__ = {each.name: each.annotation for each in parameters}
    maker = typer.Typer(add_completion=False)
    maker.command()(collect)
    return list(typer.main.get_command(maker).params)


def _declare(option: OptionDescription) -> inspect.Parameter:
    """Return an option as a parameter that typer understands; its words are read by the method's record."""
    panel = "Options of the default method" if option.of_default else "Options of other methods"
    choices = option.choices
    more = "|FILE.json" if option.name == "noise" else ""
    declared = typer.Option(
        None,
        _flag(option.name),
        metavar=option.metavar + more,
        help=option.help,
        show_default=False,
        rich_help_panel=panel,
        autocompletion=lambda incomplete: [c for c in choices if c.startswith(incomplete)],
    )
    kind, annotation = inspect.Parameter.KEYWORD_ONLY, list[str] | None
    return inspect.Parameter(option.name, kind, default=declared, annotation=annotation)
