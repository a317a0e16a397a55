"""Specks are replaced where nothing else can have made them; stars, glitter and photons stay."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.ndimage
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import symsmooth
from symsmooth.core.image import Picture, open_image
from symsmooth.core.metrics import psnr
from symsmooth.noise.specks import (
    Specks,
    _sorted_neighbours,
    find_specks,
    speck_rules,
    without_specks,
)

from ..odd_pictures import pictures

SHAPE = 160, 192


def scene() -> np.ndarray:
    yy, xx = np.mgrid[: SHAPE[0], : SHAPE[1]]
    waves = 40 * np.sin(yy / 9.0) * np.cos(xx / 13.0)
    return 120 + waves + 50 * (np.hypot(yy - 80, xx - 90) < 40)


def specks_of(picture: Picture, specks: Specks = "auto") -> np.ndarray | None:
    return find_specks(picture, speck_rules(picture, specks))


def peppered(pixels: np.ndarray, share: float = 0.01) -> tuple[np.ndarray, np.ndarray]:
    """Return 8-bit pixels with salt and pepper, and where it is."""
    chance = np.random.default_rng(2).random(pixels.shape)
    low, high = chance < share / 2, chance > 1 - share / 2
    found = np.where(low, 0, np.where(high, 255, np.clip(np.rint(pixels), 0, 255)))
    return found.astype(np.uint8), low | high


def white(sigma: float, seed: int = 1) -> np.ndarray:
    return scene() + np.random.default_rng(seed).normal(0, sigma, SHAPE)


def photons(peak: float) -> np.ndarray:
    return np.random.default_rng(1).poisson(scene() / 255 * peak) * (255 / peak)


@pytest.mark.parametrize("noisy", [white(10.0), photons(200.0)], ids=["white", "photons"])
def test_salt_and_pepper_goes(noisy: np.ndarray) -> None:
    pixels, specks = peppered(noisy)
    found = symsmooth.fit_denoise(pixels, quality="fast", rng=0)
    kept = symsmooth.denoise(pixels, quality="fast", rng=0, specks="keep")
    without = symsmooth.denoise(
        np.clip(np.rint(noisy), 0, 255).astype(np.uint8), quality="fast", rng=0
    )
    assert abs(found.n_specks - specks.sum()) < 0.2 * specks.sum()
    gain = psnr(found.image, scene(), 255.0) - psnr(kept, scene(), 255.0)
    assert gain > 5.0
    assert psnr(found.image, scene(), 255.0) > psnr(without, scene(), 255.0) - 0.4


def stars(width: float, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    y, x = rng.integers(0, SHAPE[0], 200), rng.integers(0, SHAPE[1], 200)
    sky = np.zeros(SHAPE)
    np.add.at(sky, (y, x), 100 * rng.uniform(1e-3, 1, 200) ** -0.9)
    return scipy.ndimage.gaussian_filter(sky, width) + 20


@pytest.mark.parametrize("width", [0.6, 1.0, 1.7])
@pytest.mark.parametrize("kind", ["float", "photons", "8 bit"])
def test_star_fields_are_the_same_to_the_bit(width: float, kind: str) -> None:
    rng, sky = np.random.default_rng(3), stars(width, 4)
    pixels = {
        "float": sky + rng.normal(0, 3, SHAPE),
        "photons": rng.poisson(sky).astype(np.uint16),
        "8 bit": np.clip(np.rint(sky + rng.normal(0, 3, SHAPE)), 0, 255).astype(np.uint8),
    }[kind]
    assert specks_of(open_image(pixels)) is None
    options = {"quality": "preview", "rng": 0}
    np.testing.assert_array_equal(
        symsmooth.denoise(pixels, **options), symsmooth.denoise(pixels, specks="keep", **options)
    )


@pytest.mark.parametrize("sigma", [0.0, 2.0, 10.0, 60.0])
@pytest.mark.parametrize("clip", [False, True])
def test_noise_is_no_speck_even_where_it_is_cut_off(sigma: float, clip: bool) -> None:
    pixels = white(sigma)
    if clip:
        pixels = np.clip(np.rint(pixels), 0, 255).astype(np.uint8)
    assert specks_of(open_image(pixels)) is None


@pytest.mark.parametrize("peak", [0.3, 3.0, 30.0])
def test_photons_are_no_specks(peak: float) -> None:
    counts = np.random.default_rng(5).poisson(scene() / 255 * peak).astype(np.uint16)
    assert specks_of(open_image(counts)) is None


def test_pepper_of_a_sensor_goes() -> None:
    """Many dark pixels of all depths, as in the exposures of M13."""
    rng, noisy = np.random.default_rng(6), stars(1.2, 4) + 100
    pixels = noisy + rng.normal(0, 3, SHAPE)
    dead = rng.random(SHAPE) < 0.01
    pixels = np.where(dead, pixels - rng.uniform(25, 60, SHAPE), pixels)
    found = specks_of(open_image(pixels))
    assert found is not None
    assert (found & dead).sum() > 0.8 * dead.sum()
    assert (found & ~dead).sum() < 0.3 * dead.sum()


def test_letters_are_no_pepper() -> None:
    page = pictures()["text"]
    for sigma in (10, 25, 50):
        noisy = page + sigma / 255 * np.random.default_rng(0).standard_normal(page.shape)
        assert specks_of(open_image(noisy)) is None


def test_hot_pixels_go_when_asked_and_stars_stay() -> None:
    rng = np.random.default_rng(7)
    pixels = stars(1.2, 4) + rng.normal(0, 2, SHAPE)
    hot = rng.random(SHAPE) < 0.0005
    pixels[hot] += 400
    assert specks_of(open_image(pixels)) is None
    found = specks_of(open_image(pixels), "remove")
    assert found is not None
    assert (found & hot).sum() > 0.9 * hot.sum()
    assert (found & ~hot).sum() <= 2
    result = symsmooth.fit_denoise(pixels, specks="remove", quality="preview", rng=0)
    assert result.n_specks == found.sum()


def test_specks_beside_specks_are_found() -> None:
    pixels = white(3.0)
    pixels[50:52, 60] += 150
    found = specks_of(open_image(pixels), "remove")
    assert found is not None
    assert found[50:52, 60].all()


@pytest.mark.parametrize("times", [1e-3, 1.0, 1e4])
def test_the_unit_does_not_matter(times: float) -> None:
    pixels = peppered(white(10.0))[0]
    found = specks_of(open_image(times * pixels.astype(np.float64)))
    expected = specks_of(open_image(pixels.astype(np.float64)))
    np.testing.assert_array_equal(found, expected)


def test_missing_pixels_stay_missing() -> None:
    pixels, _ = peppered(white(10.0))
    mask = np.zeros(SHAPE, bool)
    mask[:20] = True
    picture = without_specks(open_image(pixels, None, mask))
    assert picture.mask is not None
    assert picture.mask[:20].all()
    assert picture.mask[20:].any()


@given(arrays(np.float32, (9, 11), elements=st.floats(-100, 100, width=32)))
def test_neighbours_are_in_order(pixels: np.ndarray) -> None:
    """Zeros and ones suffice for a sorting network, but this is quicker to believe."""
    around = _sorted_neighbours(pixels, 1)
    np.testing.assert_array_equal(around, np.sort(around, axis=0))
    padded = np.pad(pixels, 1, mode="symmetric")
    window = padded[3:6, 4:7].ravel()
    np.testing.assert_array_equal(around[:, 3, 4], np.sort(np.delete(window, 4)))


def test_a_tiny_picture_has_no_neighbours_to_ask() -> None:
    picture = open_image(np.arange(4.0).reshape(2, 2))
    assert without_specks(picture, "remove") is picture


def test_black_and_white_detail_on_a_calm_ground_is_no_speck() -> None:
    """As sharpened foliage before a sky: its single pixels reach both ends, and the sky has none."""
    rng = np.random.default_rng(0)
    picture = rng.normal(128.0, 3.0, (192, 192))
    leaves = rng.random((96, 192))
    picture[96:] += np.select(
        [leaves < 0.06, leaves > 0.94], [-400.0, 400.0], rng.normal(0, 25, leaves.shape)
    )
    image = np.clip(np.rint(picture), 0, 255).astype(np.uint8)
    assert symsmooth.fit_denoise(image, quality="preview").n_specks == 0
