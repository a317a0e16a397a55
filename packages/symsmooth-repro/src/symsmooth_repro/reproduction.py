"""Run experiments and write what they found: the body of ``symsmooth reproduce``."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from symsmooth.core.parallel import default_workers
from symsmooth.core.plotting import require_matplotlib
from symsmooth.io import FileError

from . import find
from .images import open_image_set
from .model import Entry, Experiment, NotRunnable, Plan, Reproduction, Results, Setting
from .provenance import provenance
from .report import write
from .runner import Run, Tally, run_cells
from .store import Store

Report = Callable[[str, Tally], object]


def reproduce(
    names: Sequence[str] = (),
    *,
    images: Path | None = None,
    out: Path,
    quick: bool = False,
    jobs: int | None = None,
    command: str = "",
    report: Report = lambda text, tally: None,
) -> Reproduction:
    """Run experiments (all if none is named) and write the report into ``out``.

    Finished cells are kept in ``out/cells``; the same call goes on where an interrupted one stopped.

    Parameters
    ----------
    names : sequence of str
        Experiments, see :data:`symsmooth_repro.NAMES`.
    images : Path or None
        Folder of the paper's pictures; None takes scikit-image's own, which are others.
    out : Path
        Folder of the report; made if it is not there.
    quick : bool
        Fewer pictures and trials.
    jobs : int or None
        Processes; None takes as many as there are cores.
    command : str
        The command as it was given, for the report.
    report : callable
        Called as ``report(what, tally)`` whenever a cell is finished.
    """
    require_matplotlib()
    experiments = find(names)
    setting = Setting(open_image_set(images), quick)
    store = _open_store(out)
    jobs = default_workers() if jobs is None else jobs
    start = time.monotonic()
    run = Run()
    plans: dict[str, Plan | str] = {e.name: _plan(e, setting) for e in experiments}
    cells = [c for plan in plans.values() if isinstance(plan, dict) for c in plan.values()]
    run_cells(run, cells, setting.image_set, store, jobs, report)
    for experiment in experiments:
        plan = plans[experiment.name]
        if experiment.follow is not None and isinstance(plan, dict):
            plan |= experiment.follow(setting, run.of(plan, setting.image_set))
    cells = [c for plan in plans.values() if isinstance(plan, dict) for c in plan.values()]
    run_cells(run, cells, setting.image_set, store, jobs, report)
    entries = [_entry(e, plans[e.name], setting, run) for e in experiments]
    facts = provenance(command, jobs, time.monotonic() - start)
    measured = len(run.results) + len(run.failures) - run.reused
    found = Reproduction(entries, setting, facts, measured, run.reused)
    write(found, out)
    return found


def _open_store(out: Path) -> Store:
    store = Store(out / "cells")
    try:
        store.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{out}: cannot be made: {error.strerror}") from error
    return store


def _plan(experiment: Experiment, setting: Setting) -> Plan | str:
    """Return an experiment's cells, or why it cannot run."""
    try:
        return experiment.plan(setting)
    except NotRunnable as error:
        return str(error)


def _entry(experiment: Experiment, plan: Plan | str, setting: Setting, run: Run) -> Entry:
    if isinstance(plan, str):
        return Entry(experiment, why_not=plan)
    results: Results = run.of(plan, setting.image_set)
    seconds = sum(result["took"] for result in results.values() if result is not None)
    failures = run.failures_of(plan, setting.image_set)
    if not any(result is not None for result in results.values()):
        return Entry(experiment, why_not="every cell failed", failures=failures)
    return Entry(experiment, experiment.report(setting, results), "", failures, seconds)
