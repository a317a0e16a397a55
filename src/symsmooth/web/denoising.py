"""Denoising: the part on the screen first, then all of it, with the bits of the command line."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..core.image import Array
from ..io import limit_decoded_size
from ..io.formats import is_video_name
from . import arrays, bridge, drawing
from .sessions import NOISE, denoised_name
from .settings import Settings
from .worker import Reporter

PART = 99  # the number of the panel that is a part of the picture
_SIDE = 448  # of the part that is done first
_LARGE = 2**22  # pixels from which on it covers the screen, because the whole takes long ...
_LARGE_SIDE = 1280  # ... up to this side, as a preview: 2 s of one core for a megapixel
_MUCH = 0.6  # of the picture: then the part is not done first
_DONE = 0.95  # of the progress: then the result is drawn


def denoise(
    path: Path, given: dict[str, Any], folder: Path, asked: dict[str, Any],
    workers: int | None, max_bytes: int, reporter: Reporter,
) -> dict[str, Any]:  # fmt: skip
    """Denoise a file, or frames, into a folder; what is on the screen is shown before the rest is done."""
    settings, info = Settings(**asked), given["info"]
    sources: list[Path] = given["frames"] or [path]
    kind = arrays.kind_in(info, sources)
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
    after = arrays.write_view(targets, kind, folder / "result-0.npy", 2 * max_bytes)
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
    return drawing.finite({
        "files": [str(target.relative_to(folder)) for target in targets],
        "panels": [{"label": settings.result, "removed": drawing.removed(before, after)}],
        **bridge.outcome_details(outcome),
        "noise": bridge.noise_details(
            found[0], outcome.noise, span, (0.0, span) if kind == "raw" else shown
        ),
        "histogram": drawing.histogram(drawing.middle_of(after, len(info["others"])), shown),
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
    if kind in ("video", "series"):
        bridge.check_frames(settings)
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
        return [folder / f"frame-{n}" / denoised_name(path) for n, path in enumerate(sources)]
    ending = ".dng" if kind == "raw" else None
    if kind == "video" and not is_video_name(sources[0]):  # its own container is not written
        ending = ".mkv"
    return [folder / denoised_name(sources[0], ending)]


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

    Examples
    --------
    >>> visible_part((0, 750, 500, 250), (1000, 2000))
    (26, 750, 448, 250)
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
