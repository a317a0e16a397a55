"""Frames that come one by one, longer than memory: of a video, or of a series whose frames are files.

A time lapse and a burst are such a series: frames help each other, and each stays a file.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from ..core.parallel import Progress
from ..gsfw import denoise
from ..io import FileError, ImageFile, check_writable
from ..io.formats import natural_order, open_file, write_checked
from ..io.images import cut, working_dtype
from .job import (
    DenoiseJob,
    Outcome,
    dtype_warnings,
    expand,
    no_progress,
    plan_outputs,
    read_file,
    rounding_warning,
)
from .messages import JobWarning, UsageError, value_range
from .raw import is_raw
from .stack import (
    NONE,
    StackRun,
    apply,
    check_frame,
    check_series,
    frames_around,
    frames_looked_at,
    noise_of_frames,
    own_channels,
    with_most_channels,
)

_CHECKED = 0.02  # of the time: all frames are read once before the work begins


def as_series(job: DenoiseJob) -> bool:
    """Whether frames of a video help each other: they do unless asked for otherwise, if the method can."""
    if job.third == "volume":
        raise UsageError(
            "frames of a video are no slices of a volume; make them a series, or take them one by one",
            "volume",
        )
    if job.third == "time":
        check_series(job)
    return job.third != "none" and job.knows_time


class FrameRun(StackRun):
    """Frames that come one by one: longer than memory, from a video or a folder.

    The noise of all is found from frames that are ``looked_at``; in a ``series`` frames help each other,
    and the one with the number ``middle`` is checked in the end.
    """

    def __init__(
        self,
        job: DenoiseJob,
        looked_at: Sequence[Any],
        channel_axis: int | None,
        span: float,
        series: bool,
        middle: int,
    ) -> None:
        self._series, self._middle, self.n_done = series, middle, 0
        alike = with_most_channels(looked_at, channel_axis)
        sample = alike[len(alike) // 2]
        seen = [sample] if job.noise_region is not None else alike
        estimator = noise_of_frames(seen, channel_axis, job.channels, job.specks)
        super().__init__(job, estimator, job.find_noise(estimator), sample, channel_axis, span)

    def pairs(
        self, frames: Iterable[Any], pixels_of: Callable[[Any], Any] = np.asarray
    ) -> Iterator[tuple[Any, Any]]:
        """Yield each frame as it came, and its pixels denoised; they are read as far ahead as is needed."""
        waiting: deque[tuple[Any, Any]] = deque()

        def read() -> Iterator[Any]:
            for frame in frames:
                waiting.append((frame, pixels_of(frame)))
                yield waiting[-1][1]

        for after in self._as_series(read()) if self._series else self._one_by_one(read()):
            frame, before = waiting.popleft()
            if self.n_done <= self._middle:  # the last of a series that is shorter than it says
                self.checked = before, after
            self.note(before, after)
            self.n_done += 1
            yield frame, after

    def _one_by_one(self, frames: Iterable[Any]) -> Iterator[Any]:
        for frame in frames:
            channels = own_channels(frame, self._axis)
            if channels == NONE:
                yield frame
            else:
                noise = self.noise_of(frame, channels)
                yield apply(self._job, frame, self._axis, noise, None).pixels

    def _as_series(self, frames: Iterable[Any]) -> Iterator[Any]:
        """Denoise runs of frames that have the same channels, each as a series, as a stack's are."""
        job = self._job
        options: dict[str, Any] = {
            name: value for name, value in job.options.items() if name not in ("noise", "tone")
        }
        for channels, alike in groupby(frames, lambda frame: own_channels(frame, self._axis)):
            if channels == NONE:
                yield from alike
                continue
            noise: Any = self.noise if self.fits(channels) else job.options.get("noise", "auto")
            yield from denoise.denoise_frames(
                alike,
                noise=noise,
                channel_axis=self._axis,
                rng=job.seed,
                workers=job.workers,
                **options,
            )


@dataclass(frozen=True)
class SeriesJob:
    """Pictures that are the frames of one series."""

    sources: Sequence[Path]  # in order
    targets: Mapping[Path, Path]  # by their sources; others are only looked at
    how: DenoiseJob

    @property
    def source(self) -> Path:
        """The folder of the frames."""
        return self.sources[0].parent


def find_series(
    names: Sequence[str], out: Path | None = None, tell: Callable[[str], None] | None = None
) -> list[list[Path]]:
    """Return the series that names, folders and patterns stand for, frames in natural order.

    The pictures of one folder are one series.  Stacks and videos are series already: where the first file
    is one of them, or where there is no second file, there is nothing to join, and the list is empty.
    """
    found = dict.fromkeys(path for name in names for path, _ in expand(name, out, tell))
    if len(found) < 2 or not _is_picture(next(iter(found))):
        return []
    folders: dict[Path, list[Path]] = {}
    for path in found:
        folders.setdefault(path.parent, []).append(path)
    alone = next((paths[0] for paths in folders.values() if len(paths) == 1), None)
    if alone is not None:
        raise UsageError(f"{alone} is alone in its folder; the pictures of a folder are a series")
    return [sorted(paths, key=natural_order) for paths in folders.values()]


def plan_series(
    names: Sequence[str],
    out: str,
    how: DenoiseJob,
    overwrite: bool,
    resume: bool,
    tell: Callable[[str], None] | None = None,
) -> list[SeriesJob]:
    """Return what is to be done to pictures that are series; an empty list if they are none.

    Rules for what exists are those of :func:`plan_outputs`.  Frames that exist already are not
    written again, but the others need them.
    """
    every = find_series(names, Path(out), tell)
    if not every:
        return []
    check_series(how)
    if how.lossless:
        raise UsageError("only a video is written without loss; leave that out", "lossless")
    if how.frame is not None:
        return [_plan_frame(sources, out, how, overwrite, resume) for sources in every]
    targets = plan_outputs(names, out, overwrite, resume).targets
    total = sum(map(len, every))
    if len(targets) < total and tell is not None:
        tell(f"skipped {total - len(targets)} of {total} frames: their output exists")
    return [
        SeriesJob(sources, {path: targets[path] for path in sources if path in targets}, how)
        for sources in every
    ]


def _plan_frame(
    sources: Sequence[Path], out: str, how: DenoiseJob, overwrite: bool, resume: bool
) -> SeriesJob:
    """Plan one frame, with those that help it."""
    assert how.frame is not None
    check_frame(how.frame, len(sources))
    chosen = sources[how.frame]
    targets = plan_outputs([str(chosen)], out, overwrite, resume).targets
    around = frames_around(how.frame, len(sources))
    return SeriesJob([sources[number] for number in around], targets, how)


def denoise_series(job: SeriesJob, progress: Progress | None) -> Outcome:
    """Check all frames, find their noise, denoise them together, write each as it is done."""
    report = progress or no_progress
    first, run = _prepare(job, report)
    n_frames, how = len(job.sources), job.how
    lost: list[JobWarning] = []
    work = working_dtype(first.pixels.dtype, how.dtype)
    frames = ((path, _read_frame(path, how)) for path in job.sources)
    for (path, image), after in run.pairs(frames, lambda f: f[1].pixels.astype(work, copy=False)):
        target = job.targets.get(path)
        if target is not None:
            lost = lost or dtype_warnings(image, how.dtype, after)
            write_checked(target, [image.written(how.dtype, after)], how.note(run.words))
        done = _CHECKED + (1 - _CHECKED) * run.n_done / n_frames
        report(done, f"frame {run.n_done} of {n_frames}")
    targets = list(job.targets.values())
    if targets and run.words is not None:
        dtype = first.written_like(how.dtype).pixels.dtype
        lost += rounding_warning(first.pixels, first.n_channels, dtype, run.removed, targets[0])
    whole, stack = _joined(first, n_frames)
    one = len(targets) == 1
    source = next(iter(job.targets)) if one else job.source
    target = (targets[0] if one else targets[0].parent) if targets else job.source
    return Outcome(source, target, whole, stack, how, run.finish().warn(lost))


def look_at_series(sources: Sequence[Path], how: DenoiseJob) -> tuple[ImageFile, FrameRun]:
    """Find the noise of a series from several frames; only these are read."""
    frames: list[ImageFile] = []
    for number in frames_looked_at(len(sources)):
        frames.append(_read_frame(sources[number], how))
        _check_alike(frames[0], frames[-1], sources[number])
    first, pixels = frames[0], [image.pixels for image in frames]
    span = max(map(value_range, pixels))
    whole, _ = _joined(first, len(sources))
    whole = replace(whole, details=replace(whole.details, span=span))
    return whole, FrameRun(how, pixels, first.channel_axis, span, True, 0)


def _prepare(job: SeriesJob, report: Progress) -> tuple[ImageFile, FrameRun]:
    """Read all frames once: what cannot be one series is refused before the work; find the noise."""
    how, n_frames = job.how, len(job.sources)
    looked_at = set(frames_looked_at(n_frames))
    first, frames = None, []
    for number, path in enumerate(job.sources):
        report(_CHECKED * number / n_frames, f"reading frame {number + 1} of {n_frames}")
        image = _read_frame(path, how)
        first = first or image
        _check_alike(first, image, path)
        target = job.targets.get(path)
        if target is not None:
            target.parent.mkdir(parents=True, exist_ok=True)
            check_writable(target, image.written_like(how.dtype))
        if number in looked_at:
            frames.append(image.pixels)
    assert first is not None
    report(_CHECKED, "noise")
    span = max(map(value_range, frames))
    return first, FrameRun(how, frames, first.channel_axis, span, True, n_frames // 2)


def _read_frame(path: Path, how: DenoiseJob) -> ImageFile:
    """Read a flat picture."""
    with open_file(path) as file:
        if is_raw(file):
            raise FileError(
                f"{path}: is a raw mosaic; a series is made of pictures, so develop them first"
            )
        images = read_file(file, how.channel_axis)
    image = images[0]
    if len(images) > 1 or len(cut(image, "none")) > 1:
        raise FileError(f"{path}: is not a 2-D picture, and frames of a series are; leave it out")
    if image.is_bilevel:
        raise FileError(f"{path}: has one bit a pixel, which has no noise level; leave it out")
    return image


def _is_picture(path: Path) -> bool:
    """Whether a file holds pictures that may be frames, and not a series."""
    try:
        with open_file(path) as file:
            if file.format == "VIDEO":
                return False
            return is_raw(file) or "T" not in read_file(file, "auto")[0].axes
    except FileError:
        return True  # what is wrong with it is told when it is read


def _check_alike(first: ImageFile, image: ImageFile, path: Path) -> None:
    """Refuse a frame that is not like the first."""
    kinds = [(each.pixels.shape, each.pixels.dtype, each.channel_axis) for each in (first, image)]
    if kinds[0] != kinds[1]:
        raise FileError(
            f"{path}: is {_kind(image)}, frames before it {_kind(first)}; a series has one size and dtype"
        )
    ramps = [None if each.ramp is None else each.ramp.colours.tobytes() for each in (first, image)]
    if ramps[0] != ramps[1]:
        raise FileError(f"{path}: has another palette than the frames before it; save all in grey")


def _kind(image: ImageFile) -> str:
    channels = f" in {image.n_channels} channels" if image.channel_axis is not None else ""
    return f"{image.size} {image.pixels.dtype}{channels}"


def _joined(first: ImageFile, n_frames: int) -> tuple[ImageFile, Any]:
    """Return a series as one image with a T axis; of its pixels only the first frame is there."""
    pixels = np.broadcast_to(first.pixels, (n_frames, *first.pixels.shape))
    axis = first.channel_axis
    axis = None if axis is None else axis % first.pixels.ndim + 1
    whole = replace(first, pixels=pixels, channel_axis=axis, axes=f"T{first.axes}")
    return whole, cut(whole, "time")
