"""A sensor: raw mosaics with known noise, and a simple way to develop them.

Where :mod:`symsmooth_repro.camera` makes the JPEG of a camera, this stops at the mosaic: photons with
Poisson noise, read noise, rounding and clipping.  Development is one of the simplest, the same for
all: Malvar's demosaicing (colour differences by normalised convolution where the pattern is not Bayer's),
white balance, sRGB curve.

References
----------
H. S. Malvar, L. He, R. Cutler, "High-quality linear interpolation for demosaicing of Bayer-patterned color
images", ICASSP 2004, doi:10.1109/ICASSP.2004.1326587.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.ndimage

from symsmooth.core.image import Array
from symsmooth.noise import NoiseModel, PoissonGaussian
from symsmooth.raw.mosaic import parse_pattern, tiled

BALANCE = np.array([0.5, 1.0, 0.6])  # what the sensor sees of red, green, blue in white light


@dataclass(frozen=True)
class Sensor:
    """A sensor of so many electrons a pixel."""

    peak: float  # electrons at white
    pattern: str = "RGGB"
    read: float = 1.0  # standard deviation of the read noise, electrons
    black: int = 1024
    white: int = 15360

    @property
    def gain(self) -> float:
        """Units of a pixel for an electron."""
        return (self.white - self.black) / self.peak

    @property
    def noise(self) -> NoiseModel:
        """The true law of the noise, for light above black."""
        return PoissonGaussian((self.gain,) * 3, ((self.gain * self.read) ** 2,) * 3)

    def expose(self, scene: Array, seed: int = 0) -> tuple[Array, Array]:
        """Return the mosaic of an sRGB scene (y, x, 3) in 0 to 1: noisy (uint16) and clean (float64).

        Examples
        --------
        >>> import numpy as np
        >>> noisy, clean = Sensor(peak=100).expose(np.full((4, 4, 3), 0.5))
        >>> noisy.dtype, clean.shape
        (dtype('uint16'), (4, 4))
        """
        colours = tiled(parse_pattern(self.pattern), scene.shape[:2])
        linear = np.where(scene <= 0.04045, scene / 12.92, ((scene + 0.055) / 1.055) ** 2.4)
        light = np.take_along_axis(linear * BALANCE, colours[..., np.newaxis], -1)[..., 0]
        rng = np.random.default_rng(seed)
        electrons = rng.poisson(light * self.peak) + self.read * rng.standard_normal(light.shape)
        noisy = np.clip(np.rint(self.gain * electrons + self.black), 0, self.white)
        return noisy.astype(np.uint16), self.gain * self.peak * light + self.black

    def develop(self, mosaic: Array) -> Array:
        """Return the sRGB picture (y, x, 3) in 0 to 1."""
        pattern = parse_pattern(self.pattern)
        light = (mosaic.astype(np.float64) - self.black) / (self.white - self.black)
        colours = tiled(pattern, mosaic.shape)
        demosaic = _malvar if pattern.shape == (2, 2) else _by_differences
        linear = np.clip(demosaic(light, colours) / BALANCE, 0.0, 1.0)
        curve = 1.055 * linear ** (1 / 2.4) - 0.055
        return np.where(linear <= 0.0031308, 12.92 * linear, curve)


def _malvar(light: Array, colours: Array) -> Array:
    """Demosaic a Bayer mosaic; kernels are those of the paper, times 1/8."""
    green = [
        [0, 0, -1, 0, 0],
        [0, 0, 2, 0, 0],
        [-1, 2, 4, 2, -1],
        [0, 0, 2, 0, 0],
        [0, 0, -1, 0, 0],
    ]
    row = [
        [0, 0, 0.5, 0, 0],
        [0, -1, 0, -1, 0],
        [-1, 4, 5, 4, -1],
        [0, -1, 0, -1, 0],
        [0, 0, 0.5, 0, 0],
    ]
    far = [
        [0, 0, -1.5, 0, 0],
        [0, 2, 0, 2, 0],
        [-1.5, 0, 6, 0, -1.5],
        [0, 2, 0, 2, 0],
        [0, 0, -1.5, 0, 0],
    ]
    kernels = [np.array(green), np.array(row), np.array(row).T, np.array(far)]
    at_other, in_row, in_column, across = (
        scipy.ndimage.convolve(light, kernel / 8, mode="mirror") for kernel in kernels
    )
    out = np.empty((*light.shape, 3))
    out[..., 1] = np.where(colours == 1, light, at_other)
    red_rows = (colours == 0).any(axis=1)[:, np.newaxis]
    for colour, rows in ((0, red_rows), (2, ~red_rows)):
        beside = np.where(colours == 1, np.where(rows, in_row, in_column), across)
        out[..., colour] = np.where(colours == colour, light, beside)
    return out


def _by_differences(light: Array, colours: Array) -> Array:
    """Demosaic any pattern: green blurred into its gaps, then blurred differences from it."""

    def spread(values: Array, seen: Array, width: float) -> Array:
        total = scipy.ndimage.gaussian_filter(values * seen, width, mode="mirror")
        weight = scipy.ndimage.gaussian_filter(seen.astype(float), width, mode="mirror")
        return total / np.maximum(weight, 1e-6)

    green = np.where(colours == 1, light, spread(light, colours == 1, 0.6))
    red, blue = (green + spread(light - green, colours == colour, 1.2) for colour in (0, 2))
    return np.stack([red, green, blue], axis=-1)
