"""What the command line does to one file, and how it tells of it."""

from __future__ import annotations

import inspect
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from .options import UsageError

if TYPE_CHECKING:
    from ..files import ImageFile

Progress = Callable[[str, int, int], object]
ChannelAxis = int | None | Literal["auto"]  # auto: as the file says

_FITTED = ("n_clusters", "fidelity")  # what is told of a fit_* result


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


@dataclass(frozen=True)
class Report:
    """What was done to one file."""

    source: Path
    target: Path
    image: ImageFile
    job: Job
    sigma: float
    parameters: Mapping[str, object]
    seconds: float

    def as_line(self) -> str:
        """Return all there is to tell, on one line."""
        origin = "estimated" if self.job.sigma is None else "given"
        told = [size_of(self.image), self.job.method, f"sigma {self.sigma:.4g} ({origin})"]
        for name, value in self.parameters.items():
            told.append(f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}")
        told.append(f"{self.seconds:.1f} s")
        return f"{self.source}: {', '.join(told)} -> {self.target}"

    def as_json(self) -> dict[str, object]:
        """Return the same for a script."""
        return {
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


def denoise_file(source: Path, target: Path, job: Job, progress: Progress | None) -> Report:
    """Read, make sure that the result can be written, denoise, write."""
    from ..files import check_writable, write_image

    start = time.perf_counter()
    image = open_file(source, job.channel_axis)
    check_writable(target, image)
    sigma = noise_of(image) if job.sigma is None else job.sigma
    pixels, learned = _apply(job, image, sigma, progress)
    write_image(target, pixels, image)
    parameters = {**job.options, **learned}
    return Report(source, target, image, job, sigma, parameters, time.perf_counter() - start)


def _apply(
    job: Job, image: ImageFile, sigma: float, progress: Progress | None
) -> tuple[Any, dict[str, object]]:
    """Return the denoised pixels, and what the method chose if it has a ``fit_`` that tells."""
    import symsmooth

    shared = {
        "channel_axis": image.channel_axis,
        "rng": job.seed,
        "workers": job.workers,
        "progress": progress,
    }
    has = inspect.signature(job.function).parameters
    arguments = {name: value for name, value in shared.items() if name in has} | dict(job.options)
    fit = getattr(symsmooth, f"fit_{job.method}", None)
    if fit is None:
        return job.function(image.pixels, sigma, **arguments), {}
    result = fit(image.pixels, sigma, **arguments)
    learned = {name: getattr(result, name) for name in _FITTED if hasattr(result, name)}
    return result.image, {name: _plain(value) for name, value in learned.items()}


def _plain(value: Any) -> object:
    """Return a NumPy scalar as the Python number that JSON knows."""
    return value.item() if hasattr(value, "item") else value


def open_file(source: Path, channel_axis: ChannelAxis) -> ImageFile:
    """Read a file; a channel axis other than "auto" replaces what the file says."""
    from ..files import FileError, read_image

    image = read_image(source)
    if channel_axis == "auto":
        return image
    ndim = image.pixels.ndim
    if channel_axis is not None and not -ndim <= channel_axis < ndim:
        raise FileError(f"{source}: has no axis {channel_axis}; its shape is {image.pixels.shape}")
    return replace(image, channel_axis=channel_axis)


def noise_of(image: ImageFile) -> float:
    """Return the estimated noise level in the image's units."""
    import symsmooth

    return float(symsmooth.estimate_sigma(image.pixels, channel_axis=image.channel_axis))


def range_of(image: ImageFile) -> float:
    """Return how far apart pixels can be: by dtype in 8 and 16 bits, else between the extremes."""
    import numpy as np

    pixels = image.pixels
    if pixels.dtype in (np.uint8, np.uint16):
        return float(np.iinfo(pixels.dtype).max)
    finite = pixels[np.isfinite(pixels)].astype(np.float64)
    return float(np.ptp(finite)) if finite.size else 0.0


def size_of(image: ImageFile) -> str:
    """Return width x height (x depth), dtype and channels in words."""
    size = "x".join(str(n) for n in reversed(image.spatial))
    channels = f" {image.n_channels} channels" if image.channel_axis is not None else ""
    return f"{size} {image.pixels.dtype}{channels}"


def plan_outputs(names: Sequence[str], out: str, overwrite: bool) -> dict[Path, Path]:
    """Return where each input goes; refuse, before any work, what would destroy a file."""
    if not names:
        raise UsageError("no input file is given")
    is_folder = out.endswith(("/", os.sep)) or Path(out).is_dir()
    if len(names) > 1 and not is_folder:
        raise UsageError(f"-o {out} must be a folder (existing, or ending in /) for several files")
    targets: dict[Path, Path] = {}
    for source in map(Path, names):
        target = Path(out) / source.name if is_folder else Path(out)
        if target in targets.values():
            raise UsageError(f"two inputs would be written to {target}; use two folders")
        if target.exists() and not overwrite:
            is_input = source.exists() and target.samefile(source)
            what = "is the input itself" if is_input else "exists"
            raise UsageError(f"{target} {what}; give another -o, or --overwrite to replace it")
        targets[source] = target
    if is_folder:
        try:
            Path(out).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"-o {out} cannot be made: {error.strerror}") from error
    return targets


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
