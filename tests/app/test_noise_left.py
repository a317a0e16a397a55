"""Noise that is left is said, with a remedy that helps this picture."""

from __future__ import annotations

import re

import numpy as np
import pytest
from skimage import data

import symsmooth
from symsmooth.app.noise_left import flattest, warn_of_noise_left
from symsmooth.core.image import open_image
from symsmooth.noise import White
from symsmooth.noise.check import Check, check_result

SIGMA = 12.0
SCENE = data.camera()[:256, 60:380].astype(np.float64)


def noisy() -> np.ndarray:
    return SCENE + np.random.default_rng(0).normal(0, SIGMA, SCENE.shape)


def denoise(pixels, noise, strength):
    return symsmooth.denoise(pixels, noise=noise, strength=strength, quality="fast", rng=0)


def warn(told: float, denoised_by=denoise):
    pixels = noisy()
    picture, model = open_image(pixels), White(told)
    check = check_result(picture, denoise(pixels, model, 1.0), model)
    return check, warn_of_noise_left(check, picture, model, 255.0, denoised_by)


def test_what_is_left_is_measured_on_flat_ground_of_this_picture() -> None:
    check, (warning,) = warn(SIGMA / 4)
    assert check.left > 0.55
    assert warning.code == "noise-left"
    said = re.search(r"a noise region at (\d+),(\d+),(\d+),(\d+)", str(warning))
    assert said
    x, y, width, height = map(int, said.groups())
    model = symsmooth.estimate_noise(noisy(), region=(x, y, width, height))
    assert model.sigma == pytest.approx(SIGMA, rel=0.15)
    left = int(re.search(r"it leaves (\d+)%", str(warning))[1]) / 100
    assert left < 0.3


def test_a_good_result_is_no_news() -> None:
    check, warnings = warn(SIGMA)
    assert check.left < 0.3
    assert warnings == []


def test_a_remedy_that_does_not_help_is_not_named() -> None:
    _, (warning,) = warn(SIGMA / 4, lambda pixels, noise, strength: pixels + 0.01)
    assert "tried" not in str(warning)
    assert "a noise region measures it" in str(warning)


def test_what_nobody_sees_is_no_news() -> None:
    picture = open_image(noisy())
    check = Check(outlines=0.0, left=0.9, fine=0.5)
    assert warn_of_noise_left(check, picture, White(1.0), 255.0, denoise) == []


def test_flat_ground_is_found() -> None:
    pixels = noisy()
    pixels[:60, :60] = 7.0  # constant: there is nothing to measure
    pixels[150:230, 200:280] = 130 + np.random.default_rng(1).normal(0, SIGMA, (80, 80))
    x, y = flattest(open_image(pixels))
    assert 190 <= x <= 240
    assert 140 <= y <= 190


def test_flat_ground_of_a_large_picture_is_found_in_a_smaller_size() -> None:
    rng = np.random.default_rng(0)
    rough = np.kron(rng.uniform(0, 200, (150, 201)), np.ones((10, 10)))[:1499, :2001]
    rough[901:1001, 1501:1601] = 100.0
    x, y = flattest(open_image(rough + rng.normal(0, 5, rough.shape)))
    assert 1497 <= x <= 1557
    assert 897 <= y <= 957
