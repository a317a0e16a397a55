"""How squares of a series move from frame to frame, so that clusters find what has moved.

Clusters gather patches that are near.  Where a camera pans, or a thing moves by more than a few pixels a
frame, what is alike is far away after a few frames; so the position of a patch is counted where its square
was in the middle frame.  Pixels stay where they are, none is interpolated, and a square that was followed
wrongly has other neighbours in time, no more.

Squares are matched at a quarter of their size, where there is a quarter of the noise, each with those
around it, and what moves is matched again at half size: each frame with the one beside it, towards the
middle.  A shift counts if squares differ by clearly less than at rest; that of most squares, which a camera
makes, needs no such proof.  Where there is nothing but noise all stays at rest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.ndimage

from ..core.blocks import SQUARE, Tiling, cut_frames
from ..core.image import Array, Float

_QUARTER, _HALF = 4, 2  # pixels a side that are one when frames are matched
_REACH = 8  # pixels of a quarter: how far a square may move from a frame to the next
_AROUND = 3  # squares a side that are matched together
_NEAREST = 2.0  # pixels: less is followed by clusters, and rounding it would make frames tremble
# Squares that differ by d in units of the noise must differ by 2 d + 0.5 at rest: by chance, the best of
# all shifts of noise reaches d = 0.65, and 0.4 in a corner.  From one pixel of half size to the next less
# will do.
_FAR, _NEAR = (2.0, 0.5), (1.2, 0.2)
# By how much squares must differ less on average where most of them move, over the root of their number:
# the best of all shifts of noise reaches 1.8.
_LEAST = 2.5
_BENT = 0.6  # second difference from which on a minimum is sought between pixels
# A square is alone if it differs from frames beside it by 2 d + 0.5, d what it differs by from itself four
# pixels on; 0.5 is four deviations of noise.
_ALONE = (2.0, 0.5)
# Share of the squares of a frame: from which on a frame is denoised alone too, and from which on it is that
# wholly.  Six sequences without cuts have 0 to 0.4 (0.6 where the light changes); frames that have nothing
# in common, 0.8 to 1.
_MUCH_ALONE = (0.25, 0.75)
# A frame counts as so many pixels: patches of all frames of a block are near.  1: -.04 dB at sigma 10.
_PIXELS_A_FRAME = 0.5


@dataclass(frozen=True)
class Motion:
    """How squares of a series move, (frames, squares along y, along x, 2), in pixels."""

    offsets: Float  # from a square to where it was in the middle frame
    steps: Array  # int32; to where it is in the frame beside it, towards the middle
    is_alone: Array  # (frames, squares along y, along x): frames beside it do not show it

    def tiles(self, grid: tuple[int, int, int]) -> Tiling:
        """Cut positions (y, t, x) into tiles whose offsets bring them to rest."""
        times = (_PIXELS_A_FRAME - 1.0) * np.arange(len(self.offsets), dtype=np.float32)
        in_time = np.broadcast_to(times[:, None, None], self.offsets.shape[:-1])
        moved = np.stack([self.offsets[..., 0], in_time, self.offsets[..., 1]], axis=-1)
        return cut_frames(grid, moved)

    def beside(self, height: int, width: int) -> Array:
        """Return the number of the pixel of (y, t, x) that each is, in the frame beside it: (y, t, x)."""
        n_frames, *n_squares = self.steps.shape[:-1]
        rows, columns = (np.arange(size, dtype=np.int32) for size in (height, width))
        down, right = (
            np.minimum(at // SQUARE, n - 1)
            for at, n in zip((rows, columns), n_squares, strict=True)
        )
        found = np.empty((height, n_frames, width), np.int32)
        for t in range(n_frames):
            steps = self.steps[t][down][:, right]
            y = np.clip(rows[:, None] + steps[..., 0], 0, height - 1)
            x = np.clip(columns + steps[..., 1], 0, width - 1)
            found[:, t] = (y * n_frames + _beside(t, n_frames)) * width + x
        return found

    def share_alone(self, t: int, height: int, width: int) -> Float:
        """Return how far each pixel of a frame, (y, x), is to be what it is without the others, 0 to 1.

        What other frames do not show is; all of a frame is, the more, the less of it they show.
        """
        is_alone = self.is_alone[t]
        around = scipy.ndimage.uniform_filter(is_alone.astype(np.float32), _AROUND, mode="nearest")
        low, high = _MUCH_ALONE
        least = np.clip((is_alone.mean() - low) / (high - low), 0.0, 1.0)
        down, right = (
            _between_squares(n, size)
            for n, size in zip(is_alone.shape, (height, width), strict=True)
        )
        return np.maximum(down @ around @ right.T, np.float32(least))

    @property
    def frames_alone(self) -> list[int]:
        """Frames of which others show little."""
        return np.flatnonzero(self.is_alone.mean(axis=(1, 2)) > _MUCH_ALONE[0]).tolist()


def _between_squares(n_squares: int, size: int) -> Float:
    """Return what draws lines between the middles of squares: (pixels, squares)."""
    middles, pixels = (np.arange(n_squares) + 0.5) * SQUARE - 0.5, np.arange(size)
    lines = [np.interp(pixels, middles, unit) for unit in np.eye(n_squares)]
    return np.stack(lines, axis=1).astype(np.float32)


def is_earlier(n_frames: int) -> Array:
    """Whether each frame is before the one beside it."""
    return np.array([_beside(t, n_frames) > t for t in range(n_frames)])


def find_motion(frames: Float, sigma: float) -> Motion:
    """Follow the squares of frames (frames, y, x) with white noise of a level."""
    n_frames, *plane = frames.shape
    n_squares = tuple(size // SQUARE for size in plane)
    steps = np.zeros((n_frames, *(max(n, 1) for n in n_squares), 2), np.float32)
    offsets, is_alone = np.zeros_like(steps), np.zeros(steps.shape[:-1], bool)
    if n_frames < 2 or min(n_squares) < _AROUND:
        return Motion(offsets, steps.astype(np.int32), is_alone)
    quarter, half = (_shrunk(frames, n_squares, side) for side in (_QUARTER, _HALF))
    middle = n_frames // 2
    for t in (*range(middle, n_frames), *range(middle - 1, -1, -1)):
        other = _beside(t, n_frames)
        noise = (sigma / _QUARTER) ** 2
        far, cost = _match(quarter[t], quarter[other], noise)
        shown = _ALONE[0] * _differs_inside(quarter[t], noise) + _ALONE[1]
        is_alone[t] = cost > shown
        away = 2 * t - other
        if is_alone[t].mean() > _MUCH_ALONE[0] and 0 <= away < n_frames:
            is_alone[t] &= _match(quarter[t], quarter[away], noise)[1] > shown
        if _is_moving(far).any():
            near = _match_again(half[t], half[other], far, (sigma / _HALF) ** 2)
            steps[t] = np.where(_is_moving(far) & _is_moving(near), near, 0.0)
        if t != middle:
            offsets[t] = steps[t] + _at(offsets[other], steps[t])
    return Motion(offsets, np.rint(steps).astype(np.int32), is_alone)


def _is_moving(steps: Float) -> Array:
    """Whether squares move by so much that it is followed."""
    return np.abs(steps).max(axis=-1, keepdims=True) >= _NEAREST


def _beside(t: int, n_frames: int) -> int:
    """Return the frame beside one, towards the middle."""
    return t - 1 if 0 < t >= n_frames // 2 else min(t + 1, n_frames - 1)


def _shrunk(frames: Float, n_squares: tuple[int, ...], side: int) -> Float:
    """Return the whole squares of frames, so many pixels a side averaged."""
    height, width = (n * SQUARE // side for n in n_squares)
    whole = frames[:, : height * side, : width * side]
    return whole.reshape(len(frames), height, side, width, side).mean(axis=(2, 4))


def _at(offsets: Float, steps: Float) -> Float:
    """Return the offsets of the squares that steps lead to."""
    n_squares = steps.shape[:2]
    places = [
        np.clip(np.rint(index + steps[..., axis] / SQUARE).astype(int), 0, n - 1)
        for axis, (index, n) in enumerate(zip(np.indices(n_squares), n_squares, strict=True))
    ]
    return offsets[tuple(places)]


def _match(own: Float, other: Float, noise: float) -> tuple[Float, Float]:
    """Return the steps of squares of a frame, a quarter of its size, to another, and how they differ."""
    cost = _differences(own, other) / np.float32(2 * noise)
    rest = _REACH, _REACH
    less = np.clip(cost[rest] - cost, -1.0, 1.0).mean(axis=(2, 3))
    of_most = np.unravel_index(np.argmax(less), less.shape)
    needed = _FAR[0] * cost + _FAR[1]
    needed[rest] = cost[rest]
    if less[of_most] > _LEAST / cost[rest].size ** 0.5:
        needed[of_most] = cost[of_most]
    n_shifts = 2 * _REACH + 1
    best = np.argmin(needed.reshape(n_shifts**2, -1), axis=0)
    place = np.stack(np.unravel_index(best, (n_shifts, n_shifts)))
    found = place + _between(cost.reshape(n_shifts, n_shifts, -1), place) - _REACH
    steps = np.ascontiguousarray(found.T).reshape(*cost.shape[2:], 2) * np.float32(_QUARTER)
    left = np.take_along_axis(cost.reshape(n_shifts**2, -1), best[np.newaxis], axis=0)
    return steps, left.reshape(cost.shape[2:])


def _differs_inside(own: Float, noise: float) -> Float:
    """Return how squares of a frame, a quarter of its size, differ from what is a pixel beside them."""
    squares = np.square(np.diff(own, axis=1, append=own[:, -2:-1])) / np.float32(2 * noise)
    return _of_squares(squares)


def _differences(own: Float, other: Float) -> Float:
    """Return mean squared differences, (shifts down, to the right, squares along y, along x)."""
    height, width = own.shape
    cell = SQUARE // _QUARTER
    wide = np.pad(other, _REACH, mode="edge")
    n_shifts = 2 * _REACH + 1
    found = np.empty((n_shifts, n_shifts, height // cell, width // cell), np.float32)
    for down, right in np.ndindex(n_shifts, n_shifts):
        squares = np.square(own - wide[down : down + height, right : right + width])
        rows = squares.reshape(-1, cell, width).sum(axis=1)
        found[down, right] = rows.reshape(len(rows), -1, cell).sum(axis=2)
    found /= cell**2
    return np.asarray(scipy.ndimage.uniform_filter(found, (1, 1, _AROUND, _AROUND), mode="nearest"))


def _of_squares(values: Float) -> Float:
    """Return the mean of pixels of a quarter in each square, with those around it."""
    cell = SQUARE // _QUARTER
    height, width = (size // cell for size in values.shape)
    means = values.reshape(height, cell, width, cell).mean(axis=(1, 3))
    return np.asarray(scipy.ndimage.uniform_filter(means, _AROUND, mode="nearest"))


def _match_again(own: Float, other: Float, steps: Float, noise: float) -> Float:
    """Return steps as frames of half size say it: a pixel of them more or less."""
    cell = SQUARE // _HALF
    rows, columns = steps.shape[:2]
    near = np.rint(steps / _HALF).astype(np.int64)
    far = _REACH * _QUARTER // _HALF + 2  # beyond the frame, so that all that is looked at is there
    wide = np.pad(other, far, mode="edge")
    y = np.arange(len(own)).reshape(rows, cell, 1, 1) + near[:, None, :, None, 0] + far
    x = np.arange(own.shape[1]).reshape(1, 1, columns, cell) + near[:, None, :, None, 1] + far
    at = y * wide.shape[1] + x
    squares = own.reshape(rows, cell, columns, cell)
    cost = np.empty((3, 3, rows * columns), np.float32)
    for down, right in np.ndindex(3, 3):
        less = squares - wide.reshape(-1)[at + ((down - 1) * wide.shape[1] + right - 1)]
        cost[down, right] = np.einsum("abcd,abcd->ac", less, less).reshape(-1)
    cost /= cell**2 * 2 * noise
    needed = _NEAR[0] * cost + _NEAR[1]
    needed[1, 1] = cost[1, 1]
    place = np.stack(np.unravel_index(np.argmin(needed.reshape(9, -1), axis=0), (3, 3)))
    between = _between(cost, place)
    found = _HALF * (near + (place + between - 1).T.reshape(rows, columns, 2))
    is_known = (place != 1).any(axis=0) | between.any(axis=0)
    return np.where(is_known.reshape(rows, columns, 1), found, steps).astype(np.float32)


def _between(cost: Float, place: Array) -> Float:
    """Return how far the minimum of a parabola is from the best place, where costs are bent enough.

    ``cost`` is (shifts down, to the right, squares), ``place`` (2, squares).
    """
    number, last = np.arange(cost.shape[-1]), len(cost) - 1
    is_inside = ((place > 0) & (place < last)).all(axis=0)
    found = np.zeros(place.shape, np.float32)
    for axis in (0, 1):
        step = np.zeros_like(place)
        step[axis] = is_inside
        low, at, high = (cost[(*(place + k * step), number)] for k in (-1, 0, 1))
        bent = low - 2 * at + high
        is_sure = bent > _BENT
        found[axis] = np.where(is_sure, 0.5 * (low - high) / np.where(is_sure, bent, 1.0), 0.0)
    return np.clip(found, -0.5, 0.5)
