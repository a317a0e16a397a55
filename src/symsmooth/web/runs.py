"""Work that waits for its turn, tells how far it is, and really stops when asked to."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from typing import Any

from ..core.parallel import Cancelled

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

    def __init__(self, work: Work, group: str = "") -> None:
        self.stage, self.done, self.total = "starting", 0, 0
        self.group = group
        self._work = work
        self._stop = threading.Event()
        self._began: float | None = None
        self._ended: float | None = None
        self._future: Future[Any] = Future()

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
        self._future.cancel()

    def when_finished(self, then: Callable[[], object]) -> None:
        """Do something once nothing more will happen; now, if that is so already."""
        self._future.add_done_callback(lambda _: then())

    @property
    def stopping(self) -> bool:
        """Whether it was asked to end."""
        return self._stop.is_set()

    @property
    def finished(self) -> bool:
        """Whether nothing more will happen."""
        return self._future.done()

    @property
    def waits(self) -> bool:
        """Whether it has not begun, and is to."""
        return not (self._future.running() or self._future.done())

    @property
    def seconds(self) -> float | None:
        """How long it has been, or was, at work; None while it waits."""
        if self._began is None:
            return None
        return (self._ended or time.perf_counter()) - self._began

    def outcome(self) -> Any:
        """Return what came of the work once it is finished, or raise what ended it."""
        try:
            return self._future.result()
        except CancelledError:
            raise Cancelled("stopped before it began") from None

    def begin(self) -> bool:
        """Count it as begun, unless it was stopped before."""
        if not self.waits or not self._future.set_running_or_notify_cancel():
            return False
        self._began = time.perf_counter()
        return True

    def do(self) -> None:
        """Do the work, in a thread of :class:`Runs`."""
        try:
            made, error = self._work(self), None
        except BaseException as raised:
            made, error = None, raised
        self._ended = time.perf_counter()
        if error is None:
            self._future.set_result(made)
        else:
            self._future.set_exception(error)


class Runs:
    """A queue: the first come is done first, ``at_once`` of them at a time.

    Parameters
    ----------
    at_once : int
        How many are done at a time.
    of_group : int or None
        How many of these may be of one group of people; None for all.  Of those that wait, one whose
        group has least at work comes first.

    Examples
    --------
    >>> runs = Runs(1)
    >>> run = runs.submit(lambda run: "done")
    >>> run._future.result(), runs.ahead(run)
    ('done', 0)
    >>> runs.close()
    """

    def __init__(self, at_once: int, of_group: int | None = None) -> None:
        self._most = at_once if of_group is None else max(of_group, 1)
        self._threads = ThreadPoolExecutor(at_once, "symsmooth-run")
        self._queue: list[Run] = []  # at work or waiting
        self._at_work: Counter[str] = Counter()  # of each group
        self._lock = threading.Lock()

    def submit(self, work: Work, group: str = "") -> Run:
        """Queue a piece of work."""
        run = Run(work, group)
        with self._lock:
            self._queue = [other for other in self._queue if not other.finished]
            self._queue.append(run)
            self._threads.submit(self._serve)
        return run

    def _serve(self) -> None:
        """Do what waits, in a thread, until nothing may be begun."""
        while (run := self._next()) is not None:
            run.do()
            with self._lock:
                self._at_work[run.group] -= 1
                self._at_work += Counter()  # forgets groups that have none

    def _next(self) -> Run | None:
        """Return what is to be done now."""
        with self._lock:
            waiting = [
                run for run in self._queue if run.waits and self._at_work[run.group] < self._most
            ]
            for run in sorted(waiting, key=lambda run: self._at_work[run.group]):
                if run.begin():
                    self._at_work[run.group] += 1
                    return run
        return None

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
