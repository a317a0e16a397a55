"""What soft clusters do with their patches: kernels against literal twins."""

from __future__ import annotations

import numpy as np
import pytest

from symsmooth.core.parallel import Pool
from symsmooth.core.patches import whiten, whiten_inside
from symsmooth.gsfw import estimators
from symsmooth.gsfw.presets import SPECTRUM_BIAS
from symsmooth.mixture.averages import average_members
from symsmooth.mixture.em import fit_mixture, initial_mixture, neighbourhood
from symsmooth.mixture.members import MIN_SHARE, assign_patches

from .. import oracles

pytestmark = pytest.mark.usefixtures("instruction_set")
SIGMA = 0.1
SHAPES = [((26, 30), 4), ((9, 11, 12), 3), ((40, 25), 7)]


@pytest.fixture(params=SHAPES, ids=str)
def setting(request):
    shape, size = request.param
    rng = np.random.default_rng(0)
    clean = (np.indices(shape).sum(axis=0) // 6 % 2 * 0.6).astype(np.float32)
    noisy = (clean + SIGMA * rng.standard_normal(shape)).astype(np.float32)
    pilot = (clean + 0.3 * (noisy - clean)).astype(np.float32)
    features = whiten_inside(noisy[..., None], size, 6.0, SIGMA)
    with Pool(2) as pool:
        start = initial_mixture(features, features.n_pixels // size**2, rng)
        fit = fit_mixture(features, start, pool, max_iter=2)
        members = assign_patches(
            features, fit.mixture, fit.near, pool, max_clusters=5, temperature=0.5
        )
        yield noisy, pilot, features, fit, members, pool


def corner_patches(image, features, corners):
    """Patches (n, d) of one channel by their flat corners."""
    volume = image if image.ndim == 3 else image[None]
    z, y, x = np.unravel_index(corners, volume.shape)
    windows = np.lib.stride_tricks.sliding_window_view(volume, features.patch)
    return windows[z, y, x].reshape(len(corners), -1).astype(float)


def aggregate(image, features, members, estimate):
    """Weighted overlap-add of estimate(corners, g) -> (patches, weights, variance), literally.

    Return the weighted means of the estimates and of their variances.
    """
    volume = np.zeros(image.shape if image.ndim == 3 else (1, *image.shape))
    mass, spread = np.zeros_like(volume), np.zeros_like(volume)
    pz, py, px = features.patch
    for i in range(len(members.pointers) - 1):
        span = slice(members.pointers[i], members.pointers[i + 1])
        corners, g = members.corners[span], members.shares[span].astype(float)
        if len(corners) == 0:
            continue
        patches, weights, variance = estimate(corners, g)
        for corner, patch, weight in zip(corners, patches, weights, strict=True):
            z, y, x = np.unravel_index(corner, volume.shape)
            at = (slice(z, z + pz), slice(y, y + py), slice(x, x + px))
            volume[at] += weight * patch.reshape(features.patch)
            mass[at] += weight
            spread[at] += weight * variance
    return (volume / mass).reshape(image.shape), (spread / mass).reshape(image.shape)


def test_members_are_the_largest_tempered_responsibilities(setting) -> None:
    _, _, features, fit, _, pool = setting
    everywhere = neighbourhood(features, fit.mixture, 1e6)
    members = assign_patches(
        features, fit.mixture, everywhere, pool, max_clusters=5, temperature=0.5
    )
    means, proportions = fit.mixture.means.astype(float), fit.mixture.proportions.astype(float)
    points = features.at(np.arange(features.n_pixels)).astype(float)
    logs = np.log(proportions)[:, None] - oracles.squared_distances(means, points) / 2
    weights = np.zeros_like(logs)
    volume_shape = features.padded.shape[:3]
    for j in range(features.n_pixels):
        order = np.argsort(-logs[:, j])[:5]
        tempered = np.exp(0.5 * (logs[order, j] - logs[order[0], j]))
        tempered[tempered < MIN_SHARE] = 0
        weights[order, j] = tempered / tempered.sum()
    weights[weights <= MIN_SHARE] = 0
    found = np.zeros_like(weights)
    for i in range(len(logs)):
        span = slice(members.pointers[i], members.pointers[i + 1])
        corner = np.stack(np.unravel_index(members.corners[span], volume_shape))
        found[i, np.ravel_multi_index(tuple(corner), features.grid)] = members.shares[span]
    assert np.mean(np.abs(found - weights) > 0.01) < 1e-3  # ties
    assert np.abs(found.sum(axis=0) - 1).max() < 0.06


def test_shrinking_everything_away_gives_gsf_back(setting) -> None:
    """f = 0: with so much noise that no eigenvalue stands out, the spectral estimator is GSF's mean.

    All clusters of a patch are its members, with its responsibilities as they are.  The borders are
    treated differently (GSF mirrors them), so the pixels that no border patch covers are compared.
    """
    noisy, _, inside, _, _, pool = setting
    features = whiten(noisy[..., None], 3, 6.0, SIGMA)
    start = initial_mixture(features, 6, np.random.default_rng(0))
    fit = fit_mixture(features, start, pool, max_iter=2)
    average, _ = average_members(features, fit, noisy[..., None], pool)
    members = assign_patches(features, fit.mixture, fit.near, pool, max_clusters=6, temperature=1.0)
    padded = features.padded[..., 0] if inside.n_dims == 3 else features.padded[0, ..., 0]
    shrunk = estimators.spectral(padded, members, 1e3, pool).image
    far = tuple(slice(3, size - 3) for size in noisy.shape)
    unpadded = tuple(slice(1, size + 1) for size in noisy.shape)
    scale = np.float32(features.h_r)
    difference = scale * shrunk[unpadded][far] - average[..., 0][far]
    assert np.abs(difference).max() < 0.02 * SIGMA  # shares under 1 % are dropped


def check(result, expected) -> None:
    """Image and variance agree to rounding.

    A weight without its 0.02, which matters least, would already be off by 1.6e-3 sigma.
    """
    image, variance = expected
    assert np.abs(result.image - image).max() < 3e-5 * SIGMA
    assert np.allclose(result.variance, variance, rtol=1e-5)


def test_spectral_is_its_equation(setting) -> None:
    noisy, _, features, _, members, pool = setting

    def shrunk(corners, g):
        patches = corner_patches(noisy, features, corners)
        estimate, variance = oracles.spectral(patches, g, SIGMA, SPECTRUM_BIAS)
        return estimate, g, SIGMA**2 * variance

    expected = aggregate(noisy, features, members, shrunk)
    check(estimators.spectral(noisy, members, SIGMA, pool, has_variance=True), expected)


def filtered(noisy, pilot, features, strength, trust):
    """The Wiener filter of a cluster, the weights of its patches and its variance."""

    def estimate(corners, g):
        own = corner_patches(noisy, features, corners)
        guide = corner_patches(pilot, features, corners)
        variance = oracles.wiener_variance(guide, g, SIGMA, strength)
        patches = oracles.wiener(own, guide, g, SIGMA, strength, trust)
        return patches, g / (variance + 0.02), SIGMA**2 * variance

    return estimate


def test_wiener_is_its_equation(setting) -> None:
    """Clusters of fewer patches than pixels take the dual form, larger ones the primal."""
    noisy, pilot, features, _, members, pool = setting
    expected = aggregate(noisy, features, members, filtered(noisy, pilot, features, 3.0, 0.8))
    check(
        estimators.wiener(
            noisy, pilot, members, SIGMA, pool, strength=3.0, trust=0.8, has_variance=True
        ),
        expected,
    )
    sizes = np.diff(members.pointers)
    assert sizes.max() > np.prod(features.patch) > sizes[sizes > 0].min()


def test_a_single_cluster_is_exact(setting) -> None:
    """With one cluster the aggregation weight cancels."""
    noisy, pilot, features, _, _, pool = setting
    one = initial_mixture(features, 1, np.random.default_rng(0))
    near = neighbourhood(features, one, 1e6)
    members = assign_patches(features, one, near, pool, max_clusters=1, temperature=1.0)
    expected = aggregate(noisy, features, members, filtered(noisy, pilot, features, 2.0, 0.7))
    check(
        estimators.wiener(
            noisy, pilot, members, SIGMA, pool, strength=2.0, trust=0.7, has_variance=True
        ),
        expected,
    )


def test_the_bound_of_the_trace_is_one(setting) -> None:
    """What the weight takes for trace F / d is no less than it, and not much more."""
    _, pilot, features, _, members, _ = setting
    ratios = []
    for i in np.flatnonzero(np.diff(members.pointers)):
        span = slice(members.pointers[i], members.pointers[i + 1])
        g = members.shares[span].astype(float)
        guide = corner_patches(pilot, features, members.corners[span])
        covariance = 3.0 * oracles.weighted_moments(guide, g)[1]
        exact = np.trace(
            np.linalg.solve(covariance + SIGMA**2 * np.eye(len(covariance)), covariance)
        )
        few = (g**2).sum() / g.sum() ** 2
        bound = oracles.wiener_variance(guide, g, SIGMA, 3.0) - few
        assert bound >= exact / len(covariance) - 1e-9
        ratios.append((bound + few) / (exact / len(covariance) + few))
    assert np.median(ratios) < 1.2


def test_corners_are_counted_in_one_channel() -> None:
    colour = np.random.default_rng(0).random((20, 21, 3)).astype(np.float32)
    features = whiten_inside(colour, 3, 5.0, 0.2)
    mixture = initial_mixture(features, 5, np.random.default_rng(0))
    with Pool(1) as pool:
        near = neighbourhood(features, mixture, 1e6)
        members = assign_patches(features, mixture, near, pool, max_clusters=2, temperature=1.0)
    assert members.corners.max() == 17 * 21 + 18  # of a picture of 20 x 21


@pytest.mark.parametrize(("shape", "size"), [((20, 21), 9), ((12, 12, 12), 5)])
def test_patches_that_kernels_cannot_hold_are_refused(shape, size) -> None:
    image = np.random.default_rng(0).random(shape).astype(np.float32)
    features = whiten_inside(image[..., None], size, 5.0, 0.2)
    mixture = initial_mixture(features, 3, np.random.default_rng(0))
    with Pool(1) as pool:
        near = neighbourhood(features, mixture, 1e6)
        members = assign_patches(features, mixture, near, pool, max_clusters=2, temperature=1.0)
        with pytest.raises(ValueError, match="smaller patch_size"):
            estimators.spectral(image, members, 0.1, pool)
        with pytest.raises(ValueError, match="smaller patch_size"):
            estimators.wiener(image, image, members, 0.1, pool, strength=1.0)


def test_a_channel_of_another_shape_is_refused(setting) -> None:
    noisy, pilot, _, _, members, pool = setting
    with pytest.raises(ValueError, match="positions"):
        estimators.spectral(noisy[1:], members, SIGMA, pool)
    with pytest.raises(ValueError, match="positions"):
        estimators.wiener(noisy, pilot[:, 1:], members, SIGMA, pool, strength=1.0)


@pytest.mark.parametrize("sigma", [1e-8, 1e-6, 1e-4, 1e-2])
def test_with_little_noise_estimators_tend_to_the_identity(setting, sigma) -> None:
    """Whatever the ratio of signal to noise: nothing singular, no pixel far from what was observed.

    The clusters were made for much more noise, so each holds patches that have little in common.
    """
    noisy, _, _, _, members, pool = setting
    for image in (
        estimators.spectral(noisy, members, sigma, pool).image,
        estimators.wiener(noisy, noisy, members, sigma, pool, strength=3.0).image,
    ):
        assert np.abs(image - noisy).max() < 4 * sigma + 2e-6


def test_spectral_of_pairs_is_its_equation() -> None:
    """Patches of two frames, wherever the second is, are filtered as one; both count for their pixels."""
    height, n_frames, width, side = 14, 3, 17, 4
    rng = np.random.default_rng(4)
    noisy = rng.normal(0.3, SIGMA, (height, n_frames, width)).astype(np.float32)
    noisy[:, :, width // 2 :] += np.float32(0.5)
    beside = rng.integers(0, noisy.size, noisy.shape).astype(np.int32)
    is_first = np.array([True, False, True])
    features = whiten_inside(noisy[..., None], (side, 1, side), 6.0, SIGMA)
    total, mass, spread = np.zeros((3, noisy.size))
    with Pool(2) as pool:
        start = initial_mixture(features, 6, rng)
        fit = fit_mixture(features, start, pool, max_iter=1)
        members = assign_patches(
            features, fit.mixture, fit.near, pool, max_clusters=3, temperature=0.5
        )
        found = estimators.spectral_of_pairs(
            noisy, beside, is_first, members, SIGMA, pool, has_variance=True
        )
    inside = np.arange(side)[:, None] * n_frames * width + np.arange(side)  # from a corner
    for i in range(len(members.pointers) - 1):
        span = slice(members.pointers[i], members.pointers[i + 1])
        own = members.corners[span, None] + inside.reshape(-1)
        first = is_first[members.corners[span] // width % n_frames, None]
        other = beside.reshape(-1)[own]
        pixels = np.concatenate([np.where(first, own, other), np.where(first, other, own)], axis=1)
        g = members.shares[span].astype(float)
        patches = noisy.reshape(-1)[pixels].astype(float)
        estimate, variance = oracles.spectral(patches, g, SIGMA, SPECTRUM_BIAS)
        np.add.at(total, pixels, g[:, None] * estimate)
        np.add.at(mass, pixels, g[:, None] + 0 * estimate)
        np.add.at(spread, pixels, g[:, None] * SIGMA**2 * variance + 0 * estimate)
    expected = [(each / mass).reshape(noisy.shape) for each in (total, spread)]
    check(found, expected)
