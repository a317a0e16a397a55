"""The level of coarse noise against brightness: stronger in a dark band than on the bright wall above it.

Noise of one spectrum whose level changes with brightness is divided by that level first, place by place,
and by its spectrum then.  Small differences are left alone: where the level changes by less than a fifth,
dividing costs more than it gives (0.4 dB on some phone pictures, even with the true curve); where it
doubles, worms are left in the darker part without it (2.7 dB on one phone picture).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.ndimage

from ..core.image import Array, Float

_GROUPS = 8  # of brightness, with as many regions each
_FEWEST = 12  # noise-like regions in a group, or it has the mean level
_QUANTILE = 0.4  # of their levels
_NOISE_LIKE = (0.3, 0.6)  # share of noise-like regions in a group, from not to fully used
_LEFT_ALONE = 0.3  # of log2 of the level: smaller differences are none
_LARGEST = 1.0  # of the same
_WIDTH = 4.0  # pixels, of the window in which brightness is measured


@dataclass(frozen=True)
class LevelCurve:
    """How many times its mean level noise has at some brightness, the mean of the channels.

    Attributes
    ----------
    brightness : ndarray (n,), ascending
    times : ndarray (n,)
    """

    brightness: Array
    times: Array

    def in_units(self, offset: float, scale: float) -> LevelCurve:
        """Return the curve for pixels (image - offset) / scale."""
        return LevelCurve((self.brightness - offset) / scale, self.times)

    def at(self, noisy: Float) -> Float:
        """Return the level at each pixel of (*spatial, channels): (*spatial, 1)."""
        brightness = noisy.mean(axis=-1)
        window = (0.0,) * (brightness.ndim - 2) + (_WIDTH, _WIDTH)
        smooth = scipy.ndimage.gaussian_filter(brightness, window, truncate=3.0)
        return np.interp(smooth, self.brightness, self.times).astype(np.float32)[..., np.newaxis]


def fit_curve(
    level: Array, noise_like: Array, brightness: Array, trust: float
) -> LevelCurve | None:
    """Find the curve from regions: their levels (variances), which are noise; None if it is flat."""
    if trust == 0.0 or len(level) < _GROUPS * _FEWEST:
        return None
    centres, logs, weights = [], [], []
    for group in np.array_split(np.argsort(brightness, kind="stable"), _GROUPS):
        own = group[noise_like[group]]
        centres.append(float(brightness[group].mean()))
        if len(own) < _FEWEST:
            logs.append(0.0)
            weights.append(0.0)
            continue
        logs.append(float(np.log2(np.quantile(level[own], _QUANTILE) + 1e-30)) / 2)
        low, high = _NOISE_LIKE
        weights.append(float(np.clip((len(own) / len(group) - low) / (high - low), 0.0, 1.0)))
    weight = np.array(weights)
    if weight.sum() == 0.0:
        return None
    found = weight * (np.array(logs) - float(np.average(logs, weights=weight)))
    found = np.sign(found) * np.clip(np.abs(found) - _LEFT_ALONE, 0.0, _LARGEST)
    if not found.any():
        return None
    return LevelCurve(np.array(centres), 2.0 ** (trust * found))
