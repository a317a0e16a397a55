"""What is done to a visitor's picture: through the same jobs as the command line, hence its bits.

All of this is done in processes of ``workers``: they get what they need, write into folders, and
return what came of it in plain numbers and words.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from ..app import jobs
from ..app.file_noise import value_range
from ..core.image import Array
from ..core.metrics import psnr, ssim
from ..io import FileError, ImageFile, format_of, limit_decoded_size, write_image
from ..io.limits import memory
from ..io.stacks import cut
from ..methods import DEFAULT, METHODS
from . import bridge, drawing
from .bridge import Steps
from .catalogue import BY_NAME
from .examples import write_example
from .pictures import VIEW
from .settings import Settings
from .worker import Reporter

PART = 99  # the number of the panel that is a part of the picture
_SIDE = 448  # of the part that is done first
_MUCH = 0.6  # of the picture: then the part is not done first
_WORKING_BYTES = 64  # of memory for a pixel at work
_MANY_AXES = ("TIFF", "FITS", "NPY")  # formats that can hold channels as pictures of their own
_SUFFIXES = {"PNG": ".png", "JPEG": ".jpg", "BMP": ".bmp", "WEBP": ".webp",
             "TIFF": ".tif", "FITS": ".fits", "NPY": ".npy"}  # fmt: skip

# --- looking ----------------------------------------------------------------------------------


def look(path: Path, folder: Path, max_bytes: int, reporter: Reporter) -> dict[str, Any]:
    """Look into a file that was dropped: what it is, its noise; write what is shown of it."""
    with limit_decoded_size(max_bytes):
        images = bridge.read_file(path)
    image = images[0]
    _check_memory(image.pixels[cut(image).pieces[0]])
    pixels, others = drawing.arrange(image)
    middle = drawing.middle_of(pixels, len(others))
    if middle.dtype == bool or not np.isfinite(middle).any():
        raise FileError(f"{path}: has no usable pixel: all are masked, or not finite")
    path = _named_as_it_is(path, image.format)
    ranges = drawing.ranges_of(pixels, len(others))
    model, level = bridge.noise_of_file(image)
    noise = bridge.tell_noise(model, image, ranges["all"], given=False, assumed=False)
    np.save(folder / VIEW, pixels)
    info = {
        "description": jobs.describe_size(image, cut(image)),
        "format": image.format,
        "dtype": str(image.pixels.dtype),
        "width": middle.shape[1],
        "height": middle.shape[0],
        "channels": middle.shape[2] if middle.ndim == 3 else 1,
        "apart": middle.ndim == 3 and image.format in _MANY_AXES,
        "others": others,
        "middle": [each["size"] // 2 for each in others],
        "thirds": _thirds(image, others),
        "images": len(images),
        "span": value_range(image),
        "ranges": ranges,
        "histogram": drawing.histogram(middle, ranges["all"]),
        "noise": {**noise, "sigma": level},
    }
    return {"path": path, "info": _finite(info)}


def look_at_reference(
    path: Path, folder: Path, max_bytes: int, reporter: Reporter
) -> dict[str, Any]:
    """Make sure that the picture without noise can be read and is as large as the noisy one."""
    with limit_decoded_size(max_bytes):
        pixels, _ = drawing.arrange(bridge.read_file(path)[0])
    noisy = np.load(folder / VIEW, mmap_mode="r", allow_pickle=False)
    if pixels.shape != noisy.shape:
        raise FileError(f"{path}: is {_size(pixels)}, the noisy picture {_size(noisy)}")
    np.save(path.parent / VIEW, pixels)
    return {}


def example(name: str, folder: Path, max_bytes: int, reporter: Reporter) -> dict[str, Any]:
    """Write an example, and look at it as if it had been dropped."""
    clean_folder = folder / "clean"
    clean_folder.mkdir()
    noisy, clean = write_example(name, folder, clean_folder)
    found = look(noisy, folder, max_bytes, reporter)
    look_at_reference(clean, folder, max_bytes, reporter)
    return {**found, "reference": clean_folder, "reference_name": clean.name}


def draw(wanted: dict[str, Any], reporter: Reporter) -> bytes:
    """Draw a slice, or a part of one, as a PNG file."""
    return drawing.draw_view(wanted)


def get_ready_to_look(folder: Path, reporter: Reporter) -> None:
    """Load what looking at a picture takes."""
    with TemporaryDirectory(dir=folder) as name:
        path = Path(name) / "noise.tif"
        write_image(path, np.random.default_rng(0).normal(100.0, 20.0, (64, 64)).astype("f4"))
        look(path, Path(name), 2**20, reporter)


def get_ready_to_run(workers: int | None, reporter: Reporter) -> None:
    """Load what the default method takes."""
    METHODS[DEFAULT](np.random.default_rng(0).normal(100.0, 20.0, (64, 64)), workers=workers)


def _thirds(image: ImageFile, others: Sequence[dict[str, Any]]) -> list[str]:
    """Return what a stack may be taken for; what the file says first."""
    long = [each["letter"] for each in others if each["size"] > 1]
    if not long:
        return []
    found = ["none"]
    if "Z" in long or len(long) == 1:
        found.append("volume")
    if "T" in long:
        found.append("time")
    own = "volume" if cut(image).third else "none"
    return [own, *(each for each in found if each != own)]


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


def _size(pixels: Array) -> str:
    return " x ".join(map(str, pixels.shape))


# --- denoising --------------------------------------------------------------------------------


def denoise(
    path: Path, given: dict[str, Any], folder: Path, asked: dict[str, Any],
    workers: int | None, max_bytes: int, reporter: Reporter,
) -> dict[str, Any]:  # fmt: skip
    """Denoise what one looks at and show it, then the whole file, into a folder."""
    settings = Settings(**asked)
    reporter.progress(0.0, "reading")
    with limit_decoded_size(max_bytes):
        image = bridge.read_file(path, settings.channels)[0]
    stack = cut(image, settings.third)  # type: ignore[arg-type]
    job = bridge.make_job(settings, given["sigma"], workers)
    reporter.progress(0.02, "finding the noise")
    told_job, model = bridge.find_noise(job, image, stack, given["at"])
    if settings.channels == "together" and not stack.third:
        _denoise_part(image, told_job, given, folder, reporter)
    target = folder / f"{path.stem}-denoised{path.suffix}"
    with limit_decoded_size(max_bytes):
        outcome = jobs.denoise_file(path, target, told_job, Steps(reporter, 0.1, 0.95))
    reporter.progress(0.96, "drawing")
    del image
    with limit_decoded_size(2 * max_bytes):
        noisy, denoised = bridge.read_file(path)[0], bridge.read_file(target)[0]
    shown, others = drawing.arrange(denoised)
    before = drawing.arrange(noisy)[0]
    np.save(folder / "result-0.npy", shown)
    ranges = drawing.ranges_of(before, len(others))
    noise = bridge.tell_noise(
        model, noisy, ranges["all"],
        given=settings.noise == "white" and settings.level is not None,
        assumed=not job.takes_noise,
    )  # fmt: skip
    reporter.progress(0.99, "drawing")
    return _finite({
        "file": target.name,
        "panels": [{"label": _title(job), "removed": _removed(before, shown)}],
        "seconds": outcome.seconds,
        "noise": noise,
        "warnings": bridge.tell_warnings(outcome.warnings),
        "parameters": {name: _plain(value) for name, value in outcome.parameters.items()},
        "histogram": drawing.histogram(drawing.middle_of(shown, len(others)), ranges["all"]),
    })  # fmt: skip


def _denoise_part(
    image: ImageFile, job: jobs.DenoiseJob, given: dict[str, Any], folder: Path, reporter: Reporter
) -> None:
    """Denoise the part one looks at, if that is much less than a slice, and show it."""
    flat = cut(image, "none")
    piece = image.pixels[flat.pieces[bridge.slice_number(image, flat, given["at"])]]
    if flat.channel_axis is not None:
        piece = np.moveaxis(piece, flat.channel_axis, -1)
    box = part_seen(given["looking"], piece.shape[:2])
    if box is None or not np.isfinite(piece).any():
        return
    x, y, width, height = box
    part = piece[y : y + height, x : x + width]
    model: Any = job.options.get("noise")
    options = dict(job.options)
    if model is not None and not model.fits(part.shape if part.ndim == 3 else (*part.shape, 1)):
        options.pop("noise")
    used = replace(job, options=options)
    axis = -1 if part.ndim == 3 else None
    done, _ = jobs.apply(used, part, axis, used.sigma, Steps(reporter, 0.03, 0.09))
    if done.ndim == 3 and done.shape[-1] == 1:
        done = done[..., 0]
    np.save(folder / f"result-{PART}.npy", done)
    news = {"box": [x, y, width, height], "at": given["at"], "folder": str(folder), "panel": PART}
    reporter.send("part", news)


def part_seen(
    looking: Sequence[int] | None, shape: Sequence[int], most: int = _SIDE
) -> tuple[int, int, int, int] | None:
    """Return x, y, width and height of what is looked at, at most ``most`` wide and high.

    None if the picture is so small that it may as well be done whole.

    Examples
    --------
    >>> part_seen((0, 750, 500, 250), (1000, 2000))
    (26, 750, 448, 250)
    """
    height, width = shape
    x, y, w, h = looking if looking is not None and len(looking) == 4 else (0, 0, width, height)
    found = []
    for start, seen, size in ((x, w, width), (y, h, height)):
        side = min(max(seen, 16), most, size)
        first = min(max(start + (seen - side) // 2, 0), size - side)
        found.append((first, side))
    (left, wide), (top, high) = found
    return (left, top, wide, high) if wide * high < _MUCH * width * height else None


# --- comparing --------------------------------------------------------------------------------


def compare(
    path: Path, folder: Path, reference: Path | None, names: Sequence[str], at: Sequence[int],
    into: Path, asked: dict[str, Any], workers: int | None, max_bytes: int, reporter: Reporter,
) -> dict[str, Any]:  # fmt: skip
    """Put two to four methods side by side on one slice."""
    pixels, clean = _slices(folder, reference, at)
    file = ImageFile(pixels, -1 if pixels.ndim == 3 else None, None, "NPY")
    stack, span = cut(file, "none"), value_range(file)
    peak = span or 1.0
    panels = []
    settings = Settings(**asked)
    reporter.progress(0.0, "finding the noise")
    model, level = bridge.noise_of_file(file)
    for number, name in enumerate(names):
        takes = BY_NAME[name].noise
        own = replace(settings, method=name, noise=settings.noise if takes else "white")
        own = replace(own, level=own.level if settings.noise == "white" else None, third="none")
        job = bridge.make_job(own, level, workers)
        steps = Steps(
            reporter, 0.03 + 0.95 * number / len(names), 0.03 + 0.95 * (number + 1) / len(names)
        )
        start = time.perf_counter()
        used, found = bridge.find_noise(job, file, stack, ())
        used = jobs.with_noise(used, found)
        made, _ = jobs.apply(
            used, pixels, stack.channel_axis, used.sigma, _named(_title(job), steps)
        )
        seconds = time.perf_counter() - start
        np.save(into / f"result-{number}.npy", made)
        brief = jobs.describe_noise(job, found, pixels, span).brief
        panels.append({
            "label": _title(job), "seconds": seconds, "noise": brief,
            "removed": _removed(pixels, made), **_scores(made, clean, peak),
        })  # fmt: skip
    ranges = drawing.ranges_of(pixels, 0)
    noise = bridge.tell_noise(model, file, ranges["all"], given=False, assumed=False)
    return _finite({
        "panels": panels, "noisy": _scores(pixels, clean, peak), "clean": clean is not None,
        "noise": noise, "seconds": reporter.seconds, "warnings": [],
    })  # fmt: skip


def report(
    given: dict[str, Any], folder: Path, result: Path, reference: Path | None, kind: str,
    reporter: Reporter,
) -> Path:  # fmt: skip
    """Write what is shown as one page that needs no server."""
    from .. import __version__
    from ..reports.compare import Comparison, Result, compare_page

    told, info = given["told"], given["info"]
    at = given["at"] or info["middle"]
    pixels, clean = _slices(folder, reference if kind == "compare" else None, at)
    results = [
        Result(
            panel["label"],
            drawing.take_slice(result / f"result-{number}.npy", at, info["channels"]),
            panel.get("seconds", told["seconds"]),
            panel.get("noise", told["noise"]["words"]),
        )
        for number, panel in enumerate(told["panels"])
    ]
    facts = {
        "Picture": f"{given['name']}, {info['description']}",
        "Noise": told["noise"]["words"],
        "Version": f"symsmooth {__version__}",
    }
    if at:
        names = [
            f"{each['name'].lower()} {i + 1}" for each, i in zip(info["others"], at, strict=True)
        ]
        facts["Slice"] = ", ".join(names)
    found = Comparison(
        given["name"], pixels, told["noise"]["level"], info["span"] or 1.0, results, clean, facts,
        timing="this run on this machine",
    )  # fmt: skip
    page = (
        result / f"{Path(given['name']).stem}-{'compared' if len(results) > 1 else 'denoised'}.html"
    )
    page.write_text(compare_page(found), "utf-8")
    return page


def _slices(folder: Path, reference: Path | None, at: Sequence[int]) -> tuple[Array, Array | None]:
    """Return a slice as it is and, if that is known, without noise."""
    noisy = np.load(folder / VIEW, mmap_mode="r", allow_pickle=False)
    if len(at) > noisy.ndim - 2 or any(i >= n for i, n in zip(at, noisy.shape, strict=False)):
        raise ValueError("There is no such slice.")
    clean = None
    if reference is not None:
        whole = np.load(reference / VIEW, mmap_mode="r", allow_pickle=False)
        clean = np.array(whole[tuple(at)])
    return np.array(noisy[tuple(at)]), clean


def _scores(image: Array, clean: Array | None, peak: float) -> dict[str, float | None]:
    if clean is None:
        return {}
    return {"psnr": psnr(image, clean, peak), "ssim": ssim(image, clean, peak)}


def _named(label: str, steps: Steps) -> Any:
    return lambda stage, done, total: steps(f"{label}: {stage}", done, total)


def _title(job: jobs.DenoiseJob) -> str:
    quality = job.options.get("quality")
    title = BY_NAME[job.method.name].title
    return title if quality is None else f"{title}, {quality}"


def _removed(before: Array, after: Array) -> float:
    """Return the standard deviation of what was removed; of a stack, of its middle slice."""
    lines = before.ndim - 2
    middle = tuple(n // 2 for n in before.shape[:lines]) if before.ndim > 3 else ()
    change = np.asarray(before[middle], np.float32) - np.asarray(after[middle], np.float32)
    return float(np.std(change[np.isfinite(change)])) if np.isfinite(change).any() else 0.0


def _plain(value: object) -> object:
    return value if isinstance(value, (int, float, str, bool)) else str(value)


def _finite(value: Any) -> Any:
    """Return numbers that JSON knows: None for those that are not finite."""
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(each) for each in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
