"""The one place that runs in parallel: tiles, strips, threads, progress, cancellation.

Work is cut into pieces that depend on the image alone, never on the number of workers; pieces run
in any order, and their results are used in the order of the pieces.  Hence the same bits for any
number of workers.
"""

from __future__ import annotations

import functools
import itertools
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, lru_cache
from types import TracebackType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

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
    symsmooth.tiles.Cancelled: stopped during weights
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
        self.part = ""  # what the stages that follow are a part of: "block 2 of 4: "
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
                self.progress(self.part + stage, done, len(items))

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


@dataclass(frozen=True)
class Tiling:
    """A grid of positions cut into tiles, and the tiles into strips (a strip is one task)."""

    grid: tuple[int, int, int]  # z, y, x
    tile: tuple[int, int, int]

    @property
    def n_tiles(self) -> tuple[int, int, int]:
        """Number of tiles along each axis."""
        z, y, x = (-(-g // t) for g, t in zip(self.grid, self.tile, strict=True))
        return z, y, x

    @cached_property
    def boxes(self) -> NDArray[np.int64]:
        """Tiles as (z0, z1, y0, y1, x0, x1), in raster order."""
        starts = np.meshgrid(
            *(np.arange(0, g, t) for g, t in zip(self.grid, self.tile, strict=True)), indexing="ij"
        )
        ends = [np.minimum(s + t, g) for s, t, g in zip(starts, self.tile, self.grid, strict=True)]
        pairs = [a.ravel() for both in zip(starts, ends, strict=True) for a in both]
        return np.ascontiguousarray(np.stack(pairs, axis=1).astype(np.int64))

    @cached_property
    def strips(self) -> list[slice]:
        """Runs of tiles that share their rows."""
        across = self.n_tiles[2]
        return [slice(at, at + across) for at in range(0, len(self.boxes), across)]


def tiling(grid: tuple[int, int, int]) -> Tiling:
    """Cut a grid into tiles of 256 positions: 16 x 16, or 4 x 8 x 8 in a volume."""
    return Tiling(grid, (1, 16, 16) if grid[0] == 1 else (4, 8, 8))


def spans(
    shape: tuple[int, int, int], rows: int = 64, slices: int = 8
) -> list[tuple[int, int, int, int]]:
    """Cut an image into strips (z0, z1, y0, y1): bands of rows, or of slices in a volume."""
    depth, height, _ = shape
    if depth == 1:
        return [(0, 1, y, min(y + rows, height)) for y in range(0, height, rows)]
    return [(z, min(z + slices, depth), 0, height) for z in range(0, depth, slices)]


@dataclass(frozen=True)
class Block:
    """A part of a picture, with what it needs around it and how it is blended with the others."""

    inner: tuple[slice, ...]  # blocks' inner parts cover the picture once
    outer: tuple[slice, ...]  # the inner part and the halo
    ramp: NDArray[np.float32]  # weight of each outer pixel; over all blocks they sum to 1


def cover(spatial: Sequence[int], most_pixels: int, halo: int) -> list[Block]:
    """Cut a picture into blocks of at most ``most_pixels`` (without halo) that overlap by 2 * halo."""
    side = max(int(most_pixels ** (1.0 / len(spatial))), 1)
    whole = np.prod(spatial, dtype=float) <= most_pixels
    axes = [_cuts(size, size if whole else side, halo) for size in spatial]
    blocks = []
    for parts in itertools.product(*axes):
        inner, outer, ramps = zip(*parts, strict=True)
        blocks.append(Block(inner, outer, functools.reduce(np.multiply.outer, ramps)))
    return blocks


def _cuts(size: int, side: int, halo: int) -> list[tuple[slice, slice, NDArray[np.float32]]]:
    """Cut one axis evenly into (inner, outer, ramp)."""
    count = -(-size // side)
    return cuts_at([round(i * size / count) for i in range(count + 1)], halo)


def cuts_at(edges: Sequence[int], halo: int) -> list[tuple[slice, slice, NDArray[np.float32]]]:
    """Cut one axis at the edges into (inner, outer, ramp).

    Ramps cross over in the inner half of the overlaps.  What is nearer to the end of a halo has no
    weight: there the border is felt, which the whole picture does not have.
    """
    size, fade = edges[-1], max(halo, 1)
    cuts = []
    for low, high in itertools.pairwise(edges):
        outer = slice(max(low - halo, 0), min(high + halo, size))
        at = np.arange(outer.start, outer.stop) + 0.5
        rise = np.clip((at - low) / fade + 0.5, 0, 1) if low > 0 else np.ones(len(at))
        fall = np.clip((high - at) / fade + 0.5, 0, 1) if high < size else np.ones(len(at))
        cuts.append((slice(low, high), outer, (rise * fall).astype(np.float32)))
    return cuts
