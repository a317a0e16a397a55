"""The only way in: a job, and what came of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar, overload

from ..core.parallel import Progress, ahead, default_workers, stop_when
from ..io.formats import FORMATS, format_of, open_file
from .compare import CompareJob, Page, compare
from .job import BoxOptions, DenoiseJob
from .jobs import Outcome, denoise_file
from .large import denoise_boxes, large_source
from .messages import UsageError
from .raw import denoise_raw_file
from .series import SeriesJob, denoise_series
from .video import denoise_video


@dataclass(frozen=True)
class FileJob:
    """One file, from name to name: read whole if it is small, else box by box."""

    source: Path
    target: Path
    how: DenoiseJob
    boxes: BoxOptions = field(default_factory=BoxOptions)


@dataclass(frozen=True)
class BatchJob:
    """Many files or series, one after the other or several at a time."""

    jobs: Sequence[FileJob | SeriesJob]
    at_a_time: int = 1


Result = TypeVar("Result")
Results = Iterator[tuple[Path, Outcome | Exception]]


@overload
def run(job: FileJob | SeriesJob, progress: Progress | None = None) -> Outcome: ...
@overload
def run(job: BatchJob, progress: Progress | None = None) -> Results: ...
@overload
def run(job: CompareJob, progress: Progress | None = None) -> Page: ...
def run(
    job: FileJob | SeriesJob | BatchJob | CompareJob, progress: Progress | None = None
) -> Outcome | Page | Results:
    """Do a job; an exception that ``progress`` raises ends it.

    A batch yields each source in order, with its outcome or the exception that came instead.
    """
    if isinstance(job, BatchJob):
        return _all(job, progress)
    if isinstance(job, CompareJob):
        return compare(job, progress)
    return _one(job, progress)


def _one(job: FileJob | SeriesJob, progress: Progress | None) -> Outcome:
    """Denoise one file or series, and take the time."""
    start = time.perf_counter()
    done = denoise_series(job, progress) if isinstance(job, SeriesJob) else _denoise(job, progress)
    return replace(done, seconds=time.perf_counter() - start)


def _denoise(job: FileJob, progress: Progress | None) -> Outcome:
    """Open the file, once, and see what it is."""
    if progress is not None:
        progress(0.0, "reading")
    with open_file(job.source) as file:
        if file.format == "VIDEO":
            if job.boxes.scheduler:
                raise UsageError(
                    "a cluster takes pictures and volumes, no video; leave it out", "scheduler"
                )
            return denoise_video(file, job.target, job.how, progress)
        if job.how.lossless:
            raise UsageError("only a video is written without loss; leave that out", "lossless")
        if FORMATS[file.format].is_raw:
            return denoise_raw_file(file, job.target, job.how, progress)
        large = None  # a series is not cut into boxes, which would part what moves
        if job.how.third != "time":
            in_pieces = all(
                FORMATS[each].in_pieces for each in (format_of(job.target), file.format)
            )
            if in_pieces or job.boxes.scheduler:
                large = large_source(file, job.target, job.boxes.scheduler)
        elif job.boxes.scheduler:
            raise UsageError(
                "a cluster takes pictures and volumes, no series; leave one of the two out",
                "series",
                "scheduler",
            )
        if large is not None:
            return denoise_boxes(large, job.target, job.how, progress, job.boxes)
        return denoise_file(file, job.target, job.how, progress)


def _all(batch: BatchJob, progress: Progress | None) -> Results:
    """Denoise all; files that are done at the same time share the cores, and one progress."""
    jobs = {job.source: job for job in batch.jobs}
    at_a_time = min(batch.at_a_time, max(len(jobs), 1))
    fractions, lock, stop = dict.fromkeys(jobs, 0.0), threading.Lock(), threading.Event()

    def denoise(source: Path) -> Outcome:
        def report(fraction: float, what: str) -> None:
            assert progress is not None
            with lock:
                fractions[source] = fraction
                progress(sum(fractions.values()) / len(fractions), f"{source.name}: {what}")

        job = jobs[source]
        callback: Progress | None = None if progress is None else report
        if at_a_time > 1:
            callback = stop_when(stop, callback)
            if job.how.workers is None:
                workers = max(default_workers() // at_a_time, 1)
                job = replace(job, how=replace(job.how, workers=workers))
        try:
            return _one(job, callback)
        finally:
            fractions[source] = 1.0  # whatever became of it

    return in_order(list(jobs), denoise, at_a_time, stop)


def in_order(
    sources: Sequence[Path], work_on: Callable[[Path], Result], jobs: int, stop: threading.Event
) -> Iterator[tuple[Path, Result | Exception]]:
    """Yield what became of each file, in order; at most ``jobs`` of them are in memory at a time.

    Ctrl-C sets ``stop``, which the work is expected to check.
    """

    def outcome(source: Path) -> Result | Exception:
        try:
            return work_on(source)
        except Exception as error:
            return error

    if jobs == 1 or len(sources) < 2:
        yield from ((source, outcome(source)) for source in sources)
        return
    with ThreadPoolExecutor(jobs) as threads:
        try:
            yield from ahead(threads, outcome, sources, jobs)
        except BaseException:
            stop.set()
            raise
