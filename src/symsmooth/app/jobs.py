"""One file: read, find its noise, denoise, write, and say what came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..core.parallel import Progress, part_of
from ..io import FileError, ImageFile, formats
from ..io.base import OpenFile
from ..io.formats import FORMATS, check_writable, copy_file, format_of, read_opened, write_checked
from ..io.images import Stack, cut, painted, unpainted, working_dtype
from ..noise.check import Check
from .job import ChannelAxis, DenoiseJob
from .messages import JobWarning, NoiseDescription
from .stack import Denoised, Pieces, check_frame, denoise_stack, frames_around

_LOST = 0.1  # share of the noise reduction that rounding may throw away
_FEW_COUNTS = 64  # the brightest 8-bit pixel of a picture of counts, not of a photograph
_KEPT_WORDS = "only EXIF, XMP, ICC profile, resolution and the header of a FITS image are"
_READING, _WRITING = 0.01, 0.98  # fractions at which things begin, for the progress callback


@dataclass(frozen=True)
class Outcome:
    """What was done to one file, or to one series of files."""

    source: Path
    target: Path
    image: ImageFile  # as it was read; the first one that has noise
    stack: Stack  # how it was cut
    job: DenoiseJob
    found: Denoised  # without its pixels: the noise, what the method chose, what is doubtful
    n_images: int = 1  # in the file
    note: JobWarning | None = None  # what else could be done
    seconds: float = 0.0

    @property
    def noise(self) -> NoiseDescription | None:
        """The noise in words."""
        return self.found.words

    @property
    def parameters(self) -> Mapping[str, object]:
        """What the user chose, and what the method did."""
        return {**self.job.chosen, **self.found.learned}

    @property
    def warnings(self) -> Sequence[JobWarning]:
        """What is doubtful."""
        return self.found.warnings

    @property
    def check(self) -> Check | None:
        """What a look at what was removed says."""
        return self.found.check

    def as_line(self, verbose: bool = False) -> str:
        """Return a summary on one line."""
        facts = [describe_size(self.image, self.stack)]
        if self.found.channels:
            facts.append(self.found.channels)
        if self.n_images > 1:
            facts.append(f"the first of {self.n_images} images")
        facts.append(self.job.method.name)
        if self.noise is not None:
            facts.append(
                f"{self.noise.words} [{self.noise.detail}]" if verbose else self.noise.words
            )
        facts += _plain_parameters(self.parameters)
        facts.append(f"{self.seconds:.1f} s")
        return f"{self.source}: {', '.join(facts)} -> {self.target}"

    def decisions(self) -> list[str]:
        """Return what was decided, and why: what the file is, its noise, how it was removed."""
        image, method = self.image, self.job.method
        axis = "no channels"
        if image.channel_axis is not None:
            axis = f"channels on axis {image.channel_axis}"
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
        tone = self.found.learned.get("tone", 0.0)
        if isinstance(tone, float) and tone > 0.0:
            share = f"{100 * tone:.0f} % of that was put right"
            lines.append(f"tone: noise darkens the shadows of pictures with a tone curve; {share}")
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
            "channels": self.found.channels or None,
        }


def _plain_parameters(parameters: Mapping[str, object]) -> list[str]:
    """Return what was chosen and found, each in a few words; how the tone was put right is no news.

    Examples
    --------
    >>> _plain_parameters({"quality": "fast", "strength": 0.70001, "tone": 0.3861, "hot_pixels": 57})
    ['quality fast', 'strength 0.7', '57 hot pixels replaced']
    """
    found = []
    for name, value in parameters.items():
        if name == "hot_pixels":
            found.append(f"{value} hot pixel{'' if value == 1 else 's'} replaced")
        elif name == "n_specks":
            found.append(f"{value} specks replaced")
        elif name != "tone":
            found.append(f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}")
    return found


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


def dtype_warnings(image: ImageFile, asked: str, pixels: Any) -> list[JobWarning]:
    """Return what another dtype than the file's own costs; pixels, or a sample, are not rounded yet."""
    if asked in ("", image.pixels.dtype.name):
        return []
    warnings = []
    if np.dtype(asked).kind in "ui":
        limits = np.iinfo(asked)
        outside = 1 - ((pixels >= limits.min - 0.5) & (pixels <= limits.max + 0.5)).mean()
        if outside > 0:
            share = f"{100 * outside:.2g} % of the pixels"
            text = f"{share} do not fit into {asked} and are clipped; {{floats}}"
            warnings.append(JobWarning("clipped", text))
    known = FORMATS.get(image.format)
    if (known is not None and known.tied) or image.details.n_parts > 1:
        own = f"{image.format} metadata is that of {image.pixels.dtype} pixels"
        warnings.append(JobWarning("metadata", f"{own}: {_KEPT_WORDS} kept in {asked}"))
    return warnings


def rounding_warning(
    pixels: Any, n_channels: int, dtype: np.dtype[Any], removed: float, target: Path
) -> list[JobWarning]:
    """Say if rounding to integers throws away more than a tenth of the noise reduction.

    Only where somebody may want to measure: in a format for data, and with 8 bits for few counts in grey.
    In a photograph nobody sees it.  ``pixels`` are those before, or a sample; ``removed`` is the root mean
    square of the change: where it is less than that of rounding, there is nothing to lose.
    """
    cost = 1 / 12  # variance of rounding to whole numbers
    if dtype.kind not in "ui" or not cost <= removed**2 < cost / _LOST:
        return []
    format = FORMATS[format_of(target)]
    if format.for_the_eye or format.is_raw:
        return []
    if dtype.itemsize == 1 and (n_channels == 3 or float(pixels.max()) >= _FEW_COUNTS):
        return []
    place = "" if format.holds_floats else " and -o to a .tif"
    text = (
        f"rounding to {dtype.name} throws away more than a tenth of the noise reduction; {{floats}}"
    )
    return [JobWarning("rounding", text, place)]


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


def no_progress(fraction: float, what: str) -> None:
    """Ignore progress."""


def open_file(source: Path, channel_axis: ChannelAxis) -> list[ImageFile]:
    """Open and read a file, as :func:`read_file` does."""
    with formats.open_file(source) as file:
        return read_file(file, channel_axis)


def read_file(file: OpenFile, channel_axis: ChannelAxis) -> list[ImageFile]:
    """Read a file; a channel axis other than "auto" replaces what the file says."""
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
    return f"{image.size} {dtype}{channels}{cut}"
