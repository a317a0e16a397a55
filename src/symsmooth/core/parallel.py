"""The one place that runs in parallel: tiles, strips, threads, progress, cancellation.

Work is cut into pieces that depend on the image alone, never on the number of workers; pieces run
in any order, and their results are used in the order of the pieces.  Hence the same bits for any
number of workers.
"""

from __future__ import annotations

import numbers
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

# Large pieces of work that are done at a time, at most: each takes memory.
_MOST_TOGETHER = 4
_REPORT_EVERY = 0.1  # seconds, while such a piece is waited for

_PATIENCE = 2.0  # seconds after Ctrl-C: threads end what they are at, and files go

_SIGNALS = ("SIGTERM", "SIGHUP")  # a batch system, a closed terminal; Windows has no SIGHUP

Progress = Callable[[float, str], object]  # how much of all is done, 0 to 1, and what is being done


@lru_cache(maxsize=1)
def _blas() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


class _OneBlasThread:
    """Keeps the BLAS on one thread while any pool is at work: its sums must not depend on our threads.

    The number of its threads is one for the process; pools of several threads overlap, so the first one
    sets it and the last one sets it back.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pools = 0
        self._limits: Any = None

    def begin(self) -> None:
        with self._lock:
            if self._pools == 0:
                self._take_control()
                self._limits = _blas().limit(limits=1, user_api="blas")
            self._pools += 1

    def end(self) -> None:
        with self._lock:
            self._pools -= 1
            if self._pools == 0:
                self._take_control()
                self._limits.restore_original_limits()

    @staticmethod
    def _take_control() -> None:
        """Let this thread set the number: since threadpoolctl 3.8 only the one that set it first may."""
        from threadpoolctl import OpenBLASController

        if hasattr(OpenBLASController, "clear_controlling_thread"):
            OpenBLASController.clear_controlling_thread(force=True)


_one_blas_thread = _OneBlasThread()


def default_workers() -> int:
    """Return the number of cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


class Cancelled(Exception):
    """The work was stopped because it was asked to be."""


def stop_when(event: threading.Event, progress: Progress | None = None) -> Progress:
    """Return a progress callback that ends the work, with :class:`Cancelled`, once event is set.

    Parameters
    ----------
    event : threading.Event
        Set it, from any thread, to stop.
    progress : callable or None
        Told how far the work is until then, as ``progress(fraction, what)``.

    Examples
    --------
    >>> import threading, numpy as np, symsmooth
    >>> stop = threading.Event()
    >>> stop.set()  # from any thread
    >>> symsmooth.denoise_nlm(np.eye(9), 0.1, progress=symsmooth.stop_when(stop))
    Traceback (most recent call last):
    symsmooth.core.parallel.Cancelled: stopped during weights
    """

    def report(fraction: float, what: str) -> None:
        if event.is_set():
            raise Cancelled(f"stopped during {what}")
        if progress is not None:
            progress(fraction, what)

    return report


class EndedBySignal(KeyboardInterrupt):
    """What these signals raise; whoever cleans up after Ctrl-C cleans up after them."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def ending_on_signals() -> Iterator[None]:
    """Raise :class:`EndedBySignal` in the main thread for the first such signal, and ignore others.

    A signal that was ignored before, as ``nohup`` does it, stays so.  Ctrl-C raises KeyboardInterrupt as
    always, but one that follows within two seconds does not disturb the cleaning up.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    known = [getattr(signal, name) for name in _SIGNALS if hasattr(signal, name)]
    handled = [number for number in known if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.getsignal(number) for number in handled}

    def end(number: int, _: object) -> None:
        for each in handled:  # another must not disturb the cleaning up
            signal.signal(each, signal.SIG_IGN)
        raise EndedBySignal(number)

    patient_until = 0.0

    def interrupt(number: int, _: object) -> None:
        nonlocal patient_until
        if time.monotonic() >= patient_until:
            patient_until = time.monotonic() + _PATIENCE
            raise KeyboardInterrupt

    try:
        for number in handled:
            signal.signal(number, end)
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            before[signal.SIGINT] = signal.default_int_handler
            signal.signal(signal.SIGINT, interrupt)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def part_of(
    progress: Progress | None, start: float, end: float, prefix: str = ""
) -> Progress | None:
    """Return a callback for the part of the work that lies between two fractions of all of it.

    Examples
    --------
    >>> part_of(print, 0.5, 1.0, "slice 2 of 2: ")(0.5, "weights")
    0.75 slice 2 of 2: weights
    """
    if progress is None:
        return None

    def report(fraction: float, what: str) -> None:
        progress(min(start + (end - start) * fraction, end), prefix + what)

    return report


def ahead(
    threads: ThreadPoolExecutor, task: Callable[[Item], Result], items: Iterable[Item], count: int
) -> Iterator[tuple[Item, Result]]:
    """Yield (item, task(item)) in the order of items, which are worked on by threads so far ahead."""
    waiting: deque[tuple[Item, Future[Result]]] = deque()
    try:
        for item in items:
            waiting.append((item, threads.submit(task, item)))
            if len(waiting) > count:
                first, future = waiting.popleft()
                yield first, future.result()
        while waiting:
            first, future = waiting.popleft()
            yield first, future.result()
    finally:
        for _, future in waiting:
            future.cancel()


class Pool:
    """Worker threads for one call, with its progress callback; a context manager that may nest.

    How far the work is, is one fraction of all of it: it never falls, and is 1 when the outermost ``with``
    ends.  Work is divided by :meth:`part`, :meth:`parts` and :meth:`expect`, by what it costs; these are
    guesses about time, and what they leave out is made up for at the end of a part.

    Parameters
    ----------
    workers : int or None
        Number of threads; None takes all cores the process may use.
    progress : callable or None
        Called as ``progress(fraction, what)`` from the calling thread.  An exception raised
        by it ends the work and reaches the caller, as Ctrl-C does.
    """

    def __init__(self, workers: int | None = None, progress: Progress | None = None) -> None:
        whole = isinstance(workers, numbers.Integral) and not isinstance(workers, bool)
        if workers is not None and not (whole and workers >= 1):
            raise ValueError(
                f"workers must be a whole number of at least 1, got {workers}; use None for all cores"
            )
        if progress is not None and not callable(progress):
            raise TypeError(
                "progress must be a function that is called as progress(fraction, what), "
                f"got {progress!r}; use None for none"
            )
        self.workers = default_workers() if workers is None else int(workers)
        self.progress = progress
        self._done, self._end = 0.0, 1.0  # of all: what is done, and where the current part ends
        self._maps_left = 1  # in the current part
        self._what = "done"  # the latest stage
        self._prefix = ""  # what the stages that follow are a part of: "block 2 of 4: "
        self._depth = 0
        self._threads: ThreadPoolExecutor | None = None

    def __enter__(self) -> Pool:
        if self._depth == 0:
            self._done = 0.0
            _one_blas_thread.begin()
            if self.workers > 1:
                self._threads = ThreadPoolExecutor(self.workers)
        self._depth += 1
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._depth -= 1
        if self._depth > 0:
            return
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)
            self._threads = None
        _one_blas_thread.end()
        if kind is None:
            self._prefix = ""
            self._report(1.0, self._what)

    @contextmanager
    def part(self, share: float, name: str = "", n_maps: int = 1) -> Iterator[None]:
        """Do a part of the work: so much of what is left of the part around it, by so many maps."""
        outer = self._end, self._maps_left, self._prefix
        self._end, self._maps_left = self._after(share), max(n_maps, 1)
        self._prefix += f"{name}: " if name else ""
        try:
            yield
        finally:
            self._done = self._end
            self._end, self._maps_left, self._prefix = outer

    def parts(self, items: Iterable[Item], name: str = "", n_maps: int = 1) -> Iterator[Item]:
        """Yield items, each in a part of its own; all cost the same, and take so many maps."""
        every = list(items)
        for number, item in enumerate(every):
            own = f"{name} {number + 1} of {len(every)}" if name else ""
            with self.part(1 / (len(every) - number), own, n_maps):
                yield item

    def expect(self, n_maps: int) -> None:
        """Say that the rest of this part is so many calls of ``map`` that cost the same."""
        self._maps_left = max(n_maps, 1)

    def nested(self, share: float) -> Progress | None:
        """Return a callback for a function that has a pool of its own, and does a share of what is left."""
        return part_of(self.progress and self._report, self._done, self._after(share))

    def _after(self, share: float) -> float:
        return min(self._done + share * (self._end - self._done), self._end)

    def _report(self, fraction: float, what: str) -> None:
        self._what = what
        if fraction > self._done:
            self._done = fraction
        if self.progress is not None:
            self.progress(self._done, self._prefix + what)

    def map(
        self,
        task: Callable[[Item], Result],
        items: Sequence[Item],
        stage: str,
        share: float | None = None,
    ) -> Iterator[tuple[Item, Result]]:
        """Yield (item, task(item)) in the order of items; a few more than one a worker in flight.

        ``share`` is how much of what is left of the current part this is; None as :meth:`expect` said.
        """
        results = self._serial(task, items)
        if self._threads is not None:
            results = ahead(self._threads, task, items, 2 * self.workers)
        start, end = self._done, self._after(share or 1 / self._maps_left)
        self._maps_left = max(self._maps_left - 1, 1)
        for done, pair in enumerate(results, start=1):
            yield pair
            self._report(min(start + (end - start) * done / len(items), end), stage)

    def side_by_side(
        self, work: Callable[[Item, Pool], Result], items: Sequence[Item], name: str
    ) -> Iterator[tuple[Item, Result]]:
        """Yield (item, work(item, pool)) in the order of items; several are worked on at a time.

        For pieces of work that are large, and do much between their maps.  Each has a pool of its own, and
        this thread reports what all of them have done.
        """
        n_together = min(self.workers, len(items), _MOST_TOGETHER)
        if n_together <= 1:
            for item in self.parts(items, name):
                yield item, work(item, self)
            return
        stop, done = threading.Event(), [0.0] * len(items)
        start, end = self._done, self._end

        def report_all() -> None:
            self._report(start + (end - start) * sum(done) / len(items), f"{name}s")

        def run(number: int) -> Result:
            def report(fraction: float, what: str) -> None:
                done[number] = fraction

            own = Pool(max(self.workers // n_together, 1), stop_when(stop, report))
            with own:
                return work(items[number], own)

        with ThreadPoolExecutor(n_together) as threads:
            waiting: deque[Future[Result]] = deque()
            try:
                for number, item in enumerate(items):
                    # One more than are worked on: who is done first begins it.
                    while len(waiting) <= n_together and number + len(waiting) < len(items):
                        waiting.append(threads.submit(run, number + len(waiting)))
                    first = waiting.popleft()
                    while not wait([first], _REPORT_EVERY).done:
                        report_all()
                    result = first.result()
                    report_all()
                    yield item, result
            finally:
                stop.set()
                for future in waiting:
                    future.cancel()

    @staticmethod
    def _serial(
        task: Callable[[Item], Result], items: Iterable[Item]
    ) -> Iterator[tuple[Item, Result]]:
        for item in items:
            yield item, task(item)
