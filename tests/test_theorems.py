"""The paper's Table II as theorems: four filters, one EM algorithm."""

from __future__ import annotations

import numpy as np
import pytest

from symsmooth import denoise_nlm
from symsmooth.core.image import open_image
from symsmooth.core.parallel import Pool
from symsmooth.core.patches import whiten
from symsmooth.filters import weights
from symsmooth.filters.sinkhorn import balance, sinkhorn_knopp
from symsmooth.mixture.em import (
    GaussianMixture,
    fit_mixture,
    initial_mixture,
    neighbourhood,
    responsibilities,
)

H_S, H_R, REACH = 3.0, 0.6, 1e6


@pytest.fixture(scope="module")
def noisy(camera) -> np.ndarray:
    crop = camera[20:44, 20:44]
    return crop + 0.08 * np.random.default_rng(0).standard_normal(crop.shape)


@pytest.fixture(scope="module")
def opened(noisy) -> np.ndarray:
    return open_image(noisy).noisy


@pytest.fixture(scope="module")
def W(opened) -> np.ndarray:
    """Spatially regulated NLM as a dense matrix, over the whole picture."""
    features = whiten(opened, 5, H_S, H_R)
    points = features.at(np.arange(features.n_pixels)).astype(float)
    return np.exp(-((points[:, None] - points[None]) ** 2).sum(-1) / 2)


def every_patch_a_cluster(features) -> GaussianMixture:
    n = features.n_pixels
    return GaussianMixture(features.at(np.arange(n)), np.full(n, 1 / n, np.float32))


def test_original_filter_is_the_numerator_of_the_e_step(opened, W) -> None:
    """Column 1: gamma_ij = N(p_j | p_i), zero iterations, lambda = 0."""
    y = opened.ravel()
    z = (W @ y) / W.sum(axis=1)
    operator = weights.regulated_nlm(opened, 5, H_S, H_R)
    v = np.stack([y, np.ones_like(y)], axis=1)
    sums = operator @ v
    assert np.allclose(sums[:, 0] / sums[:, 1], z, atol=1e-3)


def test_one_step_is_one_e_step_with_every_patch_a_cluster(opened, W) -> None:
    """Column 2: with k = n, mu_i = p_i, pi_i = 1/n, gamma is column normalisation, exactly."""
    features = whiten(opened, 5, H_S, H_R)
    mixture = every_patch_a_cluster(features)
    gamma = responsibilities(features, mixture, neighbourhood(features, mixture, REACH)).toarray()
    assert np.allclose(gamma, W / W.sum(axis=0, keepdims=True), atol=1e-4)
    one_step = sinkhorn_knopp(W, 1)
    z_em = (gamma @ opened.ravel()) / gamma.sum(axis=1)
    z_sinkhorn = one_step.row_scale * (W @ (one_step.col_scale * opened.ravel()))
    assert np.allclose(z_em, z_sinkhorn, atol=1e-4)


def test_full_sinkhorn_is_the_modified_em(W) -> None:
    """Column 3: beta = rows of gamma normalised, gamma = columns of beta normalised, many times."""
    gamma = W / W.sum(axis=0, keepdims=True)
    for _ in range(3000):
        beta = gamma / gamma.sum(axis=1, keepdims=True)  # M-step, eq. (derive,sinkhorn,eq1a)
        gamma = beta / beta.sum(axis=0, keepdims=True)  # E-step, eq. (derive,sinkhorn,eq1b)
    s = balance(W)
    assert np.allclose(gamma, s.row_scale[:, None] * W * s.col_scale, atol=1e-5)


def test_gsf_is_em_with_fewer_clusters(opened) -> None:
    """Column 4: k < n, means and proportions move, and the likelihood rises."""
    features = whiten(opened, 5, H_S, H_R)
    with Pool(1) as pool:
        fit = fit_mixture(
            features, initial_mixture(features, 40, np.random.default_rng(0)), pool, max_iter=20
        )
    assert fit.mixture.n_clusters == 40 < features.n_pixels
    assert fit.mixture.proportions.std() > 0
    assert fit.log_likelihoods[-1] > fit.log_likelihoods[0]


def test_the_number_of_iterations_is_one_argument(noisy, W, opened) -> None:
    """denoise_nlm reaches all columns but the last through sinkhorn_iters."""
    unit = open_image(noisy).scale
    for iterations, scalings in ((0, None), (1, 1), (3, 3)):
        z = denoise_nlm(noisy, 0.08, h_s=H_S, h_r=H_R * unit, sinkhorn_iters=iterations)
        c = np.ones(len(W)) if scalings is None else sinkhorn_knopp(W, scalings).col_scale
        expected = (W @ (c * noisy.ravel())) / (W @ c)
        assert np.allclose(z.ravel(), expected, atol=2e-3 * unit)
    s = balance(W)
    z = denoise_nlm(noisy, 0.08, h_s=H_S, h_r=H_R * unit, sinkhorn_iters=None)
    assert np.allclose(
        z.ravel(), s.row_scale * (W @ (s.col_scale * noisy.ravel())), atol=2e-3 * unit
    )
