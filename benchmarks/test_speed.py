"""Times that are kept and compared: ``make bench-compare``; ``make bench-compare KEEP=v0.3.0`` keeps them.

Each is a picture or a volume of one kind; ``benchmarks/run.py`` has the peers beside ours.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from skimage import data

import symsmooth

SIGMA = 25.0
QUALITIES = ("preview", "fast", "balanced", "best")


def noisy(clean: np.ndarray) -> np.ndarray:
    return clean + SIGMA * np.random.default_rng(0).standard_normal(clean.shape)


@pytest.fixture(scope="module")
def grey() -> np.ndarray:
    return noisy(data.camera())


@pytest.mark.parametrize("quality", QUALITIES)
@pytest.mark.parametrize("sigma", [SIGMA, None], ids=["known", "blind"])
def test_denoise_grey(benchmark: Any, grey: np.ndarray, quality: str, sigma: float | None) -> None:
    benchmark(symsmooth.denoise, grey, sigma, quality=quality, rng=0)


@pytest.mark.parametrize("quality", ["fast", "balanced"])
def test_denoise_colour(benchmark: Any, quality: str) -> None:
    picture = noisy(data.astronaut())
    benchmark(symsmooth.denoise, picture, SIGMA, quality=quality, channel_axis=-1, rng=0)


def test_denoise_volume(benchmark: Any) -> None:
    volume = noisy(np.stack([data.camera()[:128, :128]] * 24))
    benchmark(symsmooth.denoise, volume, SIGMA, quality="fast", channel_axis=None, rng=0)


@pytest.mark.parametrize("kind", ["grey", "colour", "24 megapixels"])
def test_estimate_noise(benchmark: Any, kind: str) -> None:
    picture = noisy(data.astronaut() if kind == "colour" else data.camera())
    if kind == "24 megapixels":
        picture = np.tile(picture.astype(np.float32), (8, 12))[:4000, :6000]
    benchmark(symsmooth.estimate_noise, picture, channel_axis=-1 if kind == "colour" else None)


@pytest.mark.parametrize("method", ["gsf", "nlm", "bm3d", "nl_bayes"])
def test_methods(benchmark: Any, grey: np.ndarray, method: str) -> None:
    benchmark(symsmooth.METHODS[method], grey, SIGMA)


def test_denoise_raw(benchmark: Any) -> None:
    mosaic = np.random.default_rng(0).poisson(data.camera() * 2.0).astype(np.uint16)
    benchmark(symsmooth.denoise_raw, mosaic, "RGGB", quality="fast", rng=0)
