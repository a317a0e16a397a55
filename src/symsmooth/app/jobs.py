"""One file: read, find its noise, denoise, write, and report."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.parallel import Progress, part_of
from .bilevel import bilevel_warning, is_copy
from .dtypes import (
    dtype_warnings,
    rounded,
    rounding_warning,
    working_dtype,
    written_like,
)
from .frame_numbers import check_frame, frames_around
from .job import ChannelAxis as ChannelAxis
from .job import DenoiseJob as DenoiseJob
from .job import Region as Region
from .job_warnings import JobWarning
from .noise_report import NoiseDescription
from .stack import Denoised, Pieces, denoise_stack
from .stack import apply as apply
from .stack import describe_noise as describe_noise
from .stack import noise_estimator as noise_estimator
from .stages import plain_parameters, tone_decision

if TYPE_CHECKING:
    from ..io import ImageFile
    from ..io.base import OpenFile
    from ..io.stacks import Stack
    from ..noise.check import Check

_READING, _WRITING = 0.01, 0.98  # fractions at which things begin, for the progress callback


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
    note: JobWarning | None = None  # what else could be done

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
    likes = [written_like(image, job.dtype) for image in images]
    check_writable(target, [_only_frame(like) for like in likes])
    bilevel = [image.is_bilevel for image in images]
    work = [
        part_of(progress, _READING + number * share, _READING + (number + 1) * share)
        for share in [(_WRITING - _READING) / len(images)]
        for number in range(len(images))
    ]
    done = [
        (replace(like, pixels=image.pixels.astype(like.pixels.dtype)), Denoised(None))
        if no_noise
        else _denoise_image(job, Pieces(image, stack), like, own)
        for image, stack, like, own, no_noise in zip(
            images, stacks, likes, work, bilevel, strict=True
        )
    ]
    lead = bilevel.index(False) if False in bilevel else 0
    made, first = done[lead]  # of those that have noise
    level = "" if first.words is None else f", {first.words.words}"
    note = f"symsmooth {__version__}: {job.method.name}{level}"
    report(_WRITING, "writing")
    if all(bilevel) and not job.dtype and is_copy(images[0], target):
        copy_file(file.path, target)
    else:
        write_checked(target, [painted(_only_frame(each)) for each, _ in done], note)
    report(1.0, "done")
    lost: list[JobWarning] = []
    if first.words is not None:
        image, dtype = images[lead], made.pixels.dtype
        lost = rounding_warning(image.pixels, image.n_channels, dtype, first.removed, target)
    lost += bilevel_warning(bilevel) if any(bilevel) else []
    return Outcome(
        file.path, target, images[lead], stacks[lead], len(images), job, first.words,
        {**job.chosen, **first.learned}, [*first.warnings, *lost], time.perf_counter() - start,
        first.check, first.channels, _note(job, images[lead]),
    )  # fmt: skip


def _note(job: DenoiseJob, image: ImageFile) -> JobWarning | None:
    """Say of a stack in time whose frames were taken one by one that they may help each other."""
    frames = image.pixels.shape[image.axes.index("T")] if "T" in image.axes else 1
    if frames < 2 or "Z" in image.axes or job.third != "auto" or not job.knows_time:
        return None
    text = f"its {frames} frames were denoised one by one; with {{series}} they help each other"
    return JobWarning("frames", text)


def _around_frame(image: ImageFile, number: int) -> ImageFile:
    """Return the part of a series that one of its frames can gain from."""
    from ..io import FileError

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


def _denoise_image(
    job: DenoiseJob, pieces: Pieces, like: ImageFile, progress: Progress | None
) -> tuple[ImageFile, Denoised]:
    """Denoise one image of a file; return it, like what is written, and what is told of it."""
    image = pieces.image
    work = working_dtype(image.pixels.dtype, job.dtype)
    found = denoise_stack(job, pieces, progress, dtype=work)
    made = replace(like, pixels=rounded(found.pixels, like.pixels.dtype))
    warnings = found.warnings
    if job.dtype:
        warnings = [*dtype_warnings(image, job.dtype, found.pixels), *warnings]
    return made, replace(found, pixels=None, warnings=warnings)


def no_progress(fraction: float, what: str) -> None:
    """Ignore progress."""


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


def middle_slice(image: ImageFile, stack: Stack) -> Any:
    """Return the pixels of the middle slice, or of the one nearest to it that has any."""
    return image.pixels[Pieces(image, stack).middle]
