"""The only way in: a job, and what came of it."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import overload

from ..core.parallel import Progress, default_workers, stop_when
from .batch import Shares, in_order
from .compare import CompareJob, Page, compare
from .errors import UsageError
from .jobs import DenoiseJob, Outcome, denoise_file
from .large import BoxOptions, denoise_boxes, large_source
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
    """Many files, one after the other or several at a time."""

    targets: Mapping[Path, Path]  # by their sources
    how: DenoiseJob
    boxes: BoxOptions = field(default_factory=BoxOptions)
    at_a_time: int = 1


Job = FileJob | SeriesJob | BatchJob | CompareJob
Results = Iterator[tuple[Path, Outcome | Exception]]


@overload
def run(job: FileJob | SeriesJob, progress: Progress | None = None) -> Outcome: ...
@overload
def run(job: BatchJob, progress: Progress | None = None) -> Results: ...
@overload
def run(job: CompareJob, progress: Progress | None = None) -> Page: ...
def run(job: Job, progress: Progress | None = None) -> Outcome | Page | Results:
    """Do a job.

    Parameters
    ----------
    job : FileJob, SeriesJob, BatchJob or CompareJob
    progress : callable or None
        Told how far it is; an exception that it raises ends the work.

    Returns
    -------
    Outcome, Page, or for a batch an iterator
        Of a batch: each source in order, with its outcome or the exception that came instead.
    """
    if isinstance(job, FileJob):
        return _denoise(job, progress)
    if isinstance(job, SeriesJob):
        return denoise_series(job, progress)
    if isinstance(job, BatchJob):
        return _denoise_all(job, progress)
    return compare(job, progress)


def run_series(jobs: Sequence[SeriesJob], progress: Progress | None = None) -> Results:
    """Denoise several series one after the other; what comes back is that of a batch, by their folders."""
    by_place = {job.place: job for job in jobs if job.targets}  # where all is there, none is left
    shares = Shares(list(by_place), progress)

    def denoise(place: Path) -> Outcome:
        try:
            return denoise_series(by_place[place], shares.callback(place))
        finally:
            shares.end(place)

    return in_order(list(by_place), denoise, 1, threading.Event())


def _denoise(job: FileJob, progress: Progress | None) -> Outcome:
    """Open the file, once, and see what it is."""
    from ..io.formats import FORMATS, open_file

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


def _denoise_all(job: BatchJob, progress: Progress | None) -> Results:
    sources = list(job.targets)
    at_a_time = min(job.at_a_time, max(len(sources), 1))
    how = job.how
    if how.workers is None and at_a_time > 1:
        how = replace(how, workers=max(default_workers() // at_a_time, 1))
    stop = threading.Event()
    shares = Shares(sources, progress)

    def denoise(source: Path) -> Outcome:
        callback = shares.callback(source)
        if at_a_time > 1:
            callback = stop_when(stop, callback)
        try:
            return _denoise(FileJob(source, job.targets[source], how, job.boxes), callback)
        finally:
            shares.end(source)

    return in_order(sources, denoise, at_a_time, stop)
