"""One way to denoise a stack: slice by slice, as volumes or as series, in memory or frame by frame.

Where pixels come from and go to is not known here: a file that is read whole (``run``), a layer of a
viewer, files of pictures (``series``), ``video``.  A picture is a stack of one slice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from ..core.blocks import WHOLE, sample_of
from ..core.channels import count_channels
from ..core.image import Picture, check_image, open_image
from ..core.parallel import Progress, part_of
from ..gsfw.pieces import is_large
from ..io import ImageFile
from ..io.images import Stack, cut
from ..noise import Noise, NoiseEstimator
from ..noise.check import Check, check_result
from ..noise.specks import without_specks
from .job import Denoised, DenoiseJob
from .messages import JobWarning, NoiseDescription, UsageError, describe, find_warnings, value_range
from .noise_left import warn_of_noise_left

Index = tuple[int | slice, ...]  # of a piece of a stack

_NOISE_TIME = 0.05  # of the whole, for the progress callback: the search for the noise
_MAX_ESTIMATES = 8  # slices from which the noise level of a stack is taken
_CHECKED = 512  # pixels a side of a large picture that are checked
_ALL, NONE = "all", "none"  # of the channels hold something of their own
# Frames whose noise is looked at: neighbours in the middle, and others from all over, because a series may
# begin in the dark, and its exposure may drift.
_NEIGHBOURS, _OTHERS = 6, 6
_BLOCK = 23  # frames that are denoised as one block at most: those that one frame can gain from


def frames_looked_at(n_frames: int) -> list[int]:
    """Return the numbers of the frames from which the noise of a series is found, in order."""
    if n_frames <= _NEIGHBOURS + _OTHERS:
        return list(range(n_frames))
    first = (n_frames - _NEIGHBOURS) // 2
    others = ((2 * i + 1) * n_frames // (2 * _OTHERS) for i in range(_OTHERS))
    return sorted({*range(first, first + _NEIGHBOURS), *others})


def frames_around(number: int, n_frames: int) -> range:
    """Return the frames that one frame can gain from, itself among them."""
    start = max(min(number - _BLOCK // 2, n_frames - _BLOCK), 0)
    return range(start, min(start + _BLOCK, n_frames))


def check_frame(number: int, n_frames: int) -> None:
    """Refuse the number of a frame that is not there."""
    if number >= n_frames:
        raise UsageError(f"frame {number} is not there: frames are 0 to {n_frames - 1}", "frame")


@dataclass(frozen=True)
class Pieces:
    """Pixels, and how they are cut into pictures, volumes or series."""

    image: ImageFile  # its pixels may be lazy, as those of dask and Zarr: they are loaded by pieces
    stack: Stack
    n_colours: int | None = None  # of the last axis are denoised, if not all: opacity stays

    def load(self, index: Index) -> Any:
        """Return the pixels at an index."""
        return self.colours(np.asarray(self.image.pixels[index]))

    def colours(self, pixels: Any) -> Any:
        """Return pixels without opacity."""
        return pixels if self.n_colours is None else pixels[..., : self.n_colours]

    @cached_property
    def middle(self) -> Index:
        """The middle piece, or the one nearest to it that shows something in all channels, or at all."""
        pieces, seen = self.stack.pieces, None
        middle = len(pieces) // 2
        for number in sorted(range(len(pieces)), key=lambda number: abs(number - middle)):
            if len(pieces) > 1:
                piece = self.load(pieces[number])
                if own_channels(piece, self.stack.channel_axis) == _ALL:
                    return pieces[number]
                if seen is None and _has_pixels(piece):
                    seen = pieces[number]
        return pieces[middle] if seen is None else seen

    def estimator(
        self, job: DenoiseJob | None = None, *, whole: bool = False, opened: Picture | None = None
    ) -> NoiseEstimator:
        """Return what measures its noise: that of the middle slice, the level that of several.

        Frames of a series are looked at together; of one large picture windows are, unless it is asked for
        ``whole``.  A picture may be ``opened`` already.
        """
        asked: tuple[Any, Any] = ("auto", "auto") if job is None else (job.channels, job.specks)
        stack, axis = self.stack, self.stack.channel_axis
        if stack.time_axis is not None:
            axis = self.channel_axis_of_frames
            return noise_of_frames(with_most_channels(self.frames_looked_at(), axis), axis, *asked)

        def open_others(opened: Picture) -> Iterator[Picture]:
            step = max(len(stack) // _MAX_ESTIMATES, 1)
            for index in stack.pieces[step // 2 :: step]:
                piece = self.load(index)
                if index == self.middle:
                    yield opened
                elif _has_pixels(piece):
                    other = _opened(piece, axis, *asked)
                    if other.noisy.shape[-1] == opened.noisy.shape[-1]:  # no grey one among colours
                        yield other

        def open_middle() -> Picture:
            if opened is not None:
                return without_specks(opened, asked[1])
            piece = self.load(self.middle)
            if len(stack) == 1 and not whole and _is_large(piece, axis):
                piece = sample_of(piece, axis)
            return _opened(piece, axis, *asked)

        return NoiseEstimator(open_middle, open_others if len(stack.pieces) > 1 else None)

    @property
    def channel_axis_of_frames(self) -> int | None:
        """The axis of the channels in a frame of a series."""
        axis, time = self.stack.channel_axis, self.stack.time_axis
        return axis if axis is None or time is None or axis < time else axis - 1

    def frames_looked_at(self) -> list[Any]:
        """Return the frames of the middle series from which the noise of all is found."""
        time = self.image.axes.index(self.stack.third)
        index = list(self.middle)
        frames = []
        for number in frames_looked_at(self.image.pixels.shape[time]):
            index[time] = number
            frames.append(self.load(tuple(index)))
        return frames


def _is_large(pixels: Any, channel_axis: int | None) -> bool:
    """Whether a picture is denoised in pieces, and so never opened whole."""
    return is_large(check_image(pixels, channel_axis))


def noise_of_frames(
    frames: Sequence[Any], channel_axis: int | None, channels: Any, specks: Any
) -> NoiseEstimator:
    """Return what measures the noise that frames have in common."""
    if len(frames) == 1:
        return NoiseEstimator(lambda: _opened(frames[0], channel_axis, channels, specks))
    axis = None if channel_axis is None else channel_axis % frames[0].ndim + 1
    return NoiseEstimator(lambda: _opened(np.stack(frames), axis, channels, specks, 0))


def _opened(
    pixels: Any, channel_axis: int | None, channels: Any, specks: Any, time_axis: int | None = None
) -> Picture:
    return without_specks(open_image(pixels, channel_axis, None, channels, time_axis), specks)


def own_channels(pixels: Any, channel_axis: int | None) -> str:
    """Say which channels of a picture or volume hold something of their own."""
    last = (
        pixels[..., np.newaxis] if channel_axis is None else np.moveaxis(pixels, channel_axis, -1)
    )
    missing = None
    if last.dtype.kind == "f" and not (finite := np.isfinite(last).all(axis=-1)).all():
        missing = ~finite
    known = last if missing is None else last[~missing]
    if not known.size or all((part == known[(0,) * (known.ndim - 1)]).all() for part in known):
        return NONE
    counted = None if channel_axis is None else count_channels(last, missing)
    return _ALL if counted is None else str(counted.own)


def with_most_channels(frames: Sequence[Any], axis: int | None) -> list[Any]:
    """Return the frames in which all channels show something, or else the most frames that are alike."""
    by_channels: dict[str, list[Any]] = {}
    for frame in frames:
        by_channels.setdefault(own_channels(frame, axis), []).append(frame)
    if len(by_channels) > 1:
        by_channels.pop(NONE, None)
    return by_channels[max(by_channels, key=lambda own: (own == _ALL, len(by_channels[own])))]


def find_noise(job: DenoiseJob, pieces: Pieces, plane: Index | None = None) -> Noise | None:
    """Return the noise that is to be removed from a stack: as was said, measured, or as its pixels say.

    Flat ground is measured on a plane of the stack, the middle one if none is given.
    """
    return _found_noise(job, pieces, plane)[0]


def _found_noise(
    job: DenoiseJob, pieces: Pieces, plane: Index | None = None, opened: Picture | None = None
) -> tuple[Noise | None, NoiseEstimator]:
    stack = pieces.stack
    ground = estimator = pieces.estimator(job, opened=opened)
    if job.noise_region is not None:
        if plane is not None or stack.third:
            flat = replace(pieces, stack=cut(pieces.image, "none"))
            middle = flat.middle if plane is None else plane
            pieces = replace(flat, stack=replace(flat.stack, pieces=[middle]))
        ground = pieces.estimator(job, whole=True)
    return job.find_noise(ground), estimator


def denoise_stack(
    job: DenoiseJob,
    pieces: Pieces,
    progress: Progress | None = None,
    *,
    noise: Noise | None = None,
    dtype: Any = None,
    with_std: bool = False,
) -> Denoised:
    """Denoise all pieces of a stack with one noise: that of the whole, if this is a part, or what is found.

    Pixels are denoised in a dtype, by default their own; the default method also knows the standard
    deviation of its result.
    """
    stack, image = pieces.stack, pieces.image
    if stack.time_axis is not None:
        check_series(job)
    if progress is not None:
        progress(0.0, "noise")
    work = np.dtype(image.pixels.dtype if dtype is None else dtype).newbyteorder("=")
    middle, axis = pieces.load(pieces.middle), stack.channel_axis
    opened, count = None, len(stack.pieces)
    if count == 1 and work == image.pixels.dtype:
        opened = _open_once(job, middle, stack)
    if noise is not None:
        estimator = pieces.estimator(job, opened=opened)
    else:
        noise, estimator = _found_noise(job, pieces, opened=opened)
    span = value_range(image.pixels if isinstance(image.pixels, np.ndarray) else middle)
    run = StackRun(job, estimator, noise, middle, pieces.channel_axis_of_frames, span)
    result = np.empty(image.pixels.shape, work)
    std = np.zeros(image.pixels.shape, np.float32) if with_std else None
    learned: Mapping[str, object] = {}
    for number, index in enumerate(stack.pieces):
        if stack.time_axis is not None or pieces.n_colours is not None:  # of which a part may stay
            result[index] = image.pixels[index]
        before, after = pieces.load(index).astype(work, copy=False), pieces.colours(result[index])
        if not _has_pixels(before):  # an empty frame stays one
            result[index] = image.pixels[index]
            continue
        name = f"slice {number + 1} of {count}: " if count > 1 else ""
        for part, model, share in run.parts(before, stack.time_axis, alone=count == 1):
            start, end = (_NOISE_TIME + (1 - _NOISE_TIME) * (number + at) / count for at in share)
            report = part_of(progress, start, end, name)
            given = before[part] if opened is None else opened
            found = apply(job, given, axis, model, report, stack.time_axis)
            after[part], learned = found.pixels, found.learned
            if std is not None:
                pieces.colours(std[index])[part] = found.find_std()
        run.note(before, after)
        if index == pieces.middle and stack.time_axis is not None:
            frames = (np.moveaxis(each, stack.time_axis, 0) for each in (before, after))
            run.checked = tuple(each[len(each) // 2] for each in frames)
        elif index == pieces.middle:
            run.checked = before, after
    is_opened = opened is not None or (count > 1 and stack.time_axis is None)
    return run.finish(
        estimator.picture if is_opened else None, pixels=result, std=std,
        learned=learned if count == 1 else {},
        channels="" if noise is None else _channel_words(estimator.picture),
    )  # fmt: skip


def _open_once(job: DenoiseJob, pixels: Any, stack: Stack) -> Picture | None:
    """Return the only picture of a stack, opened for noise, method and check; None if that cannot be."""
    if not job.method.takes_opened or stack.time_axis is not None or not _has_pixels(pixels):
        return None
    given = check_image(pixels, stack.channel_axis)
    return None if is_large(given) else given.open(job.channels)


def _has_pixels(pixels: Any) -> bool:
    """Whether there is a number among pixels; whole numbers need no look, which takes 0.2 s a picture."""
    return pixels.size > 0 if pixels.dtype.kind in "iu" else bool(np.isfinite(pixels).any())


class StackRun:
    """What holds for all pieces of a stack, and what is told of them in the end.

    ``noise`` is removed from all pieces that are like the picture of ``estimator``; ``sample`` is one of
    them, ``channel_axis`` that of a piece, or of a frame of a series, ``span`` how far apart pixels can be.
    """

    def __init__(
        self,
        job: DenoiseJob,
        estimator: NoiseEstimator,
        noise: Noise | None,
        sample: Any,
        channel_axis: int | None,
        span: float,
    ) -> None:
        job.on_noise(noise)
        self._job, self._estimator, self._axis, self._span = job, estimator, channel_axis, span
        self.noise = noise
        self.words = None if noise is None else describe_noise(job, noise, sample, span)
        self._squares, self._n_pixels = 0.0, 0
        self.checked: Any = None  # the piece that is looked at in the end, before and after

    def parts(
        self, pixels: Any, time_axis: int | None, alone: bool
    ) -> Iterator[tuple[Any, Noise | None, tuple[float, float]]]:
        """Yield parts of a piece that have one noise: where, which, and from where to where in the piece.

        None stands for noise that is found in the part.  Black frames of a series, and grey ones in
        colour, are no part of it: noise of three channels is not that of one.
        """
        if time_axis is None:
            noise = self.noise
            if not alone and self._axis is not None:
                noise = self.noise_of(pixels, own_channels(pixels, self._axis))
            yield ..., noise, (0.0, 1.0)
            return
        frames, start = np.moveaxis(pixels, time_axis, 0), 0
        for channels, alike in groupby(own_channels(frame, self._axis) for frame in frames):
            stop = start + len(list(alike))
            if channels != NONE:
                part = (slice(None),) * time_axis + (slice(start, stop),)
                noise = self.noise if self.fits(channels) else None
                yield part, noise, (start / len(frames), stop / len(frames))
            start = stop

    def noise_of(self, piece: Any, channels: str) -> Noise | None:
        """Return the noise of a picture: that of all, or its own if it is a grey one among colours."""
        if self.noise is None or channels == NONE or self.fits(channels):
            return self.noise
        job = self._job
        return job.find_noise(noise_of_frames([piece], self._axis, job.channels, job.specks))

    def note(self, before: Any, after: Any) -> None:
        """Count what was removed from a piece, or from a sample of a large picture."""
        before, after = self._sampled(before), self._sampled(after)
        self._squares += squared_change(before, after)
        self._n_pixels += before.size

    def _sampled(self, piece: Any) -> Any:
        """Return what is looked at of a picture: windows, if it is large; all of a volume or series."""
        is_picture = piece.ndim == 2 + (self._axis is not None)
        return sample_of(piece, self._axis) if is_picture and piece.size > WHOLE else piece

    @property
    def removed(self) -> float:
        """Root mean square of what was removed."""
        return (self._squares / max(self._n_pixels, 1)) ** 0.5

    def fits(self, channels: str) -> bool:
        """Whether the noise of all is that of a piece with these channels; a level that was given is."""
        return self._job.sigma is not None or channels == self._channels

    @cached_property
    def _channels(self) -> str:
        """Which channels of the pieces that have the noise hold something of their own."""
        counted = self._estimator.picture.counted
        return _ALL if counted is None else str(counted.own)

    def finish(self, picture: Picture | None = None, **known: Any) -> Denoised:
        """Return what is told of all pieces; the one that is checked is opened if it is not yet."""
        check, warnings = self._check(picture)
        told: dict[str, Any] = {
            "noise": self.noise,
            "words": self.words,
            "warnings": warnings,
            "check": check,
        }
        return Denoised(**told, removed=self.removed, **known)

    def _check(self, picture: Picture | None) -> tuple[Check | None, list[JobWarning]]:
        """Return what a look at one piece says, and what is doubtful."""
        if self.noise is None or self.words is None or self.checked is None:
            return None, []
        (before, after), is_part = self.checked, False
        seen = self._sampled(before)
        warnings = find_warnings(self.words, seen, self._span, self.removed, self._job.sigma)
        if picture is None:
            if not self.fits(own_channels(before, self._axis)):  # black or grey between others
                return None, warnings
            is_part = _is_large(before, self._axis)
            if is_part:
                after = _middle(after, self._axis)
            looked = _middle(before, self._axis) if is_part else before
            picture = _opened(looked, self._axis, self._job.channels, self._job.specks)
        check = check_result(picture, after, self.noise)
        if self._job.may_warn and check is not None and check.leaves_much:
            if is_part:  # flat ground is looked for everywhere
                picture = _opened(before, self._axis, self._job.channels, self._job.specks)
            own = trial(self._job, self._axis)
            warnings += warn_of_noise_left(check, picture, self.noise, self._span, own)
        return check, warnings


def _middle(pixels: Any, channel_axis: int | None) -> Any:
    """Return the middle of a large picture, of which nothing else is checked."""
    box = [slice(max((n - _CHECKED) // 2, 0), (n + _CHECKED) // 2) for n in pixels.shape]
    if channel_axis is not None:
        box[channel_axis] = slice(None)
    return pixels[tuple(box)]


def check_series(job: DenoiseJob) -> None:
    """Refuse what cannot be honoured for a series."""
    if not job.knows_time:
        raise UsageError(
            f"{job.method.name} knows of no time; denoise frames one by one, or take another method",
            "slices",
            "method",
        )
    if job.options.get("tone") == "srgb":
        raise UsageError(
            "the tone curve is corrected picture by picture, and a series would flicker; leave it out",
            "tone",
        )


class Fitted(NamedTuple):
    """What a method made of one piece."""

    pixels: Any
    learned: dict[str, object]  # what it chose, if it reports that
    find_std: Callable[[], Any]


def apply(
    job: DenoiseJob,
    pixels: Any,
    channel_axis: int | None,
    noise: Noise | None,
    progress: Progress | None,
    time_axis: int | None = None,
) -> Fitted:
    """Denoise a picture, volume or series; a picture may be open already."""
    shared = {
        "channel_axis": "auto" if isinstance(pixels, Picture) else channel_axis,
        "time_axis": time_axis,
        "rng": job.seed,
        "workers": job.workers,
        "progress": progress,
    }
    method = job.method
    taken = {name: value for name, value in shared.items() if name in method.accepts}
    arguments: dict[str, Any] = {**taken, **job.options, **method.noise_arguments(noise)}
    if method.fit is None or not (method.reports or method.reports_if_used):
        return Fitted(method.function(pixels, **arguments), {}, lambda: None)
    result = method.fit(pixels, **arguments)
    learned = {name: _plain(getattr(result, name)) for name in method.reports}
    used = {name: _plain(getattr(result, name)) for name in method.reports_if_used}
    learned |= {name: value for name, value in used.items() if value}
    return Fitted(result.image, learned, lambda: result.std)


def _plain(value: Any) -> object:
    """Return a NumPy scalar as the Python number that JSON knows."""
    return value.item() if hasattr(value, "item") else value


def trial(job: DenoiseJob, channel_axis: int | None) -> Any:
    """Return what denoises a part as a job would, but fast, with other noise and another strength."""
    options = {**job.options, "quality": "fast"}
    axis = None if channel_axis is None else -1

    def denoise(pixels: Any, noise: Noise, strength: float) -> Any:
        own = replace(job, options={**options, "strength": strength})
        return apply(own, pixels, axis, noise, None).pixels

    return denoise


def describe_noise(job: DenoiseJob, model: Noise, pixels: Any, span: float) -> NoiseDescription:
    """Say what noise a job takes an image to have."""
    assumed = not job.method.takes_noise
    return describe(model, pixels, span, given=job.noise_is_given, assumed=assumed)


def squared_change(before: Any, after: Any) -> float:
    """Return the sum of the squared change of finite pixels, a line at a time: pictures may be large."""
    total = 0.0
    with np.errstate(invalid="ignore"):  # infinite pixels stay what they are
        for old, new in zip(before, after, strict=True):
            change = np.subtract(new, old, dtype=np.float64)
            if not np.isfinite(square := float(np.square(change).sum())):
                square = float(np.square(np.nan_to_num(change, posinf=0.0, neginf=0.0)).sum())
            total += square
    return total


def _channel_words(picture: Picture) -> str:
    """Say which channels hold something of their own, and which show different things, if not all do."""
    words = [] if picture.counted is None else [picture.counted.words]
    if len(picture.groups) > 1:
        number = len(picture.groups)
        words.append(f"its channels show {number} different things and are denoised apart")
    return ", ".join(words)
