"""A video: frames denoised, all else kept.  It is one series unless asked for frame by frame."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

from ..core.parallel import Progress
from ..io import FileError, atomic_write
from ..io.base import OpenFile, naming_errors, one_line
from ..io.formats import check_writable, module_of, write_checked
from ..io.images import Details, ImageFile, cut
from .job import Denoised, DenoiseJob, Outcome, no_progress
from .messages import JobWarning, UsageError
from .series import FrameRun, as_series
from .stack import check_frame, frames_around, frames_looked_at

_SURVEYED = 0.02  # of the time: all frames are decoded once before the work begins


def denoise_video(
    file: OpenFile, target: Path, job: DenoiseJob, progress: Progress | None
) -> Outcome:
    """Look through a video, find its noise, denoise it frame by frame or as a series, and write it."""
    report = progress or no_progress
    series = as_series(job)
    if job.dtype:
        raise UsageError("a video keeps its depth; leave the dtype out", "dtype")
    with naming_errors(file.path):
        io_video = module_of("VIDEO")
    if job.frame is None:
        target.parent.mkdir(parents=True, exist_ok=True)
        io_video.check_name(target, job.lossless)
    video = _surveyed(file, report)
    n_frames = len(video.times)
    if job.frame is not None:
        check_frame(job.frame, n_frames)
        return _denoise_frame(file, video, target, job, series, report)
    with naming_errors(file.path):
        io_video.encoder_of(video.pixels, job.lossless, target)
        looked_at = [each.pixels for each in video.some(frames_looked_at(n_frames))]
    report(_SURVEYED, "noise")
    run = _start(video, looked_at, job, series, n_frames // 2)
    try:
        with atomic_write(target) as handle:
            writer = io_video.VideoWriter(handle, target, video, job.lossless, job.note(run.words))
            try:
                frames = _read(file, video, others=writer.copy)
                for frame, after in run.pairs(frames, attrgetter("pixels")):
                    writer.write(frame, after)
                    done = _SURVEYED + (1 - _SURVEYED) * run.n_done / n_frames
                    report(min(done, 1.0), f"frame {run.n_done} of {n_frames}")
                writer.close()
            except BaseException:
                writer.discard()
                raise
            file.close()  # it may be what is written
    except OSError as error:
        raise FileError(f"{target}: cannot be written: {one_line(error)}") from error
    found = run.finish()
    if writer.dropped:
        dropped = ", ".join(writer.dropped)
        text = f"streams that {target.suffix} cannot hold were left out: {dropped}"
        found = found.warn([JobWarning("streams", text)])
    return _outcome(file, target, video, job, series, found)


def look_at_video(file: OpenFile, job: DenoiseJob) -> tuple[ImageFile, FrameRun]:
    """Find the noise of a video from several frames; only these are decoded."""
    with naming_errors(file.path):
        video = module_of("VIDEO").Video(file)
        video.survey(decode=False)
        numbers = frames_looked_at(len(video.times))
        looked_at = [each.pixels for each in video.some(numbers)]
    return described(video), _start(video, looked_at, job, True, 0)


def described(video: Any) -> ImageFile:
    """Return what is told of a video: an image with a T axis that has no pixels of its own."""
    colours = video.pixels.colours
    dtype = np.uint8 if video.pixels.depth == 8 else np.uint16
    pixels = np.broadcast_to(np.zeros((), dtype), (len(video.times), *video.shape))
    details = Details(span=float(video.pixels.largest))
    axes = "TYXC" if colours else "TYX"
    return ImageFile(pixels, 3 if colours else None, None, video.format, details, axes)


def _outcome(
    file: OpenFile, target: Path, video: Any, job: DenoiseJob, series: bool, found: Denoised
) -> Outcome:
    image = described(video)
    return Outcome(file.path, target, image, cut(image, "time" if series else "none"), job, found)


def _surveyed(file: OpenFile, report: Progress) -> Any:
    """Open a video and look through it."""
    with naming_errors(file.path):
        video = module_of("VIDEO").Video(file)
    said = video.stream.frames

    def tell(n_frames: int) -> None:
        share = n_frames / said if said else 0.0
        report(_SURVEYED * min(share, 1.0), f"checking frame {n_frames}")

    with naming_errors(file.path):
        video.survey(report=tell)
    return video


def _start(
    video: Any, looked_at: list[Any], job: DenoiseJob, series: bool, middle: int
) -> FrameRun:
    axis = -1 if video.pixels.colours else None
    return FrameRun(job, looked_at, axis, float(video.pixels.largest), series, middle)


def _read(file: OpenFile, video: Any, **options: Any) -> Iterator[Any]:
    """Yield frames; errors name the file."""
    frames = video.frames(**options)
    while True:
        with naming_errors(file.path):
            frame = next(frames, None)
        if frame is None:
            return
        yield frame


def _denoise_frame(
    file: OpenFile, video: Any, target: Path, job: DenoiseJob, series: bool, report: Progress
) -> Outcome:
    """Denoise one frame, with those around it if they help, and write it as a picture."""
    assert job.frame is not None
    around = (
        frames_around(job.frame, len(video.times)) if series else range(job.frame, job.frame + 1)
    )
    axis = -1 if video.pixels.colours else None
    pixels = [frame.pixels for frame in _read(file, video, numbers=around)]
    like = ImageFile(video.pixels.picture(pixels[0], video.rotation), axis, None, "")
    target.parent.mkdir(parents=True, exist_ok=True)
    check_writable(target, like)
    report(_SURVEYED, "noise")
    run = _start(video, pixels, job, series, job.frame - around.start)
    for number, (_, after) in zip(around, run.pairs(pixels), strict=True):
        report(_SURVEYED + (1 - _SURVEYED) * run.n_done / len(around), f"frame {number}")
        if number == job.frame:
            made = ImageFile(video.pixels.picture(after, video.rotation), axis, None, "")
    write_checked(target, [made], job.note(run.words))
    return _outcome(file, target, video, job, series, run.finish())
