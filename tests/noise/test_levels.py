"""Levels of noise against brightness: what is bent by them comes back without bias."""

from __future__ import annotations

import numpy as np
import pytest

from symsmooth.noise.levels import Curve


@pytest.mark.parametrize("mean", [3.0, 30.0, 5e3, 9.9e3, 1.1e4, 1e6, 1e9])
def test_photons_are_bent_and_bent_back_without_bias(mean: float) -> None:
    """From a few counts to far more than any exact law is searched for, and where the two meet."""
    brightness = np.concatenate([[0.0], np.geomspace(0.1, 3 * mean + 20, 400)])
    curve = Curve(
        brightness[np.newaxis],
        np.sqrt(np.maximum(brightness, mean / 25))[np.newaxis],
        np.array([[0.0, 3 * mean + 20]]),
    )
    rng = np.random.default_rng(0)
    noisy = rng.poisson(mean, (40_000, 1)).astype(np.float64)
    bent = curve.stabilise(noisy)
    assert bent.std() == pytest.approx(1.0, abs=0.12)
    back = float(curve.undo(bent.astype(np.float64).mean(axis=0, keepdims=True))[0, 0])
    resolution = 2e-7 * float(bent.mean()) * np.sqrt(mean) * 2  # of float32
    assert back == pytest.approx(mean, abs=0.05 * np.sqrt(mean) + resolution)


def test_a_level_without_a_darkest_pixel_is_undone_too() -> None:
    """A calibrated camera knows no least pixel: noise is symmetric there, and nothing is infinite."""
    x = np.linspace(0.0, 200.0, 50)
    curve = Curve(x[np.newaxis], (3 + 0.05 * x)[np.newaxis], np.array([[-np.inf, np.inf]]))
    rng = np.random.default_rng(0)
    for mean in (20.0, 150.0):
        noisy = mean + (3 + 0.05 * mean) * rng.standard_normal((40_000, 1))
        back = float(curve.undo(curve.stabilise(noisy).mean(axis=0, keepdims=True))[0, 0])
        assert back == pytest.approx(mean, abs=0.3)
