"""Spatially correlated noise: its spectrum, estimated from the image, and whitening by it.

Cameras demosaic, smooth and compress; microscopes blur: their noise is coarse.  A method for white noise
sees little of it.  Divided by the root of its spectrum, such noise is white; the Wiener filter does not
mind (it commutes with invertible linear maps), so the whole of GSF-W serves, and the division is undone.

References
----------
M. Colom, M. Lebrun, A. Buades, J.-M. Morel, "A non-parametric approach for the estimation of
intensity-frequency dependent noise", ICIP 2014, doi:10.1109/ICIP.2014.7025865.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import scipy.fft
from numpy.typing import ArrayLike

from ..core.channels import decorrelate, mix
from ..core.image import Array, Float
from .curve import LevelCurve
from .finding import Found
from .regions import RING, SIDE, dct_blocks

_FLOOR = 0.1  # the spectrum is at least this share of its mean; 0.03: -0.1 to -0.4 dB on simulated cameras


@dataclass(frozen=True)
class Correlated(Found):
    """Noise with a spectrum: variances of its 8 x 8 DCT coefficients, in decorrelated channels.

    Attributes
    ----------
    variances : ndarray (channels, 8, 8), in the image's units squared
    transform : ndarray (channels, channels), orthonormal; channels are ``pixels @ transform``
    curve : LevelCurve or None
        Its level against brightness, if it depends on it.
    level : ndarray (*spatial, 1) or None
        That level at each pixel of the picture that it was bound to.
    """

    variances: Array
    transform: Array
    curve: LevelCurve | None = None
    level: Float | None = field(default=None, compare=False, repr=False)

    kind = "correlated"

    def __str__(self) -> str:
        rms = np.sqrt(self.variances.mean(axis=(1, 2)))
        levels = ", ".join(f"{v:.4g}" for v in rms)
        return f"correlated noise, standard deviation {levels}, {coarseness(self.variances):.0f} x coarse"

    @property
    def sigma(self) -> float:
        """Root mean square over all frequencies and channels."""
        return float(np.sqrt(self.variances.mean()))

    def fits(self, shape: tuple[int, ...]) -> bool:
        """Whether it can be the noise of (*spatial, channels)."""
        return len(self.variances) == shape[-1]

    def in_units(self, offset: float, scale: float) -> Correlated:
        """Return the model for pixels (image - offset) / scale."""
        curve = self.curve and self.curve.in_units(offset, scale)
        finding = self.finding_in(scale)
        return replace(self, variances=self.variances / scale**2, curve=curve, finding=finding)

    def bind(self, noisy: Float) -> Correlated:
        """Return the model with its level at each pixel of this picture, (*spatial, channels)."""
        return self if self.curve is None else replace(self, level=self.curve.at(noisy))

    def whiten(self, noisy: Float) -> Float:
        """Divide by the level, then by the root of the spectrum, channel by channel."""
        even = noisy if self.level is None else noisy / self.level
        return self._filter(even, inverse=True)

    def restore(self, denoised: Float) -> Float:
        """Undo :meth:`whiten`."""
        even = self._filter(denoised, inverse=False)
        return even if self.level is None else even * self.level

    def _filter(self, pixels: Float, inverse: bool) -> Float:
        """Multiply by the root of the spectrum, or divide, plane by plane, borders mirrored."""
        channels = np.moveaxis(mix(pixels, self.transform.astype(np.float32)), -1, 0)
        filtered = np.empty_like(channels)
        for variances, plane, out in zip(self.variances, channels, filtered, strict=True):
            for index in np.ndindex(plane.shape[:-2]):
                out[index] = _filter_plane(plane[index], variances, inverse)
        return mix(np.moveaxis(filtered, 0, -1), self.transform.T.astype(np.float32))


def _filter_plane(plane: Float, variances: Array, inverse: bool) -> Float:
    """Filter (y, x) by the root of the spectrum or by its inverse.

    The spectrum is even, so a cosine transform of the mirrored picture is exact and has no seam.
    """
    root = np.sqrt(power(variances, plane.shape))
    spectrum = scipy.fft.dctn(plane, type=2, norm="ortho")
    spectrum = spectrum / root if inverse else spectrum * root
    return scipy.fft.idctn(spectrum, type=2, norm="ortho")


def power(variances: Array, shape: tuple[int, ...]) -> Float:
    """Return the spectrum at the frequencies of a cosine transform of ``shape`` (y, x).

    The covariance of an 8 x 8 block is averaged along its lags, tapered, and summed against cosines.
    """
    basis = scipy.fft.dct(np.eye(SIDE), axis=0, norm="ortho")  # (frequency, position)
    lags = np.zeros((SIDE, SIDE))  # (frequency, lag): autocovariance of a basis function
    for lag in range(SIDE):
        lags[:, lag] = (basis[:, lag:] * basis[:, : SIDE - lag]).sum(axis=1) / (SIDE - lag)
    taper = np.hanning(2 * SIDE + 1)[SIDE:-1] ** 0.25
    covariance = lags.T @ variances @ lags * np.outer(taper, taper)
    twice = np.where(np.arange(SIDE) > 0, 2.0, 1.0)
    waves = [
        twice * np.cos(np.pi * np.outer(np.arange(size), np.arange(SIDE)) / size) for size in shape
    ]
    found = waves[0] @ covariance @ waves[1].T
    return np.maximum(found, _FLOOR * variances.mean()).astype(np.float32)


def coarseness(variances: Array) -> Array:
    """Return how many times more noise there is at middle than at high frequencies: 1 if it is white.

    Of spectra (..., channels, 8, 8), the median of the channels: in colour, texture is in one of them only.
    """
    middle = variances[..., RING == 2].mean(axis=-1)
    high = variances[..., RING == 5].mean(axis=-1)
    return np.median(middle / np.maximum(high, 1e-30), axis=-1)


def spectrum_of_noise(sample: ArrayLike, channel_axis: int | None = None) -> Correlated:
    """Return the spectrum of a piece of pure noise, (y, x) or with channels.

    Examples
    --------
    >>> import numpy as np
    >>> noise = np.random.default_rng(0).normal(0.0, 3.0, (64, 64))
    >>> bool(abs(spectrum_of_noise(noise).sigma - 3.0) < 0.2)
    True
    """
    noise = np.asarray(sample, np.float64)
    noise = noise[..., np.newaxis] if channel_axis is None else np.moveaxis(noise, channel_axis, -1)
    if noise.ndim != 3 or min(noise.shape[:2]) < 2 * SIDE:
        raise ValueError(
            f"a sample of noise must be 2-D, plus channels, and at least {2 * SIDE} pixels wide, "
            f"got shape {np.shape(sample)}"
        )
    noise = noise - noise.mean(axis=(0, 1))
    transform = decorrelate(noise.astype(np.float32), 0.0)
    squares = dct_blocks(noise @ transform, 1) ** 2
    variances = squares.mean(axis=(0, 1))
    return Correlated(away_from_zero(variances), transform)


def spectrum_of_ground(ground: Array) -> Correlated:
    """Return the spectrum of the noise on flat ground (y, x, channels): what is left of it without a plane.

    Examples
    --------
    >>> import numpy as np
    >>> slope = np.add.outer(np.arange(40.0), np.arange(50.0))[..., np.newaxis]
    >>> noise = np.random.default_rng(0).normal(0.0, 3.0, slope.shape)
    >>> bool(abs(spectrum_of_ground(slope + noise).sigma - 3.0) < 0.3)
    True
    """
    height, width, n_channels = ground.shape
    y, x = np.indices((height, width)).reshape(2, -1)
    plane = np.stack([np.ones(height * width), y, x], axis=1)
    pixels = ground.reshape(-1, n_channels).astype(np.float64)
    fitted = plane @ np.linalg.lstsq(plane, pixels, rcond=None)[0]
    return spectrum_of_noise((pixels - fitted).reshape(ground.shape), -1)


def away_from_zero(variances: Array) -> Array:
    """Keep every channel away from zero, so that it can be divided by."""
    least = 1e-4 * float(variances.mean()) + 1e-20
    return np.maximum(variances, least)
