"""How the command line speaks: lines, errors, a progress bar, exit codes."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from ..app.errors import UsageError
from ..app.progress import Progress


@contextmanager
def handling_errors(as_json: bool = False) -> Iterator[None]:
    """End with 2 on wrong usage and with 130 on Ctrl-C; questions are asked in our own words."""
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "sigma .* is very small", UserWarning)
            yield
    except UsageError as error:
        raise typer.Exit(print_error(str(error), 2, as_json)) from error
    except KeyboardInterrupt as error:
        raise typer.Exit(print_stopped()) from error


@contextmanager
def progress_bar(label: str, show: bool) -> Iterator[Progress | None]:
    """Give a callback that draws a bar on stderr, gone when the work is; None if not shown."""
    if not show:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}", markup=False), BarColumn())
    numbers = (TaskProgressColumn(), TimeElapsedColumn())
    with Bar(*columns, *numbers, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=None)

        def advance(stage: str, done: int, total: int) -> None:
            bar.update(task, description=f"{label}: {stage}", completed=done, total=total)

        yield advance


def print_stopped() -> int:
    """Say that Ctrl-C was heard."""
    echo("symsmooth: stopped; nothing half-written was left", err=True)
    return 130


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
    """Return what to tell of an error: it names the file, and its own kind if that is unusual."""
    text = str(error)
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
