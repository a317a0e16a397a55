"""Poisson-Gaussian noise: its variance grows with the signal.  Estimated, stabilised, and undone.

References
----------
A. Foi, M. Trimeche, V. Katkovnik, K. Egiazarian, "Practical Poissonian-Gaussian noise modeling and fitting
for single-image raw-data", IEEE Trans. Image Processing 17 (2008), doi:10.1109/TIP.2008.2001399.
M. Makitalo, A. Foi, "Optimal inversion of the generalized Anscombe transformation for Poisson-Gaussian
noise", IEEE Trans. Image Processing 22 (2013), doi:10.1109/TIP.2012.2202675.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy.special

from ..image import Array, Float, Picture
from .level import patch_variance, sample_patches

_GROUPS = 12  # of patches, by brightness
_ROUNDS = 30  # of the robust fit
_TEXTURE = (
    1.5  # a variance above the line is doubted so much more than one below: texture only adds
)
_TABLE_END = 400.0  # counts up to which the inverse is a table; its expansion serves above


@dataclass(frozen=True)
class PoissonGaussian:
    """Noise of variance gain * x + offset, x the clean pixel, each given per channel.

    In the image's units.  A sensor with gain a, pedestal m and read noise s has offset s^2 - a m.
    """

    gain: tuple[float, ...]
    offset: tuple[float, ...]

    kind = "poisson-gaussian"

    def __str__(self) -> str:
        gains, offsets = (
            ", ".join(f"{v:.4g}" for v in values) for values in (self.gain, self.offset)
        )
        return f"Poisson-Gaussian noise, variance {gains} * signal + {offsets}"

    def in_units(self, offset: float, scale: float) -> PoissonGaussian:
        """Return the model for pixels (image - offset) / scale."""
        gain = tuple(a / scale for a in self.gain)
        moved = zip(self.gain, self.offset, strict=True)
        return PoissonGaussian(gain, tuple((a * offset + b) / scale**2 for a, b in moved))

    def whiten(self, noisy: Float) -> Float:
        """Apply the generalised Anscombe transform: noise of variance 1 (*spatial, channels).

        f(y) = 2 sqrt(y/a + 3/8 + b/a^2), the root cut at zero.
        """
        a, b = np.array(self.gain, np.float32), np.array(self.offset, np.float32)
        root = np.maximum(noisy / a + (np.float32(0.375) + b / a**2), 0)
        return 2 * np.sqrt(root)

    def restore(self, denoised: Float) -> Float:
        """Undo it without bias: the signal whose transform has this mean."""
        channels = zip(self.gain, self.offset, np.moveaxis(denoised, -1, 0), strict=True)
        return np.stack([_inverse(plane, a, b) for a, b, plane in channels], axis=-1)


def _inverse(stabilised: Array, gain: float, offset: float) -> Float:
    """Return E^-1: a table of E[f] over the counts, its expansion beyond.

    Only gain and offset are known; offset = s^2 - a m is taken for read noise (m = 0) where it is
    positive and for a pedestal (s = 0) where it is not.
    """
    read = max(offset, 0.0) / gain**2
    counts, means = _expected_root(round(read, 6))
    table = np.interp(stabilised, means, counts)
    d = np.maximum(stabilised, 1.0)
    root = np.sqrt(1.5)
    expansion = d**2 / 4 + root / (4 * d) - 11 / (8 * d**2) + 5 * root / (8 * d**3) - 0.125 - read
    signal = np.where(stabilised < means[-1], table, expansion)
    pedestal = max(-offset, 0.0) / gain
    return (gain * signal + pedestal).astype(np.float32)


@lru_cache(maxsize=16)
def _expected_root(read: float) -> tuple[Array, Array]:
    """Tabulate E[2 sqrt(max(p + n + 3/8 + read, 0))] over counts, p Poisson, n N(0, read)."""
    counts = np.concatenate([[0.0], np.geomspace(1e-3, _TABLE_END, 400)])
    photons = np.arange(int(_TABLE_END + 12 * np.sqrt(_TABLE_END)))
    log_pmf = scipy.special.xlogy(photons, counts[:, None]) - counts[:, None]
    pmf = np.exp(log_pmf - scipy.special.gammaln(photons + 1))
    nodes, weights = np.polynomial.hermite_e.hermegauss(21)
    spread = np.sqrt(read) * nodes[:, None]
    roots = 2 * np.sqrt(np.maximum(photons + spread + 0.375 + read, 0.0))
    return counts, pmf @ (weights @ roots / weights.sum())


def fit_signal_dependence(picture: Picture) -> tuple[PoissonGaussian, float]:
    """Estimate gain and offset of each channel, in the picture's units.

    Patches are grouped by brightness, each group's variance is estimated as white noise is, and a line
    is fitted robustly.  Also returned: how many times larger the variance is where the picture is
    brightest than where it is darkest (5 % and 95 % of the patches), the least of the channels.
    """
    gains, offsets, growth = [], [], np.inf
    for channel in range(picture.noisy.shape[-1]):
        patches = sample_patches(picture, channel)
        means = patches.mean(axis=(1, 2))
        groups = np.array_split(np.argsort(means, kind="stable"), min(_GROUPS, len(means)))
        levels = np.array([means[group].mean() for group in groups])
        variances = np.array([patch_variance(patches[group]) for group in groups])
        gain, offset = fit_line(levels, variances)
        dark, bright = gain * np.quantile(means, [0.05, 0.95]) + offset
        growth = min(growth, bright / max(dark, 1e-3 * bright, 1e-30))
        gains.append(gain)
        offsets.append(offset)
    return PoissonGaussian(tuple(gains), tuple(offsets)), float(growth)


def fit_line(levels: Array, variances: Array) -> tuple[float, float]:
    """Fit variance = gain * level + offset, gain >= 0, by reweighting (Cauchy) of relative residuals."""
    design = np.stack([levels, np.ones_like(levels)], axis=1)
    tiny = 1e-12 + 1e-6 * float(variances.max(initial=0.0))
    weights = 1.0 / np.maximum(variances, tiny) ** 2
    for _ in range(_ROUNDS):
        root = np.sqrt(weights)
        line = np.linalg.lstsq(design * root[:, None], variances * root, rcond=None)[0]
        predicted = np.maximum(design @ line, tiny)
        residual = (variances - predicted) / predicted
        spread = max(1.4826 * float(np.median(np.abs(residual))), 0.02)
        doubt = np.where(residual > 0, _TEXTURE, 1.0) * residual / spread
        weights = 1.0 / (1.0 + doubt**2) / predicted**2
    gain, offset = (float(v) for v in line)
    if gain <= 0.0:
        return 0.0, float(np.average(variances, weights=weights))
    return gain, offset
