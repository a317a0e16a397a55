"""The noise level."""

from __future__ import annotations

import numpy as np
import pytest
from skimage import data
from skimage.restoration import estimate_sigma as wavelet_sigma

from symsmooth import estimate_sigma
from symsmooth.noise import add_noise
from symsmooth.noise.level import gradient_energy, patch_variance


@pytest.mark.parametrize("sigma", [5.0, 10.0, 25.0, 50.0])
def test_photographs_within_six_percent(sigma) -> None:
    for i, clean in enumerate((data.camera()[::2, ::2], data.coins(), data.moon()[::2, ::2])):
        assert estimate_sigma(add_noise(clean, sigma, i)) == pytest.approx(sigma, rel=0.06)


def test_units_dtype_and_channels() -> None:
    noisy = add_noise(data.astronaut()[100:228, 100:228], 20.0, 0)
    level = estimate_sigma(noisy, channel_axis=-1)
    assert level == pytest.approx(20.0, rel=0.05)
    assert estimate_sigma(noisy / 255, channel_axis=-1) == pytest.approx(level / 255, rel=1e-4)
    assert estimate_sigma(noisy.astype(np.float32), channel_axis=2) == pytest.approx(level, 1e-3)
    assert estimate_sigma(np.moveaxis(noisy, -1, 0), channel_axis=0) == pytest.approx(level, 1e-6)
    volume = add_noise(np.ones((6, 40, 40)), 3.0, 0)
    assert estimate_sigma(volume) == pytest.approx(3.0, rel=0.05)


def test_missing_pixels_are_not_looked_at() -> None:
    noisy = add_noise(data.camera()[:128, :128].astype(float), 20.0, 0)
    whole = estimate_sigma(noisy)
    noisy[40:60, 30:90] = np.nan
    assert estimate_sigma(noisy) == pytest.approx(whole, rel=0.08)


@pytest.mark.parametrize("shape", [(1, 300), (2, 2), (3, 50), (1, 1), (4, 4, 4)])
def test_tiny_pictures_give_a_finite_level(shape) -> None:
    level = estimate_sigma(np.random.default_rng(0).standard_normal(shape))
    assert 0 <= level < 3


def test_a_constant_picture_has_no_noise() -> None:
    assert estimate_sigma(np.full((32, 32), 7)) == 0


@pytest.mark.parametrize("sigma", [5, 10, 25, 50])
def test_development_set_under_four_percent_and_better_than_wavelets(training, sigma) -> None:
    errors = []
    for i, clean in enumerate(training):
        noisy = add_noise(clean, sigma / 255, i)
        errors.append([abs(f(noisy) * 255 / sigma - 1) for f in (estimate_sigma, wavelet_sigma)])
    ours, wavelets = np.mean(errors, axis=0)
    assert ours < 0.04
    assert ours < wavelets


@pytest.mark.parametrize("number", [300, 500, 1000, 2000])
def test_few_patches_lose_none_of_the_variance_that_is_made_up_for(number) -> None:
    rng = np.random.default_rng(number)
    samples = [rng.standard_normal((number, 5, 5)) for _ in range(30)]
    found = [patch_variance(own, gradient_energy(own), 1.4) for own in samples]
    assert np.mean(found) == pytest.approx(1.0, abs=0.06)


@pytest.mark.parametrize("radius", [40, 80, 120])
def test_the_background_of_a_segmented_picture_is_not_looked_at(radius) -> None:
    y, x = np.indices((256, 256))
    inside = np.hypot(y - 128, x - 128) < radius
    scene = np.clip(add_noise(data.camera()[:256, :256], 10.0), 1, 255)
    segmented = np.where(inside, scene, 0.0)
    assert abs(estimate_sigma(segmented) / 10.0 - 1.0) < 0.08


@pytest.mark.parametrize("sigma", [5.0, 20.0, 40.0])
def test_noise_that_is_cut_off_at_black_and_white_is_seen_where_it_is_not(sigma) -> None:
    noisy = np.clip(np.rint(add_noise(data.astronaut(), sigma)), 0, 255).astype(np.uint8)
    assert abs(estimate_sigma(noisy, channel_axis=-1) / sigma - 1.0) < 0.07


@pytest.mark.parametrize("missing", [False, True])
def test_the_level_of_a_large_picture_with_pixels_to_avoid(missing) -> None:
    """Of so many patches some are drawn before cut-off and missing pixels are avoided."""
    clean = np.tile(data.camera(), (3, 3))
    noisy = np.clip(add_noise(clean, 20.0, 0), 0, 255)
    holes = np.random.default_rng(0).random(noisy.shape) < 0.02 if missing else None
    assert abs(estimate_sigma(noisy, mask=holes) / 20.0 - 1.0) < 0.03


def test_drawings_keep_a_level_of_zero() -> None:
    """Where all that varies is an edge, leaving out black and white must not make noise of it."""
    drawing = np.full((128, 128), 255.0)
    drawing[20:24, 10:110] = drawing[30:100, 60:63] = 0.0
    drawing[24, 10:110] = 128.0
    assert estimate_sigma(drawing) == 0.0
