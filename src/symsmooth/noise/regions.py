"""Regions of a picture that are nothing but noise, told by the shape of their statistics.

A picture is cut into 8 x 8 blocks, their cosine transforms are squared and averaged over rings of
frequency, and these over regions of 20 pixels: what lies between the joints of tiles is seen, too.  A
region is taken for noise by the *shape* of its statistics, never by its energy, so that nothing is selected
downwards: horizontal and vertical frequencies have like energies, and its blocks differ among each other
only as much as those of Gaussian noise do.  Means are taken, no medians: a JPEG's dead zones are a part of
its noise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.fft
import scipy.ndimage

from ..core.channels import decorrelate, mix
from ..core.image import Array, Float, Picture
from .level import clipped_values, has_any

SIDE = 8  # of the DCT blocks, pixels
_STRIDE = 4  # between blocks, pixels
# Blocks across a region: 4 * 4 + 4 = 20 pixels.  Regions of 32 pixels cost 0.24 dB on cameras' JPEGs, most
# of it on tiled walls; elsewhere they are no better.
_ACROSS = 4
_STEP = 2  # blocks between regions: 8 pixels
_PLACE = 3  # blocks across a place: 16 pixels
LEVEL_RINGS = slice(1, 4)  # whose mean energy is called the level
_LARGEST = 512 * 768  # pixels that are looked at; of a larger picture sixteen windows
_RING_EDGES = (0.5, 1.2, 2.1, 3.1, 4.3, 5.7, 7.2, 20.0)  # radii of DCT frequencies
# Not exceeded by noise: |log2| of horizontal over vertical energy in rings 1-2 and in rings 3-4; squared
# coefficient of variation of the blocks' energies in rings 1-2.  Coarse noise has .5, .3 and .2 typically,
# and stays below 1.2, .8 and .35 in nine of ten regions.
_LIMITS = np.array([1.2, 1.1, 0.42], np.float32)
_TINY = 1e-3  # of the square of a rounding step: energies below are no evidence of anything
_MISSING = 0.1  # share of missing pixels in a region that is used

_INDEX = np.arange(SIDE)
RADIUS = np.hypot(_INDEX[:, None], _INDEX)
RING = np.digitize(RADIUS, _RING_EDGES) - 1  # of each frequency; -1: frequency zero
N_RINGS = len(_RING_EDGES) - 1
_BASIS = scipy.fft.dct(np.eye(SIDE), axis=0, norm="ortho").astype(np.float32)


def _averages(masks: list[Array]) -> Float:
    """Return (64, n): columns that average the squares of coefficients over masks."""
    return np.stack([mask.ravel() / mask.sum() for mask in masks], axis=1).astype(np.float32)


_IN_RINGS = _averages([np.equal(RING, k) for k in range(N_RINGS)])
_LOW, _HIGH = np.isin(RING, (1, 2)), np.isin(RING, (3, 4))
_RIGHT, _DOWN = _INDEX[:, None] < _INDEX, _INDEX[:, None] > _INDEX
_IN_SHAPES = _averages([_LOW & _RIGHT, _LOW & _DOWN, _HIGH & _RIGHT, _HIGH & _DOWN, _LOW])


@dataclass(frozen=True)
class Regions:
    """What was measured in regions of 20 pixels.

    Attributes
    ----------
    energy : ndarray (regions, channels, rings)
        Mean squares of the DCT coefficients.
    brightness : ndarray (regions,)
        Mean of the first channel.
    oddness : ndarray (regions,)
        Below 1 where the first channel looks like nothing but noise.
    clipped : ndarray (regions,)
        Share of the pixels that are cut off at black or white in any channel.
    places : ndarray (places,)
        The level (:data:`LEVEL_RINGS`) of the first channel at all places of 16 pixels.
    """

    energy: Float
    brightness: Float
    oddness: Float
    clipped: Float
    places: Float

    def __len__(self) -> int:
        return len(self.brightness)


def measure(picture: Picture, transform: Float) -> Regions:
    """Measure the regions of a picture (a sample of them if it is large), channels transformed."""
    tiny = np.float32(_TINY * picture.step**2 + 1e-14)
    values = [clipped_values(each) for each in np.moveaxis(picture.noisy, -1, 0)]
    found = [
        _measure_plane(mix(plane, transform), valid, _any_clipped(plane, values), tiny)
        for plane, valid in _planes(picture)
    ]
    if not found:
        n_channels = picture.noisy.shape[-1]
        nothing = np.zeros(0, np.float32)
        energy = np.zeros((0, n_channels, N_RINGS), np.float32)
        return Regions(energy, nothing, nothing, nothing, nothing)
    return Regions(
        np.concatenate([r.energy for r in found]),
        np.concatenate([r.brightness for r in found]),
        np.concatenate([r.oddness for r in found]),
        np.concatenate([r.clipped for r in found]),
        np.concatenate([r.places for r in found]),
    )


def _any_clipped(plane: Float, values: list[list[np.float32]]) -> Array | None:
    """Return where any channel of (y, x, channels) is cut off, at values of its own; None if nowhere."""
    channels = zip(np.moveaxis(plane, -1, 0), values, strict=True)
    found = [has_any(channel, own) for channel, own in channels if own]
    return np.logical_or.reduce(found) if found else None


def _measure_plane(
    plane: Float, valid: Array | None, clipped: Array | None, tiny: np.float32
) -> Regions:
    """Measure the regions of (y, x, channels); energies below ``tiny`` are as good as none."""
    blocks = dct_blocks(plane, _STRIDE)
    brightness = blocks[..., 0, 0, 0] / np.float32(SIDE)
    squares = np.square(blocks, out=blocks).reshape(*blocks.shape[:3], SIDE * SIDE)
    shapes = squares[:, :, 0] @ _IN_SHAPES
    spread = shapes[..., 4:] ** 2
    own = _over_regions(np.concatenate([shapes, spread, brightness[..., None]], axis=-1))
    ways = own[:, :4] + tiny
    uneven = np.abs(np.log2(ways[:, 0::2] / ways[:, 1::2]))
    variation = own[:, 5:6] / (own[:, 4:5] + tiny) ** 2 - 1
    oddness = (np.concatenate([uneven, variation], axis=1) / _LIMITS).max(axis=1)
    rings = squares @ _IN_RINGS
    level = rings[:, :, 0, LEVEL_RINGS].mean(axis=-1)
    places = scipy.ndimage.uniform_filter(level, _PLACE, mode="nearest")
    cut_off = np.zeros_like(oddness)
    if clipped is not None:
        cut_off = _over_regions(_windows_mean(clipped)[..., None])[:, 0]
    regions = Regions(_over_regions(rings), own[:, 6], oddness, cut_off, places.ravel())
    if valid is None:
        return regions
    missing = _windows_mean(~valid)
    use = _over_regions(missing[..., None])[:, 0] <= _MISSING
    calm = scipy.ndimage.uniform_filter(missing, _PLACE, mode="nearest") <= _MISSING
    return Regions(
        regions.energy[use],
        regions.brightness[use],
        regions.oddness[use],
        regions.clipped[use],
        places[calm],
    )


def dct_blocks(plane: Float, stride: int) -> Float:
    """Return the DCT of all 8 x 8 blocks at every stride-th position: (y, x, channels, 8, 8)."""
    windows = np.lib.stride_tricks.sliding_window_view(plane, (SIDE, SIDE), axis=(0, 1))
    return _BASIS @ windows[::stride, ::stride] @ _BASIS.T


def _windows_mean(mask: Array) -> Float:
    """Return the share of True in each block."""
    windows = np.lib.stride_tricks.sliding_window_view(mask, (SIDE, SIDE), axis=(0, 1))
    return windows[::_STRIDE, ::_STRIDE].mean(axis=(-2, -1), dtype=np.float32)


def _over_regions(values: Float) -> Float:
    """Return means over regions of blocks: (y, x, ...) -> (regions, ...)."""
    for axis in (0, 1):
        across = min(_ACROSS, values.shape[axis])
        total = np.cumsum(values, axis=axis, dtype=np.float64)
        total = np.concatenate([np.zeros_like(total.take([0], axis)), total], axis)
        last = values.shape[axis] - across
        starts = np.arange(0, last + 1, _STEP)
        values = (total.take(starts + across, axis) - total.take(starts, axis)) / across
    return values.reshape(-1, *values.shape[2:]).astype(np.float32)


def _planes(picture: Picture) -> list[tuple[Float, Array | None]]:
    """Return (y, x, channels) planes and their valid pixels: all, or sixteen windows of a large picture."""
    slices = picture.noisy.reshape(-1, *picture.noisy.shape[-3:])
    valid = None if picture.mask is None else ~picture.mask.reshape(slices.shape[:-1])
    chosen = range(0, len(slices), -(-len(slices) // 4))
    height, width = slices.shape[1:3]
    if min(height, width) < SIDE:
        return []
    side = max(int((_LARGEST / 16 / len(chosen)) ** 0.5), 4 * SIDE)
    if len(chosen) * height * width <= _LARGEST:
        side = max(height, width)
    boxes = [
        (z, slice(y, y + side), slice(x, x + side))
        for z in chosen
        for y in _starts(height, side)
        for x in _starts(width, side)
    ]
    return [(slices[box], None if valid is None else valid[box]) for box in boxes]


def _starts(size: int, side: int) -> list[int]:
    """Return where windows begin: one that holds all, or four spread evenly."""
    if size <= side:
        return [0]
    return [round(at) for at in np.linspace(0, size - side, 4)]


def transform_of(picture: Picture) -> Float:
    """Return the channels in which noise is looked at: opponent colours of three, else as they are."""
    n_channels = picture.noisy.shape[-1]
    if n_channels == 3:
        return decorrelate(picture.noisy, 0.0)
    return np.eye(n_channels, dtype=np.float32)
