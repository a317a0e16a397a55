"""EM: the windowed, tiled engine against the dense equations."""

from __future__ import annotations

import numpy as np
import pytest

from symsmooth import _native
from symsmooth.core.blocks import cut_frames
from symsmooth.core.parallel import Pool
from symsmooth.core.patches import (
    aggregate_patches,
    extract_patches,
    patch_means,
    whiten,
    whiten_inside,
)
from symsmooth.mixture.averages import aggregate_means, cluster_averages
from symsmooth.mixture.em import (
    GaussianMixture,
    deviation,
    e_step,
    fit_mixture,
    initial_mixture,
    m_step,
    neighbourhood,
    prune,
    responsibilities,
    stratified_positions,
)

from .. import oracles

pytestmark = pytest.mark.usefixtures("instruction_set")
EVERYWHERE = 1e6  # reach at which every tile meets every cluster
SHAPES = [(20, 23, 1), (12, 9, 3), (5, 9, 10, 1)]


def scene(shape, contrast=1.0, seed=0):
    rng = np.random.default_rng(seed)
    image = rng.random(shape) + contrast * (np.indices(shape)[0] // 4 % 2)
    return image.astype(np.float32)


def start(features, k):
    return initial_mixture(features, k, np.random.default_rng(5))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("offset", [0.0, 300.0])
def test_one_em_step_is_the_dense_equations(shape, offset) -> None:
    """Also far from zero: the tile's own origin keeps float32 exact enough at any contrast."""
    image = scene(shape) + np.float32(offset)
    features = whiten(image, 3, 4.0, 0.3)
    points = oracles.generalised_patches(image, 3, 4.0, 0.3)
    mixture = start(features, 17)
    with Pool(2) as pool:
        step = e_step(features, mixture, neighbourhood(features, mixture, EVERYWHERE), pool)
    moved = m_step(mixture, step)
    gamma = oracles.responsibilities(points, mixture.means, mixture.proportions)
    means, proportions = oracles.m_step(points, gamma)
    assert np.abs(moved.means - means).max() < 1e-3  # in units of h_r and h_s
    assert np.allclose(moved.proportions, proportions, atol=1e-4)
    assert np.isclose(deviation(step), oracles.deviation(points, gamma), rtol=2e-3)
    expected = oracles.log_likelihood(points, mixture.means, mixture.proportions)
    assert np.isclose(step.log_likelihood, expected, rtol=1e-3)


def test_far_clusters_hold_nothing_and_no_sum_is_subnormal() -> None:
    """Sums of weights of 1e-38 are subnormal numbers, which made EM four times slower."""
    features = whiten(scene((40, 40, 1), contrast=30.0), 5, 10.0, 0.3)
    mixture = start(features, 30)
    with Pool(1) as pool:
        step = e_step(features, mixture, neighbourhood(features, mixture, EVERYWHERE), pool)
    assert (step.tile_mass == 0.0).any()
    for sums in (step.tile_mass, step.mass, step.shift):
        assert not ((sums != 0.0) & (np.abs(sums) < np.finfo(np.float32).tiny)).any()


def test_the_likelihood_never_falls() -> None:
    features = whiten(scene((40, 40, 1)), 5, 10.0, 0.4)
    with Pool(2) as pool:
        fit = fit_mixture(
            features, start(features, 30), pool, max_iter=25, tol=-1.0, reach=EVERYWHERE,
        )  # fmt: skip
    assert len(fit.log_likelihoods) == 25
    assert np.diff(fit.log_likelihoods).min() > -1e-4
    assert fit.log_likelihoods[-1] > fit.log_likelihoods[0] + 0.1


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_responsibilities_averages_and_aggregation_are_their_equations(shape) -> None:
    image = scene(shape)
    noisy = scene(shape, seed=7)
    features = whiten(image, 3, 4.0, 0.5)
    mixture = start(features, 9)
    points = oracles.generalised_patches(image, 3, 4.0, 0.5)
    gamma = oracles.responsibilities(points, mixture.means, mixture.proportions)
    near = neighbourhood(features, mixture, EVERYWHERE)
    assert np.allclose(responsibilities(features, mixture, near).toarray(), gamma, atol=2e-4)
    patches = extract_patches(noisy, 3).reshape(features.n_pixels, -1)
    mass = gamma.sum(axis=1)
    with Pool(2) as pool:
        own = cluster_averages(features, mixture, near, noisy, pool)
        u = aggregate_means(features, mixture, near, own.cluster_estimates, pool)
    assert np.allclose(
        own.cluster_estimates[:, len(shape) - 1 :] * 0.5, gamma @ patches / mass[:, None], atol=1e-3
    )
    assert np.isclose(own.divergence, np.sum((gamma**2).sum(axis=1) / mass), rtol=1e-3)
    w = (gamma.T @ own.cluster_estimates[:, len(shape) - 1 :] * 0.5).reshape(*shape[:-1], -1)
    d = 3 ** (len(shape) - 1)
    assert np.allclose(u, aggregate_patches(w, 3, shape[-1]) / d, atol=1e-3)


def test_missing_points_carry_no_weight() -> None:
    image = scene((24, 24, 1))
    features = whiten(image, 3, 6.0, 0.4)
    mixture = start(features, 12)
    weight = np.ones((24, 24), np.float32)
    weight[:, :8] = 0.0
    with Pool(1) as pool:
        near = neighbourhood(features, mixture, EVERYWHERE)
        step = e_step(features, mixture, near, pool, weight=weight)
    points = oracles.generalised_patches(image, 3, 6.0, 0.4)
    gamma = oracles.responsibilities(points, mixture.means, mixture.proportions)
    assert np.allclose(step.mass, gamma @ weight.ravel(), atol=1e-2)


def test_an_empty_cluster_keeps_its_mean_and_stays_finite() -> None:
    features = whiten(scene((20, 20, 1)), 3, 5.0, 0.3)
    mixture = start(features, 8)
    means = mixture.means.copy()
    means[3, 2:] = 1e4  # no patch is anywhere near
    with Pool(1) as pool:
        fit = fit_mixture(
            features, GaussianMixture(means, mixture.proportions), pool, max_iter=5, tol=-1
        )
    assert np.isfinite(fit.mixture.means).all()
    assert np.allclose(fit.mixture.means[3], means[3])
    assert fit.mixture.proportions[3] < 1e-4
    assert np.isfinite(fit.deviation)


@pytest.mark.parametrize("k", [1, 2, 7, 100, 399, 400, 1000])
@pytest.mark.parametrize("grid", [(1, 20, 20), (1, 1, 400), (4, 10, 10)])
def test_starting_points_are_k_and_inside(k, grid) -> None:
    at = stratified_positions(grid, k, np.random.default_rng(0))
    assert at.shape == (k, 3)
    assert (at >= 0).all()
    assert (at < grid).all()


def test_starting_points_are_spread_evenly() -> None:
    at = stratified_positions((1, 100, 100), 100, np.random.default_rng(0))
    counts, _, _ = np.histogram2d(at[:, 1], at[:, 2], bins=5, range=[[0, 100], [0, 100]])
    assert counts.min() >= 2
    assert counts.max() <= 6


def test_a_tile_never_forgets_all_its_clusters() -> None:
    features = whiten(scene((40, 40, 1)), 3, 4.0, 0.3)
    near = neighbourhood(features, start(features, 30))
    mass = np.zeros(len(near.ids), np.float32)
    assert np.array_equal(prune(near, mass).pointers, near.pointers)
    mass[near.pointers[2]] = 5.0
    pruned = prune(near, mass)
    assert pruned.pointers[3] - pruned.pointers[2] == 1
    assert pruned.ids[pruned.pointers[2]] == near.ids[near.pointers[2]]


def test_every_tile_finds_a_cluster_even_if_there_is_only_one() -> None:
    features = whiten(scene((100, 120, 1)), 3, 2.0, 0.3)
    mixture = start(features, 1)
    near = neighbourhood(features, mixture)
    assert (np.diff(near.pointers) == 1).all()


def moving_series(reach_of=20.0):
    """Return features of a series (y, t, x) whose squares are moved by up to so many pixels."""
    rng = np.random.default_rng(3)
    offsets = rng.uniform(-reach_of, reach_of, (3, 2, 3, 3)).astype(np.float32)
    guide = scene((37, 3, 40, 2))
    return whiten_inside(guide, (3, 1, 3), 4.0, 0.5, lambda grid: cut_frames(grid, offsets))


def test_positions_are_counted_where_tiles_are_moved_to() -> None:
    """Responsibilities of all clusters for the points of moved tiles are the dense equation's."""
    features = moving_series()
    mixture = start(features, 9)
    near = neighbourhood(features, mixture, EVERYWHERE)
    points = features.at(np.arange(features.n_pixels))
    found = responsibilities(features, mixture, near).toarray()
    square = np.square(points[:, None] - mixture.means[None]).sum(axis=-1)
    dense = mixture.proportions * np.exp(-0.5 * (square - square.min(axis=1, keepdims=True)))
    dense /= dense.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found, dense.T, atol=2e-4)
    y, t, x = np.unravel_index(np.arange(features.n_pixels), features.grid)
    moved = features.tiles.offsets[features.tiles.number_of(y, t, x)]
    expected = (np.stack([y, t, x], axis=1) + moved) / 4.0
    np.testing.assert_allclose(points[:, :3], expected, rtol=1e-5, atol=1e-5)


def test_a_tile_without_clusters_looks_further_and_others_do_not() -> None:
    features = whiten(scene((64, 64, 1)), 3, 4.0, 0.3)
    at = np.array(
        [0, 1, 15 * 64, 15 * 64 + 15, 20, 20 * 64, 20 * 64 + 20]
    )  # none in the last tiles
    mixture = GaussianMixture(features.at(at), np.full(len(at), 1 / len(at), np.float32))
    near = neighbourhood(features, mixture, 0.5)
    counts = np.diff(near.pointers)
    assert (counts > 0).all()
    far = neighbourhood(features, mixture, 16.0)
    assert near.ids[: counts[0]].tolist() == [0, 1, 2, 3]
    assert len(near.ids) < len(far.ids)
    centres = mixture.means[:, :2] * features.h_s
    for t, (_, _, y0, y1, x0, x1) in enumerate(near.tiles.boxes):
        low, high = np.array([y0, x0]), np.array([y1, x1]) - 1
        away = np.linalg.norm(np.maximum(np.maximum(low - centres, centres - high), 0), axis=1)
        radius = 2.0
        while not (away < radius).any():
            radius *= 2
        own = near.ids[near.pointers[t] : near.pointers[t + 1]]
        assert sorted(own) == np.flatnonzero(away < radius).tolist()


def test_marks_are_numbers_of_a_point() -> None:
    """Points with means of other channels have the responsibilities of the dense equation."""
    guide = scene((21, 3, 24, 3))
    means = patch_means(guide[..., 1:], (3, 1, 3))
    windows = np.lib.stride_tricks.sliding_window_view(guide[..., 1:], (3, 1, 3), axis=(0, 1, 2))
    np.testing.assert_allclose(means, windows.mean(axis=(-3, -2, -1)), rtol=1e-5)
    features = whiten_inside(guide[..., :1], (3, 1, 3), 4.0, 0.5, marks=means / 0.2)
    assert features.dim == 3 + 9 + 2
    mixture = start(features, 9)
    near = neighbourhood(features, mixture, EVERYWHERE)
    points = features.at(np.arange(features.n_pixels))
    np.testing.assert_array_equal(points[:, -2:], means.reshape(-1, 2) / np.float32(0.2))
    found = responsibilities(features, mixture, near).toarray()
    square = np.square(points[:, None] - mixture.means[None]).sum(axis=-1)
    dense = mixture.proportions * np.exp(-0.5 * (square - square.min(axis=1, keepdims=True)))
    dense /= dense.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found, dense.T, atol=2e-4)
    tiles = near.strips[0].tiles
    with pytest.raises(ValueError, match="no marks"):
        _native.sum_points(features.points, tiles, mixture.native, features.padded, None, 1)


@pytest.mark.parametrize("reach", [0.5, 2.0])
def test_moved_tiles_meet_the_clusters_that_are_near_where_they_are_moved_to(reach: float) -> None:
    features = moving_series()
    mixture = start(features, 300)
    near = neighbourhood(features, mixture, reach)
    centres = mixture.means[:, :3] * features.h_s
    for t, box in enumerate(near.tiles.boxes):
        radius = reach * features.h_s
        low = box[[0, 2, 4]] + near.tiles.offsets[t]
        high = box[[1, 3, 5]] - 1 + near.tiles.offsets[t]
        gap = np.maximum(np.maximum(low - centres, centres - high), 0)
        distance = np.sqrt(np.square(gap).sum(axis=1))
        while distance.min() >= radius:
            radius *= 2  # a tile without clusters looks further
        own = set(near.ids[near.pointers[t] : near.pointers[t + 1]].tolist())
        assert set(np.flatnonzero(distance < radius - 1e-3).tolist()) <= own
        assert own <= set(np.flatnonzero(distance < radius + 1e-3).tolist())


def test_tiles_far_from_all_clusters_look_twice_as_far_until_they_find_one() -> None:
    """Each tile by itself: what others find does not change."""
    grid, tile, radius = (1, 70, 90), (1, 16, 16), 3.0
    centres = np.array([[0, 1, 2], [0, 60, 80], [0, 12, 33]], np.float32)
    pointers, ids = _native.find_candidates(grid, tile, centres, radius)
    tiles = [(y, x) for y in range(0, 70, 16) for x in range(0, 90, 16)]
    assert len(pointers) == len(tiles) + 1
    for (y, x), start, stop in zip(tiles, pointers, pointers[1:], strict=False):
        low, high = np.array([y, x]), np.minimum([y + 15, x + 15], [69, 89])
        gaps = np.maximum(np.maximum(low - centres[:, 1:], centres[:, 1:] - high), 0)
        distance = np.hypot(*gaps.T)
        own = radius
        while not (distance < own).any():
            own *= 2
        assert set(ids[start:stop]) == set(np.flatnonzero(distance < own))


def test_without_clusters_tiles_have_none() -> None:
    pointers, ids = _native.find_candidates(
        (1, 20, 20), (1, 16, 16), np.zeros((0, 3), np.float32), 2.0
    )
    assert not ids.size
    assert not pointers.any()
