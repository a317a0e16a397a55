"""The spectrum of noise: what a kernel multiplies, and what filtering by its root means."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.ndimage

from symsmooth import _native
from symsmooth.noise.evidence import SIDE
from symsmooth.noise.spectrum import filter_by_root, sample_energies
from tests import oracles


@pytest.mark.usefixtures("instruction_set")
@pytest.mark.parametrize("shape", [(1, 1), (3, 7), (8, 8), (5, 33)])
@pytest.mark.parametrize("is_divided", [False, True])
def test_the_kernel_is_its_twin(shape: tuple[int, int], is_divided: bool) -> None:
    rng = np.random.default_rng(0)
    height, width = shape
    transform, rows, columns = (
        rng.normal(size=own).astype(np.float32) for own in (shape, (height, 4), (4, width))
    )
    wanted = oracles.scaled_by_root(transform, rows, columns, 0.5, is_divided)
    _native.scale_by_root(transform, rows, columns, 0.5, is_divided)
    assert np.allclose(transform, wanted, rtol=2e-5, atol=1e-6)


def coarse(shape: tuple[int, ...]) -> np.ndarray:
    """Noise whose neighbours are alike."""
    white = np.random.default_rng(1).normal(size=shape)
    return scipy.ndimage.gaussian_filter(white, 0.6, axes=(0, 1)).astype(np.float32)


def test_divided_by_the_root_of_its_spectrum_noise_is_white() -> None:
    noise = coarse((256, 256, 1))
    before = sample_energies(noise)
    after = sample_energies(filter_by_root(noise, before, inverse=True))
    assert (
        before.max() / before.min() > 40
    )  # and a tenth of the mean is the least that is divided by
    assert after.max() / after.min() < 2
    assert after.mean() == pytest.approx(1.0, rel=0.15)


@pytest.mark.parametrize("shape", [(40, 33, 2), (3, 24, 31, 1)])
def test_multiplying_undoes_dividing(shape: tuple[int, ...]) -> None:
    """And the pixels that were given stay as they are, however they lie in memory."""
    pixels = coarse(shape)
    kept = pixels.copy()
    energies = np.random.default_rng(2).uniform(0.2, 2.0, (shape[-1], SIDE, SIDE))
    there = filter_by_root(pixels, energies, inverse=True)
    back = filter_by_root(there, energies, inverse=False)
    assert np.abs(back - pixels).max() < 1e-5
    assert np.array_equal(pixels, kept)
