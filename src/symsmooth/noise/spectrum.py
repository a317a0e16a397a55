"""The spectrum of noise: energies of 8 x 8 cosines, and filtering by its root.

Cameras demosaic, smooth and compress; microscopes blur: their noise is coarse.  A method for white noise
sees little of it.  Divided by the root of its spectrum, such noise is white; the Wiener filter does not
mind (it commutes with invertible linear maps), so the whole of GSF-W serves, and the division is undone.

References
----------
M. Colom, M. Lebrun, A. Buades, J.-M. Morel, "A non-parametric approach for the estimation of
intensity-frequency dependent noise", ICIP 2014, doi:10.1109/ICIP.2014.7025865.
"""

from __future__ import annotations

import functools

import numpy as np
import scipy.fft

from .. import _native
from ..core.image import Array, Float
from .evidence import RING, SIDE

_FLOOR = 0.1  # the spectrum is at least this share of its mean; 0.03: -0.1 to -0.4 dB on simulated cameras


def filter_by_root(pixels: Float, energies: Array, inverse: bool) -> Float:
    """Multiply the channels of (*spatial, channels) by the roots of their spectra, or divide.

    ``energies`` are (channels, 8, 8), or (channels, 1, 1) where the noise is white.
    """
    channels = np.moveaxis(pixels, -1, 0)
    filtered = np.empty_like(channels)
    for own, plane, out in zip(energies, channels, filtered, strict=True):
        if own.size == 1:
            level = np.float32(np.sqrt(own.item()))
            out[...] = plane / level if inverse else plane * level
            continue
        for index in np.ndindex(plane.shape[:-2]):
            out[index] = _filter_plane(plane[index], own, inverse)
    return np.moveaxis(filtered, 0, -1)


def _filter_plane(plane: Float, energies: Array, inverse: bool) -> Float:
    """Filter (y, x) by the root of the spectrum or by its inverse.

    The spectrum is even, so a cosine transform of the mirrored picture is exact and has no seam.
    """
    rows, columns = _waves(energies.astype(np.float64).tobytes(), plane.shape)
    least = _FLOOR * energies.mean()
    spectrum = scipy.fft.dctn(np.array(plane, order="C"), norm="ortho", overwrite_x=True)
    _native.scale_by_root(spectrum, rows, columns, least, inverse)
    return scipy.fft.idctn(spectrum, norm="ortho", overwrite_x=True)


@functools.lru_cache(maxsize=32)  # of pieces most have the same shape
def _waves(energy_bytes: bytes, shape: tuple[int, ...]) -> tuple[Float, Float]:
    """Return the spectrum at the frequencies of a cosine transform of ``shape`` (y, x), as a product.

    The covariance of an 8 x 8 block, of the energies whose bytes are given, is averaged along its lags,
    tapered, and summed against cosines.
    """
    energies = np.frombuffer(energy_bytes).reshape(SIDE, SIDE)
    basis = scipy.fft.dct(np.eye(SIDE), axis=0, norm="ortho")  # (frequency, position)
    lags = np.zeros((SIDE, SIDE))  # (frequency, lag): autocovariance of a basis function
    for lag in range(SIDE):
        lags[:, lag] = (basis[:, lag:] * basis[:, : SIDE - lag]).sum(axis=1) / (SIDE - lag)
    taper = np.hanning(2 * SIDE + 1)[SIDE:-1] ** 0.25
    covariance = lags.T @ energies @ lags * np.outer(taper, taper)
    twice = np.where(np.arange(SIDE) > 0, 2.0, 1.0)
    rows, columns = (
        twice * np.cos(np.pi * np.outer(np.arange(size), np.arange(SIDE)) / size) for size in shape
    )
    return (rows @ covariance).astype(np.float32), np.ascontiguousarray(columns.T, np.float32)


def coarse_shares(energies: Array) -> Array:
    """Return how far each channel (channels, 8, 8) has coarse noise: 0 if white, 1 if none is fine."""
    middle, high = (energies[:, np.isin(RING, rings)].mean(axis=1) for rings in ((3, 4), (5, 6)))
    return np.clip(1 - high / np.maximum(middle, 1e-30), 0.0, 1.0)


def sample_energies(noise: Array) -> Array:
    """Return the mean energies of the 8 x 8 cosines of pure noise (y, x, channels): (channels, 8, 8)."""
    basis = scipy.fft.dct(np.eye(SIDE), axis=0, norm="ortho")
    windows = np.lib.stride_tricks.sliding_window_view(noise, (SIDE, SIDE), axis=(0, 1))
    return np.square(basis @ windows @ basis.T).mean(axis=(0, 1))


def without_plane(ground: Array) -> Array:
    """Return flat ground (y, x, channels) without its brightness and slope."""
    height, width, n_channels = ground.shape
    y, x = np.indices((height, width)).reshape(2, -1)
    plane = np.stack([np.ones(height * width), y, x], axis=1)
    pixels = ground.reshape(-1, n_channels).astype(np.float64)
    fitted = plane @ np.linalg.lstsq(plane, pixels, rcond=None)[0]
    return (pixels - fitted).reshape(ground.shape)
