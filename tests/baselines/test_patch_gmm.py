"""Mixtures of full-covariance Gaussians: densities, estimates, EM, and their file."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given
from hypothesis import strategies as st

from symsmooth import _native
from symsmooth.baselines.epll import load_prior, natural_prior, save_prior
from symsmooth.baselines.patch_gmm import (
    NoisyPrior,
    PatchPrior,
    coverage,
    em_step,
    filter_patches,
    first_prior,
    from_moments,
    mirror,
    put_patches,
    take_patches,
    unmirror,
)
from symsmooth.core.parallel import Pool

from .. import oracles

NOISE = 0.3


def some_prior(k: int = 4, d: int = 9, seed: int = 0, centred: bool = False) -> PatchPrior:
    rng = np.random.default_rng(seed)
    roots = rng.standard_normal((k, d, d)) * np.geomspace(2.0, 0.01, d)
    weights = rng.dirichlet(np.ones(k))
    means = np.zeros((k, d)) if centred else rng.standard_normal((k, d))
    return from_moments(weights, means, roots @ roots.transpose(0, 2, 1), 0.0)


def draw(prior: PatchPrior, count: int, noise: float = NOISE, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    which = rng.choice(len(prior.weights), count, p=prior.weights)
    unit = rng.standard_normal((count, prior.means.shape[1]))
    clean = np.einsum("ide,ie->id", prior.vectors[which], unit * np.sqrt(prior.values[which]))
    noisy = prior.means[which] + clean + np.sqrt(noise) * rng.standard_normal(clean.shape)
    return noisy.astype(np.float32)


@pytest.mark.usefixtures("instruction_set")
@given(st.lists(st.integers(0, 7), min_size=1, max_size=5), st.integers(1, 40))
def test_kernels_equal_their_twins(ranks, m) -> None:
    starts = np.concatenate([[0], np.cumsum(ranks)]).astype(np.int64)
    values = np.random.default_rng(m).standard_normal((int(starts[-1]), m)).astype(np.float32)
    out = _native.add_squares(values, starts)
    assert np.allclose(out, oracles.add_squares(values, starts), rtol=1e-5)
    best, label = np.full(m, -np.inf, np.float32), np.zeros(m, np.int32)
    _native.keep_largest(out, 3, best, label)
    assert np.array_equal(best, out.max(axis=0))
    assert np.array_equal(label, 3 + out.argmax(axis=0))


@pytest.mark.parametrize("centred", [False, True])
def test_scores_are_the_log_densities(centred) -> None:
    prior = some_prior(centred=centred)
    noisy = draw(prior, 300)
    model = NoisyPrior(prior, NOISE, min_ratio=0.0)
    dense = oracles.log_densities(noisy, prior.weights, prior.means, prior.covariances, NOISE)
    assert np.abs(model.scores(noisy) + model.common(noisy) - dense).max() < 1e-3
    assert np.array_equal(model.most_likely(noisy), dense.argmax(axis=0))


def test_leaving_out_directions_changes_few_choices() -> None:
    """Each direction that is left out adds less than chi^2 / 6 to a log-density."""
    prior = some_prior(k=12, d=25)
    noisy = draw(prior, 3000)
    dense = oracles.log_densities(noisy, prior.weights, prior.means, prior.covariances, NOISE)
    assert (NoisyPrior(prior, NOISE).most_likely(noisy) == dense.argmax(axis=0)).mean() > 0.97


def test_the_choice_does_not_depend_on_blocks_and_groups() -> None:
    prior = some_prior(k=60, d=25)
    noisy = draw(prior, 2500)
    model = NoisyPrior(prior, NOISE)
    assert len(model._groups) > 1
    assert np.array_equal(model.most_likely(noisy), model.scores(noisy).argmax(axis=0))


def test_the_map_estimate_is_the_dense_formula_and_the_minimum() -> None:
    prior = some_prior()
    noisy = draw(prior, 20)
    model = NoisyPrior(prior, NOISE)
    labels = model.most_likely(noisy)
    estimates = model.map_estimate(noisy, labels)
    for y, k, estimate in zip(noisy.astype(float), labels, estimates, strict=True):
        S, mu = prior.covariances[k], prior.means[k]
        dense = mu + S @ np.linalg.solve(S + NOISE * np.eye(len(y)), y - mu)
        assert np.abs(estimate - dense).max() < 1e-4
        inverse = np.linalg.inv(S)

        def cost(x, y=y, mu=mu, inverse=inverse):
            return ((x - y) ** 2).sum() / NOISE + (x - mu) @ inverse @ (x - mu)

        def slope(x, y=y, mu=mu, inverse=inverse):
            return 2 * (x - y) / NOISE + 2 * inverse @ (x - mu)

        found = scipy.optimize.minimize(cost, y, jac=slope, method="BFGS")
        assert cost(estimate) <= found.fun * (1 + 1e-4) + 1e-4


def test_posterior_covariance_is_the_error_of_the_estimate() -> None:
    prior = some_prior(k=1)
    noisy = draw(prior, 1)
    model = NoisyPrior(prior, NOISE)
    S = prior.covariances[0]
    dense = S - S @ np.linalg.solve(S + NOISE * np.eye(len(S)), S)
    assert np.allclose(model.posterior_covariance(0), dense, atol=1e-9)
    assert model.map_estimate(noisy, np.zeros(1, int)).shape == noisy.shape


def test_scaling_the_prior_scales_the_estimate() -> None:
    prior = some_prior()
    noisy = draw(prior, 50)
    model, large = NoisyPrior(prior, NOISE), NoisyPrior(prior.scaled(7.0), 49 * NOISE)
    labels = model.most_likely(noisy)
    assert np.array_equal(large.most_likely(7 * noisy), labels)
    expected = 7 * model.map_estimate(noisy, labels)
    assert np.allclose(large.map_estimate(7 * noisy, labels), expected, atol=1e-4)


def test_the_likelihood_never_falls_and_is_the_dense_one() -> None:
    patches = draw(some_prior(k=6, d=16, centred=True), 4000)
    prior = first_prior(patches, 6, NOISE, np.random.default_rng(0))
    likelihoods = []
    with Pool(1) as pool:
        for _ in range(15):
            before = prior
            prior, likelihood = em_step(patches, prior, NOISE, pool)
            likelihoods.append(likelihood)
    assert np.diff(likelihoods).min() > -1e-3
    assert likelihoods[-1] > likelihoods[0] + 0.05
    dense = oracles.log_densities(patches, before.weights, before.means, before.covariances, NOISE)
    total = np.logaddexp.reduce(dense, axis=0).mean()
    assert likelihoods[-1] == pytest.approx(total, abs=0.02)


def test_em_finds_the_mixture_behind_the_noise() -> None:
    truth = some_prior(k=2, d=9, centred=True)
    patches = draw(truth, 40_000)
    prior = truth
    with Pool(2) as pool:
        for _ in range(10):
            prior, _ = em_step(patches, prior, NOISE, pool)
    assert np.abs(prior.weights - truth.weights).max() < 0.03
    scale = truth.values[:, :1, np.newaxis]
    assert (np.abs(prior.covariances - truth.covariances) / scale).max() < 0.05


def test_em_gives_the_same_bits_for_any_number_of_workers() -> None:
    patches = draw(some_prior(k=3, d=9, centred=True), 20_000)
    start = first_prior(patches, 5, NOISE, np.random.default_rng(0))
    results = []
    for workers in (1, 2, 4):
        with Pool(workers) as pool:
            results.append(em_step(patches, start, NOISE, pool)[0].values)
    assert np.array_equal(results[0], results[1])
    assert np.array_equal(results[0], results[2])


def test_covariances_less_the_noise_are_never_negative() -> None:
    covariance = np.diag([2.0, 1.0, 0.1])[np.newaxis]
    prior = from_moments(np.ones(1), np.zeros((1, 3)), covariance, 0.5)
    assert np.allclose(prior.values, [[1.5, 0.5, 0.0]])


@given(st.integers(1, 20), st.integers(1, 20), st.sampled_from([3, 5, 8]))
def test_patches_and_their_adjoint(height, width, side) -> None:
    rng = np.random.default_rng(height * 100 + width)
    plane = rng.standard_normal((height, width))
    padded = mirror(plane, side)
    assert np.array_equal(unmirror(padded, plane.shape), plane)
    patches = take_patches(padded, side)
    other = rng.standard_normal(patches.shape)
    assert (patches * other).sum() == pytest.approx(
        (padded * put_patches(other, padded.shape, side)).sum(), abs=1e-8
    )
    ones = put_patches(np.ones_like(patches), padded.shape, side)
    assert np.array_equal(ones, coverage(padded.shape, side))


def test_strips_equal_the_whole(monkeypatch) -> None:
    plane = np.random.default_rng(0).standard_normal((50, 40)).astype(np.float32)
    whole = put_patches(take_patches(plane, 8) ** 2, plane.shape, 8)
    monkeypatch.setattr("symsmooth.baselines.patch_gmm._PATCHES", 100)
    with Pool(2) as pool:
        strips = filter_patches(plane, 8, np.square, pool, "test")
    assert np.allclose(strips, whole, rtol=1e-5, atol=1e-4)


def test_the_file_keeps_a_mixture(tmp_path) -> None:
    """Half precision and no empty directions: the choice and the estimates stay."""
    full = natural_prior()
    assert full.values.shape == (200, 64)
    save_prior(tmp_path / "prior.npz", full)
    kept = load_prior(tmp_path / "prior.npz")
    assert np.allclose(kept.covariances, full.covariances, atol=2e-3 * full.values.max())
    noise = (10 / 255) ** 2
    patches = draw(full, 2000, noise)
    a, b = NoisyPrior(full, noise), NoisyPrior(kept, noise)
    labels = a.most_likely(patches)
    assert (labels == b.most_likely(patches)).mean() > 0.98
    change = a.map_estimate(patches, labels) - b.map_estimate(patches, labels)
    assert np.abs(change).max() < 0.02 * np.sqrt(noise)


def test_the_shipped_mixture_is_small_and_sound() -> None:
    from importlib import resources

    assert (resources.files("symsmooth.baselines") / "natural.npz").stat().st_size < 2_000_000
    prior = natural_prior()
    assert prior.weights.sum() == pytest.approx(1.0)
    assert prior.weights.min() > 0
    lengths = np.linalg.norm(prior.vectors, axis=1)
    assert np.allclose(lengths[prior.values > 0], 1.0)
    means = np.abs(prior.vectors.sum(axis=1)) * np.sqrt(prior.values)
    assert means.max() < 0.02 * np.sqrt(prior.values.max())  # zero-mean patches
