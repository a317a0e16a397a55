"""``symsmooth reproduce``: progress with the time left, and how it ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from .options import UsageError

if TYPE_CHECKING:
    from ..experiments.runner import Tally

_QUIET_SECONDS = 20.0  # between lines where there is no bar


def listing() -> list[str]:
    """Return the experiments, a line each."""
    from ..experiments import find

    return [f"{e.name:<21}{e.item:<22}{e.title}" for e in find()]


def check(names: list[str], jobs: int | None, out: Path | None) -> Path:
    """Refuse what cannot work before anything is loaded; return the folder to write to."""
    from ..experiments import NAMES

    unknown = [name for name in names if name not in NAMES]
    if unknown:
        raise UsageError(f"there is no experiment {unknown[0]!r}; use {', '.join(NAMES)}")
    if out is None:
        raise UsageError("--out DIR is missing: the folder the report goes to")
    if out.exists() and not out.is_dir():
        raise UsageError(f"--out {out} is a file; give a folder")
    return out


@contextmanager
def telling(show_bar: bool, say: Callable[[str], None]) -> Iterator[Callable[[str, Tally], None]]:
    """Give what the runner tells of finished cells: a bar on a terminal, else a line now and then."""
    if show_bar:
        with _bar() as tell:
            yield tell
        return
    last, known = [time.monotonic()], [0]

    def tell_lines(text: str, tally: Tally) -> None:
        now = time.monotonic()
        if not text:
            if tally.reused > known[0]:
                known[0] = tally.reused
                say(f"{tally.reused} cells are there already")
            if tally.total:
                say(f"{tally.total} cells to measure")
        elif now - last[0] >= _QUIET_SECONDS or tally.done == tally.total:
            last[0] = now
            say(f"{tally.done} of {tally.total} cells, {_left(tally)}")

    yield tell_lines


@contextmanager
def _bar() -> Iterator[Callable[[str, Tally], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    text = TextColumn("{task.description}", markup=False)
    with Progress(*columns, text, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=None)

        def tell(what: str, tally: Tally) -> None:
            told = f"{tally.done} of {tally.total} cells, {_left(tally)}: {what}"
            bar.update(task, description=told, completed=tally.paid, total=tally.cost or None)

        yield tell


def _left(tally: Tally) -> str:
    from ..experiments.provenance import duration

    left = tally.seconds_left
    return "time left unknown" if left is None else f"{duration(left)} left"
