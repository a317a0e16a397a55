"""A video: frames denoised, all else kept.  It is one series unless asked for frame by frame."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.parallel import Progress
from .errors import UsageError
from .frame_numbers import check_frame, frames_around, frames_looked_at
from .frames import FrameRun, as_series
from .job_warnings import JobWarning
from .jobs import DenoiseJob, Outcome, no_progress

if TYPE_CHECKING:
    from ..io import ImageFile
    from ..io.base import OpenFile

_SURVEYED = 0.02  # of the time: all frames are decoded once before the work begins


def denoise_video(
    file: OpenFile, target: Path, job: DenoiseJob, progress: Progress | None
) -> Outcome:
    """Look through a video, find its noise, denoise it frame by frame or as a series, and write it."""
    from .. import __version__
    from ..io import FileError, atomic_write
    from ..io.base import naming_errors, one_line
    from ..io.formats import module_of

    start = time.perf_counter()
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
        return _denoise_frame(file, video, target, job, series, report, start)
    with naming_errors(file.path):
        io_video.encoder_of(video.pixels, job.lossless, target)
        looked_at = [each.pixels for each in video.some(frames_looked_at(n_frames))]
    report(_SURVEYED, "noise")
    run = _start(video, looked_at, job, series, n_frames // 2)
    if job.on_noise is not None:
        job.on_noise(run.noise)
    level = "" if run.words is None else f", {run.words.words}"
    note = f"symsmooth {__version__}: {job.method.name}{level}"
    waiting: deque[Any] = deque()
    try:
        with atomic_write(target) as handle:
            writer = io_video.VideoWriter(handle, target, video, job.lossless, note)
            try:
                for _, after in run.pairs(_read(file, video, waiting, others=writer.copy)):
                    writer.write(waiting.popleft(), after)
                    done = _SURVEYED + (1 - _SURVEYED) * run.n_done / n_frames
                    report(min(done, 1.0), f"frame {run.n_done} of {n_frames}")
                writer.close()
            except BaseException:
                writer.discard()
                raise
            file.close()  # it may be what is written
    except OSError as error:
        raise FileError(f"{target}: cannot be written: {one_line(error)}") from error
    check, warnings = run.check()
    if writer.dropped:
        text = (
            f"streams that {target.suffix} cannot hold were left out: {', '.join(writer.dropped)}"
        )
        warnings.append(JobWarning("streams", text))
    image = described(video)
    return Outcome(
        file.path, target, image, _stack(image, series), 1, job, run.words, job.chosen, warnings,
        time.perf_counter() - start, check,
    )  # fmt: skip


def look_at_video(file: OpenFile, job: DenoiseJob) -> tuple[ImageFile, FrameRun]:
    """Find the noise of a video from several frames; only these are decoded."""
    from ..io.base import naming_errors
    from ..io.formats import module_of

    with naming_errors(file.path):
        video = module_of("VIDEO").Video(file)
        video.survey(decode=False)
        numbers = frames_looked_at(len(video.times))
        looked_at = [each.pixels for each in video.some(numbers)]
    return described(video), _start(video, looked_at, job, True, 0)


def described(video: Any) -> ImageFile:
    """Return what is told of a video: an image with a T axis that has no pixels of its own."""
    import numpy as np

    from ..io.images import Details, ImageFile

    colours = video.pixels.colours
    dtype = np.uint8 if video.pixels.depth == 8 else np.uint16
    pixels = np.broadcast_to(np.zeros((), dtype), (len(video.times), *video.shape))
    details = Details(span=float(video.pixels.largest))
    axes = "TYXC" if colours else "TYX"
    return ImageFile(pixels, 3 if colours else None, None, video.format, details, axes)


def _stack(image: ImageFile, series: bool) -> Any:
    from ..io.stacks import cut

    return cut(image, "time" if series else "none")


def _surveyed(file: OpenFile, report: Progress) -> Any:
    """Open a video and look through it."""
    from ..io.base import naming_errors
    from ..io.formats import module_of

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


def _read(file: OpenFile, video: Any, waiting: deque[Any], **options: Any) -> Iterator[Any]:
    """Yield the pixels of frames; the frames wait until their pixels come back."""
    from ..io.base import naming_errors

    frames = video.frames(**options)
    while True:
        with naming_errors(file.path):
            frame = next(frames, None)
        if frame is None:
            return
        waiting.append(frame)
        yield frame.pixels


def _denoise_frame(
    file: OpenFile,
    video: Any,
    target: Path,
    job: DenoiseJob,
    series: bool,
    report: Progress,
    start: float,
) -> Outcome:
    """Denoise one frame, with those around it if they help, and write it as a picture."""
    from .. import __version__
    from ..io import ImageFile
    from ..io.files import check_writable, write_checked

    assert job.frame is not None
    around = (
        frames_around(job.frame, len(video.times)) if series else range(job.frame, job.frame + 1)
    )
    axis = -1 if video.pixels.colours else None
    pixels = list(_read(file, video, deque(), numbers=around))
    like = ImageFile(video.pixels.picture(pixels[0], video.rotation), axis, None, "")
    target.parent.mkdir(parents=True, exist_ok=True)
    check_writable(target, like)
    report(_SURVEYED, "noise")
    run = _start(video, pixels, job, series, job.frame - around.start)
    for number, (_, after) in zip(around, run.pairs(pixels), strict=True):
        report(_SURVEYED + (1 - _SURVEYED) * run.n_done / len(around), f"frame {number}")
        if number == job.frame:
            made = ImageFile(video.pixels.picture(after, video.rotation), axis, None, "")
    level = "" if run.words is None else f", {run.words.words}"
    write_checked(target, [made], f"symsmooth {__version__}: {job.method.name}{level}")
    check, warnings = run.check()
    image = described(video)
    return Outcome(
        file.path, target, image, _stack(image, series), 1, job, run.words, job.chosen, warnings,
        time.perf_counter() - start, check,
    )  # fmt: skip
