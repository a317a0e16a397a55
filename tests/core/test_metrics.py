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


def test_equal_images() -> None:
    assert psnr(CLEAN, CLEAN) == float("inf")
    assert ssim(CLEAN, CLEAN) == pytest.approx(1.0)
    assert ssim(CLEAN[:8], CLEAN[:8]) is None  # the window does not fit
