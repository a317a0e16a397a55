"""What the stages of GSF-W are given: pixels with white noise, and what is known of both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.ndimage

from ..core.blocks import Box
from ..core.channels import mix
from ..core.fill import fill_missing
from ..core.image import Array, Float
from ..core.multiscale import halve
from ..noise import contrast
from .motion import align


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
    contrast : float
        Spread of the whole clean picture in units of the noise.
    is_series : bool
        Whether the first axis is time.
    """

    pixels: Float
    observed: Float | None
    sigma: float
    contrast: float
    is_series: bool = False

    @property
    def spatial(self) -> tuple[int, ...]:
        """Shape without the channels."""
        return self.pixels.shape[:-1]

    @property
    def n_channels(self) -> int:
        """Number of channels."""
        return self.pixels.shape[-1]

    def part(self, box: Box) -> Observation:
        """Return what lies in a box."""
        observed = None if self.observed is None else self.observed[box]
        return replace(self, pixels=self.pixels[box], observed=observed)

    def mixed(self, transform: Float) -> Observation:
        """Return the observation with its channels mixed by an orthonormal transform: noise stays white."""
        return replace(self, pixels=mix(self.pixels, transform))

    def padded(self, widths: Sequence[tuple[int, int]]) -> Observation:
        """Return the observation mirrored at its ends by (before, after) pixels along each axis."""
        pixels = np.pad(self.pixels, [*widths, (0, 0)], mode="symmetric")
        observed = self.observed
        if observed is not None:
            observed = np.pad(observed, widths, mode="symmetric")
        return replace(self, pixels=pixels, observed=observed)

    def aligned(self, motion: Array) -> Observation:
        """Return a series whose frames are moved back by their motion.

        Missing pixels are filled anew, from what now lies around them in other frames too.
        """
        pixels = align(self.pixels, motion)
        if self.observed is None:
            return replace(self, pixels=pixels)
        observed = align(self.observed, motion)
        return replace(self, pixels=fill_missing(pixels, observed == 0), observed=observed)

    def halved(self) -> Observation:
        """Return the observation at half size, where there is less noise."""
        pixels = halve(self.pixels)
        observed = None if self.observed is None else halve(self.observed[..., np.newaxis])[..., 0]
        sigma = self.sigma * 0.5 ** (len(self.spatial) / 2)
        return Observation(pixels, observed, sigma, contrast(pixels, sigma))

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
