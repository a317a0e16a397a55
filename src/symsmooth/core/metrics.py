"""How close an image comes to what it should be."""

from __future__ import annotations

import numpy as np

from .image import Array

_SSIM_SIDE = 11  # pixels that the window of SSIM needs


def psnr(image: Array, clean: Array, peak: float = 1.0) -> float:
    """Return 10 log10(peak^2 / mean squared error) in dB over the pixels that both have, unclipped.

    Examples
    --------
    >>> round(psnr(np.full((4, 4), 0.6), np.full((4, 4), 0.5)), 6)
    20.0
    """
    error = (np.asarray(image, np.float64) - np.asarray(clean, np.float64)) ** 2
    mean = float(np.mean(error[np.isfinite(error)]))
    return 10.0 * float(np.log10(peak**2 / mean)) if mean > 0 else float("inf")


def ssim(image: Array, clean: Array, peak: float = 1.0) -> float | None:
    """Return the structural similarity (Wang et al. 2004, Gaussian window); None if too small for it."""
    from skimage.metrics import structural_similarity

    a, b = (np.nan_to_num(np.asarray(pixels, np.float64)) for pixels in (image, clean))
    if min(a.shape[:2]) < _SSIM_SIDE:
        return None
    options = {"gaussian_weights": True, "sigma": 1.5, "use_sample_covariance": False}
    axis = -1 if a.ndim == 3 else None
    return float(structural_similarity(a, b, data_range=peak, channel_axis=axis, **options))
