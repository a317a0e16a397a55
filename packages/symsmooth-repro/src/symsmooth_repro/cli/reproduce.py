"""``symsmooth reproduce``: progress with the time left, and how it ends."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from symsmooth.app.messages import UsageError
from symsmooth.cli.arguments import whole_number
from symsmooth.cli.console import echo, handling_errors, print_error

if TYPE_CHECKING:
    from ..runner import Tally

_QUIET_SECONDS = 20.0  # between lines where there is no bar

Processes = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        parser=whole_number("--jobs", 1),
        help="Processes; by default one per core.",
    ),
]


def list_experiments() -> list[str]:
    """Return the experiments, a line each."""
    from .. import find

    return [f"{e.name:<21}{e.item:<22}{e.title}" for e in find()]


def check_request(names: list[str], jobs: int | None, out: Path | None) -> Path:
    """Refuse what cannot work before anything is loaded; return the folder to write to."""
    from .. import NAMES

    unknown = [name for name in names if name not in NAMES]
    if unknown:
        raise UsageError(f"there is no experiment {unknown[0]!r}; use {', '.join(NAMES)}")
    if out is None:
        raise UsageError("--out DIR is missing: the folder the report goes to")
    if out.exists() and not out.is_dir():
        raise UsageError(f"--out {out} is a file; give a folder")
    return out


@contextmanager
def following(
    show_bar: bool, echo: Callable[[str], None]
) -> Iterator[Callable[[str, Tally], None]]:
    """Give a callback for finished measurements: a bar on a terminal, else a line now and then."""
    if show_bar:
        with _bar() as report:
            yield report
        return
    yield _Lines(echo)


class _Lines:
    """Prints how far the measurements are, now and then; each is counted once."""

    def __init__(self, echo: Callable[[str], None]) -> None:
        self._echo = echo
        self._last = time.monotonic()
        self._reused = self._total = 0

    def __call__(self, text: str, tally: Tally) -> None:
        now = time.monotonic()
        if not text:  # what is to be done, first or in addition
            more = "more " if self._reused or self._total else ""
            if tally.reused > self._reused:
                self._echo(f"{tally.reused - self._reused} {more}measurements are there already")
            if tally.total > self._total:
                self._echo(f"{tally.total - self._total} {more}measurements to make")
            self._reused, self._total = tally.reused, tally.total
        elif now - self._last >= _QUIET_SECONDS or tally.done == tally.total:
            self._last = now
            self._echo(f"{tally.done} of {tally.total} measurements, {_left(tally)}")


@contextmanager
def _bar() -> Iterator[Callable[[str, Tally], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    text = TextColumn("{task.description}", markup=False)
    with Progress(*columns, text, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=None)

        def report(what: str, tally: Tally) -> None:
            text = f"{tally.done} of {tally.total} measurements, {_left(tally)}: {what}"
            bar.update(task, description=text, completed=tally.paid, total=tally.cost or None)

        yield report


def _left(tally: Tally) -> str:
    from ..provenance import duration

    left = tally.seconds_left
    return "time left unknown" if left is None else f"{duration(left)} left"


def reproduce(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="Experiments; by default all.")
    ] = None,
    images: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The paper's pictures; by default stand-ins.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="DIR", help="Folder of the report.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer pictures and trials.")] = False,
    jobs: Processes = None,
    list_them: Annotated[bool, typer.Option("--list", help="List the experiments.")] = False,
) -> None:
    """Measure every table and figure of the paper again and write a report."""
    with handling_errors():
        if list_them:
            for line in list_experiments():
                echo(line)
            return
        folder = check_request(names or [], jobs, out)
        from ..provenance import command_line
        from ..reproduction import reproduce as run

        command = command_line(sys.argv[1:])
        try:
            with following(
                sys.stderr.isatty(), lambda text: echo(f"symsmooth: {text}", err=True)
            ) as report:
                found = run(
                    names or [],
                    images=images,
                    out=folder,
                    quick=quick,
                    jobs=jobs,
                    command=command,
                    report=report,
                )
        except KeyboardInterrupt:
            echo(
                "symsmooth: finished measurements are kept; run the same command to continue",
                err=True,
            )
            raise
        for failure in found.failures:
            print_error(failure, 1)
        echo(
            f"the report is {folder / 'report.html'}; its tables are in {folder / 'reproduction.md'}"
        )
        if found.failures:
            raise typer.Exit(1)
