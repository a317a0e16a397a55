"""One file: read, find its noise, denoise, write, and report."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from .errors import UsageError
from .file_noise import Region, estimate_file_noise, estimate_level, middle_slice, value_range
from .noise_report import NoiseDescription, describe, find_warnings
from .progress import Progress, with_prefix

if TYPE_CHECKING:
    from ..io import ImageFile
    from ..io.stacks import Stack, Third
    from ..methods import Method
    from ..noise import NoiseModel, White

ChannelAxis = int | None | Literal["auto"]  # auto: as the file says


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
    noise_region: Region | None = None  # x, y, width, height of flat ground

    def __post_init__(self) -> None:
        from ..noise.models import check_one_noise

        if self.noise_region is not None:
            self._check_region()

        try:
            check_one_noise(self.sigma, self.options.get("noise", "auto"))
        except ValueError as error:
            raise UsageError(str(error)) from error

    def _check_region(self) -> None:
        """Refuse a rectangle of flat ground where noise is given, or cannot be."""
        if self.sigma is not None or "noise" in self.options:
            raise UsageError("--noise-from measures the noise; give it without --sigma and --noise")
        if not self.takes_noise:
            raise UsageError(f"{self.method.name} knows white noise only; give --sigma instead")

    @property
    def takes_noise(self) -> bool:
        """Whether the method knows of other noise than white."""
        return "noise" in self.method.accepts


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
    warnings: Sequence[str]
    seconds: float

    def as_line(self, verbose: bool = False) -> str:
        """Return all there is to tell, on one line."""
        facts = [describe_size(self.image, self.stack)]
        if self.n_images > 1:
            facts.append(f"the first of {self.n_images} images")
        facts.append(self.job.method.name)
        if self.noise is not None:
            facts.append(
                f"{self.noise.words} [{self.noise.detail}]" if verbose else self.noise.words
            )
        for name, value in self.parameters.items():
            facts.append(f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}")
        facts.append(f"{self.seconds:.1f} s")
        return f"{self.source}: {', '.join(facts)} -> {self.target}"

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
            "warnings": list(self.warnings),
        }


def denoise_file(source: Path, target: Path, job: DenoiseJob, progress: Progress | None) -> Outcome:
    """Read, make sure that the result can be written, denoise, write."""
    from .. import __version__
    from ..io import check_writable, write_images
    from ..io.stacks import cut

    start = time.perf_counter()
    images = open_file(source, job.channel_axis)
    stacks = [cut(image, job.third) for image in images]
    target.parent.mkdir(parents=True, exist_ok=True)
    check_writable(target, images)
    done = [
        _denoise_image(job, image, stack, progress)
        for image, stack in zip(images, stacks, strict=True)
    ]
    first = done[0]
    level = "" if first.noise is None else f", {first.noise.words}"
    note = f"symsmooth {__version__}: {job.method.name}{level}"
    write_images(target, [each.image for each in done], note)
    chosen = {name: value for name, value in job.options.items() if name != "noise"}
    return Outcome(
        source, target, images[0], stacks[0], len(images), job, first.noise,
        {**chosen, **first.learned}, first.warnings, time.perf_counter() - start,
    )  # fmt: skip


@dataclass(frozen=True)
class _Done:
    """A denoised image, the noise it had, what the method chose, and what is doubtful."""

    image: ImageFile
    noise: NoiseDescription | None
    learned: Mapping[str, object]
    warnings: Sequence[str]


def _denoise_image(
    job: DenoiseJob, image: ImageFile, stack: Stack, progress: Progress | None
) -> _Done:
    """Denoise one image piece by piece."""
    import numpy as np

    model = find_noise(job, image, stack)
    used = with_noise(job, model)
    denoised = np.empty_like(image.pixels)
    learned: dict[str, object] = {}
    squares = 0.0
    for number, index in enumerate(stack, start=1):
        piece = image.pixels[index]
        if not np.isfinite(piece).any():  # an empty frame stays one
            denoised[index] = piece
            continue
        part = f"slice {number} of {len(stack)}: " if len(stack) > 1 else ""
        report = None if progress is None else with_prefix(part, progress)
        denoised[index], learned = apply(used, piece, stack.channel_axis, used.sigma, report)
        squares += _squared_change(piece, denoised[index])
    noise, warnings = None, []
    if model is not None:
        span = value_range(image)
        noise = describe_noise(job, model, middle_slice(image, stack), span)
        removed = (squares / denoised.size) ** 0.5
        warnings = find_warnings(noise, image.pixels, span, removed, job.sigma)
    return _Done(
        replace(image, pixels=denoised), noise, learned if len(stack) == 1 else {}, warnings
    )


def _squared_change(before: Any, after: Any) -> float:
    """Return the sum of the squared change of finite pixels, a line at a time: pictures may be large."""
    import numpy as np

    total = 0.0
    with np.errstate(invalid="ignore"):  # infinite pixels stay what they are
        for old, new in zip(before, after, strict=True):
            change = np.subtract(new, old, dtype=np.float64)
            total += float(np.square(np.nan_to_num(change, posinf=0.0, neginf=0.0)).sum())
    return total


def with_noise(job: DenoiseJob, model: NoiseModel | None) -> DenoiseJob:
    """Return a job that is told of the noise, as a model if its method takes one, else as a level."""
    if model is None or job.sigma is not None:
        return job
    if job.takes_noise:
        return replace(job, options={**job.options, "noise": model}, noise_region=None)
    return replace(job, sigma=cast("White", model).sigma)


def describe_noise(
    job: DenoiseJob, model: NoiseModel, pixels: Any, span: float
) -> NoiseDescription:
    """Say what noise a job takes an image to have."""
    given = job.sigma is not None
    return describe(model, pixels, span, given=given, assumed=not job.takes_noise)


def apply(
    job: DenoiseJob,
    pixels: Any,
    channel_axis: int | None,
    sigma: float | None,
    progress: Progress | None,
) -> tuple[Any, dict[str, object]]:
    """Return the denoised pixels, and what the method chose, if it reports that."""
    shared = {
        "channel_axis": channel_axis,
        "rng": job.seed,
        "workers": job.workers,
        "progress": progress,
    }
    method = job.method
    taken = {name: value for name, value in shared.items() if name in method.accepts}
    arguments: dict[str, Any] = {**taken, **job.options}
    if method.fit is None or not method.reports:
        return method.function(pixels, sigma, **arguments), {}
    result = method.fit(pixels, sigma, **arguments)
    return result.image, {name: _plain(getattr(result, name)) for name in method.reports}


def _plain(value: Any) -> object:
    """Return a NumPy scalar as the Python number that JSON knows."""
    return value.item() if hasattr(value, "item") else value


def open_file(source: Path, channel_axis: ChannelAxis) -> list[ImageFile]:
    """Read a file; a channel axis other than "auto" replaces what the file says."""
    from ..io import FileError, read_images

    images = read_images(source)
    if "raw" in images[0].details:
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
    cut = f", {len(stack)} slices" if len(stack) > 1 else ""
    if stack.third:
        cut = f", {len(stack)} volumes" if len(stack) > 1 else ", volume"
    return f"{size} {image.pixels.dtype}{channels}{cut}"


def find_noise(job: DenoiseJob, image: ImageFile, stack: Stack) -> NoiseModel | None:
    """Return the noise that a job is to remove: what was said, or estimated; None if it removes none."""
    from ..noise import NoiseModel, White

    if not job.method.removes_noise:
        return None
    if job.sigma is not None:
        return White(job.sigma)
    if not job.takes_noise:
        return White(estimate_level(image, stack))
    asked: Any = job.options.get("noise", "auto")
    if isinstance(asked, NoiseModel):
        return asked
    return estimate_file_noise(image, stack, asked, job.noise_region)
