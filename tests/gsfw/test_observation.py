"""What GSF-W is given, and what becomes of its noise."""

from __future__ import annotations

import numpy as np
import pytest

from symsmooth.core.channels import decorrelate
from symsmooth.gsfw.observation import Observation

SIGMA = 0.2


def observe(shape: tuple[int, ...], channels: int = 1, missing: float = 0.0) -> Observation:
    """Nothing but noise, of which some pixels are missing."""
    rng = np.random.default_rng(0)
    pixels = rng.normal(0, SIGMA, (*shape, channels)).astype(np.float32)
    observed = (rng.random(shape) >= missing).astype(np.float32) if missing else None
    return Observation(pixels, observed, SIGMA, 1.0)


@pytest.mark.parametrize("shape", [(200, 201), (40, 40, 41)])
def test_the_noise_at_half_size_is_what_it_says(shape) -> None:
    half = observe(shape).halved()
    assert half.spatial == tuple(-(-size // 2) for size in shape)
    assert half.sigma == pytest.approx(SIGMA / 2 ** (len(shape) / 2))
    assert half.pixels[..., :-1, :].std() == pytest.approx(half.sigma, rel=0.03)


def test_at_half_size_a_pixel_is_observed_in_part() -> None:
    seen = observe((64, 64), missing=0.3)
    share = seen.halved().observed
    assert share.shape == (32, 32)
    assert set(np.unique(share)) <= {0.0, 0.25, 0.5, 0.75, 1.0}
    assert share.mean() == pytest.approx(seen.observed.mean())


@pytest.mark.parametrize("share", [0.5, 0.6])
def test_feedback_leaves_a_share_of_the_noise(share) -> None:
    seen = observe((100, 100))
    again = seen.fed_back(np.zeros_like(seen.pixels), share)
    assert again.sigma == share * SIGMA
    assert again.pixels.std() == pytest.approx(again.sigma, rel=0.02)


def test_mixed_channels_keep_the_noise() -> None:
    seen = observe((80, 80), channels=3)
    mixed = seen.mixed(decorrelate(seen.pixels, SIGMA))
    assert np.allclose(mixed.pixels.std(axis=(0, 1)), SIGMA, rtol=0.03)
    assert mixed.sigma == SIGMA


def test_parts_and_margins_belong_together() -> None:
    seen = observe((20, 30), channels=2, missing=0.1)
    box = (slice(3, 12), slice(5, 25))
    part = seen.part(box)
    assert np.array_equal(part.pixels, seen.pixels[3:12, 5:25])
    assert np.array_equal(part.observed, seen.observed[3:12, 5:25])
    padded = part.padded([(2, 1), (0, 4)])
    assert padded.spatial == (12, 24)
    assert np.array_equal(padded.pixels[2:-1, :20], part.pixels)
    assert np.array_equal(padded.pixels[1], padded.pixels[2])
    assert np.array_equal(padded.observed[:, 20], padded.observed[:, 19])
    assert observe((9, 9)).padded([(1, 1), (1, 1)]).observed is None


@pytest.mark.parametrize("patch_size", [3, 4, 7])
def test_a_patch_weighs_as_much_as_was_observed_of_it(patch_size) -> None:
    seen = observe((20, 23), missing=0.3)
    windows = np.lib.stride_tricks.sliding_window_view(seen.observed, (patch_size, patch_size))
    weights = seen.patch_weights((patch_size, patch_size))
    assert np.allclose(weights, windows.mean(axis=(2, 3)), atol=1e-5)
    assert observe((20, 23)).patch_weights((patch_size, patch_size)) is None
