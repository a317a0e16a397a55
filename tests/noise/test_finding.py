"""How sure an estimate is, why, and noise that is measured on flat ground."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from skimage import data

from symsmooth import denoise, estimate_noise
from symsmooth.core.metrics import psnr
from symsmooth.noise import PoissonGaussian, White
from symsmooth.noise.model import noise_of_sample
from symsmooth_repro.camera import CAMERAS, photograph


@pytest.fixture(scope="module")
def camera_picture() -> tuple[np.ndarray, np.ndarray]:
    noisy, clean = photograph(data.astronaut()[:256, :256] / 255.0, CAMERAS["B"])
    return np.rint(255 * noisy).astype(np.uint8), 255 * clean


def test_what_is_found_says_why_and_how_sure(camera_picture) -> None:
    finding = estimate_noise(camera_picture[0], channel_axis=-1).finding
    assert 0.0 < finding.confidence < 1.0
    assert any("coarse" in reason for reason in finding.reasons)
    assert White(3.0).finding is None


def test_a_doubt_is_told_in_the_images_units() -> None:
    clean = data.astronaut()[:256, :256].astype(np.float64)
    noisy = clean + np.random.default_rng(0).normal(0.0, 4.0, clean.shape)
    doubts = [estimate_noise(noisy * k, channel_axis=-1).finding.suspected for k in (1, 64.0)]
    assert doubts[0] > 0.0
    assert doubts[1] == pytest.approx(64 * doubts[0], rel=0.05)


def test_findings_do_not_make_models_differ() -> None:
    noisy = np.random.default_rng(0).normal(100.0, 5.0, (64, 64))
    model = estimate_noise(noisy)
    assert model == replace(model, finding=None)


def test_noise_measured_on_flat_ground_is_removed(camera_picture) -> None:
    noisy, clean = camera_picture
    energy = [
        (np.square(np.diff(clean[y : y + 40, x : x + 40], axis=0)).mean(), x, y)
        for y in range(0, 216, 8)
        for x in range(0, 216, 8)
    ]
    _, x, y = min(energy)
    model = estimate_noise(noisy, channel_axis=-1, region=(x, y, 40, 40))
    true = (noisy - clean)[y : y + 40, x : x + 40]
    assert model.sigma == pytest.approx(true.std(), rel=0.25)
    result = denoise(noisy, noise=model, quality="fast", channel_axis=-1, tone="linear")
    assert psnr(result, clean, 255) > psnr(noisy, clean, 255) + 1


@pytest.mark.parametrize(
    "region", [(0, 0, 15, 40), (-1, 0, 40, 40), (230, 0, 40, 40), (0, 0, 0, 0)]
)
def test_a_region_outside_or_too_small_is_refused(camera_picture, region) -> None:
    with pytest.raises(ValueError, match="at least 16 pixels a side inside a picture of 256 x 256"):
        estimate_noise(camera_picture[0], channel_axis=-1, region=region)


def test_a_model_is_drawn_as_it_is() -> None:
    pytest.importorskip("matplotlib")
    photons = PoissonGaussian((2.0, 4.0), (1.0, 1.0))
    levels, spectrum = photons.plot((0.0, 100.0)).axes
    assert [line.get_ydata()[-1] ** 2 for line in levels.lines] == pytest.approx([201, 401])
    assert np.allclose(spectrum.lines[0].get_ydata(), 1.0)
    sample = np.random.default_rng(0).normal(0.0, 3.0, (128, 128))
    levels, spectrum = noise_of_sample(sample).plot().axes
    assert np.allclose(spectrum.lines[0].get_ydata(), 1.0, rtol=0.1)
    assert levels.lines[0].get_ydata() == pytest.approx(3.0, rel=0.05)
