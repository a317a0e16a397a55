"""What the command line does to one file, and how it tells of it."""

from __future__ import annotations

import inspect
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from .options import UsageError

if TYPE_CHECKING:
    from ..files import ImageFile
    from ..files.stacks import Stack, Third
    from ..noise import NoiseModel

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


@dataclass(frozen=True)
class Report:
    """What was done to one file."""

    source: Path
    target: Path
    image: ImageFile
    stack: Stack
    n_images: int
    job: Job
    sigma: float | None
    parameters: Mapping[str, object]
    seconds: float

    def as_line(self) -> str:
        """Return all there is to tell, on one line."""
        told = [size_of(self.image, self.stack)]
        if self.n_images > 1:
            told.append(f"the first of {self.n_images} images")
        told.append(self.job.method)
        if self.sigma is not None:
            origin = "estimated" if self.job.sigma is None else "given"
            told.append(f"sigma {self.sigma:.4g} ({origin})")
        for name, value in self.parameters.items():
            if name == "noise":
                told.append(str(value))
                continue
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
            "sigma": self.sigma,
            "sigma_estimated": self.job.sigma is None,
            "shape": list(self.image.pixels.shape),
            "dtype": str(self.image.pixels.dtype),
            "seconds": round(self.seconds, 3),
            "parameters": dict(self.parameters),
        }


@contextmanager
def telling_of_compilation(tell: Callable[[str], object]) -> Iterator[None]:
    """Say so, once, if kernels must be compiled: a first run takes seconds longer."""
    from numba.core import event

    class Listener(event.Listener):
        told = False

        def on_start(self, event: Any) -> None:
            if not self.told:
                Listener.told = True
                tell("compiling for this machine, once; later runs start at once")

        def on_end(self, event: Any) -> None:
            """Nothing to do."""

    with event.install_listener("numba:compile", Listener()):
        yield


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
    done: list[tuple[ImageFile, float | None, dict[str, object]]] = []
    for image, stack in zip(images, stacks, strict=True):
        done.append(_denoise_image(job, image, stack, progress))
    _, sigma, learned = done[0]
    level = "" if sigma is None else f" sigma={sigma:.4g}"
    note = f"symsmooth {__version__}: {job.method}{level}"
    write_images(target, [image for image, _, _ in done], note)
    parameters, seconds = {**job.options, **learned}, time.perf_counter() - start
    what = (images[0], stacks[0], len(images))
    return Report(source, target, *what, job, sigma, parameters, seconds)


def _denoise_image(
    job: Job, image: ImageFile, stack: Stack, progress: Progress | None
) -> tuple[ImageFile, float | None, dict[str, object]]:
    """Denoise one image piece by piece; return it, the noise level, and what the method chose."""
    import numpy as np

    from ..methods import UNLISTED

    model = model_of(job, image, stack)
    sigma = job.sigma
    if sigma is None and model is None and job.method not in UNLISTED:
        sigma = noise_of(image, stack)
    options = {name: value for name, value in job.options.items() if name != "noise"}
    job = replace(job, options=options if model is None else {**options, "noise": model})
    denoised = np.empty_like(image.pixels)
    learned: dict[str, object] = {}
    for number, index in enumerate(stack, start=1):
        piece = image.pixels[index]
        if not np.isfinite(piece).any():  # an empty frame stays one
            denoised[index] = piece
            continue
        part = f"slice {number} of {len(stack)}: " if len(stack) > 1 else ""
        report = None if progress is None else within(part, progress)
        denoised[index], learned = apply(job, piece, stack.channel_axis, sigma, report)
    told = learned if len(stack) == 1 else {}
    if model is not None:
        told = {**told, "noise": str(model)}
    return replace(image, pixels=denoised), sigma, told


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
    fit = getattr(symsmooth, f"fit_{job.method}", None)
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


def model_of(job: Job, image: ImageFile, stack: Stack) -> NoiseModel | None:
    """Return the model of the noise, from the middle slice, if it is other than white of one level."""
    import numpy as np

    import symsmooth

    if job.sigma is not None or "noise" not in inspect.signature(job.function).parameters:
        return None
    piece = middle_of(image, stack)
    if not np.isfinite(piece).any():
        return None
    asked: Any = job.options.get("noise", "auto")
    model = symsmooth.estimate_noise(piece, noise=asked, channel_axis=stack.channel_axis)
    return None if model.kind == "gaussian" else model


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
