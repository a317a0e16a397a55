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
def test_progress_counts_up_to_the_total(workers) -> None:
    seen: list[tuple[str, int, int]] = []
    with Pool(workers, lambda *report: seen.append(report)) as pool:
        list(pool.map(abs, range(7), "work"))
    assert seen == [("work", i, 7) for i in range(1, 8)]


@pytest.mark.parametrize("workers", [1, 2])
def test_an_exception_from_progress_stops_the_work(workers) -> None:
    started: list[int] = []
    before = threading.active_count()

    class Cancelled(Exception):
        pass

    def stop(stage: str, done: int, total: int) -> None:
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

    def watch(stage: str, done: int, total: int) -> None:
        seen.append(done)
        if done == 5:
            stop.set()

    with (
        pytest.raises(Cancelled, match="stopped during work"),
        Pool(workers, stop_when(stop, watch)) as pool,
    ):
        list(pool.map(abs, range(100), "work"))
    assert seen == [1, 2, 3, 4, 5]


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
