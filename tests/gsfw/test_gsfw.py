"""The flagship."""

from __future__ import annotations

import numpy as np
import pytest
from skimage import data

from symsmooth import denoise, denoise_gsf, denoise_gsfw, fit_gsfw
from symsmooth.core import blocks, channels
from symsmooth.core.metrics import psnr
from symsmooth.gsfw.presets import PRESETS
from symsmooth.noise import add_noise

SIGMA = 25 / 255


@pytest.fixture(scope="module")
def scene():
    clean = data.camera()[100:260, 150:330] / 255.0
    return clean, add_noise(clean, SIGMA, 0)


def test_presets_are_ordered_and_above_gsf(scene) -> None:
    clean, noisy = scene
    quality = [psnr(denoise_gsfw(noisy, SIGMA, quality=q), clean) for q in PRESETS]
    names = list(PRESETS)
    best, balanced, fast, preview = (
        quality[names.index(n)] for n in ("best", "balanced", "fast", "preview")
    )
    assert best > balanced - 0.05 > fast - 0.1 > preview - 0.1
    assert fast > psnr(denoise_gsf(noisy, SIGMA), clean) + 0.1


def test_result_tells_what_was_found(scene) -> None:
    clean, noisy = scene
    fit = fit_gsfw(200 * noisy + 50, 200 * SIGMA, quality="balanced")
    assert np.array_equal(fit.image, denoise_gsfw(200 * noisy + 50, 200 * SIGMA))
    assert fit.sigma == pytest.approx(200 * SIGMA)
    assert len(fit.pilots) == 2
    assert len(fit.clusters) == 3
    assert set(fit.seconds) == {"pilot 1", "pilot 2", "final"}
    first, second = (psnr((p - 50) / 200, clean) for p in fit.pilots)
    final = psnr((fit.image - 50) / 200, clean)
    assert psnr(noisy, clean) + 5 < first < second < final
    assert fit.std.shape == clean.shape


@pytest.mark.parametrize("grey_levels", [10, 25, 50])
@pytest.mark.parametrize("quality", ["balanced", "best"])
def test_the_standard_deviation_is_calibrated(scene, grey_levels, quality) -> None:
    """Root mean square of the claimed and of the true error agree within 20 %."""
    clean, _ = scene
    ratios = []
    for seed in range(3):
        noisy = add_noise(clean, grey_levels / 255, seed)
        fit = fit_gsfw(noisy, grey_levels / 255, quality=quality)
        ratios.append(np.sqrt(np.mean(fit.std**2) / np.mean((fit.image - clean) ** 2)))
    assert np.mean(ratios) == pytest.approx(1.0, abs=0.2)


def test_colour_shares_clusters(scene) -> None:
    clean = data.astronaut()[60:160, 180:300] / 255.0
    noisy = add_noise(clean, SIGMA, 0)
    together = psnr(denoise_gsfw(noisy, SIGMA, channel_axis=-1), clean)
    apart = np.stack([denoise_gsfw(noisy[..., c], SIGMA) for c in range(3)], axis=-1)
    assert together > psnr(apart, clean) + 0.8


def test_many_channels_are_decorrelated() -> None:
    base = data.camera()[100:180, 150:230] / 255.0
    clean = np.stack([0.2 * i + (1 - 0.15 * i) * base for i in range(5)], axis=-1)
    noisy = add_noise(clean, SIGMA, 0)
    transform = channels.decorrelate(noisy.astype(np.float32), SIGMA)
    assert np.allclose(transform.T @ transform, np.eye(5), atol=1e-5)
    together = psnr(denoise_gsfw(noisy, SIGMA, channel_axis=-1), clean)
    apart = np.stack([denoise_gsfw(noisy[..., c], SIGMA) for c in range(5)], axis=-1)
    assert together > psnr(apart, clean) + 2.0


def test_volumes_use_the_third_dimension() -> None:
    z, y, x = np.indices((16, 40, 40))
    clean = 0.6 * (np.hypot(y - 20, x - 20) < 8 + z / 2) + 0.2 * np.sin(x / 3 + z / 4)
    noisy = add_noise(clean, 0.15, 0)
    whole = psnr(denoise_gsfw(noisy, 0.15, quality="fast"), clean)
    slices = psnr(np.stack([denoise_gsfw(s, 0.15, quality="fast") for s in noisy]), clean)
    assert whole > slices + 1.0


def test_blocks_equal_the_whole_without_seams(scene, monkeypatch) -> None:
    clean, noisy = scene
    whole = denoise_gsfw(noisy, SIGMA)
    monkeypatch.setattr(blocks, "BLOCK_PIXELS", 90 * 90)
    fit = fit_gsfw(noisy, SIGMA)
    joined = fit.image
    assert set(fit.seconds) == {"pilot 1", "pilot 2", "final"}
    assert np.array_equal(joined, denoise_gsfw(noisy, SIGMA, workers=1))
    assert psnr(joined, clean) > psnr(whole, clean) - 0.02
    step = np.abs(np.diff(joined - whole, axis=0)).mean(axis=1)
    assert step[76:84].max() < 1.5 * np.quantile(step, 0.95)


@pytest.mark.parametrize("grey_levels", [0.1, 1, 150])
def test_the_ends_of_the_range(scene, grey_levels) -> None:
    clean, _ = scene
    sigma = grey_levels / 255
    noisy = add_noise(clean, sigma, 0)
    denoised = denoise_gsfw(noisy, sigma)
    error = np.sqrt(np.mean((denoised - clean) ** 2))
    assert error < {0.1: 1.1, 1: 1.0, 150: 0.2}[grey_levels] * sigma
    if grey_levels == 150:
        assert np.std(np.diff(denoised)) < 0.1 * sigma


def test_strength_scales_the_noise_level(scene) -> None:
    _, noisy = scene
    assert np.array_equal(denoise(noisy, SIGMA, strength=1.5), denoise_gsfw(noisy, 1.5 * SIGMA))
    rough, smooth = (np.std(np.diff(denoise(noisy, strength=s))) for s in (0.5, 2.0))
    assert smooth < rough
    with pytest.raises(ValueError, match="strength must be a number"):
        denoise(noisy, SIGMA, strength=0)
    with pytest.raises(ValueError, match="quality must be one of"):
        denoise(noisy, SIGMA, quality="perfect")


@pytest.mark.parametrize("quality", PRESETS)
def test_pure_noise_becomes_smooth_without_blotches(quality) -> None:
    """Nothing but noise: the coarser pictures end, and low frequencies are clean too."""
    noisy = np.random.default_rng(0).standard_normal((96, 110))
    denoised = denoise_gsfw(noisy, 1.0, quality=quality)
    coarse = denoised[:96, :96].reshape(6, 16, 6, 16).mean(axis=(1, 3))
    assert denoised.std() < 0.25
    assert coarse.std() < 0.1
