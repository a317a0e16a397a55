"""The noise of a picture is found whatever it is: one model, no regimes."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.ndimage
from PIL import Image
from skimage import data

from symsmooth import denoise, estimate_noise
from symsmooth.core.metrics import psnr
from symsmooth.noise.estimator import load_weights

COLOUR = data.astronaut()[:256, :256].astype(np.float64)
GREY = data.camera()[100:356, 100:356].astype(np.float64)


def test_the_weights_say_where_they_come_from() -> None:
    weights = load_weights()
    for name in ("version", "seed", "data", "commit"):
        assert str(weights[name])
    assert sum(np.asarray(v).nbytes for v in weights.values()) < 300_000
    assert all(np.isfinite(v).all() for v in weights.values() if v.dtype.kind == "f")


@pytest.mark.parametrize("picture", [GREY, COLOUR], ids=["grey", "colour"])
@pytest.mark.parametrize("unit", [1e-20, 1e20])
def test_the_estimate_is_exact_in_scale(picture: np.ndarray, unit: float) -> None:
    noisy = picture + np.random.default_rng(0).normal(0.0, 8.0, picture.shape)
    axis = -1 if picture.ndim == 3 else None
    one, other = (estimate_noise(each, channel_axis=axis) for each in (noisy, noisy * unit))
    assert other.sigma == pytest.approx(unit * one.sigma, rel=1e-3)
    assert other.finding.confidence == pytest.approx(one.finding.confidence, abs=1e-3)


def test_the_same_bits_every_time() -> None:
    noisy = COLOUR + np.random.default_rng(0).normal(0.0, 8.0, COLOUR.shape)
    first, second = (estimate_noise(noisy, channel_axis=-1) for _ in range(2))
    assert first == second


@pytest.mark.parametrize("sigma", [5.0, 15.0, 40.0])
@pytest.mark.parametrize("picture", [GREY, COLOUR], ids=["grey", "colour"])
def test_white_noise_is_found(picture: np.ndarray, sigma: float) -> None:
    noisy = picture + np.random.default_rng(0).normal(0.0, sigma, picture.shape)
    found = estimate_noise(noisy, channel_axis=-1 if picture.ndim == 3 else None)
    assert found.sigma == pytest.approx(sigma, rel=0.08)
    assert found.coarse_share < 0.15


def correlated(sigma: float, share: float) -> np.ndarray:
    """A colour picture with white noise whose channels have this correlation."""
    rng = np.random.default_rng(0)
    own, common = rng.standard_normal(COLOUR.shape), rng.standard_normal((*COLOUR.shape[:2], 1))
    return COLOUR + sigma * (np.sqrt(1 - share) * own + np.sqrt(share) * common)


@pytest.mark.parametrize("share", [0.0, 0.5, 0.8, 1.0])
def test_noise_that_channels_share_is_removed_as_if_it_were_known(share: float) -> None:
    noisy = correlated(15.0, share)
    known, blind = (
        psnr(denoise(noisy, noise=noise, quality="fast", channel_axis=-1), COLOUR, 255)
        for noise in (noisy - COLOUR, "auto")
    )
    assert blind > known - 0.3


@pytest.mark.parametrize("seed", range(3))
def test_a_picture_that_is_half_blown_out_and_half_noise_is_denoised(seed: int) -> None:
    """Saturated parts have no noise; they may not vote."""
    rng = np.random.default_rng(seed)
    light = 0.15 * (COLOUR / 255) ** 2.2
    light[:, 128:] = 3.0
    noise = rng.normal(0.0, 0.03, light.shape) + rng.poisson(light * 40) / 40 - light

    def shown(linear: np.ndarray) -> np.ndarray:
        return np.rint(255 * np.clip(linear, 0, 1) ** (1 / 2.2)).astype(np.uint8)

    noisy, clean = shown(light + noise), shown(light)
    found = denoise(noisy, quality="fast", channel_axis=-1)
    assert psnr(found, clean, 255) > psnr(noisy, clean, 255) + 2.0
    assert (found[:, 160:] == 255).all()


def test_noise_that_grows_is_followed() -> None:
    """A bright wall over a dark floor, with coarse noise that is three times stronger on the floor."""
    clean = np.full((192, 192, 3), 170.0)
    clean[-80:] = 60.0
    noise = np.random.default_rng(0).standard_normal(clean.shape)
    noise = scipy.ndimage.gaussian_filter(noise, (0.8, 0.8, 0.0))
    noise *= 8.0 / noise.std()
    noise[-80:] *= 3.0
    found = estimate_noise(clean + noise, channel_axis=-1)
    bright, dark = found.level.at(np.array([170.0, 60.0]))[0]
    assert dark / bright == pytest.approx(3.0, rel=0.3)


@pytest.mark.parametrize("name", ["camera", "coins", "moon", "page"])
def test_clean_pictures_stay_clean(name: str) -> None:
    clean = getattr(data, name)()
    assert psnr(denoise(clean, quality="preview"), clean, 255) > 40.0


@pytest.mark.parametrize("size", [(1, 1), (7, 9), (8, 40), (31, 200), (33, 33)])
def test_small_pictures_have_noise_too(size: tuple[int, int]) -> None:
    noisy = np.random.default_rng(0).normal(100.0, 10.0, size)
    assert np.isfinite(estimate_noise(noisy).sigma)


@pytest.mark.parametrize("channels", [2, 4, 5])
def test_other_numbers_of_channels_have_noise_of_their_own(channels: int) -> None:
    levels = np.linspace(3.0, 20.0, channels)
    noisy = np.stack([GREY] * channels, -1)
    noisy = noisy + levels * np.random.default_rng(0).standard_normal(noisy.shape)
    found = estimate_noise(noisy, channel_axis=-1)
    middle = [float(level) for level in found.level_at(np.array(120.0))]
    assert np.allclose(middle, levels, rtol=0.25)


def test_a_large_picture_is_seen_through_windows() -> None:
    rng = np.random.default_rng(0)
    picture = np.tile(GREY, (6, 6)) + rng.normal(0.0, 9.0, (1536, 1536))
    assert estimate_noise(picture).sigma == pytest.approx(9.0, rel=0.08)


def test_a_volume_is_seen_through_its_slices() -> None:
    volume = np.stack([GREY] * 6) + np.random.default_rng(0).normal(0.0, 9.0, (6, *GREY.shape))
    assert estimate_noise(volume, channel_axis=None).sigma == pytest.approx(9.0, rel=0.08)


@pytest.mark.slow
def test_held_out_photographs_cost_little(image_folder) -> None:
    """Pictures that no number was fitted on: the first 200 of the development set."""
    files = sorted((image_folder / "train400").glob("*.png"))[:200:5]
    for sigma, bound in ((5, 0.1), (25, 0.06)):
        losses = []
        for seed, file in enumerate(files):
            clean = np.asarray(Image.open(file)).astype(np.float64)
            noisy = clean + np.random.default_rng(seed).normal(0.0, sigma, clean.shape)
            known, blind = (denoise(noisy, given, quality="fast") for given in (sigma, None))
            losses.append(psnr(known, clean, 255) - psnr(blind, clean, 255))
        assert np.mean(losses) < bound


@pytest.mark.parametrize("sigma", [10.0, 25.0])
def test_white_noise_in_colour_is_told_as_white(sigma: float) -> None:
    """Errors of a few percent between channels and frequencies are errors, not a spectrum."""
    noisy = COLOUR + np.random.default_rng(0).normal(0.0, sigma, COLOUR.shape)
    found = estimate_noise(noisy, channel_axis=-1)
    assert found.spectrum is not None
    assert np.abs(found.spectrum - 1.0).max() < 0.03
