"""Squares of a series are followed from frame to frame, so that clusters find what has moved."""

from __future__ import annotations

import numpy as np
import pytest
from skimage import data

import symsmooth
from symsmooth.core.blocks import SQUARE
from symsmooth.core.metrics import psnr
from symsmooth.gsfw import observation
from symsmooth.gsfw.motion import Motion, find_motion

SIGMA = 20.0


def panned(steps: list[tuple[int, int]], size: int = 96) -> np.ndarray:
    """Return a window that a camera moves over a picture by these steps."""
    scene = data.camera().astype(np.float32)
    at = np.array([200, 220]) + np.cumsum([(0, 0), *steps], axis=0)
    return np.stack([scene[y : y + size, x : x + size] for y, x in at])


def with_noise(clean: np.ndarray, sigma: float = SIGMA, seed: int = 0) -> np.ndarray:
    noise = np.random.default_rng(seed).standard_normal(clean.shape)
    return (clean + sigma * noise).astype(np.float32)


def share_moving(frames: np.ndarray, sigma: float) -> float:
    """Return the share of the squares that are taken to move."""
    return float(find_motion(frames, sigma).steps.any(axis=-1).mean())


STEPS = [(5, -3), (7, 2), (-4, 9), (0, 12), (3, 3)]


@pytest.mark.parametrize("sigma", [2.0, 10.0, 40.0])
def test_a_pan_is_found_through_noise(sigma: float) -> None:
    found = find_motion(with_noise(panned(STEPS, 160), sigma), sigma)
    places = np.cumsum([(0, 0), *STEPS], axis=0)
    middle = len(places) // 2
    inside = found.offsets[:, 2:-2, 2:-2]
    assert np.abs(np.median(inside, axis=(1, 2)) - (places - places[middle])).max() <= 1
    assert np.median(np.abs(found.steps[4][2:-2, 2:-2] - [0, 12])) <= 1  # to the frame before


@pytest.mark.parametrize("seed", range(5))
def test_noise_alone_does_not_move(seed: int) -> None:
    still = np.repeat(data.camera()[np.newaxis, 200:296, 220:316].astype(np.float32), 6, axis=0)
    assert not find_motion(with_noise(np.zeros_like(still), seed=seed), SIGMA).steps.any()
    assert share_moving(with_noise(still, seed=seed), SIGMA) < 0.02


def test_slow_motion_is_left_to_the_clusters() -> None:
    assert share_moving(with_noise(panned([(1, 1), (0, 1), (1, 0)]), 5.0), 5.0) < 0.02


def test_parts_move_in_their_own_ways() -> None:
    frames = panned([(0, 0)] * 4, 192)
    moving = panned([(0, 8)] * 4, 192)
    frames[:, 64:128, 64:128] = moving[:, 64:128, 64:128]
    found = find_motion(with_noise(frames, 5.0), 5.0).steps
    assert np.abs(found[3, 5:7, 5:7] - [0, 8]).max() <= 1
    assert not found[:, :2].any()
    assert not found[:, :, :2].any()


def test_what_stands_beside_a_pixel_is_where_it_has_moved_to() -> None:
    """Pixels of another frame at a step from each square, and at a border those nearest to it."""
    steps = np.zeros((3, 2, 2, 2), np.int32)
    steps[0, :, 1] = [2, -3]
    height, width = 2 * SQUARE + 5, 2 * SQUARE
    is_alone = np.zeros(steps.shape[:-1], bool)
    found = Motion(np.zeros(steps.shape, np.float32), steps, is_alone).beside(height, width)
    y, t, x = np.unravel_index(found, (height, 3, width))
    assert (t[:, 0] == 1).all()
    assert (t[:, 1] == 0).all()
    assert (t[:, 2] == 1).all()
    np.testing.assert_array_equal(x[:, 0, SQUARE:], np.arange(SQUARE, width) - 3 + 0 * y[:, 0, :1])
    assert y[height - 1, 0, SQUARE] == height - 1
    assert y[3, 0, SQUARE] == 5
    assert y[3, 0, 0] == 3


@pytest.mark.parametrize("sigma", [2.0, 10.0, 40.0])
def test_what_no_frame_beside_shows_is_alone(sigma: float) -> None:
    """A frame of another scene is, wholly; those beside it are not, which others show."""
    frames = panned(STEPS, 160)
    frames[2] = data.coins()[100:260, 100:260]
    found = find_motion(with_noise(frames, sigma), sigma)
    assert found.frames_alone == [2]
    assert found.share_alone(2, 165, 170).min() == 1.0
    assert not find_motion(with_noise(panned(STEPS, 160), sigma), sigma).frames_alone
    middle = np.zeros(found.is_alone.shape, bool)
    middle[1, 4:7, 4:7] = True
    share = Motion(found.offsets, found.steps, middle).share_alone(1, 160, 160)
    assert share[88, 88] > 0.95  # half a pixel from the middle of the middle square
    assert share[10, 10] == 0.0
    assert np.abs(np.diff(share, axis=0)).max() < 1 / SQUARE


@pytest.mark.parametrize("size", [1, 2, 5, 17])
def test_tiny_frames_have_no_motion_to_find(size: int) -> None:
    assert not find_motion(with_noise(np.zeros((3, size, size + 1))), SIGMA).steps.any()
    assert not find_motion(with_noise(np.zeros((1, size, size + 1))), SIGMA).offsets.any()


def test_a_pan_gains_as_a_still_scene_does(monkeypatch: pytest.MonkeyPatch) -> None:
    clean = panned(STEPS, 96)
    pixels = with_noise(clean)
    options = {"quality": "fast", "rng": 0, "time_axis": 0}
    found = symsmooth.denoise(pixels, SIGMA, **options)
    again = symsmooth.denoise(pixels, SIGMA, workers=1, **options)
    np.testing.assert_array_equal(found, again)
    alone = np.stack([symsmooth.denoise(f, SIGMA, quality="fast", rng=0) for f in pixels])
    assert psnr(found, clean, 255.0) > psnr(alone, clean, 255.0) + 0.7

    def at_rest(frames: np.ndarray, sigma: float) -> Motion:
        motion = find_motion(frames, sigma)
        return Motion(0 * motion.offsets, 0 * motion.steps, motion.is_alone)

    monkeypatch.setattr(observation, "find_motion", at_rest)
    without = symsmooth.denoise(pixels, SIGMA, **options)
    assert psnr(found, clean, 255.0) > psnr(without, clean, 255.0) + 0.3


def test_missing_pixels_move_with_their_frames() -> None:
    clean = panned(STEPS, 64)
    pixels = with_noise(clean)
    mask = np.zeros(pixels.shape, bool)
    mask[2, 20:26, 30:36] = True
    pixels[mask] = np.nan
    found = symsmooth.denoise(pixels, SIGMA, time_axis=0, quality="fast", rng=0)
    assert np.isfinite(found).all()
    assert np.sqrt(np.mean((found - clean)[mask] ** 2)) < SIGMA
