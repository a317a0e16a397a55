"""BM3D: groups of similar patches, shrunk together in a transform domain, twice.

The transforms are small: the DCT and the wavelet bior1.5, as matrices.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from .. import _native
from ..core.channels import decorrelate, mix
from ..core.image import Array, ChannelAxis, Float, open_image
from ..core.lazy import dask_aware
from ..core.parallel import Pool, Progress
from ..core.signatures import described_like
from ..noise import contrast, grey_levels, resolve_sigma
from .groups import Search, filter_groups, from_planes, to_planes, whole_patches

_BETA = 2.0  # of the Kaiser window
_FIRST_STEP = 0.25  # of the time, for the progress callback
# Analysis low-pass filter of the biorthogonal spline wavelet 1.5; its synthesis low-pass is Haar's.
_LOW = np.array([3, -3, -22, 22, 128, 128, 22, -22, -3, 3]) / 128.0


@dataclass(frozen=True)
class Steps:
    """The parameters of both steps, in units of the noise."""

    first: Search
    threshold: float  # lambda_3D, in sigma
    second: Search
    noise: float  # of the Wiener filter, in sigma^2


@dask_aware
@described_like()
def denoise_bm3d(
    image: ArrayLike,
    sigma: float | None = None,
    *,
    channel_axis: ChannelAxis = "auto",
    mask: ArrayLike | None = None,
    rng: int | np.random.Generator | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Array:
    """Denoise with BM3D, block matching and collaborative filtering.

    Parameters
    ----------
    rng : int, Generator or None
        Not used: the method has no randomness.

    Returns
    -------
    ndarray
        Same shape and dtype as the image.

    Notes
    -----
    Step 1: each reference patch and those nearest to it make a group Z; its estimate is
    T^-1 Y(T Z), T = Haar across patches, bior1.5 along each axis of a patch, Y a hard threshold at
    lambda sigma; groups are averaged with weights 1 / (coefficients kept), under a Kaiser window.
    Step 2: patches are matched in that estimate, and the noisy groups are Wiener-filtered,
    T^-1 (W T Z), W = s^2 / (s^2 + mu sigma^2), s the coefficients of the first estimate, T with the DCT;
    weights 1 / |W|^2.  Colour: opponent channels, matched on the first.  Volumes: cubes, as in BM4D.
    A patch with missing pixels is in no group but its own.

    References
    ----------
    K. Dabov, A. Foi, V. Katkovnik, K. Egiazarian, "Image denoising by sparse 3-D transform-domain
    collaborative filtering", IEEE Trans. Image Processing 16 (2007), doi:10.1109/TIP.2007.901238.
    M. Lebrun, "An analysis and implementation of the BM3D image denoising method", Image Processing
    On Line 2 (2012), doi:10.5201/ipol.2012.l-bm3d.
    M. Maggioni, V. Katkovnik, K. Egiazarian, A. Foi, "Nonlocal transform-domain filter for volumetric data
    denoising and reconstruction", IEEE Trans. Image Processing 22 (2013), doi:10.1109/TIP.2012.2210725.

    Examples
    --------
    >>> import numpy as np, symsmooth
    >>> noisy = np.random.default_rng(0).normal(100.0, 20.0, (32, 32))
    >>> bool(symsmooth.denoise_bm3d(noisy, 20.0).std() < 6.0)
    True
    """
    picture = open_image(image, channel_axis, mask)
    sigma = resolve_sigma(picture, sigma)
    if sigma == 0.0:
        return picture.restore(picture.noisy)
    transform = decorrelate(picture.scene.noisy, sigma)
    noisy = mix(picture.noisy, transform) / np.float32(sigma)
    ratio = contrast(mix(picture.scene.noisy, transform)[..., :1], sigma)
    steps = choose_steps(ratio, len(picture.spatial), noisy.shape[-1])
    min_side = max(steps.first.side, steps.second.side)
    noisy = to_planes(noisy, min_side)
    with Pool(workers, progress) as pool:
        whole = whole_patches(picture, steps.first.side, min_side)
        with pool.part(_FIRST_STEP):
            pilot = hard_threshold(noisy, whole, steps.first, steps.threshold, pool)
        whole = whole_patches(picture, steps.second.side, min_side)
        denoised = wiener(noisy, pilot, whole, steps.second, steps.noise, pool)
    denoised = from_planes(denoised * np.float32(sigma), picture.spatial)
    return picture.restore(mix(denoised, transform.T))


def choose_steps(ratio: float, n_dims: int, channels: int) -> Steps:
    """Return the parameters for a picture whose first channel varies ``ratio`` times as much as the noise.

    Chosen on the development pictures at sigma 15 to 100, see docs/paper_map.md.
    """
    limit = (0.45 * ratio) ** 2 + 0.1
    level = grey_levels(ratio)
    if n_dims == 3:
        return Steps(Search(4, 2, 5, 16), 2.7, Search(4, 2, 5, 32, limit=limit), 1.0)
    if level >= 90.0:
        return Steps(Search(16, 4, 32, 32), 2.7, Search(12, 3, 32, 32, limit=limit), 1.5)
    if level >= 40.0:
        return Steps(Search(8, 2, 25, 16), 2.7, Search(12, 3, 25, 32, limit=limit), 1.0)
    threshold, noise = (2.7, 0.8) if channels == 1 else (2.9, 0.6)  # colour differences are smooth
    return Steps(Search(8, 3, 19, 16), threshold, Search(8, 2, 19, 32, limit=limit), noise)


def hard_threshold(
    noisy: Float, whole: Array, search: Search, threshold: float, pool: Pool
) -> Float:
    """Step 1: hard-threshold groups of noisy patches; planes in units of the noise."""
    n_axes = 2 if noisy.shape[1] == 1 else 3
    basis = bior15(search.side)
    window = kaiser(search.side, _BETA)
    windows = _product(window, n_axes)

    def kernel(groups: _native.Groups, planes: Float) -> tuple[Float, Float]:
        return _native.threshold_groups(
            groups, planes, basis.forward, basis.backward, windows, threshold
        )

    return filter_groups([noisy], noisy[:1], whole, search, kernel, window, pool, "threshold")


def wiener(
    noisy: Float, pilot: Float, whole: Array, search: Search, noise: float, pool: Pool
) -> Float:
    """Step 2: Wiener-filter groups matched in the pilot; planes in units of the noise."""
    n_axes = 2 if noisy.shape[1] == 1 else 3
    basis = dct(search.side)
    window = kaiser(search.side, _BETA)
    windows = _product(window, n_axes)

    def kernel(groups: _native.Groups, planes: Float, guide: Float) -> tuple[Float, Float]:
        return _native.wiener_groups(
            groups, planes, guide, basis.forward, basis.backward, windows, noise
        )

    return filter_groups([noisy, pilot], pilot[:1], whole, search, kernel, window, pool, "wiener")


def _product(window: Float, n_axes: int) -> Float:
    """Return the window of a whole patch, flat."""
    return functools.reduce(np.multiply.outer, [window] * n_axes).reshape(-1)


@dataclass(frozen=True)
class Basis:
    """A transform and its inverse, (side, side); row 0 of ``forward`` is a mean."""

    forward: Float
    backward: Float


def dct(side: int) -> Basis:
    """Return the orthonormal DCT-II."""
    k, x = np.indices((side, side))
    matrix = np.sqrt(2.0 / side) * np.cos(np.pi * (x + 0.5) * k / side)
    matrix[0] /= np.sqrt(2.0)
    return Basis(matrix.astype(np.float32), np.ascontiguousarray(matrix.T.astype(np.float32)))


def bior15(side: int) -> Basis:
    """Return the full periodic wavelet transform bior1.5 of 2^k samples.

    Its rows have norm one, so that white noise has the same variance in every coefficient.

    References
    ----------
    A. Cohen, I. Daubechies, J.-C. Feauveau, "Biorthogonal bases of compactly supported wavelets",
    Comm. Pure Appl. Math. 45 (1992), doi:10.1002/cpa.3160450502.
    """
    matrix: Array = np.eye(side)
    length = side
    while length > 1:
        level = np.eye(side)
        level[:length, :length] = 0.0
        for i in range(length // 2):
            for tap, value in enumerate(_LOW):
                level[i, (2 * i + tap - 4) % length] += value
            level[length // 2 + i, 2 * i : 2 * i + 2] = 1.0, -1.0
        matrix = level @ matrix
        length //= 2
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    return Basis(matrix.astype(np.float32), np.linalg.inv(matrix).astype(np.float32))


def kaiser(side: int, beta: float) -> Float:
    """Return the Kaiser window (side,)."""
    return np.kaiser(side, beta).astype(np.float32)
