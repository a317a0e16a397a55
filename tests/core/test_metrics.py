"""PSNR and SSIM."""

from __future__ import annotations

import numpy as np
import pytest

from symsmooth.core.metrics import psnr, ssim

CLEAN = np.random.default_rng(0).random((24, 20))


def test_psnr_is_its_formula_in_any_units() -> None:
    noisy = CLEAN + np.random.default_rng(1).normal(0.0, 0.1, CLEAN.shape)
    expected = -10 * np.log10(np.mean((noisy - CLEAN) ** 2))
    assert psnr(noisy, CLEAN) == pytest.approx(expected)
    assert psnr(255 * noisy, 255 * CLEAN, 255) == pytest.approx(expected)


def test_integers_do_not_wrap_and_missing_pixels_do_not_count() -> None:
    dark, bright = np.zeros((4, 4), np.uint8), np.full((4, 4), 255, np.uint8)
    assert psnr(dark, bright, 255) == pytest.approx(0.0)
    holes = CLEAN + 0.1
    holes[0, 0] = np.nan
    assert psnr(holes, CLEAN) == pytest.approx(20.0)


@pytest.mark.parametrize("shape", [(11, 11), (24, 31), (40, 20, 3)])
def test_ssim_is_that_of_scikit_image(shape) -> None:
    from skimage.metrics import structural_similarity

    rng = np.random.default_rng(2)
    clean = rng.uniform(0, 255, shape).cumsum(0) / shape[0]
    noisy = clean + rng.normal(0, 20, shape)
    settings = {"gaussian_weights": True, "sigma": 1.5, "use_sample_covariance": False}
    axis = -1 if len(shape) == 3 else None
    other = structural_similarity(noisy, clean, data_range=255, channel_axis=axis, **settings)
    assert ssim(noisy, clean, 255) == pytest.approx(other, rel=1e-12)


def test_equal_images() -> None:
    assert psnr(CLEAN, CLEAN) == float("inf")
    assert ssim(CLEAN, CLEAN) == pytest.approx(1.0)
    assert ssim(CLEAN[:8], CLEAN[:8]) is None  # the window does not fit
