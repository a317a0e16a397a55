"""What holds something of its own: channels, which also go together and are gathered in few, and regions.

Channels show the same things where outlines of one lie where those of the other do.
Gradients of two channels are multiplied and added up over windows: noise, which is independent from
channel to channel, adds up to nothing, and of the gradients' own energies that of the calmest places is
subtracted.  What is left is a correlation of structures, 1 for what is the same and near 0 (0.05 to 0.15,
measured) for channels that have nothing to do with each other.

Together or apart was measured on channels that share a growing part of their picture (Kodak, sigma 10
and 30, ``benchmarks/channels.py``): apart is better by 0.1 to 0.9 dB at 0.15, together by 0.1 to 1 dB at
0.7, and at 0.5 they are equal.  Three channels are as a rule the colours of a photograph, which heavy
noise makes look less alike than they are; they are taken apart below 0.3 only.

Constant regions (a mask, a border, what is empty or blown out) have no noise.
A region is constant where a square of 16 pixels a side, more than a block of a JPEG, has one value in all
channels, and wherever that value goes on from there.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.ndimage
from numpy.typing import NDArray

from .. import _native

Array = NDArray[Any]
Float = NDArray[Any]
Channels = Literal["auto", "together", "apart"]
Groups = tuple[tuple[int, ...], ...]  # of channels that are denoised together

_COMPARED = 50_000  # pixels that are compared first
_ROUNDED = 0.51  # of a whole number: what rounding may have changed

_WIDTH = 2.0  # pixels: outlines are looked for at this scale, where there is less noise than at finer ones
_WINDOW, _CELL = 64, 16  # pixels a side
_MAX_WINDOWS = 100
_CALM = 0.2  # quantile of the cells' energies: that of noise
_ALIKE, _ALIKE_COLOURS = 0.5, 0.3
# Share of a channel's energy that is not noise: pure noise has .2 to .3 by this measure.  Where a channel
# shows nothing, it does not count which others it goes with.
_SHOWS_SOMETHING = 0.35
_SQUARE = 16  # pixels
_KNOWN = 0.5  # of such a square, or nothing is known of it
_MAX_VALUES = 16  # that regions may have: a drawing has many, and is none of noise


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
    high, wide = (min(_WINDOW, size) // 2 * 2 for size in (height, width))
    per_axis = max(int((_MAX_WINDOWS / len(planes)) ** 0.5), 1)
    windows = [
        _halved(plane[y : y + high, x : x + wide])
        for plane in planes
        for y in _starts(height, high, per_axis)
        for x in _starts(width, wide, per_axis)
    ]
    slopes = _slopes(np.stack(windows))  # (2, windows, channels, y, x)
    n_pixels = slopes.shape[-2] * slopes.shape[-1]
    flat = slopes.reshape(*slopes.shape[:3], n_pixels)
    product = np.asarray((flat @ flat.swapaxes(-1, -2)).sum(axis=0) / n_pixels, np.float64)
    cells = _cell_energies(np.square(slopes).sum(axis=0))  # (cells, channels)
    calm, mean = np.quantile(cells, _CALM, axis=0), cells.mean(axis=0)
    own = np.sqrt(np.maximum(np.einsum("wii->wi", product) - calm, 0.0))
    most = np.einsum("wi,wj->ij", own, own)
    alike = np.abs(product).sum(axis=0) / np.maximum(most, 1e-30)
    return alike, 1 - calm / np.maximum(mean, 1e-30)


def _halved(window: Array) -> Array:
    """Return a window (y, x, channels) at half its size, (channels, y / 2, x / 2), about 0."""
    planes = np.moveaxis(window, -1, 0)
    quarters = [planes[:, y::2, x::2] for y in (0, 1) for x in (0, 1)]
    halved = np.asarray(sum(quarters[1:], quarters[0]), np.float64) / 4
    return (halved - halved.mean(axis=(1, 2), keepdims=True)).astype(np.float32)


def _slopes(windows: Float) -> Float:
    """Return the gradients of smoothed windows (..., y, x): (2, ..., y, x)."""
    (smooth_y, slope_y), (smooth_x, slope_x) = (_smoothing(n) for n in windows.shape[-2:])
    return np.stack([slope_y @ windows @ smooth_x.T, smooth_y @ windows @ slope_x.T])


@functools.cache
def _smoothing(size: int) -> tuple[Float, Float]:
    """Return the matrices (size, size) that smooth a line of halved pixels, and that give its slopes."""
    deviation = np.sqrt(_WIDTH**2 - 1 / 4) / 2  # pairs of pixels have a variance of 1 / 4
    smooth = scipy.ndimage.gaussian_filter1d(np.eye(size), deviation, axis=0)
    return smooth.astype(np.float32), np.gradient(smooth, axis=0).astype(np.float32)


def _cell_energies(energy: Float) -> Float:
    """Return the mean energy of cells of windows (windows, channels, y, x): (cells, channels)."""
    side = _CELL // 2
    rows, columns = (max(n // side, 1) for n in energy.shape[-2:])
    high, wide = energy.shape[-2] // rows, energy.shape[-1] // columns
    inside = energy[..., : rows * high, : columns * wide]
    cells = inside.reshape(*energy.shape[:2], rows, high, columns, wide).mean(axis=(3, 5))
    return np.moveaxis(cells, 1, -1).reshape(-1, energy.shape[1])


def _starts(size: int, side: int, most: int) -> list[int]:
    """Return where windows begin: side by side, or spread evenly if there were too many."""
    number = min(max(size // side, 1), most)
    return [round(at) for at in np.linspace(0, size - side, number)]


@dataclass(frozen=True, eq=False)
class Counted:
    """Which channels of an image hold something of their own; others are constant, or follow one of them.

    Attributes
    ----------
    own : ndarray (channels,)
        Their numbers.
    times, plus : ndarray (channels, all channels), (all channels,)
        All channels are ``pixels @ times + plus``, pixels being those of the own channels.
    """

    own: Array
    times: Array
    plus: Array

    @property
    def words(self) -> str:
        """What the image is, as people say it."""
        n_all, n_own = len(self.plus), len(self.own)
        if (
            n_own == 1
            and n_all == 3
            and np.allclose(self.times, 1.0)
            and np.allclose(self.plus, 0.0)
        ):
            return "grey, saved as RGB"
        return f"{n_own} of {n_all} channels hold something of their own"

    def in_units(self, offset: float, scale: float) -> Counted:
        """Return the same for pixels (image - offset) / scale."""
        plus = (self.plus + offset * self.times.sum(axis=0) - offset) / scale
        return Counted(self.own, self.times, plus)

    def values(self, pixels: Array) -> Array:
        """Return the pixels of all channels."""
        return pixels @ self.times.astype(pixels.dtype) + self.plus.astype(pixels.dtype)

    def changes(self, change: Array) -> Array:
        """Return the change of all channels."""
        return change @ self.times.astype(change.dtype)

    def sizes(self, sizes: Array) -> Array:
        """Return the size of a change of all channels."""
        return sizes @ np.abs(self.times).astype(sizes.dtype)


def count_channels(pixels: Array, missing: Array | None = None) -> Counted | None:
    """Return which channels of (*spatial, channels) hold something of their own; None if all do.

    A channel follows another if it is a times the other plus b, within rounding.
    """
    n_channels = pixels.shape[-1]
    if n_channels == 1:
        return None
    flat = pixels.reshape(-1, n_channels) if missing is None else pixels[~missing]
    sample = flat[:: max(1, len(flat) // _COMPARED)].astype(np.float64)
    spread = sample.max(axis=0) - sample.min(axis=0)
    own: list[int] = []
    times, plus = np.zeros((n_channels, n_channels)), np.zeros(n_channels)
    for c in np.argsort(-spread, kind="stable"):  # what follows is smaller than what it follows
        found = _follow(flat, sample, int(c), own)
        if found is None:
            own.append(int(c))
            times[c, c] = 1.0
        else:
            other, a, b = found
            if other >= 0:
                times[other, c] = a
            plus[c] = b
    if len(own) == n_channels:
        return None
    if not own:  # a constant image: one channel stands for all
        own, times[0, 0], plus[0] = [0], 1.0, 0.0
    own.sort()
    return Counted(np.array(own), times[own], plus)


def _follow(flat: Array, sample: Array, c: int, own: list[int]) -> tuple[int, float, float] | None:
    """Return the channel that c follows, and a and b; -1, 0 and b if it is constant; None if none."""
    first = flat[0, c]
    if (sample[:, c] == float(first)).all() and (flat[:, c] == first).all():
        return -1, 0.0, float(first)
    for other in own:
        if (sample[:, c] == sample[:, other]).all() and (flat[:, c] == flat[:, other]).all():
            return other, 1.0, 0.0
        if flat.dtype.kind not in "ui":
            continue
        x, y = sample[:, other], sample[:, c]
        centred = x - x.mean()
        a = float((centred * y).sum() / max((centred**2).sum(), 1e-30))
        b = float(y.mean() - a * x.mean())
        within = _ROUNDED * (1 + abs(a))  # both are rounded to whole numbers
        if (np.abs(a * x + b - y) <= within).all():
            own_pixels, others = flat[:, c].astype(np.float64), flat[:, other].astype(np.float64)
            if (np.abs(a * others + b - own_pixels) <= within).all():
                return other, a, b
    return None


def covariance(pixels: Float) -> Array:
    """Return the covariance of the channels of (*spatial, channels), float64; one pixel has none."""
    flat = pixels.reshape(-1, pixels.shape[-1]).astype(np.float64)
    if len(flat) == 1:
        return np.zeros((flat.shape[1],) * 2)
    return np.atleast_2d(np.cov(flat, rowvar=False))


def decorrelate(noisy: Float, sigma: float) -> Float:
    """Return an orthonormal transform of the channels of (*spatial, channels), as below."""
    n = noisy.shape[-1]
    return transform_for(n, None if n in (1, 3) else covariance(noisy), sigma)


def transform_for(n: int, among: Array | None, sigma: float) -> Float:
    """Return an orthonormal transform (n, n) of n channels; noise stays white under it.

    Three channels: the opponent transform.  Others: eigenvectors of the channels' covariance ``among``.
    """
    if n == 1:
        return np.ones((1, 1), np.float32)
    if n == 3:
        rows = np.array([[1.0, 1.0, 1.0], [1.0, 0.0, -1.0], [1.0, -2.0, 1.0]])
        return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).T.astype(np.float32)
    assert among is not None
    if not among.any():
        return np.eye(n, dtype=np.float32)
    _, vectors = np.linalg.eigh(among - sigma**2 * np.eye(n))
    return vectors[:, ::-1].astype(np.float32)


def mix(values: Float, transform: Float) -> Float:
    """Apply a channel transform (channels, channels) to (*spatial, channels).

    Each channel lies together in memory, as most of what is done to it asks for: three times as fast.
    """
    if transform.shape == (1, 1):
        return values
    *spatial, n_channels = values.shape
    planes = np.moveaxis(values, -1, 0)
    is_planar = planes.flags.c_contiguous
    shape = (n_channels, -1) if is_planar else (-1, n_channels)
    flat = np.ascontiguousarray(planes if is_planar else values, np.float32).reshape(shape)
    own = np.ascontiguousarray(transform, np.float32)
    mixed = np.empty((n_channels, flat.size // n_channels), np.float32)
    _native.mix_channels(flat, own, is_planar, mixed)
    return np.moveaxis(mixed.reshape(-1, *spatial), 0, -1)


def luminance(values: Float) -> Float:
    """Return the mean of the channels, (*spatial, 1): under white noise, independent of the colours."""
    return values if values.shape[-1] == 1 else values.mean(axis=-1, keepdims=True)


def constant_regions(pixels: Array, missing: Array | None = None) -> Array | None:
    """Return where pixels (*spatial, channels) lie in a constant region, (*spatial); None if nowhere.

    Missing pixels (*spatial) lie in none, but do not end one either.
    """
    slices = pixels.reshape(-1, *pixels.shape[-3:])
    if min(slices.shape[1:3]) < _SQUARE:
        return None
    holes = [None] * len(slices) if missing is None else missing.reshape(slices.shape[:3])
    found = [_of_slice(*each) for each in zip(slices, holes, strict=True)]
    if all(each is None for each in found):
        return None
    nowhere = np.zeros(slices.shape[1:3], bool)
    together = np.stack([nowhere if each is None else each for each in found])
    return together.reshape(pixels.shape[:-1])


def _of_slice(pixels: Array, missing: Array | None) -> Array | None:
    """Return where pixels (y, x, channels) lie in a constant region."""
    if missing is not None:
        pixels = _bridged(pixels, missing)
    some = pixels[::_SQUARE]  # each square has a pixel of one of these lines, and of its columns
    if not _runs((some[:, 1:] == some[:, :-1]).all(axis=-1), 1).any():
        return None
    right = (pixels[:-1, 1:] == pixels[:-1, :-1]).all(axis=-1)
    down = (pixels[1:, :-1] == pixels[:-1, :-1]).all(axis=-1)
    core = _runs(_runs(right & down, 0), 1)
    if missing is not None:
        observed = scipy.ndimage.uniform_filter((~missing).astype(np.float32), _SQUARE)
        core &= observed[:-1, :-1] > _KNOWN
    if not core.any():
        return None
    core = np.pad(core, ((0, 1), (0, 1)))
    found = np.zeros(core.shape, bool)
    for value in _most_common(pixels[core]):
        labels, number = scipy.ndimage.label((pixels == value).all(axis=-1))
        reached = np.zeros(number + 1, bool)
        reached[labels[core]] = True
        reached[0] = False  # other values
        found |= reached[labels]
    return found if missing is None else found & ~missing


def _most_common(pixels: Array) -> Array:
    """Return the most common values of pixels (n, channels), of which many that follow are alike."""
    starts = np.flatnonzero((pixels[1:] != pixels[:-1]).any(axis=-1)) + 1
    starts = np.concatenate([[0], starts])
    lengths = np.diff(starts, append=len(pixels))
    values, run = np.unique(pixels[starts], axis=0, return_inverse=True)
    counts = np.bincount(run.reshape(-1), lengths)
    return values[np.argsort(-counts, kind="stable")[:_MAX_VALUES]]


def _runs(equal: Array, axis: int) -> Array:
    """Return the middles of runs as long as a square, of places that equal the next."""
    return scipy.ndimage.minimum_filter1d(equal, _SQUARE - 1, axis=axis, mode="constant", cval=0)


def _bridged(pixels: Array, missing: Array) -> Array:
    """Return pixels (y, x, channels) whose missing ones have the value of the next observed to the left."""
    columns = np.arange(missing.shape[1])
    source = np.maximum.accumulate(np.where(missing, -1, columns), axis=1)
    first = np.argmin(missing, axis=1)[:, np.newaxis]  # of a line: for what has none to its left
    source = np.where(source < 0, first, source)
    return np.take_along_axis(pixels, source[..., np.newaxis], axis=1)
