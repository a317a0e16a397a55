"""What regions show: numbers without units, of pixels that can show noise."""

from __future__ import annotations

import numpy as np
import pytest
from skimage import data

from symsmooth.noise import evidence
from symsmooth.noise.estimator import estimate

SCENE = data.astronaut()[100:292, 100:292].astype(np.float32)
NOISY = SCENE + np.random.default_rng(0).normal(0.0, 10.0, SCENE.shape).astype(np.float32)


def measure(pixels: np.ndarray, valid: np.ndarray | None = None, step: float = 0.0):
    return evidence.measure([pixels], [valid], step)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(("times", "plus"), [(1e-3, 0.0), (1e3, 0.0), (3.0, 500.0)])
def test_numbers_have_no_units(channels: int, times: float, plus: float) -> None:
    pixels = NOISY[..., :channels]
    first, second = measure(pixels), measure(np.float32(times) * pixels + np.float32(plus))
    assert np.allclose(first.features, second.features, atol=0.02)
    assert np.allclose(first.wide, second.wide, atol=0.02)
    assert second.reference == pytest.approx(times**2 * first.reference, rel=1e-3)
    assert first.features.shape[1] == evidence.N_FEATURES
    assert len(first.wide) == evidence.N_WIDE


def test_energies_are_those_of_the_noise() -> None:
    noise = np.random.default_rng(1).normal(0.0, 7.0, (256, 256, 3)).astype(np.float32)
    assert evidence.energies(noise).mean() == pytest.approx(49.0, rel=0.02)
    found = measure(100 + noise)
    assert found.energy.mean() * found.reference == pytest.approx(49.0, rel=0.02)
    floors = 2.0 ** found.wide[-9:].reshape(3, 3) * found.reference
    assert np.allclose(floors[0], 49.0, rtol=0.05)  # flat patches: unbiased
    assert (floors[1:] < 49.0).all()  # the least eigenvalues are below their mean
    assert np.allclose(2.0**found.local * found.reference, 49.0, rtol=0.2)


def test_rings_hold_all_frequencies_but_zero() -> None:
    assert pytest.approx(1.0) == evidence.PER_RING.sum()
    assert (evidence.RING >= 0).sum() == 63
    assert np.allclose(evidence.OPPONENT.T @ evidence.OPPONENT, np.eye(3), atol=1e-6)


@pytest.mark.parametrize("ground", [0.0, 255.0, 120.0])
def test_constant_parts_are_no_evidence(ground: float) -> None:
    masked = NOISY.copy()
    masked[:, 96:] = ground
    found, half = measure(masked), measure(NOISY[:, :96])
    assert len(found) < 1.2 * len(half) + 30  # and those that reach over the border
    level, true = (np.sqrt(estimate(each).energy.mean()) for each in (found, half))
    assert level == pytest.approx(true, rel=0.1)


def test_missing_pixels_are_no_evidence() -> None:
    valid = np.ones(NOISY.shape[:2], bool)
    valid[:, 96:] = False
    filled = np.where(valid[..., None], NOISY, 90.0).astype(np.float32)
    found = measure(filled, valid)
    assert 0 < len(found) < 0.6 * len(measure(NOISY))


def test_a_constant_picture_shows_nothing() -> None:
    assert measure(np.full((64, 64, 1), 7.0, np.float32)) is None
    assert measure(np.zeros((64, 64, 3), np.float32)) is None


def test_parts_of_a_picture_are_seen_together() -> None:
    halves = [NOISY[:96], NOISY[96:]]
    together = evidence.measure(halves, [None, None], 0.0)
    whole = measure(NOISY)
    assert np.sqrt(estimate(together).energy.mean()) == pytest.approx(
        np.sqrt(estimate(whole).energy.mean()), rel=0.05
    )
