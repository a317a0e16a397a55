"""A picture a little noisier must not fall into another regime."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.ndimage
from skimage import data

from symsmooth import denoise
from symsmooth.core.metrics import psnr
from symsmooth_repro.camera import CAMERAS, photograph

GREY = data.camera()[100:356, 100:356].astype(np.float32)
COLOUR = data.astronaut()[:256, 128:384] / 255.0


def grey(level: float, width: float) -> tuple[np.ndarray, np.ndarray]:
    noise = np.random.default_rng(0).standard_normal(GREY.shape)
    noise = scipy.ndimage.gaussian_filter(noise, width)
    return (GREY + 8 * level * noise / noise.std()).astype(np.float32), GREY


def camera(level: float) -> tuple[np.ndarray, np.ndarray]:
    noisy, clean = photograph(COLOUR, CAMERAS["A"].quieter(1 / level))
    return (255 * noisy).astype(np.float32), 255 * clean


KINDS = {
    "white": lambda level: grey(level, 0.0),
    "coarse": lambda level: grey(level, 1.0),
    "camera": camera,
}


@pytest.mark.parametrize("kind", KINDS)
def test_more_noise_costs_no_more_than_itself(kind: str) -> None:
    kept = []
    for level in 2 ** np.arange(-0.5, 1.6, 0.25):
        noisy, clean = KINDS[kind](level)
        axis = -1 if noisy.ndim == 3 else None
        result = denoise(noisy, quality="fast", channel_axis=axis)
        kept.append((psnr(noisy, clean, 255), psnr(result, clean, 255)))
    noise, result = np.diff(np.array(kept), axis=0).T
    assert (result < 0.5).all()  # where coarse grey noise begins to be believed: 0.43
    assert (result > noise - 0.3).all()
