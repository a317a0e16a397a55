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

from dataclasses import dataclass

import numpy as np
import scipy.fft
from numpy.typing import ArrayLike

from ..channels import decorrelate, mix
from ..image import Array, Float, Picture

_SIDE = 8  # of the DCT blocks
_KEPT = 0.9  # share of the squares that is averaged: the largest are edges
_KEPT_SQUARE = 0.623  # what that leaves of the variance of Gaussian noise
_FLATTEST = 0.02  # share of the blocks of a brightness that is used, but no fewer than _FEWEST
_FEWEST = 100
_BRIGHTNESSES = 6
_FLOOR = 0.1  # the spectrum is at least this share of its mean; 0.03: -0.1 to -0.4 dB on simulated cameras
_SURPLUS = (
    1.1  # of the level, for what no block shows; simulated cameras: 1.0 -.03, 1.2 -.07 to -.23 dB
)
_MOST_UNEVEN = (1.4, 2.2)  # times the variance of the quietest brightness: first channel, others
_MOST_SLOPE = 1.3  # of the first channel's spectrum, in that of the others, towards frequency zero
_MOST_COLOURED = 4.0  # times the variance of the quietest channel; simulated cameras have up to 2.8
_MOST_SCATTER = (
    3.0  # of energies in a grey picture, texture has 2 to 20, simulated cameras 1.4 to 2.5
)
_LARGEST = 1024 * 1024  # pixels that are looked at
_ORDER = np.add.outer(np.arange(_SIDE), np.arange(_SIDE))
_MIDDLE = (_ORDER >= 2) & (_ORDER <= 4)  # frequencies


@dataclass(frozen=True)
class Correlated:
    """Noise with a spectrum: variances of its 8 x 8 DCT coefficients, in decorrelated channels.

    Attributes
    ----------
    variances : ndarray (channels, 8, 8), in the image's units squared
    transform : ndarray (channels, channels), orthonormal; channels are ``pixels @ transform``
    """

    variances: Array
    transform: Array

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
        return Correlated(self.variances / scale**2, self.transform)

    def whiten(self, noisy: Float) -> Float:
        """Divide by the root of the spectrum, channel by channel: white noise of variance 1."""
        return self._filter(noisy, inverse=True)

    def restore(self, denoised: Float) -> Float:
        """Undo :meth:`whiten`."""
        return self._filter(denoised, inverse=False)

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
    basis = scipy.fft.dct(np.eye(_SIDE), axis=0, norm="ortho")  # (frequency, position)
    lags = np.zeros((_SIDE, _SIDE))  # (frequency, lag): autocovariance of a basis function
    for lag in range(_SIDE):
        lags[:, lag] = (basis[:, lag:] * basis[:, : _SIDE - lag]).sum(axis=1) / (_SIDE - lag)
    taper = np.hanning(2 * _SIDE + 1)[_SIDE:-1] ** 0.25
    covariance = lags.T @ variances @ lags * np.outer(taper, taper)
    twice = np.where(np.arange(_SIDE) > 0, 2.0, 1.0)
    waves = [
        twice * np.cos(np.pi * np.outer(np.arange(size), np.arange(_SIDE)) / size) for size in shape
    ]
    found = waves[0] @ covariance @ waves[1].T
    return np.maximum(found, _FLOOR * variances.mean()).astype(np.float32)


def coarseness(variances: Array) -> Array:
    """Return how many times more noise there is at middle than at high frequencies: 1 if it is white.

    Of spectra (..., channels, 8, 8), the median of the channels: in colour, texture is in one of them only.
    """
    middle = np.median(variances[..., _MIDDLE], axis=-1)
    high = np.median(variances[..., _ORDER >= 9], axis=-1)
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
    if noise.ndim != 3 or min(noise.shape[:2]) < 2 * _SIDE:
        raise ValueError(
            f"a sample of noise must be 2-D, plus channels, and at least {2 * _SIDE} pixels wide, "
            f"got shape {np.shape(sample)}"
        )
    noise = noise - noise.mean(axis=(0, 1))
    transform = decorrelate(noise.astype(np.float32), 0.0)
    squares = _blocks(noise @ transform, 1) ** 2
    variances = squares.mean(axis=(0, 1))
    return Correlated(_known_floor(variances), transform)


def fit_spectrum(picture: Picture) -> tuple[Correlated, float]:
    """Estimate the spectrum of the noise, in the picture's units, and how coarse it is at least.

    A block is used if the blocks around it are flat (never by its own energy, which would choose
    blocks of little noise); of its coefficients' squares the largest are left out; brightness classes
    are estimated apart and the median taken, a lower quantile in the first channel, where texture is.
    What a class or a channel has far above the others is texture and capped (:func:`_without_texture`).
    What is uniform in a block cannot be seen: it is extrapolated.

    Also returned: the second lowest :func:`coarseness` of the classes.  Noise is coarse at all
    brightnesses, texture seldom covers them all.  In grey it is 1, not coarse, where the energy of blocks
    varies more than _MOST_SCATTER times as much as that of noise: noise is everywhere alike.
    """
    transform = decorrelate(picture.noisy, 0.0)
    planes = _planes(picture)
    if not planes:
        smallest = min(picture.noisy.shape[-3:-1])
        raise ValueError(
            f"correlated noise cannot be estimated from {smallest} pixels, it takes {_SIDE} by "
            f"{_SIDE}; give a sample of the noise"
        )
    stride = 2 if sum(plane.size for plane in planes) < _LARGEST // 4 else 4
    blocks, texture = [], []
    for plane in planes:
        found = _blocks(mix(plane, transform), stride)
        blocks.append(found.reshape(-1, *found.shape[2:]))
        texture.append(_texture_around(found, _SIDE // stride).reshape(-1))
    all_blocks, all_texture = np.concatenate(blocks), np.concatenate(texture)
    brightness = all_blocks[:, 0, 0, 0]
    order = np.argsort(brightness, kind="stable")
    groups, scatter = [], []
    for group in np.array_split(order, min(_BRIGHTNESSES, len(order))):
        count = min(max(round(_FLATTEST * len(group)), _FEWEST), len(group))
        flat = group[np.argsort(all_texture[group], kind="stable")[:count]]
        squares = np.sort(all_blocks[flat] ** 2, axis=0)
        kept = max(round(_KEPT * len(squares)), 1)
        groups.append(squares[:kept].mean(axis=0) / _KEPT_SQUARE)
        scatter.append(_scatter(all_blocks[flat, 0], groups[-1][0]))
    variances = _without_texture(np.array(groups))
    coarse = np.sort(coarseness(np.array(groups)))[:2].max()
    if len(variances) == 1 and np.median(scatter) > _MOST_SCATTER:
        coarse = 1.0
    model = Correlated(_known_floor(_SURPLUS**2 * _extrapolated(variances)), transform)
    return model, float(coarse)


def _without_texture(groups: Array) -> Array:
    """Return the spectra (channels, 8, 8) from those of the brightness classes, (classes, channels, 8, 8).

    The median of the classes, a lower quantile in the first channel, where most texture is.  Texture only
    adds: more than _MOST_UNEVEN times the quietest class is not noise, nor in colour what is more than
    _MOST_COLOURED times the quietest channel, or rises much more steeply than the other channels do.
    """
    found = np.median(groups, axis=0)
    found[0] = np.quantile(groups[:, 0], 1 / 3, axis=0)
    level = found[:, _MIDDLE].mean(axis=-1)
    uneven = np.where(np.arange(len(found)) == 0, *_MOST_UNEVEN)
    limit = uneven * groups[:, :, _MIDDLE].mean(axis=-1).min(axis=0)
    if len(found) == 3:
        limit = np.minimum(limit, _MOST_COLOURED * np.minimum(level, limit).min())
    found = found * np.minimum(1.0, limit / np.maximum(level, 1e-30))[:, None, None]
    if len(found) == 3:
        others = found[1:].mean(axis=0)
        slope = found[0, _MIDDLE].mean() * others / max(others[_MIDDLE].mean(), 1e-30)
        low = _ORDER < 2
        found[0, low] = np.minimum(found[0, low], _MOST_SLOPE * slope[low])
    return found


def _scatter(blocks: Array, variances: Array) -> float:
    """Return how much more than Gaussian noise of this spectrum the energy of blocks (m, 8, 8) varies."""
    band = (_ORDER >= 2) & (_ORDER <= 6)
    shares = blocks[:, band] ** 2 / np.maximum(variances[band], 1e-30)
    return float(np.var(np.log(shares.mean(axis=1) + 1e-9)) * shares.shape[1] / 2)


def _planes(picture: Picture) -> list[Float]:
    """Return (y, x, channels) planes to look at: all, or sixteen windows of a large picture."""
    slices = picture.noisy.reshape(-1, *picture.noisy.shape[-3:])
    if len(slices) > 1:
        slices = slices[:: -(-len(slices) // 4)]
    height, width = slices.shape[1:3]
    if slices[..., 0].size <= _LARGEST:
        return [plane for plane in slices if min(plane.shape[:2]) >= _SIDE]
    side = min(int((_LARGEST / 16 / len(slices)) ** 0.5), height, width)
    corners = [np.linspace(0, size - side, 4).astype(int) for size in (height, width)]
    return [
        plane[y : y + side, x : x + side]
        for plane in slices
        for y in corners[0]
        for x in corners[1]
    ]


def _blocks(plane: Array, stride: int) -> Array:
    """Return the DCT of all 8 x 8 blocks at every stride-th position: (y, x, channels, 8, 8)."""
    windows = np.lib.stride_tricks.sliding_window_view(plane, (_SIDE, _SIDE), axis=(0, 1))
    basis = scipy.fft.dct(np.eye(_SIDE), axis=0, norm="ortho").astype(plane.dtype)
    return basis @ windows[::stride, ::stride] @ basis.T


def _texture_around(blocks: Array, step: int) -> Array:
    """Return the energy of the six flattest of the eight blocks that touch each block, (y, x)."""
    energy = (blocks**2).sum(axis=(-2, -1)) - blocks[..., 0, 0] ** 2
    usual = np.median(energy, axis=(0, 1))
    energy = (energy / np.maximum(usual, 1e-6 * usual.max() + 1e-20)).sum(axis=-1)
    height, width = energy.shape
    padded = np.pad(energy, step, constant_values=1e30)
    around = [
        padded[y : y + height, x : x + width]
        for y in (0, step, 2 * step)
        for x in (0, step, 2 * step)
        if (y, x) != (step, step)
    ]
    return np.sort(around, axis=0)[:6].mean(axis=0)


def _extrapolated(variances: Array) -> Array:
    """Continue the spectrum to frequency zero, where blocks show the picture and not the noise."""
    result = variances.copy()
    first = (variances[:, 0, 1] + variances[:, 1, 0]) / 2
    second = (variances[:, 0, 2] + variances[:, 2, 0]) / 2
    result[:, 0, 0] = first * np.clip(first / np.maximum(second, 1e-30), 1.0, 3.0)
    return result


def _known_floor(variances: Array) -> Array:
    """Keep every channel away from zero, so that it can be divided by."""
    least = 1e-4 * float(variances.mean()) + 1e-20
    return np.maximum(variances, least)
