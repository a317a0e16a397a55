"""A picture between the noisy one and the denoised one."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from symsmooth.core.blend import blend

rng = np.random.default_rng(0)
DTYPES = ["uint8", "int16", "uint16", "int64", "uint64", "float16", "float32", "float64"]


def pair(dtype: str) -> tuple[np.ndarray, np.ndarray]:
    shape = (6, 7, 3)
    if np.dtype(dtype).kind == "f":
        return rng.normal(0, 9, shape).astype(dtype), rng.normal(0, 9, shape).astype(dtype)
    limits = np.iinfo(dtype)
    noisy = rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    return noisy, rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("colour", [None, "same"])
def test_the_ends_are_the_pictures_themselves(dtype, colour) -> None:
    noisy, denoised = pair(dtype)
    for strength, expected in ((0.0, noisy), (1.0, denoised)):
        given = strength if colour else None
        made = blend(noisy, denoised, strength, given, -1)
        assert made.dtype == expected.dtype
        np.testing.assert_array_equal(made, expected)
        assert not np.shares_memory(made, expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_pixels_move_from_one_to_the_other_and_never_back(dtype) -> None:
    noisy, denoised = pair(dtype)
    steps = [blend(noisy, denoised, s).astype(object) for s in np.linspace(0, 1, 11)]
    up = denoised.astype(object) >= noisy.astype(object)
    for before, after in itertools.pairwise(steps):
        assert np.where(up, after >= before, after <= before).all()


def test_brightness_and_colour_are_apart() -> None:
    noisy, denoised = pair("float64")
    only_bright, only_colour = (
        blend(noisy, denoised, *each, -1) for each in ((1.0, 0.0), (0.0, 1.0))
    )
    np.testing.assert_allclose(only_bright.mean(-1), denoised.mean(-1))
    np.testing.assert_allclose(only_colour.mean(-1), noisy.mean(-1))
    np.testing.assert_allclose(only_bright + only_colour, noisy + denoised)
    first = np.moveaxis(noisy, -1, 0), np.moveaxis(denoised, -1, 0)
    np.testing.assert_allclose(
        np.moveaxis(blend(*first, 0.3, 0.8, 0), 0, -1), blend(noisy, denoised, 0.3, 0.8, -1)
    )


def test_colour_apart_stays_within_the_dtype() -> None:
    noisy = np.array([[[255, 255, 0]]], np.uint8)
    denoised = np.array([[[255, 0, 255]]], np.uint8)
    assert blend(noisy, denoised, 0.0, 1.0, -1).tolist() == [[[255, 0, 255]]]
    assert blend(noisy, denoised, 1.0, 0.5, -1).tolist() == [[[255, 128, 128]]]


def test_pixels_that_nothing_was_done_to_keep_all_their_64_bits() -> None:
    noisy = np.array([2**63 - 1, 2**62 + 1, 5])
    denoised = noisy - np.array([0, 0, 4])
    assert blend(noisy, denoised, 0.5).tolist() == [2**63 - 1, 2**62 + 1, 3]


def test_missing_pixels_are_those_of_the_result() -> None:
    noisy = np.array([np.nan, 1.0, np.inf, 2.0], np.float32)
    denoised = np.array([7.0, np.nan, np.inf, 4.0], np.float32)
    np.testing.assert_array_equal(blend(noisy, denoised, 0.5), [7.0, np.nan, np.inf, 3.0])
    np.testing.assert_array_equal(blend(noisy, denoised, 0.0), noisy)
