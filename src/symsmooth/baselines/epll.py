"""EPLL: the picture near the noisy one whose patches are all likely under a Gaussian mixture.

The mixture of natural patches that the package ships, ``natural.npz``, was learned by
``benchmarks/train_prior.py``.  A covariance is kept as its eigenvectors times the roots of their
eigenvalues, in grey levels and half precision; directions without variance are not kept.
"""

from __future__ import annotations

from functools import lru_cache, partial
from importlib import resources
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from ..core.channels import decorrelate, mix
from ..core.image import Array, ChannelAxis, Float, Picture, open_image
from ..core.lazy import dask_aware
from ..core.options import check_at_least_one, make_rng
from ..core.parallel import Pool, Progress
from ..core.signatures import described_like
from ..noise import NATURAL_SPREAD, contrast, resolve_sigma
from .patch_gmm import (
    NoisyPrior,
    PatchPrior,
    coverage,
    em_step,
    filter_patches,
    first_prior,
    mirror,
    take_patches,
    unmirror,
)

_BETAS = (1.0, 4.0, 8.0, 16.0, 32.0)  # times 1 / sigma^2
_FIDELITY = 0.8  # lambda, times sigma^2, for each patch that covers a pixel
_LEARNED_SIDE = 5
_PATCHES_PER_COMPONENT = 150
_MAX_COMPONENTS = 100
_MAX_PATCHES = 60_000  # that a mixture is learned from
_EM_STEPS = 20
_PILOT_TIME, _LEARNING = 0.1, 0.9  # of the time that is left, for the progress callback
_FLOOR = 1.0 / NATURAL_SPREAD  # of learned eigenvalues' roots, in units of the picture's contrast
NATURAL_SIDE = 8
NATURAL_CONTRAST = 36.0 / 255.0  # standard deviation of a picture that it fits best as it is
_GREY = 255.0


@dask_aware
@described_like()
def denoise_epll(
    image: ArrayLike,
    sigma: float | None = None,
    *,
    prior: Literal["natural", "noisy", "pilot"] | ArrayLike = "natural",
    patch_size: int | None = None,
    n_components: int | None = None,
    channel_axis: ChannelAxis = "auto",
    mask: ArrayLike | None = None,
    rng: int | np.random.Generator | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Array:
    """Denoise with EPLL, expected patch log likelihood.

    Parameters
    ----------
    image : array_like
        2-D or 3-D (a volume is denoised slice by slice), plus channels if ``channel_axis`` is given.
    prior : {"natural", "noisy", "pilot"} or array_like
        What the mixture was learned from: natural pictures (it comes with the package), the noisy
        image itself, its BM3D estimate, or a given image of the same shape and units.
    patch_size : int or None
        Side of the patches; None takes 8 for the natural prior (which has no other), else 5.
    n_components : int or None
        Components of a mixture that is learned; None takes one for 150 patches, at most 100.
    rng : int, Generator or None
        Seed of a mixture that is learned.

    Returns
    -------
    ndarray
        Same shape and dtype as the image.

    Notes
    -----
    Minimises lambda/2 |x - y|^2 - sum_j log p(P_j x), lambda = d / sigma^2, by half-quadratic
    splitting: for beta = 1, 4, 8, 16, 32 over sigma^2, z_j is the MAP estimate of the patch P_j x
    with noise 1/beta under its most likely component, then
    x = (lambda y + beta sum_j P_j' z_j) / (lambda + beta sum_j P_j' P_j).
    The means of patches are taken off before and put back after.  The natural prior is scaled to the
    contrast sqrt(var(y) - sigma^2), so that units do not matter.

    References
    ----------
    D. Zoran, Y. Weiss, "From learning models of natural image patches to whole image restoration",
    ICCV 2011, doi:10.1109/ICCV.2011.6126278.

    Examples
    --------
    >>> import numpy as np, symsmooth
    >>> noisy = np.random.default_rng(0).normal(100.0, 20.0, (32, 32))
    >>> bool(symsmooth.denoise_epll(noisy, 20.0).std() < 6.0)
    True
    """
    picture = open_image(image, channel_axis, mask)
    sigma = resolve_sigma(picture, sigma)
    check_at_least_one("patch_size", patch_size)
    check_at_least_one("n_components", n_components)
    learned_from = _guide(prior, picture)
    if isinstance(prior, str) and prior == "natural" and patch_size not in (None, NATURAL_SIDE):
        raise ValueError(f"patch_size of the natural prior is {NATURAL_SIDE}, got {patch_size}")
    generator = make_rng(rng)
    if sigma == 0.0:
        return picture.restore(picture.noisy)
    transform = decorrelate(picture.scene.noisy, sigma)
    noisy = mix(picture.noisy, transform)
    spread = contrast(mix(picture.scene.noisy, transform)[..., 0], sigma) * sigma
    with Pool(workers, progress) as pool:
        if isinstance(prior, str) and prior == "pilot":
            learned_from = _pilot(picture, sigma, pool)  # a small part of the time
        if learned_from is None:
            priors = [natural_prior().scaled(spread / NATURAL_CONTRAST)] * noisy.shape[-1]
        else:
            side = patch_size or _LEARNED_SIDE
            floor = (_FLOOR * spread) ** 2
            guide = mix(learned_from, transform)
            with pool.part(_LEARNING):
                priors = [
                    learn(guide[..., c], side, n_components, floor, generator, pool)
                    for c in pool.parts(range(noisy.shape[-1]))
                ]
        denoised = np.empty_like(noisy)
        for *at, c in pool.parts(np.ndindex(*picture.spatial[:-2], noisy.shape[-1])):
            place = tuple(at)
            denoised[(*place, ..., c)] = solve(
                noisy[(*place, ..., c)], picture.observed[place], sigma, priors[c], pool
            )
    return picture.restore(mix(denoised, transform.T))


def solve(noisy: Float, observed: Float, sigma: float, prior: PatchPrior, pool: Pool) -> Float:
    """Return the plane (y, x) that half-quadratic splitting finds."""
    side = round(prior.means.shape[1] ** 0.5)
    shape, noisy, observed = noisy.shape, mirror(noisy, side), mirror(observed, side)
    covered = coverage(noisy.shape, side)
    # Lambda sigma^2; missing pixels have none.
    fidelity = np.float32(_FIDELITY) * covered * observed
    clean = noisy
    pool.expect(len(_BETAS))
    for number, beta in enumerate(_BETAS, start=1):
        model = NoisyPrior(prior, sigma**2 / beta)
        total = filter_patches(
            clean, side, partial(most_likely_patches, model), pool,
            f"step {number} of {len(_BETAS)}",
        )  # fmt: skip
        share = np.float32(beta)
        clean = (fidelity * noisy + share * total) / (fidelity + share * covered)
    return unmirror(clean, shape)


def most_likely_patches(model: NoisyPrior, patches: Float) -> Float:
    """Return the MAP estimates of patches (m, d) under their most likely components."""
    means = patches.mean(axis=1, keepdims=True)
    centred = patches - means
    return model.map_estimate(centred, model.most_likely(centred)) + means


def learn(
    guide: Float,
    side: int,
    n_components: int | None,
    floor: float,
    rng: np.random.Generator,
    pool: Pool,
) -> PatchPrior:
    """Return a mixture learned from the zero-mean patches of a channel (*spatial)."""
    planes = guide.reshape(-1, *guide.shape[-2:])
    each = max(1, _MAX_PATCHES // len(planes))
    patches = np.concatenate([_sample(mirror(p, side), side, each, rng) for p in planes])
    patches -= patches.mean(axis=1, keepdims=True)
    if n_components is None:
        n_components = min(_MAX_COMPONENTS, max(1, len(patches) // _PATCHES_PER_COMPONENT))
    prior = first_prior(patches, n_components, floor, rng)
    pool.expect(_EM_STEPS)
    for _ in range(_EM_STEPS):
        prior, _ = em_step(patches, prior, floor, pool)
    return prior


def _sample(plane: Float, side: int, max_count: int, rng: np.random.Generator) -> Float:
    """Return at most so many patches of a plane, drawn at random if there are more."""
    windows = np.lib.stride_tricks.sliding_window_view(plane, (side, side))
    count = windows.shape[0] * windows.shape[1]
    if count <= max_count:
        return take_patches(plane, side)
    ys, xs = np.divmod(np.sort(rng.choice(count, max_count, replace=False)), windows.shape[1])
    return windows[ys, xs].reshape(max_count, -1)


def _guide(prior: str | ArrayLike, picture: Picture) -> Float | None:
    """Return the pixels a mixture is to be learned from, or None for the one that is shipped."""
    if isinstance(prior, str):
        if prior not in ("natural", "noisy", "pilot"):
            raise ValueError(
                f"prior must be 'natural', 'noisy', 'pilot' or an image, got {prior!r}"
            )
        return picture.noisy if prior == "noisy" else None
    given = np.asarray(prior)
    shape = picture.in_units(picture.noisy).shape
    if given.shape != shape:
        raise ValueError(f"prior must have the image's shape {shape}, got {given.shape}")
    if picture.channel_axis is None:
        given = given[..., np.newaxis]
    else:
        given = np.moveaxis(given, picture.channel_axis, -1)
    return ((given - picture.offset) / picture.scale).astype(np.float32)


def _pilot(picture: Picture, sigma: float, pool: Pool) -> Float:
    """Return the BM3D estimate (*spatial, channels), without units."""
    from .bm3d import denoise_bm3d

    return denoise_bm3d(
        picture.noisy, sigma, channel_axis=-1,
        mask=picture.mask,
        workers=pool.workers, progress=pool.nested(_PILOT_TIME),
    )  # fmt: skip


def save_prior(path: Path, prior: PatchPrior) -> None:
    """Write a zero-mean mixture to a file."""
    rows = prior.vectors.transpose(0, 2, 1) * np.sqrt(prior.values)[..., np.newaxis]
    kept = prior.values > 0.0
    np.savez_compressed(
        path,
        weights=prior.weights.astype(np.float32),
        ranks=kept.sum(axis=1).astype(np.uint8),
        factors=(rows[kept] * _GREY).astype(np.float16),
    )


def load_prior(path: Path) -> PatchPrior:
    """Read what :func:`save_prior` wrote."""
    with np.load(path) as file:
        weights, ranks, factors = (file[name] for name in ("weights", "ranks", "factors"))
    k, d = len(weights), factors.shape[1]
    rows = np.zeros((k, d, d))
    rows[np.arange(d) < ranks[:, np.newaxis].astype(int)] = factors.astype(float) / _GREY
    values = (rows**2).sum(axis=2)
    vectors = rows / np.sqrt(np.where(values > 0.0, values, 1.0))[..., np.newaxis]
    weights = weights.astype(float) / weights.sum(dtype=float)
    return PatchPrior(weights, np.zeros((k, d)), values, vectors.transpose(0, 2, 1))


@lru_cache(maxsize=1)
def natural_prior() -> PatchPrior:
    """Return the mixture of zero-mean 8 x 8 patches of natural pictures with values in [0, 1]."""
    with resources.as_file(resources.files(__package__) / "natural.npz") as path:
        return load_prior(path)
