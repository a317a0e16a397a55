"""Processes that do the work: they answer, stop, hang, die, rest, and do not outlive who started them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from symsmooth.core.parallel import Cancelled
from symsmooth.web.workers import WorkError, Workers

from .. import serving
from ..serving import wait_for


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    started = Workers(1, 2**28)
    yield started
    started.close()


def test_a_worker_answers_and_is_kept(workers: Workers) -> None:
    first = workers.call("tests.serving:chatter")  # what is printed is no answer
    assert first != os.getpid()
    assert workers.call("tests.serving:chatter") == first
    with pytest.raises(WorkError, match=r"^what went wrong$"):
        workers.call("tests.serving:fail", "expected")
    with pytest.raises(RuntimeError, match=r"^ZeroDivisionError$"):
        workers.call("tests.serving:fail", "unexpected")
    with pytest.raises(WorkError, match="not enough memory"):
        workers.call("tests.serving:take_memory")
    assert workers.call("tests.serving:chatter") == first


@pytest.mark.parametrize(
    ("work", "message"),
    [("tests.serving:hang", "took more than 1 s"), ("tests.serving:die", "memory")],
)
def test_a_worker_that_hangs_or_dies_is_replaced(workers: Workers, work: Any, message: str) -> None:
    before = workers.call("tests.serving:chatter")
    with pytest.raises(WorkError, match=message):
        workers.call(work, seconds=1.0)
    with pytest.raises(ProcessLookupError):
        os.kill(before, 0)
    assert workers.call("tests.serving:chatter") not in (before, os.getpid())


def test_a_worker_that_dies_between_two_calls_is_not_noticed(workers: Workers) -> None:
    before = workers.call("tests.serving:chatter")
    os.kill(before, 9)
    wait_for(lambda: not any(worker.alive for worker in workers._idle))
    assert workers.call("tests.serving:chatter") != before


@pytest.mark.parametrize(
    ("work", "kept"), [("tests.serving:wait_to_be_stopped", True), ("tests.serving:hang", False)]
)
def test_work_stops_when_asked_to(
    workers: Workers, work: Any, kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once it has begun; what listens has all the time it needs, what does not is killed."""
    monkeypatch.setattr("symsmooth.web.workers._PATIENCE", 600.0 if kept else 0.1)
    before, began = workers.call("tests.serving:chatter"), tmp_path / "began"
    with pytest.raises(Cancelled):
        workers.call(work, str(began), stopping=began.exists)
    assert (workers.call("tests.serving:chatter") == before) == kept  # a stop is for one call alone


def test_closing_ends_work_and_who_waits_for_a_worker(tmp_path: Path) -> None:
    closing = Workers(1, 2**28)
    pid = closing.call("tests.serving:chatter")
    with ThreadPoolExecutor(2) as people:
        began = tmp_path / "began"
        waiting = [people.submit(closing.call, "tests.serving:hang", str(began)) for _ in range(2)]
        wait_for(began.exists)
        closing.close()
        for each in waiting:
            with pytest.raises((Cancelled, WorkError)):
                each.result()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_workers_do_not_outlive_who_started_them(tmp_path: Path) -> None:
    code = (
        "import os, threading; from symsmooth.web.workers import Workers; "
        "w = Workers(1, 2**28); print(w.call('tests.serving:chatter'), flush=True); "
        f"began = {str(tmp_path / 'began')!r}; work = ('tests.serving:hang', began); "
        "threading.Thread(target=w.call, args=work, daemon=True).start(); "
        "from tests.serving import wait_for; "
        "wait_for(lambda: os.path.exists(began)); os.kill(os.getpid(), 9)"
    )
    path = os.pathsep.join([serving.ROOT, os.environ.get("PYTHONPATH", "")])
    # Uncounted: to write down what was covered, against a loop that never lets go, takes seconds.
    environment = {k: v for k, v in os.environ.items() if not k.startswith("COVERAGE_")}
    done = subprocess.run(
        [sys.executable, "-c", code], env={**environment, "PYTHONPATH": path},
        stdout=subprocess.PIPE, text=True, timeout=60,
    )  # fmt: skip
    pid = int(done.stdout)

    def is_gone() -> bool:
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        except FileNotFoundError:
            return True

    wait_for(is_gone, 30.0)


def test_workers_start_when_somebody_comes_and_rest_when_nobody_does(clock: Any) -> None:
    """A server nobody uses takes no memory for work."""
    resting = Workers(2, 2**28, clock=clock)
    assert len(resting) == 0
    resting.wake()
    assert len(resting) == 2
    pid = resting.call("tests.serving:chatter")
    wait_for(lambda: len(resting._idle) == 2)
    clock.now += 599
    resting.sweep()
    assert len(resting) == 2
    clock.now += 2
    resting.sweep()
    assert len(resting) == 0
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert resting.call("tests.serving:chatter") != pid
    resting.close()
