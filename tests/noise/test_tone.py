"""Tone bias: what a tone curve does to the mean of noisy pixels, and undone."""

from __future__ import annotations

import numpy as np
import pytest

from symsmooth import fit_denoise
from symsmooth.noise.tone import correct_tone, curve


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
    corrected, used = correct_tone(photograph(light).astype(np.float32), mean.astype(np.float32))
    assert used == 1.0
    assert np.abs(corrected - curve(light)).mean() < 0.2 * bias.mean()


def test_noise_that_was_added_after_the_curve_is_left_alone() -> None:
    clean = curve(shades()) * 0.6 + 0.2
    noisy = clean + 0.05 * np.random.default_rng(0).standard_normal(clean.shape)
    result, used = correct_tone(noisy.astype(np.float32), clean.astype(np.float32))
    assert used == 0.0
    assert np.array_equal(result, clean.astype(np.float32))


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
