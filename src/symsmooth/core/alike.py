"""Which channels show the same things: then outlines of one lie where those of the other do.

Gradients of two channels are multiplied and added up over windows: noise, which is independent from
channel to channel, adds up to nothing, and of the gradients' own energies that of the calmest places is
subtracted.  What is left is a correlation of structures, 1 for what is the same and near 0 (0.05 to 0.15,
measured) for channels that have nothing to do with each other.

Together or apart was measured on channels that share a growing part of their picture (Kodak, sigma 10
and 30, ``benchmarks/channels.py``): apart is better by 0.1 to 0.9 dB at 0.15, together by 0.1 to 1 dB at
0.7, and at 0.5 they are equal.  Three channels are as a rule the colours of a photograph, which heavy
noise makes look less alike than they are; they are taken apart below 0.3 only.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import scipy.ndimage
from numpy.typing import NDArray

Array = NDArray[Any]
Channels = Literal["auto", "together", "apart"]
Groups = tuple[tuple[int, ...], ...]  # of channels that are denoised together

_WIDTH = 2.0  # pixels: outlines are looked for at this scale, where there is less noise than at finer ones
_WINDOW, _CELL = 64, 16  # pixels a side
_MAX_WINDOWS = 100
_CALM = 0.2  # quantile of the cells' energies: that of noise
_ALIKE, _ALIKE_COLOURS = 0.5, 0.3
# Share of a channel's energy that is not noise: pure noise has .2 to .3 by this measure.  Where a channel
# shows nothing, it does not count which others it goes with.
_SHOWS_SOMETHING = 0.35


def group_channels(pixels: Array) -> Groups:
    """Return the channels of (*spatial, channels) in groups that show the same things."""
    n_channels = pixels.shape[-1]
    everything = tuple(range(n_channels))
    if n_channels == 1 or min(pixels.shape[-3:-1]) < _WINDOW // 2:
        return (everything,)
    alike, shown = compare_channels(pixels)
    enough = _ALIKE_COLOURS if n_channels == 3 else _ALIKE
    joined = (alike >= enough) | (np.minimum.outer(shown, shown) < _SHOWS_SOMETHING)
    label = np.arange(n_channels)
    for i, j in zip(*np.nonzero(joined), strict=True):
        label[label == label[j]] = label[i]
    return tuple(
        tuple(int(c) for c in np.flatnonzero(label == own)) for own in dict.fromkeys(label)
    )


def compare_channels(pixels: Array) -> tuple[Array, Array]:
    """Return how alike the structures of channels are, (channels, channels), and how much each shows."""
    height, width = pixels.shape[-3:-1]
    slices = pixels.reshape(-1, *pixels.shape[-3:])
    planes = slices[range(0, len(slices), -(-len(slices) // 4))]
    high, wide = min(_WINDOW, height), min(_WINDOW, width)
    per_axis = max(int((_MAX_WINDOWS / len(planes)) ** 0.5), 1)
    products, energies = [], []
    for plane in planes:
        for y in _starts(height, high, per_axis):
            for x in _starts(width, wide, per_axis):
                slopes = _slopes(plane[y : y + high, x : x + wide])  # (pixels, 2, channels)
                products.append(np.einsum("ndi,ndj->ij", slopes, slopes) / len(slopes))
                energies.append(_cell_energies((slopes**2).sum(axis=1).reshape(high, wide, -1)))
    product, cells = np.array(products), np.concatenate(energies)
    calm, mean = np.quantile(cells, _CALM, axis=0), cells.mean(axis=0)
    own = np.sqrt(np.maximum(np.einsum("wii->wi", product) - calm, 0.0))
    most = np.einsum("wi,wj->ij", own, own)
    alike = np.abs(product).sum(axis=0) / np.maximum(most, 1e-30)
    return alike, 1 - calm / np.maximum(mean, 1e-30)


def _slopes(window: Array) -> Array:
    """Return the gradients of a window, (pixels, 2, channels)."""
    smooth = scipy.ndimage.gaussian_filter(window.astype(np.float64), (_WIDTH, _WIDTH, 0.0))
    slopes = np.stack([np.gradient(smooth, axis=axis) for axis in (0, 1)], axis=-2)
    return slopes.reshape(-1, 2, window.shape[-1])


def _cell_energies(energy: Array) -> Array:
    """Return the mean energy of cells, (cells, channels)."""
    rows, columns = (max(n // _CELL, 1) for n in energy.shape[:2])
    side_y, side_x = energy.shape[0] // rows, energy.shape[1] // columns
    inside = energy[: rows * side_y, : columns * side_x]
    return (
        inside.reshape(rows, side_y, columns, side_x, -1)
        .mean(axis=(1, 3))
        .reshape(rows * columns, -1)
    )


def _starts(size: int, side: int, most: int) -> list[int]:
    """Return where windows begin: side by side, or spread evenly if there were too many."""
    number = min(max(size // side, 1), most)
    return [round(at) for at in np.linspace(0, size - side, number)]
