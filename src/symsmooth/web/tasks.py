"""What is done to a visitor's picture: through the same jobs as the command line, hence its bits.

All of this is done in processes of ``workers``: they get what they need, write into folders, and
return what came of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from .. import __version__
from ..app import compare as comparing
from ..app import jobs, noise_report
from ..app.noise_report import value_range
from ..app.run import FileJob, run
from ..core.image import Array, open_image
from ..core.parallel import part_of
from ..io import FileError, format_of, limit_decoded_size, write_image
from ..io.limits import memory
from ..io.stacks import cut
from ..methods import DEFAULT, METHODS
from ..noise import NoiseEstimator, resolve
from ..reports.compare import Comparison, Result, compare_page, look_page
from ..reports.display import display_range
from .sessions import SessionError, Upload
from .worker import Reporter

_PART_TIME = 0.2  # of a run, for its progress
PREVIEW = 448  # sides of the part that is done first
UNPACKED = 4  # times the upload limit is what pixels may take in memory
READING_SECONDS = 20.0  # that looking at a file may take ...
READING_BYTES = 1e6  # ... and a second more for so many bytes
_PART = "The part you look at; the whole follows"
_MUCH = 0.6  # of the picture: then the part is not done first
_WORKING_BYTES = 64  # of memory for a pixel at work
_SUFFIXES = {"PNG": ".png", "JPEG": ".jpg", "BMP": ".bmp", "WEBP": ".webp",
             "TIFF": ".tif", "FITS": ".fits", "NPY": ".npy"}  # fmt: skip


@dataclass(frozen=True)
class RunRequest:
    """What the controls say."""

    method: str
    quality: str
    sigma: float | None  # None: as estimated
    strength: float
    looking: str = ""  # where one looks: "zoom x y" of the viewer

    def job(self, picture: Upload, workers: int | None) -> jobs.DenoiseJob:
        """Return it as the command line would; the noise is not estimated a second time."""
        if self.method not in METHODS:
            raise SessionError(f"There is no method {self.method!r}.")
        method = METHODS[self.method]
        known = method.options
        options: dict[str, object] = {"quality": self.quality} if "quality" in known else {}
        sigma = self.sigma
        if sigma is None and "noise" in known:
            options["noise"] = picture.noise
        elif sigma is None:
            sigma = picture.sigma
        if self.strength != 1.0 and "strength" in known:
            options["strength"] = self.strength
        elif (
            self.strength != 1.0
        ):  # a method that does not know of it is told of more, or less, noise
            sigma = self.strength * (sigma or 0.0)
        return jobs.DenoiseJob(method, options, sigma, "auto", workers, seed=0)


@dataclass(frozen=True)
class RunResult:
    """What came of a run: files in the folder it was given."""

    message: str
    report: Path  # the page that is shown, to be taken home too
    result: Path | None = None


def look(path: Path, max_bytes: int, reporter: Reporter) -> tuple[Upload, Path]:
    """Look into a file that was dropped: what it is, its noise; return that and a page of it."""
    with limit_decoded_size(max_bytes):
        images = jobs.open_file(path, "auto")
    stack = cut(images[0])
    _check_memory(images[0].pixels[stack.pieces[0]])
    path = _named_as_it_is(path, images[0].format)
    pixels, _ = comparing.open_picture(path, "auto", None)
    estimator, span = jobs.noise_estimator(images[0], stack), value_range(images[0].pixels)
    model, white = resolve(estimator), estimator.sigma
    middle = jobs.middle_slice(images[0], stack)
    picture = Upload(
        path,
        white,
        model,
        noise_report.describe(model, middle, span, given=False, assumed=False),
        span,
        f"{path.name}, {jobs.describe_size(images[0], stack)}",
        (pixels.shape[0], pixels.shape[1]),
    )
    page = path.parent / "view.html"
    page.write_text(look_page(_comparison(picture, pixels, []), "As it is"), "utf-8")
    return picture, page


def look_at_reference(path: Path, max_bytes: int, reporter: Reporter) -> None:
    """Make sure that the picture without noise can be read."""
    with limit_decoded_size(max_bytes):
        comparing.open_picture(path, "auto", None)


def get_ready_to_look(folder: Path, reporter: Reporter) -> None:
    """Load what looking at a picture takes."""
    with TemporaryDirectory(dir=folder) as name:
        path = Path(name) / "noise.tif"
        write_image(path, np.random.default_rng(0).normal(100.0, 20.0, (64, 64)).astype("f4"))
        look(path, 2**20, reporter)


def get_ready_to_run(workers: int | None, reporter: Reporter) -> None:
    """Load what the default method takes."""
    METHODS[DEFAULT](np.random.default_rng(0).normal(100.0, 20.0, (64, 64)), workers=workers)


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


def denoise(
    picture: Upload, asked: RunRequest, workers: int | None, folder: Path, reporter: Reporter
) -> RunResult:
    """Denoise what one looks at and show it, then the whole file, into a folder."""
    job = asked.job(picture, workers)
    noisy, part = comparing.open_picture(picture.path, "auto", None)
    _preview(picture, asked, job, noisy, folder, reporter)
    target = folder / f"{picture.path.stem}-denoised{picture.path.suffix}"
    report = run(FileJob(picture.path, target, job), part_of(reporter.progress, _PART_TIME, 0.8))
    denoised, _ = comparing.open_picture(target, "auto", None)
    assert report.noise is not None
    used = report.noise if asked.sigma is not None else picture.found
    result = Result(_label(job), denoised, report.seconds, report.noise.brief, report.parameters)
    facts = {
        "Picture": comparing.describe(picture.path, noisy, part),
        "Noise": used.words,
        "Version": f"symsmooth {__version__}",
        "Seed": str(job.seed),
    }
    drawing = part_of(reporter.progress, 0.8, 1.0)
    timing = "this run on this machine, with reading and writing the file"
    found = replace(_comparison(picture, noisy, [result], facts), timing=timing)
    page = _write(folder / f"{target.stem}.html", compare_page(found, drawing), reporter)
    return RunResult(f"Done in {report.seconds:.1f} s", page, target)


def _preview(
    picture: Upload,
    asked: RunRequest,
    job: jobs.DenoiseJob,
    noisy: Array,
    folder: Path,
    reporter: Reporter,
) -> None:
    """Denoise the part one looks at, if that is much less than the whole, and show it."""
    where = part_seen(asked.looking, noisy.shape[:2])
    if where is None:
        return
    part = noisy[where]
    options = dict(job.options)
    if not picture.noise.fits(part.shape if part.ndim == 3 else (*part.shape, 1)):
        options.pop("noise", None)
    progress = part_of(reporter.progress, 0.0, _PART_TIME, "the part you look at: ")
    axis = -1 if noisy.ndim == 3 else None
    tried = replace(job, options=options)
    noise = tried.find_noise(NoiseEstimator(lambda: open_image(part, axis)))
    denoised, _ = jobs.apply(tried, part, axis, noise, progress)
    result = Result(_label(job), denoised, 0.0, "")
    found = replace(_comparison(picture, part, [result]), shown=display_range(noisy))
    page = _write(folder / "part.html", look_page(found, _PART), reporter)
    reporter.send("part", page)


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


def compare(
    picture: Upload, reference: Path | None, names: Sequence[str], asked: RunRequest,
    workers: int | None, folder: Path, reporter: Reporter,
) -> RunResult:  # fmt: skip
    """Put two to four methods side by side, on a page in a folder."""
    chosen = [comparing.MethodChoice(name, METHODS[name], {}) for name in names]
    tuned = [_tuned(each, asked) for each in chosen]

    job = comparing.CompareJob(
        picture.path, tuned, reference, asked.sigma, workers=workers, strength=asked.strength
    )
    text = run(job, reporter.progress).text
    page = _write(folder / f"{picture.path.stem}-compared.html", text, reporter)
    return RunResult(f"Compared {len(names)} methods in {reporter.seconds:.1f} s", page)


def _tuned(each: comparing.MethodChoice, asked: RunRequest) -> comparing.MethodChoice:
    """Return a method with the quality and strength that the controls say, if it knows of them."""
    known, options, label = each.method.options, dict(each.options), each.label
    if "quality" in known:
        options["quality"], label = asked.quality, f"{label}:{asked.quality}"
    if "strength" in known and asked.strength != 1.0:
        options["strength"] = asked.strength
    return replace(each, label=label, options=options)


def _label(job: jobs.DenoiseJob) -> str:
    quality = job.options.get("quality")
    return job.method.name if quality is None else f"{job.method.name}:{quality}"


def _comparison(
    picture: Upload, noisy: Array, results: Sequence[Result], facts: Any = None
) -> Comparison:
    peak = picture.reach or 1.0
    level = picture.found.level
    return Comparison(picture.path.name, noisy, level, peak, results, None, facts or {})


def _write(page: Path, text: str, reporter: Reporter) -> Path:
    """Write a page, unless the work is to stop: this is the last chance to."""
    reporter.progress(1.0, "drawing")
    page.write_text(text, "utf-8")
    return page
