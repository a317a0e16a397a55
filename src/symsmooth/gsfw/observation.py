"""What GSF-W is given: pixels with white noise, and the scene that they are, or are a part of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.ndimage

from ..core.blocks import Box, Tiling, tiling
from ..core.channels import Groups, covariance, mix, transform_for
from ..core.image import Array, Float, Picture
from ..core.multiscale import halve
from .motion import Motion, find_motion, is_earlier

_TOGETHER = 1 << 16  # pixels whose variance is added up at a time


@dataclass(frozen=True, eq=False)
class Scene:
    """What choices that hold for a whole picture are made from; its pieces have it from a sample.

    Attributes
    ----------
    variance : float64 ndarray (channels,)
    covariance : float64 ndarray (channels, channels) or None
        None where no group of channels needs it.
    groups : tuple of tuple of int
        The channels that are denoised together.
    """

    variance: Array
    covariance: Array | None
    groups: Groups

    @classmethod
    def of(cls, pixels: Float, groups: Groups | None = None) -> Scene:
        """Look at pixels (*spatial, channels); all channels are one group if nothing else is said."""
        n_channels = pixels.shape[-1]
        groups = groups or (tuple(range(n_channels)),)
        variance = np.array([_variance(pixels[..., c]) for c in range(n_channels)])
        is_asked = any(len(group) not in (1, 3) for group in groups)
        return cls(variance, covariance(pixels) if is_asked else None, groups)

    def only(self, group: tuple[int, ...]) -> Scene:
        """Return the scene of some channels, one group."""
        chosen = list(group)
        own = None if self.covariance is None else self.covariance[np.ix_(chosen, chosen)]
        return Scene(self.variance[chosen], own, (tuple(range(len(group))),))

    def contrast(self, sigma: float) -> float:
        """Return the spread of the clean picture in units of the noise: see :func:`noise.contrast`."""
        return float(np.sqrt(max(float(self.variance.mean()) / sigma**2 - 1.0, 1e-4)))

    def decorrelating(self, sigma: float) -> Float:
        """Return the orthonormal transform (channels, channels) that gathers it in few channels."""
        return transform_for(len(self.variance), self.covariance, sigma)


@dataclass(frozen=True)
class Observation:
    """A picture, or a part of it, with white noise.

    Attributes
    ----------
    pixels : float32 ndarray (*spatial, channels)
    observed : float32 ndarray (*spatial) or None
        The share of a pixel that was observed: 0 where it is missing, 1 where it is not, between them at
        half size; None if no pixel is missing.
    sigma : float
        Standard deviation of the noise.
    scene : Scene
    is_series : bool
        Whether the first axis is time.
    is_piece : bool
        Whether it was cut from a larger picture.
    motion : Motion or None
        Of a series whose axes are (y, t, x).
    """

    pixels: Float
    observed: Float | None
    sigma: float
    scene: Scene
    is_series: bool = False
    is_piece: bool = False
    motion: Motion | None = None

    @classmethod
    def of(cls, pixels: Float, sigma: float, mask: Array | None = None) -> Observation:
        """Return what is no piece of anything: (*spatial, channels), and where a pixel is missing."""
        observed = None if mask is None else (~mask).astype(np.float32)
        return cls(pixels, observed, sigma, Scene.of(pixels))

    @classmethod
    def of_picture(
        cls, picture: Picture, sigma: float, pixels: Float | None = None, scene: Scene | None = None
    ) -> Observation:
        """Return a picture as it was observed, or with other pixels: those whose noise is white."""
        pixels = picture.noisy if pixels is None else pixels
        observed = None if picture.mask is None else picture.observed
        scene = scene or Scene.of(pixels, picture.groups)
        is_series, is_piece = picture.time_axis is not None, picture.whole is not None
        return cls(pixels, observed, sigma, scene, is_series, is_piece)

    @property
    def spatial(self) -> tuple[int, ...]:
        """Shape without the channels."""
        return self.pixels.shape[:-1]

    @property
    def n_channels(self) -> int:
        """Number of channels."""
        return self.pixels.shape[-1]

    @property
    def contrast(self) -> float:
        """Spread of the whole clean picture in units of the noise."""
        return self.scene.contrast(self.sigma)

    def only(self, group: tuple[int, ...]) -> Observation:
        """Return the observation of some channels, one group."""
        pixels = np.ascontiguousarray(self.pixels[..., list(group)])
        return replace(self, pixels=pixels, scene=self.scene.only(group))

    def part(self, box: Box) -> Observation:
        """Return what lies in a box."""
        observed = None if self.observed is None else self.observed[box]
        return replace(self, pixels=self.pixels[box], observed=observed)

    def mixed(self, transform: Float) -> Observation:
        """Return the observation with its channels mixed by an orthonormal transform: noise stays white."""
        return replace(self, pixels=mix(self.pixels, transform))

    def padded(self, widths: Sequence[tuple[int, int]]) -> Observation:
        """Return the observation mirrored at its ends by (before, after) pixels along each axis."""
        channels = np.moveaxis(self.pixels, -1, 0)  # as they lie in memory
        pixels = np.moveaxis(np.pad(channels, [(0, 0), *widths], mode="symmetric"), 0, -1)
        observed = self.observed
        if observed is not None:
            observed = np.pad(observed, widths, mode="symmetric")
        return replace(self, pixels=pixels, observed=observed)

    def followed(self) -> Observation:
        """Return a series (t, y, x) as (y, t, x), with its motion.

        So the patches of a cluster, of all frames, are near each other in memory.  Missing pixels are taken
        from where they are in the frame beside theirs, if they are not missing there.
        """
        motion = find_motion(np.ascontiguousarray(self.pixels[..., 0]), self.sigma)
        channels = np.moveaxis(
            self.pixels.swapaxes(0, 1), -1, 0
        )  # each of which lies together in memory
        pixels = np.moveaxis(np.ascontiguousarray(channels), 0, -1)
        observed = self.observed
        if observed is not None:
            observed = np.ascontiguousarray(observed.swapaxes(0, 1))
            beside = motion.beside(pixels.shape[0], pixels.shape[2])
            known = (observed == 0.0) & (observed.reshape(-1)[beside] > 0.0)
            pixels[known] = _taken(pixels, beside[known])
        return replace(self, pixels=pixels, observed=observed, motion=motion)

    def frame(self, t: int) -> Observation:
        """Return a frame of a series (t, y, x) as a picture, which is a scene of its own."""
        pixels, observed = self.pixels[t], None if self.observed is None else self.observed[t]
        return Observation(pixels, observed, self.sigma, Scene.of(pixels))

    def paired(self, beside: Array) -> Observation:
        """Return the first channel of a series with that of the frame beside each, earlier first."""
        observed = self.observed
        if observed is not None:
            observed = np.minimum(observed, observed.reshape(-1)[beside])
        return replace(self, pixels=with_beside(self.pixels[..., :1], beside), observed=observed)

    def tiles(self, grid: tuple[int, int, int]) -> Tiling:
        """Cut the positions of patches into tiles, which move in a series."""
        return tiling(grid) if self.motion is None else self.motion.tiles(grid)

    def halved(self) -> Observation:
        """Return the observation at half size, where there is less noise."""
        pixels = halve(self.pixels)
        observed = None if self.observed is None else halve(self.observed[..., np.newaxis])[..., 0]
        sigma = self.sigma * 0.5 ** (len(self.spatial) / 2)
        return Observation(pixels, observed, sigma, Scene.of(pixels))

    def fed_back(self, pilot: Float, share: float) -> Observation:
        """Return a pilot to which a share of the noise that it lost is given again."""
        pixels = pilot + np.float32(share) * (self.pixels - pilot)
        return replace(self, pixels=pixels, sigma=share * self.sigma)

    def patch_weights(self, extent: tuple[int, ...]) -> Float | None:
        """Return the share of each patch inside the picture that was observed; None if all of all were."""
        if self.observed is None:
            return None
        share = scipy.ndimage.uniform_filter(self.observed, extent, mode="reflect")
        inside = tuple(
            slice(side // 2, side // 2 + size - side + 1)
            for size, side in zip(self.spatial, extent, strict=True)
        )
        return np.ascontiguousarray(share[inside])


def _variance(values: Float) -> float:
    """Return the variance, in float64 but without a copy of all values in it."""
    mean, n_rows = values.mean(dtype=np.float64), max(_TOGETHER // values[0].size, 1)
    bands = (values[at : at + n_rows] - mean for at in range(0, len(values), n_rows))
    return sum(float(np.vdot(band, band)) for band in bands) / values.size


def with_beside(values: Float, beside: Array) -> Float:
    """Return values (y, t, x, channels) with those of the frame beside theirs, earlier first."""
    n_channels = values.shape[-1]
    both = np.empty((*values.shape[:-1], 2 * n_channels), np.float32)
    for c in range(n_channels):
        own = np.ascontiguousarray(values[..., c])
        other = own.reshape(-1)[beside]
        for t, is_first in enumerate(is_earlier(own.shape[1])):
            one, two = (own, other) if is_first else (other, own)
            both[:, t, :, c], both[:, t, :, n_channels + c] = one[:, t], two[:, t]
    return both


def _taken(pixels: Float, numbers: Array) -> Float:
    """Return the pixels (*spatial, channels) of these numbers."""
    return pixels.reshape(-1, pixels.shape[-1])[numbers]
