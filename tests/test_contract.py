"""One contract for all methods."""

from __future__ import annotations

import inspect
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symsmooth import METHODS
from symsmooth.core.metrics import psnr
from symsmooth.noise import add_noise

EACH = pytest.mark.parametrize("name", METHODS)
SIGMA = 0.1
SLACK = 0.1  # dB: other processors round differently, and clusters follow

# dB gained with 5, 15, 25 and 50 grey levels of noise on 64 x 64 pixels.  A lower number needs a reason.
GAINS = {
    "denoise": (2.99, 6.66, 8.95, 12.60),
    "gaussian": (1.54, 5.55, 7.78, 11.16),
    "bilateral": (1.67, 5.72, 7.83, 9.87),
    "nlm": (1.55, 5.34, 7.87, 11.19),
    "lark": (0.59, 5.87, 8.40, 11.15),
    "gsf": (1.91, 6.15, 8.63, 12.45),
    "gsfw": (2.99, 6.66, 8.95, 12.60),
    "bm3d": (2.66, 6.25, 8.67, 12.14),
    "nl_bayes": (2.95, 6.63, 8.79, 12.11),
    "epll": (2.80, 6.61, 8.67, 12.23),
    "ple": (2.05, 5.72, 8.55, 12.00),
    "glide": (1.70, 5.82, 8.48, 12.22),
}
QUALITY_GAINS = {
    "preview": (2.82, 6.53, 8.89, 11.98),
    "fast": (2.94, 6.60, 9.01, 12.58),
    "balanced": (2.99, 6.66, 8.95, 12.60),
    "best": (3.01, 6.67, 8.99, 12.54),
}
COLOUR_AND_VOLUME_GAINS = {  # with 25 grey levels
    "denoise": (9.83, 12.71),
    "gaussian": (6.47, 7.65),
    "bilateral": (7.18, 8.16),
    "nlm": (6.78, 5.96),
    "lark": (7.04, 7.25),
    "gsf": (7.80, 11.66),
    "gsfw": (9.83, 12.71),
    "bm3d": (9.35, 11.81),
    "nl_bayes": (9.58, 11.58),
    "epll": (9.58, 8.81),
    "ple": (7.96, 6.90),
    "glide": (8.77, 10.24),
}


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


def gain(clean: np.ndarray, level: float, method: Any, **options: Any) -> float:
    """dB that a method gains on a picture with so many grey levels of noise."""
    noisy = add_noise(clean, level / 255, 0)
    return psnr(method(noisy, level / 255, **options), clean) - psnr(noisy, clean)


@EACH
def test_it_removes_as_much_noise_as_it_did(name, camera) -> None:
    floors = dict(zip((5, 15, 25, 50), GAINS[name], strict=True))
    gains = {level: gain(camera, level, METHODS[name]) for level in floors}
    assert {level for level in floors if gains[level] < floors[level] - SLACK} == set(), gains


@pytest.mark.parametrize("quality", QUALITY_GAINS)
def test_a_quality_removes_as_much_noise_as_it_did(quality, camera) -> None:
    floors = dict(zip((5, 15, 25, 50), QUALITY_GAINS[quality], strict=True))
    gains = {level: gain(camera, level, METHODS["denoise"], quality=quality) for level in floors}
    assert {level for level in floors if gains[level] < floors[level] - SLACK} == set(), gains


@EACH
def test_it_removes_as_much_noise_from_colour_and_volumes_as_it_did(name) -> None:
    from skimage import data

    colour = data.astronaut()[60:108, 180:228] / 255.0
    z, y, x = np.indices((12, 28, 28))
    volume = 0.3 + 0.3 * (np.hypot(y - 14, x - 14) < 5 + z / 2) + 0.1 * np.sin(x / 3 + z / 4)
    in_colour = gain(colour, 25, METHODS[name], channel_axis=-1)
    in_volume = gain(volume, 25, METHODS[name], channel_axis=None)
    assert in_colour >= COLOUR_AND_VOLUME_GAINS[name][0] - SLACK
    assert in_volume >= COLOUR_AND_VOLUME_GAINS[name][1] - SLACK


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
def test_two_calls_at_once_do_not_disturb_each_other(name, noisy) -> None:
    """Same bits as alone, and each hears of its own progress only, whatever the other one does."""
    images = [noisy, noisy[::-1, :20], np.stack([noisy[:24, :24]] * 2)]
    alone, own = [], []
    for image in images:
        own.append([])
        alone.append(
            METHODS[name](image, SIGMA, channel_axis=None, workers=2, progress=note(own[-1]))
        )

    def again(number: int) -> tuple[np.ndarray, list[tuple[object, ...]]]:
        heard: list[tuple[object, ...]] = []
        image = images[number]
        found = METHODS[name](image, SIGMA, channel_axis=None, workers=2, progress=note(heard))
        return found, heard

    with ThreadPoolExecutor(3) as threads:
        for number, (found, heard) in enumerate(threads.map(again, [0, 1, 2] * 2)):
            assert np.array_equal(found, alone[number % 3])
            assert heard == own[number % 3]


def test_different_methods_at_once_do_not_disturb_each_other(noisy) -> None:
    alone = [method(noisy, SIGMA) for method in METHODS.values()]
    with ThreadPoolExecutor(4) as threads:
        together = threads.map(lambda method: method(noisy, SIGMA), METHODS.values())
        for name, expected, found in zip(METHODS, alone, together, strict=True):
            assert np.array_equal(found, expected), name


def note(reports: list[tuple[object, ...]]) -> Any:
    """A progress callback that keeps what it hears."""
    return lambda *report: reports.append(report)


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


@EACH
def test_masked_arrays_come_back_masked(name: str, noisy: np.ndarray) -> None:
    """They are the plain array with the same mask, and what lies under it does not matter."""
    method = METHODS[name]
    hole = np.zeros(noisy.shape, bool)
    hole[10:13, 20:22] = True
    garbage = np.where(hole, 2.0, noisy)
    masked = np.ma.MaskedArray(garbage, mask=hole, fill_value=-1.0)
    known: dict[str, Any] = {"sigma": SIGMA} if method.removes_noise else {}
    result = method.function(masked, **known)
    assert isinstance(result, np.ma.MaskedArray)
    assert np.array_equal(result.mask, hole)
    assert result.fill_value == -1.0
    plain = method.function(np.where(hole, np.nan, noisy), **known)
    assert np.array_equal(result.data, plain)
