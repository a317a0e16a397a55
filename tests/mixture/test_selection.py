"""SURE, lambda, div(u), and the secant search for k."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from symsmooth import fit_gsf
from symsmooth.core.parallel import Pool
from symsmooth.core.patches import whiten
from symsmooth.mixture.averages import aggregate_means, cluster_averages
from symsmooth.mixture.em import fit_mixture, initial_mixture, neighbourhood
from symsmooth.mixture.selection import Sure, blend, cross_validate

from ..oracles import extraction_matrix, generalised_patches, responsibilities


@given(st.floats(0.01, 1), st.floats(0.1, 5), st.floats(0.0, 0.99), st.sampled_from([9, 25, 27]))
def test_best_fidelity_minimises_sure(sigma, ratio, divergence, coverage) -> None:
    sure = Sure(sigma, ratio * sigma**2, divergence, coverage)
    best = sure.best_fidelity
    found = minimize_scalar(lambda t: sure(t / (1 - t)), bounds=(0, 1 - 1e-9), method="bounded")
    assert sure(best) <= found.fun + 1e-6 * sigma**2
    assert best >= 0


def test_blend_solves_the_normal_equation() -> None:
    """(sum P_j^T P_j + lambda I) z = sum P_j^T w_j + lambda y, eq. (normal eq), borders included."""
    rng = np.random.default_rng(0)
    spatial, size = (6, 7), 3
    P = extraction_matrix(spatial, size)
    w = rng.standard_normal((42, size**2))
    y = rng.standard_normal(42)
    lam = 4.2
    left = np.einsum("jdn,jdm->nm", P, P) + lam * np.eye(42)
    right = np.einsum("jdn,jd->n", P, w) + lam * y
    u = np.einsum("jdn,jd->n", P, w) / size**2
    assert np.allclose(blend(u, y, lam, size**2), np.linalg.solve(left, right))


def test_divergence_is_the_trace_of_the_jacobian() -> None:
    """With responsibilities held, u is linear in y; its trace, taken exactly, is div(u).

    Equal in the interior; a mirrored border adds a little: 8 % on 28 x 28 pixels, 2 % on 128 x 128.
    """
    image = np.random.default_rng(0).random((28, 28, 1)).astype(np.float32)
    features = whiten(image, 3, 5.0, 0.4)
    mixture = initial_mixture(features, 25, np.random.default_rng(1))
    gamma = responsibilities(
        generalised_patches(image, 3, 5.0, 0.4), mixture.means, mixture.proportions
    )
    P = extraction_matrix((28, 28), 3)
    smoother = gamma.T @ (gamma / gamma.sum(axis=1, keepdims=True))  # w = smoother @ patches
    trace = np.einsum("jdn,jl,ldn->", P, smoother, P, optimize=True) / 9
    with Pool(1) as pool:
        near = neighbourhood(features, mixture, 1e6)
        own = cluster_averages(features, mixture, near, image, pool)
    assert 0.9 * trace < own.divergence < trace


def test_sure_tracks_the_true_error_over_noise_draws(camera) -> None:
    """Responsibilities from the clean image: SURE is unbiased; its mean is the mean true error."""
    clean = camera.astype(np.float32)[..., None]
    sigma = 0.1
    features = whiten(clean, 5, 10.0, sigma)
    estimated, true = [], []
    with Pool(2) as pool:
        start = initial_mixture(features, 60, np.random.default_rng(0))
        fit = fit_mixture(features, start, pool, max_iter=5)
        for seed in range(12):
            noise = np.random.default_rng(seed).standard_normal(clean.shape)
            noisy = (clean + sigma * noise).astype(np.float32)
            own = cluster_averages(features, fit.mixture, fit.near, noisy, pool)
            u = aggregate_means(features, fit.mixture, fit.near, own.cluster_estimates, pool)
            sure = Sure(sigma, float(np.mean((u - noisy) ** 2)), own.divergence / clean.size, 25)
            for fidelity in (0.0, 8.0):
                estimated.append(sure(fidelity))
                true.append(float(np.mean((blend(u, noisy, fidelity, 25) - clean) ** 2)))
    assert np.isclose(np.mean(estimated), np.mean(true), rtol=0.05)


def test_two_passes_make_sure_honest(camera) -> None:
    """The paper's remark: learned from a pilot, responsibilities hardly depend on the noise."""
    noisy = camera + 0.1 * np.random.default_rng(0).standard_normal(camera.shape)
    one = fit_gsf(noisy, 0.1, passes=1)
    two = fit_gsf(noisy, 0.1, passes=2)

    def dishonesty(fit) -> float:
        true = np.mean((fit.average - camera) ** 2)
        return abs(fit.sure(0.0) - true) / true

    assert dishonesty(two) < dishonesty(one)


@given(st.floats(20, 5000), st.floats(0.05, 0.6), st.integers(2, 8000))
def test_the_secant_finds_the_root(root, slope, guess) -> None:
    search = cross_validate(lambda k: 1 - slope * np.log(k / root), guess, 2, 10_000)
    assert abs(1 - slope * np.log(search.n_clusters / root) - 1) < max(0.006, slope * 0.04)
    assert len(search.steps) <= 13 + 8


def test_the_search_stops_at_its_bounds() -> None:
    assert cross_validate(lambda k: 2.0, 10, 2, 300).n_clusters == 300
    assert cross_validate(lambda k: 0.5, 10, 2, 300).n_clusters == 2


@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_a_noisy_deviation_does_not_derail_the_search(noise) -> None:
    rng = np.random.default_rng(0)

    def deviation(k: int) -> float:
        return 1 - 0.3 * np.log(k / 200) + noise * rng.standard_normal()

    k = cross_validate(deviation, 10, 2, 10_000).n_clusters
    assert 150 < k < 270
