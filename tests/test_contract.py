"""One contract for all methods."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symsmooth import METHODS
from symsmooth.noise import add_noise

EACH = pytest.mark.parametrize("name", METHODS)
SIGMA = 0.1


@pytest.fixture(scope="module")
def noisy(camera) -> np.ndarray:
    return add_noise(camera[:40, :44], SIGMA, 0)


@EACH
def test_signature_is_the_common_one(name) -> None:
    parameters = inspect.signature(METHODS[name].function).parameters
    assert list(parameters)[:2] == ["image", "sigma"]
    assert parameters["sigma"].default is None
    for own in list(parameters)[2:]:
        assert parameters[own].kind is inspect.Parameter.KEYWORD_ONLY
    assert {"channel_axis", "mask", "rng", "workers", "progress"} <= set(parameters)
    for heading in ("Parameters", "Returns", "Notes", "References", "Examples"):
        assert heading in (METHODS[name].function.__doc__ or "")


@EACH
def test_it_removes_noise(name, camera, noisy) -> None:
    before = np.mean((noisy - camera[:40, :44]) ** 2)
    after = np.mean((METHODS[name](noisy, SIGMA) - camera[:40, :44]) ** 2)
    assert after < 0.6 * before


@EACH
@settings(max_examples=4)
@given(a=st.floats(1e-3, 1e4), b=st.floats(-1e4, 1e4))
def test_it_is_equivariant(name, a, b) -> None:
    image = add_noise(np.indices((24, 26)).sum(axis=0) / 50.0, SIGMA, 1)
    expected = a * METHODS[name](image, SIGMA) + b
    given_units = METHODS[name](a * image + b, a * SIGMA)
    assert np.abs(given_units - expected).max() < 0.03 * a * SIGMA


@EACH
@pytest.mark.parametrize(
    "dtype", [np.uint8, np.uint16, np.int32, np.float16, np.float32, np.float64]
)
def test_shape_and_dtype_come_back_and_the_input_is_untouched(name, dtype, noisy) -> None:
    image = np.clip(noisy * 200 + 20, 0, 255).astype(dtype)
    image.flags.writeable = False
    before = image.copy()
    denoised = METHODS[name](image, 20.0)
    assert denoised.dtype == image.dtype
    assert denoised.shape == image.shape
    assert np.array_equal(image, before)
    assert not np.shares_memory(denoised, image)
    reference = METHODS[name](image.astype(np.float64), 20.0)
    assert np.abs(denoised.astype(float) - reference).max() <= (
        0.51 if dtype != np.float16 else 0.1
    )


@EACH
@pytest.mark.parametrize(
    ("shape", "axis"), [((20, 21, 3), -1), ((2, 20, 21), 0), ((6, 12, 13), None), ((3, 5, 9, 8), 0)]
)
def test_colour_and_volumes(name, shape, axis) -> None:
    image = add_noise(np.ones(shape), SIGMA, 0)
    denoised = METHODS[name](image, SIGMA, channel_axis=axis)
    assert denoised.shape == shape
    assert np.std(denoised) < 0.7 * SIGMA


@EACH
@pytest.mark.parametrize("shape", [(1, 30), (30, 1), (1, 1), (2, 3), (4, 4)])
def test_pictures_smaller_than_a_patch(name, shape) -> None:
    image = add_noise(np.ones(shape), SIGMA, 0)
    denoised = METHODS[name](image, SIGMA)
    assert np.isfinite(denoised).all()
    assert denoised.min() >= image.min() - 1e-6
    assert denoised.max() <= image.max() + 1e-6


@EACH
def test_a_constant_picture_is_a_fixed_point(name) -> None:
    for value in (0.0, 123.0, -5e6):
        image = np.full((18, 19), value)
        assert np.allclose(METHODS[name](image, 5.0), value, rtol=1e-6)
        assert np.allclose(METHODS[name](image), value, rtol=1e-6)


@EACH
def test_without_noise_it_is_the_identity(name, noisy) -> None:
    for image in (noisy, noisy.astype(np.float32), (noisy * 255).astype(np.int16)):
        assert np.array_equal(METHODS[name](image, 0.0), image)


@EACH
def test_same_seed_same_bits_for_any_number_of_workers(name, noisy) -> None:
    image = np.tile(noisy, (2, 2))
    results = [METHODS[name](image, SIGMA, rng=3, workers=w) for w in (1, 2, 4)]
    assert np.array_equal(results[0], results[1])
    assert np.array_equal(results[0], results[2])
    assert np.array_equal(results[0], METHODS[name](image, SIGMA, rng=np.random.default_rng(3)))


@EACH
def test_missing_pixels_are_filled_and_never_spread(name, camera, noisy) -> None:
    holes = noisy.copy()
    holes[10:13, 20:24] = np.nan
    holes[30, 30] = np.inf
    denoised = METHODS[name](holes, SIGMA)
    assert np.isfinite(denoised).all()
    mask = ~np.isfinite(holes)
    masked = METHODS[name](noisy, SIGMA, mask=mask)
    assert np.allclose(masked, denoised, atol=1e-6)
    far = np.ones_like(mask)
    far[:20, 10:34] = far[20:, 20:] = False
    untouched = METHODS[name](noisy, SIGMA)
    assert np.abs(denoised - untouched)[far].mean() < 0.15 * SIGMA
    assert np.sqrt(np.mean((denoised - camera[:40, :44])[mask] ** 2)) < 3 * SIGMA


@EACH
def test_sigma_is_estimated_when_not_given(name, noisy) -> None:
    image = np.tile(noisy, (2, 2))
    blind, told = METHODS[name](image), METHODS[name](image, SIGMA)
    assert np.sqrt(np.mean((blind - told) ** 2)) < 0.25 * SIGMA


@EACH
@pytest.mark.parametrize(
    ("sigma", "error"),
    [
        (-1.0, ValueError),
        (np.nan, ValueError),
        (np.inf, ValueError),
        ("20", TypeError),
        ({}, TypeError),
    ],
)
def test_a_wrong_sigma_is_refused(name, sigma, error) -> None:
    with pytest.raises(error, match="sigma must be"):
        METHODS[name](np.ones((8, 8)), sigma)


def assert_progress(reports: list[tuple[float, str]]) -> None:
    """One fraction of all: it never falls, ends at 1, and says what is being done."""
    fractions = [fraction for fraction, _ in reports]
    assert all(0.0 <= fraction <= 1.0 for fraction in fractions)
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1.0
    assert all(what for _, what in reports)


@EACH
def test_progress_is_reported_and_can_stop_the_work(name, noisy) -> None:
    reports: list[tuple[float, str]] = []
    METHODS[name](noisy, SIGMA, progress=lambda *report: reports.append(report))
    assert_progress(reports)

    class Stop(Exception):
        pass

    def stop(*_: object) -> None:
        raise Stop

    with pytest.raises(Stop):
        METHODS[name](noisy, SIGMA, progress=stop)
