"""Noise that was cut off at black or white."""

from __future__ import annotations

import numpy as np
import pytest
from skimage import data

import symsmooth
from symsmooth.core.metrics import psnr
from symsmooth.noise import PoissonGaussian
from symsmooth.noise.clipping import before_clipping, correct_clipping


@pytest.mark.parametrize("light", [0.0, 0.3, 1.0, 2.5, 5.0])
def test_the_inverse_of_the_clipped_mean(light) -> None:
    noise = np.random.default_rng(0).standard_normal(10**6)
    mean = np.maximum(light + noise, 0.0).mean()
    assert before_clipping(mean) == pytest.approx(light, abs=0.01)


def test_nothing_changes_where_nothing_was_cut_off() -> None:
    noisy = np.random.default_rng(0).normal(1.0, 1.0, (64, 64, 1)).astype(np.float32)
    denoised = np.ones_like(noisy)
    found, ends = correct_clipping(noisy, denoised, 1.0)
    np.testing.assert_array_equal(found, denoised)
    assert ends == ()


@pytest.mark.parametrize("turned", [False, True])
def test_shadows_of_a_clipped_picture_come_back_dark(turned) -> None:
    """A ramp from black: its dark end is 0.4 sigma too bright unless clipping is undone; so at white."""
    clean = np.tile(np.linspace(0.0, 150.0, 192), (96, 1))
    noisy = clean + 20 * np.random.default_rng(0).standard_normal(clean.shape)
    noisy = np.clip(np.rint(noisy), 0, 255).astype(np.uint8)
    if turned:
        clean, noisy = 255 - clean, 255 - noisy
    found = symsmooth.denoise(noisy, 20.0, quality="fast").astype(float)
    bias = abs((found - clean)[:, :24].mean())
    assert bias < 0.06 * 20


def test_pieces_know_that_the_whole_was_cut_off() -> None:
    """It was asked in pictures that are denoised whole, and dropped in silence in pieces."""
    import dask.array

    clean = np.tile(np.linspace(0.0, 150.0, 192), (96, 1))
    noisy = clean + 20 * np.random.default_rng(0).standard_normal(clean.shape)
    noisy = np.clip(np.rint(noisy), 0, 255).astype(np.uint8)
    lazy = symsmooth.denoise(dask.array.from_array(noisy, chunks=(96, 64)), 20.0, quality="fast")
    assert abs((lazy.compute().astype(float) - clean)[:, :24].mean()) < 0.06 * 20


def test_an_empty_background_stays_empty() -> None:
    y, x = np.indices((128, 128))
    inside = np.hypot(y - 64, x - 64) < 40
    noisy = np.where(inside, np.random.default_rng(0).normal(100.0, 10.0, inside.shape), 0.0)
    found = symsmooth.denoise(noisy.clip(0), 10.0, quality="fast")
    assert np.abs(found[np.hypot(y - 64, x - 64) > 50]).max() < 1.0


@pytest.mark.parametrize("peak", [3, 5, 20])
def test_pixels_without_a_photon_are_not_cut_off(peak) -> None:
    """Zeros of photon counts tell of noise: left out, the gain is off by half or noise seems white."""
    clean = data.camera()[::2, ::2] / 255.0
    counts = np.random.default_rng(0).poisson(peak * clean)
    gain = symsmooth.estimate_noise(counts / peak, noise="poisson-gaussian").photons.gain[0]
    assert gain == pytest.approx(1 / peak, rel=0.1)
    known, blind = (
        symsmooth.denoise(counts / peak, noise=noise, quality="fast")
        for noise in (PoissonGaussian((1 / peak,), (0.0,)), "auto")
    )
    assert psnr(blind, clean) > psnr(known, clean) - 0.2
