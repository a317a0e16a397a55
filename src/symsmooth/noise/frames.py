"""Frames of one still scene: what differs between them is noise, whatever the scene shows.

Light that drifts is corrected (a factor and a shift for each frame), clipped pixels are left out, and what
is left of each frame is cut into blocks: their brightness, and the variance over frames.  Frames in which
something moved, or of which parts became brighter, are refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.fft

from ..core.image import Array
from .evidence import SIDE

BLOCK = 2 * SIDE  # pixels a side: blocks in which brightness and variance are taken
_SURE = 4.0  # standard errors from which a drift of the light is believed
_AT_THE_END = 1e-3  # share of the values of a block that may lie at an end of the range
# Of the variance that a shift of a frame may explain: as much as the gain would be off.
_MOVED = 0.01
_UNEVEN = 0.02  # of the variance that light which changes in parts of the picture may have


@dataclass(frozen=True)
class Blocks:
    """Blocks of frames of one scene, (blocks, channels) or (blocks,).

    Attributes
    ----------
    brightness : ndarray (blocks, channels)
    variance : ndarray (blocks, channels)
        Over frames, mean over the pixels that count.
    n_pixels : ndarray (blocks, channels)
        How many count.
    at_low, at_high : ndarray of bool (blocks, channels)
        Where pixels lie at an end of the range: their noise was clipped.
    n_frames : int
    """

    brightness: Array
    variance: Array
    n_pixels: Array
    at_low: Array
    at_high: Array
    n_frames: int


@dataclass(frozen=True)
class Waves:
    """Cosine coefficients of noise of level 1: sums of their products over squares and frames.

    Attributes
    ----------
    energies : ndarray (channels, channels, 8, 8)
        Of squares of 8 pixels.
    large : ndarray (channels,)
        Energy of the mean of blocks of 16 pixels.
    n_squares, n_blocks : int
        How many there are, times the frames less one.
    """

    energies: Array
    large: Array
    n_squares: int
    n_blocks: int

    def __add__(self, other: Waves) -> Waves:
        return Waves(
            self.energies + other.energies,
            self.large + other.large,
            self.n_squares + other.n_squares,
            self.n_blocks + other.n_blocks,
        )

    def check_even(self) -> None:
        """Refuse light that changed in parts of the picture: the larger a block, the more of it.

        With noise alone the energy of the mean is the same for blocks of both sizes; a brightness that
        changes adds its square, times the pixels of a block.
        """
        if not (self.n_squares and self.n_blocks):
            return
        small = np.einsum("cc->c", self.energies[:, :, 0, 0]) / self.n_squares
        added = (self.large / self.n_blocks - small) / (BLOCK**2 - SIDE**2)
        variance = np.einsum("ccuv->c", self.energies) / SIDE**2 / self.n_squares
        if float((added / np.maximum(variance, 1e-300)).max()) > _UNEVEN:
            raise ValueError(
                "the light changed between frames in parts of the picture, or something moved there: use a "
                "light that does not flicker and a scene that stands still, and calibrate again"
            )


class Still:
    """Frames of one still scene, as residuals from their mean.

    Parameters
    ----------
    frames : sequence of sequence of ndarray
        For each frame its windows (y, x, channels), in the dtype of the image; sides are multiples of a
        block.
    low, high : float
        The ends of the range.
    """

    def __init__(self, frames: Sequence[Sequence[Array]], low: float, high: float) -> None:
        self.n_frames = len(frames)
        stacked = [
            np.stack([frame[number] for frame in frames]) for number in range(len(frames[0]))
        ]
        self._usable = [np.isfinite(window).all(axis=0) for window in stacked]
        self._windows = [
            window if usable.all() else np.where(usable, window, 0.0)
            for window, usable in zip(stacked, self._usable, strict=True)
        ]
        self._low, self._high = low, high
        self._factors, self._shifts = self._drift()

    def _drift(self) -> tuple[Array, Array]:
        """Return factor and shift of the mean picture that give each frame, (frames, channels)."""
        blocks = np.concatenate([_block_means(w) for w in self._windows], axis=1)  # (n, blocks, c)
        mean = blocks.mean(axis=0)
        away = mean - mean.mean(axis=0)
        power = np.maximum(np.square(away).sum(axis=0), 1e-300)
        change = blocks - mean
        change = change - change.mean(axis=1, keepdims=True)
        slope = (change * away).sum(axis=1) / power
        left = change - slope[:, np.newaxis] * away
        error = np.sqrt(np.square(left).mean(axis=1) / power)
        slope = np.where(np.abs(slope) > _SURE * error, slope, 0.0)
        shift = (blocks - (1 + slope[:, np.newaxis]) * mean).mean(axis=1)
        return 1 + slope, shift

    def _residuals(self, number: int) -> tuple[Array, Array, Array]:
        """Return residuals (frames, y, x, channels) of a window, its mean, and where pixels count."""
        values = self._windows[number].astype(np.float64)
        mean = values.mean(axis=0)
        stuck = (values == self._high).all(axis=0)  # hot pixels; zeros may be counts of photons
        factors, shifts = (v[:, np.newaxis, np.newaxis] for v in (self._factors, self._shifts))
        values -= factors * mean + shifts
        return values, mean, self._usable[number] & ~stuck

    def blocks(self, limit: Array | None = None) -> Blocks:
        """Return what blocks show; pixels that differ by more than ``limit`` (blocks, c) do not count."""
        found, start = [], 0
        for number, window in enumerate(self._windows):
            residuals, mean, counts = self._residuals(number)
            squares = np.square(residuals).sum(axis=0) / max(self.n_frames - 1, 1)
            n_blocks = squares.shape[0] // BLOCK * (squares.shape[1] // BLOCK)
            if limit is not None:
                own = _spread_blocks(limit[start : start + n_blocks], squares.shape)
                counts = counts & (np.abs(residuals).max(axis=0) <= own)
            n = _block_sums(counts[np.newaxis].astype(np.float64))[0]
            at = [
                _block_means((window == end).astype(np.float64)).mean(axis=0)
                for end in (self._low, self._high)
            ]
            found.append(
                (
                    _block_sums((mean * counts)[np.newaxis])[0] / np.maximum(n, 1.0),
                    _block_sums((squares * counts)[np.newaxis])[0] / np.maximum(n, 1.0),
                    n,
                    at[0] > _AT_THE_END,
                    at[1] > _AT_THE_END,
                )
            )
            start += n_blocks
        x, v, n, at_low, at_high = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return Blocks(x, v, n, at_low, at_high, self.n_frames)

    def waves(self, level: Array, good: Array, limit: Array) -> Waves:
        """Return the spectrum of the noise, relative to its level, and what channels share of it.

        Parameters
        ----------
        level : ndarray (blocks, channels)
        good : ndarray of bool (blocks,)
        limit : ndarray (blocks, channels)
            Squares of 8 pixels with larger residuals do not count.
        """
        n_channels = level.shape[-1]
        energies = np.zeros((n_channels, n_channels, SIDE, SIDE))
        large, n_squares, n_blocks_seen, start = np.zeros(n_channels), 0, 0, 0
        basis = scipy.fft.dct(np.eye(SIDE), axis=0, norm="ortho")
        for number in range(len(self._windows)):
            residuals, _, counts = self._residuals(number)
            n_blocks = residuals.shape[1] // BLOCK * (residuals.shape[2] // BLOCK)
            own = slice(start, start + n_blocks)
            start += n_blocks
            shape = residuals.shape[1:]
            inside = _spread_blocks(good[own][:, np.newaxis] & np.ones(n_channels, bool), shape)
            inside &= counts & (np.abs(residuals).max(axis=0) <= _spread_blocks(limit[own], shape))
            residuals /= np.maximum(_spread_blocks(level[own], shape), 1e-300)
            usable = (
                _squares(inside[np.newaxis], SIDE).reshape(-1, SIDE**2 * n_channels).all(axis=1)
            )
            for frame in residuals:
                squares = _squares(frame[np.newaxis], SIDE)[0][usable]  # (squares, 8, 8, c)
                waves = np.einsum("uy,nyxc,vx->ncuv", basis, squares, basis, optimize=True)
                energies += np.einsum("ncuv,nduv->cduv", waves, waves, optimize=True)
            n_squares += int(usable.sum())
            whole = _squares(inside[np.newaxis], BLOCK).reshape(n_blocks, -1).all(axis=1)
            means = _block_means(residuals)[:, whole]
            large += np.square(BLOCK * means).sum(axis=(0, 1))
            n_blocks_seen += int(whole.sum())
        free = self.n_frames - 1  # the mean is that of the frames themselves
        return Waves(energies, large, n_squares * free, n_blocks_seen * free)

    def shifts(self) -> tuple[Array, Array]:
        """Return the share of the variance that a shift of each frame explains, and how far it is."""
        n = self.n_frames
        normal, right, power = np.zeros((n, 2, 2)), np.zeros((n, 2)), np.zeros(n)
        for number in range(len(self._windows)):
            residuals, mean, counts = self._residuals(number)
            inner = counts[1:-1, 1:-1]
            slopes = [
                np.where(inner, (mean[2:, 1:-1] - mean[:-2, 1:-1]) / 2, 0.0),
                np.where(inner, (mean[1:-1, 2:] - mean[1:-1, :-2]) / 2, 0.0),
            ]
            gram = np.array([[float((a * b).sum()) for a in slopes] for b in slopes])
            normal += gram
            for j, frame in enumerate(residuals):
                part = np.where(inner, frame[1:-1, 1:-1], 0.0)
                right[j] += [float((part * slope).sum()) for slope in slopes]
                power[j] += float(np.square(part).sum())
        shifts = np.array(
            [np.linalg.lstsq(a, b, rcond=None)[0] for a, b in zip(normal, right, strict=True)]
        )
        explained = (shifts * right).sum(axis=1)
        return explained / np.maximum(power, 1e-300), np.hypot(*shifts.T)

    def check_still(self) -> None:
        """Refuse frames that moved."""
        shares, shifts = self.shifts()
        worst = int(np.argmax(shares))
        if shares[worst] > _MOVED:
            raise ValueError(
                f"frames moved between shots, one of them by {shifts[worst]:.2g} pixels: use a tripod and "
                "a remote release, or an even surface out of focus, and calibrate again"
            )


def _squares(values: Array, side: int) -> Array:
    """Return (n, y, x, c) as squares (n, squares, side, side, c), row by row."""
    n, height, width, c = values.shape
    cut = values.reshape(n, height // side, side, width // side, side, c)
    return cut.transpose(0, 1, 3, 2, 4, 5).reshape(n, -1, side, side, c)


def _block_sums(values: Array) -> Array:
    """Return sums over blocks of (n, y, x, c): (n, blocks, c)."""
    n, height, width, c = values.shape
    cut = values.reshape(n, height // BLOCK, BLOCK, width // BLOCK, BLOCK, c)
    return cut.sum(axis=(2, 4), dtype=np.float64).reshape(n, -1, c)


def _block_means(values: Array) -> Array:
    return _block_sums(values) / BLOCK**2


def _spread_blocks(values: Array, shape: tuple[int, ...]) -> Array:
    """Return values of blocks (blocks, c) at each of their pixels (y, x, c)."""
    height, width, c = shape
    grid = values.reshape(height // BLOCK, width // BLOCK, c)
    return grid.repeat(BLOCK, axis=0).repeat(BLOCK, axis=1)
