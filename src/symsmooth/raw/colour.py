"""The colours of a mosaic, taken off it: what is left is a grey picture at full resolution.

Colour changes slowly, light does not.  A pilot is denoised in small: the four planes of a Bayer mosaic as
channels of a picture of half the size, or the mean of each colour in cells of an X-Trans one.  From it each
colour is blurred by a few pixels; how far a pixel's own colour lies from the mean of the three is what its
colour adds.  Without that, neighbours of different colours can be compared, and a patch of any place with
one of any other.
"""

from __future__ import annotations

import numpy as np
import scipy.ndimage

from ..core.image import Array, Float
from ..core.parallel import Pool
from ..gsfw.observation import Observation
from ..gsfw.presets import PRESETS, Quality
from ..gsfw.stages import run_gsfw
from .mosaic import tiled

_BLUR = 1.5  # pixels; 0.8: -.10 dB, 1.1: -.02, 2.5: -.08, 4: -.2 (three pictures, peaks 20 to 500)
_REACH = 6  # pixels that the blur goes
_SEEN = np.float32(1e-6)  # weight of a colour that is nowhere near, as in a mosaic of one pixel
_STRIP = 240  # rows that are blurred at a time


def find_colour(
    stabilised: Float,
    pattern: Array,
    strength: float,
    quality: Quality,
    rng: np.random.Generator,
    pool: Pool,
) -> Float:
    """Return what colour adds to each pixel of a mosaic whose noise has variance 1, (y, x)."""
    pilot = _denoise_planes(stabilised, pattern, strength, quality, rng, pool)
    height, width = stabilised.shape
    colour = np.empty_like(stabilised)
    rows = pattern.shape[0]
    strips = range(0, height, _STRIP // rows * rows)

    def blur(start: int) -> None:
        stop = min(start + strips.step, height)
        low, high = max(start - _REACH * rows, 0), min(stop + _REACH, height)
        colours = tiled(pattern, (high - low, width))
        found = _own_colour(pilot[low:high], colours)
        colour[start:stop] = found[start - low : stop - low]

    with pool:
        for _ in pool.map(blur, strips, "colour"):
            pass
    return colour


def _own_colour(pilot: Float, colours: Array) -> Float:
    """Return the blurred own colour of each pixel less the mean of the three."""
    own, mean = np.zeros_like(pilot), np.zeros_like(pilot)
    for colour in range(3):
        seen = (colours == colour).astype(np.float32)
        smooth = _blur(pilot * seen) / np.maximum(_blur(seen), _SEEN)
        mean += smooth / np.float32(3)
        own += smooth * seen
    return own - mean


def _blur(values: Float) -> Float:
    return scipy.ndimage.gaussian_filter(values, _BLUR, mode="nearest", radius=_REACH)


def _denoise_planes(
    stabilised: Float,
    pattern: Array,
    strength: float,
    quality: Quality,
    rng: np.random.Generator,
    pool: Pool,
) -> Float:
    """Return a mosaic denoised in small: sharp in colour, not in detail."""
    cell = _cell(pattern)
    shape = stabilised.shape
    padding = [(0, -n % c) for n, c in zip(shape, cell, strict=True)]
    whole = np.pad(stabilised, padding, mode="reflect" if min(shape) > max(cell) else "edge")
    groups = _groups(tiled(pattern.astype(np.uint8), whole.shape), cell)
    planes, weights = _gather(whole, groups, cell)
    noisy = planes * np.sqrt(weights)
    small = run_gsfw(Observation.of(noisy, strength), PRESETS[quality], rng, pool).image
    small = small / np.sqrt(weights)
    full = np.empty_like(whole)
    for y, x in np.ndindex(*cell):
        site = slice(y, None, cell[0]), slice(x, None, cell[1])
        full[site] = np.take_along_axis(small, groups[site][..., np.newaxis], -1)[..., 0]
    return full[: shape[0], : shape[1]]


def _cell(pattern: Array) -> tuple[int, int]:
    """Return the cells that become one pixel: three by three of X-Trans, which has all colours in each."""
    height, width = pattern.shape
    if height % 2 == 0 and width % 2 == 0 and height > 2:
        halves = pattern.reshape(2, height // 2, 2, width // 2).swapaxes(1, 2).reshape(4, -1)
        if all(set(half) == {0, 1, 2} for half in halves):
            return height // 2, width // 2
    return height, width


def _groups(colours: Array, cell: tuple[int, int]) -> Array:
    """Return the channel of the small picture that a pixel goes to: place in a Bayer cell, or colour."""
    if cell == (2, 2):
        return tiled(np.arange(4, dtype=np.uint8).reshape(2, 2), colours.shape)
    return colours


def _gather(values: Float, groups: Array, cell: tuple[int, int]) -> tuple[Float, Float]:
    """Return the mean of each group in each cell (y, x, groups), and how many pixels it has."""
    height, width = (n // c for n, c in zip(values.shape, cell, strict=True))
    n_groups = int(groups.max()) + 1
    total = np.zeros((height, width, n_groups), np.float32)
    count = np.zeros((height, width, n_groups), np.float32)
    for y, x in np.ndindex(*cell):
        site = slice(y, None, cell[0]), slice(x, None, cell[1])
        for group in range(n_groups):
            own = groups[site] == group
            total[..., group] += np.where(own, values[site], 0)
            count[..., group] += own
    return total / count, count
