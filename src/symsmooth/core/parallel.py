"""The one place that runs in parallel: tiles, strips, threads, progress, cancellation.

Work is cut into pieces that depend on the image alone, never on the number of workers; pieces run
in any order, and their results are used in the order of the pieces.  Hence the same bits for any
number of workers.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from types import TracebackType
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

Progress = Callable[[str, int, int], object]  # what is being done, pieces done, pieces in all


@lru_cache(maxsize=1)
def _blas() -> Any:
    import scipy.linalg.blas  # noqa: F401  (the library the kernels call must be loaded to be found)
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

    Examples
    --------
    >>> import threading, numpy as np, symsmooth
    >>> stop = threading.Event()
    >>> stop.set()  # from any thread
    >>> symsmooth.denoise_nlm(np.eye(9), 0.1, progress=symsmooth.stop_when(stop))
    Traceback (most recent call last):
    symsmooth.core.parallel.Cancelled: stopped during weights
    """

    def report(stage: str, done: int, total: int) -> None:
        if event.is_set():
            raise Cancelled(f"stopped during {stage}")
        if progress is not None:
            progress(stage, done, total)

    return report


class Pool:
    """Worker threads for one call, with its progress callback; a context manager that may nest.

    Parameters
    ----------
    workers : int or None
        Number of threads; None takes all cores the process may use.
    progress : callable or None
        Called as ``progress(stage, done, total)`` from the calling thread.  An exception raised
        by it ends the work and reaches the caller, as Ctrl-C does.
    """

    def __init__(self, workers: int | None = None, progress: Progress | None = None) -> None:
        if workers is not None and (isinstance(workers, bool) or int(workers) < 1):
            raise ValueError(f"workers must be at least 1, got {workers}; use None for all cores")
        if progress is not None and not callable(progress):
            raise TypeError(
                "progress must be a function that is called as progress(stage, done, total), "
                f"got {progress!r}; use None for none"
            )
        self.workers = default_workers() if workers is None else int(workers)
        self.progress = progress
        self.prefix = ""  # what the stages that follow are a part of: "block 2 of 4: "
        self._depth = 0
        self._threads: ThreadPoolExecutor | None = None

    def __enter__(self) -> Pool:
        if self._depth == 0:
            _one_blas_thread.begin()
            if self.workers > 1:
                self._threads = ThreadPoolExecutor(self.workers)
        self._depth += 1
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._depth -= 1
        if self._depth > 0:
            return
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)
            self._threads = None
        _one_blas_thread.end()

    def map(
        self, task: Callable[[Item], Result], items: Sequence[Item], stage: str
    ) -> Iterator[tuple[Item, Result]]:
        """Yield (item, task(item)) in the order of items; a few more than one a worker in flight."""
        results = self._serial(task, items) if self._threads is None else self._ahead(task, items)
        for done, pair in enumerate(results, start=1):
            yield pair
            if self.progress is not None:
                self.progress(self.prefix + stage, done, len(items))

    @staticmethod
    def _serial(
        task: Callable[[Item], Result], items: Iterable[Item]
    ) -> Iterator[tuple[Item, Result]]:
        for item in items:
            yield item, task(item)

    def _ahead(
        self, task: Callable[[Item], Result], items: Iterable[Item]
    ) -> Iterator[tuple[Item, Result]]:
        assert self._threads is not None
        waiting: deque[tuple[Item, Future[Result]]] = deque()
        try:
            for item in items:
                waiting.append((item, self._threads.submit(task, item)))
                if len(waiting) > 2 * self.workers:
                    first, future = waiting.popleft()
                    yield first, future.result()
            while waiting:
                first, future = waiting.popleft()
                yield first, future.result()
        finally:
            for _, future in waiting:
                future.cancel()
