"""One file: read, find its noise, denoise, write, and report."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..core.parallel import Progress, part_of
from .bilevel import bilevel_warning, is_copy
from .dtypes import (
    check_dtype,
    dtype_warnings,
    rounded,
    rounding_warning,
    working_dtype,
    written_like,
)
from .errors import UsageError
from .frame_numbers import check_frame, frames_around
from .job_warnings import JobWarning
from .noise_left import warn_of_noise_left
from .noise_report import NoiseDescription, describe, find_warnings, value_range
from .stages import plain_parameters, tone_decision

if TYPE_CHECKING:
    from ..core.image import Picture
    from ..io import ImageFile
    from ..io.base import OpenFile
    from ..io.stacks import Stack, Third
    from ..methods import Method
    from ..noise import Noise, NoiseEstimator
    from ..noise.check import Check

ChannelAxis = int | None | Literal["auto"]  # auto: as the file says
Region = tuple[int, int, int, int]  # x, y, width, height
Index = tuple[int | slice, ...]  # of a piece of a stack

# Fractions at which things begin, for the progress callback.
_READING, _WRITING, _NOISE_TIME = 0.01, 0.98, 0.05
_MAX_ESTIMATES = 8  # slices from which the noise level of a stack is taken


@dataclass(frozen=True)
class DenoiseJob:
    """What is done to every file of one run."""

    method: Method
    options: Mapping[str, object]
    sigma: float | None
    channel_axis: ChannelAxis
    workers: int | None
    seed: int
    third: Third = "auto"
    noise_region: Region | None = None  # x, y, width, height of a flat area
    linear: bool = False  # a raw file that is developed gets no tone curve
    dtype: str = ""  # of what is written; empty: that of the file
    frame: int | None = None  # the only one of a series that is written
    lossless: bool = False  # of a video
    was_looked_at: bool = False  # a model of noise in the options was found in this very file

    def __post_init__(self) -> None:
        from ..noise.resolve import check_one_noise

        check_dtype(self.dtype)
        if self.noise_region is not None and not self.method.takes_noise:
            raise UsageError(f"{self.method.name} handles white noise only; give --sigma instead")
        try:
            check_one_noise(self.sigma, self.options.get("noise", "auto"), self.noise_region)
        except ValueError as error:
            raise UsageError(str(error)) from error

    def find_noise(self, image: NoiseEstimator) -> Noise | None:
        """Return the noise that is to be removed: what was said, or measured; None if none is."""
        from ..noise import resolve

        if not self.method.removes_noise:
            return None
        asked: Any = self.options.get("noise", "auto")
        white_only = not self.method.takes_noise
        found: Any = resolve(
            image, self.sigma, asked, region=self.noise_region, white_only=white_only
        )
        if (
            self.has_model or self.dtype
        ):  # units were checked, and dark slices of floats look like others
            found = replace(found, pixels=None)
        noise: Noise = found
        return noise

    @property
    def has_model(self) -> bool:
        """Whether a model of noise was given."""
        return not isinstance(self.options.get("noise", "auto"), str)

    @property
    def noise_is_given(self) -> bool:
        """Whether the level of the noise was said: by itself, or as a model."""
        return self.sigma is not None or (self.has_model and not self.was_looked_at)

    @property
    def channels(self) -> Any:
        """Which channels are denoised together, if that was said."""
        return self.options.get("channels", "auto")

    @property
    def finds_noise(self) -> bool:
        """Whether the noise is to be found, whatever it is."""
        return self.may_warn and self.options.get("noise", "auto") == "auto"

    @property
    def may_warn(self) -> bool:
        """Whether noise was left to be found: then it may be found wrong."""
        return self.method.takes_noise and not self.noise_is_given and self.noise_region is None

    @property
    def specks(self) -> Any:
        """Whether specks are replaced; other methods keep them."""
        default = "auto" if "specks" in self.method.options else "keep"
        return self.options.get("specks", default)

    @property
    def chosen(self) -> dict[str, object]:
        """What the user chose, without the noise, which is described separately."""
        chosen = {name: value for name, value in self.options.items() if name != "noise"}
        return chosen | ({"dtype": self.dtype} if self.dtype else {})


@dataclass(frozen=True)
class Outcome:
    """What was done to one file."""

    source: Path
    target: Path
    image: ImageFile
    stack: Stack
    n_images: int
    job: DenoiseJob
    noise: NoiseDescription | None
    parameters: Mapping[str, object]
    warnings: Sequence[JobWarning]
    seconds: float
    check: Check | None = None  # of what was removed
    channels: str = ""  # what was found out about them

    def as_line(self, verbose: bool = False) -> str:
        """Return a summary on one line."""
        facts = [describe_size(self.image, self.stack)]
        if self.channels:
            facts.append(self.channels)
        if self.n_images > 1:
            facts.append(f"the first of {self.n_images} images")
        facts.append(self.job.method.name)
        if self.noise is not None:
            facts.append(
                f"{self.noise.words} [{self.noise.detail}]" if verbose else self.noise.words
            )
        facts += plain_parameters(self.parameters)
        facts.append(f"{self.seconds:.1f} s")
        return f"{self.source}: {', '.join(facts)} -> {self.target}"

    def decisions(self) -> list[str]:
        """Return what was decided, and why: what the file is, its noise, how it was removed."""
        image, method = self.image, self.job.method
        axis = (
            "no channels"
            if image.channel_axis is None
            else f"channels on axis {image.channel_axis}"
        )
        lines = [f"file: {image.format}, axes {image.axes}, {axis}"]
        if self.noise is not None:
            why = self.noise.fields.get("reasons")
            reasons = f"; {'; '.join(why)}" if isinstance(why, list) else ""
            found = "estimated" if self.noise.fields["estimated"] else "given"
            lines.append(f"noise: {found}, {self.noise.detail}{reasons}")
        options = {name: option.default for name, option in method.options.items()}
        options |= dict(self.job.options)
        chosen = ", ".join(f"{name} {value}" for name, value in options.items() if name != "noise")
        if self.check is not None:
            numbers = f"outlines {self.check.outlines:.2f}, noise left {self.check.left:.2f}"
            lines.append(f"check: {self.check} ({numbers})")
        lines += tone_decision(self.parameters)
        threads = "all cores" if self.job.workers is None else f"{self.job.workers} threads"
        lines.append(f"method: {', '.join(filter(None, [method.name, chosen]))}")
        lines.append(f"run: seed {self.job.seed}, {threads}")
        return lines

    def as_json(self) -> dict[str, object]:
        """Return the same for a script."""
        more = {"slices": len(self.stack), "images": self.n_images}
        return {key: n for key, n in more.items() if n > 1} | {
            "input": str(self.source),
            "output": str(self.target),
            "method": self.job.method.name,
            "noise": None if self.noise is None else dict(self.noise.fields),
            "shape": list(self.image.pixels.shape),
            "dtype": str(self.image.pixels.dtype),
            "seconds": round(self.seconds, 3),
            "parameters": dict(self.parameters),
            "warnings": list(map(str, self.warnings)),
            "warning_codes": [warning.code for warning in self.warnings],
            "check": None if self.check is None else vars(self.check),
            "channels": self.channels or None,
        }


def denoise_file(
    file: OpenFile, target: Path, job: DenoiseJob, progress: Progress | None
) -> Outcome:
    """Read, make sure that the result can be written, denoise, write."""
    from .. import __version__
    from ..io.files import check_writable, copy_file, write_checked
    from ..io.palette import painted, unpainted
    from ..io.stacks import cut

    start = time.perf_counter()
    report = progress or no_progress
    images = read_file(file, job.channel_axis)
    file.close()  # it may be what is written
    if job.finds_noise and job.channel_axis == "auto" and not job.dtype:
        images = [unpainted(image) for image in images]
    if job.frame is not None:
        images = [_around_frame(image, job.frame) for image in images]
    stacks = [cut(image, job.third) for image in images]
    target.parent.mkdir(parents=True, exist_ok=True)
    check_writable(target, [_only_frame(written_like(image, job.dtype)) for image in images])
    work = [
        part_of(progress, _READING + number * share, _READING + (number + 1) * share)
        for share in [(_WRITING - _READING) / len(images)]
        for number in range(len(images))
    ]
    done = [
        _denoise_image(job, image, stack, own)
        for image, stack, own in zip(images, stacks, work, strict=True)
    ]
    bilevel = [image.is_bilevel for image in images]
    lead = bilevel.index(False) if False in bilevel else 0
    first = done[lead]  # of those that have noise
    level = "" if first.noise is None else f", {first.noise.words}"
    note = f"symsmooth {__version__}: {job.method.name}{level}"
    report(_WRITING, "writing")
    if all(bilevel) and not job.dtype and is_copy(images[0], target):
        copy_file(file.path, target)
    else:
        write_checked(target, [painted(_only_frame(each.image)) for each in done], note)
    report(1.0, "done")
    lost: list[JobWarning] = []
    if first.noise is not None:
        image, dtype = images[lead], first.image.pixels.dtype
        lost = rounding_warning(image.pixels, image.n_channels, dtype, first.removed, target)
    lost += bilevel_warning(bilevel) if any(bilevel) else []
    return Outcome(
        file.path, target, images[lead], stacks[lead], len(images), job, first.noise,
        {**job.chosen, **first.learned}, [*first.warnings, *lost], time.perf_counter() - start,
        first.check, first.channels,
    )  # fmt: skip


def _around_frame(image: ImageFile, number: int) -> ImageFile:
    """Return the part of a series that one of its frames can gain from."""
    from ..io import FileError

    if "T" not in image.axes:
        raise FileError(f"has no axis of time: its axes are {image.axes}; leave out --frame")
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


@dataclass(frozen=True)
class _Done:
    """A denoised image, the noise it had, what the method chose, and what is doubtful."""

    image: ImageFile
    noise: NoiseDescription | None
    learned: Mapping[str, object]
    warnings: Sequence[JobWarning]
    removed: float  # root mean square of the change
    check: Check | None
    channels: str = ""  # what was found out about them


def _denoise_image(
    job: DenoiseJob, image: ImageFile, stack: Stack, progress: Progress | None
) -> _Done:
    """Denoise one image piece by piece; what was opened to find the noise is not opened again."""
    import numpy as np

    from ..core.image import open_image
    from ..noise.check import check_result

    report = progress or no_progress
    if image.is_bilevel:
        made = written_like(image, job.dtype)
        pixels = image.pixels.astype(made.pixels.dtype)
        return _Done(replace(made, pixels=pixels), None, {}, [], 0.0, None)
    report(0.0, "noise")
    middle = _middle_piece(image, stack)
    opened = open_image(image.pixels[middle], stack.channel_axis, None, job.channels)
    estimator = noise_estimator(image, stack, middle, job.channels, job.specks, opened)
    model = job.find_noise(estimator)
    work = working_dtype(image.pixels.dtype, job.dtype)
    is_opened = job.method.takes_opened and work == image.pixels.dtype and stack.time_axis is None
    denoised = np.empty(image.pixels.shape, work)
    learned: dict[str, object] = {}
    squares = 0.0
    n_pieces = len(stack.pieces)
    for number, index in enumerate(stack.pieces):
        piece = image.pixels[index].astype(work, copy=False)
        if not np.isfinite(piece).any():  # an empty frame stays one
            denoised[index] = piece
            continue
        denoised[index], learned = apply(
            job, opened if is_opened and index == middle else piece, stack.channel_axis, model,
            _slice_progress(progress, number, n_pieces), stack.time_axis,
        )  # fmt: skip
        squares += squared_change(piece, denoised[index])
    noise, check, channels, removed = None, None, "", (squares / denoised.size) ** 0.5
    warnings = dtype_warnings(image, job.dtype, denoised)
    if model is not None:
        span = value_range(image.pixels)
        noise = describe_noise(job, model, image.pixels[middle], span)
        warnings += find_warnings(noise, image.pixels, span, removed, job.sigma)
        check = check_result(estimator.picture, denoised[middle], model)
        channels = _channel_words(estimator.picture)
        if job.may_warn:
            warnings += warn_of_noise_left(
                check, estimator.picture, model, span, trial(job, stack.channel_axis)
            )
    like = written_like(image, job.dtype)
    made = replace(like, pixels=rounded(denoised, like.pixels.dtype))
    own = learned if n_pieces == 1 else {}
    return _Done(made, noise, own, warnings, removed, check, channels)


def trial(job: DenoiseJob, channel_axis: int | None) -> Any:
    """Return what denoises a part as a job would, but fast, with other noise and another strength."""
    options = {**job.options, "quality": "fast"}
    axis = None if channel_axis is None else -1

    def denoise(pixels: Any, noise: Noise, strength: float) -> Any:
        own = replace(job, options={**options, "strength": strength})
        return apply(own, pixels, axis, noise, None)[0]

    return denoise


def _channel_words(picture: Picture) -> str:
    """Say which channels hold something of their own, and which show different things, if not all do."""
    words = [] if picture.counted is None else [picture.counted.words]
    if len(picture.groups) > 1:
        number = len(picture.groups)
        words.append(f"its channels show {number} different things and are denoised apart")
    return ", ".join(words)


def no_progress(fraction: float, what: str) -> None:
    """Ignore progress."""


def _slice_progress(progress: Progress | None, number: int, count: int) -> Progress | None:
    """Return the callback of one slice; before the first lies the search for the noise."""
    start, end = (_NOISE_TIME + (1 - _NOISE_TIME) * at / count for at in (number, number + 1))
    return part_of(progress, start, end, f"slice {number + 1} of {count}: " if count > 1 else "")


def squared_change(before: Any, after: Any) -> float:
    """Return the sum of the squared change of finite pixels, a line at a time: pictures may be large."""
    import numpy as np

    total = 0.0
    with np.errstate(invalid="ignore"):  # infinite pixels stay what they are
        for old, new in zip(before, after, strict=True):
            change = np.subtract(new, old, dtype=np.float64)
            total += float(np.square(np.nan_to_num(change, posinf=0.0, neginf=0.0)).sum())
    return total


def describe_noise(job: DenoiseJob, model: Noise, pixels: Any, span: float) -> NoiseDescription:
    """Say what noise a job takes an image to have."""
    assumed = not job.method.takes_noise
    return describe(model, pixels, span, given=job.noise_is_given, assumed=assumed)


def apply(
    job: DenoiseJob,
    pixels: Any,
    channel_axis: int | None,
    noise: Noise | None,
    progress: Progress | None,
    time_axis: int | None = None,
) -> tuple[Any, dict[str, object]]:
    """Return the denoised pixels, and what the method chose, if it reports that.

    Pixels may be a Picture that is open.  A series is a volume to methods that know of no time.
    """
    from ..core.image import Picture

    is_opened = isinstance(pixels, Picture)
    shared = {
        "channel_axis": "auto" if is_opened else channel_axis,
        "time_axis": time_axis,
        "rng": job.seed,
        "workers": job.workers,
        "progress": progress,
    }
    method = job.method
    taken = {name: value for name, value in shared.items() if name in method.accepts}
    arguments: dict[str, Any] = {**taken, **job.options, **method.noise_arguments(noise)}
    if method.fit is None or not (method.reports or method.reports_if_used):
        return method.function(pixels, **arguments), {}
    result = method.fit(pixels, **arguments)
    learned = {name: _plain(getattr(result, name)) for name in method.reports}
    used = {name: _plain(getattr(result, name)) for name in method.reports_if_used}
    return result.image, learned | {name: value for name, value in used.items() if value}


def _plain(value: Any) -> object:
    """Return a NumPy scalar as the Python number that JSON knows."""
    return value.item() if hasattr(value, "item") else value


def open_file(source: Path, channel_axis: ChannelAxis) -> list[ImageFile]:
    """Open and read a file, as :func:`read_file` does."""
    from ..io import formats

    with formats.open_file(source) as file:
        return read_file(file, channel_axis)


def read_file(file: OpenFile, channel_axis: ChannelAxis) -> list[ImageFile]:
    """Read a file; a channel axis other than "auto" replaces what the file says."""
    from ..io import FileError
    from ..io.files import read_opened

    source, images = file.path, read_opened(file)
    if images[0].details.raw is not None:
        raise FileError(f"{source}: is a raw mosaic; denoise it to a .tif, which develops it")
    if channel_axis == "auto":
        return images
    for image in images:
        ndim = image.pixels.ndim
        if channel_axis is not None and not -ndim <= channel_axis < ndim:
            shape = image.pixels.shape
            raise FileError(f"{source}: has no axis {channel_axis}; its shape is {shape}")
    return [image.with_channels(channel_axis) for image in images]


def describe_size(image: ImageFile, stack: Stack) -> str:
    """Return width x height (x depth), dtype, channels, and how it is cut, in words."""
    size = "x".join(str(n) for n in reversed(image.spatial))
    channels = f" {image.n_channels} channels" if image.channel_axis is not None else ""
    if image.details.painted is not None:
        channels = ", grey in false colours"
    elif image.ramp is not None:
        channels = ", grey with a palette"
    elif image.details.from_palette:
        channels += ", its palette made RGB"
    cut = f", {len(stack)} slices" if len(stack) > 1 else ""
    if stack.third:
        kind = "volume" if stack.time_axis is None else "series"
        cut = (
            f", {len(stack)} {kind}{'s' if kind == 'volume' else ''}"
            if len(stack) > 1
            else f", {kind}"
        )
    dtype = "1 bit" if image.is_bilevel else image.pixels.dtype
    return f"{size} {dtype}{channels}{cut}"


def noise_estimator(
    image: ImageFile,
    stack: Stack,
    middle: Index | None = None,
    channels: Any = "auto",
    specks: Any = "auto",
    opened: Picture | None = None,
) -> NoiseEstimator:
    """Return what measures the noise of an image: that of the middle slice, the level that of several."""
    import numpy as np

    from ..core.image import open_image
    from ..noise import NoiseEstimator
    from ..noise.specks import without_specks

    middle = middle or _middle_piece(image, stack)
    n_pieces = len(stack.pieces)

    def open_piece(index: Index) -> Picture:
        opened = open_image(image.pixels[index], stack.channel_axis, None, channels)
        return without_specks(opened, specks)

    def open_some(opened: Picture) -> Iterator[Picture]:
        step = max(n_pieces // _MAX_ESTIMATES, 1)
        for index in stack.pieces[step // 2 :: step]:
            piece = image.pixels[index]
            if index == middle:
                yield opened
            elif np.isfinite(piece).any():
                yield open_piece(index)

    return NoiseEstimator(
        lambda: open_piece(middle) if opened is None else without_specks(opened, specks),
        open_some if n_pieces > 1 else None,
    )


def middle_slice(image: ImageFile, stack: Stack) -> Any:
    """Return the pixels of the middle slice, or of the one nearest to it that has any."""
    return image.pixels[_middle_piece(image, stack)]


def _middle_piece(image: ImageFile, stack: Stack) -> Index:
    import numpy as np

    pieces = stack.pieces
    middle = len(pieces) // 2
    for number in sorted(range(len(pieces)), key=lambda number: abs(number - middle)):
        if np.isfinite(image.pixels[pieces[number]]).any():
            return pieces[number]
    return pieces[middle]
