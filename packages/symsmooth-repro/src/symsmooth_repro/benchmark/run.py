"""Plan a benchmark, measure what is not measured yet, write what was found."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from symsmooth.io import FileError, atomic_write

from ..processes import measure_all
from ..provenance import ROOT, provenance
from ..runner import Tally
from ..store import Store, code_digest
from .folders import PictureSet, find_sets
from .measuring import Measurement, measure
from .model import NAME, Benchmark, Findings, Row
from .peers import PEERS
from .tables import to_csv, to_json, to_markdown
from .trials import plan_trials

Report = Callable[[str, Tally], object]


def run_benchmark(asked: Benchmark, report: Report = lambda text, tally: None) -> Findings:
    """Measure and write ``benchmark.md``, ``.csv`` and ``.json`` into the folder that is asked for.

    Finished measurements are kept in ``cells`` there; the same call goes on where another stopped.
    """
    start, load = time.monotonic(), _load_average()
    findings = Findings(asked, find_sets(asked.folder))
    plan = plan_measurements(asked, findings.sets)
    store = Store(asked.out / "cells")
    try:
        store.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{asked.out}: cannot be made: {error.strerror}") from error
    _measure(findings, plan, store, report)
    findings.facts = _facts(asked, time.monotonic() - start, load)
    for ending, text in (
        ("md", to_markdown(findings)), ("csv", to_csv(findings)), ("json", to_json(findings)),
    ):  # fmt: skip
        with atomic_write(asked.out / f"{NAME}.{ending}") as handle:
            handle.write(text.encode("utf-8"))
    return findings


def plan_measurements(asked: Benchmark, sets: Sequence[PictureSet]) -> list[Measurement]:
    """Return what is to be measured; contestants take turns on each picture."""
    return [
        Measurement(trial, contestant, known, asked.workers, asked.repeats)
        for found in sets
        for trial in plan_trials(found, list(asked.noises), asked.grey, asked.every)
        for contestant in asked.contestants
        for known in asked.modes
    ]


def _measure(findings: Findings, plan: list[Measurement], store: Store, report: Report) -> None:
    keys = [key_of(measurement) for measurement in plan]
    known = {key: store.load(key) for key in keys}
    todo = sum(result is None for result in known.values())
    tally = Tally(todo, float(todo), len(plan) - todo)
    report("", tally)
    tasks = {key: each for key, each in zip(keys, plan, strict=True) if known[key] is None}
    for key, answer in measure_all(measure, tasks, jobs=1):  # alone: times are taken
        tally.done += 1
        tally.paid += 1.0
        if isinstance(answer, str):
            findings.failures.append(f"{describe(tasks[key])}: {answer}")
        else:
            store.save(key, answer)
            known[key] = answer
        report(describe(tasks[key]), tally)
    for key, measurement in zip(keys, plan, strict=True):
        result = known[key]
        if result is not None:
            findings.rows.append(Row(measurement, result))


def describe(measurement: Measurement) -> str:
    """Return a measurement in a few words."""
    trial = measurement.trial
    mode = "noise known" if measurement.known else "blind"
    return (
        f"{measurement.contestant.label}, {trial.group}/{trial.source.name}, {trial.noise}, {mode}"
    )


def key_of(measurement: Measurement) -> str:
    """Return the name of a result: all that it depends on, code and libraries too."""
    trial, contestant = measurement.trial, measurement.contestant
    measured_by = [_own_digest()]
    if contestant.peer:
        measured_by.append(PEERS[contestant.peer].version)
    if not contestant.peer or not measurement.known:  # a peer that knows nothing gets our level
        measured_by.append(code_digest())
    depends_on = [
        [_file_digest(path) for path in trial.files], str(trial.noise), trial.seed, trial.grey,
        contestant.method, dict(contestant.options), contestant.peer, measurement.known,
        measurement.workers, measurement.repeats, measured_by,
    ]  # fmt: skip
    text = json.dumps(depends_on, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def _file_digest(path: Path) -> str:
    found = path.stat()
    return _digest(path, found.st_mtime_ns, found.st_size)


@cache  # a picture is in the plan many times
def _digest(path: Path, mtime: int, size: int) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@cache
def _own_digest() -> str:
    """Return a short name of the code that measures."""
    here = Path(__file__).parent
    names = ("trials.py", "peers.py", "contestants.py", "measuring.py")
    files = [
        *(here / name for name in names),
        ROOT / "core" / "metrics.py",
        here.parent / "camera.py",
    ]
    content = b"".join(hashlib.sha256(path.read_bytes()).digest() for path in files)
    return hashlib.sha256(content).hexdigest()[:16]


def _load_average() -> str:
    """Return how busy the machine was in the last minute, where it tells."""
    try:
        return f"{os.getloadavg()[0]:.2f}"
    except (AttributeError, OSError):
        return ""


def _facts(asked: Benchmark, seconds: float, load: str) -> dict[str, str]:
    """Return what a reader must know to believe the numbers."""
    origin = provenance(asked.command, 1, seconds)
    peers = {PEERS[c.peer].version for c in asked.contestants if c.peer}
    repeats = "once" if asked.repeats == 1 else f"{asked.repeats} times, the shortest counts"
    quiet = f"; load of the machine at the start {load}" if load else ""
    facts = {
        "Pictures": f"**{asked.label}**" if asked.label else "",
        "Date": origin.date,
        "symsmooth": f"{origin.version}{f', commit {origin.commit}' if origin.commit else ''}",
        "Command": origin.command,
        "Versions": ", ".join([origin.packages, *sorted(peers - set(origin.packages.split(", ")))]),
        "Machine": origin.machine,
        "Time": f"{asked.workers} thread{'s' * (asked.workers > 1)}, one picture after another in a "
        f"process of its own, each {repeats}{quiet}",
    }
    return {name: text for name, text in facts.items() if text}
