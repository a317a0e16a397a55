"""Channels are counted before they are used: copies and constants hold nothing of their own."""

from __future__ import annotations

import numpy as np
import pytest
from skimage import data

import symsmooth
from symsmooth.core.image import count_channels, open_image

CLEAN = data.camera()[100:228, 100:228].astype(np.float64)
GREY = np.clip(CLEAN + np.random.default_rng(0).normal(0, 15, CLEAN.shape), 0, 255).astype(np.uint8)
NONE = np.zeros_like(GREY)
TONED = [GREY, np.rint(0.9 * GREY).astype(np.uint8), np.rint(0.6 * GREY + 7).astype(np.uint8)]
SAVED = {
    "grey as RGB": ([GREY, GREY, GREY], "grey, saved as RGB"),
    "green": ([NONE, GREY, NONE], "1 of 3"),
    "magenta": ([GREY, NONE, GREY], "1 of 3"),
    "on white": ([GREY, NONE + 255, GREY], "1 of 3"),
    "toned": (TONED, "1 of 3"),
    "four": ([GREY, GREY, NONE + 9, GREY], "1 of 4"),
}


@pytest.mark.parametrize("name", SAVED)
@pytest.mark.parametrize("axis", [0, -1])
def test_a_grey_picture_in_many_channels_is_denoised_as_grey(name: str, axis: int) -> None:
    channels, words = SAVED[name]
    image = np.stack(channels, axis)
    picture = open_image(image, axis)
    assert picture.counted is not None
    assert words in picture.counted.words
    found = np.moveaxis(symsmooth.denoise(image, channel_axis=axis, quality="fast"), axis, -1)
    alone = symsmooth.denoise(GREY, quality="fast")
    for c, channel in enumerate(channels):
        if (channel == GREY).all():
            assert np.array_equal(found[..., c], alone)
        elif np.ptp(channel) == 0:
            assert np.array_equal(found[..., c], channel)
        else:  # toned: it follows the first
            times = picture.counted.times[0, c]
            change = alone.astype(float) - GREY
            assert (
                np.abs(found[..., c].astype(float) - channel - times * change).max() <= 1.01
            )  # rounded twice


@pytest.mark.parametrize("name", SAVED)
def test_what_is_opened_comes_back_to_the_bit(name: str) -> None:
    image = np.stack(SAVED[name][0], -1)
    picture = open_image(image, -1)
    assert np.array_equal(picture.restore(picture.noisy), image)
    assert np.abs(picture.in_units(picture.noisy) - image).max() < 1.5
    assert picture.deviations(np.ones_like(picture.noisy)).shape == image.shape


def test_colours_count_all() -> None:
    colours = data.astronaut()[:64, :64]
    assert count_channels(colours) is None
    assert count_channels(colours / 255.0) is None
    nearly = np.stack([GREY, GREY, GREY], -1)
    nearly[5, 5, 1] += 3
    assert open_image(nearly, -1).noisy.shape[-1] == 2


@pytest.mark.parametrize("method", ["denoise_nlm", "denoise_gsf", "denoise_bm3d"])
def test_all_methods_take_a_copy_for_a_copy(method: str) -> None:
    denoise = getattr(symsmooth, method)
    image = np.stack([GREY[:48, :48], NONE[:48, :48], GREY[:48, :48]], -1)
    found = denoise(image, 15.0, channel_axis=-1)
    assert np.array_equal(found[..., 0], denoise(GREY[:48, :48], 15.0))
    assert np.array_equal(found[..., 0], found[..., 2])
    assert not found[..., 1].any()


def test_missing_pixels_are_filled_in_copies_too() -> None:
    image = np.stack([GREY, NONE, GREY], -1).astype(np.float64)
    image[10:14, 10:14] = np.nan
    found = symsmooth.denoise(image, 15.0, channel_axis=-1, quality="preview")
    assert np.isfinite(found).all()
    assert not found[..., 1].any()
    assert np.array_equal(found[..., 0], found[..., 2])


def test_a_level_for_each_channel_is_that_of_those_that_count() -> None:
    image = np.stack([GREY, NONE, GREY], -1)
    found = symsmooth.denoise(image, [15.0, 1.0, 15.0], channel_axis=-1, quality="preview")
    plain = symsmooth.denoise(GREY, 15.0, quality="preview")
    assert np.abs(found[..., 0].astype(float) - plain).max() <= 1.0
