"""The smoothing filters of Table I: weights -> normalise -> apply.

``sinkhorn_iters`` is the paper's Table II in one argument: 0 is the original filter D^-1 W, 1 one-step
D_r^-1 W D_c^-1, N so many rounds, None until W is doubly stochastic.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from ..core.blocks import default_halo
from ..core.image import Array, ChannelAxis, Float, Picture, open_image
from ..core.lazy import dask_aware
from ..core.options import check_odd, check_positive
from ..core.parallel import Pool, Progress
from ..core.signatures import described_like
from ..noise import resolve_sigma
from . import weights
from .sinkhorn import balance, balance_general, column_scaling

# Chosen on 20 pictures of the development set at sigma 10, 25, 50 (mean PSNR, see docs/paper_map.md).
_NLM_SPREAD = 0.7  # h_r of NLM = this * sigma * sqrt(d)
_BILATERAL_SPREAD = 2.5  # h_r of the bilateral filter = this * sigma
_LARK_SHARPNESS = 1.2
# For the progress callback alone, measured:
_STEERING = 0.85  # share of the time that LARK spends on its kernels
_PRODUCTS = 20  # of W until it is doubly stochastic
_WIDTHS = 0.9  # share of the time that the Gaussian filter spends on finding its width
# Of the Gaussian filter: h_s in pixels that SURE chooses from.
_CANDIDATES = 0.4 * 1.25 ** np.arange(12)
# Of LARK: pixels around one whose gradients steer its kernel, 3 deviations of their smoothing.
_STEERING_REACH = 8


@dask_aware
@described_like()
def denoise_gaussian(
    image: ArrayLike,
    sigma: float | None = None,
    *,
    h_s: float | None = None,
    sinkhorn_iters: int | None = 0,
    channel_axis: ChannelAxis = "auto",
    mask: ArrayLike | None = None,
    rng: int | np.random.Generator | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Array:
    """Denoise with a Gaussian filter (first row of Table I).

    Parameters
    ----------
    h_s : float or None
        Standard deviation of the filter in pixels; None minimises SURE, which is exact here.
    sinkhorn_iters : int or None
        0 the original filter, 1 one-step, N so many rounds, None until doubly stochastic.
    rng : int, Generator or None
        Not used: the filter has no randomness.

    Returns
    -------
    ndarray
        Same shape and dtype as the image.

    Notes
    -----
    W_ij = exp(-|x_i - x_j|^2 / 2 h_s^2), cut at 3 h_s.

    References
    ----------
    M. P. Wand, M. C. Jones, "Kernel smoothing", Chapman & Hall (1995), doi:10.1201/b14876.

    Examples
    --------
    >>> import numpy as np, symsmooth
    >>> symsmooth.denoise_gaussian(np.full((4, 4), 7, np.uint8), 1.0)[0, 0]
    np.uint8(7)
    """
    picture = open_image(image, channel_axis, mask)
    sigma = resolve_sigma(picture, sigma)
    check_positive("h_s", h_s)
    _check_iterations(sinkhorn_iters)
    if sigma == 0.0:
        return picture.restore(picture.noisy)
    with Pool(workers, progress) as pool:
        if h_s is None:
            with pool.part(_WIDTHS):
                h_s = _gaussian_width(picture.scene, sigma, sinkhorn_iters, pool)
        W = weights.gaussian(picture.noisy, h_s, pool)
        return picture.restore(smooth(W, picture, sinkhorn_iters))


@dask_aware
@described_like(denoise_gaussian)
def denoise_bilateral(
    image: ArrayLike,
    sigma: float | None = None,
    *,
    h_s: float = 1.5,
    h_r: float | None = None,
    sinkhorn_iters: int | None = 0,
    channel_axis: ChannelAxis = "auto",
    mask: ArrayLike | None = None,
    rng: int | np.random.Generator | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Array:
    """Denoise with the bilateral filter (second row of Table I).

    Parameters
    ----------
    h_s : float
        Spatial spread in pixels.
    h_r : float or None
        Range spread in the units of the image; None takes 2.5 sigma.

    Returns
    -------
    ndarray
        Same shape and dtype as the image.

    Notes
    -----
    W_ij = exp(-|x_i - x_j|^2 / 2 h_s^2 - |y_i - y_j|^2 / 2 h_r^2), cut at 3 h_s.  In colour the
    distance is the mean over the channels.

    References
    ----------
    S. Paris, P. Kornprobst, J. Tumblin, F. Durand, "Bilateral filtering: theory and applications"
    (2009), doi:10.1561/0600000020.

    Examples
    --------
    >>> import numpy as np, symsmooth
    >>> symsmooth.denoise_bilateral(np.full((4, 4), 7, np.uint8), 1.0)[0, 0]
    np.uint8(7)
    """
    picture = open_image(image, channel_axis, mask)
    sigma = resolve_sigma(picture, sigma)
    check_positive("h_s", h_s)
    check_positive("h_r", h_r)
    _check_iterations(sinkhorn_iters)
    if sigma == 0.0:
        return picture.restore(picture.noisy)
    spread = _BILATERAL_SPREAD * sigma if h_r is None else h_r / picture.scale
    spread *= np.sqrt(picture.noisy.shape[-1])
    W = weights.bilateral(picture.noisy, h_s, spread, Pool(workers, progress))
    return picture.restore(smooth(W, picture, sinkhorn_iters))


@dask_aware
@described_like(denoise_gaussian)
def denoise_nlm(
    image: ArrayLike,
    sigma: float | None = None,
    *,
    patch_size: int = 5,
    window: int = 21,
    h_s: float | None = None,
    h_r: float | None = None,
    sinkhorn_iters: int | None = 0,
    channel_axis: ChannelAxis = "auto",
    mask: ArrayLike | None = None,
    rng: int | np.random.Generator | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Array:
    """Denoise with non-local means (third and fourth row of Table I).

    Parameters
    ----------
    patch_size : int
        Side of a patch, odd.
    window : int
        Side of the hard search window, odd; used if ``h_s`` is None.
    h_s : float or None
        Spatial spread in pixels: spatially regulated NLM, whose soft window ends at 3 h_s.
    h_r : float or None
        Range spread in the units of the image; None takes 0.7 sigma sqrt(d), d the numbers in a
        patch (the paper's experiments use sigma sqrt(d)).

    Returns
    -------
    ndarray
        Same shape and dtype as the image.

    Notes
    -----
    W_ij = exp(-|patch_i - patch_j|^2 / 2 h_r^2) for pixels in each other's window (eq. nlm indicator),
    times exp(-|x_i - x_j|^2 / 2 h_s^2) if ``h_s`` is given (eq. nlm s).

    References
    ----------
    A. Buades, B. Coll, J.-M. Morel, "A review of image denoising algorithms, with a new one",
    Multiscale Model. Simul. 4 (2005), doi:10.1137/040616024.
    P. Milanfar, "Symmetrizing smoothing filters", SIAM J. Imaging Sci. 6 (2013), doi:10.1137/120875843.

    Examples
    --------
    >>> import numpy as np, symsmooth
    >>> symsmooth.denoise_nlm(np.full((4, 4), 7, np.uint8), 1.0, sinkhorn_iters=1)[0, 0]
    np.uint8(7)
    """
    picture = open_image(image, channel_axis, mask)
    sigma = resolve_sigma(picture, sigma)
    check_odd("patch_size", patch_size)
    check_odd("window", window)
    check_positive("h_s", h_s)
    check_positive("h_r", h_r)
    _check_iterations(sinkhorn_iters)
    if sigma == 0.0:
        return picture.restore(picture.noisy)
    patch_dim = patch_size ** len(picture.spatial) * picture.noisy.shape[-1]
    spread = _NLM_SPREAD * sigma * patch_dim**0.5 if h_r is None else h_r / picture.scale
    pool = Pool(workers, progress)
    if h_s is None:
        W = weights.nlm(picture.noisy, patch_size, window, spread, pool)
    else:
        W = weights.regulated_nlm(picture.noisy, patch_size, h_s, spread, pool)
    return picture.restore(smooth(W, picture, sinkhorn_iters))


@dask_aware
@described_like(denoise_gaussian)
def denoise_lark(
    image: ArrayLike,
    sigma: float | None = None,
    *,
    window: int = 11,
    h_s: float = 0.5,
    sharpness: float = _LARK_SHARPNESS,
    sinkhorn_iters: int | None = 0,
    channel_axis: ChannelAxis = "auto",
    mask: ArrayLike | None = None,
    rng: int | np.random.Generator | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Array:
    """Denoise with locally adaptive regression kernels, LARK (last row of Table I).

    Parameters
    ----------
    window : int
        Side of the search window, odd.
    h_s : float
        Spread in pixels where structure and noise have the same energy; wider where it is flat.
    sharpness : float
        How much a kernel shrinks where there is structure.

    Returns
    -------
    ndarray
        Same shape and dtype as the image.

    Notes
    -----
    W_ij = exp(-(x_j - x_i)^T Sigma_i^-1 (x_j - x_i) / 2), Sigma_i from the gradients around pixel i
    (:func:`symsmooth.filters.weights.steering_precision`).  W is not symmetric: the limit of
    Sinkhorn-Knopp is found by alternation.

    References
    ----------
    H. Takeda, S. Farsiu, P. Milanfar, "Kernel regression for image processing and reconstruction",
    IEEE Trans. Image Processing 16 (2007), doi:10.1109/TIP.2006.888330.

    Examples
    --------
    >>> import numpy as np, symsmooth
    >>> symsmooth.denoise_lark(np.full((4, 4), 7, np.uint8), 1.0)[0, 0]
    np.uint8(7)
    """
    picture = open_image(image, channel_axis, mask)
    sigma = resolve_sigma(picture, sigma)
    check_odd("window", window)
    check_positive("h_s", h_s)
    check_positive("sharpness", sharpness)
    _check_iterations(sinkhorn_iters)
    if sigma == 0.0:
        return picture.restore(picture.noisy)
    with Pool(workers, progress) as pool:
        with pool.part(_STEERING):
            precision = weights.steering_precision(picture.noisy, sigma, h_s, sharpness, pool)
        W = weights.lark(precision, window, pool)
        return picture.restore(smooth(W, picture, sinkhorn_iters))


def smooth(W: weights.WindowFilter, picture: Picture, sinkhorn_iters: int | None) -> Float:
    """Return D_r^-1 W D_c^-1 y for the observed pixels.

    The last row normalisation costs nothing: it is W applied to one more column.
    """
    observed = picture.observed.reshape(W.grid)
    noisy = np.moveaxis(picture.noisy.reshape(*W.grid, -1), -1, 0)
    with W.pool as pool:
        pool.expect(_PRODUCTS if sinkhorn_iters is None else 2 * sinkhorn_iters)
        col_scale = _column_scaling(W, sinkhorn_iters).reshape(W.grid) * observed
        sums = W.apply(np.ascontiguousarray(np.concatenate([noisy * col_scale, col_scale[None]])))
    known = sums[-1] > np.finfo(np.float32).tiny
    denoised = np.where(known, sums[:-1] / np.where(known, sums[-1], 1.0), noisy)
    return np.ascontiguousarray(np.moveaxis(denoised, 0, -1)).reshape(picture.noisy.shape)


def _column_scaling(W: weights.WindowFilter, sinkhorn_iters: int | None) -> Array:
    """Return the diagonal of D_c^-1 after so many iterations; rows are left to be normalised."""
    if sinkhorn_iters is None:
        find = balance if isinstance(W, weights.SymmetricFilter) else balance_general
        return find(W).col_scale
    ones = np.ones(W.shape[0], np.float32)
    return ones if sinkhorn_iters == 0 else column_scaling(W, sinkhorn_iters, ones)


def _gaussian_width(
    picture: Picture, sigma: float, sinkhorn_iters: int | None, pool: Pool
) -> float:
    """Return the h_s that minimises SURE; W does not depend on the noise, so SURE is exact."""
    best = (np.inf, 0.0)
    observed = picture.observed
    for h_s in pool.parts(_CANDIDATES):
        W = weights.gaussian(picture.noisy, float(h_s), pool)
        denoised = smooth(W, picture, sinkhorn_iters)
        centre = 1.0 / W.row_sums()  # the trace, up to the change that column scaling makes
        change = ((denoised - picture.noisy) ** 2).mean(axis=-1)
        residual = float((change * observed).sum(dtype=np.float64) / observed.sum(dtype=np.float64))
        divergence = float(centre.mean(dtype=np.float64))
        risk = -(sigma**2) + residual + 2.0 * sigma**2 * divergence
        if risk > best[0]:
            break  # the risk falls, then rises
        best = (risk, float(h_s))
    return best[1]


def _check_iterations(sinkhorn_iters: int | None) -> None:
    if sinkhorn_iters is None:
        return
    if (
        isinstance(sinkhorn_iters, bool)
        or sinkhorn_iters != int(sinkhorn_iters)
        or sinkhorn_iters < 0
    ):
        raise ValueError(
            f"sinkhorn_iters must be a whole number of 0 or more, got {sinkhorn_iters!r}; "
            "use None to iterate until convergence"
        )


def gaussian_halo(n_dims: int, *, h_s: float | None = None, **_: object) -> int:
    """Return the halo of a block in which the Gaussian filter gives what it gives on the whole."""
    check_positive("h_s", h_s)
    return _window_halo(n_dims, weights.SOFT_REACH * (_CANDIDATES[-1] if h_s is None else h_s))


def bilateral_halo(n_dims: int, *, h_s: float = 1.5, **_: object) -> int:
    """Return the halo of a block in which the bilateral filter gives what it gives on the whole."""
    check_positive("h_s", h_s)
    return _window_halo(n_dims, weights.SOFT_REACH * h_s)


def nlm_halo(
    n_dims: int, *, patch_size: int = 5, window: int = 21, h_s: float | None = None, **_: object
) -> int:
    """Return the halo of a block in which NLM gives what it gives on the whole."""
    check_odd("patch_size", patch_size)
    check_odd("window", window)
    check_positive("h_s", h_s)
    reach = window // 2 if h_s is None else weights.SOFT_REACH * h_s
    return _window_halo(n_dims, reach + patch_size // 2)


def lark_halo(n_dims: int, *, window: int = 11, **_: object) -> int:
    """Return the halo of a block in which LARK gives what it gives on the whole."""
    check_odd("window", window)
    return _window_halo(n_dims, window // 2 + _STEERING_REACH)


def _window_halo(n_dims: int, reach: float) -> int:
    """Return twice the reach, since halos are cross-faded over half; more is room for Sinkhorn-Knopp."""
    return max(default_halo(n_dims), 2 * math.ceil(reach))
