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
from ..tiles import Pool
from .level import patch_variance, sample_patches

_GROUPS = 12  # of patches, by brightness
_ROUNDS = 30  # of the robust fit
_TEXTURE = (
    1.5  # a variance above the line is doubted so much more than one below: texture only adds
)
_TABLE_END = 400.0  # counts up to which the inverse is a table; its expansion serves above


@dataclass(frozen=True)
class PoissonGaussian:
    """Noise of variance gain * x + offset, x the clean pixel, in the image's units, each given per channel.

    ``black`` is the pixel without light: y = black + gain * Poisson + Gaussian.  If not given it is 0, or
    where the variance is 0 if that is above.  A sensor with read noise s has offset s^2 - gain * black.
    """

    gain: tuple[float, ...]
    offset: tuple[float, ...]
    black: tuple[float, ...] = ()

    kind = "poisson-gaussian"

    def __post_init__(self) -> None:
        lines = list(zip(self.gain, self.offset, strict=True))
        if not all(0.0 < a < np.inf and np.isfinite(b) for a, b in lines):
            raise ValueError(
                f"gain must be positive and finite, got {self.gain} with offset {self.offset}; "
                "without gain the noise is Gaussian: give sigma"
            )
        black = tuple(
            max(m, -b / a)
            for (a, b), m in zip(lines, self.black or (0.0,) * len(lines), strict=True)
        )
        object.__setattr__(self, "black", black)

    def __str__(self) -> str:
        gains, offsets = (
            ", ".join(f"{v:.4g}" for v in values) for values in (self.gain, self.offset)
        )
        return f"Poisson-Gaussian noise, variance {gains} * signal + {offsets}"

    def fits(self, shape: tuple[int, ...]) -> bool:
        """Whether it can be the noise of (*spatial, channels)."""
        return len(self.gain) == shape[-1]

    def in_units(self, offset: float, scale: float) -> PoissonGaussian:
        """Return the model for pixels (image - offset) / scale."""
        moved = zip(self.gain, self.offset, strict=True)
        return PoissonGaussian(
            tuple(a / scale for a in self.gain),
            tuple((a * offset + b) / scale**2 for a, b in moved),
            tuple((m - offset) / scale for m in self.black),
        )

    def whiten(self, noisy: Float) -> Float:
        """Apply the generalised Anscombe transform: noise of variance 1 (*spatial, channels).

        f(y) = 2 sqrt(y/a + 3/8 + b/a^2), the root cut at zero.
        """
        a, b = np.array(self.gain, np.float32), np.array(self.offset, np.float32)
        root = np.maximum(noisy / a + (np.float32(0.375) + b / a**2), 0)
        return 2 * np.sqrt(root)

    def restore(self, denoised: Float) -> Float:
        """Undo it without bias: the signal whose transform has this mean."""
        planes = np.moveaxis(denoised, -1, 0)
        channels = zip(self.gain, self.offset, self.black, planes, strict=True)
        restored = [
            black + gain * _photons(plane, max(gain * black + offset, 0.0) / gain**2)
            for gain, offset, black, plane in channels
        ]
        return np.stack(restored, axis=-1).astype(np.float32)


def _photons(stabilised: Array, read: float) -> Array:
    """Return E^-1, the photons whose transform has this mean: a table, its expansion beyond.

    ``read`` is the variance of the read noise in photons squared.
    """
    counts, means = _expected_root(float(f"{read:.6g}"))
    table = np.interp(stabilised, means, counts)
    d = np.maximum(stabilised, 1.0)
    root = np.sqrt(1.5)
    expansion = d**2 / 4 + root / (4 * d) - 11 / (8 * d**2) + 5 * root / (8 * d**3) - 0.125 - read
    return np.where(stabilised < means[-1], table, expansion)


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


def fit_signal_dependence(picture: Picture) -> tuple[PoissonGaussian | None, float, float]:
    """Estimate gain and offset of each channel, in the picture's units; None if the noise does not grow.

    Patches are grouped by brightness, each group's variance is estimated as white noise is, and a line
    is fitted robustly.  Also returned, the least of the channels: how many times larger the variance is
    where the picture is brightest than where it is darkest (5 % and 95 % of the patches), and the
    logarithm of that over the scatter of the groups about the line, which texture makes large.
    """
    gains, offsets, growths, sure = [], [], [], []
    for channel in range(picture.noisy.shape[-1]):
        patches = sample_patches(picture, channel)
        means = patches.mean(axis=(1, 2))
        groups = np.array_split(np.argsort(means, kind="stable"), min(_GROUPS, len(means)))
        levels = np.array([means[group].mean() for group in groups])
        with Pool(1):  # many small products: threads of the BLAS would only wait for each other
            variances = np.array([patch_variance(patches[group]) for group in groups])
        gain, offset = fit_line(levels, variances)
        if gain <= 0.0:
            return None, 1.0, 0.0
        offset = max(offset, -gain * float(means.min()))  # no variance is negative
        dark, bright = gain * np.quantile(means, [0.05, 0.95]) + offset
        growths.append(float(bright / max(dark, 1e-3 * bright, 1e-30)))
        line = np.maximum(gain * levels + offset, 1e-6 * bright)
        scatter = 1.4826 * np.median(np.abs(np.log(np.maximum(variances, 1e-6 * line) / line)))
        sure.append(float(np.log(growths[-1]) / max(scatter, 0.03)))
        gains.append(gain)
        offsets.append(offset)
    zero = -picture.offset / picture.scale
    model = PoissonGaussian(tuple(gains), tuple(offsets), (zero,) * len(gains))
    return model, min(growths), min(sure)


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
