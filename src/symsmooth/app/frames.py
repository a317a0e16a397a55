"""Frames of a series that is longer than memory: their noise, and their way through a method one by one.

Where frames come from and go to (``series``: files of pictures, ``video``) is not known here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from .errors import UsageError
from .jobs import DenoiseJob, apply, describe_noise, squared_change, trial
from .noise_left import warn_of_noise_left
from .noise_report import NoiseDescription, find_warnings

if TYPE_CHECKING:
    from ..core.image import Picture
    from ..noise import NoiseEstimator
    from ..noise.check import Check
    from .job_warnings import JobWarning

_ALL, _NONE = "all", "none"  # of the channels hold something of their own


def noise_of_frames(
    frames: Sequence[Any], channel_axis: int | None, job: DenoiseJob
) -> NoiseEstimator:
    """Return what measures the noise that frames have in common; on flat ground, that of the middle one."""
    import numpy as np

    from ..core.image import open_image
    from ..noise import NoiseEstimator
    from ..noise.specks import without_specks

    def open_them() -> Picture:
        if len(frames) == 1 or job.noise_region is not None:
            middle = frames[len(frames) // 2]
            opened = open_image(middle, channel_axis, None, job.channels)
        else:
            axis = None if channel_axis is None else channel_axis % frames[0].ndim + 1
            opened = open_image(np.stack(frames), axis, None, job.channels, time_axis=0)
        return without_specks(opened, job.specks)

    return NoiseEstimator(open_them)


def as_series(job: DenoiseJob) -> bool:
    """Whether frames of a video help each other: they do unless asked for otherwise, if the method can."""
    if job.third == "volume":
        raise UsageError("the frames of a video are not a volume; leave out --volume")
    if job.third == "time":
        check_series(job)
    return job.third != "none" and _knows_time(job)


def check_series(job: DenoiseJob) -> None:
    """Refuse what cannot be honoured for frames that come one by one."""
    if not _knows_time(job):
        raise UsageError(
            f"{job.method.name} does not use time; leave out --time, or --method {job.method.name}"
        )
    if job.options.get("tone") == "srgb":
        raise UsageError(
            "--tone srgb corrects pictures one by one, and a series would flicker; leave it out"
        )


def _knows_time(job: DenoiseJob) -> bool:
    return "time_axis" in job.method.accepts


class FrameRun:
    """Denoises frames and keeps what is told of them in the end.

    Parameters
    ----------
    job : DenoiseJob
    looked_at : sequence of ndarray
        Frames from which the noise of all is found.
    channel_axis : int or None
        Of a frame.
    span : float
        How far apart pixels can be.
    series : bool
        Whether frames help each other.
    middle : int
        The frame that is checked in the end.
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
        self._job, self._axis, self._span = job, channel_axis, span
        self._series, self._middle = series, middle
        by_channels: dict[str, list[Any]] = {}
        for frame in looked_at:
            by_channels.setdefault(self._own(frame), []).append(frame)
        if len(by_channels) > 1:
            by_channels.pop(_NONE, None)
        self._channels = max(by_channels, key=lambda own: (own == _ALL, len(by_channels[own])))
        alike = by_channels[self._channels]
        self.noise = job.find_noise(noise_of_frames(alike, channel_axis, job))
        self.words: NoiseDescription | None = None
        if self.noise is not None:
            self.words = describe_noise(job, self.noise, alike[len(alike) // 2], span)
        self.n_done, self._squares, self._n_pixels = 0, 0.0, 0
        self._checked: tuple[Any, Any] | None = None

    def pairs(self, frames: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
        """Yield each frame as it came, and denoised; frames are read as far ahead as is needed."""
        make = self._as_series if self._series else self._one_by_one
        for before, after in make(frames):
            if self.n_done <= self._middle:  # the last of a series that is shorter than it says
                self._checked = before, after
            self._squares += squared_change(before, after)
            self._n_pixels += before.size
            self.n_done += 1
            yield before, after

    def _one_by_one(self, frames: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
        for frame in frames:
            channels, model = self._own(frame), self.noise
            if channels == _NONE:
                yield frame, frame
                continue
            if model is not None and not self._fits(channels):
                model = self._job.find_noise(noise_of_frames([frame], self._axis, self._job))
            yield frame, apply(self._job, frame, self._axis, model, None)[0]

    def _as_series(self, frames: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
        """Denoise runs of frames that have the same channels, each as a series.

        A film may begin with black frames and have grey ones in the middle.  Noise of three channels is
        not that of one: such frames are series of their own, and constant ones stay as they are.
        """
        from ..gsfw.denoise import denoise_frames

        job = self._job
        options: dict[str, Any] = {
            name: value for name, value in job.options.items() if name not in ("noise", "tone")
        }
        for channels, alike in groupby(frames, self._own):
            if channels == _NONE:
                yield from ((frame, frame) for frame in alike)
                continue
            asked = job.options.get("noise", "auto")
            noise: Any = self.noise if self._fits(channels) else asked
            waiting: deque[Any] = deque()
            denoised = denoise_frames(
                _kept_in(waiting, alike), noise=noise, channel_axis=self._axis, rng=job.seed,
                workers=job.workers, **options,
            )  # fmt: skip
            for after in denoised:
                yield waiting.popleft(), after

    def _fits(self, channels: str) -> bool:
        """Whether the noise of all is that of a frame with these channels; a level that was given is."""
        return channels == self._channels or self._job.sigma is not None

    def _own(self, frame: Any) -> str:
        """Say which channels of a frame hold something of their own."""
        import numpy as np

        from ..core.image import open_image

        axis = self._axis
        last = frame[..., np.newaxis] if axis is None else np.moveaxis(frame, axis, -1)
        known = last[np.isfinite(last).all(axis=-1)]
        if not known.size or (known == known[0]).all():
            return _NONE
        return _ALL if axis is None else _own_channels(open_image(frame, axis))

    @property
    def removed(self) -> float:
        """Root mean square of what was removed."""
        return (self._squares / max(self._n_pixels, 1)) ** 0.5

    def check(self) -> tuple[Check | None, list[JobWarning]]:
        """Return what a look at the middle frame says, and what is doubtful."""
        from ..noise.check import check_result

        if self.noise is None or self.words is None or self._checked is None:
            return None, []
        before, after = self._checked
        warnings = find_warnings(self.words, before, self._span, self.removed, self._job.sigma)
        if not self._fits(self._own(before)):  # a black or grey frame between others
            return None, warnings
        picture = noise_of_frames([before], self._axis, self._job).picture
        check = check_result(picture, after, self.noise)
        if self._job.may_warn:
            own = trial(self._job, self._axis)
            warnings += warn_of_noise_left(check, picture, self.noise, self._span, own)
        return check, warnings


def _kept_in(waiting: deque[Any], frames: Iterable[Any]) -> Iterator[Any]:
    for frame in frames:
        waiting.append(frame)
        yield frame


def _own_channels(picture: Picture) -> str:
    return _ALL if picture.counted is None else str(picture.counted.own)
