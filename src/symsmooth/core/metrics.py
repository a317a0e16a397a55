"""PSNR and SSIM: how close an image comes to what it should be."""

from __future__ import annotations

import numpy as np

from .image import Array

_SSIM_SIGMA = 1.5  # of the Gaussian window of SSIM, in pixels
_SSIM_RADIUS = 5  # of the window, which has 11 x 11 pixels
_SSIM_CONSTANTS = (0.01, 0.03)  # K1 and K2, shares of the peak


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
    """Return the mean structural similarity, over channels too; None if the picture is too small for it.

    References
    ----------
    Wang, Bovik, Sheikh and Simoncelli, Image quality assessment: from error visibility to structural
    similarity, IEEE Transactions on Image Processing 13(4), 2004, doi:10.1109/TIP.2003.819861, equation 13.
    """
    a, b = (np.nan_to_num(np.asarray(pixels, np.float64)) for pixels in (image, clean))
    if min(a.shape[:2]) < 2 * _SSIM_RADIUS + 1:
        return None
    if a.ndim == 2:
        return _mean_ssim(a, b, peak)
    return float(np.mean([_mean_ssim(a[..., c], b[..., c], peak) for c in range(a.shape[-1])]))


def _mean_ssim(x: Array, y: Array, peak: float) -> float:
    """Return the mean over all pixels whose window lies inside the picture."""
    from scipy.ndimage import gaussian_filter

    def local_mean(pixels: Array) -> Array:
        return np.asarray(gaussian_filter(pixels, _SSIM_SIGMA, radius=_SSIM_RADIUS))

    c1, c2 = ((share * peak) ** 2 for share in _SSIM_CONSTANTS)
    mean_x, mean_y = local_mean(x), local_mean(y)
    variance_x = local_mean(x * x) - mean_x * mean_x
    variance_y = local_mean(y * y) - mean_y * mean_y
    covariance = local_mean(x * y) - mean_x * mean_y
    alike = (2 * mean_x * mean_y + c1) * (2 * covariance + c2)
    most = (mean_x**2 + mean_y**2 + c1) * (variance_x + variance_y + c2)
    inside = (slice(_SSIM_RADIUS, -_SSIM_RADIUS),) * 2
    return float(np.mean((alike / most)[inside]))
