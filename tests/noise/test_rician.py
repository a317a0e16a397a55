"""Rician noise: magnitudes of complex pixels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.ndimage
import scipy.stats

from symsmooth import denoise, estimate_noise, fit_denoise
from symsmooth.noise import Rician
from symsmooth.noise.rician import moments

Array = np.ndarray[Any, Any]


def magnitudes(clean: Array, sigma: float, seed: int = 0) -> Array:
    real, imaginary = sigma * np.random.default_rng(seed).standard_normal((2, *clean.shape))
    return np.hypot(clean + real, imaginary).astype(np.float32)


def head(depth: int = 24, side: int = 48) -> Array:
    """A head of ellipsoids in air: skin, skull, brain with texture, ventricles; its peak is 100."""
    axes = (np.linspace(-1, 1, n) for n in (depth, side, side))
    z, y, x = np.meshgrid(*axes, indexing="ij")
    clean = np.zeros(z.shape)
    parts = [
        *(((0, 0, 0), (0.95, 0.85, 0.7), 100), ((0, 0, 0), (0.9, 0.8, 0.65), 20)),
        *(((0, 0, 0), (0.85, 0.75, 0.6), 60), ((0, 0, 0), (0.7, 0.6, 0.45), 80)),
        *(((0, -0.1, -0.15), (0.4, 0.3, 0.1), 10), ((0, -0.1, 0.15), (0.4, 0.3, 0.1), 10)),
        *(((0, 0.3, 0.2), (0.2, 0.15, 0.1), 90), ((0, 0.3, -0.2), (0.15, 0.1, 0.15), 40)),
    ]
    for centre, radii, value in parts:
        place = zip((z, y, x), centre, radii, strict=True)
        clean[sum(((a - c) / r) ** 2 for a, c, r in place) < 1] = value
    texture = 60 + 12 * np.sin(9 * x + 4 * y) * np.cos(7 * y)
    return np.where(clean == 60, texture, clean)


def psnr(estimate: Array, clean: Array) -> float:
    return float(10 * np.log10(100**2 / np.mean((estimate - clean) ** 2)))


def test_moments_are_those_of_the_distribution() -> None:
    signal = np.array([0.0, 0.3, 1.0, 2.5, 8.0, 30.0])
    mean, spread = moments(signal)
    known = [scipy.stats.rice(x).stats() if x else scipy.stats.rayleigh.stats() for x in signal]
    np.testing.assert_allclose(mean, [m for m, _ in known], rtol=1e-6)
    np.testing.assert_allclose(spread, [np.sqrt(v) for _, v in known], rtol=1e-5)
    assert moments(np.array([1e5]))[1] == pytest.approx(1.0)


@pytest.mark.parametrize("signal", [0.0, 0.6, 1.0, 2.0, 5.0, 20.0, 25.0, 26.0, 300.0])
def test_noise_is_stabilised_and_the_inverse_has_no_bias(signal: float) -> None:
    sigma = 7.0
    noisy = magnitudes(np.full((700, 700, 1), signal * sigma), sigma)
    model = Rician(sigma)
    stable = model.whiten(noisy).astype(np.float64)
    assert stable.std() == pytest.approx(1.0, abs=0.05)
    assert abs(scipy.stats.skew(stable.ravel())) < 0.5  # no outliers are made
    back = model.restore(np.full((1, 1, 1), stable.mean())).item()
    assert back == pytest.approx(signal * sigma, abs=0.02 * sigma)
    moved = model.in_units(-40.0, 3.0)
    np.testing.assert_allclose(moved.whiten((noisy + 40) / 3), stable, atol=0.01)
    assert moved.restore(np.full((1, 1, 1), stable.mean())).item() * 3 - 40 == pytest.approx(
        back, abs=0.01
    )


def test_both_directions_grow_without_a_step() -> None:
    model = Rician(1.0)
    pixels = np.linspace(-1, 60, 20001)[:, None, None]
    stable = model.whiten(pixels.astype(np.float32))[:, 0, 0]
    assert (np.diff(stable) > 0).all()
    assert np.diff(stable).max() < 0.02
    restored = model.restore(np.linspace(-5, 60, 20001)[:, None, None])[:, 0, 0]
    assert restored.min() == 0.0
    assert (np.diff(restored) >= 0).all()


@pytest.mark.parametrize("percent", [3, 9, 15])
def test_a_head_and_its_level(percent: int) -> None:
    clean = head()
    model = estimate_noise(magnitudes(clean, percent), noise="rician")
    assert isinstance(model, Rician)
    assert model.sigma == pytest.approx(percent, rel=0.03)
    assert model.zero == pytest.approx(0.0, abs=1e-3)
    assert "background" in model.finding.reasons[0]


@pytest.mark.parametrize("seed", range(3))
def test_a_volume_gains_and_the_dark_is_dark(seed: int) -> None:
    clean, sigma = head(), 15.0
    noisy = magnitudes(clean, sigma, seed)
    found = denoise(noisy, noise="rician", quality="fast")
    assert psnr(found, clean) > psnr(denoise(noisy, quality="fast"), clean) + 1.0
    inside = clean > 0  # the brain alone: not only the air is better
    gaussian = denoise(noisy, sigma, quality="fast")
    assert psnr(found[inside], clean[inside]) > psnr(gaussian[inside], clean[inside]) + 0.5
    air = scipy.ndimage.binary_erosion(clean == 0, iterations=3)
    assert abs(found[air].mean()) < 0.02 * sigma
    assert found.min() >= -1e-6 * noisy.max()


@pytest.mark.parametrize("signal", [0.0, 0.75, 1.5])
def test_dark_ground_has_no_bias(signal: float) -> None:
    noisy = magnitudes(np.full((128, 128), 5 * signal), 5.0)
    found = denoise(noisy, noise=Rician(5.0), quality="fast")
    assert found.mean() == pytest.approx(5 * signal, abs=0.02 * 5)


@pytest.mark.parametrize("sigma", [1.0, 2.0, 5.0])
def test_rounded_pixels_have_the_same_level(sigma: float) -> None:
    counts = np.rint(magnitudes(head(), sigma)).astype(np.int16)
    assert estimate_noise(counts, noise="rician").sigma == pytest.approx(sigma, rel=0.04)


def test_few_and_odd_pixels_are_no_error() -> None:
    two_levels = np.zeros((40, 40))
    two_levels[:20], two_levels[20:] = 1e-6, 100.0
    for picture in (two_levels, np.zeros((9, 9)), np.arange(6.0).reshape(2, 3)):
        assert np.isfinite(denoise(picture, noise="rician", quality="preview")).all()


def test_without_background_the_signal_tells() -> None:
    y, x = np.mgrid[:96, :96] / 96
    clean = 40 + 30 * y + 10 * np.sin(7 * x)
    model = estimate_noise(magnitudes(clean, 8.0), noise="rician")
    assert model.sigma == pytest.approx(8.0, rel=0.08)
    assert model.finding.confidence < 1.0


def test_air_that_was_cut_out_is_not_taken_for_background() -> None:
    clean = head()
    noisy = np.where(clean > 0, magnitudes(clean, 6.0), 0).astype(np.float32)
    assert estimate_noise(noisy, noise="rician").sigma == pytest.approx(6.0, rel=0.2)


@pytest.mark.parametrize("ghosts", [30.0, 60.0, 120.0])
def test_ghosts_in_the_air_are_not_taken_for_noise(ghosts: float) -> None:
    """As in echo-planar pictures: the air is full of faint copies that look like pure noise."""
    yy, xx = np.mgrid[:128, :128]
    rng = np.random.default_rng(0)
    tissue = 1 + 2 * scipy.ndimage.gaussian_filter(rng.standard_normal((128, 128)), 6)
    head = np.hypot(yy - 64, xx - 64) < 50
    air = ghosts * np.hypot(*rng.standard_normal((2, 128, 128)))
    noisy = np.where(head, magnitudes(1000 * head * tissue, 8.0), air)
    model = estimate_noise(noisy, noise="rician")
    assert model.sigma == pytest.approx(8.0, rel=0.2)
    assert model.finding.confidence < 0.5
    assert "ghosts" in model.finding.reasons[0]


def test_negative_pixels_are_no_magnitudes() -> None:
    noisy = np.random.default_rng(0).normal(0, 1, (64, 64))
    with pytest.raises(ValueError, match=r"never negative.*noise='gaussian'"):
        denoise(noisy, noise="rician")
    with pytest.raises(ValueError, match="positive and finite"):
        Rician(0.0)


def test_integers_masks_channels_and_flat_pictures() -> None:
    clean = np.zeros((40, 40))
    clean[10:30, 10:30] = 200
    noisy = magnitudes(clean, 20.0)
    counts = np.rint(noisy).astype(np.uint16)
    result = denoise(counts, noise="rician", quality="preview")
    assert result.dtype == np.uint16
    holes = noisy.copy()
    holes[3:5, 3:6] = np.nan
    assert np.isfinite(denoise(holes, noise="rician", quality="preview")).all()
    two = np.stack([noisy, magnitudes(clean, 20.0, 1)])
    assert denoise(two, noise="rician", quality="preview", channel_axis=0).shape == two.shape
    flat = np.full((40, 40), 7.0)
    assert np.array_equal(denoise(flat, noise="rician", quality="preview"), flat)
    told = fit_denoise(noisy, noise="rician", quality="preview")
    assert str(told.noise).startswith("Rician noise, sigma ")
    assert np.isfinite(told.std).all()


def test_the_level_falls_in_the_dark() -> None:
    dark, bright = Rician(10.0).level_at(np.array([0.0, 1000.0]))[0]
    assert dark == pytest.approx(6.551, rel=1e-3)
    assert bright == pytest.approx(10.0, rel=1e-3)
