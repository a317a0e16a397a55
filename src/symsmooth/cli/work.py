"""What the command line does to one file, and how it tells of it."""

from __future__ import annotations

import inspect
import statistics
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from .noise_report import Noise, describe, doubts
from .options import UsageError

if TYPE_CHECKING:
    from ..files import ImageFile
    from ..files.stacks import Stack, Third
    from ..noise import NoiseModel, White
    from ..noise.models import NoiseName

Progress = Callable[[str, int, int], object]
ChannelAxis = int | None | Literal["auto"]  # auto: as the file says

_FITTED = ("n_clusters", "fidelity")  # what is told of a fit_* result
_MOST_ESTIMATES = 8  # slices from which the noise level of a stack is taken


@dataclass(frozen=True)
class Job:
    """What is done to every file of one run."""

    method: str
    function: Callable[..., Any]
    options: Mapping[str, object]
    sigma: float | None
    channel_axis: ChannelAxis
    workers: int | None
    seed: int
    third: Third = "auto"

    def __post_init__(self) -> None:
        from ..noise.models import check_one_noise

        try:
            check_one_noise(self.sigma, self.options.get("noise", "auto"))
        except ValueError as error:
            raise UsageError(str(error)) from error

    @property
    def takes_noise(self) -> bool:
        """Whether the method knows of other noise than white."""
        return "noise" in inspect.signature(self.function).parameters


@dataclass(frozen=True)
class Report:
    """What was done to one file."""

    source: Path
    target: Path
    image: ImageFile
    stack: Stack
    n_images: int
    job: Job
    noise: Noise | None
    parameters: Mapping[str, object]
    doubts: Sequence[str]
    seconds: float

    def as_line(self, verbose: bool = False) -> str:
        """Return all there is to tell, on one line."""
        told = [size_of(self.image, self.stack)]
        if self.n_images > 1:
            told.append(f"the first of {self.n_images} images")
        told.append(self.job.method)
        if self.noise is not None:
            told.append(
                f"{self.noise.words} [{self.noise.detail}]" if verbose else self.noise.words
            )
        for name, value in self.parameters.items():
            told.append(f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}")
        told.append(f"{self.seconds:.1f} s")
        return f"{self.source}: {', '.join(told)} -> {self.target}"

    def as_json(self) -> dict[str, object]:
        """Return the same for a script."""
        more = {"slices": len(self.stack), "images": self.n_images}
        return {key: n for key, n in more.items() if n > 1} | {
            "input": str(self.source),
            "output": str(self.target),
            "method": self.job.method,
            "noise": None if self.noise is None else dict(self.noise.fields),
            "shape": list(self.image.pixels.shape),
            "dtype": str(self.image.pixels.dtype),
            "seconds": round(self.seconds, 3),
            "parameters": dict(self.parameters),
            "warnings": list(self.doubts),
        }


def share_of_cores(workers: int | None, jobs: int) -> int | None:
    """Return the threads of each file when several are done at a time."""
    if workers is not None or jobs < 2:
        return workers
    from ..tiles import default_workers

    return max(default_workers() // jobs, 1)


def stopping(event: threading.Event, progress: Progress | None) -> Progress:
    """Return a callback that ends the work of a thread once Ctrl-C was heard."""
    from ..tiles import stop_when

    return stop_when(event, progress)


def denoise_file(source: Path, target: Path, job: Job, progress: Progress | None) -> Report:
    """Read, make sure that the result can be written, denoise, write."""
    from .. import __version__
    from ..files import check_writable, write_images
    from ..files.stacks import cut

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
    note = f"symsmooth {__version__}: {job.method}{level}"
    write_images(target, [each.image for each in done], note)
    chosen = {name: value for name, value in job.options.items() if name != "noise"}
    return Report(
        source, target, images[0], stacks[0], len(images), job, first.noise,
        {**chosen, **first.learned}, first.doubts, time.perf_counter() - start,
    )  # fmt: skip


@dataclass(frozen=True)
class _Done:
    """A denoised image, the noise it had, what the method chose, and what is doubtful."""

    image: ImageFile
    noise: Noise | None
    learned: Mapping[str, object]
    doubts: Sequence[str]


def _denoise_image(job: Job, image: ImageFile, stack: Stack, progress: Progress | None) -> _Done:
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
        report = None if progress is None else within(part, progress)
        denoised[index], learned = apply(used, piece, stack.channel_axis, used.sigma, report)
        change = np.subtract(denoised[index], piece, dtype=np.float64)
        squares += float(np.square(np.nan_to_num(change, posinf=0.0, neginf=0.0)).sum())
    noise, told = None, []
    if model is not None:
        span = range_of(image)
        noise = tell_of(job, model, middle_of(image, stack), span)
        removed = (squares / denoised.size) ** 0.5
        told = doubts(noise, image.pixels, span, removed, job.sigma)
    return _Done(replace(image, pixels=denoised), noise, learned if len(stack) == 1 else {}, told)


def with_noise(job: Job, model: NoiseModel | None) -> Job:
    """Return a job that is told of the noise, as a model if its method takes one, else as a level."""
    if model is None or job.sigma is not None:
        return job
    if job.takes_noise:
        return replace(job, options={**job.options, "noise": model})
    return replace(job, sigma=cast("White", model).sigma)


def tell_of(job: Job, model: NoiseModel, pixels: Any, span: float) -> Noise:
    """Say what noise a job takes an image to have."""
    given = job.sigma is not None
    return describe(model, pixels, span, given=given, assumed=not job.takes_noise)


def within(part: str, progress: Progress) -> Progress:
    """Return a callback that says of what a stage is a part."""
    return lambda stage, done, total: progress(part + stage, done, total)


def apply(
    job: Job, pixels: Any, channel_axis: int | None, sigma: float | None, progress: Progress | None
) -> tuple[Any, dict[str, object]]:
    """Return the denoised pixels, and what the method chose if it has a ``fit_`` that tells."""
    import symsmooth

    shared = {
        "channel_axis": channel_axis,
        "rng": job.seed,
        "workers": job.workers,
        "progress": progress,
    }
    has = inspect.signature(job.function).parameters
    arguments = {name: value for name, value in shared.items() if name in has} | dict(job.options)
    fit: Any = symsmooth.fit_gsf if job.method == "gsf" else None
    if fit is None:
        return job.function(pixels, sigma, **arguments), {}
    result = fit(pixels, sigma, **arguments)
    learned = {name: getattr(result, name) for name in _FITTED if hasattr(result, name)}
    return result.image, {name: _plain(value) for name, value in learned.items()}


def _plain(value: Any) -> object:
    """Return a NumPy scalar as the Python number that JSON knows."""
    return value.item() if hasattr(value, "item") else value


def open_file(source: Path, channel_axis: ChannelAxis) -> list[ImageFile]:
    """Read a file; a channel axis other than "auto" replaces what the file says."""
    from ..files import FileError, read_images

    images = read_images(source)
    if channel_axis == "auto":
        return images
    for image in images:
        ndim = image.pixels.ndim
        if channel_axis is not None and not -ndim <= channel_axis < ndim:
            shape = image.pixels.shape
            raise FileError(f"{source}: has no axis {channel_axis}; its shape is {shape}")
    return [image.with_channels(channel_axis) for image in images]


def find_noise(job: Job, image: ImageFile, stack: Stack) -> NoiseModel | None:
    """Return the noise that a job is to remove: what was said, or estimated; None if it removes none."""
    from ..methods import UNLISTED
    from ..noise import NoiseModel, White

    if job.method in UNLISTED:
        return None
    if job.sigma is not None:
        return White(job.sigma)
    if not job.takes_noise:
        return White(noise_of(image, stack))
    asked: Any = job.options.get("noise", "auto")
    return asked if isinstance(asked, NoiseModel) else estimated_noise(image, stack, asked)


def estimated_noise(image: ImageFile, stack: Stack, asked: NoiseName = "auto") -> NoiseModel:
    """Return the noise of an image: that of the middle slice, or if it is white the level of several."""
    import numpy as np

    import symsmooth

    from ..noise import White

    piece = middle_of(image, stack)
    if np.isfinite(piece).any():
        model = symsmooth.estimate_noise(piece, noise=asked, channel_axis=stack.channel_axis)
        if model.kind != "gaussian" or len(stack) == 1:
            return model
    return White(noise_of(image, stack))


def middle_of(image: ImageFile, stack: Stack) -> Any:
    """Return the pixels of the middle slice."""
    return image.pixels[stack.pieces[len(stack.pieces) // 2]]


def noise_of(image: ImageFile, stack: Stack) -> float:
    """Return the estimated noise level in the image's units: the median over some slices."""
    import numpy as np

    import symsmooth

    step = max(len(stack) // _MOST_ESTIMATES, 1)
    levels = []
    for index in stack.pieces[step // 2 :: step]:
        piece = image.pixels[index]
        if np.isfinite(piece).any():
            level = symsmooth.estimate_sigma(piece, channel_axis=stack.channel_axis)
            levels.append(float(level))
    if not levels:
        raise ValueError("has no usable pixel: all are masked or not finite")
    return statistics.median(levels)


def range_of(image: ImageFile) -> float:
    """Return how far apart pixels can be: by dtype in 8 and 16 bits, else between the extremes."""
    import numpy as np

    pixels = image.pixels
    if pixels.dtype in (np.uint8, np.uint16):
        return float(np.iinfo(pixels.dtype).max)
    finite = pixels[np.isfinite(pixels)].astype(np.float64)
    return float(np.ptp(finite)) if finite.size else 0.0


def size_of(image: ImageFile, stack: Stack) -> str:
    """Return width x height (x depth), dtype, channels, and how it is cut, in words."""
    size = "x".join(str(n) for n in reversed(image.spatial))
    channels = f" {image.n_channels} channels" if image.channel_axis is not None else ""
    cut = f", {len(stack)} slices" if len(stack) > 1 else ""
    if stack.third:
        cut = f", {len(stack)} volumes" if len(stack) > 1 else ", volume"
    return f"{size} {image.pixels.dtype}{channels}{cut}"


def parse_third_axis(volume: bool, slices: bool, time: bool) -> Third:
    """Return what is said of the third axis, once at most."""
    if volume + slices + time > 1:
        raise UsageError("give one of --volume, --slices and --time")
    return "volume" if volume else "none" if slices else "time" if time else "auto"


def parse_channel_axis(text: str) -> ChannelAxis:
    """Return an axis, None for "none", or "auto"."""
    if text == "auto":
        return "auto"
    if text == "none":
        return None
    try:
        return int(text)
    except ValueError:
        raise UsageError(f"--channel-axis must be a number, none or auto, got {text!r}") from None
