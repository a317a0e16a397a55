"""The engine: order, progress, cancellation, tiles that cover the grid once."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from symsmooth.core.parallel import Cancelled, Pool, stop_when


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_results_come_in_order_whatever_finishes_first(workers) -> None:
    def slow_first(i: int) -> int:
        time.sleep(0.002 * (20 - i) / 20)
        return i * i

    with Pool(workers) as pool:
        results = list(pool.map(slow_first, range(20), "squares"))
    assert results == [(i, i * i) for i in range(20)]


@pytest.mark.parametrize("workers", [1, 3])
def test_progress_goes_from_0_to_1(workers) -> None:
    seen: list[tuple[float, str]] = []
    with Pool(workers, lambda *report: seen.append(report)) as pool:
        list(pool.map(abs, range(8), "work"))
    assert seen == [*((i / 8, "work") for i in range(1, 9)), (1.0, "work")]


def test_parts_of_parts_have_their_shares() -> None:
    seen: list[tuple[float, str]] = []
    with Pool(1, lambda *report: seen.append(report)) as pool:
        with pool.part(0.5, "first"):
            pool.expect(2)
            list(pool.map(abs, range(1), "a"))
            list(pool.map(abs, range(1), "b"))
        for _ in pool.parts(range(2), "block"):
            list(pool.map(abs, range(1), "c"))
    assert seen == [
        (0.25, "first: a"), (0.5, "first: b"), (0.75, "block 1 of 2: c"), (1.0, "block 2 of 2: c"),
        (1.0, "c"),
    ]  # fmt: skip


def test_progress_never_falls_whatever_was_expected() -> None:
    """Too few maps, too many, none, loops that end early, maps inside of maps, pools inside of pools."""
    seen: list[float] = []
    with Pool(1, lambda fraction, _: seen.append(fraction)) as pool:
        with pool.part(0.3):
            pool.expect(3)
            for _ in range(7):
                list(pool.map(abs, range(2), "too many"))
        for number in pool.parts(range(5)):
            for _ in pool.map(abs, range(2), "outer"):
                list(pool.map(abs, range(3), "inner"))
            if number == 2:
                break
        with Pool(1, pool.nested(0.5)) as other:
            list(other.map(abs, range(3), "other"))
        list(pool.map(abs, [], "nothing"))
    assert seen == sorted(seen)
    assert seen[-1] == 1.0
    assert seen[-2] < 1.0


def test_a_pool_that_failed_is_not_done() -> None:
    seen: list[float] = []
    with pytest.raises(ZeroDivisionError), Pool(1, lambda f, _: seen.append(f)) as pool:
        list(pool.map(lambda i: 1 // i, [1, 0], "work"))
    assert seen == [0.5]


@pytest.mark.parametrize("workers", [1, 2])
def test_an_exception_from_progress_stops_the_work(workers) -> None:
    started: list[int] = []
    before = threading.active_count()

    class Cancelled(Exception):
        pass

    def stop(fraction: float, what: str) -> None:
        raise Cancelled

    def task(i: int) -> None:
        started.append(i)
        time.sleep(0.001)

    with pytest.raises(Cancelled), Pool(workers, stop) as pool:
        list(pool.map(task, range(1000), "work"))
    assert len(started) < 20
    assert threading.active_count() <= before


@pytest.mark.parametrize("workers", [1, 2])
def test_an_event_stops_the_work(workers) -> None:
    stop, seen = threading.Event(), []

    def watch(fraction: float, what: str) -> None:
        seen.append(fraction)
        if fraction == 0.05:
            stop.set()

    with (
        pytest.raises(Cancelled, match="stopped during work"),
        Pool(workers, stop_when(stop, watch)) as pool,
    ):
        list(pool.map(abs, range(100), "work"))
    assert seen == [0.01, 0.02, 0.03, 0.04, 0.05]


def test_an_exception_in_a_task_reaches_the_caller() -> None:
    with pytest.raises(ZeroDivisionError), Pool(2) as pool:
        list(pool.map(lambda i: 1 // i, [2, 1, 0, 3], "work"))


def test_pools_nest() -> None:
    pool = Pool(2)
    with pool, pool:
        assert [r for _, r in pool.map(abs, [-1, -2], "work")] == [1, 2]
    assert pool._threads is None


@pytest.mark.parametrize("bad", [0, -1, True])
def test_workers_must_be_positive(bad) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Pool(bad)


def test_the_blas_has_one_thread_until_the_last_pool_is_done() -> None:
    from threadpoolctl import threadpool_info

    def threads() -> set[int]:
        return {info["num_threads"] for info in threadpool_info() if info["user_api"] == "blas"}

    before = threads()
    ours = Pool(1)
    with ThreadPoolExecutor(1) as other:  # as when two threads of a server overlap
        theirs = other.submit(Pool(1).__enter__).result()
        ours.__enter__()
        other.submit(theirs.__exit__, None, None, None).result()
        assert threads() == {1}
        ours.__exit__(None, None, None)
        assert threads() == before


@pytest.mark.parametrize("workers", [0, -1, 1.5, 2.0, True, "2"])
def test_workers_are_a_whole_number(workers) -> None:
    with pytest.raises(ValueError, match="workers must be a whole number of at least 1"):
        Pool(workers)
