"""All that processes can be asked to do, by name: pictures are inspected, denoised, compared and drawn.

They get what they need, write into folders, and return what came of it in plain numbers and words.  The
part on the screen is denoised first, then all of it, with the bits of the command line.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from .. import __version__
from ..app import raw
from ..app.blend import BlendJob, blend_files
from ..app.compare import question_unchanged, run_trial
from ..app.job import describe_size
from ..app.messages import JobWarning, value_range
from ..app.stack import noise_of_frames
from ..core.image import Array
from ..core.metrics import psnr, ssim
from ..core.parallel import Progress, part_of
from ..io import FileError, ImageFile, format_of, limit_decoded_size, read_images, write_images
from ..io.formats import ending_of, is_video_name
from ..io.images import cut
from ..io.noise_files import load_noise
from ..methods import DEFAULT, METHODS
from ..noise import resolve
from . import bridge, pictures
from .sessions import NOISE, VIEW, name_with
from .settings import BY_NAME, Settings
from .worker import Reporter

# Formats that can hold channels as pictures of their own.
_MANY_AXES = ("TIFF", "FITS", "NPY", "NIFTI", "NIFTI.GZ", "MRC")
_DEVELOPED = (0.0, 255.0)  # black and white of a developed picture
_WARM_UP = 64  # pixels a side of what is denoised before the first work comes
PART = 99  # the number of the panel that is a part of the picture
_SIDE = 448  # of the part that is done first
_LARGE = 2**22  # pixels from which on it covers the screen, because the whole takes long ...
_LARGE_SIDE = 1280  # ... up to this side, as a preview: 2 s of one core for a megapixel
_MUCH = 0.6  # of the picture: then the part is not done first
_DONE = 0.95  # of the progress: then the result is drawn
_FIRST, _SHARE = 0.03, 0.95  # of the progress: where methods begin, and what they take


# --- inspecting -------------------------------------------------------------------------------


def inspect_file(path: Path, folder: Path, max_bytes: int, reporter: Reporter) -> dict[str, Any]:
    """Inspect a file that was dropped, and write what is shown of it into a folder."""
    kind = bridge.kind_of(path)
    if kind == "video":
        view, played = pictures.unpack(path, folder / VIEW, max_bytes)
        own = {**played, "thirds": ["time", "none"], "blends": False}
        return {"path": path, "info": _info_of_frames([path], view, max_bytes, own)}
    with limit_decoded_size(max_bytes):
        if kind == "raw":
            return _inspect_raw(path, folder)
        images = read_images(path)
    image = images[0]
    if image.is_bilevel:
        raise FileError(f"{path}: has one bit a pixel, black or white, and so no noise level")
    bridge.check_memory(image.pixels[cut(image).pieces[0]])
    pixels, others = pictures.arrange(image)
    middle = pictures.middle_of(pixels, len(others))
    if middle.dtype == bool or not np.isfinite(middle).any():
        raise FileError(f"{path}: has no usable pixel: all are masked, or not finite")
    *noise, level = bridge.noise_of_file(image)
    np.save(folder / VIEW, pixels)
    info = _info((image, *noise), pixels, others) | {
        "apart": middle.ndim == 3 and image.format in _MANY_AXES,
        "tints": pictures.tints_of(image),
        "thirds": _thirds(image, others),
        "images": len(images),
    }
    info["noise"]["sigma"] = level
    return {"path": _named_as_it_is(path, image.format), "info": pictures.finite(info)}


def inspect_series(
    paths: Sequence[Path], folder: Path, max_bytes: int, reporter: Reporter
) -> dict[str, Any]:
    """Inspect pictures that are frames of one series, in this order; write all to be shown."""
    view = pictures.join(paths, folder / VIEW, max_bytes)
    return {"path": paths[0], "info": _info_of_frames(paths, view, max_bytes, {"thirds": ["time"]})}


def _info_of_frames(
    paths: Sequence[Path], view: Array, max_bytes: int, own: dict[str, Any]
) -> dict[str, Any]:
    """Return what was found in frames."""
    with limit_decoded_size(max_bytes):
        looked = bridge.noise_of_frames(paths)
    time = [{"letter": "T", "name": "Time", "size": len(view)}]
    return pictures.finite(_info(looked, view, time) | own)


def _inspect_raw(path: Path, folder: Path) -> dict[str, Any]:
    """Inspect a raw file: what it is, the noise of its sensor; develop it to be shown."""
    looked = image, model, words = bridge.noise_of_raw(path)
    if image.format == "DNG":
        path = _named_as_it_is(path, "DNG")
    bridge.keep_noise(model, folder / NOISE, image)
    shown = pictures.developed(image)
    np.save(folder / VIEW, shown)
    name, span = bridge.mosaic_name(image), bridge.span_of(image)
    ranges = dict.fromkeys(("all", "0", "1", "2"), _DEVELOPED)
    info = _info(looked, shown, []) | {
        "description": f"{shown.shape[1]}x{shown.shape[0]}, {name}",
        "dtype": str(image.pixels.dtype),
        "span": 255.0,
        "mosaic": name,
        "blends": False,
        "ranges": ranges,
        "histogram": pictures.histogram(shown, _DEVELOPED),
        "noise": {**bridge.noise_details(model, words, span, (0.0, span)), "sigma": words.level},
    }
    return {"path": path, "info": pictures.finite(info)}


def _info(looked: Any, view: Array, others: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what the page knows of a picture; what is special about it is added to that."""
    image, model, words = looked
    span, ranges = bridge.span_of(image), pictures.ranges_of(view, len(others))
    middle = pictures.middle_of(view, len(others))
    noise = bridge.noise_details(model, words, span, ranges["all"])
    return {
        "description": describe_size(image, cut(image)),
        "format": image.format,
        "dtype": str(view.dtype),
        "width": middle.shape[1],
        "height": middle.shape[0],
        "channels": middle.shape[2] if middle.ndim == 3 else 1,
        "apart": False,
        "tints": [],
        "others": others,
        "middle": [each["size"] // 2 for each in others],
        "thirds": [],
        "images": 1,
        "span": span,
        "mosaic": "",
        "blends": True,
        "ranges": ranges,
        "histogram": pictures.histogram(middle, ranges["all"]),
        "noise": {**noise, "sigma": words.level},
    }


def _thirds(image: ImageFile, others: Sequence[dict[str, Any]]) -> list[str]:
    """Return what a stack may be taken for; what the file says first."""
    long = [each["letter"] for each in others if each["size"] > 1]
    if not long:
        return []
    found = ["none"]
    if "Z" in long or len(long) == 1:
        found.append("volume")
    if "T" in long or (len(long) == 1 and "Z" not in long):
        found.append("time")
    own = "volume" if cut(image).third else "none"
    return [own, *(each for each in found if each != own)]


def _named_as_it_is(path: Path, format: str) -> Path:
    """Give a file the ending of what it holds, so that the result is written as the same."""
    try:
        right = format_of(path) == format
    except FileError:
        right = False
    return path if right else path.rename(path.with_suffix(ending_of(format)))


def inspect_reference(
    path: Path, folder: Path, max_bytes: int, reporter: Reporter
) -> dict[str, Any]:
    """Make sure that the picture without noise can be read and is as large as the noisy one."""
    pixels = pictures.write_view([path], "image", path.parent / VIEW, max_bytes)
    noisy = np.load(folder / VIEW, mmap_mode="r", allow_pickle=False)
    if pixels.shape != noisy.shape:
        ours, theirs = (" x ".join(map(str, each.shape)) for each in (pixels, noisy))
        raise FileError(f"{path}: is {ours}, the noisy picture {theirs}")
    return {}


def example(name: str, folder: Path, max_bytes: int, reporter: Reporter) -> dict[str, Any]:
    """Write an example, and inspect it as if it had been dropped."""
    clean_folder = folder / "clean"
    clean_folder.mkdir()
    noisy, clean = pictures.write_example(name, folder, clean_folder)
    found = inspect_file(noisy, folder, max_bytes, reporter)
    inspect_reference(clean, folder, max_bytes, reporter)
    return {**found, "reference": clean_folder, "reference_name": clean.name}


# --- denoising --------------------------------------------------------------------------------


def denoise(
    path: Path, given: dict[str, Any], folder: Path, asked: dict[str, Any],
    workers: int | None, max_bytes: int, reporter: Reporter,
) -> dict[str, Any]:  # fmt: skip
    """Denoise a file, or frames, into a folder; what is on the screen is shown before the rest is done."""
    settings, info = Settings(**asked), given["info"]
    sources: list[Path] = given["frames"] or [path]
    kind = pictures.kind_in(info, sources)
    before = np.load(given["view"], mmap_mode="r", allow_pickle=False)
    frame = _frame(before, given["at"], info)
    job = _job(settings, kind, frame, info, workers)
    targets = _targets(sources, kind, folder)
    found: list[Any] = []
    last = 0.0

    def progress(fraction: float, what: str) -> None:
        nonlocal last
        last = _DONE * fraction
        reporter.progress(last, _stage(what, kind))

    def on_noise(model: Any) -> None:
        if not found and kind != "raw" and _third(settings, info) != "volume":
            _first_look(frame, job, model, given, folder, reporter, last)
        found.append(model)

    with limit_decoded_size(max_bytes):
        outcome = bridge.run_job(sources, targets, replace(job, on_noise=on_noise), progress)
    reporter.progress(0.96, "drawing")
    after = pictures.write_view(targets, kind, folder / "result-0.npy", 2 * max_bytes)
    kept = Path(settings.model) if settings.model else path.parent / NOISE
    if not settings.model and kind != "raw":
        bridge.keep_noise(job.options["noise"] if job.has_model else found[0], folder / NOISE)
    elif kept.is_file():
        shutil.copyfile(kept, folder / NOISE)
    shown, span = info["ranges"]["all"], info["span"]
    if kind == "raw":
        span = bridge.span_of(outcome.image)
    assert outcome.noise is not None  # every method of the page removes noise
    reporter.progress(0.99, "drawing")
    return pictures.finite({
        "files": [str(target.relative_to(folder)) for target in targets],
        "panels": [{"label": settings.result, "removed": pictures.removed(before, after)}],
        **bridge.outcome_details(outcome),
        "noise": bridge.noise_details(
            found[0], outcome.noise, span, (0.0, span) if kind == "raw" else shown
        ),
        "histogram": pictures.histogram(pictures.middle_of(after, len(info["others"])), shown),
    })  # fmt: skip


def _frame(view: Array, at: Sequence[int], info: dict[str, Any]) -> Array:
    """Return the slice that is on the screen, the middle one if there is none; channels last."""
    sizes = [each["size"] for each in info["others"]]
    if len(at) != len(sizes) or any(i >= n for i, n in zip(at, sizes, strict=True)):
        at = info["middle"]
    frame = np.asarray(view[tuple(at)])
    return frame.astype(info.get("stored", frame.dtype))  # noise is known by the dtype it had


def _third(settings: Settings, info: dict[str, Any]) -> str:
    """Return what a stack is taken for."""
    return next(iter(info["thirds"]), "none") if settings.third == "auto" else settings.third


def _job(
    settings: Settings, kind: str, frame: Array, info: dict[str, Any], workers: int | None
) -> Any:
    """Return what is done to a file, or say what cannot be."""
    if kind == "series":
        settings = replace(settings, third="time")
    method = BY_NAME[settings.method]
    if kind in ("video", "series") and settings.third == "time" and not method.time:
        raise ValueError(
            f"{method.title} knows of no time; choose the method Automatic, or Slices."
        )
    job = bridge.make_job(settings, info["noise"]["sigma"], workers)
    if job.noise_region is None or not info["others"]:
        return job
    x, y, width, height = job.noise_region  # on the slice that it was drawn on, as that is shown
    box = frame[y : y + height, x : x + width]
    if box.shape[:2] != (height, width):
        raise ValueError("The box is not inside the picture; mark another part.")
    turned = np.rot90(box, -info.get("turns", 0))
    return bridge.with_noise_of_box(job, turned, 2 if frame.ndim == 3 else None)


def _targets(sources: Sequence[Path], kind: str, folder: Path) -> list[Path]:
    """Return where results go: one file, or one for each frame, which may have the same names."""
    if kind == "series":
        return [
            folder / f"frame-{n}" / name_with(path, "denoised") for n, path in enumerate(sources)
        ]
    ending = ".dng" if kind == "raw" else None
    if kind == "video" and not is_video_name(sources[0]):  # its own container is not written
        ending = ".mkv"
    return [folder / name_with(sources[0], "denoised", ending)]


def _stage(what: str, kind: str) -> str:
    """Return what is done in words of the page: frames and slices by number, but no step of a method."""
    if kind in ("video", "series"):  # which come out in blocks
        return "noise and first frames" if what == "noise" else what
    named = {"reading": "reading", "noise": "finding the noise"}
    return named.get(what) or what.rpartition(": ")[0] or "denoising"


def _first_look(
    frame: Array, job: Any, model: Any, given: dict[str, Any], folder: Path, reporter: Reporter,
    fraction: float,
) -> None:  # fmt: skip
    """Denoise the part of a slice that is on the screen, if that is much less than all of it.

    A frame of a series is little of it, however much of the frame is visible.
    """
    info = given["info"]
    of_series = job.third == "time" or "rate" in info
    large = of_series or frame.shape[0] * frame.shape[1] > _LARGE
    box = visible_part(given["visible"], frame.shape[:2], _LARGE_SIDE if large else _SIDE)
    if box is None and of_series:
        box = (0, 0, frame.shape[1], frame.shape[0])
    if box is None or not np.isfinite(frame).any():
        return
    x, y, width, height = box
    part = frame[y : y + height, x : x + width]
    if not model.fits(part.shape if part.ndim == 3 else (*part.shape, 1)):
        return
    if large and "quality" in job.options:
        job = replace(job, options={**job.options, "quality": "preview"})
    axis = -1 if part.ndim == 3 else None
    done = bridge.denoise_pixels(
        job, model, part, axis, lambda _, what: reporter.progress(fraction, "a first look")
    )
    np.save(folder / f"result-{PART}.npy", done)
    reporter.send("part", {"box": [x, y, width, height], "at": given["at"], "panel": PART})


def visible_part(
    visible: Sequence[int] | None, shape: Sequence[int], max_side: int = _SIDE
) -> tuple[int, int, int, int] | None:
    """Return x, y, width and height of what is on the screen, at most ``max_side`` wide and high.

    None if the picture is so small that it may as well be done whole.
    """
    height, width = shape
    x, y, w, h = visible if visible is not None and len(visible) == 4 else (0, 0, width, height)
    found = []
    for start, extent, size in ((x, w, width), (y, h, height)):
        side = min(max(extent, 16), max_side, size)
        first = min(max(start + (extent - side) // 2, 0), size - side)
        found.append((first, side))
    (left, wide), (top, high) = found
    return (left, top, wide, high) if wide * high < _MUCH * width * height else None


# --- comparing --------------------------------------------------------------------------------


def compare(
    folder: Path, reference: Path | None, names: Sequence[str], at: Sequence[int], into: Path,
    asked: dict[str, Any], workers: int | None, max_bytes: int, reporter: Reporter,
) -> dict[str, Any]:  # fmt: skip
    """Put two to four methods side by side on one slice."""
    pixels, clean = _slices(folder, reference, at)
    axis = -1 if pixels.ndim == 3 else None
    settings, span = Settings(**asked), value_range(pixels)
    peak = span or 1.0
    panels: list[dict[str, Any]] = []
    doubts: dict[JobWarning, list[str]] = {}  # what is doubtful: about which methods
    unchanged: list[str] = []  # methods that know white noise only, and found none
    reporter.progress(0.0, "finding the noise")
    estimator = noise_of_frames([pixels], axis, "auto", "keep")
    model = resolve(estimator)
    for number, name in enumerate(names):
        takes = BY_NAME[name].noise
        own = replace(settings, method=name, noise=settings.noise if takes else "white")
        own = replace(own, level=own.level if settings.noise == "white" else None, third="none")
        job = replace(bridge.make_job(own, estimator.sigma, workers), channel_axis=axis)
        label, first = own.title, _FIRST + _SHARE * number / len(names)
        progress = part_of(_naming(label, reporter), first, first + _SHARE / len(names))
        made = run_trial(label, job, [pixels], 0, estimator, progress)
        np.save(into / f"result-{number}.npy", made.image)
        removed = pictures.removed(pixels, made.image)
        panels.append({
            "label": label, "seconds": made.seconds, "noise": made.sigma, "removed": removed,
            **_scores(made.image, clean, peak),
        })  # fmt: skip
        if not takes and not removed:
            unchanged.append(label)
            continue
        for doubt in bridge.find_doubts(job, estimator, pixels, removed):
            doubts.setdefault(doubt, []).append(label)
    words = bridge.words_of(model, pixels, span)
    questions = question_unchanged(unchanged, words.level)
    shown = pictures.ranges_of(pixels, 0)["all"]
    return pictures.finite({
        "panels": panels, "noisy": _scores(pixels, clean, peak), "clean": clean is not None,
        "noise": bridge.noise_details(model, words, span, shown), "seconds": reporter.seconds,
        "warnings": bridge.warning_details(_about(doubts, len(panels)) + questions),
    })  # fmt: skip


def _naming(label: str, reporter: Reporter) -> Progress:
    """Return a callback that names the method, but not its step."""
    return lambda fraction, _: reporter.progress(fraction, label)


def _about(doubts: Mapping[JobWarning, Sequence[str]], count: int) -> list[JobWarning]:
    """Return each doubt once, with the methods that it is about unless that is all of them."""
    return [
        doubt
        if len(labels) == count
        else replace(doubt, message=f"{' and '.join(labels)}: {doubt.message}")
        for doubt, labels in doubts.items()
    ]


def report(
    given: dict[str, Any], folder: Path, result: Path, reference: Path | None, kind: str,
    reporter: Reporter,
) -> Path:  # fmt: skip
    """Write what is shown as one page that needs no server."""
    from ..reports.compare import Comparison, Result, compare_page

    details, info = given["details"], given["info"]
    at = given["at"] or info["middle"]
    pixels, clean = _slices(folder, reference if kind == "compare" else None, at)
    results = [
        Result(
            panel["label"],
            pictures.take_slice(result / f"result-{number}.npy", at, info["channels"]),
            panel.get("seconds", details["seconds"]),
            panel.get("noise", details["noise"]["words"]),
        )
        for number, panel in enumerate(details["panels"])
    ]
    facts = {
        "Picture": f"{given['name']}, {info['description']}",
        "Noise": details["noise"]["words"],
        "Version": f"symsmooth {__version__}",
    }
    if at:
        axes = zip(info["others"], at, strict=True)
        facts["Slice"] = ", ".join(f"{each['name'].lower()} {i + 1}" for each, i in axes)
    # Of a mosaic the developed picture is shown, in which noise has another level.
    level = details["panels"][0]["removed"] if info["mosaic"] else details["noise"]["level"]
    found = Comparison(
        given["name"], pixels, level, info["span"] or 1.0, results, clean, facts,
        timing="this run on this machine",
    )  # fmt: skip
    what = "compared" if len(results) > 1 else "denoised"
    page = result / f"{Path(given['name']).stem}-{what}.html"
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


# --- what is a few lines ----------------------------------------------------------------------


def draw(wanted: dict[str, Any], reporter: Reporter) -> bytes:
    """Draw a slice, or a part of one, as a PNG file."""
    return pictures.draw_view(wanted)


def develop(path: Path, reporter: Reporter) -> Path:
    """Write the developed picture of a DNG of ours beside it, as the command line would."""
    target = path.with_suffix(".tif")
    write_images(target, [raw.develop(read_images(path)[0])])
    return target


def blend(
    noisy: Sequence[Path], denoised: Sequence[Path], strength: float, colour: float, max_bytes: int,
    reporter: Reporter,
) -> list[Path]:  # fmt: skip
    """Write the blend of each file with its result beside that, as the command line would."""
    targets = [path.with_name(name_with(path, "blend")) for path in denoised]
    own = None if colour == strength else colour
    for files in zip(noisy, denoised, targets, strict=True):
        with limit_decoded_size(2 * max_bytes):
            blend_files(BlendJob(*files, strength, own))
    return targets


def inspect_noise(path: Path, reporter: Reporter) -> str:
    """Return what a noise model says, or refuse what is none."""
    return str(load_noise(path))


def warm_up(workers: int | None, reporter: Reporter) -> None:
    """Load what inspecting and denoising a picture take."""
    noise = np.random.default_rng(0).normal(100.0, 20.0, (_WARM_UP, _WARM_UP))
    METHODS[DEFAULT](noise, workers=workers)
