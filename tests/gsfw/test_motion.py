"""Frames of a series are aligned by the motion that most of them share, in whole pixels."""

from __future__ import annotations

import numpy as np
import pytest
from skimage import data

import symsmooth
from symsmooth.core.metrics import psnr
from symsmooth.gsfw import stages
from symsmooth.gsfw.motion import align, find_motion, undo_alignment

SIGMA = 20.0


def panned(steps: list[tuple[int, int]], size: int = 96) -> np.ndarray:
    """Return a window that a camera moves over a picture by these steps."""
    scene = data.camera().astype(np.float32)
    at = np.array([200, 220]) + np.cumsum([(0, 0), *steps], axis=0)
    return np.stack([scene[y : y + size, x : x + size] for y, x in at])


def with_noise(clean: np.ndarray, sigma: float = SIGMA, seed: int = 0) -> np.ndarray:
    noise = np.random.default_rng(seed).standard_normal(clean.shape)
    return (clean + sigma * noise).astype(np.float32)


STEPS = [(5, -3), (7, 2), (-4, 9), (0, 12), (3, 3)]


@pytest.mark.parametrize("sigma", [2.0, 10.0, 40.0])
def test_a_pan_is_found_through_noise(sigma: float) -> None:
    found = find_motion(with_noise(panned(STEPS), sigma), sigma)
    expected = -np.cumsum([(0, 0), *STEPS], axis=0)
    assert np.abs(found - expected).max() <= 1


@pytest.mark.parametrize("seed", range(5))
def test_noise_alone_does_not_move(seed: int) -> None:
    still = np.repeat(data.camera()[np.newaxis, 200:296, 220:316].astype(np.float32), 6, axis=0)
    for clean in (np.zeros_like(still), still):
        assert not find_motion(with_noise(clean, seed=seed), SIGMA).any()


def test_slow_motion_is_left_to_the_clusters() -> None:
    assert not find_motion(with_noise(panned([(1, 1), (0, 1), (1, 0)]), 5.0), 5.0).any()


def test_most_of_the_picture_decides() -> None:
    frames = panned([(0, 0)] * 4)
    moving = panned([(0, 8)] * 4)
    frames[:, 30:60, 30:60] = moving[:, 30:60, 30:60]
    assert not find_motion(with_noise(frames), SIGMA).any()
    moving[:, 30:60, 30:60] = frames[:1, 30:60, 30:60]
    found = find_motion(with_noise(moving), SIGMA)
    np.testing.assert_array_equal(np.diff(found, axis=0), [[0, -8]] * 4)


def test_alignment_is_undone_to_the_bit() -> None:
    frames = with_noise(panned(STEPS))
    motion = np.cumsum([(0, 0), *STEPS], axis=0) * 100  # many times around
    aligned = align(frames, motion)
    np.testing.assert_array_equal(undo_alignment(aligned, motion), frames)
    still = align(panned(STEPS), -np.cumsum([(0, 0), *STEPS], axis=0))
    assert np.ptp(still[:, 30:60, 36:60], axis=0).max() == 0  # what all frames have stands still


def test_where_the_rolled_frame_ended_no_line_is_seen() -> None:
    """Estimates that change by 10 from one end of the aligned frame to the other change slowly."""
    motion = np.array([[0, 0], [0, -20]])
    estimate = align(np.zeros((2, 40, 48), np.float32), motion)
    estimate += np.linspace(0, 10, estimate.shape[2], dtype=np.float32)
    found = undo_alignment(estimate, motion)
    assert np.abs(np.diff(found, axis=2)).max() < 1.2


@pytest.mark.parametrize("size", [1, 2, 5, 17])
def test_tiny_frames_have_no_motion_to_find(size: int) -> None:
    assert not find_motion(with_noise(np.zeros((3, size, size + 1))), SIGMA).any()


def test_a_pan_gains_as_a_still_scene_does(monkeypatch: pytest.MonkeyPatch) -> None:
    clean = panned(STEPS, 80)
    pixels = with_noise(clean)
    options = {"quality": "fast", "rng": 0, "time_axis": 0}
    found = symsmooth.denoise(pixels, SIGMA, **options)
    again = symsmooth.denoise(pixels, SIGMA, workers=1, **options)
    np.testing.assert_array_equal(found, again)
    alone = np.stack([symsmooth.denoise(f, SIGMA, quality="fast", rng=0) for f in pixels])
    assert psnr(found, clean, 255.0) > psnr(alone, clean, 255.0) + 0.7
    monkeypatch.setattr(stages, "find_motion", lambda frames, _: np.zeros((len(frames), 2), int))
    without = symsmooth.denoise(pixels, SIGMA, **options)
    assert psnr(found, clean, 255.0) > psnr(without, clean, 255.0) + 0.3
    rims = [np.square(each - clean)[:, :6].mean() for each in (found, without)]
    assert rims[0] < 1.05 * rims[1]  # what was rolled past a border leaves no trace there


def test_missing_pixels_move_with_their_frames() -> None:
    clean = panned(STEPS, 64)
    pixels = with_noise(clean)
    mask = np.zeros(pixels.shape, bool)
    mask[2, 20:26, 30:36] = True
    pixels[mask] = np.nan
    found = symsmooth.denoise(pixels, SIGMA, time_axis=0, quality="fast", rng=0)
    assert np.isfinite(found).all()
    assert np.sqrt(np.mean((found - clean)[mask] ** 2)) < SIGMA
