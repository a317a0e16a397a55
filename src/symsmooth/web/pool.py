"""Processes that touch pictures, so that no file can stop, fill or crash the server.

Work waits for its turn, says how far it is, and stops when asked to.  If it does not, takes too long, needs
too much memory or dies, its process is killed and another takes its place.  Pictures pass through files;
what is said is small.  Work is named, so that the server need not load what it takes.  All of it is done on
the server's event loop.
"""

from __future__ import annotations

import asyncio
import logging
import os
import pickle
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from ..core.parallel import Cancelled
from .settings import PageError

TASKS = "symsmooth.web.tasks:"  # where work is found
_REST = 600.0  # seconds without work after which processes are given up until somebody comes
_PATIENCE = 1.0  # seconds in which work stops by itself once asked to
_START = "import sys; sys.path[:] = {path!r}; from symsmooth.web.worker import main; main({memory})"
_LOG = logging.getLogger(__name__)


class Run:
    """One piece of work, as seen by those who wait for it: a function of ``tasks`` and its arguments."""

    def __init__(self, work: str, *arguments: Any) -> None:
        self.work, self.arguments = TASKS + work, arguments
        self.limit: float | None = None  # seconds that it may take
        self.on_part: Callable[[dict[str, Any]], object] = str  # called with a part that is done
        self.what, self.fraction = "starting", 0.0  # what is being done, and how far all of it is
        self.stopping = False  # whether it was asked to end
        self.line: list[Run] = []  # that it waits in
        self.worker: Worker | None = None  # that does it
        self.task: asyncio.Task[Any] | None = None
        self.began = self.ended = 0.0  # when

    def hear(self, kind: str, *news: Any) -> None:
        """Note what the work reports: how far it is, never less far than before, or a part that is done."""
        if kind == "part":
            self.on_part(*news)
        else:  # "progress"
            fraction, self.what = news
            self.fraction = min(max(fraction, self.fraction), 1.0)

    def stop(self) -> None:
        """Ask the work to end: at once if it waits, else at its next sign of progress."""
        if not self.finished:
            self.stopping = True
            if self.worker is not None:
                self.worker.stop()
            elif self.task is not None:
                self.task.cancel()

    @property
    def finished(self) -> bool:
        """Whether nothing more will happen."""
        return self.task is not None and self.task.done()

    @property
    def seconds(self) -> float | None:
        """How long it has been, or was, at work; None while it waits."""
        return (self.ended or time.monotonic()) - self.began if self.began else None

    @property
    def ahead(self) -> int:
        """How many runs are to end before it begins."""
        return self.line.index(self) if self in self.line else 0

    async def outcome(self) -> Any:
        """Wait until it is finished; return what came of it, or raise what ended it."""
        assert self.task is not None
        await asyncio.wait([self.task])
        if self.task.cancelled():
            raise Cancelled("stopped before it began")
        made, error = self.task.result()
        if error is not None:
            raise error
        return made


class Worker:
    """A process that does one thing at a time."""

    def __init__(self, process: Process) -> None:
        self._process, self._number, self._killed = process, 0, False
        self._killing: list[asyncio.TimerHandle] = []

    @classmethod
    async def start(cls, memory: int) -> Worker:
        """Start a process whose work may take so many bytes of memory."""
        code = _START.format(path=sys.path, memory=memory)
        group = 0 if os.name == "posix" else None  # Ctrl-C is for the server alone
        command = sys.executable, "-P", "-c", code
        return cls(
            await asyncio.create_subprocess_exec(
                *command, stdin=PIPE, stdout=PIPE, process_group=group
            )
        )

    @property
    def alive(self) -> bool:
        """Whether it can be asked for more."""
        return self._process.returncode is None and not self._killed

    def _send(self, *message: Any) -> None:
        assert self._process.stdin is not None
        with suppress(OSError):  # it has died: its messages end
            self._process.stdin.write(pickle.dumps(message))

    def stop(self) -> None:
        """Ask what it does to end; it is killed if that does not happen soon."""
        self._send("stop", self._number)
        self._kill_in(_PATIENCE)

    def _kill_in(self, seconds: float) -> None:
        self._killing.append(asyncio.get_running_loop().call_later(seconds, self._kill))

    def _kill(self) -> None:
        self._killed = True
        with suppress(ProcessLookupError):
            self._process.kill()

    async def end(self) -> None:
        """End the process, whatever it does."""
        self._kill()
        await self._process.wait()

    async def call(self, run: Run) -> Any:
        """Have work done and return what comes of it.

        Raises
        ------
        PageError
            What the work raised for the user to know, or that it took too long or its process died.
        Cancelled
            If it was stopped.
        RuntimeError
            If it failed in any other way.
        """
        self._number += 1
        run.worker, run.began = self, time.monotonic()
        self._send("call", self._number, run.work, run.arguments)
        if run.limit is not None:
            self._kill_in(run.limit)
        try:
            while True:
                kind, *news = await self._hear()
                if kind == "done":
                    return news[0]
                if kind == "failed":
                    _raise(*news)
                run.hear(kind, *news)
        except asyncio.IncompleteReadError:
            await self.end()
            if run.stopping:
                raise Cancelled("stopped") from None
            if run.limit is not None and run.seconds is not None and run.seconds >= run.limit:
                raise PageError(
                    f"This took more than {run.limit:.0f} s and was given up; save it again in another "
                    "program, cut it, or choose a faster method."
                ) from None
            raise PageError("This took more memory than there is for it, or is damaged.") from None
        finally:
            run.ended = time.monotonic()
            while self._killing:
                self._killing.pop().cancel()

    async def _hear(self) -> Any:
        """Return what the process says next of what it is asked for now."""
        reader = self._process.stdout
        assert reader is not None
        while True:
            size = int.from_bytes(await reader.readexactly(8))
            number, *news = pickle.loads(await reader.readexactly(size))
            if number == self._number:
                return news


def _raise(kind: str, text: str, trace: str) -> None:
    """Raise what a process reported."""
    if kind == "cancelled":
        raise Cancelled(text)
    if kind == "expected":
        raise PageError(text)
    _LOG.error("work failed\n%s", trace)
    raise RuntimeError(text)


class Pool:
    """A queue of work, and processes that do it: so many at a time, each within so many bytes of memory.

    They start when somebody comes, are replaced where they die, and end when nothing was asked for long.
    Before its first work comes, a process does ``warm``.
    """

    def __init__(self, count: int, memory: int, *warm: Any) -> None:
        self._count, self._memory, self._warm = count, memory, warm
        self._idle: asyncio.Queue[Worker] = asyncio.Queue()
        self._workers: set[Worker] = set()
        self._tasks: set[asyncio.Task[None]] = set()  # that start and end processes
        self._starting = 0
        self._line: list[Run] = []  # at work or waiting
        self._resting: asyncio.TimerHandle | None = None
        self._closed = False

    def __len__(self) -> int:
        return len(self._workers) + self._starting

    def submit(
        self,
        work: str,
        *arguments: Any,
        seconds: float | None = None,
        on_part: Callable[[dict[str, Any]], object] = str,
    ) -> Run:
        """Queue a function of ``tasks``, which may take so long and show a part before all is done."""
        run = Run(work, *arguments)
        run.limit, run.on_part, run.line = seconds, on_part, self._line
        self._line.append(run)
        run.task = asyncio.get_running_loop().create_task(self._do(run))
        run.task.add_done_callback(lambda _: self._line.remove(run))
        self.wake()
        return run

    async def _do(self, run: Run) -> tuple[Any, Exception | None]:
        """Wait for a process and have something done; return what came of it, or what ended it."""
        while not (worker := await self._idle.get()).alive:  # it died while it had nothing to do
            self._replace(worker)
        try:
            return await worker.call(run), None
        except Exception as error:
            return None, error
        finally:
            if worker.alive:
                self._idle.put_nowait(worker)
            else:
                self._replace(worker)

    def _replace(self, worker: Worker) -> None:
        self._workers.discard(worker)
        self.wake()

    def wake(self) -> None:
        """Have all processes started: somebody is here."""
        if self._resting is not None:
            self._resting.cancel()
        self._resting = asyncio.get_running_loop().call_later(_REST, self._rest)
        while not self._closed and len(self) < self._count:
            self._starting += 1
            self._begin(self._start())

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _start(self) -> None:
        """Start a process and get it ready."""
        try:
            worker = await Worker.start(self._memory)
            self._workers.add(worker)
        finally:
            self._starting -= 1
        if self._closed:
            await self._end()
            return
        if self._warm:
            try:
                await worker.call(Run(*self._warm))
            except Exception:
                if worker in self._workers:
                    _LOG.exception("a process could not be made ready")
        self._idle.put_nowait(worker)

    def _rest(self) -> None:
        """End the processes if nobody is here."""
        if self._line:
            self.wake()
        else:
            self._begin(self._end())

    async def _end(self) -> None:
        workers, self._workers = self._workers, set()
        for worker in workers:
            await worker.end()

    async def close(self) -> None:
        """End all work and all processes."""
        self._closed = True
        for run in [*self._line]:
            run.stop()
        await self._end()
