"""A series of frames is denoised as one: time is a position."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import scipy.ndimage
from skimage import data

import symsmooth
from symsmooth.core import blocks
from symsmooth.core.metrics import psnr
from symsmooth.gsfw.series import BLOCK, HALO, Change, denoise_in_blocks

SIGMA = 20.0
OPTIONS = {"quality": "fast", "rng": 0}


def still(count: int, size: int = 72) -> np.ndarray:
    scene = data.camera()[100 : 100 + size, 150 : 150 + size].astype(np.float32)
    return np.repeat(scene[np.newaxis], count, axis=0)


def moving(count: int, size: int = 72, speed: float = 1.3) -> np.ndarray:
    """Return a picture that moves over the frames, by parts of a pixel too."""
    scene = data.camera()[60:260, 60:300].astype(np.float32)
    frames = [
        scipy.ndimage.shift(scene, (speed * t, -0.7 * speed * t), order=3, mode="nearest")
        for t in range(count)
    ]
    return np.stack([frame[60 : 60 + size, 60 : 60 + size] for frame in frames])


def noisy(clean: np.ndarray, sigma: float = SIGMA) -> np.ndarray:
    noise = np.random.default_rng(0).standard_normal(clean.shape)
    return (clean + sigma * noise).astype(np.float32)


def frame_by_frame(pixels: np.ndarray, **options) -> np.ndarray:
    return np.stack([symsmooth.denoise(frame, **options) for frame in pixels])


def test_frames_of_a_still_scene_help_each_other() -> None:
    clean = still(9)
    pixels = noisy(clean)
    found = symsmooth.denoise(pixels, SIGMA, time_axis=0, **OPTIONS)
    mean_alone = symsmooth.denoise(pixels.mean(axis=0), SIGMA / 3, **OPTIONS)
    assert psnr(found, clean, 255.0) > psnr(mean_alone, clean[0], 255.0) - 0.5
    alone = frame_by_frame(pixels[:1], sigma=SIGMA, **OPTIONS)
    assert psnr(found, clean, 255.0) > psnr(alone, clean[:1], 255.0) + 2.5
    assert found.std(axis=0).mean() < 0.1 * SIGMA  # what is still stays still


@pytest.mark.parametrize("speed", [0.5, 1.3, 6.0])
def test_no_frame_of_a_moving_scene_is_worse_than_alone(speed: float) -> None:
    clean = moving(7, speed=speed)
    pixels = noisy(clean)
    found = symsmooth.denoise(pixels, SIGMA, time_axis=0, **OPTIONS)
    alone = frame_by_frame(pixels, sigma=SIGMA, **OPTIONS)
    gains = [
        psnr(a, c, 255.0) - psnr(b, c, 255.0) for a, b, c in zip(found, alone, clean, strict=True)
    ]
    assert np.mean(gains) > (0.5 if speed < 5 else -0.05)
    assert min(gains) > -0.1


def test_frames_one_by_one_have_the_bits_of_the_array() -> None:
    pixels = np.clip(np.rint(noisy(moving(2 * BLOCK + 5, 40))), 0, 255).astype(np.uint8)
    whole = symsmooth.denoise(pixels, time_axis=0, workers=2, **OPTIONS)
    one_by_one = np.stack(list(symsmooth.denoise_frames(iter(pixels), workers=1, **OPTIONS)))
    assert whole.dtype == np.uint8
    np.testing.assert_array_equal(whole, one_by_one)


@pytest.mark.parametrize(("time", "channels"), [(0, -1), (0, 1), (2, 0), (-1, 0), (1, 3)])
def test_axes_may_lie_anywhere(time: int, channels: int) -> None:
    clean = np.stack([moving(4, 40), moving(4, 40) / 2, 255 - moving(4, 40)], axis=-1)
    pixels = noisy(clean)
    found = symsmooth.denoise(pixels, SIGMA, time_axis=0, channel_axis=-1, **OPTIONS)
    n_dims = pixels.ndim
    order = [axis for axis in range(n_dims) if axis not in (time % n_dims, channels % n_dims)]
    target = [0] * n_dims
    target[time % n_dims], target[channels % n_dims] = 0, 3
    for axis, source in zip(order, (1, 2), strict=True):
        target[axis] = source
    moved = np.transpose(pixels, target)
    again = symsmooth.denoise(moved, SIGMA, time_axis=time, channel_axis=channels, **OPTIONS)
    np.testing.assert_array_equal(again, np.transpose(found, target))


def test_one_frame_is_a_picture() -> None:
    pixels = noisy(still(1))
    found = symsmooth.denoise(pixels, SIGMA, time_axis=0, **OPTIONS)
    alone = symsmooth.denoise(
        pixels[0], SIGMA, quality="fast", rng=np.random.default_rng(0).spawn(1)[0]
    )
    np.testing.assert_array_equal(found[0], alone)


def test_what_is_missing_is_filled_from_other_frames_and_what_is_constant_stays() -> None:
    clean = still(5, 48)
    pixels = noisy(clean)
    pixels[2, 10:16, 20:26] = np.nan
    found = symsmooth.denoise(pixels, SIGMA, time_axis=0, **OPTIONS)
    assert np.isfinite(found).all()
    error = found[2, 10:16, 20:26] - clean[2, 10:16, 20:26]
    assert np.sqrt(np.mean(error**2)) < SIGMA
    constant = np.full((6, 40, 40), 7, np.uint16)
    np.testing.assert_array_equal(symsmooth.denoise(constant, time_axis=0), constant)


def test_the_level_is_found_and_the_result_says_so() -> None:
    result = symsmooth.fit_denoise(noisy(moving(6, 96)), time_axis=0, **OPTIONS)
    assert result.noise.sigma == pytest.approx(SIGMA, rel=0.1)
    assert result.std.shape == result.image.shape
    error = np.sqrt(np.mean((result.image - moving(6, 96)) ** 2))
    assert 0.4 * error < np.sqrt(np.mean(result.std**2)) < 2.0 * error


def test_little_is_read_ahead() -> None:
    read = 0

    def camera() -> Iterator[np.ndarray]:
        nonlocal read
        for frame in noisy(still(60, 24)):
            read += 1
            yield frame

    ahead = [
        read - number
        for number, _ in enumerate(symsmooth.denoise_frames(camera(), SIGMA, quality="preview"))
    ]
    assert len(ahead) == 60
    assert max(ahead) <= 2 * BLOCK + HALO


@pytest.mark.parametrize("count", [1, 2, 5, BLOCK, 2 * BLOCK - 1, 2 * BLOCK, 5 * BLOCK + 3])
def test_blocks_give_every_frame_once_and_fade_into_each_other(count: int) -> None:
    """A block changes all its frames by its number: changes rise by at most a third of that a frame."""

    def work(frames, number):
        assert len(frames) <= 2 * BLOCK - 1 + 2 * HALO
        return [Change(frame, np.float64(number), np.float64(0)) for frame in frames]

    found = list(denoise_in_blocks(range(count), work))
    assert [each.pixels for each in found] == list(range(count))
    changes = np.array([float(each.change) for each in found])
    assert (np.diff(changes) >= 0).all()
    assert np.diff(changes, prepend=0).max() <= 1 / HALO


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"time_axis": 3}, "time_axis must lie between -3 and 2"),
        ({"time_axis": True}, "time_axis must be a whole number"),
        ({"time_axis": 0, "channel_axis": 0}, "both 0"),
        ({"time_axis": 0, "tone": "srgb"}, "is for single pictures"),
    ],
)
def test_what_cannot_be_a_series_is_refused(options, words) -> None:
    with pytest.raises((ValueError, TypeError), match=words):
        symsmooth.denoise(np.zeros((4, 9, 9)), 1.0, **options)


def test_a_map_of_levels_is_no_level_of_a_series() -> None:
    with pytest.raises(ValueError, match="not a map"):
        symsmooth.denoise(np.zeros((4, 9, 9)), np.ones((4, 9, 9)), time_axis=0)


def test_volumes_are_no_frames() -> None:
    with pytest.raises(ValueError, match="must be 2-D, or 3-D for a volume"):
        symsmooth.denoise(np.zeros((2, 3, 9, 9)), 1.0, time_axis=0, channel_axis=None)


def test_frames_have_one_shape_and_one_dtype() -> None:
    with pytest.raises(ValueError, match="frame 1 has shape"):
        list(symsmooth.denoise_frames([np.eye(9), np.eye(8)], 1.0))
    with pytest.raises(ValueError, match="frame 1 has dtype"):
        list(symsmooth.denoise_frames([np.eye(9), np.eye(9, dtype=np.float32)], 1.0))


def test_black_and_grey_frames_in_a_film_of_colours() -> None:
    """A film fades to black, and an old scene is grey: no block of frames breaks what is around it."""
    rng = np.random.default_rng(3)
    scene = data.astronaut()[100:140, 100:148].astype(np.float32)
    colour = np.repeat(scene[np.newaxis], BLOCK, axis=0) + rng.normal(0, 15, (BLOCK, 40, 48, 3))
    grey = scene.mean(axis=-1, keepdims=True) + rng.normal(0, 15, (BLOCK, 40, 48, 1))
    black = np.zeros((2 * BLOCK + 2 * HALO, 40, 48, 3))
    film = np.concatenate([colour, black, np.repeat(grey, 3, axis=-1), colour])
    for options in ({}, {"sigma": 15.0}):
        found = np.stack(
            list(symsmooth.denoise_frames(film, channel_axis=-1, quality="preview", **options))
        )
        np.testing.assert_array_equal(found[BLOCK + HALO : -2 * BLOCK - HALO], 0.0)
        assert psnr(found[:BLOCK], scene, 255.0) > psnr(film[:BLOCK], scene, 255.0) + 3
        assert psnr(found[-BLOCK:], scene, 255.0) > psnr(film[-BLOCK:], scene, 255.0) + 3


def test_noise_that_grows_over_the_series_is_followed() -> None:
    """A camera that raises its gain as it gets dark: each block has the noise that it shows."""
    clean = moving(4 * BLOCK, size=64, speed=0.3)
    level = np.repeat([6.0, 24.0], 2 * BLOCK)[:, np.newaxis, np.newaxis]
    pixels = clean + level * np.random.default_rng(5).standard_normal(clean.shape)
    found = symsmooth.denoise(pixels, time_axis=0, quality="preview", rng=0)
    for part, sigma in ((slice(0, BLOCK), 6.0), (slice(3 * BLOCK, None), 24.0)):
        known = symsmooth.denoise(pixels[part], sigma, time_axis=0, quality="preview", rng=0)
        assert psnr(found[part], clean[part], 255.0) > psnr(known, clean[part], 255.0) - 1


def test_large_frames_are_denoised_in_parts_that_leave_no_seam(monkeypatch) -> None:
    """Memory is bounded: frames are cut in space too, and nobody sees where."""
    clean = moving(6, size=96)
    pixels = noisy(clean)
    whole = symsmooth.denoise(pixels, SIGMA, time_axis=0, **OPTIONS)
    monkeypatch.setattr(blocks, "SERIES_PIXELS", 6 * 48 * 48)
    cut = symsmooth.denoise(pixels, SIGMA, time_axis=0, **OPTIONS)
    assert np.abs(cut - whole).max() > 0
    assert psnr(cut, clean, 255.0) > psnr(whole, clean, 255.0) - 0.1
    steps = [np.abs(np.diff(found - clean, axis=2))[:, :, 47].mean() for found in (cut, whole)]
    assert steps[0] < 1.1 * steps[1]
    np.testing.assert_array_equal(
        cut, np.stack(list(symsmooth.denoise_frames(pixels, SIGMA, **OPTIONS)))
    )


@pytest.mark.parametrize("dtype", [np.uint8, np.float64])
def test_large_frames_keep_masks_constants_and_lose_specks(monkeypatch, dtype) -> None:
    clean = moving(5, size=96)
    pixels = np.clip(np.rint(noisy(clean, 8.0)), 1, 254)
    rng = np.random.default_rng(2)
    dirty = rng.random(pixels.shape) < 0.01
    pixels[dirty] = rng.choice([0.0, 255.0], dirty.sum())
    pixels[:, :20, :20] = 60.0
    mask = np.zeros(pixels.shape, bool)
    mask[2:4, 40:60, 40:60] = True
    spoiled = np.where(mask, 255.0, pixels).astype(dtype)
    whole = symsmooth.denoise(spoiled, 8.0, time_axis=0, mask=mask, **OPTIONS)
    monkeypatch.setattr(blocks, "SERIES_PIXELS", 5 * 48 * 48)
    result = symsmooth.fit_denoise(pixels.astype(dtype), time_axis=0, **OPTIONS)
    found = np.asarray(result.image, float)
    np.testing.assert_array_equal(found[:, :20, :20], 60.0)
    assert result.n_specks > 0.5 * dirty.sum()
    elsewhere = np.ones(clean.shape, bool)
    elsewhere[:, :24, :24] = False
    assert np.abs(found - clean)[dirty & elsewhere].mean() < 10
    filled = symsmooth.denoise(spoiled, 8.0, time_axis=0, mask=mask, **OPTIONS)
    error = [psnr(np.asarray(each, float)[mask], clean[mask], 255.0) for each in (filled, whole)]
    assert error[0] > error[1] - 0.5
