"""Videos, and pictures that are the frames of one series: inspected, denoised, shown frame by frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..core.image import Array
from ..core.parallel import Progress, part_of
from ..io import FileError, limit_decoded_size
from ..io.base import naming_errors
from ..io.formats import is_video_name, module_of, open_file
from . import bridge, drawing, first_look, noise_files
from .catalogue import BY_NAME, result_of
from .pictures import VIEW, denoised_name
from .settings import Settings
from .worker import Reporter

_ENDING = ".mkv"  # of videos whose own container is not written
_RATE = 25.0  # frames a second where a video does not say so


def is_video(path: Path) -> bool:
    """Whether a file is a video."""
    with open_file(path) as file:
        return file.format == "VIDEO"


def inspect_video(path: Path, folder: Path, max_bytes: int) -> dict[str, Any]:
    """Inspect a video: what it is, the noise of its frames; write all frames to be shown."""
    view, facts = _unpack(path, folder / VIEW, max_bytes)
    info = _inspect([path], view, max_bytes)
    return {"path": path, "info": {**info, **facts, "thirds": ["time", "none"], "blends": False}}


def inspect_series(
    paths: Sequence[Path], folder: Path, max_bytes: int, reporter: Reporter
) -> dict[str, Any]:
    """Inspect pictures that are frames of one series, in this order; write all to be shown."""
    view = _joined(paths, folder / VIEW, max_bytes)
    info = _inspect(paths, view, max_bytes)
    return {"path": paths[0], "info": {**info, "thirds": ["time"], "blends": True}}


def _inspect(paths: Sequence[Path], view: Array, max_bytes: int) -> dict[str, Any]:
    """Return what was found in frames."""
    job = bridge.make_job(Settings(third="time"), 0.0, None)
    with limit_decoded_size(max_bytes):
        image, model, words = bridge.noise_of_frames(paths, job)
    span, ranges = bridge.span_of(image), drawing.ranges_of(view, 1)
    middle = drawing.middle_of(view, 1)
    return drawing.finite({
        "description": bridge.describe(image),
        "format": image.format,
        "dtype": str(view.dtype),
        "width": middle.shape[1],
        "height": middle.shape[0],
        "channels": middle.shape[2] if middle.ndim == 3 else 1,
        "apart": False,
        "tints": [],
        "others": [{"letter": "T", "name": "Time", "size": len(view)}],
        "middle": [len(view) // 2],
        "images": 1,
        "span": span,
        "mosaic": "",
        "ranges": ranges,
        "histogram": drawing.histogram(middle, ranges["all"]),
        "noise": {**bridge.model_details(model, words, span, ranges["all"]), "sigma": words.level},
    })  # fmt: skip


def denoise(
    path: Path, given: dict[str, Any], folder: Path, settings: Settings, workers: int | None,
    max_bytes: int, reporter: Reporter,
) -> dict[str, Any]:  # fmt: skip
    """Denoise frames, the one on the screen first, with the bits of the command line."""
    sources: list[Path] = given.get("frames") or [path]
    before = np.load(given["view"], mmap_mode="r", allow_pickle=False)
    job = _job(settings, given, workers, is_video=len(sources) == 1)
    frame = before[given["at"][0] if _is_there(given["at"], before) else len(before) // 2]
    frame = frame.astype(
        given.get("stored", frame.dtype)
    )  # noise is known by the dtype it was found in
    axis = -1 if frame.ndim == 3 else None
    reporter.progress(0.0, "finding the noise")
    if settings.box is not None and job.noise_region is not None:
        job, _ = bridge.with_noise_of_box(job, _upright_box(frame, settings.box, given), axis)
    with limit_decoded_size(max_bytes):
        image, model, words = bridge.noise_of_frames(sources, job)
        first_look.show(frame, axis, job, model, given, folder, reporter, of_series=True)
        targets = _targets(sources, folder)
        progress = part_of(_from_noise_on(reporter), 0.1, 0.95)
        assert progress is not None
        outcome = bridge.denoise_frames(sources, targets, job, progress)
    reporter.progress(0.96, "drawing")
    shown = folder / "result-0.npy"
    if len(sources) == 1:
        after = _unpack(targets[0], shown, 2 * max_bytes)[0]
    else:
        after = _joined(targets, shown, 2 * max_bytes)
    span, ranges = bridge.span_of(image), drawing.ranges_of(before, 1)
    noise_files.keep(job.options["noise"] if job.has_model else model, folder)
    reporter.progress(0.99, "drawing")
    return drawing.finite({
        "files": [str(target.relative_to(folder)) for target in targets],
        "panels": [{"label": result_of(settings), "removed": drawing.removed(before, after)}],
        **outcome,
        "noise": bridge.model_details(model, words, span, ranges["all"]),
        "histogram": drawing.histogram(drawing.middle_of(after, 1), ranges["all"]),
    })  # fmt: skip


def _job(settings: Settings, given: dict[str, Any], workers: int | None, *, is_video: bool) -> Any:
    """Return what is done to frames, or say what cannot be."""
    third = settings.third if is_video else "time"
    job = bridge.make_job(replace(settings, third=third), given["sigma"], workers)
    bridge.check_frames(job, BY_NAME[settings.method].title)
    return job


def _is_there(at: Sequence[int], view: Array) -> bool:
    return len(at) == 1 and at[0] < len(view)


def _upright_box(frame: Array, box: Sequence[int], given: dict[str, Any]) -> Array:
    """Return a part of a frame that was marked as it is shown, turned back to how it is stored."""
    x, y, width, height = box
    return np.rot90(frame[y : y + height, x : x + width], -given.get("turns", 0))


def _targets(sources: Sequence[Path], folder: Path) -> list[Path]:
    """Return where results go: one file, or one for each frame, which may have the same names."""
    if len(sources) > 1:
        return [folder / f"frame-{n}" / denoised_name(path) for n, path in enumerate(sources)]
    ending = None if is_video_name(sources[0]) else _ENDING
    return [folder / denoised_name(sources[0], ending)]


def _from_noise_on(reporter: Reporter) -> Progress:
    """Return a callback that knows what follows the noise: frames of a series come out in blocks."""

    def report(fraction: float, what: str) -> None:
        reporter.progress(fraction, "noise and first frames" if what == "noise" else what)

    return report


def _unpack(path: Path, target: Path, max_bytes: int) -> tuple[Array, dict[str, Any]]:
    """Write all frames of a video, upright, as one array; return it, and how it is to be played."""
    with open_file(path) as file, naming_errors(path):
        video = module_of("VIDEO").Video(file)
        video.survey(decode=False)
        largest, turns, n_frames = video.pixels.largest, video.rotation, len(video.times)
        dtype = np.dtype(np.uint8 if video.pixels.depth == 8 else np.uint16)
        height, width = video.shape[:2]
        _check_size(n_frames, n_frames * int(np.prod(video.shape)) * dtype.itemsize, max_bytes)
        plane = (width, height) if turns % 2 else (height, width)
        shape = (n_frames, *plane, *video.shape[2:])
        view = np.lib.format.open_memmap(target, "w+", dtype, shape)
        for number, frame in enumerate(video.frames()):
            view[number] = np.rot90(np.rint(np.clip(frame.pixels, 0, largest)), turns)
            stored = str(frame.pixels.dtype)  # has room for what lies below black
        rate = video.stream.average_rate or video.stream.guessed_rate or _RATE
    view.flush()
    return view, {"rate": float(rate), "turns": turns, "stored": stored}


def _joined(paths: Sequence[Path], target: Path, max_bytes: int) -> Array:
    """Write pictures of one kind as one array; return it."""
    view: Array | None = None
    for number, path in enumerate(paths):
        with limit_decoded_size(max_bytes):
            pixels, _ = drawing.arrange(bridge.read_file(path)[0])
        if view is None:
            _check_size(len(paths), len(paths) * pixels.nbytes, max_bytes)
            shape = (len(paths), *pixels.shape)
            view = np.lib.format.open_memmap(target, "w+", pixels.dtype, shape)
        if pixels.shape != view.shape[1:] or pixels.dtype != view.dtype:
            raise FileError(f"{path}: is not like the frames before it; a series has one size")
        view[number] = pixels
    assert view is not None
    return view


def _check_size(n_frames: int, n_bytes: int, max_bytes: int) -> None:
    """Refuse what would not fit on the disk, or be done within an hour."""
    if n_bytes > max_bytes:
        raise FileError(
            f"has {n_frames} frames, {n_bytes / 2**20:.0f} MB of pixels, and {max_bytes / 2**20:.0f} MB "
            "are allowed here; cut it, or give it to the command line: symsmooth denoise"
        )
