"""Frames of one still scene, in blocks: what differs between them is noise, whatever the scene shows.

Light that drifts is corrected (a factor and a shift for each frame), and pixels that no noise explains are
left out.  Frames in which something moved, or of which parts became brighter, are refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.fft

from ..core.image import Array
from .evidence import SIDE

BLOCK = 2 * SIDE  # pixels a side: blocks in which brightness and variance are taken
CHANCE = 5.0  # standard errors that are chance: of 100,000 blocks of noise none lies further away
# Relative: a level that is off by as much costs less than 0.01 dB.  The smallest difference that counts.
TOLERANCE = 0.02
_AT_THE_END = 1e-3  # share of the values of a block that may lie at an end of the range


@dataclass(frozen=True)
class Blocks:
    """Blocks of frames of several scenes, (blocks, channels) or (blocks,).

    Attributes
    ----------
    brightness : ndarray (blocks, channels)
    variance : ndarray (blocks, channels)
        Over frames, mean over the pixels that count.
    n_pixels : ndarray (blocks, channels)
        How many count.
    at_low, at_high : ndarray of bool (blocks, channels)
        Where pixels lie at an end of the range: their noise was clipped.
    n_frames, scene : ndarray (blocks,)
        How many frames there are of its scene, and which that is.
    """

    brightness: Array
    variance: Array
    n_pixels: Array
    at_low: Array
    at_high: Array
    n_frames: Array
    scene: Array

    @classmethod
    def of(cls, scenes: Sequence[Still]) -> Blocks:
        """Return the blocks of all scenes."""
        counts = [scene.n_blocks for scene in scenes]
        n_frames = np.repeat([scene.n_frames for scene in scenes], counts)
        measured = zip(*(scene.measure() for scene in scenes), strict=True)
        number = np.arange(len(scenes)).repeat(counts)
        return cls(*[*map(np.concatenate, measured), n_frames, number])

    def where(self, chosen: Array) -> Blocks:
        """Return some of them."""
        return Blocks(*(values[chosen] for values in vars(self).values()))


@dataclass(frozen=True)
class Waves:
    """Cosine coefficients of noise of level 1: mean products over blocks and frames.

    Attributes
    ----------
    energies : ndarray (channels, channels, 8, 8)
        Of squares of 8 pixels.
    large : ndarray (channels,)
        Energy of the mean of blocks of 16 pixels.
    n_squares : int
        How many squares there are, times the frames less one.
    """

    energies: Array
    large: Array
    n_squares: int

    @classmethod
    def of(cls, scenes: Sequence[Still], blocks: Blocks, good: Array) -> Waves:
        """Return those of good blocks, divided by their level."""
        n_channels = blocks.brightness.shape[1]
        energies, large = np.zeros((n_channels, n_channels, SIDE, SIDE)), np.zeros(n_channels)
        basis = scipy.fft.dct(np.eye(SIDE), axis=0, norm="ortho")
        for number, scene in enumerate(scenes):
            own = blocks.scene == number
            chosen, level = good[own], np.sqrt(blocks.variance[own & good, None, None])
            for residuals in scene.residuals():
                even = residuals[chosen] / np.maximum(level, 1e-300)
                squares = even.reshape(-1, 2, SIDE, 2, SIDE, n_channels)
                waves = np.einsum("uy,bpyqxc,vx->bpqcuv", basis, squares, basis, optimize=True)
                energies += np.einsum("bpqcuv,bpqduv->cduv", waves, waves, optimize=True)
                large += np.square(even.sum(axis=(1, 2)) / BLOCK).sum(axis=0)
        n_blocks = int((good * (blocks.n_frames - 1)).sum())  # the mean is that of the frames
        return cls(energies / (4 * n_blocks), large / n_blocks, 4 * n_blocks)

    @property
    def spectra(self) -> Array:
        """Energies of each channel by itself, (channels, 8, 8)."""
        return np.einsum("ccuv->cuv", self.energies)

    def check_even(self) -> None:
        """Refuse light that changed in parts of the picture: the larger a block, the more of it.

        With noise alone the energy of the mean is the same for blocks of both sizes; a brightness that
        changes adds its square, times the pixels of a block.
        """
        added = (self.large - self.spectra[:, 0, 0]) / (BLOCK**2 - SIDE**2)
        if (added > TOLERANCE * self.spectra.mean(axis=(1, 2))).any():
            raise ValueError(
                "the light changed between frames in parts of the picture, or something moved there: use a "
                "light that does not flicker and a scene that stands still, and calibrate again"
            )


class Still:
    """Frames of one still scene, as residuals from their mean.

    Parameters
    ----------
    frames : sequence of ndarray (blocks, 16, 16, channels)
        In the dtype of the image.
    low, high : float
        The ends of the range.
    """

    def __init__(self, frames: Sequence[Array], low: float, high: float) -> None:
        self._frames, self._ends = frames, (low, high)
        self.n_frames, self.n_blocks = len(frames), len(frames[0])
        stuck = np.logical_and.reduce([frame == high for frame in frames])  # hot pixels
        self._counts = np.logical_and.reduce([np.isfinite(frame) for frame in frames]) & ~stuck
        self._mean = np.zeros(self._counts.shape)
        for frame in frames:
            self._mean += self._counted(frame) / self.n_frames
        self._factors, self._shifts = self._drift()

    def _counted(self, values: Array) -> Array:
        """Return values with 0 for those that do not count."""
        return np.where(self._counts, values, 0.0)

    def _drift(self) -> tuple[Array, Array]:
        """Return factor and shift of the mean picture that give each frame, (frames, channels)."""
        blocks = np.stack([self._counted(frame).mean(axis=(1, 2)) for frame in self._frames])
        mean = blocks.mean(axis=0)
        away = mean - mean.mean(axis=0)
        power = np.maximum(np.square(away).sum(axis=0), 1e-300)
        change = blocks - mean
        change = change - change.mean(axis=1, keepdims=True)
        slope = (change * away).sum(axis=1) / power
        left = change - slope[:, np.newaxis] * away
        error = np.sqrt(np.square(left).mean(axis=1) / power)
        slope = np.where(np.abs(slope) > CHANCE * error, slope, 0.0)
        shift = (blocks - (1 + slope[:, np.newaxis]) * mean).mean(axis=1)
        return 1 + slope, shift

    def residuals(self) -> Iterator[Array]:
        """Yield how each frame differs from the mean, 0 where pixels do not count."""
        for frame, factor, shift in zip(self._frames, self._factors, self._shifts, strict=True):
            yield self._counted(frame - (factor * self._mean + shift))

    def leave_out(self, limit: Array) -> None:
        """Count pixels no more that differ by more than a limit (blocks, channels) in any frame."""
        far = np.maximum.reduce([np.abs(own) for own in self.residuals()])
        self._counts = self._counts & (far <= limit[:, np.newaxis, np.newaxis])

    def measure(self) -> tuple[Array, ...]:
        """Return brightness, variance, how many pixels count, and what lies at the ends, of each block."""
        n = self._counts.sum(axis=(1, 2))
        squares = np.sum([np.square(own).sum(axis=(1, 2)) for own in self.residuals()], axis=0)
        variance = squares / np.maximum(n * (self.n_frames - 1), 1)
        brightness = self._counted(self._mean).sum(axis=(1, 2)) / np.maximum(n, 1)
        at_ends = [
            np.mean([(frame == end).mean(axis=(1, 2)) for frame in self._frames], axis=0)
            for end in self._ends
        ]
        return brightness, variance, n, *(share > _AT_THE_END for share in at_ends)

    def check_still(self) -> None:
        """Refuse frames that moved: a shift explains more of their variance than may be wrong."""
        inner = np.s_[:, 1:-1, 1:-1]
        slopes = np.stack(
            [
                (self._mean[:, 2:, 1:-1] - self._mean[:, :-2, 1:-1])[self._counts[inner]] / 2,
                (self._mean[:, 1:-1, 2:] - self._mean[:, 1:-1, :-2])[self._counts[inner]] / 2,
            ]
        )
        inverse = np.linalg.pinv(slopes @ slopes.T)
        for residuals in self.residuals():
            own = residuals[inner][self._counts[inner]]
            right = slopes @ own
            shift = inverse @ right
            if shift @ right > TOLERANCE * (own @ own):
                raise ValueError(
                    f"frames moved between shots, one of them by {np.hypot(*shift):.2g} pixels: use a "
                    "tripod and a remote release, or an even surface out of focus, and calibrate again"
                )
