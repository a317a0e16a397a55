"""Half size and back."""

from __future__ import annotations

import numpy as np
import pytest

from symsmooth.core.multiscale import double, halve, replace_coarse

SHAPES = [(8, 10, 1), (7, 9, 2), (1, 5, 1), (6, 5, 7, 1)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_constant_stays_and_shapes_return(shape) -> None:
    image = np.full(shape, 3.0, np.float32)
    small = halve(image)
    assert small.shape == (*(-(-s // 2) for s in shape[:-1]), shape[-1])
    assert np.array_equal(double(small, shape[:-1]), image)


def test_a_ramp_returns_inside() -> None:
    """Means of blocks, interpolated linearly, give a ramp back but at the border."""
    ramp = np.add.outer(np.arange(20.0), 2 * np.arange(16.0)).astype(np.float32)[..., None]
    assert np.allclose(double(halve(ramp), (20, 16))[1:-1, 1:-1], ramp[1:-1, 1:-1])


def test_white_noise_stays_white_with_half_the_spread() -> None:
    small = halve(np.random.default_rng(0).standard_normal((400, 400, 1)).astype(np.float32))
    assert abs(small.std() - 0.5) < 0.01
    assert abs(np.mean(small[1:] * small[:-1])) < 0.01


def test_nothing_is_replaced_by_what_is_there_already() -> None:
    image = np.random.default_rng(0).random((9, 12, 3)).astype(np.float32)
    assert np.array_equal(replace_coarse(image, halve(image), 1.0), image)
    assert np.array_equal(replace_coarse(image, halve(image) + 1, 0.0), image)
    assert np.allclose(replace_coarse(image, halve(image) + 1, 0.5), image + 0.5)
