"""Half size and back."""

from __future__ import annotations

import numpy as np
import pytest

from symsmooth import _native
from symsmooth.core.multiscale import double, halve, quadruple, replace_coarse

from .. import oracles

pytestmark = pytest.mark.usefixtures("instruction_set")
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


@pytest.mark.parametrize("channels", [1, 2, 3, 5])
@pytest.mark.parametrize("extent", [(1, 9, 22), (3, 8, 7), (1, 1, 1), (2, 1, 40)], ids=str)
def test_kernels_are_their_twins(extent, channels) -> None:
    image = np.random.default_rng(0).normal(0, 1, (*extent, channels)).astype(np.float32)
    assert np.allclose(_native.halve(image), oracles.halved(image.astype(float)), atol=1e-6)
    for factor in (2, 4):
        whole = oracles.enlarged(image.astype(float), factor)
        for less in range(min(factor, factor * min(extent[1:]))):
            y, x = (factor * size - less for size in extent[1:])
            found = _native.enlarge(image, factor, y, x)
            assert np.allclose(found, whole[:, :y, :x], atol=1e-6)


def test_four_times_is_twice_and_twice_again() -> None:
    small = np.random.default_rng(0).random((7, 9, 3)).astype(np.float32)
    assert np.allclose(
        quadruple(small, (26, 36)), double(double(small, (14, 18)), (26, 36)), atol=1e-6
    )


def test_volumes_are_interpolated_along_all_axes() -> None:
    ramp = np.add.outer(3 * np.arange(8.0), np.add.outer(np.arange(20.0), 2 * np.arange(16.0)))
    ramp = ramp.astype(np.float32)[..., None]
    inside = (slice(1, -1),) * 3
    assert np.allclose(double(halve(ramp), (8, 20, 16))[inside], ramp[inside], atol=1e-5)
