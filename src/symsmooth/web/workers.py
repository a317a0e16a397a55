"""Processes that touch visitors' pictures, so that no file can stop, fill or crash the server.

A :class:`Worker` is kept warm while people are here; it does one thing at a time, says how far it is,
and stops when asked to.  If it does not, takes too long, needs too much memory or dies, it is killed and
another takes its place.  Pictures pass through files; what is said is small.  Work is named, so that the
server need not load what it takes.  The body of the process is in ``worker``.
"""

from __future__ import annotations

import logging
import os
import pickle
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from ..core.parallel import Cancelled
from .errors import SessionError

_TICK = 0.05  # seconds between two checks whether the work is to stop
_REST = 600.0  # seconds without work after which the processes are given up until somebody comes
_PATIENCE = 1.0  # seconds in which it stops by itself once asked to
_START = "import sys; sys.path[:] = {path!r}; from symsmooth.web.worker import main; main({memory})"
_LOG = logging.getLogger(__name__)

OnMessage = Callable[..., object]  # called with what kind of news it is, and the news


class WorkError(SessionError):
    """What went wrong in a worker and is the visitor's to know."""


class Worker:
    """A process that does what it is asked to."""

    def __init__(self, memory: int) -> None:
        code = _START.format(path=sys.path, memory=memory)
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            process_group=0 if os.name == "posix" else None,  # Ctrl-C is for the server alone
        )
        self._messages: queue.SimpleQueue[tuple[Any, ...] | None] = queue.SimpleQueue()
        self._number = 0
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as incoming, suppress(EOFError, OSError, pickle.UnpicklingError):
            while True:
                self._messages.put(pickle.load(incoming))
        self._messages.put(None)

    def _send(self, *message: Any) -> None:
        assert self._process.stdin is not None
        with suppress(OSError):  # it has died: its messages end
            pickle.dump(message, self._process.stdin)
            self._process.stdin.flush()

    def kill(self) -> None:
        """End the process, whatever it does."""
        self._process.kill()
        self._process.wait()
        if self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.close()

    @property
    def alive(self) -> bool:
        """Whether it can be asked for more."""
        return self._process.poll() is None

    def call(
        self,
        work: str,
        arguments: tuple[Any, ...],
        seconds: float | None = None,
        on_message: OnMessage | None = None,
        stopping: Callable[[], bool] = lambda: False,
    ) -> Any:
        """Have ``work`` done and return what comes of it; a worker that does not stop is killed.

        Parameters
        ----------
        work : str
            "module:function", called in the process with ``arguments`` and, last, a
            :class:`worker.Reporter`.
        seconds : float or None
            How long it may take.
        on_message : function or None
            Called with what the work reports.
        stopping : function
            Whether the work is to end.

        Raises
        ------
        WorkError
            What the work raised for the user to know, or that it took too long or its process died.
        Cancelled
            If it was stopped.
        RuntimeError
            If it failed in any other way.
        """
        self._number += 1
        start = time.monotonic()
        end = None if seconds is None else start + seconds
        last = None  # until when it may stop by itself
        self._send("call", self._number, work, arguments)
        while True:
            try:
                news = self._messages.get(timeout=_TICK)
            except queue.Empty:
                news = ()
            if news is None:
                self.kill()
                if stopping():
                    raise Cancelled("stopped")
                raise WorkError("This took more memory than there is for it, or is damaged.")
            if news and news[0] == self._number:
                kind, *rest = news[1:]
                if kind == "done":
                    return rest[0]
                if kind == "failed":
                    _raise(*rest)
                if on_message is not None:
                    on_message(kind, *rest)
            now = time.monotonic()
            if last is None and stopping():
                last = now + _PATIENCE
                self._send("stop", self._number)
            if last is not None and now > last:
                self.kill()
                raise Cancelled("stopped")
            if end is not None and now > end:
                self.kill()
                raise WorkError(
                    f"This took more than {seconds:.0f} s and was given up; save it again in another "
                    "program, cut it, or choose a faster method."
                )


def _raise(kind: str, text: str, trace: str) -> None:
    """Raise what a worker reported."""
    if kind == "cancelled":
        raise Cancelled(text)
    if kind == "expected":
        raise WorkError(text)
    _LOG.error("work failed\n%s", trace)
    raise RuntimeError(text)


class Workers:
    """Some workers, warm and ready while people are here; those that die are replaced.

    Parameters
    ----------
    count : int
        How many there are.
    memory : int
        Bytes that the work of each may take.
    warm : str or None
        "module:function", called once in each with ``given`` and a Reporter, so that the first visitor
        need not wait for it.
    clock : function
        Returns seconds.
    """

    def __init__(
        self,
        count: int,
        memory: int,
        warm: str | None = None,
        *given: Any,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._count, self._memory, self._warm, self._given = count, memory, warm, given
        self._change = threading.Condition()
        self._all: set[Worker] = set()
        self._idle: list[Worker] = []
        self._closed = False
        self._clock = clock
        self._used = clock()

    def __len__(self) -> int:
        return len(self._all)

    def wake(self) -> None:
        """Have all of them started: somebody is here."""
        self._used = self._clock()
        while self._start():
            pass

    def sweep(self) -> None:
        """End them if nothing was asked of them for long."""
        with self._change:
            if len(self._idle) < len(self._all) or self._clock() - self._used < _REST:
                return
            workers, self._idle = self._idle, []
            self._all.clear()
        for worker in workers:
            worker.kill()

    def _start(self) -> bool:
        """Add a worker if one is missing; it is offered once it is warm."""
        with self._change:
            if self._closed or len(self._all) >= self._count:
                return False
            worker = Worker(self._memory)
            self._all.add(worker)
        threading.Thread(target=self._make_ready, args=(worker,), daemon=True).start()
        return True

    def _make_ready(self, worker: Worker) -> None:
        if self._warm is not None:
            try:
                worker.call(self._warm, self._given)
            except Exception:
                if not self._closed:
                    _LOG.exception("a worker could not be made ready")
                    time.sleep(1.0)  # so that one that never can be does not take all the time
        self._give_back(worker)

    def _give_back(self, worker: Worker) -> None:
        with self._change:
            if worker.alive:
                self._idle.append(worker)
                self._change.notify()
                return
            self._all.discard(worker)
        worker.kill()  # closes what is left of it
        self._start()

    def call(
        self,
        work: str,
        *arguments: Any,
        seconds: float | None = None,
        on_message: OnMessage | None = None,
        stopping: Callable[[], bool] = lambda: False,
    ) -> Any:
        """Have something done by the next worker that is free; see :meth:`Worker.call`."""
        self.wake()
        worker = self._take(stopping)
        try:
            return worker.call(work, arguments, seconds, on_message, stopping)
        finally:
            self._used = self._clock()
            self._give_back(worker)

    def _take(self, stopping: Callable[[], bool]) -> Worker:
        """Wait for a worker that is free."""
        while True:
            with self._change:
                while not self._idle:
                    if self._closed or stopping():
                        raise Cancelled("stopped before it began")
                    self._change.wait(_TICK)
                worker = self._idle.pop()
            if worker.alive:
                return worker
            self._give_back(worker)  # it died while it had nothing to do

    def close(self) -> None:
        """Kill them all; whoever waits for one gets Cancelled."""
        with self._change:
            self._closed = True
            workers, self._idle = [*self._all], []
            self._all.clear()
            self._change.notify_all()
        for worker in workers:
            worker.kill()
