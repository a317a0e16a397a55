"""The filters of Table I as users call them."""

from __future__ import annotations

import numpy as np
import pytest

from symsmooth import denoise_gaussian, denoise_gsf, denoise_lark, denoise_nlm
from symsmooth.core.metrics import psnr
from symsmooth.noise import add_noise


@pytest.mark.parametrize("denoise", [denoise_gaussian, denoise_nlm, denoise_lark])
@pytest.mark.parametrize("iterations", [0, 1, 2, None])
def test_the_mean_grey_level_is_kept_when_columns_sum_to_one(denoise, iterations, camera) -> None:
    """Doubly stochastic filters keep the sum of the image exactly; the others only roughly."""
    noisy = add_noise(camera[:32, :32], 0.1, 0)
    drift = abs(denoise(noisy, 0.1, sinkhorn_iters=iterations).mean() - noisy.mean())
    assert drift < (1e-5 if iterations is None else 2e-2)


def test_gaussian_width_follows_the_noise(camera) -> None:
    """SURE chooses: hardly any smoothing for little noise, much for much."""
    roughness = []
    for sigma in (0.01, 0.1, 0.5):
        noisy = add_noise(np.pad(camera, 8, mode="reflect"), sigma, 0)
        denoised = denoise_gaussian(noisy, sigma)
        roughness.append(np.std(np.diff(denoised)) / np.std(np.diff(noisy)))
    assert roughness[0] > 0.8
    assert roughness[0] > roughness[1] > roughness[2]


def test_chosen_gaussian_width_is_near_the_best(camera) -> None:
    noisy = add_noise(camera, 0.1, 0)
    chosen = psnr(denoise_gaussian(noisy, 0.1), camera)
    best = max(psnr(denoise_gaussian(noisy, 0.1, h_s=h), camera) for h in np.linspace(0.4, 3, 14))
    assert chosen > best - 0.1


def test_hard_and_soft_windows_meet_in_the_limit(camera) -> None:
    """Regulated NLM becomes NLM as h_s and the window grow (the paper's second example)."""
    noisy = add_noise(camera[:24, :24], 0.1, 0)
    hard = denoise_nlm(noisy, 0.1, window=49)
    soft = denoise_nlm(noisy, 0.1, h_s=400.0)
    assert np.abs(hard - soft).max() < 2e-3


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"patch_size": 4}, "patch_size must be odd, got 4; use 3 or 5"),
        ({"window": 0}, "window must be an odd whole number"),
        ({"h_s": -1.0}, "h_s must be a positive number"),
        ({"h_r": np.nan}, "h_r must be a positive number"),
        ({"sinkhorn_iters": -1}, "sinkhorn_iters must be"),
        ({"sinkhorn_iters": 1.5}, "sinkhorn_iters must be"),
    ],
)
def test_wrong_options_are_refused(options, words) -> None:
    with pytest.raises(ValueError, match=words):
        denoise_nlm(np.ones((8, 8)), 1.0, **options)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_clusters": 0}, "n_clusters must be a whole number of at least 1"),
        ({"passes": 3}, "passes must be 1 or 2"),
        ({"fidelity": -1.0}, "fidelity must be 0 or more"),
        ({"patch_size": 2}, "patch_size must be odd, got 2; use 1 or 3"),
    ],
)
def test_wrong_gsf_options_are_refused(options, words) -> None:
    with pytest.raises(ValueError, match=words):
        denoise_gsf(np.ones((8, 8)), 1.0, **options)
