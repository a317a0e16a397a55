"""What is done to a visitor's picture: through the functions of the command line, hence its bits."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import symsmooth

from ..cli import noise_report, seeing, work
from ..cli.options import own_options
from ..files import FileError, format_of, reading_at_most
from ..files._claims import memory
from ..files.stacks import cut
from ..image import Array
from ..methods import METHODS
from ..noise import White
from ..views.compare import Comparison, Result, compare_page, look_page
from ..views.display import display_range
from .runs import Run, Work
from .visits import Dropped, Visit, VisitError

PREVIEW = 448  # sides of the part that is done first
UNPACKED = 4  # times the upload limit is what pixels may take in memory
_PART = "The part you look at; the whole follows"
_MUCH = 0.6  # of the picture: then the part is not done first
_WORKING_BYTES = 64  # of memory for a pixel at work
_SUFFIXES = {"PNG": ".png", "JPEG": ".jpg", "BMP": ".bmp", "WEBP": ".webp",
             "TIFF": ".tif", "FITS": ".fits", "NPY": ".npy"}  # fmt: skip


@dataclass(frozen=True)
class Asked:
    """What the controls say."""

    method: str
    quality: str
    sigma: float | None  # None: as estimated
    strength: float
    looking: str = ""  # where one looks: "zoom x y" of the viewer

    def job(self, picture: Dropped, workers: int | None) -> work.Job:
        """Return it as the command line would; the noise is not estimated a second time."""
        if self.method not in METHODS:
            raise VisitError(f"There is no method {self.method!r}.")
        function = METHODS[self.method]
        known = own_options(function)
        options: dict[str, object] = {"quality": self.quality} if "--quality" in known else {}
        sigma = self.sigma
        if sigma is None and "--noise" in known:
            options["noise"] = picture.noise
        elif sigma is None:
            sigma = picture.sigma
        if self.strength != 1.0 and "--strength" in known:
            options["strength"] = self.strength
        elif (
            self.strength != 1.0
        ):  # a method that does not know of it is told of more, or less, noise
            sigma = self.strength * (sigma or 0.0)
        return work.Job(self.method, function, options, sigma, "auto", workers, seed=0)


def receive(visit: Visit, path: Path, most_bytes: int) -> None:
    """Look into a file that was dropped: what it is, its noise; show it in place of what was there."""
    with reading_at_most(most_bytes):
        images = work.open_file(path, "auto")
    stack = cut(images[0])
    _check_memory(images[0].pixels[stack.pieces[0]])
    path = _named_as_it_is(path, images[0].format)
    pixels, _ = seeing.open_picture(path, "auto", None)
    model, span = work.estimated_noise(images[0], stack), work.range_of(images[0])
    white = model.sigma if isinstance(model, White) else work.noise_of(images[0], stack)
    middle = work.middle_of(images[0], stack)
    picture = Dropped(
        path,
        white,
        model,
        noise_report.describe(model, middle, span, given=False, assumed=False),
        span,
        f"{path.name}, {work.size_of(images[0], stack)}",
        (pixels.shape[0], pixels.shape[1]),
    )
    text = look_page(_comparison(picture, pixels, []), "As it is")
    visit.asked += 1  # what runs is of no interest any more
    visit.stop()
    visit.replace("picture", path)
    visit.picture, visit.reference = picture, None
    for name in ("result", "report"):
        visit.files.pop(name, None)
    visit.show(text)


def receive_reference(visit: Visit, path: Path, most_bytes: int) -> None:
    """Keep the picture without noise."""
    with reading_at_most(most_bytes):
        seeing.open_picture(path, "auto", None)
    visit.reference = path


def warm_up(workers: int | None) -> None:
    """Compile what the default method needs, so that the first visitor does not wait for it."""
    symsmooth.denoise(np.random.default_rng(0).normal(100.0, 20.0, (64, 64)), workers=workers)


def telling_of_compilation(work_on: Work, run: Run) -> str:
    """Do a piece of work; say so if it waits for kernels to be compiled."""
    with work.telling_of_compilation(run.tell):
        return work_on(run)


def _check_memory(piece: Array) -> None:
    needed = _WORKING_BYTES * piece.size
    if needed > memory() / 2:
        raise FileError(f"would need {needed / 2**30:.0f} GB of memory at work; cut it first")


def _named_as_it_is(path: Path, format: str) -> Path:
    """Give a file the ending of what it holds, so that the result is written as the same."""
    try:
        right = format_of(path) == format
    except FileError:
        right = False
    return path if right else path.rename(path.with_suffix(_SUFFIXES[format]))


def denoise(visit: Visit, asked: Asked, workers: int | None, run: Run) -> str:
    """Denoise what one looks at and show it, then the whole file; return what to tell."""
    picture = _picture_of(visit)
    job = asked.job(picture, workers)
    noisy, told = seeing.open_picture(picture.path, "auto", None)
    _preview(visit, asked, job, noisy, run)
    name = f"{picture.path.stem}-denoised{picture.path.suffix}"
    target = visit.place(name, "result")
    report = work.denoise_file(picture.path, target, job, run.progress)
    denoised, _ = seeing.open_picture(target, "auto", None)
    assert report.noise is not None
    used = report.noise if asked.sigma is not None else picture.found
    result = Result(_label(job), denoised, report.seconds, report.noise.brief, report.parameters)
    facts = {
        "Picture": seeing.describe(picture.path, noisy, told),
        "Noise": used.words,
        "Version": f"symsmooth {symsmooth.__version__}",
        "Seed": str(job.seed),
    }
    timing = "this run on this machine, with reading and writing the file"
    found = replace(_comparison(picture, noisy, [result], facts), timing=timing)
    _finish(
        visit, run, lambda: compare_page(found, run.progress), f"{picture.path.stem}-denoised.html"
    )
    visit.replace("result", target)
    return f"Done in {report.seconds:.1f} s"


def _preview(visit: Visit, asked: Asked, job: work.Job, noisy: Array, run: Run) -> None:
    """Denoise the part one looks at, if that is much less than the whole, and show it."""
    picture = _picture_of(visit)
    where = part_seen(asked.looking, noisy.shape[:2])
    if where is None:
        return
    part = noisy[where]
    options = dict(job.options)
    if not picture.noise.fits(part.shape if part.ndim == 3 else (*part.shape, 1)):
        options.pop("noise", None)
    progress = work.within("the part you look at: ", run.progress)
    axis = -1 if noisy.ndim == 3 else None
    denoised, _ = work.apply(replace(job, options=options), part, axis, job.sigma, progress)
    result = Result(_label(job), denoised, 0.0, "")
    found = replace(_comparison(picture, part, [result]), shown=display_range(noisy))
    _finish(visit, run, lambda: look_page(found, _PART, run.progress), "")


def part_seen(
    looking: str, shape: Sequence[int], most: int = PREVIEW
) -> tuple[slice, slice] | None:
    """Return the part of a picture that is looked at, at most ``most`` wide and high.

    None if the picture is so small that it may as well be done whole.

    Examples
    --------
    >>> part_seen("4.0 0.0 1.0", (1000, 2000))
    (slice(750, 1000, None), slice(26, 474, None))
    """
    try:
        zoom, x, y = (float(part) for part in looking.split())
    except ValueError:
        zoom, x, y = 1.0, 0.5, 0.5
    if not all(map(math.isfinite, (zoom, x, y))):
        return None
    cuts = []
    for size, at in zip(shape[:2], (y, x), strict=True):
        seen = size / max(zoom, 1.0)
        side = min(max(round(seen), 16), most, size)
        middle = min(max(at, 0.0), 1.0) * (size - seen) + seen / 2
        start = min(max(round(middle - side / 2), 0), size - side)
        cuts.append(slice(start, start + side))
    sides = [cut.stop - cut.start for cut in cuts]
    return (cuts[0], cuts[1]) if math.prod(sides) < _MUCH * math.prod(shape) else None


def compare(visit: Visit, names: Sequence[str], asked: Asked, workers: int | None, run: Run) -> str:
    """Put two to four methods side by side; return what to tell."""
    picture = _picture_of(visit)
    chosen = seeing.parse_methods(",".join(names), lambda name: (name, METHODS[name]), METHODS)
    tuned = [_tuned(each, asked) for each in chosen]

    def page() -> str:
        return seeing.compare(
            picture.path, visit.reference, tuned, sigma=asked.sigma, channel_axis="auto", piece=None,
            workers=workers, seed=0, progress=run.progress, strength=asked.strength,
        )  # fmt: skip

    _finish(visit, run, page, f"{picture.path.stem}-compared.html")
    return f"Compared {len(names)} methods in {run.seconds:.1f} s"


def _tuned(each: seeing.Asked, asked: Asked) -> seeing.Asked:
    """Return a method with the quality and strength that the controls say, if it knows of them."""
    known, options, label = own_options(each.function), dict(each.options), each.label
    if "--quality" in known:
        options["quality"], label = asked.quality, f"{label}:{asked.quality}"
    if "--strength" in known and asked.strength != 1.0:
        options["strength"] = asked.strength
    return replace(each, label=label, options=options)


def _picture_of(visit: Visit) -> Dropped:
    if visit.picture is None:
        raise VisitError("Drop a picture first, or take an example.")
    return visit.picture


def _label(job: work.Job) -> str:
    quality = job.options.get("quality")
    return job.method if quality is None else f"{job.method}:{quality}"


def _comparison(
    picture: Dropped, noisy: Array, results: Sequence[Result], facts: Any = None
) -> Comparison:
    peak = picture.reach or 1.0
    level = picture.found.level
    return Comparison(picture.path.name, noisy, level, peak, results, None, facts or {})


def _finish(visit: Visit, run: Run, page: Callable[[], str], report: str) -> None:
    """Draw a page and show it; keep it as a file under a name, if it has one."""
    text = page()
    run.progress("drawing", 1, 1)  # the last chance to be stopped
    visit.show(text, partly=not report)
    if report:
        path = visit.place(report, "report")
        path.write_text(text, "utf-8")
        visit.replace("report", path)
