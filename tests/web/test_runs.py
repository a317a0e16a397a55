"""Work that waits for its turn, reports how far it is, and really stops."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from symsmooth.core.parallel import Cancelled
from symsmooth.web.runs import Run, Runs

from ..serving import wait_for


@pytest.fixture
def runs() -> Iterator[Runs]:
    made = Runs(1)
    yield made
    made.close()


def endless(run: Run) -> str:
    while True:
        run.progress(0.5, "working")
        time.sleep(0.005)


def test_first_come_first_done_one_at_a_time(runs: Runs) -> None:
    first, second, third = (runs.submit(endless) for _ in range(3))
    wait_for(lambda: first.fraction)
    assert [runs.ahead(run) for run in (first, second, third)] == [0, 1, 2]
    assert second.seconds is None
    second.stop()  # who waits is gone at once
    assert second.finished
    assert runs.ahead(third) == 1
    with pytest.raises(Cancelled):
        second.outcome()
    first.stop()
    wait_for(lambda: third.fraction)
    with pytest.raises(Cancelled, match="stopped during working"):
        first.outcome()


def test_what_a_run_tells_and_what_it_raises(runs: Runs) -> None:
    def fails(run: Run) -> str:
        raise ValueError("no")

    good, bad = runs.submit(lambda run: "done"), runs.submit(fails)
    wait_for(lambda: bad.finished)
    assert good.outcome() == "done"
    with pytest.raises(ValueError, match="no"):
        bad.outcome()


def test_one_group_leaves_room_for_others() -> None:
    """Somebody with many files, each of which hangs, does not keep all others waiting."""
    made = Runs(2, 1)
    many = [made.submit(endless, "many") for _ in range(5)]
    wait_for(lambda: many[0].fraction)
    other = made.submit(lambda run: "done", "other")
    wait_for(lambda: other.finished)
    assert [run.seconds is None for run in many] == [False, True, True, True, True]
    many[0].stop()
    wait_for(lambda: many[1].fraction)  # the next of the group has its turn
    made.close()


def test_who_has_nothing_at_work_comes_first() -> None:
    made = Runs(2)
    first, second, third = (made.submit(endless, "many") for _ in range(3))
    wait_for(lambda: first.fraction and second.fraction)
    other = made.submit(endless, "other")
    first.stop()
    wait_for(lambda: other.fraction)
    assert third.seconds is None
    made.close()


def test_closing_stops_everything() -> None:
    made = Runs(2)
    started = [made.submit(endless) for _ in range(4)]
    made.close()
    assert all(run.finished for run in started)


def test_groups_take_turns() -> None:
    """Somebody with many files does not keep others waiting for all of them."""
    made = Runs(1)
    order: list[str] = []
    first = made.submit(endless, "many")
    wait_for(lambda: first.fraction)
    waiting = [made.submit(lambda run, n=n: order.append(f"many {n}"), "many") for n in range(3)]
    waiting += [made.submit(lambda run, n=n: order.append(f"other {n}"), "other") for n in range(2)]
    assert [made.ahead(run) for run in waiting] == [2, 4, 5, 1, 3]
    first.stop()
    wait_for(lambda: all(run.finished for run in waiting))
    assert order == ["other 0", "many 0", "other 1", "many 1", "many 2"]
    made.close()


def test_progress_never_falls() -> None:
    run = Run(lambda run: None)
    for fraction, kept in ((0.2, 0.2), (0.1, 0.2), (0.7, 0.7), (2.0, 1.0)):
        run.progress(fraction, "working")
        assert run.fraction == kept
