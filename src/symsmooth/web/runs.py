"""Work that waits for its turn, reports how far it is, and really stops when asked to."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from typing import Any

from ..core.parallel import Cancelled

Work = Callable[["Run"], Any]  # does it, and returns what came of it


class Run:
    """One piece of work, as seen by those who wait for it.

    Attributes
    ----------
    what, fraction
        What is being done, and how far all of it is: 0 to 1.
    seconds : float or None
        How long it has been at work; None while it waits.
    """

    def __init__(self, work: Work, group: str = "") -> None:
        self.what, self.fraction = "starting", 0.0
        self.group = group
        self._work = work
        self._stop = threading.Event()
        self._began: float | None = None
        self._ended: float | None = None
        self._future: Future[Any] = Future()

    def progress(self, fraction: float, what: str) -> None:
        """Note how far the work is; end it, with Cancelled, if it is to stop."""
        if self._stop.is_set():
            raise Cancelled(f"stopped during {what}")
        self.note(fraction, what)

    def note(self, fraction: float, what: str) -> None:
        """Note how far the work is: never less far than before."""
        self.fraction, self.what = min(max(fraction, self.fraction), 1.0), what

    def stop(self) -> None:
        """Ask the work to end: at once if it waits, else at its next sign of progress."""
        self._stop.set()
        self._future.cancel()

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
    """A queue, ``at_once`` of it at a time, in which groups of people take turns.

    Parameters
    ----------
    at_once : int
        How many are done at a time.
    of_group : int or None
        How many of these may be of one group of people; None for all.

    Notes
    -----
    Of those that wait, one whose group has least at work comes first, then one whose group had its last
    turn longest ago: somebody with thirty files does not keep others waiting for all of them.

    Examples
    --------
    >>> runs = Runs(1)
    >>> run = runs.submit(lambda run: "done")
    >>> run._future.result(), runs.ahead(run)
    ('done', 0)
    >>> runs.close()
    """

    def __init__(self, at_once: int, of_group: int | None = None) -> None:
        self._max_of_group = at_once if of_group is None else max(of_group, 1)
        self._threads = ThreadPoolExecutor(at_once, "symsmooth-run")
        self._queue: list[Run] = []  # at work or waiting
        self._at_work: Counter[str] = Counter()  # of each group
        self._turns = 0
        self._last_turn: dict[str, int] = {}  # of each group that has anything here
        self._lock = threading.Lock()

    def submit(self, work: Work, group: str = "") -> Run:
        """Queue a piece of work."""
        run = Run(work, group)
        with self._lock:
            self._queue = [other for other in self._queue if not other.finished]
            groups = {other.group for other in self._queue}
            self._last_turn = {g: turn for g, turn in self._last_turn.items() if g in groups}
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
            for run in self._in_turn():
                if self._at_work[run.group] < self._max_of_group and run.begin():
                    self._at_work[run.group] += 1
                    self._turns += 1
                    self._last_turn[run.group] = self._turns
                    return run
        return None

    def _in_turn(self) -> list[Run]:
        """Return what waits, in the order in which it will be begun."""
        waiting: dict[str, deque[Run]] = {}
        for run in self._queue:
            if run.waits:
                waiting.setdefault(run.group, deque()).append(run)
        at_work, last, order = Counter(self._at_work), dict(self._last_turn), list[Run]()
        while waiting:
            group = min(waiting, key=lambda g: (at_work[g], last.get(g, 0)))
            order.append(waiting[group].popleft())
            last[group] = self._turns + len(order)
            at_work.clear()  # by the next turn it has ended
            if not waiting[group]:
                del waiting[group]
        return order

    def ahead(self, run: Run) -> int:
        """Return how many runs must end or begin before this one; those at work come first."""
        with self._lock:
            waiting = self._in_turn()
            if run not in waiting:
                return 0
            at_work = sum(not (other.waits or other.finished) for other in self._queue)
            return at_work + waiting.index(run)

    def close(self) -> None:
        """Stop everything and wait for it."""
        with self._lock:
            for run in self._queue:
                run.stop()
        self._threads.shutdown(cancel_futures=True)
