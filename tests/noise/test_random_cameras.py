"""Cameras as there might be: any noise, blur, tone, sharpening, size and compression, nothing given."""

from __future__ import annotations

import numpy as np
import pytest
from skimage import data

import symsmooth
from symsmooth.core.metrics import psnr
from symsmooth.noise.model import noise_of_sample
from symsmooth_repro.camera import photograph, random_camera

SCENES = (data.astronaut, data.coffee, data.chelsea, data.rocket)


@pytest.mark.slow
def test_close_to_the_true_spectrum_and_never_much_worse_than_it_came() -> None:
    behind, gains = [], []
    for seed in range(24):
        scene = SCENES[seed % len(SCENES)]()[20:276, 60:380] / 255.0
        shot, ideal = photograph(scene, random_camera(np.random.default_rng(seed)), seed)
        noisy, clean = np.rint(255 * shot).astype(np.uint8), 255 * ideal
        sample = noise_of_sample(noisy - clean, -1)
        told, blind = (
            symsmooth.denoise(noisy, noise=noise, quality="fast", channel_axis=-1)
            for noise in (sample, "auto")
        )
        behind.append(psnr(told, clean, 255) - psnr(blind, clean, 255))
        gains.append(psnr(blind, clean, 255) - psnr(noisy, clean, 255))
    assert np.mean(behind) < 0.5
    assert min(gains) > -0.1
    assert np.mean(gains) > 1.0
