"""Frames that come one by one: a series, or pictures, that are longer than memory.

Where they come from and go to (``series``: files of pictures, ``video``) is not known here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from ..gsfw import denoise
from .job import DenoiseJob
from .messages import UsageError
from .stack import (
    NONE,
    StackRun,
    apply,
    check_series,
    noise_of_frames,
    own_channels,
    with_most_channels,
)


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
