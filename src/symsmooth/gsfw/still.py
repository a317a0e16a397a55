"""Where nothing moves in a series: there the mean of all frames is denoised, once, and all frames are that.

A mixture of patches gathers what is alike, but it does not know that a scene stands still; its mean has
all that the frames know, and what is still stays still.  Two questions, each answered softly: do pixels
differ over time by more than their noise, and do denoised ones by more than their errors?  Denoised
frames of a still scene differ by 0.02 to 0.17 of the variance that their clusters say they have; those of
moving scenes by 0.24 or more, at sigma 40 too (six sequences, 5 % of the pixels where they differ least).
"""

from __future__ import annotations

import numpy as np
import scipy.ndimage

from ..core.image import Float

LEAST = 4  # frames: fewer say too little about time
MIN_SHARE = 0.01  # of the pixels: for fewer it is not worth the time of another picture
_WINDOW, _SMOOTH = 9, 5  # pixels a side
_NOISE = 2.0, 4.0  # deviations of the first measure: surely still up to, surely moving from
_ERRORS = 0.15, 0.3  # of the second


def still_share(noisy: Float, denoised: Float, variance: Float, sigma: float) -> Float:
    """Return how sure it is that nothing moves at each pixel, (y, x), 0 to 1.

    Parameters
    ----------
    noisy, denoised : ndarray (frames, y, x, channels)
        With white noise, and without it.
    variance : ndarray (frames, y, x, channels)
        Of the denoised pixels, as the clusters say it.
    sigma : float
    """
    n_frames, *_, n_channels = noisy.shape
    spread = noisy.var(axis=0, ddof=1).mean(axis=-1) / sigma**2
    excess = scipy.ndimage.uniform_filter(spread, _WINDOW) - 1
    deviation = np.sqrt(2 / ((n_frames - 1) * _WINDOW**2 * n_channels))
    changes = _smooth(denoised.var(axis=0, ddof=1).mean(axis=-1))
    errors = _smooth(variance.mean(axis=(0, -1)))
    ratio = changes / np.maximum(errors, 1e-12 * sigma**2)
    sure = np.minimum(_falling(excess / deviation, *_NOISE), _falling(ratio, *_ERRORS))
    return _smooth(sure).astype(np.float32)


def _falling(values: Float, low: float, high: float) -> Float:
    """Return 1 up to ``low``, 0 from ``high``, and a line between."""
    return np.clip((high - values) / (high - low), 0.0, 1.0)


def _smooth(values: Float) -> Float:
    return scipy.ndimage.uniform_filter(values, _SMOOTH)
