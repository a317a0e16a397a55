"""Run cells in worker processes; a result is on disk before it is reported.

Each worker is a fresh process with one thread that takes a cell, measures, writes the result, and
asks for the next.  Ctrl-C ends the workers at once: at most the cells in work are lost.
"""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, cast

from symsmooth.core.image import Array

from .images import ImageSet
from .model import Cell, Key, Plan, Result
from .store import Store, key_of

_VIEW = ("side", "crop")  # options of measure.view, the rest are the task's


@dataclass
class Tally:
    """How far a run is; what follows from first results is added to it."""

    total: int = 0
    cost: float = 0.0  # of the cells that are to be measured
    reused: int = 0
    done: int = 0
    paid: float = 0.0
    started: float = field(default_factory=time.monotonic)

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.started

    @property
    def seconds_left(self) -> float | None:
        """What the rest will take if it goes on as so far; None before anything is known."""
        if self.paid <= 0.0:
            return None
        return self.elapsed * (self.cost - self.paid) / self.paid


Report = Callable[[str, Tally], object]  # called with what was just finished


@dataclass
class Run:
    """Results of cells, and what failed."""

    results: dict[str, Result] = field(default_factory=dict)  # by the store's key
    failures: dict[str, str] = field(default_factory=dict)
    tally: Tally = field(default_factory=Tally)

    @property
    def reused(self) -> int:
        """Cells that were in the store already."""
        return self.tally.reused

    def of(self, plan: Plan, image_set: ImageSet) -> dict[Key, Result | None]:
        """Return the results of a plan under the plan's own keys; None where a cell failed."""
        return {name: self.results.get(key_of(cell, image_set)) for name, cell in plan.items()}

    def failures_of(self, plan: Plan, image_set: ImageSet) -> list[str]:
        """Return what went wrong with the cells of a plan, each message once."""
        keys = {key_of(cell, image_set) for cell in plan.values()}
        return sorted({text for key, text in self.failures.items() if key in keys})


def run_cells(
    run: Run, cells: list[Cell], image_set: ImageSet, store: Store, jobs: int, report: Report
) -> None:
    """Add the results of cells to a run: from the store what is there, the rest measured."""
    wanted = {key_of(cell, image_set): cell for cell in cells}
    todo: dict[str, Cell] = {}
    tally = run.tally
    for key, cell in wanted.items():
        if key in run.results or key in run.failures:
            continue
        found = store.load(key)
        if found is None:
            todo[key] = cell
        else:
            run.results[key] = found
            tally.reused += 1
    tally.total += len(todo)
    tally.cost += sum(cell.cost for cell in todo.values())
    report("", tally)
    for key, result in _measure(todo, image_set, store, jobs):
        if isinstance(result, str):
            run.failures[key] = f"{describe(todo[key])}: {result}"
        else:
            run.results[key] = result
        tally.done += 1
        tally.paid += todo[key].cost
        report(describe(todo[key]), tally)


def describe(cell: Cell) -> str:
    """Return a cell in a few words."""
    words = [cell.options.get("method", cell.task), cell.picture]
    if "sigma" in cell.options:
        words.append(f"sigma {cell.options['sigma']:g}")
    return " ".join(str(word) for word in words)


def _measure(
    todo: Mapping[str, Cell], image_set: ImageSet, store: Store, jobs: int
) -> Iterator[tuple[str, Result | str]]:
    """Yield (key, result) as they come, costly cells first; a message instead where one failed."""
    order = sorted(todo, key=lambda key: -todo[key].cost)
    waiting = iter(order)
    with _workers(min(jobs, len(order)), store) as workers:
        busy: dict[Connection, str] = {}

        def give(connection: Connection) -> None:
            key = next(waiting, None)
            if key is not None:
                cell = todo[key]
                busy[connection] = key
                with suppress(OSError):  # the worker is gone: seen when it should answer
                    connection.send((key, cell.task, image_set[cell.picture], dict(cell.options)))

        for connection in list(workers):
            give(connection)
        while busy:
            for ready in wait(list(busy)):
                connection = cast(Connection, ready)
                key = busy.pop(connection)
                try:
                    outcome = connection.recv()
                except (EOFError, OSError):  # the worker is gone: killed, or out of memory
                    workers[connection].join()
                    yield key, f"its process ended with {workers.pop(connection).exitcode}"
                    connection = _start(store, workers)
                else:
                    yield key, outcome
                give(connection)


@contextmanager
def _workers(jobs: int, store: Store) -> Iterator[dict[Connection, BaseProcess]]:
    """Start processes; whatever happens, end them."""
    workers: dict[Connection, BaseProcess] = {}
    try:
        for _ in range(jobs):
            _start(store, workers)
        yield workers
    finally:
        for process in workers.values():
            process.kill()
        for process in workers.values():
            process.join()


def _start(store: Store, workers: dict[Connection, BaseProcess]) -> Connection:
    context = multiprocessing.get_context("spawn")  # BLAS's threads do not survive a fork
    ours, theirs = context.Pipe()
    process = context.Process(target=serve, args=(theirs, store), daemon=True)
    process.start()
    theirs.close()
    workers[ours] = process
    return ours


def serve(connection: Connection, store: Store) -> None:
    """Measure what is asked for until nobody asks: the body of a worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        while True:
            try:
                key, task, pixels, options = connection.recv()
            except EOFError:
                return
            try:
                outcome: Result | str = measure_cell(task, pixels, options)
                store.save(key, outcome)  # type: ignore[arg-type]
            except Exception as error:
                outcome = f"{type(error).__name__}: {' '.join(str(error).split())}"
            connection.send(outcome)


def measure_cell(task: str, pixels: Array, options: Mapping[str, Any]) -> Result:
    """Measure one cell here and now."""
    from . import measure

    shape = {name: options[name] for name in _VIEW if name in options}
    rest = {name: value for name, value in options.items() if name not in _VIEW}
    start = time.perf_counter()
    result: Result = measure.TASKS[task](measure.view(pixels, **shape), **rest)
    return result | {"took": time.perf_counter() - start}
