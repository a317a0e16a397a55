"""Strength for luminance and for colour, and grain: what is left untouched, and what grows with what."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from symsmooth import denoise
from symsmooth.noise import PoissonGaussian

LEVEL = 12.0
OPTIONS: dict[str, Any] = {"quality": "preview", "channel_axis": -1, "rng": 3}


def luma(pixels: np.ndarray) -> np.ndarray:
    return pixels.astype(np.float64).mean(axis=-1)


def chroma(pixels: np.ndarray) -> np.ndarray:
    return pixels - luma(pixels)[..., np.newaxis]


@pytest.fixture(scope="module")
def noisy() -> np.ndarray:
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:56, :64] / 8.0
    clean = np.stack([120 + 50 * np.sin(x), 120 + 50 * np.cos(y), 110 + 40 * np.sin(x + y)], -1)
    return clean + rng.normal(0.0, LEVEL, clean.shape)


def test_equal_strengths_are_the_bits_of_one(noisy: np.ndarray) -> None:
    one = denoise(noisy, LEVEL, strength=0.8, **OPTIONS)
    assert np.array_equal(denoise(noisy, LEVEL, strength=(0.8, 0.8), **OPTIONS), one)
    named = denoise(noisy, LEVEL, strength=0.8, chroma_strength=0.8, **OPTIONS)
    assert np.array_equal(named, one)


def test_a_pair_is_the_luminance_of_one_and_the_colour_of_the_other(noisy: np.ndarray) -> None:
    mixed = denoise(noisy, LEVEL, strength=(0.5, 1.5), rng=3, quality="preview", channel_axis=-1)
    weak = denoise(noisy, LEVEL, strength=0.5, **OPTIONS)
    assert np.allclose(luma(mixed), luma(weak), atol=1e-3)
    named = denoise(noisy, LEVEL, strength=0.5, chroma_strength=1.5, **OPTIONS)
    assert np.array_equal(mixed, named)
    assert np.std(chroma(noisy - mixed)) > np.std(chroma(noisy - weak))


@pytest.mark.parametrize(
    "noise",
    [
        pytest.param(None, id="white"),
        pytest.param(PoissonGaussian((1.0,) * 3, (20.0,) * 3), id="photon"),
        pytest.param("correlated", id="coarse"),
    ],
)
def test_strength_0_leaves_its_part_untouched(noisy: np.ndarray, noise: Any) -> None:
    known = {"sigma": LEVEL} if noise is None else {"noise": noise}
    grey_only = denoise(noisy, **known, strength=1.0, chroma_strength=0, **OPTIONS)
    assert np.allclose(chroma(grey_only), chroma(noisy), atol=1e-3)
    assert np.std(luma(grey_only) - luma(noisy)) > 1.0
    colour_only = denoise(noisy, **known, strength=(0, 1), **OPTIONS)
    assert np.allclose(luma(colour_only), luma(noisy), atol=1e-3)
    assert np.std(chroma(colour_only) - chroma(noisy)) > 1.0


def test_each_part_changes_more_with_its_own_strength_only(noisy: np.ndarray) -> None:
    strengths = (0.0, 0.25, 0.5, 1.0, 2.0)
    by_chroma = [denoise(noisy, LEVEL, chroma_strength=s, **OPTIONS) for s in strengths]
    removed = [np.std(chroma(noisy - each)) for each in by_chroma]
    assert all(less < more for less, more in pairwise(removed))
    assert all(np.allclose(luma(each), luma(by_chroma[0]), atol=1e-3) for each in by_chroma)
    by_luma = [denoise(noisy, LEVEL, strength=(s, 0), **OPTIONS) for s in strengths[1:]]
    removed = [np.std(luma(noisy - each)) for each in by_luma]
    assert all(less < more for less, more in pairwise(removed))


def test_progress_of_two_strengths_is_one(noisy: np.ndarray) -> None:
    told: list[float] = []
    denoise(noisy, LEVEL, strength=(1, 2), progress=lambda share, _: told.append(share), **OPTIONS)
    assert told == sorted(told)
    assert told[-1] == 1.0
    assert any(0.5 < share < 0.95 for share in told)


def test_two_strengths_give_the_same_bits_for_any_number_of_threads(noisy: np.ndarray) -> None:
    one, two = (
        denoise(noisy, noise="correlated", strength=(0.6, 1.3), workers=n, **OPTIONS)
        for n in (1, 2)
    )
    assert np.array_equal(one, two)


def test_all_grain_is_the_luminance_of_the_input(noisy: np.ndarray) -> None:
    smooth = denoise(noisy, LEVEL, **OPTIONS)
    grainy = denoise(noisy, LEVEL, grain=1, **OPTIONS)
    assert np.allclose(luma(grainy), luma(noisy), atol=1e-3)
    assert np.allclose(chroma(grainy), chroma(smooth), atol=1e-3)
    grey = noisy[..., 0]
    assert np.allclose(denoise(grey, LEVEL, grain=1, quality="preview"), grey, atol=1e-3)
    eight_bit = np.clip(np.rint(grey), 0, 255).astype(np.uint8)
    assert np.array_equal(denoise(eight_bit, grain=1, quality="preview"), eight_bit)


def test_more_grain_is_nearer_to_the_input(noisy: np.ndarray) -> None:
    grains = (0.0, 0.3, 0.6, 1.0)
    made = [denoise(noisy, LEVEL, grain=grain, **OPTIONS) for grain in grains]
    left = [np.std(luma(noisy - each)) for each in made]
    expected = [(1 - grain) * left[0] for grain in grains]
    assert np.allclose(left, expected, atol=1e-3)


def test_grain_of_volumes_and_where_pixels_are_missing() -> None:
    rng = np.random.default_rng(1)
    volume = rng.normal(50.0, 5.0, (8, 24, 24)).astype(np.float32)
    assert np.allclose(denoise(volume, 5.0, grain=1, quality="preview"), volume, atol=1e-3)
    picture = rng.normal(50.0, 5.0, (40, 40))
    picture[10:13, 10:13] = np.nan
    smooth = denoise(picture, 5.0, quality="preview")
    grainy = denoise(picture, 5.0, quality="preview", grain=0.5)
    assert np.isfinite(grainy).all()
    assert np.array_equal(grainy[10:13, 10:13], smooth[10:13, 10:13])  # no noise was removed there


def test_grain_in_blocks_is_grain_of_the_blocks() -> None:
    da = pytest.importorskip("dask.array")
    rng = np.random.default_rng(2)
    picture = rng.normal(50.0, 5.0, (160, 96))
    lazy = da.from_array(picture, chunks=(80, 96))
    smooth, grainy = (
        denoise(lazy, 5.0, quality="preview", grain=g).compute(scheduler="sync") for g in (0, 0.4)
    )
    assert np.allclose(grainy, smooth + 0.4 * (picture - smooth), atol=1e-3)


def test_a_grey_picture_has_no_colour_to_treat(noisy: np.ndarray) -> None:
    grey = noisy[..., 0]
    plain = denoise(grey, LEVEL, quality="preview")
    assert np.array_equal(denoise(grey, LEVEL, quality="preview", chroma_strength=0), plain)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"strength": (1, 2, 3)}, "a number or two, for luminance and for colour"),
        ({"strength": (1, "2")}, "strength must be a number from 0.01 to 100"),
        ({"strength": (1, 2), "chroma_strength": 1}, "leave out chroma_strength"),
        ({"chroma_strength": -1}, "chroma_strength must be a number.*0 to leave it"),
        ({"chroma_strength": True}, "chroma_strength must be a number"),
        ({"grain": 1.5}, "grain must be a number from 0 to 1"),
        ({"grain": np.nan}, "grain must be a number from 0 to 1"),
        ({"grain": "much"}, "grain must be a number from 0 to 1"),
    ],
)
def test_knobs_that_cannot_be_say_what_can(noisy: np.ndarray, wrong: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        denoise(noisy, LEVEL, channel_axis=-1, **wrong)
