"""Coarse noise whose level depends on brightness."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.ndimage

from symsmooth import denoise, estimate_noise
from symsmooth.noise.curve import LevelCurve

DARK = 80  # rows


def wall(times: float, unit: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """A bright wall over a dark floor, with coarse noise that is so many times stronger on the floor."""
    clean = np.full((192, 192, 3), 170.0)
    clean[-DARK:] = 60.0
    noise = np.random.default_rng(0).standard_normal(clean.shape)
    noise = scipy.ndimage.gaussian_filter(noise, (0.8, 0.8, 0.0))
    noise *= 8.0 / noise.std()
    noise[-DARK:] *= times
    return unit * clean, (unit * (clean + noise)).astype(np.float32)


def test_even_noise_has_no_curve() -> None:
    assert estimate_noise(wall(1.0)[1], channel_axis=-1).curve is None


@pytest.mark.parametrize("unit", [1.0, 1 / 255])
def test_stronger_noise_in_the_dark_is_found(unit) -> None:
    model = estimate_noise(wall(3.0, unit)[1], channel_axis=-1)
    floor, light = np.interp([60 * unit, 170 * unit], model.curve.brightness, model.curve.times)
    assert 1.7 < floor / light < 3.0  # what is below a fifth is left alone


def test_little_noise_is_left_on_the_floor() -> None:
    clean, noisy = wall(3.0)
    model = estimate_noise(noisy, channel_axis=-1)

    def left(noise) -> float:
        result = denoise(noisy, noise=noise, quality="fast", channel_axis=-1)
        return float(np.sqrt(np.mean((result - clean)[-DARK + 16 :] ** 2)))

    assert left(model) < 0.6 * left(replace(model, curve=None))


def test_a_curve_goes_through_changes_of_units() -> None:
    curve = LevelCurve(np.array([0.0, 100.0]), np.array([2.0, 1.0]))
    pixels = np.full((8, 8, 3), 50.0, np.float32)
    there = curve.in_units(20.0, 5.0)
    assert np.allclose(there.at((pixels - 20) / 5), curve.at(pixels))
    assert np.allclose(curve.at(pixels), 1.5)


def test_a_model_that_is_bound_to_a_picture_makes_noise_even_and_undoes_it() -> None:
    clean, noisy = wall(3.0)
    model = estimate_noise(noisy, channel_axis=-1)
    bound = model.bind(noisy)
    assert np.abs(bound.restore(bound.whiten(noisy)) - noisy).max() < 0.05

    def unevenness(own) -> float:
        noise = own.whiten(noisy) - own.whiten(clean.astype(np.float32))
        return float(noise[-DARK + 16 :].std() / noise[: -DARK - 16].std())

    assert unevenness(model) > 2.5
    assert unevenness(bound) < 1.8
