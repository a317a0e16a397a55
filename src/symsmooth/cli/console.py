"""How the command line speaks: lines, errors, a progress bar, exit codes."""

from __future__ import annotations

import json
import signal
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path

import typer

from ..app.errors import EndedBySignal, UsageError
from ..app.job_warnings import JobWarning, Remedy
from ..app.stages import plain_stage
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
    >>> from symsmooth.app.errors import UsageError
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
    """Return how long it will take, in words; nothing before that can be known.

    Examples
    --------
    >>> time_left(0.25, 60.0)
    '3:00 left'
    """
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
