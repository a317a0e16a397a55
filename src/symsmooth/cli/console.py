"""The command line itself: its commands, and how it speaks: help, lines, errors, progress, exit codes.

A command is a function that typer makes one of when it is used: ``--help`` imports none of them.  Those of
other packages are entry points of the group ``symsmooth.commands``.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import warnings
from collections.abc import Iterator, Mapping
from configparser import ConfigParser
from configparser import Error as ConfigError
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from ..app.messages import JobWarning, Remedy, UsageError, plain_stage
from ..core.parallel import EndedBySignal, ending_on_signals
from ..core.user_warnings import UnitsWarning

_KNOWN = 0.03  # of the work must be done before it is said how long the rest takes

# Remedies for what is doubtful; {value} is what goes with one: a number, or where to write.
REMEDIES: Mapping[Remedy, str] = {
    "level": "give its level, such as --sigma {value}",
    "coarse": "--noise correlated",
    "region": "--noise-from X,Y,W,H",
    "this-region": "--noise-from {value}",
    "stronger": "--strength {value}",
    "floats": "write --dtype float32{value}",
    "series": "--time",
    "resume": "--resume",
}
# Options whose flag is not their name with two dashes.
_FLAGS = {
    "out": "-o",
    "series": "--time",
    "frame": "--frame N",
    "region": "--noise-from",
    "model": "--noise FILE.json",
}
GROUP = "symsmooth.commands"
TYPER_ERROR: Any = typer.BadParameter.__mro__[1]  # its UsageError, wherever it lives
_METADATA = ".dist-info"  # the folder that a package has beside itself where it is installed
# Our own commands: the module of each, and what ``--help`` says of it.
OWN = {
    "denoise": ("files", "Denoise files."),
    "noise": (
        "files",
        "Say what noise there is and how much, in the image's units and in percent of its range.",
    ),
    "blend": (
        "files",
        "Blend a denoised picture with the noisy one: less strength, at once, without denoising again.",
    ),
    "methods": (
        "methods",
        "List the methods, their own options, defaults and choices; of named ones also what options do.",
    ),
    "demo": (
        "methods",
        "Compare NLM, NLM with column normalisation, GSF and the default method on one picture.",
    ),
    "compare": (
        "methods",
        "Compare methods on a picture: one HTML file with divider, zoom, method noise and numbers.",
    ),
    "serve": (
        "serve",
        "Serve a page where pictures are dropped, denoised and compared; Ctrl-C ends it.",
    ),
}
# Commands that our other packages bring: what to install, and what ``--help`` says of them.
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


def flag_of(option: str) -> str:
    """Return the flag of an option.

    Examples
    --------
    >>> flag_of("dtype"), flag_of("series")
    ('--dtype', '--time')
    """
    return _FLAGS.get(option, f"--{option.replace('_', '-')}")


def with_flags(error: BaseException) -> str:
    """Return the message of an error, with the flags of the options that it is about.

    Examples
    --------
    >>> from symsmooth.app.messages import UsageError
    >>> with_flags(UsageError("a video keeps its depth; leave the dtype out", "dtype"))
    'a video keeps its depth; leave the dtype out (--dtype)'
    """
    flags = ", ".join(map(flag_of, getattr(error, "options", ())))
    return f"{error} ({flags})" if flags else str(error)


def said(message: str | JobWarning) -> str:
    """Return a message, or a warning with its remedies as flags."""
    return message if isinstance(message, str) else message.say(REMEDIES)


@contextmanager
def handling_errors(as_json: bool = False, source: Path | None = None) -> Iterator[None]:
    """End in our own words: with 2 on wrong usage, with 1 on other errors, with 130 on Ctrl-C.

    Other signals end with 128 and their number.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnitsWarning)
            yield
    except UsageError as error:
        raise typer.Exit(print_error(with_flags(error), 2, as_json)) from error
    except KeyboardInterrupt as error:
        raise typer.Exit(print_stopped(error)) from error
    except (BrokenPipeError, typer.Exit, typer.Abort):
        raise
    except Exception as error:
        raise typer.Exit(print_error(error_message(error), 1, as_json, source)) from error


class ProgressBar:
    """A bar on stderr: how much is done, what is being done, and the time that is left."""

    def __init__(self, label: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TaskProgressColumn, TextColumn
        from rich.progress import Progress as Bar

        columns = (TextColumn("{task.description}", markup=False), BarColumn())
        left = TextColumn("{task.fields[left]}", markup=False)
        console = Console(stderr=True)
        self._bar = Bar(*columns, TaskProgressColumn(), left, console=console, transient=True)
        self._label, self._begun = label, time.monotonic()
        self._task = self._bar.add_task(label, total=1.0, left="")

    def __call__(self, fraction: float, what: str) -> None:
        """Show how far the work is."""
        left = time_left(fraction, time.monotonic() - self._begun)
        what = plain_stage(what)
        named = f"{self._label}: {what}" if self._label else what
        self._bar.update(self._task, description=named, completed=fraction, left=left)

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Take the bar away while something is printed."""
        self._bar.stop()
        yield
        self._bar.start()

    def __enter__(self) -> ProgressBar:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()


def progress_bar(label: str, show: bool) -> AbstractContextManager[ProgressBar | None]:
    """Give a progress callback that draws a bar, gone when the work is; None if not shown."""
    return ProgressBar(label) if show else nullcontext()


def time_left(fraction: float, seconds: float) -> str:
    """Return how long it will take, in words; nothing before that can be known."""
    if fraction < _KNOWN or seconds < 1.0:
        return ""
    minutes, rest = divmod(round(seconds * (1 - fraction) / fraction), 60)
    hours, minutes = divmod(minutes, 60)
    clock = f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
    return f"{clock} left"


def print_stopped(error: BaseException) -> int:
    """Print that Ctrl-C or another signal stopped it, unless the terminal is gone; return the exit code."""
    with suppress(OSError):
        echo("symsmooth: stopped; no half-written file was left behind", err=True)
    return 128 + (error.number if isinstance(error, EndedBySignal) else signal.SIGINT)


def print_error(message: str, code: int, as_json: bool = False, source: Path | None = None) -> int:
    """Print an error on one line of stderr, or as JSON on stdout, and return the exit code."""
    line = " ".join(message.splitlines())
    if as_json:
        typer.echo(json.dumps({"input": None if source is None else str(source), "error": line}))
    else:
        echo(f"symsmooth: error: {line}", err=True)
    return code


def print_warning(text: str) -> None:
    """Print on one line of stderr what may have been meant otherwise."""
    echo(f"symsmooth: warning: {text}", err=True)


def error_message(error: Exception, source: Path | None = None) -> str:
    """Return the message of an error: it names the file, and its own kind if that is unusual."""
    text = with_flags(error)
    if isinstance(error, MemoryError):
        text = text or "not enough memory"
    elif not isinstance(error, (ValueError, TypeError, OSError)):
        text = f"{type(error).__name__}: {text}"
    named = source is None or text.startswith(str(source))
    return text if named else f"{source}: {text}"


def echo(text: str, *, err: bool = False) -> None:
    """Print a line; what cannot be printed (in a file's name) is escaped."""
    line = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
    typer.echo(line, err=err)


class PlainCommand(TyperCommand):
    """A command whose help does not say that a flag is a ``<bool>`` and an input a ``<list[str]>``."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return its parameters."""
        return [_plain(param) for param in super().get_params(ctx)]


class PlainGroup(TyperGroup):
    """A command that has others: our own, and such as other packages bring."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        for name, (module, told) in OWN.items():
            place = Plugin("symsmooth", f"{__package__}.{module}:{name}")
            self.commands[name] = LazyCommand(name, place, told)

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of our own commands, then those of other packages."""
        return [*OWN, *(name for name in find_plugins() if name not in OWN)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command, of which no more than a sentence is known before it is used."""
        if cmd_name in OWN:
            return self.commands[cmd_name]
        found = find_plugins().get(cmd_name)
        if found is None and cmd_name not in KNOWN:
            return None
        _, told = KNOWN.get(cmd_name, ("", f"Of {found and found.package}."))
        return LazyCommand(cmd_name, found, told)

    def load_commands(self) -> dict[str, Any]:
        """Return all commands by name, loaded."""
        return {name: self.get_command(None, name).load() for name in self.list_commands(None)}

    def get_params(self, ctx: Any) -> list[Any]:
        """Return its parameters."""
        return [_plain(param) for param in super().get_params(ctx)]


def _plain(param: Any) -> Any:
    if param.param_type_name == "argument":
        param.display_type_rich = lambda ctx: ""  # newer versions of typer ask for it
    elif getattr(param, "is_flag", False) and param.metavar is None:
        param.metavar = ""
    return param


@dataclass(frozen=True)
class Plugin:
    """Where a command is."""

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


class LazyCommand(TyperCommand):
    """A command that is loaded when it is used; until then its name and a sentence are known."""

    def __init__(self, name: str, plugin: Plugin | None, told: str) -> None:
        self._plugin = plugin
        super().__init__(name, callback=None, help=told)

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


app = typer.Typer(
    cls=PlainGroup, help="Denoise images without training.", pretty_exceptions_enable=False
)


def main() -> None:
    """Run the command line; every error is one line, never a traceback."""
    # All that takes long runs in threads of our own; those of the BLAS would only wait beside them.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        with ending_on_signals():
            code = app(standalone_mode=False, prog_name="symsmooth") or 0
    except (KeyboardInterrupt, typer.Abort) as error:
        code = print_stopped(error)
    except TYPER_ERROR as error:
        text, context = str(error.format_message()).rstrip("."), getattr(error, "ctx", None)
        help_at = "" if context is None else f"; see {context.command_path} --help"
        code = print_error(text + help_at, 2)
    except UsageError as error:
        code = print_error(with_flags(error), 2)
    except BrokenPipeError:  # as in `symsmooth methods | head -1`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    except Exception as error:
        code = print_error(error_message(error), 1)
    sys.exit(code)


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="With --version: also print which kernels are used.")
    ] = False,
) -> None:
    if version:
        from .. import __version__

        typer.echo(f"symsmooth {__version__}")
        if verbose:
            from .. import _native

            others = ", ".join(_native.instruction_sets())
            typer.echo(f"kernels for {_native.instruction_set()} (available: {others})")
        raise typer.Exit()
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(2)
