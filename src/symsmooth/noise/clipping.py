"""Clipping bias: where noise was cut off, the mean of noisy pixels is too bright (at black) or too dark.

For y = clip(x + s n), n Gaussian, the mean of y is known from x and s; inverting it at the denoised pixel
gives the light before clipping, as in an exact unbiased inverse.  It is done where as many pixels lie
exactly at the end as noise of this level would have brought there.

References
----------
A. Foi, "Clipped noisy images: heteroskedastic modeling and practical denoising", Signal Processing 89
(2009), doi:10.1016/j.sigpro.2009.04.035.
"""

from __future__ import annotations

import numpy as np
import scipy.special

from ..core.image import Array, Float

_PILED_UP = 0.5  # of the pixels that must be expected at the end: fewer, and nothing was cut off
_FEWEST = 1e-3  # share of the pixels
_REACH = 4.0  # standard deviations from the end: beyond, nothing is cut off


def correct_clipping(noisy: Float, denoised: Float, sigma: float) -> Float:
    """Return denoised pixels (*spatial, channels) without the bias of noise that was cut off."""
    corrected = denoised
    for channel in range(noisy.shape[-1]):
        own = noisy[..., channel]
        for sign, end in ((1.0, float(own.min())), (-1.0, float(own.max()))):
            found = np.count_nonzero(own == end)
            if found <= _FEWEST * own.size:  # as in most pictures
                continue
            away = sign * (corrected[..., channel].astype(np.float64) - end) / sigma
            light = before_clipping(away)
            if found > _PILED_UP * float(scipy.special.ndtr(-light).sum()):
                corrected = denoised.copy() if corrected is denoised else corrected
                result = corrected[..., channel]
                result[...] = np.where(away < _REACH, end + sign * sigma * light, result)
    return corrected


def before_clipping(mean: Array) -> Array:
    """Return x >= 0 for which max(x + n, 0), n Gaussian of variance 1, has this mean."""
    x = np.linspace(0.0, _REACH, 401)
    return np.where(mean < _REACH, np.interp(mean, _clipped_mean(x), x), mean)


def _clipped_mean(x: Array) -> Array:
    """Return E[max(x + n, 0)] = x Phi(x) + phi(x)."""
    return x * scipy.special.ndtr(x) + np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)
