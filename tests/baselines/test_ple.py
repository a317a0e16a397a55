"""PLE: its first mixture, its two steps, the published numbers."""

from __future__ import annotations

import numpy as np
import pytest

from symsmooth import denoise_ple
from symsmooth.baselines.patch_gmm import NoisyPrior
from symsmooth.baselines.ple import edge_prior, maximize, solve
from symsmooth.core.metrics import psnr
from symsmooth.noise import add_noise

LEAST = {20: 28.17, 40: 24.58, 60: 22.53, 80: 21.29, 100: 20.03}  # the paper's means less 0.2 dB


def test_the_first_mixture_is_18_orientations_and_the_dct() -> None:
    prior = edge_prior()
    assert prior.weights.shape == (19,)
    assert np.allclose(np.trace(prior.covariances, axis1=1, axis2=2) / 64, 1.0, atol=0.35)
    identity = prior.vectors.transpose(0, 2, 1) @ prior.vectors
    assert np.allclose(identity, np.eye(64), atol=1e-8)
    assert (prior.values[:18, :6].sum(axis=1) > 0.95 * prior.values[:18].sum(axis=1)).all()


def test_orientations_differ_by_a_turn() -> None:
    """Nine steps of ten degrees are a quarter turn of the patch."""
    covariances = edge_prior().covariances.reshape(-1, 8, 8, 8, 8)
    turned = np.rot90(np.rot90(covariances[0], -1, (0, 1)), -1, (2, 3))
    assert np.allclose(covariances[9], turned, atol=1e-8)


@pytest.mark.parametrize("number", range(0, 18, 5))
def test_an_edge_chooses_its_own_orientation(number) -> None:
    angle = np.pi * number / 18
    y, x = np.indices((8, 8)) - 3.5
    across = np.cos(angle) * x + np.sin(angle) * y
    edge = np.tanh((across - 0.3) / 1.0).reshape(1, 64).astype(np.float32)
    assert NoisyPrior(edge_prior(), 0.01).most_likely(edge)[0] == number


def test_the_m_step_has_the_moments_of_its_patches() -> None:
    rng = np.random.default_rng(0)
    model = NoisyPrior(edge_prior(), 0.5)
    estimates = rng.normal(1.0, 2.0, (500, 64)).astype(np.float32)
    labels = np.repeat([3, 7], [450, 50])
    found = maximize(estimates, labels, model, 0.1).prior
    mine = estimates[:450].astype(float)
    expected = np.cov(mine, rowvar=False, bias=True) + model.posterior_covariance(3)
    expected += 0.1 * np.eye(64)
    assert np.allclose(found.means[3], mine.mean(axis=0), atol=1e-5)
    assert np.allclose(found.covariances[3], expected, atol=1e-3)
    for unchanged in (0, 7):  # chosen by none, and by fewer than it has dimensions
        assert np.allclose(
            found.covariances[unchanged], model.prior.covariances[unchanged], atol=1e-8
        )


def test_regions_agree_with_the_whole_inside(camera) -> None:
    """A region does not see beyond its halo, and the whole is one region when it is small."""
    noisy = add_noise(camera, 0.1, 0).astype(np.float32)
    whole = denoise_ple(noisy, 0.1)
    from symsmooth.noise import contrast

    spread = contrast(noisy, 0.1) * 0.1
    assert np.abs(whole - solve(noisy, 0.1, spread, 8)).max() < 1e-3


def test_learning_helps(camera) -> None:
    big = np.tile(camera, (2, 2))
    noisy = add_noise(big, 0.08, 0)
    once, often = (psnr(denoise_ple(noisy, 0.08, iterations=n), big) for n in (1, 8))
    assert often > once + 0.3


def test_wrong_iterations_are_refused() -> None:
    with pytest.raises(ValueError, match="iterations must be"):
        denoise_ple(np.ones((9, 9)), 1.0, iterations=0)


@pytest.mark.parametrize("grey_levels", [20, 60])
def test_published_numbers_of_a_few_pictures(classics, grey_levels) -> None:
    """Near the printed ones at little noise (Barbara, House, Man), above them at much."""
    printed = {20: (28.82, 31.57, 27.56), 60: (22.54, 24.11, 22.75)}
    sigma = grey_levels / 255
    for name, expected in zip(("barbara", "house", "man"), printed[grey_levels], strict=True):
        noisy = add_noise(classics[name], sigma, list(classics).index(name))
        found = psnr(denoise_ple(noisy, sigma), classics[name])
        assert expected - 0.5 < found < expected + 1.8


@pytest.mark.slow
@pytest.mark.parametrize("grey_levels", LEAST)
def test_mean_over_the_ten_pictures(classics, grey_levels) -> None:
    sigma = grey_levels / 255
    found = np.mean(
        [
            psnr(denoise_ple(add_noise(clean, sigma, seed), sigma), clean)
            for seed, clean in enumerate(classics.values())
        ]
    )
    print(f"sigma {grey_levels}: {found:.3f}, at least {LEAST[grey_levels]}")
    assert found >= LEAST[grey_levels]
