"""Channels that show the same things are denoised together, others apart."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.ndimage

import symsmooth
from symsmooth.core.channels import compare_channels, group_channels
from symsmooth.core.image import open_image
from symsmooth.core.metrics import psnr

SIZE, SIGMA = 160, 12.0


def cells(seed: int) -> np.ndarray:
    """Return bright discs on dark ground, with outlines of their own."""
    rng = np.random.default_rng(seed)
    yy, xx = np.mgrid[:SIZE, :SIZE]
    picture = np.full((SIZE, SIZE), 30.0)
    for _ in range(14):
        y, x, r = rng.uniform(0, SIZE), rng.uniform(0, SIZE), rng.uniform(5, 18)
        picture[np.hypot(yy - y, xx - x) < r] = rng.uniform(90, 200)
    return scipy.ndimage.gaussian_filter(picture, 0.8)


def noisy(*planes: np.ndarray) -> np.ndarray:
    clean = np.stack(planes, axis=-1)
    return clean + np.random.default_rng(7).normal(0, SIGMA, clean.shape)


UNLIKE = np.stack([cells(1), cells(2)], axis=-1)
ALIKE = np.stack([cells(1), 0.5 * cells(1) + 60], axis=-1)


def denoise(pixels: np.ndarray, **options) -> np.ndarray:
    return symsmooth.denoise(
        pixels, SIGMA, channel_axis=-1, quality="fast", rng=0, workers=1, **options
    )


def test_unlike_channels_are_denoised_as_each_by_itself() -> None:
    pixels = noisy(*np.moveaxis(UNLIKE, -1, 0))
    assert group_channels(pixels) == ((0,), (1,))
    found = denoise(pixels)
    np.testing.assert_array_equal(found, denoise(pixels, channels="apart"))
    assert psnr(found, UNLIKE, 255.0) > psnr(denoise(pixels, channels="together"), UNLIKE, 255.0)


def test_no_outline_of_one_channel_is_in_the_other() -> None:
    pixels = noisy(*np.moveaxis(UNLIKE, -1, 0))
    error = np.square(denoise(pixels) - UNLIKE)
    together = denoise(pixels, channels="together")
    for own, other in ((0, 1), (1, 0)):
        steep = [scipy.ndimage.gaussian_gradient_magnitude(UNLIKE[..., c], 1.5) > 3 for c in (0, 1)]
        flat = ~steep[own]
        here, elsewhere = (
            error[..., own][flat & steep[other]],
            error[..., own][flat & ~steep[other]],
        )
        chance = 3 * here.std() / (len(here) / 25) ** 0.5  # errors of neighbours go together
        assert here.mean() < 1.03 * elsewhere.mean() + chance
        worse = np.square(together - UNLIKE)[..., own][flat & steep[other]]
        assert here.mean() < worse.mean()


def test_channels_that_show_the_same_are_denoised_together() -> None:
    pixels = noisy(*np.moveaxis(ALIKE, -1, 0))
    assert group_channels(pixels) == ((0, 1),)
    np.testing.assert_array_equal(denoise(pixels), denoise(pixels, channels="together"))


def test_what_shows_the_same_is_found_among_others() -> None:
    planes = cells(1), cells(2), 0.6 * cells(1), 0.8 * cells(2)
    pixels, clean = noisy(*planes), np.stack(planes, axis=-1)
    assert group_channels(pixels) == ((0, 2), (1, 3))
    found = denoise(pixels)
    for pair in (
        [0, 2],
        [1, 3],
    ):  # but for the places where clusters begin, which are drawn in turn
        alone = psnr(denoise(pixels[..., pair]), clean[..., pair], 255.0)
        assert abs(psnr(found[..., pair], clean[..., pair], 255.0) - alone) < 0.15


@pytest.mark.parametrize("times", [1e-6, 1.0, 1e6])
def test_the_answer_does_not_depend_on_units_or_order(times: float) -> None:
    pixels = noisy(cells(1), cells(2), 0.6 * cells(1))
    alike, shown = compare_channels(times * pixels)
    order = [2, 0, 1]
    again, shown_again = compare_channels(times * pixels[..., order])
    np.testing.assert_allclose(alike[np.ix_(order, order)], again, rtol=1e-6)
    np.testing.assert_allclose(shown[order], shown_again, rtol=1e-6)
    np.testing.assert_allclose(alike, compare_channels(pixels)[0], rtol=1e-4)


def test_noise_alone_says_nothing_and_changes_nothing() -> None:
    pixels = np.random.default_rng(3).normal(100, 20, (128, 128, 3))
    assert group_channels(pixels) == ((0, 1, 2),)


def test_a_channel_has_its_own_noise_when_apart() -> None:
    clean = np.stack([cells(1), cells(2), cells(3)], axis=-1)
    levels = np.array([4.0, 12.0, 30.0])
    pixels = clean + levels * np.random.default_rng(5).standard_normal(clean.shape)
    picture = open_image(pixels, -1)
    assert len(picture.groups) == 3
    model = symsmooth.estimate_noise(pixels, channel_axis=-1)
    middle = [float(np.ravel(level)[0]) for level in model.level_at(np.array([60.0]))]
    np.testing.assert_allclose(middle, levels, rtol=0.25)


def test_a_word_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="channels must be one of auto, together, apart"):
        symsmooth.denoise(UNLIKE, 5.0, channel_axis=-1, channels="side by side")
