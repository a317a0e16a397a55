"""What was removed: noise and nothing else?"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.ndimage
from skimage import data

import symsmooth
from symsmooth.noise import PoissonGaussian, White
from symsmooth.noise.check import check_removed

SCENE = data.camera()[:256, 100:356].astype(np.float32)[..., np.newaxis]


def noisy_scene(sigma: float) -> np.ndarray:
    noise = np.random.default_rng(0).standard_normal(SCENE.shape)
    return (SCENE + sigma * noise).astype(np.float32)


@pytest.mark.parametrize("sigma", [5.0, 15.0, 30.0])
def test_noise_alone_has_no_outlines_and_a_blur_has(sigma) -> None:
    noisy = noisy_scene(sigma)
    ours = symsmooth.denoise(noisy[..., 0], sigma, quality="fast")[..., np.newaxis]
    blurred = scipy.ndimage.gaussian_filter(noisy, (1.0, 1.0, 0.0))
    right, wrong, exact = (
        check_removed(noisy, each, White(sigma)) for each in (ours, blurred, SCENE)
    )
    assert right.outlines < 0.03
    assert wrong.outlines > 0.15
    assert exact.outlines < 0.03
    assert str(right) == str(exact) == "what was removed looks like noise"
    assert "outlines" in str(wrong)


def test_what_is_left_is_a_share_of_the_noise() -> None:
    noisy = noisy_scene(20.0)
    for share in (0.2, 0.8):
        found = check_removed(noisy, SCENE + np.float32(share) * (noisy - SCENE), White(20.0))
        assert found.left == pytest.approx(share, abs=0.08)
        assert found.fine == pytest.approx(20.0, rel=0.15)
    assert "is left" in str(found)


def test_rounding_is_no_noise_that_is_left() -> None:
    noisy = noisy_scene(1.5)
    noisy, clean = np.rint(noisy), np.rint(scipy.ndimage.gaussian_filter(SCENE, (2.0, 2.0, 0.0)))
    plain, fair = (check_removed(noisy, clean, White(1.5), step) for step in (0.0, 1.0))
    assert fair.left < 0.6 * plain.left


def test_noise_that_grows_is_looked_at_where_it_is_even() -> None:
    """Bright outlines have more photon noise; that is no outline of the picture."""
    counts = np.random.default_rng(0).poisson(SCENE / 4.0).astype(np.float32)
    found = check_removed(counts, SCENE / 4, PoissonGaussian((1.0,), (0.0,)))
    assert found.outlines < 0.03


def test_nothing_removed_is_nothing_to_look_at() -> None:
    noisy = noisy_scene(5.0)
    assert check_removed(noisy, noisy, White(5.0)) is None
    assert check_removed(noisy[:10, :10], SCENE[:10, :10], White(5.0)) is None
