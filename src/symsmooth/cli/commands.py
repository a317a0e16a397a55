"""Commands whose help and errors are for people: no types of Python; and commands of other packages.

Those are entry points of the group ``symsmooth.commands``: each names a function that typer can make a
command of.  ``--help`` lists it without importing it.
"""

from __future__ import annotations

import os
import sys
from configparser import ConfigParser
from configparser import Error as ConfigError
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from ..app.errors import UsageError

GROUP = "symsmooth.commands"
TYPER_ERROR: Any = typer.BadParameter.__mro__[1]  # its UsageError, wherever it lives
_METADATA = ".dist-info"  # the folder that a package has beside itself where it is installed

# Commands that our own packages bring: what to install, and what ``--help`` says of them.
KNOWN = {
    "explain": (
        "symsmooth-repro",
        "Show what the paper's mixture learns from a picture: clusters, neighbours, k and lambda.",
    ),
    "reproduce": (
        "symsmooth-repro",
        "Measure every table and figure of the paper again and write a report.",
    ),
    "benchmark": (
        "symsmooth-repro",
        "Measure PSNR, SSIM and time of methods and peers on a folder of pictures; resumable.",
    ),
}


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
        return find_command(cmd_name) if own is None else own

    def load_commands(self) -> dict[str, Any]:
        """Return all commands by name, those of other packages loaded."""
        others = [name for name in find_plugins() if name not in self.commands]
        found = {name: find_command(name) for name in others}
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


@dataclass(frozen=True)
class Plugin:
    """A command of another package."""

    package: str
    place: str  # module:function


@cache
def find_plugins() -> dict[str, Plugin]:
    """Return the commands of other packages that are installed, by name.

    The files of all packages are read here because ``importlib.metadata.entry_points`` takes ten times as
    long, a quarter of all of ``--help``.
    """
    found: dict[str, Plugin] = {}
    for folder in sys.path:
        try:
            names = sorted(name for name in os.listdir(folder or ".") if name.endswith(_METADATA))
        except OSError:
            continue
        for name in names:
            package = name.partition("-")[0].replace("_", "-")
            for command, place in _declared(os.path.join(folder, name)).items():
                found.setdefault(command, Plugin(package, place))
    return found


def _declared(folder: str) -> dict[str, str]:
    """Return the commands that a package says it has; what cannot be read says nothing."""
    try:
        with open(os.path.join(folder, "entry_points.txt"), encoding="utf-8") as handle:
            text = handle.read()
        if f"[{GROUP}]" not in text:
            return {}
        parser = ConfigParser(delimiters="=", interpolation=None)
        parser.optionxform = str  # type: ignore[method-assign,assignment]
        parser.read_string(text)
        return dict(parser[GROUP])
    except (OSError, UnicodeDecodeError, ConfigError):
        return {}


def find_command(name: str) -> PluginCommand | None:
    """Return a command of another package, or of one of ours that is not installed."""
    found = find_plugins().get(name)
    return None if found is None and name not in KNOWN else PluginCommand(name, found)


class PluginCommand(TyperCommand):
    """A command that is loaded when it is used; until then its name and a sentence are known."""

    def __init__(self, name: str, plugin: Plugin | None) -> None:
        self._plugin = plugin
        told = KNOWN[name][1] if name in KNOWN else ""
        super().__init__(name, callback=None, help=told or f"Of {plugin and plugin.package}.")

    def make_context(self, info_name: Any, args: Any, parent: Any = None, **extra: Any) -> Any:
        """Parse the arguments of the command itself; none while a shell completes what is not there."""
        try:
            command: Any = self.load()
        except UsageError:
            if not extra.get("resilient_parsing"):
                raise
            command = super()
        return command.make_context(info_name, args, parent=parent, **extra)

    def load(self) -> TyperCommand:
        """Import the command; whatever is wrong with it is one sentence."""
        if self._plugin is None:
            package = KNOWN[str(self.name)][0]
            raise UsageError(f"{self.name} is in a package of its own: pip install {package}")
        maker = typer.Typer(add_completion=False)
        try:
            module, _, function = self._plugin.place.partition(":")
            maker.command(self.name, cls=PlainCommand)(getattr(import_module(module), function))
            command: Any = typer.main.get_command(maker)
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            package = self._plugin.package
            raise UsageError(f"{self.name} of {package} cannot be loaded: {why}") from error
        loaded: TyperCommand = command
        return loaded
