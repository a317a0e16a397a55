"""Channels that are mixed with each other."""

from __future__ import annotations

import numpy as np
import pytest

from symsmooth import _native
from symsmooth.core.channels import mix, transform_for
from tests import oracles

pytestmark = pytest.mark.usefixtures("instruction_set")


def pixels(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("n", [1, 7, 512, 1300])
@pytest.mark.parametrize("channels", [1, 2, 3, 5])
@pytest.mark.parametrize("is_planar", [False, True])
def test_the_kernel_is_its_twin(n: int, channels: int, is_planar: bool) -> None:
    own = pixels(channels, n) if is_planar else pixels(n, channels)
    transform = pixels(channels, channels)
    found = np.empty((channels, n), np.float32)
    _native.mix_channels(own, transform, is_planar, found)
    assert np.allclose(found, oracles.mixed_channels(own, transform, is_planar), atol=1e-5)


@pytest.mark.parametrize("shape", [(9, 11, 3), (4, 9, 11, 3), (9, 11, 4)])
def test_pixels_are_mixed_alike_however_they_lie_in_memory(shape: tuple[int, ...]) -> None:
    """Pixel by pixel, as planes, and as a part of planes: the same bits."""
    together = pixels(*shape)
    planes = np.moveaxis(np.ascontiguousarray(np.moveaxis(together, -1, 0)), 0, -1)
    wide = np.pad(planes, [(1, 2)] * (len(shape) - 1) + [(0, 0)])
    part = wide[(slice(1, -2),) * (len(shape) - 1)]
    transform = pixels(shape[-1], shape[-1])
    found = [mix(each, transform) for each in (together, planes, part)]
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])
    assert np.allclose(found[0], together @ transform, atol=1e-5)


def test_mixing_with_a_transform_and_its_transpose_changes_nothing() -> None:
    own, transform = pixels(20, 30, 3), transform_for(3, None, 1.0)
    assert np.allclose(mix(mix(own, transform), transform.T), own, atol=1e-6)
