"""How far most of a series moves from frame to frame, in whole pixels.

Clusters follow what moves by a few pixels a frame.  A camera that pans moves all of them by more, out of
reach within a few frames, and a patch of two frames then shows two different things.  So frames are first
rolled by the motion that most of the picture shares: afterwards it stands nearly still, and what moves
otherwise is as far away as it was before, or not much further.  No pixel is interpolated, and rolling back
undoes it exactly.  Frames are rolled as if on a torus: beyond each end some pixels of the other are
repeated, so that patches lie across it, and both estimates of them are cross-faded.  Without that there is
a line to be seen where the end of the rolled frame was.

Candidates are the peaks of the phase correlation of neighbouring frames.  Each is judged by squares of
pixels: by how much less they differ, in units of the noise, than without it; a square counts one at most,
so that a bright edge does not outvote the rest.  Where there is nothing but noise no candidate is better.
"""

from __future__ import annotations

import numpy as np
import scipy.fft

from ..core.image import Array, Float

_FARTHEST, _SHARE = 64, 3  # pixels, and the part of a side, that a frame may move
_NEAREST = 2  # pixels: less is followed by clusters, and rounding it would make frames tremble
_PEAKS = 6  # of the phase correlation, that are tried
_SQUARE = 16  # pixels a side
# By how much squares must differ less on average: noise alone reaches 0.02.
_LEAST = 0.05
_OVERLAP = 6  # pixels that are repeated beyond each end of a rolled frame


def find_motion(frames: Float, sigma: float) -> Array:
    """Return how far each frame (frames, y, x) lies from the first, in pixels (frames, 2).

    ``sigma`` is the level of their white noise.
    """
    steps = np.zeros((len(frames), 2), np.int64)
    spectra = _spectra(frames)
    noise = sigma**2 * float(np.square(_window(frames.shape[1:])).sum())
    for t in range(1, len(frames)):
        peaks = _peaks(spectra[t - 1], spectra[t], noise, frames.shape[1:])
        steps[t] = _best(frames[t - 1], frames[t], peaks, sigma)
    return np.cumsum(steps, axis=0)


def align(values: Float, motion: Array) -> Float:
    """Return frames (frames, y, x, ...) moved back by their motion, on a torus whose ends overlap."""
    overlap = [(0, 0), (_OVERLAP, _OVERLAP), (_OVERLAP, _OVERLAP)]
    overlap += [(0, 0)] * (values.ndim - 3)
    return np.pad(_roll(values, -motion), overlap, mode="wrap")


def undo_alignment(values: Float, motion: Array) -> Float:
    """Return aligned frames as they were; where ends overlap, both are cross-faded."""
    for axis in (1, 2):
        values = _join_ends(values, axis)
    return _roll(values, motion)


def _roll(values: Float, motion: Array) -> Float:
    """Return frames moved by so many pixels; what leaves comes in opposite."""
    return np.stack(
        [
            np.roll(frame, tuple(step), axis=(0, 1))
            for frame, step in zip(values, motion, strict=True)
        ]
    )


def _join_ends(values: Float, axis: int) -> Float:
    """Return values without what is repeated along an axis, cross-faded with it."""
    moved = np.moveaxis(values, axis, 0)
    low, high = _OVERLAP, len(moved) - _OVERLAP
    joined = moved[low:high].copy()
    shape = (-1,) + (1,) * (values.ndim - 1)
    way = (np.arange(_OVERLAP, dtype=np.float32) + np.float32(0.5)) / (2 * _OVERLAP)
    rising = (np.float32(0.5) - way).reshape(shape)  # weight of the other end's estimate
    joined[:_OVERLAP] += rising * (moved[high:] - joined[:_OVERLAP])
    joined[-_OVERLAP:] += rising[::-1] * (moved[:low] - joined[-_OVERLAP:])
    return np.moveaxis(joined, 0, axis)


def _window(plane: tuple[int, ...]) -> Float:
    """Return weights that fall to the borders, where frames that move show different things."""
    height, width = (np.hanning(size + 2)[1:-1] for size in plane)
    return np.outer(height, width).astype(np.float32)


def _spectra(frames: Float) -> Array:
    window = _window(frames.shape[1:])
    means = (frames * window).sum(axis=(1, 2), keepdims=True) / window.sum()
    return np.asarray(scipy.fft.rfft2((frames - means) * window))


def _peaks(
    before: Array, after: Array, noise: float, plane: tuple[int, ...]
) -> list[tuple[int, int]]:
    """Return the strongest shifts; frequencies count by how far they stand out of the noise."""
    strength = np.abs(before) * np.abs(after) + noise
    correlation = scipy.fft.irfft2(after * np.conj(before) / strength, s=plane)
    down, right = (_reachable(size) for size in plane)
    near = correlation[np.ix_(down, right)]
    found = []
    for _ in range(_PEAKS):
        row, column = np.unravel_index(np.argmax(near), near.shape)
        found.append((int(down[row]), int(right[column])))
        rows, columns = (
            np.arange(at - 1, at + 2) % size
            for at, size in zip((row, column), near.shape, strict=True)
        )
        near[np.ix_(rows, columns)] = -np.inf  # its neighbours are no other peaks
    return found


def _reachable(size: int) -> Array:
    """Return the shifts along an axis that are looked at."""
    most = min(_FARTHEST, size // _SHARE)
    return np.concatenate([np.arange(most + 1), np.arange(-most, 0)])


def _best(
    before: Float, after: Float, peaks: list[tuple[int, int]], sigma: float
) -> tuple[int, int]:
    """Return the shift by which squares of two frames are most alike; none if that is as good."""
    best, most = (0, 0), _LEAST
    stay = _differences(before, after, (0, 0), sigma)
    for shift in peaks:
        if max(np.abs(shift)) < _NEAREST:
            continue
        less = np.clip(stay - _differences(before, after, shift, sigma), -1.0, 1.0)
        gain = float(np.nan_to_num(less).mean()) if less.size else 0.0
        if gain > most:
            best, most = shift, gain
    return best


def _differences(before: Float, after: Float, shift: tuple[int, int], sigma: float) -> Float:
    """Return mean squared differences by squares, 1 for noise alone; nan where a square has left."""
    n_squares = tuple(size // _SQUARE for size in before.shape)
    found = np.full(n_squares, np.nan, np.float32)
    own: list[slice] = []
    for size, step in zip(before.shape, shift, strict=True):
        first = -(-max(0, -step) // _SQUARE)
        last = max(min(size, size - step) // _SQUARE, first)
        own.append(slice(first, last))
    here = tuple(slice(s.start * _SQUARE, s.stop * _SQUARE) for s in own)
    there = tuple(slice(s.start + step, s.stop + step) for s, step in zip(here, shift, strict=True))
    squares = np.square(after[there] - before[here])
    height, width = (s.stop - s.start for s in own)
    cut = squares.reshape(height, _SQUARE, width, _SQUARE)
    found[tuple(own)] = cut.mean(axis=(1, 3)) / (2 * sigma**2)
    return found
