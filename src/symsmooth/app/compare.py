"""Compare methods: one file in, one page out."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import __version__
from ..core.parallel import Progress, part_of
from ..io import FileError, ImageFile, atomic_write
from ..io.images import Stack, cut
from ..methods import Method
from ..noise import Noise, NoiseEstimator, resolve
from ..noise.level import units_hint
from .job import ChannelAxis, DenoiseJob, no_progress, open_file
from .messages import JobWarning, UsageError, value_range
from .messages import describe as describe_model
from .stack import apply, describe_noise, frames_around, frames_looked_at, noise_of_frames

if TYPE_CHECKING:
    from ..reports.compare import Result

DEFAULT_METHODS = ("denoise", "gsf", "bm3d", "nlm")  # compared if nothing is asked for
# Fractions at which things begin, for the progress callback: methods, the page, a method after its warm-up.
_METHODS, _DRAWING, _WARM_UP_TIME = 0.03, 0.85, 0.1
_ENDINGS = (".html", ".htm")
_WARM_UP = 96  # sides of what a method sees before its time is taken


@dataclass(frozen=True)
class MethodChoice:
    """A method and its options, under the name it is shown with."""

    label: str
    method: Method
    options: Mapping[str, object]


def check_target(out: Path, overwrite: bool) -> None:
    """Refuse what cannot be written, before any work; a missing folder is made with the page."""
    if out.is_dir():
        raise UsageError(f"{out} is a folder; give a file such as {out / 'report.html'}", "out")
    if out.suffix.lower() not in _ENDINGS:
        raise UsageError(f"{out}: is a web page; name it {out.with_suffix('.html')}", "out")
    if out.exists() and not overwrite:
        raise UsageError(f"{out} exists; replace it, or give another name", "overwrite", "out")
    first = next(each for each in (out.parent, *out.parent.parents) if each.exists())
    if not first.is_dir():
        raise UsageError(f"{out}: {first} is a file, not a folder", "out")


def open_picture(
    path: Path, channel_axis: ChannelAxis, piece: Sequence[int] | None
) -> tuple[Any, str]:
    """Return one picture, channels last, and which part of the file it is."""
    frames, number, part = _open_frames(path, channel_axis, piece, False)
    return frames[number], part


def _open_frames(
    path: Path, channel_axis: ChannelAxis, piece: Sequence[int] | None, series: bool
) -> tuple[list[Any], int, str]:
    """Return one picture, with the frames around it if that is asked for, its number, and which it is."""
    image: ImageFile = open_file(path, channel_axis)[0]
    stack = cut(image, "none")
    number, part = _find_slice(path, image, stack, piece)
    index, time = list(stack.pieces[number]), image.axes.find("T")
    if series and time < 0:
        raise FileError(
            f"{path}: has no axis of time: its axes are {image.axes}; compare it as a picture",
            "series",
        )
    shown: Any = index[time]
    around = frames_around(shown, image.pixels.shape[time]) if series else [shown]
    frames = []
    for at in around:
        index[time] = at
        pixels = image.pixels[tuple(index)]
        if stack.channel_axis is not None:
            pixels = np.moveaxis(pixels, stack.channel_axis, -1)
            pixels = pixels[..., 0] if pixels.shape[-1] == 1 else pixels
        frames.append(pixels)
    at = list(around).index(shown)
    if pixels.dtype == bool or not np.isfinite(frames[at]).any():
        raise FileError(
            f"{path}: has no usable pixel: all are masked, not finite or just true and false"
        )
    return frames, at, part


def _find_slice(
    path: Path, image: ImageFile, stack: Stack, piece: Sequence[int] | None
) -> tuple[int, str]:
    """Return the number of a slice, the middle one if none is asked for, and its place in words."""
    if len(stack) == 1 and piece is None:
        return 0, ""
    others = [
        (image.axes[axis], image.pixels.shape[axis])
        for axis, index in enumerate(stack.pieces[0])
        if not isinstance(index, slice)
    ]
    sizes = [size for _, size in others]
    if piece is None:
        at: Sequence[int] = [size // 2 for size in sizes]
    elif len(piece) == 1:  # counted through all of them
        if not 0 <= piece[0] < len(stack):
            raise FileError(f"{path}: has no slice {piece[0]}; it has {len(stack)}, counted from 0")
        at = [int(i) for i in np.unravel_index(piece[0], sizes)]
    else:
        at = piece
    if len(at) != len(sizes) or not all(0 <= i < n for i, n in zip(at, sizes, strict=True)):
        has = " x ".join(f"{size} ({name})" for name, size in others) or "one picture only"
        raise FileError(
            f"{path}: has no slice {','.join(map(str, at))}; it has {has}, counted from 0"
        )
    number = int(np.ravel_multi_index(tuple(at), tuple(sizes))) if sizes else 0
    if len(sizes) < 2 or len(stack) == 1:
        return number, f", slice {number} of {len(stack)}, from 0" if len(stack) > 1 else ""
    places = [f"{name} {i} of {n}" for (name, n), i in zip(others, at, strict=True)]
    return number, f", slice {', '.join(places)}, from 0"


def describe(path: Path, pixels: Any, part: str) -> str:
    """Return size and kind of a picture in words."""
    height, width = pixels.shape[:2]
    channels = f", {pixels.shape[2]} channels" if pixels.ndim == 3 else ""
    return f"{path.name}, {width}x{height} {pixels.dtype}{channels}{part}"


@dataclass(frozen=True)
class CompareJob:
    """Methods on one picture, each as `symsmooth denoise` runs it, side by side on a page."""

    source: Path
    choices: Sequence[MethodChoice]
    reference: Path | None = None  # the picture without noise
    sigma: float | None = None
    channel_axis: ChannelAxis = "auto"
    piece: Sequence[int] | None = None  # which slice of a stack: its number, or one for each axis
    workers: int | None = None
    seed: int = 0
    noise: Noise | None = None  # for methods that know of more than white noise
    series: bool = False  # methods that know of time are run with the frames around the picture too


@dataclass(frozen=True)
class Page:
    """A report in HTML, and what looks doubtful."""

    text: str
    warnings: Sequence[str | JobWarning] = ()

    def save(self, out: Path) -> None:
        """Write the page, and its folder if there is none; it appears whole or not at all."""
        out.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(out) as handle:
            handle.write(self.text.encode("utf-8"))


def compare(job: CompareJob, progress: Progress | None = None) -> Page:
    """Run the methods and return the page."""
    from ..reports.compare import Comparison, compare_page

    report = progress or no_progress
    report(0.0, "reading")
    frames, at, clean, part = _open_pictures(job)
    pixels = frames[at]
    axis = -1 if pixels.ndim == 3 else None
    trials = [trial for each in job.choices for trial in _trials(job, each, axis)]
    looked_at = [frames[number] for number in frames_looked_at(len(frames))]
    estimator = noise_of_frames(looked_at, axis, "auto", "keep")
    found = resolve(estimator, job.sigma, "auto" if job.noise is None else job.noise)
    span, given = value_range(pixels), job.sigma is not None or job.noise is not None
    words = describe_model(found, pixels, span, given=given, assumed=False)
    share = (_DRAWING - _METHODS) / len(trials)
    results = []
    for number, (label, own) in enumerate(trials):
        start = _METHODS + number * share
        callback = part_of(progress, start, start + share, f"{label}: ")
        results.append(run_trial(label, own, frames, at, estimator, callback))
    facts = page_facts(describe(job.source, pixels, part), words.words, job.seed)
    if job.reference is not None:
        facts["Reference"] = job.reference.name
    peak = value_range(pixels if clean is None else clean) or 1.0
    unchanged = [
        made.label
        for (_, own), made in zip(trials, results, strict=True)
        if own.method.removes_noise
        and not own.method.takes_noise
        and np.array_equal(made.image, pixels, equal_nan=pixels.dtype.kind == "f")
    ]
    doubts = question_unchanged(unchanged, words.level)
    page = Comparison(
        job.source.name, pixels, words.level, peak, results, clean, facts,
        doubts=list(map(str, doubts)),
    )  # fmt: skip
    text = compare_page(page, part_of(progress, _DRAWING, 1.0, "page: "))
    report(1.0, "done")
    questions = [replace(each, message=f"{job.source}: {each.message}") for each in doubts]
    return Page(text, [*question_sigma(job.source, pixels, job.sigma), *questions])


def _trials(
    job: CompareJob, choice: MethodChoice, axis: int | None
) -> Iterator[tuple[str, DenoiseJob]]:
    """Yield what is run of a method: on the picture, and with the frames around it if it knows of time."""
    options = dict(choice.options)
    if job.noise is not None and choice.method.takes_noise:
        options.setdefault("noise", job.noise)
    own = DenoiseJob(choice.method, options, job.sigma, axis, job.workers, job.seed)
    if job.series and own.knows_time:
        yield f"{choice.label}, series", replace(own, third="time")
    yield choice.label, own


def question_unchanged(labels: Sequence[str], level: float) -> list[JobWarning]:
    """Return what to do about methods for white noise that changed nothing where there is noise."""
    if not labels or not level:
        return []
    names = " and ".join(filter(None, [", ".join(labels[:-1]), labels[-1]]))
    know = "knows" if len(labels) == 1 else "know"
    text = f"{names} {know} white noise only, found none and changed nothing; {{level}}"
    return [JobWarning("unchanged", text, f"{level:.3g}")]


def _open_pictures(job: CompareJob) -> tuple[list[Any], int, Any, str]:
    """Return frames, which of them is shown, what it is without noise, if known, and its place in words."""
    frames, at, part = _open_frames(job.source, job.channel_axis, job.piece, job.series)
    if job.reference is None:
        return frames, at, None, part
    clean, _ = open_picture(job.reference, job.channel_axis, job.piece)
    if clean.shape != frames[at].shape:
        raise FileError(
            f"{job.reference}: has shape {clean.shape}, {job.source} has {frames[at].shape}"
        )
    return frames, at, clean, part


def page_facts(picture: str, noise: str, seed: int) -> dict[str, str]:
    """Return what a page says of how it was made."""
    return {
        "Picture": picture,
        "Noise": noise,
        "Version": f"symsmooth {__version__}",
        "Seed": str(seed),
    }


def run_trial(
    label: str, job: DenoiseJob, frames: Sequence[Any], at: int, estimator: NoiseEstimator,
    progress: Progress | None,
) -> Result:  # fmt: skip
    """Run one method as `symsmooth denoise` does, and take its time: that of one frame of a series."""
    from ..reports.compare import Result

    noise, axis = job.find_noise(estimator), job.channel_axis
    assert axis != "auto"
    series = job.third == "time"
    pixels, time_axis = (np.stack(frames), 0) if series else (frames[at], None)
    with suppress(ValueError):  # so that loading does not count
        y, x = (slice(_WARM_UP),) * 2
        small = pixels[:, y, x] if series else pixels[y, x]
        apply(job, small, axis, noise, part_of(progress, 0.0, _WARM_UP_TIME), time_axis)
    start = time.perf_counter()
    report = part_of(progress, _WARM_UP_TIME, 1.0)
    done = apply(job, pixels, axis, noise, report, time_axis)
    seconds = (time.perf_counter() - start) / (len(frames) if series else 1)
    pixels, image = frames[at], done.pixels[at] if series else done.pixels
    brief = ""
    if noise is not None:
        brief = describe_noise(job, noise, pixels, value_range(pixels)).brief
    return Result(label, image, seconds, brief, {**job.chosen, **done.learned})


def question_sigma(source: Path, pixels: Any, sigma: float | None) -> list[str]:
    """Return a question about a given level that seems to be in other units."""
    question = None if sigma is None else units_hint(pixels, sigma)
    return [f"{source}: {question}"] if question else []
