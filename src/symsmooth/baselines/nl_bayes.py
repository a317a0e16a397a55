"""NL-Bayes: a Gaussian model for each group of similar patches, learned twice."""

from __future__ import annotations

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

# Chosen on the development pictures at sigma 15 to 80, see docs/paper_map.md.
_FLAT = 1.0  # a group is flat if its variance is at most so many deviations above that of noise
_BIAS = 1.3  # beta: what is taken from the spectrum in step 1, in sigma^2
_JOINT = 80  # patches of more numbers than this are filtered channel by channel in step 2


@dataclass(frozen=True)
class Steps:
    """The groups of both steps, in units of the noise."""

    first: Search
    second: Search


@dask_aware
@described_like()
def denoise_nl_bayes(
    image: ArrayLike,
    sigma: float | None = None,
    *,
    boost: bool = True,
    channel_axis: ChannelAxis = "auto",
    mask: ArrayLike | None = None,
    rng: int | np.random.Generator | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Array:
    """Denoise with NL-Bayes, the non-local Bayesian estimate of patches.

    Parameters
    ----------
    boost : bool
        Whether patches that were denoised in an earlier group are skipped as references: three times
        as fast, a few hundredths of a dB worse.
    rng : int, Generator or None
        Not used: the method has no randomness.

    Returns
    -------
    ndarray
        Same shape and dtype as the image.

    Notes
    -----
    Step 1: the patches y nearest to a reference have mean m and covariance C; each is estimated as
    m + (C - beta sigma^2 I)+ C^-1 (y - m), or as the group's grey level where the group is flat.
    Step 2: patches are matched in the first estimate, which also gives the covariance S:
    m + S (S + sigma^2 I)^-1 (y - m).  Estimates of a pixel are averaged.
    Colour: step 1 in opponent channels matched on the first, step 2 on all channels jointly.  Volumes:
    cubes.  A patch with missing pixels is in no group but its own.

    References
    ----------
    M. Lebrun, A. Buades, J.-M. Morel, "A nonlocal Bayesian image denoising algorithm", SIAM J. Imaging
    Sci. 6 (2013), doi:10.1137/120874989.
    M. Lebrun, A. Buades, J.-M. Morel, "Implementation of the non-local Bayes (NL-Bayes) image
    denoising algorithm", Image Processing On Line 3 (2013), doi:10.5201/ipol.2013.16.

    Examples
    --------
    >>> import numpy as np, symsmooth
    >>> noisy = np.random.default_rng(0).normal(100.0, 20.0, (32, 32))
    >>> bool(symsmooth.denoise_nl_bayes(noisy, 20.0).std() < 6.0)
    True
    """
    picture = open_image(image, channel_axis, mask)
    sigma = resolve_sigma(picture, sigma)
    if sigma == 0.0:
        return picture.restore(picture.noisy)
    channels, n_dims = picture.noisy.shape[-1], len(picture.spatial)
    steps = choose_steps(contrast(picture.scene.noisy, sigma), n_dims, channels, boost)
    transform = decorrelate(picture.scene.noisy, sigma)
    min_side = max(steps.first.side, steps.second.side)
    noisy = to_planes(mix(picture.noisy, transform), min_side) / np.float32(sigma)
    with Pool(workers, progress) as pool:
        whole = whole_patches(picture, steps.first.side, min_side)
        with pool.part(0.5):
            pilot = first_estimate(noisy, whole, steps.first, pool)
        whole = whole_patches(picture, steps.second.side, min_side)
        denoised = second_estimate(noisy, pilot, whole, steps.second, pool)
    denoised = from_planes(denoised * np.float32(sigma), picture.spatial)
    return picture.restore(mix(denoised, transform.T))


def choose_steps(ratio: float, n_dims: int, channels: int, boost: bool) -> Steps:
    """Return the groups for a picture whose contrast is ``ratio`` times the noise.

    Step 1 takes four times as many patches as a patch has numbers; more noise, larger patches.
    """
    limit = (0.05 * ratio) ** 2
    if n_dims == 3:
        return Steps(
            Search(3, 2, 5, 4 * 27, 4 * 27, boost=boost), Search(3, 2, 5, 160, 32, limit, boost)
        )
    level = grey_levels(ratio)
    radius = 17 if level < 40.0 else 25
    side = 4 + min(int(level // 20.0), 4)
    final = max(side, 5) if channels == 1 else min(max(side - 1, 4), 5)
    return Steps(
        Search(side, 2, radius, 4 * side**2, 4 * side**2, boost=boost),
        Search(final, 2, radius, 180, 32, limit, boost),
    )


def first_estimate(noisy: Float, whole: Array, search: Search, pool: Pool) -> Float:
    """Step 1: the Gaussian model of each group of noisy patches; planes in units of the noise."""

    def kernel(groups: _native.Groups, planes: Float) -> tuple[Float, Float]:
        return _native.bayes_groups(groups, planes, None, 1, _FLAT, _BIAS)

    window = np.ones(search.side, np.float32)
    return filter_groups([noisy], noisy[:1], whole, search, kernel, window, pool, "step 1")


def second_estimate(noisy: Float, pilot: Float, whole: Array, search: Search, pool: Pool) -> Float:
    """Step 2: the same with groups and covariances from the pilot, all channels jointly."""
    numbers = search.side ** (2 if noisy.shape[1] == 1 else 3) * len(noisy)
    together = len(noisy) if numbers <= _JOINT else 1

    def kernel(groups: _native.Groups, planes: Float, guide: Float) -> tuple[Float, Float]:
        return _native.bayes_groups(groups, planes, guide, together, _FLAT, _BIAS)

    window = np.ones(search.side, np.float32)
    return filter_groups([noisy, pilot], pilot, whole, search, kernel, window, pool, "step 2")
