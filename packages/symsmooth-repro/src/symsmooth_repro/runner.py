"""Run cells in processes of one thread each; a result is on disk before it is reported.

Ctrl-C ends the processes at once: at most the cells in work are lost.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from symsmooth.core.image import Array

from .images import ImageSet
from .model import Cell, Key, Plan, Result
from .processes import measure_all
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
    tasks = {
        key: (todo[key].task, image_set[todo[key].picture], dict(todo[key].options))
        for key in sorted(todo, key=lambda key: -todo[key].cost)  # costly ones first
    }
    for key, answer in measure_all(measure_task, tasks, jobs):
        if isinstance(answer, str):
            run.failures[key] = f"{describe(todo[key])}: {answer}"
        else:
            store.save(key, answer)
            run.results[key] = answer
        tally.done += 1
        tally.paid += todo[key].cost
        report(describe(todo[key]), tally)


def describe(cell: Cell) -> str:
    """Return a cell in a few words."""
    words = [cell.options.get("method", cell.task), cell.picture]
    if "sigma" in cell.options:
        words.append(f"sigma {cell.options['sigma']:g}")
    return " ".join(str(word) for word in words)


def measure_task(task: tuple[str, Array, dict[str, Any]]) -> Result:
    """Measure one cell with one thread: what the processes do."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        return measure_cell(*task)


def measure_cell(task: str, pixels: Array, options: Mapping[str, Any]) -> Result:
    """Measure one cell here and now."""
    from . import measure

    shape = {name: options[name] for name in _VIEW if name in options}
    rest = {name: value for name, value in options.items() if name not in _VIEW}
    start = time.perf_counter()
    result: Result = measure.TASKS[task](measure.view(pixels, **shape), **rest)
    return result | {"took": time.perf_counter() - start}
