"""The body of a worker's process: messages in, messages out."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import IO, Any

import pytest

from symsmooth.core.parallel import Cancelled
from symsmooth.web.worker import Reporter

from ..serving import ROOT

CODE = (
    f"import sys; sys.path.insert(0, {ROOT!r}); from symsmooth.web.worker import main; main(2**28)"
)


def hear(stream: IO[bytes]) -> Any:
    """What a process says next, after its length."""
    return pickle.loads(stream.read(int.from_bytes(stream.read(8))))


def test_work_reports_how_far_it_is_now_and_then_and_stops_when_asked_to() -> None:
    sent: list[Any] = []
    stopped: set[int] = set()
    watched = Reporter(7, lambda *message: sent.append(message), stopped)
    for _ in range(100):
        watched.progress(0.5, "one")
    watched.progress(0.6, "two")
    assert sent[0] == (7, "progress", 0.5, "one")
    assert sent[-1] == (7, "progress", 0.6, "two")
    assert len(sent) < 10
    assert watched.seconds >= 0
    stopped.add(7)
    with pytest.raises(Cancelled, match="stopped during two"):
        watched.progress(0.7, "two")


def test_a_worker_answers_each_call_and_ends_when_nobody_asks() -> None:
    """What it hears and says are pickles; how work ends is said by name."""
    calls = [
        ("call", 1, "tests.serving:chatter", ()),
        ("call", 2, "tests.serving:fail", ("expected",)),
        ("call", 3, "tests.serving:fail", ("unexpected",)),
        ("stop", 4),
        ("call", 4, "tests.serving:wait_to_be_stopped", ()),
        ("call", 5, "tests.serving:take_memory", ()),
    ]
    with subprocess.Popen(
        [sys.executable, "-c", CODE], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        for call in calls:
            process.stdin.write(pickle.dumps(call))
        process.stdin.flush()
        answers = {}
        while len(answers) < 5:
            number, kind, *rest = hear(process.stdout)
            if kind != "progress":
                answers[number] = [kind, *rest[:2]]
        process.stdin.close()
        assert process.wait(30) == 0
    assert answers[1] == ["done", process.pid]
    assert answers[2] == ["failed", "expected", "what went wrong"]
    assert answers[3] == ["failed", "unexpected", "ZeroDivisionError"]
    assert answers[4] == ["failed", "cancelled", "stopped during waiting"]
    assert answers[5] == ["failed", "expected", "There is not enough memory for this."]


def test_a_worker_leaves_questions_of_units_to_the_page_and_prints_other_warnings() -> None:
    """By the class of a warning: its words do not matter."""
    with subprocess.Popen(
        [sys.executable, "-c", CODE], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(pickle.dumps(("call", 1, "tests.serving:warn_twice", ())))
        process.stdin.flush()
        assert hear(process.stdout) == (1, "done", None)
        _, printed = process.communicate(timeout=60)
    assert b"of something else" in printed
    assert b"of units" not in printed
