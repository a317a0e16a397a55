"""Nothing depends on the units of an image: a contract of every function that denoises or estimates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import symsmooth
from symsmooth import METHODS
from symsmooth.noise import PoissonGaussian

pytestmark = pytest.mark.filterwarnings(
    "ignore::symsmooth.core.user_warnings.UnitsWarning"  # small and large units are what is asked for
)
LARGEST = 66  # a power of two: 7e19
POWERS = [-LARGEST, -33, -27, -1, 20, LARGEST]
NOISE = 10.0  # of the pictures below, about
Function = Callable[[np.ndarray, float], np.ndarray]


def light(shape: tuple[int, ...] = (48, 52)) -> np.ndarray:
    """A ramp of light with a step in it."""
    y, x = np.indices(shape[-2:])
    return np.broadcast_to(60.0 + x + 40.0 * (y > shape[-2] // 2), shape)


def photons(shape: tuple[int, ...] = (48, 52)) -> np.ndarray:
    return np.random.default_rng(0).poisson(light(shape)).astype(np.float64)


def denoising() -> dict[str, Function]:
    """Every function that denoises, of an image and the size of its unit."""
    functions: dict[str, Function] = {}
    for name, method in METHODS.items():
        functions[name] = lambda image, unit, method=method: method(image, NOISE * unit)
        functions[f"{name}, blind"] = lambda image, unit, method=method: method(image)
    for kind in ("poisson-gaussian", "correlated", "rician"):
        functions[f"denoise, {kind}"] = lambda image, unit, kind=kind: symsmooth.denoise(
            image, noise=kind
        )
    for pattern in ("RGGB", "X-Trans"):
        functions[f"raw, {pattern}"] = lambda image, unit, pattern=pattern: symsmooth.denoise_raw(
            image, pattern, 20.0 * unit, quality="fast"
        )
    functions["raw, balanced"] = lambda image, unit: symsmooth.denoise_raw(image, "GRBG")
    functions["raw, given"] = lambda image, unit: symsmooth.denoise_raw(
        image, "RGGB", noise=PoissonGaussian((unit,), (0.0,)), quality="fast", white=150.0 * unit
    )
    return functions


DENOISING = denoising()


@pytest.mark.parametrize("name", DENOISING)
def test_powers_of_two_change_no_bit(name: str) -> None:
    """A power of two rounds nothing, so that all bits but those of the exponent are the same."""
    image = photons()
    expected = DENOISING[name](image, 1.0)
    for power in (-LARGEST, LARGEST):
        unit = 2.0**power
        np.testing.assert_array_equal(DENOISING[name](image * unit, unit), expected * unit)


@pytest.mark.parametrize("power", POWERS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_estimates_have_the_units_of_the_image(dtype: Any, power: int) -> None:
    unit = 2.0**power
    image = photons((128, 128)).astype(dtype)
    scaled = (image * dtype(unit)).astype(dtype)
    assert symsmooth.estimate_sigma(scaled) == symsmooth.estimate_sigma(image) * unit
    plain, other = (symsmooth.estimate_raw_noise(i, "RGGB") for i in (image, scaled))
    law = plain.photons
    assert other.photons.gain == tuple(gain * unit for gain in law.gain)
    assert other.photons.offset == tuple(offset * unit**2 for offset in law.offset)
    result = symsmooth.fit_denoise_raw(scaled, "RGGB", quality="preview")
    assert result.noise == other


@pytest.mark.parametrize("scale", [1e-20, 1e-12, 1e-8, 1e-5, 1e-3, 1.0, 1e5, 1e12, 1e20])
def test_photons_in_any_unit_lose_their_noise(scale: float) -> None:
    """A mosaic of photons, counted in any unit: at least half of its noise goes."""
    clean, noisy = light((128, 128)), photons((128, 128))
    result = symsmooth.denoise_raw(noisy * scale, "RGGB", rng=0) / scale
    before, after = (np.sqrt(np.mean((v - clean) ** 2)) for v in (noisy, result))
    assert after < 0.5 * before


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e-60, 1e-30, 1e25, 1e30, 1e60, 1e150])
def test_raw_mosaics_of_extreme_units_are_denoised_or_refused_in_words(scale: float) -> None:
    clean, noisy = light((64, 64)), photons((64, 64))
    try:
        result = symsmooth.denoise_raw(noisy * scale, "RGGB", quality="fast", rng=0) / scale
    except ValueError as error:
        assert "multiply it by a constant first" in str(error)  # noqa: PT017
        assert not 1e-100 < scale < 1e100
        return
    assert np.sqrt(np.mean((result - clean) ** 2)) < 0.6 * NOISE


def test_constant_mosaics_of_any_unit_stay() -> None:
    for value in (1e-30, 1e-9, 1.0, 1e9, 1e30):
        flat = np.full((40, 40), value)
        assert np.allclose(symsmooth.denoise_raw(flat, "RGGB"), flat, rtol=1e-5, atol=0.0)


@pytest.mark.slow
@given(
    name=st.sampled_from(sorted(DENOISING)),
    power=st.floats(-20.0, 20.0),
    dtype=st.sampled_from(["f4", "f8"]),
    seed=st.integers(0, 2**32 - 1),
    shape=st.sampled_from([(48, 52), (40, 64), (65, 33)]),
)
@settings(max_examples=600, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_unit_changes_as_little_as_rounding_does(
    name: str, power: float, dtype: str, seed: int, shape: tuple[int, int]
) -> None:
    """Powers of two change no bit; other units round each pixel, which may tip a decision about noise."""
    unit = float(np.float32(10.0**power)) if dtype == "f4" else 10.0**power
    image = np.random.default_rng(seed).poisson(light(shape)).astype(dtype)
    exact = 2.0 ** round(np.log2(unit))
    np.testing.assert_array_equal(
        DENOISING[name]((image * image.dtype.type(exact)), exact),
        DENOISING[name](image, 1.0) * image.dtype.type(exact),
    )
    scaled = DENOISING[name](image * image.dtype.type(unit), unit).astype(float) / unit
    change = scaled - DENOISING[name](image, 1.0)
    decides = "blind" in name or name.startswith(("denoise, ", "raw, "))
    assert np.sqrt(np.mean(change**2)) < (0.4 if decides else 0.1) * NOISE
