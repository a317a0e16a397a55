"""Constant regions: a mask, a border, what is empty or blown out, come back to the bit."""

from __future__ import annotations

import numpy as np
import pytest
from skimage import data

import symsmooth
from symsmooth.core.channels import constant_regions
from symsmooth.core.metrics import psnr

SCENE = data.camera()[60:316, 100:356].astype(np.float64)
Y, X = np.indices(SCENE.shape)
SHAPES = {
    "disc": np.hypot(Y - 128, X - 120) < 90,
    "box": (Y > 40) & (Y < 200) & (X > 60) & (X < 220),
    "letterbox": (Y > 36) & (Y < 220),
    "half": X < 128,
    "frame": (np.minimum(Y, X) > 20) & (np.maximum(Y, X) < 236),
}


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
@pytest.mark.parametrize("ground", [0, 255, 77])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_mask_comes_back_and_what_is_inside_is_denoised(shape, ground, dtype) -> None:
    inside = SHAPES[shape]
    times = {np.uint8: 1, np.uint16: 200, np.float32: 1 / 255}[dtype]
    noisy = np.clip(SCENE + np.random.default_rng(0).normal(0, 12, SCENE.shape), 1, 254) * times
    noisy = noisy.astype(dtype)
    masked = np.where(inside, noisy, np.asarray(ground * times, dtype))
    found = symsmooth.denoise(masked, quality="preview")
    assert np.array_equal(found[~inside], masked[~inside])
    deep = inside & np.roll(inside, 24, 0) & np.roll(inside, -24, 0)
    deep &= np.roll(inside, 24, 1) & np.roll(inside, -24, 1)
    plain = symsmooth.denoise(noisy, quality="preview")
    clean = SCENE * times
    losses = [psnr(each[deep], clean[deep], 255 * times) for each in (plain, found)]
    assert losses[1] > losses[0] - 0.35


@pytest.mark.parametrize("size", [17, 40, 200, 201])
@pytest.mark.parametrize("side", [5, 24, 120])
def test_zeros_with_a_noisy_square_never_raise(size, side) -> None:
    picture = np.zeros((size, size), np.float32)
    part = picture[: min(side, size), : min(side, size)]
    part += np.random.default_rng(0).normal(120, 8, part.shape).astype(np.float32)
    found = symsmooth.denoise(picture, quality="preview")
    assert np.isfinite(found).all()


def test_noise_has_no_constant_regions_and_jpeg_blocks_are_none() -> None:
    noisy = np.random.default_rng(0).integers(100, 110, (128, 128, 3))
    assert constant_regions(noisy) is None
    blocks = np.repeat(
        np.repeat(np.random.default_rng(1).integers(0, 255, (16, 16, 1)), 8, 0), 8, 1
    )
    assert constant_regions(blocks) is None


def test_a_region_reaches_as_far_as_its_value() -> None:
    picture = np.random.default_rng(0).integers(1, 255, (64, 64, 1))
    picture[:30, :30] = 0
    picture[10, 30:50] = 0  # a line that goes on from it
    picture[60, 60] = 0  # a pixel that does not
    found = constant_regions(picture)
    assert found[:30, :30].all()
    assert found[10, 30:50].all()
    assert not found[60, 60]


def test_a_small_square_in_a_large_picture_is_found_wherever_it_lies() -> None:
    """It was not looked for where less than a hundredth of the pixels are like their neighbours."""
    for y, x in [(0, 0), (1, 37), (15, 101), (111, 284), (284, 284)]:
        picture = np.random.default_rng(0).integers(1, 255, (300, 300, 3))
        picture[y : y + 16, x : x + 16] = 0
        assert np.array_equal(constant_regions(picture), (picture == 0).all(axis=-1))


def test_missing_pixels_lie_in_no_region_and_end_none() -> None:
    rng = np.random.default_rng(0)
    picture = rng.integers(1, 255, (96, 96, 1))
    picture[:40, :40] = 0
    missing = rng.random((96, 96)) < 0.1
    missing[60:90, 60:90] = True  # nothing is known of it, whatever lies there
    garbage = rng.integers(0, 9, picture.shape)
    for under in (garbage, np.zeros_like(garbage)):
        found = constant_regions(np.where(missing[..., None], under, picture), missing)
        assert np.array_equal(found, (picture[..., 0] == 0) & ~missing)


def test_what_lies_under_a_mask_does_not_matter() -> None:
    """Zeros there were taken for a region without noise, and its filling was not denoised."""
    rng = np.random.default_rng(0)
    noisy = 100 + 50 * np.sin(Y[:96, :96] / 9) + rng.normal(0, 10, (96, 96))
    mask = np.zeros((96, 96), bool)
    mask[30:60, 20:55] = True
    results = [
        symsmooth.denoise(np.where(mask, under, noisy), 10.0, mask=mask, quality="preview")
        for under in (0.0, rng.normal(0, 1e4, (96, 96)))
    ]
    assert np.array_equal(*results)
