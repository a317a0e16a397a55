"""Tone bias: what a tone curve does to the mean of noisy pixels, and undone."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.ndimage import map_coordinates

from symsmooth import _native, denoise, fit_denoise
from symsmooth.noise import tone as tone_module
from symsmooth.noise.tone import correct_tone, curve, removed_level, tone_share

from .. import oracles


def shades(size: int = 192) -> np.ndarray:
    """Linear light (y, x, 3), dark to middle, smooth."""
    ramp = np.linspace(0.02, 0.2, size)
    across, down = np.broadcast_to(ramp, (size, size)), np.broadcast_to(ramp[:, None], (size, size))
    return np.stack([across, across[:, ::-1], down], -1)


def photograph(light: np.ndarray) -> np.ndarray:
    return curve(light + 0.03 * np.random.default_rng(0).standard_normal(light.shape))


def test_the_mean_of_noisy_pixels_is_too_dark_and_corrected() -> None:
    light = shades()
    nodes, weights = np.polynomial.hermite_e.hermegauss(41)
    weights = weights / weights.sum()
    mean = sum(w * curve(light + 0.03 * n) for n, w in zip(nodes, weights, strict=True))
    bias = curve(light) - mean  # of a perfect denoiser
    assert bias.mean() > 0.005
    noisy, denoised = photograph(light).astype(np.float32), mean.astype(np.float32)
    level = removed_level(noisy, denoised)
    assert tone_share(noisy, denoised, level) == 1.0
    corrected = correct_tone(denoised, level, 1.0)
    assert np.abs(corrected - curve(light)).mean() < 0.2 * bias.mean()


def test_noise_that_was_added_after_the_curve_is_left_alone() -> None:
    clean = curve(shades()) * 0.6 + 0.2
    noisy = clean + 0.05 * np.random.default_rng(0).standard_normal(clean.shape)
    noisy, denoised = noisy.astype(np.float32), clean.astype(np.float32)
    assert tone_share(noisy, denoised, removed_level(noisy, denoised)) == 0.0


@pytest.mark.parametrize(("tone", "brighter"), [("auto", True), ("srgb", True), ("linear", False)])
def test_denoise_brightens_the_shadows_of_gamma_encoded_pictures_only(tone, brighter) -> None:
    image = np.rint(255 * photograph(shades(128))).astype(np.uint8)
    found = fit_denoise(image, quality="preview", tone=tone, channel_axis=-1)
    assert (found.tone > 0.5) == brighter
    assert (found.image.mean() > image.mean() + 0.5) == brighter


def test_sixteen_bits_are_linear_unless_said_otherwise() -> None:
    image = np.rint(65535 * photograph(shades(96))).astype(np.uint16)
    assert fit_denoise(image, quality="preview", channel_axis=-1).tone == 0.0
    assert fit_denoise(image, quality="preview", tone="srgb", channel_axis=-1).tone > 0.5


def test_halves_are_no_eight_bits() -> None:
    """The unit of pixels that are 0 or 0.5 is no whole number; it was taken for 0, and divided by."""
    halves = 0.5 * np.random.default_rng(0).integers(0, 2, (32, 32, 3))
    assert fit_denoise(halves, 0.1, quality="preview", channel_axis=-1).tone == 0.0


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16"])
@pytest.mark.parametrize("seed", range(4))
def test_what_lies_outside_black_and_white_stays_there(dtype: str, seed: int) -> None:
    """All below black became 0, and all above white 1: 25 sigma and more."""
    unit = 3000.0 if dtype == "int16" else 1.0
    ramp = np.linspace(-5, 5, 2304).reshape(48, 48)
    noisy = (ramp + np.random.default_rng(seed).normal(0, 0.2, ramp.shape)) * unit
    noisy = noisy.astype(dtype)
    found = denoise(noisy, 0.2 * unit, tone="srgb", quality="preview").astype(float)
    assert np.abs(found - noisy).max() <= 8 * 0.2 * unit


def test_only_what_can_be_shown_is_corrected() -> None:
    level = np.full((4, 4, 1), 0.1, np.float32)
    for value in (-3.0, -0.5, 1.5, 40.0):
        pixels = np.full((4, 4, 1), value, np.float32)
        assert np.array_equal(correct_tone(pixels, level, 1.0), pixels)
    dark = np.full((4, 4, 1), 0.05, np.float32)
    assert (correct_tone(dark, level, 1.0) != dark).all()


@pytest.mark.parametrize("tone", ["auto", "srgb"])
def test_pieces_and_volumes_have_the_tone_of_the_whole(tone: str) -> None:
    """It was dropped in silence for both."""
    import dask.array

    image = np.rint(255 * photograph(shades(128))).astype(np.uint8)
    options = {"quality": "preview", "tone": tone, "channel_axis": -1}
    brighter = denoise(image, 12.0, **options).mean() - image.mean()
    assert brighter > 0.5
    lazy = denoise(dask.array.from_array(image, chunks=(64, 64, 3)), 12.0, **options).compute()
    assert lazy.mean() - image.mean() == pytest.approx(brighter, rel=0.15)
    volume = np.stack([image, image[::-1], image])
    assert denoise(volume, 12.0, **options).mean() - volume.mean() > 0.7 * brighter


@pytest.mark.parametrize("noise", [0.005, 0.02, 0.05, 0.1])
@pytest.mark.parametrize("light", [0.03, 0.1, 0.2, 0.5, 0.8])
def test_tables_know_what_the_curve_does(light: float, noise: float) -> None:
    nodes = np.linspace(-6, 6, 4001)
    weights = np.exp(-(nodes**2) / 2)
    clipped = np.clip(light + noise * nodes, 0, 1)
    seen = curve(clipped)
    mean = np.average(seen, weights=weights)
    second, third = (np.average((seen - mean) ** power, weights=weights) for power in (2, 3))
    meant = np.array([light, np.average(clipped, weights=weights)])  # half of each is aimed at
    tables = tone_module._tables()
    n_means, n_levels = tables[0].shape
    at = mean * (n_means - 1), np.sqrt(second) / tone_module._MOST * (n_levels - 1)
    found = [map_coordinates(table, np.array(at)[:, None], order=1).item() for table in tables]
    assert found[0] == pytest.approx(curve(meant).mean() - mean, abs=2e-3, rel=0.1)
    assert found[1] == pytest.approx(third, abs=3e-5, rel=0.1)


def test_tables_are_numbers_and_say_nothing_where_there_is_no_noise() -> None:
    for table in tone_module._tables():
        assert np.isfinite(table).all()
        assert not table[:, 0].any()


@pytest.mark.usefixtures("instruction_set")
@pytest.mark.parametrize("n", [0, 1, 7, 64, 1000])
def test_the_kernel_is_its_twin(n: int) -> None:
    rng = np.random.default_rng(n)
    pixels, level = rng.normal(5, 6, n), rng.gamma(1.0, 1.5, n)
    given = [each.astype(np.float32) for each in (pixels, level, rng.normal(0, 0.1, (6, 9)))]
    rest = (0.4, 0.1, 0.02, 0.7)
    wanted = oracles.corrected_tone(*(each.astype(float) for each in given), *rest)
    assert np.allclose(_native.correct_tone(*given, *rest), wanted, atol=2e-5)


def test_what_is_no_number_stays_so_and_harms_no_other() -> None:
    pixels = np.array([np.nan, 0.1, np.inf, -np.inf], np.float32)
    level = np.array([0.1, np.nan, 0.1, 0.1], np.float32)
    table = tone_module._tables()[0]
    found = _native.correct_tone(pixels, level, table, 0.4, 1.0, 0.0, 1.0)
    assert np.array_equal(found, pixels, equal_nan=True)
