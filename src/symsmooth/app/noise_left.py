"""Noise that is left on flat ground: said in one line, with a remedy that was tried on a part."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.image import Picture, open_image
from ..core.multiscale import halve
from ..noise import Noise, resolve
from ..noise.check import Check, check_result
from .messages import JobWarning

Denoise = Callable[[Any, Noise, float], Any]  # of pixels, their noise, and a strength

_SEEN = 0.004  # of the range: about one grey level of 255, the least that people see on flat ground
# Pixels a side of the ground that is measured, and of the part that is tried.
_SIDE, _PART = 48, 256
_LOOKED_AT = 2**21  # pixels among which the ground is looked for: of more, means are
_STRONGER = 2.0
_HELPS = 0.7  # of what was left before


def warn_of_noise_left(
    check: Check | None, picture: Picture, model: Noise, span: float, denoise: Denoise
) -> list[JobWarning]:
    """Return a warning if much of the noise (``model``) is left, with what helps this picture.

    Pixels can be ``span`` apart; ``denoise`` denoises a part of the image, by which remedies are tried.
    """
    if check is None or not check.leaves_much or check.fine < _SEEN * span:
        return []
    text = f"much of the noise may be left: {check.left:.0%} of the finest detail on flat ground is"
    if len(picture.spatial) == 2 and min(picture.spatial) >= 2 * _SIDE:
        remedy = _try(check, picture, model, denoise)
        if remedy is not None:
            return [JobWarning("noise-left", f"{text}; {remedy[0]}", remedy[1])]
    return [
        JobWarning("noise-left", f"{text}; if you see it, {{region}} measures it on flat ground")
    ]


def _try(check: Check, picture: Picture, model: Noise, denoise: Denoise) -> tuple[str, str] | None:
    """Return the first remedy that leaves less and blurs no outline, and the value that goes with it."""
    x, y = flattest(picture)
    rows, columns = picture.spatial
    top, start = (
        min(max(at + _SIDE // 2 - _PART // 2, 0), max(size - _PART, 0))
        for at, size in ((y, rows), (x, columns))
    )
    axis = None if picture.channel_axis is None else -1
    part = picture.original[top : top + _PART, start : start + _PART]
    part = np.ascontiguousarray(part[..., 0] if axis is None else part)
    looked_at = open_image(part, axis)

    def leaves(noise: Noise, strength: float) -> float:
        found = check_result(looked_at, denoise(part, noise, strength), noise)
        return found.left if found is not None and not found.blurs else 1.0

    measured = resolve(picture, region=(x, y, _SIDE, _SIDE))
    tried = (
        ("{this-region} measures it on flat ground", f"{x},{y},{_SIDE},{_SIDE}", measured, 1.0),
        ("{stronger} takes more", f"{_STRONGER:g}", model, _STRONGER),
    )
    for words, value, noise, strength in tried:
        if not noise.fits(looked_at.noisy.shape):
            continue
        left = leaves(noise, strength)
        if left < _HELPS * check.left:
            return f"{words}: tried on a part, it leaves {left:.0%}", value
    return None


def flattest(picture: Picture) -> tuple[int, int]:
    """Return x and y of the square where the smoothed picture changes least, constant ground apart.

    A large picture is looked at in a smaller size.
    """
    import scipy.ndimage

    pixels = picture.noisy.mean(axis=-1, dtype=np.float64)
    low, high = picture.noisy.min(), picture.noisy.max()
    ends = ((picture.noisy == low) | (picture.noisy == high)).any(axis=-1)
    out = np.zeros(pixels.shape, bool)
    for each in (picture.mask, picture.constant):
        if each is not None:
            out |= each
    n_times = 1  # as small
    while pixels.size > _LOOKED_AT and n_times < _SIDE // 8:
        pixels, ends, out = (halve(each[..., np.newaxis])[..., 0] for each in (pixels, ends, out))
        n_times *= 2
    smooth = scipy.ndimage.gaussian_filter(pixels, 3.0 / n_times)
    steep = np.hypot(scipy.ndimage.sobel(smooth, 0), scipy.ndimage.sobel(smooth, 1))
    steep[out > 0] = steep.max() + 1.0
    steep += steep.max() * ends
    side = _SIDE // n_times
    means = scipy.ndimage.uniform_filter(steep, side)
    half = side // 2
    inside = means[half : len(means) - half + 1, half : means.shape[1] - half + 1]
    y, x = np.unravel_index(int(inside.argmin()), inside.shape)
    rows, columns = picture.spatial
    return min(int(x) * n_times, columns - _SIDE), min(int(y) * n_times, rows - _SIDE)
