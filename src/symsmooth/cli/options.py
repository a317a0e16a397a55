"""Words of the command line -> what they stand for: methods, their options, axes.

The options of methods are options of ``symsmooth denoise``: in its help, parsed, completed by the shell.
They come from the records of ``methods``, which are loaded when the command is asked for and not before.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

from ..app.errors import UsageError
from .commands import PlainCommand

if TYPE_CHECKING:
    from ..app.compare import MethodChoice
    from ..app.jobs import ChannelAxis, Region
    from ..io.stacks import Third
    from ..methods import Method, Option, OptionDescription
    from ..noise import Noise

_MAX_METHODS = 12  # that are compared
_GIVEN, _PARAMETERS = "symsmooth.given", "symsmooth.parameters"  # where a context keeps them


def find_method(name: str) -> Method:
    """Return a method by name; the default one for an empty name."""
    from .. import methods

    try:
        return methods.find_method(name or methods.DEFAULT)
    except ValueError as error:
        raise UsageError(str(error)) from error


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


def parse_options(method: Method, given: Mapping[str, str]) -> dict[str, object]:
    """Return the keyword arguments that ``--n-clusters 300`` and the like stand for."""
    known = method.flags
    for flag in given:
        if flag not in known:
            has = f"it has {', '.join(known)}" if known else "it has none"
            raise UsageError(f"method {method.name} has no option {flag}; {has}")
    try:
        return {known[flag].name: _parse_option(known[flag], text) for flag, text in given.items()}
    except ValueError as error:
        raise UsageError(str(error)) from error


def _parse_option(option: Option, text: str) -> object:
    """Return the value of an option; that of --noise may be a file."""
    if option.name != "noise":
        return option.parse(text)
    if text.lower().endswith(".json"):
        return parse_noise_file(text)
    try:
        return option.parse(text)
    except ValueError as error:
        raise UsageError(f"{error}; a file of `symsmooth noise --save` ends in .json") from error


def parse_noise_file(text: str) -> Noise | None:
    """Return the noise model of a file; None for no name."""
    if not text:
        return None
    from ..io.noise_files import load_noise

    try:
        return load_noise(text)
    except ValueError as error:
        raise UsageError(f"--noise {error}") from error


def parse_methods(text: str) -> list[MethodChoice]:
    """Return the methods of a list such as ``denoise:fast,nlm:sinkhorn-iters=1,bm3d``."""
    from .. import methods
    from ..app.compare import DEFAULT_METHODS

    names = (
        text.split(",") if text else [name for name in DEFAULT_METHODS if name in methods.METHODS]
    )
    asked = [_parse_method(name.strip()) for name in names or list(methods.METHODS)]
    labels = [each.label for each in asked]
    twice = next((label for label in labels if labels.count(label) > 1), None)
    if twice is not None:
        raise UsageError(f"--methods names {twice} twice")
    if len(asked) > _MAX_METHODS:
        raise UsageError(f"--methods names {len(asked)} methods; use at most {_MAX_METHODS}")
    return asked


def _parse_method(text: str) -> MethodChoice:
    from ..app.compare import MethodChoice

    name, *rest = text.split(":")
    if not name:
        raise UsageError("--methods has an empty name; give names such as denoise:fast,nlm")
    method = find_method(name)
    given: dict[str, str] = {}
    for part in rest:
        key, equals, value = part.partition("=")
        if not equals:
            if "quality" not in method.options:
                raise UsageError(
                    f"method {method.name} has no quality, got {text}; use {method.name}"
                )
            key, value = "quality", part
        given["--" + key.replace("_", "-")] = value
    return MethodChoice(text, method, parse_options(method, given))


def parse_third_axis(volume: bool, slices: bool, time: bool, frame: int | None = None) -> Third:
    """Return what is said of the third axis, once at most; a frame is one of a series."""
    if volume + slices + time > 1:
        raise UsageError("give one of --volume, --slices and --time")
    if frame is not None and (volume or slices):
        raise UsageError("--frame is for a series, whose frames help each other; leave it out")
    time = time or frame is not None
    return "volume" if volume else "none" if slices else "time" if time else "auto"


def parse_region(text: str) -> Region | None:
    """Return x, y, width, height, or None if nothing was given."""
    if not text:
        return None
    try:
        x, y, width, height = (int(part) for part in text.split(","))
    except ValueError:
        raise UsageError(
            f"--noise-from must be X,Y,WIDTH,HEIGHT in pixels, such as 10,20,64,64, got {text!r}"
        ) from None
    return x, y, width, height


def parse_slice(text: str) -> tuple[int, ...] | None:
    """Return the number of a slice, or one number for each axis; None if nothing was given."""
    if not text:
        return None
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise UsageError(
            f"--slice must be a number such as 7, or one for each axis such as 2,5, got {text!r}"
        ) from None


def parse_channel_axis(text: str) -> ChannelAxis:
    """Return an axis, None for "none", or "auto"."""
    if text == "auto":
        return "auto"
    if text == "none":
        return None
    try:
        return int(text)
    except ValueError:
        raise UsageError(f"--channel-axis must be a number, none or auto, got {text!r}") from None


def check_sigma(sigma: float | None) -> None:
    """Refuse what is no noise level."""
    if sigma is not None and not (math.isfinite(sigma) and sigma >= 0):
        raise UsageError(f"--sigma must be a number of 0 or more, got {sigma}")


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
