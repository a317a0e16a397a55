"""Work that waits for its turn, tells how far it is, and really stops when asked to."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from typing import Any

from ..tiles import Cancelled

Work = Callable[["Run"], Any]  # does it, and returns what came of it


class Run:
    """One piece of work, as seen by those who wait for it.

    Attributes
    ----------
    stage, done, total
        What is being done, and how far it is.
    seconds : float or None
        How long it has been at work; None while it waits.
    """

    def __init__(self, work: Work) -> None:
        self.stage, self.done, self.total = "starting", 0, 0
        self._work = work
        self._stop = threading.Event()
        self._began: float | None = None
        self._ended: float | None = None
        self._future: Future[Any] | None = None

    def progress(self, stage: str, done: int, total: int) -> None:
        """Note how far the work is; end it, with Cancelled, if it is to stop."""
        if self._stop.is_set():
            raise Cancelled(f"stopped during {stage}")
        self.note(stage, done, total)

    def note(self, stage: str, done: int = 0, total: int = 0) -> None:
        """Note what is being done, and how far it is."""
        self.stage, self.done, self.total = stage, done, total

    def stop(self) -> None:
        """Ask the work to end: at once if it waits, else at its next sign of progress."""
        self._stop.set()
        if self._future is not None:
            self._future.cancel()

    def when_finished(self, then: Callable[[], object]) -> None:
        """Do something once nothing more will happen; now, if that is so already."""
        assert self._future is not None
        self._future.add_done_callback(lambda _: then())

    @property
    def stopping(self) -> bool:
        """Whether it was asked to end."""
        return self._stop.is_set()

    @property
    def finished(self) -> bool:
        """Whether nothing more will happen."""
        return self._future is not None and self._future.done()

    @property
    def seconds(self) -> float | None:
        """How long it has been, or was, at work; None while it waits."""
        if self._began is None:
            return None
        return (self._ended or time.perf_counter()) - self._began

    def outcome(self) -> Any:
        """Return what came of the work once it is finished, or raise what ended it."""
        assert self._future is not None
        try:
            return self._future.result()
        except CancelledError:
            raise Cancelled("stopped before it began") from None

    def __call__(self) -> Any:
        """Do the work, in a thread of :class:`Runs`."""
        if self._stop.is_set():
            raise Cancelled("stopped before it began")
        self._began = time.perf_counter()
        try:
            return self._work(self)
        finally:
            self._ended = time.perf_counter()


class Runs:
    """A queue: the first come is done first, ``at_once`` of them at a time.

    Examples
    --------
    >>> runs = Runs(1)
    >>> run = runs.submit(lambda run: "done")
    >>> run._future.result(), runs.ahead(run)
    ('done', 0)
    >>> runs.close()
    """

    def __init__(self, at_once: int) -> None:
        self.at_once = at_once
        self._threads = ThreadPoolExecutor(at_once, "symsmooth-run")
        self._queue: list[Run] = []
        self._lock = threading.Lock()

    def submit(self, work: Work) -> Run:
        """Queue a piece of work."""
        run = Run(work)
        with self._lock:
            self._queue = [other for other in self._queue if not other.finished]
            run._future = self._threads.submit(run)
            self._queue.append(run)
        return run

    def ahead(self, run: Run) -> int:
        """Return how many runs must end before this one begins; those at work come first."""
        with self._lock:
            if run not in self._queue or run.seconds is not None:
                return 0
            before = self._queue[: self._queue.index(run)]
        return sum(not other.finished for other in before)

    def close(self) -> None:
        """Stop everything and wait for it."""
        with self._lock:
            for run in self._queue:
                run.stop()
        self._threads.shutdown(cancel_futures=True)
