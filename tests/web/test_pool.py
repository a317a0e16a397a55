"""Work in processes: it waits for its turn, answers, stops, hangs, dies, and outlives nobody."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from symsmooth.core.parallel import Cancelled
from symsmooth.web import pool as web_pool
from symsmooth.web.pool import Pool, Run
from symsmooth.web.settings import PageError

from .. import serving
from ..serving import run_apart, wait_for


@pytest.fixture(autouse=True)
def tasks_of_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_pool, "TASKS", "tests.serving:")


def with_pool(test: Callable[[Pool], Awaitable[None]]) -> None:
    """Run a test with a pool of one process, which is closed in the end."""

    async def run() -> None:
        pool = Pool(1, 2**28)
        try:
            await asyncio.wait_for(test(pool), 60)
        finally:
            await pool.close()

    run_apart(run())


async def until(what: Callable[[], object]) -> None:
    while not what():
        await asyncio.sleep(0.01)


async def process_of(pool: Pool) -> int:
    """The process that answers; what it prints is no answer."""
    pid: int = await pool.submit("chatter").outcome()
    return pid


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_a_process_answers_and_is_kept() -> None:
    async def test(pool: Pool) -> None:
        first = await process_of(pool)
        assert first != os.getpid()
        with pytest.raises(PageError, match=r"^what went wrong$"):
            await pool.submit("fail", "expected").outcome()
        with pytest.raises(RuntimeError, match=r"^ZeroDivisionError$"):
            await pool.submit("fail", "unexpected").outcome()
        with pytest.raises(PageError, match="not enough memory"):
            await pool.submit("take_memory").outcome()
        assert await process_of(pool) == first

    with_pool(test)


@pytest.mark.parametrize(("work", "message"), [("hang", "took more than 1 s"), ("die", "memory")])
def test_a_process_that_hangs_or_dies_is_replaced(work: str, message: str) -> None:
    async def test(pool: Pool) -> None:
        before = await process_of(pool)
        with pytest.raises(PageError, match=message):
            await pool.submit(work, seconds=1.0).outcome()
        assert is_gone(before)
        assert await process_of(pool) not in (before, os.getpid())

    with_pool(test)


def test_a_process_that_dies_between_two_calls_is_not_noticed() -> None:
    async def test(pool: Pool) -> None:
        before = await process_of(pool)
        os.kill(before, 9)
        await until(lambda: not any(worker.alive for worker in pool._workers))
        assert await process_of(pool) != before

    with_pool(test)


@pytest.mark.parametrize(("work", "kept"), [("wait_to_be_stopped", True), ("hang", False)])
def test_work_stops_when_asked_to(
    work: str, kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once it has begun; what listens has all the time it needs, what does not is killed."""
    monkeypatch.setattr(web_pool, "_PATIENCE", 600.0 if kept else 0.1)

    async def test(pool: Pool) -> None:
        before, began = await process_of(pool), tmp_path / "began"
        run = pool.submit(work, str(began))
        await until(began.exists)
        run.stop()
        with pytest.raises(Cancelled):
            await run.outcome()
        assert (await process_of(pool) == before) == kept  # a stop is for one run alone

    with_pool(test)


def test_a_stop_that_was_heard_does_not_kill_what_comes_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(web_pool, "_PATIENCE", 0.5)

    async def test(pool: Pool) -> None:
        first = pool.submit("wait_to_be_stopped")
        await until(lambda: first.fraction)
        first.stop()
        second = pool.submit("wait_to_be_stopped")
        await until(lambda: second.fraction)
        await asyncio.sleep(1.0)
        assert not second.finished

    with_pool(test)


def test_first_come_first_done_and_who_waits_is_gone_at_once() -> None:
    async def test(pool: Pool) -> None:
        first, second, third = (pool.submit("wait_to_be_stopped") for _ in range(3))
        await until(lambda: first.fraction)
        assert [run.ahead for run in (first, second, third)] == [0, 1, 2]
        assert second.seconds is None
        second.stop()
        with pytest.raises(Cancelled, match="before it began"):
            await second.outcome()
        assert third.ahead == 1
        first.stop()
        await until(lambda: third.fraction)
        with pytest.raises(Cancelled, match="stopped during waiting"):
            await first.outcome()
        assert third.ahead == 0
        assert third.seconds is not None

    with_pool(test)


def test_progress_never_falls() -> None:
    run = Run("work")
    for fraction, kept in ((0.2, 0.2), (0.1, 0.2), (0.7, 0.7), (2.0, 1.0)):
        run.hear("progress", fraction, "working")
        assert (run.fraction, run.what) == (kept, "working")


def test_closing_ends_work_and_who_waits(tmp_path: Path) -> None:
    async def test(pool: Pool) -> None:
        pid, began = await process_of(pool), tmp_path / "began"
        runs = [pool.submit("hang", str(began)) for _ in range(2)]
        await until(began.exists)
        await pool.close()
        for run in runs:
            with pytest.raises(Cancelled):
                await run.outcome()
        assert is_gone(pid)
        assert len(pool) == 0

    with_pool(test)


def test_processes_do_not_outlive_who_started_them(tmp_path: Path) -> None:
    code = (
        "import asyncio, os\n"
        "from symsmooth.web import pool\n"
        "pool.TASKS = 'tests.serving:'\n"
        "async def main():\n"
        "    p = pool.Pool(1, 2**28)\n"
        "    print(await p.submit('chatter').outcome(), flush=True)\n"
        f"    began = {str(tmp_path / 'began')!r}\n"
        "    p.submit('hang', began)\n"
        "    while not os.path.exists(began): await asyncio.sleep(0.01)\n"
        "    os.kill(os.getpid(), 9)\n"
        "asyncio.run(main())\n"
    )
    path = os.pathsep.join([serving.ROOT, os.environ.get("PYTHONPATH", "")])
    # Uncounted: to write down what was covered, against a loop that never lets go, takes seconds.
    environment = {k: v for k, v in os.environ.items() if not k.startswith("COVERAGE_")}
    ended = subprocess.run(
        [sys.executable, "-c", code], env={**environment, "PYTHONPATH": path},
        stdout=subprocess.PIPE, text=True, timeout=60,
    )  # fmt: skip
    pid = int(ended.stdout)
    wait_for(lambda: is_gone(pid), 30.0)


def test_processes_start_when_somebody_comes_and_rest_when_nobody_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A server nobody uses takes no memory for work."""
    monkeypatch.setattr(web_pool, "_REST", 1.0)

    async def test(pool: Pool) -> None:
        assert len(pool) == 0
        pool.wake()
        assert len(pool) == 1
        pid = await process_of(pool)
        await until(lambda: len(pool) == 0 and is_gone(pid))
        assert await process_of(pool) != pid
        run: Any = pool.submit("wait_to_be_stopped")
        await asyncio.sleep(2.5)
        assert not run.finished  # what works is no reason to rest

    with_pool(test)


def test_who_comes_while_processes_are_ended_is_served_by_others() -> None:
    async def test(pool: Pool) -> None:
        pid = await process_of(pool)
        pool._rest()
        assert await process_of(pool) != pid

    with_pool(test)
