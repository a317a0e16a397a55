"""Small changes of a picture change its result a little: nothing is decided by a threshold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from skimage import data

from symsmooth import denoise
from symsmooth.core.metrics import psnr
from symsmooth_repro.camera import CAMERAS, photograph

SCENES = {
    "cat": lambda: data.chelsea()[20:276, 60:316],
    "coffee": lambda: data.coffee()[:256, 150:406],
}
JUMP = 0.3  # decibels, from one step to the next, beside what the steps around it do


def by_level(scene: np.ndarray, step: float) -> np.ndarray:
    """White noise of 2 to 64 grey levels."""
    noise = np.random.default_rng(0).standard_normal(scene.shape)
    return (scene + 2.0 * 32**step * noise).astype(np.float32)


def by_correlation(scene: np.ndarray, step: float) -> np.ndarray:
    """Noise of which channels share nothing, up to all of it."""
    rng = np.random.default_rng(0)
    own, common = rng.standard_normal(scene.shape), rng.standard_normal((*scene.shape[:2], 1))
    return (scene + 15 * (np.sqrt(1 - step) * own + np.sqrt(step) * common)).astype(np.float32)


def by_exposure(scene: np.ndarray, step: float) -> np.ndarray:
    """A camera whose raw noise falls to a quarter."""
    noisy, _ = photograph(scene / 255.0, CAMERAS["A"].quieter(4**step), 1)
    return np.rint(255 * noisy).astype(np.uint8)


def by_jpeg(scene: np.ndarray, step: float) -> np.ndarray:
    """The same camera's picture as JPEG of quality 70 to 98."""
    camera = replace(CAMERAS["A"], quality=round(70 + 28 * step))
    noisy, _ = photograph(scene / 255.0, camera, 1)
    return np.rint(255 * noisy).astype(np.uint8)


@pytest.mark.slow
@pytest.mark.parametrize("scene", SCENES)
@pytest.mark.parametrize("sweep", [by_level, by_correlation, by_exposure, by_jpeg])
def test_no_jump_along_a_sweep(sweep: Callable[..., np.ndarray], scene: str) -> None:
    """Gains bend nowhere by more than 0.3 dB: a switch between kinds of noise would show as a step."""
    clean = SCENES[scene]().astype(np.float64)
    if sweep in (by_exposure, by_jpeg):
        _, clean = photograph(clean / 255.0, CAMERAS["A"], 1)
        clean = 255 * clean
    gains = []
    for step in np.linspace(0, 1, 15):
        noisy = sweep(SCENES[scene](), step)
        result = denoise(noisy, channel_axis=-1, quality="fast")
        gains.append(psnr(clean, result.astype(float), 255) - psnr(clean, noisy.astype(float), 255))
    between = (np.array(gains[:-2]) + gains[2:]) / 2
    assert np.abs(between - gains[1:-1]).max() < JUMP, np.round(gains, 2)
