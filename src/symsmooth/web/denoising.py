"""Denoising a file: the part on the screen first, then all of it, with the bits of the command line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..core.parallel import part_of
from ..io import ImageFile, limit_decoded_size
from ..io.stacks import cut
from . import bridge, drawing, mosaics
from .catalogue import result_of
from .settings import Settings
from .worker import Reporter

PART = 99  # the number of the panel that is a part of the picture
_SIDE = 448  # of the part that is done first
_MUCH = 0.6  # of the picture: then the part is not done first


def denoise(
    path: Path, given: dict[str, Any], folder: Path, asked: dict[str, Any],
    workers: int | None, max_bytes: int, reporter: Reporter,
) -> dict[str, Any]:  # fmt: skip
    """Denoise the part on the screen and show it, then the whole file, into a folder."""
    settings = Settings(**asked)
    if mosaics.is_mosaic(path):
        return mosaics.denoise(path, given, folder, settings, workers, max_bytes, reporter)
    reporter.progress(0.0, "reading")
    with limit_decoded_size(max_bytes):
        image = bridge.read_file(path)[0]
    stack = cut(image, settings.third)  # type: ignore[arg-type]
    job = bridge.make_job(settings, given["sigma"], workers)
    reporter.progress(0.02, "finding the noise")
    job_with_noise, model = bridge.find_noise(job, image, stack, given["at"])
    if not stack.third:
        _denoise_part(image, job_with_noise, model, given, folder, reporter)
    ending = ".nii.gz" if path.name.lower().endswith(".nii.gz") else path.suffix
    target = folder / f"{path.name[: len(path.name) - len(ending)]}-denoised{ending}"
    with limit_decoded_size(max_bytes):
        outcome = bridge.denoise_file(
            path, target, job_with_noise, part_of(reporter.progress, 0.1, 0.95)
        )
    reporter.progress(0.96, "drawing")
    del image
    with limit_decoded_size(2 * max_bytes):
        noisy, denoised = bridge.read_file(path)[0], bridge.read_file(target)[0]
    shown, others = drawing.arrange(denoised)
    before = drawing.arrange(noisy)[0]
    np.save(folder / "result-0.npy", shown)
    ranges = drawing.ranges_of(before, len(others))
    noise = bridge.noise_details(
        model, noisy, ranges["all"],
        given=settings.noise == "white" and settings.level is not None,
        assumed=not job.method.takes_noise,
    )  # fmt: skip
    reporter.progress(0.99, "drawing")
    return drawing.finite({
        "files": [target.name],
        "panels": [{"label": result_of(settings), "removed": drawing.removed(before, shown)}],
        **outcome,
        "noise": noise,
        "histogram": drawing.histogram(drawing.middle_of(shown, len(others)), ranges["all"]),
    })  # fmt: skip


def _denoise_part(
    image: ImageFile, job: Any, model: Any, given: dict[str, Any], folder: Path, reporter: Reporter
) -> None:
    """Denoise the part on the screen, if that is much less than a slice, and show it."""
    flat = cut(image, "none")
    piece = image.pixels[flat.pieces[bridge.slice_number(image, flat, given["at"])]]
    if flat.channel_axis is not None:
        piece = np.moveaxis(piece, flat.channel_axis, -1)
    box = visible_part(given["visible"], piece.shape[:2])
    if box is None or not np.isfinite(piece).any():
        return
    x, y, width, height = box
    part = piece[y : y + height, x : x + width]
    if not model.fits(part.shape if part.ndim == 3 else (*part.shape, 1)):
        return
    axis = -1 if part.ndim == 3 else None
    progress = bridge.without_steps(part_of(reporter.progress, 0.03, 0.09))
    done = bridge.denoise_pixels(job, model, part, axis, progress)
    if done.ndim == 3 and done.shape[-1] == 1:
        done = done[..., 0]
    np.save(folder / f"result-{PART}.npy", done)
    news = {"box": [x, y, width, height], "at": given["at"], "panel": PART}
    reporter.send("part", news)


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
