"""PLE: piecewise linear estimators, a few Gaussians learned from the picture itself by MAP-EM."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.fft
import scipy.special
from numpy.typing import ArrayLike

from ..core.blocks import Block, cut_evenly
from ..core.channels import decorrelate, mix
from ..core.image import Array, ChannelAxis, Float, open_image
from ..core.lazy import dask_aware
from ..core.options import check_at_least_one
from ..core.parallel import Pool, Progress
from ..core.signatures import described_like
from ..noise import NATURAL_SPREAD, contrast, resolve_sigma
from .patch_gmm import (
    NoisyPrior,
    PatchPrior,
    coverage,
    from_moments,
    mirror,
    put_patches,
    take_patches,
    unmirror,
)

_SIDE = 8  # of a patch; it and the 18 orientations are the paper's
_ORIENTATIONS = 18
_REGION = 128  # side of the regions that have their own mixtures
_HALO = _SIDE  # around a region: a pixel inside it has all its patches
# Added to learned covariances, in units of the picture's variance: 4 grey levels, squared.
_EPSILON = (4.0 / NATURAL_SPREAD) ** 2


@dask_aware
@described_like()
def denoise_ple(
    image: ArrayLike,
    sigma: float | None = None,
    *,
    iterations: int = 8,
    channel_axis: ChannelAxis = "auto",
    mask: ArrayLike | None = None,
    rng: int | np.random.Generator | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Array:
    """Denoise with piecewise linear estimators (PLE).

    Parameters
    ----------
    image : array_like
        2-D or 3-D (a volume is denoised slice by slice), plus channels if ``channel_axis`` is given.
    iterations : int
        Rounds of MAP-EM.
    rng : int, Generator or None
        Not used: nothing is drawn.

    Returns
    -------
    ndarray
        Same shape and dtype as the image.

    Notes
    -----
    In each region of 128 x 128 pixels a mixture of 19 Gaussians starts from the principal components
    of edges at 18 orientations and from the DCT.  Then, a few times: each 8 x 8 patch chooses its most
    likely Gaussian and is estimated under it (E-step); mean and covariance of each Gaussian are those
    of the patches that chose it (M-step).  The overlapping estimates are averaged.

    References
    ----------
    G. Yu, G. Sapiro, S. Mallat, "Solving inverse problems with piecewise linear estimators: from
    Gaussian mixture models to structured sparsity", IEEE Trans. Image Processing 21 (2012),
    doi:10.1109/TIP.2011.2176743.

    Examples
    --------
    >>> import numpy as np, symsmooth
    >>> noisy = np.random.default_rng(0).normal(100.0, 20.0, (32, 32))
    >>> bool(symsmooth.denoise_ple(noisy, 20.0).std() < 8.0)
    True
    """
    picture = open_image(image, channel_axis, mask)
    sigma = resolve_sigma(picture, sigma)
    check_at_least_one("iterations", iterations)
    if sigma == 0.0:
        return picture.restore(picture.noisy)
    transform = decorrelate(picture.scene.noisy, sigma)
    noisy = mix(picture.noisy, transform)
    spread = contrast(mix(picture.scene.noisy, transform)[..., 0], sigma) * sigma
    regions = cut_evenly(picture.spatial[-2:], _HALO, _REGION**2).blocks
    pieces = [
        _Piece((*at, ..., slice(c, c + 1)), region)
        for at in np.ndindex(*picture.spatial[:-2])
        for c in range(noisy.shape[-1])
        for region in regions
    ]

    def run(piece: _Piece) -> Float:
        part = noisy[piece.plane][piece.region.outer]
        return solve(part[..., 0], sigma, spread, iterations)[..., np.newaxis]

    denoised = np.zeros_like(noisy)
    with Pool(workers, progress) as pool:
        for piece, part in pool.map(run, pieces, "regions"):
            piece.region.add_to(denoised[piece.plane], part)
    return picture.restore(mix(denoised, transform.T))


@dataclass(frozen=True)
class _Piece:
    """One region of one channel of one slice."""

    plane: tuple[Any, ...]  # where its plane (y, x, 1) lies in the picture
    region: Block


def solve(noisy: Float, sigma: float, spread: float, iterations: int) -> Float:
    """Return the estimate of a region (y, x) after so many rounds of MAP-EM."""
    level = noisy.mean(dtype=np.float64).astype(np.float32)
    padded = mirror(noisy - level, _SIDE)
    patches = take_patches(padded, _SIDE)
    model = NoisyPrior(edge_prior().scaled(spread), sigma**2)
    labels = model.most_likely(patches)
    for _ in range(iterations - 1):
        estimates = model.map_estimate(patches, labels)
        model = maximize(estimates, labels, model, _EPSILON * spread**2)
        labels = model.most_likely(patches)
    estimates = model.map_estimate(patches, labels)
    total = put_patches(estimates, padded.shape, _SIDE)
    return unmirror(total / coverage(padded.shape, _SIDE), noisy.shape) + level


def maximize(estimates: Float, labels: Array, model: NoisyPrior, epsilon: float) -> NoisyPrior:
    """Return the mixture with the moments of the patches (m, d) that chose each component (m,).

    The covariance of a patch is that of its estimate and what the estimate does not know,
    S - S (S + v I)^-1 S.  A component that fewer patches chose than it has dimensions stays as it was.
    """
    prior = model.prior
    k, d = prior.means.shape
    counts = np.bincount(labels, minlength=k)
    means, covariances = prior.means.copy(), prior.covariances
    for c in np.flatnonzero(counts > d):
        members = estimates[labels == c]
        means[c] = members.mean(axis=0, dtype=np.float64)
        centred = members - means[c].astype(np.float32)
        unknown = model.posterior_covariance(int(c))
        covariances[c] = centred.T @ centred / len(members) + unknown + epsilon * np.eye(d)
    return NoisyPrior(from_moments(prior.weights, means, covariances, 0.0), model.noise)


@lru_cache(maxsize=1)
def edge_prior() -> PatchPrior:
    """Return the first mixture: principal components of edges at 18 orientations, and the DCT.

    It is that of pictures with standard deviation 1.
    """
    covariances = [_edge_covariance(np.pi * t / _ORIENTATIONS) for t in range(_ORIENTATIONS)]
    falling = np.sort(np.linalg.eigvalsh(np.mean(covariances, axis=0)))[::-1]
    covariances.append(_dct_covariance(falling))
    k = len(covariances)
    weights = np.full(k, 1.0 / k)
    return from_moments(weights, np.zeros((k, _SIDE**2)), np.array(covariances), 0.0)


def _edge_covariance(angle: float) -> Array:
    """Return the covariance of patches of blurred edges at one angle, shifted by parts of a pixel.

    One step between -1 and 1, seen from all sides, at several blurs: standard deviation 1.
    """
    y, x = np.indices((_SIDE, _SIDE)) - (_SIDE - 1) / 2
    across = np.cos(angle) * x + np.sin(angle) * y
    reach = 0.75 * _SIDE
    edges = np.array(
        [
            scipy.special.erf((across - shift) / (np.sqrt(2.0) * blur)).ravel()
            for blur in (0.5, 1.0, 2.0, 4.0)
            for shift in np.arange(-reach, reach + 0.25, 0.25)
        ]
    )
    return edges.T @ edges / len(edges)


def _dct_covariance(falling: Array) -> Array:
    """Return the covariance whose eigenvectors are the 2-D DCT, low frequencies first."""
    one = scipy.fft.dct(np.eye(_SIDE), axis=0, norm="ortho")
    atoms = np.einsum("ui,vj->uvij", one, one).reshape(_SIDE**2, _SIDE**2)
    frequency = np.add.outer(np.arange(_SIDE) ** 2, np.arange(_SIDE) ** 2).ravel()
    rank = np.empty(_SIDE**2, int)
    rank[np.argsort(frequency, kind="stable")] = np.arange(_SIDE**2)
    return (atoms.T * falling[rank]) @ atoms
