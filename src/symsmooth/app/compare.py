"""Compare methods: one file in, one page out."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import jobs
from .errors import UsageError
from .noise_report import describe as describe_model
from .noise_report import value_range
from .progress import Progress, with_prefix

if TYPE_CHECKING:
    from ..io import ImageFile
    from ..methods import Method
    from ..noise import NoiseEstimator
    from ..reports.compare import Result

FAVOURITES = ("denoise", "gsf", "bm3d", "nlm")  # compared if nothing is asked for
_WARM_UP = 96  # sides of what a method sees before its time is taken


@dataclass(frozen=True)
class MethodChoice:
    """A method and its options, under the name it is shown with."""

    label: str
    method: Method
    options: Mapping[str, object]


def check_target(out: Path, overwrite: bool) -> None:
    """Refuse what cannot be written, before any jobs."""
    if out.is_dir():
        raise UsageError(f"--out {out} is a folder; give a file such as {out / 'report.html'}")
    if out.exists() and not overwrite:
        raise UsageError(f"{out} exists; give --overwrite or another --out")
    if not out.parent.is_dir():
        raise UsageError(f"--out {out}: there is no folder {out.parent}")


def open_picture(path: Path, channel_axis: jobs.ChannelAxis, piece: int | None) -> tuple[Any, str]:
    """Return one picture, channels last, and which part of the file it is."""
    from ..io import FileError
    from ..io.stacks import cut

    image: ImageFile = jobs.open_file(path, channel_axis)[0]
    stack = cut(image, "none")
    number = len(stack) // 2 if piece is None else piece
    if not 0 <= number < len(stack):
        raise FileError(f"{path}: has no slice {number}; it has {len(stack)}, counted from 0")
    import numpy as np

    pixels = image.pixels[stack.pieces[number]]
    if stack.channel_axis is not None:
        pixels = np.moveaxis(pixels, stack.channel_axis, -1)
        pixels = pixels[..., 0] if pixels.shape[-1] == 1 else pixels
    if pixels.dtype == bool or not np.isfinite(pixels).any():
        raise FileError(
            f"{path}: has no usable pixel: all are masked, not finite or just true and false"
        )
    part = f", slice {number} of {len(stack)}" if len(stack) > 1 else ""
    return pixels, part


def describe(path: Path, pixels: Any, part: str) -> str:
    """Return size and kind of a picture in words."""
    height, width = pixels.shape[:2]
    channels = f", {pixels.shape[2]} channels" if pixels.ndim == 3 else ""
    return f"{path.name}, {width}x{height} {pixels.dtype}{channels}{part}"


def compare(
    source: Path,
    reference: Path | None,
    asked: list[MethodChoice],
    *,
    sigma: float | None,
    channel_axis: jobs.ChannelAxis,
    piece: int | None,
    workers: int | None,
    seed: int,
    progress: Progress | None,
    strength: float = 1.0,
    warn: Callable[[str], object] = str,
) -> str:
    """Run the methods on a picture, each as `symsmooth denoise` runs it, and return the page.

    ``strength`` multiplies the level that a method is told of; one that has such an option has its own.
    """
    from .. import __version__
    from ..core.image import open_image
    from ..io import FileError
    from ..noise import NoiseEstimator, resolve
    from ..reports.compare import Comparison, compare_page

    pixels, part = open_picture(source, channel_axis, piece)
    clean = None
    if reference is not None:
        clean, _ = open_picture(reference, channel_axis, piece)
        if clean.shape != pixels.shape:
            raise FileError(f"{reference}: has shape {clean.shape}, {source} has {pixels.shape}")
    axis = -1 if pixels.ndim == 3 else None
    runs = [
        jobs.DenoiseJob(each.method, each.options, sigma, axis, workers, seed) for each in asked
    ]
    question_sigma(source, pixels, sigma, warn)
    estimator = NoiseEstimator(lambda: open_image(pixels, axis))
    found = resolve(estimator, sigma)
    words = describe_model(
        found, pixels, value_range(pixels), given=sigma is not None, assumed=False
    )
    results = [
        _run_choice(each, job, pixels, estimator, strength, progress)
        for each, job in zip(asked, runs, strict=True)
    ]
    facts = {
        "Picture": describe(source, pixels, part),
        "Noise": words.words,
        "Version": f"symsmooth {__version__}",
        "Seed": str(seed),
    }
    if reference is not None:
        facts["Reference"] = reference.name
    peak = peak_of(pixels if clean is None else clean)
    page = Comparison(source.name, pixels, words.level, peak, results, clean, facts)
    return compare_page(page) if progress is None else compare_page(page, progress)


def _run_choice(
    choice: MethodChoice, job: jobs.DenoiseJob, pixels: Any, estimator: NoiseEstimator,
    strength: float, progress: Progress | None,
) -> Result:  # fmt: skip
    """Run one method as `symsmooth denoise` does, and take its time."""
    from ..noise import White
    from ..reports.compare import Result

    noise, axis = job.find_noise(estimator), job.channel_axis
    assert axis != "auto"
    if strength != 1.0 and "strength" not in choice.options and isinstance(noise, White):
        noise = White(strength * noise.sigma)
    callback = None if progress is None else with_prefix(f"{choice.label}: ", progress)
    with suppress(ValueError):  # so that loading does not count
        jobs.apply(job, pixels[:_WARM_UP, :_WARM_UP], axis, noise, callback)
    start = time.perf_counter()
    image, learned = jobs.apply(job, pixels, axis, noise, callback)
    seconds = time.perf_counter() - start
    brief = ""
    if noise is not None:
        brief = jobs.describe_noise(job, noise, pixels, value_range(pixels)).brief
    chosen = {name: value for name, value in choice.options.items() if name != "noise"}
    return Result(choice.label, image, seconds, brief, {**chosen, **learned})


def question_sigma(
    source: Path, pixels: Any, sigma: float | None, warn: Callable[[str], object]
) -> None:
    """Ask about a given level that seems to be in other units."""
    from ..noise.level import question_units

    question = None if sigma is None else question_units(pixels, sigma)
    if question:
        warn(f"{source}: {question}")


def peak_of(pixels: Any) -> float:
    """Return how far apart pixels can be."""
    return value_range(pixels) or 1.0


def save(out: Path, text: str) -> None:
    """Write the page; it appears whole or not at all."""
    from ..io import atomic_write

    with atomic_write(out) as handle:
        handle.write(text.encode("utf-8"))
