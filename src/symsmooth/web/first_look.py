"""The part on the screen, denoised and shown before the whole is done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..core.image import Array
from ..core.parallel import part_of
from . import bridge
from .worker import Reporter

PART = 99  # the number of the panel that is a part of the picture
_SIDE = 448  # of the part that is done first
_LARGE = (
    2**22
)  # pixels from which on the first look covers the screen, because the whole takes long ...
_LARGE_SIDE = (
    1280  # ... up to this side, at the quality of a preview: 2 s of one core for a megapixel
)
_MUCH = 0.6  # of the picture: then the part is not done first


def show(
    piece: Array, axis: int | None, job: Any, model: Any, given: dict[str, Any], folder: Path,
    reporter: Reporter, *, of_series: bool = False,
) -> None:  # fmt: skip
    """Denoise the part of a slice that is on the screen, if that is much less than all of it.

    A frame of a series is little of it, however much of the frame is visible.
    """
    if axis is not None:
        piece = np.moveaxis(piece, axis, -1)
    large = of_series or piece.shape[0] * piece.shape[1] > _LARGE
    box = visible_part(given["visible"], piece.shape[:2], _LARGE_SIDE if large else _SIDE)
    if box is None and of_series:
        box = (0, 0, piece.shape[1], piece.shape[0])
    if box is None or not np.isfinite(piece).any():
        return
    x, y, width, height = box
    part = piece[y : y + height, x : x + width]
    if not model.fits(part.shape if part.ndim == 3 else (*part.shape, 1)):
        return
    if large and "quality" in job.options:
        job = replace(job, options={**job.options, "quality": "preview"})
    progress = bridge.without_steps(part_of(reporter.progress, 0.03, 0.09), "a first look")
    done = bridge.denoise_pixels(job, model, part, -1 if part.ndim == 3 else None, progress)
    if done.ndim == 3 and done.shape[-1] == 1:
        done = done[..., 0]
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
