"""The only way in: a job is done, one file or many; files that are small are read whole, here."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar, overload

from ..core.parallel import Progress, ahead, default_workers, part_of, stop_when
from ..io import FileError, ImageFile
from ..io.base import OpenFile
from ..io.formats import FORMATS, check_writable, copy_file, format_of, open_file, write_checked
from ..io.images import cut, painted, unpainted, working_dtype
from .compare import CompareJob, Page, compare
from .job import (
    BoxOptions,
    Denoised,
    DenoiseJob,
    Outcome,
    dtype_warnings,
    no_progress,
    read_file,
    rounding_warning,
)
from .large import denoise_boxes, large_source
from .messages import JobWarning, UsageError
from .raw import denoise_raw_file
from .series import SeriesJob, denoise_series
from .stack import Pieces, check_frame, denoise_stack, frames_around
from .video import denoise_video

_READING, _WRITING = 0.01, 0.98  # fractions at which things begin, for the progress callback


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


def denoise_file(
    file: OpenFile, target: Path, job: DenoiseJob, progress: Progress | None
) -> Outcome:
    """Read, make sure that the result can be written, denoise, write."""
    report = progress or no_progress
    images = read_file(file, job.channel_axis)
    file.close()  # it may be what is written
    if job.finds_noise and job.channel_axis == "auto" and not job.dtype:
        images = [unpainted(image) for image in images]
    if job.frame is not None:
        images = [_around_frame(image, job.frame) for image in images]
    pieces = [Pieces(image, cut(image, job.third)) for image in images]
    target.parent.mkdir(parents=True, exist_ok=True)
    check_writable(target, [_only_frame(image.written_like(job.dtype)) for image in images])
    bilevel = [image.is_bilevel for image in images]
    share = (_WRITING - _READING) / len(images)
    made, found = [], []
    for number, each in enumerate(pieces):
        start = _READING + number * share
        if bilevel[number]:  # no noise
            done = Denoised(each.image.pixels)
        else:
            done = _denoise_image(job, each, part_of(progress, start, start + share))
        made.append(painted(_only_frame(each.image.written(job.dtype, done.pixels))))
        found.append(replace(done, pixels=None))
    lead = bilevel.index(False) if False in bilevel else 0  # the first that has noise
    image, first = images[lead], found[lead]
    report(_WRITING, "writing")
    if all(bilevel) and not job.dtype and format_of(target) == image.format:
        copy_file(file.path, target)  # nothing was done to it
    else:
        write_checked(target, made, job.note(first.words))
    report(1.0, "done")
    lost = _bilevel_warning(bilevel)
    if first.words is not None:
        dtype = made[lead].pixels.dtype
        lost = [
            *rounding_warning(image.pixels, image.n_channels, dtype, first.removed, target),
            *lost,
        ]
    stack, note = pieces[lead].stack, _note(job, image)
    return Outcome(file.path, target, image, stack, job, first.warn(lost), len(images), note)


def _denoise_image(job: DenoiseJob, pieces: Pieces, progress: Progress | None) -> Denoised:
    """Denoise one image of a file, in the dtype that it is written in."""
    image = pieces.image
    if not job.dtype:
        return denoise_stack(job, pieces, progress)
    work = working_dtype(image.pixels.dtype, job.dtype)
    found = denoise_stack(job, pieces, progress, dtype=work)
    lost = dtype_warnings(image, job.dtype, found.pixels)
    return replace(found, warnings=[*lost, *found.warnings])


def _bilevel_warning(are: Sequence[bool]) -> list[JobWarning]:
    """Say that images of a file were left alone: ``are`` tells which of them have one bit a pixel."""
    n_left = sum(are)
    if not n_left:
        return []
    text = (
        "one bit a pixel, black or white, has no noise level, so nothing was changed; "
        "to smooth it, save it as grey first"
    )
    if n_left < len(are):
        have, left = ("has", "was") if n_left == 1 else ("have", "were")
        some = f"{n_left} of {len(are)} images {have}"
        text = f"{some} one bit a pixel, which has no noise level, and {left} left alone"
    return [JobWarning("bilevel", text)]


def _note(job: DenoiseJob, image: ImageFile) -> JobWarning | None:
    """Say of a stack in time whose frames were taken one by one that they may help each other."""
    frames = image.pixels.shape[image.axes.index("T")] if "T" in image.axes else 1
    if frames < 2 or "Z" in image.axes or job.third != "auto" or not job.knows_time:
        return None
    text = f"its {frames} frames were denoised one by one; with {{series}} they help each other"
    return JobWarning("frames", text)


def _around_frame(image: ImageFile, number: int) -> ImageFile:
    """Return the part of a series that one of its frames can gain from."""
    if "T" not in image.axes:
        raise FileError(
            f"has no axis of time: its axes are {image.axes}; ask for no frame", "frame"
        )
    axis = image.axes.index("T")
    check_frame(number, image.pixels.shape[axis])
    around = frames_around(number, image.pixels.shape[axis])
    index = (slice(None),) * axis + (slice(around.start, around.stop),)
    details = replace(image.details, frame=number - around.start)
    alpha = None if image.alpha is None else image.alpha[index]
    return replace(image, pixels=image.pixels[index], alpha=alpha, details=details)


def _only_frame(image: ImageFile) -> ImageFile:
    """Return the one frame of a series that was asked for, as a picture; other images as they are."""
    if image.details.frame is None:
        return image
    axis = image.axes.index("T")
    index = (slice(None),) * axis + (image.details.frame,)
    channels = image.channel_axis
    if channels is not None:
        channels %= image.pixels.ndim
        channels -= channels > axis
    return replace(
        image,
        pixels=image.pixels[index],
        channel_axis=channels,
        alpha=None if image.alpha is None else image.alpha[index],
        format="",
        details=replace(image.details.for_other_pixels(), frame=None),
        axes=image.axes.replace("T", ""),
    )
