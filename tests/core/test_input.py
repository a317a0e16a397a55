"""What is given by mistake, or is hardly a picture: finite pixels, or one line that says what to do."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import symsmooth
from symsmooth import METHODS
from symsmooth.core.blocks import Grid
from symsmooth.core.image import Picture, add_change, open_image
from symsmooth.core.user_warnings import UnitsWarning

LONG = (np.int64, np.uint64, np.dtype(">i8"), np.dtype(">u8"))
NOISY = np.random.default_rng(0).normal(100.0, 10.0, (24, 24, 3))


def quiet(function: Any, *args: Any, **kwargs: Any) -> Any:
    """Call with the question about small sigmas silenced: here they are small on purpose."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnitsWarning)
        return function(*args, **kwargs)


# --- integers of 64 bits ----------------------------------------------------------------------


@pytest.mark.parametrize("dtype", LONG, ids=str)
@pytest.mark.parametrize("end", ["min", "max"])
def test_the_limits_of_64_bits_do_not_wrap(dtype, end) -> None:
    limit = getattr(np.iinfo(dtype), end)
    image = np.full((8, 8), limit, dtype)
    assert (symsmooth.denoise_gaussian(image, 1.0) == limit).all()
    change = np.full((8, 8), 1e30 if end == "max" else -1e30)
    for pixels in (image, np.full((8, 8), 5, dtype)):
        assert (add_change(pixels, change) == limit).all()


@pytest.mark.parametrize("dtype", LONG, ids=str)
def test_pixels_above_2_to_53_keep_their_bits_and_change_by_whole_numbers(dtype) -> None:
    image = np.random.default_rng(0).integers(2**53, 2**63 - 1, (9, 9)).astype(dtype) | 1
    picture = open_image(image)
    assert np.array_equal(picture.restore(picture.noisy), image)
    assert np.array_equal(symsmooth.denoise_gaussian(image, 0.0), image)
    changed = add_change(image, np.full(image.shape, -3.4))
    assert np.array_equal(changed, image - np.array(3, dtype))
    assert changed.dtype == image.dtype


@pytest.mark.parametrize(
    "dtype", [np.uint8, np.int8, np.uint16, np.int32, np.uint32, np.int64, np.uint64]
)
def test_a_change_of_integers_is_that_of_exact_arithmetic(dtype) -> None:
    limits = np.iinfo(dtype)
    rng = np.random.default_rng(0)
    pixels = rng.integers(limits.min, limits.max, 300, dtype, endpoint=True)
    pixels[:4] = limits.min, limits.max, limits.min + 1, limits.max - 1
    span = float(limits.max) - float(limits.min)
    change = rng.normal(0, 1, 300) * rng.choice([1.0, 1e3, span], 300)
    expected = [
        min(max(int(p) + round(c), limits.min), limits.max)
        for p, c in zip(pixels, change.tolist(), strict=True)
    ]
    assert add_change(pixels, change).tolist() == expected


def test_missing_integers_are_filled_and_rounded_once() -> None:
    image = np.full((5, 5), 2**62 + 1)
    mask = np.zeros((5, 5), bool)
    mask[2, 2] = True
    picture = open_image(image, mask=mask)
    restored = picture.restore(picture.noisy)
    assert np.array_equal(restored[~mask], image[~mask])
    assert abs(int(restored[2, 2]) - 2**62) <= 2**9  # as near as float64 is


@pytest.mark.parametrize("dtype", LONG, ids=str)
def test_blocks_of_64_bits_are_blended_without_loss(dtype) -> None:
    limits = np.iinfo(dtype)
    whole = np.random.default_rng(0).integers(2**60, 2**62, (96, 8)).astype(dtype) | 1
    whole[46:50] = limits.max
    grid = Grid(((0, 48, 96), (0, 8)), (8, 0))
    index = (0, 0)

    def blended(shift: int) -> Any:
        parts = [grid.prepare(whole[grid.outer(i)]) for i in grid.neighbours(index)]
        parts[1] = parts[1] - np.array(shift, dtype)
        return grid.blend(index, parts, whole.dtype)

    assert np.array_equal(blended(0), whole[grid.inner(index)])
    change = blended(1000).astype(object) - whole[grid.inner(index)].astype(object)
    assert change.min() >= -1000
    assert change.max() <= 0
    assert change.min() < -100


def test_pixels_that_are_not_numbers_are_never_returned() -> None:
    picture = open_image(np.arange(12, dtype=np.uint8).reshape(3, 4))
    broken = picture.noisy.copy()
    broken[1, 1] = np.nan
    with pytest.raises(FloatingPointError, match=r"not finite.*report"):
        picture.restore(broken)


# --- hardly a picture -------------------------------------------------------------------------

CHECKERS = (np.indices((1, 37)).sum(0) % 2 * 255.0).astype(np.float32)
ODD: dict[str, tuple[Any, float | None, int | None]] = {
    "1x1, 2 channels": (np.array([[[1.0, 5.0]]]), None, -1),
    "1x1, 2 channels, sigma": (np.array([[[1.0, 5.0]]]), 1.0, -1),
    "1x1, 3 channels": (np.array([[[1.0, 5.0, 9.0]]]), 1.0, -1),
    "1x1, 5 channels": (np.arange(5.0).reshape(1, 1, 5), 1.0, -1),
    "1x1x1, 4 channels": (np.arange(4.0).reshape(4, 1, 1, 1), 1.0, 0),
    "a row of checkers": (CHECKERS, None, None),
    "a column of checkers": (CHECKERS.T, None, None),
    "zeros, sigma 1e-200": (np.zeros((9, 9)), 1e-200, None),
    "noise, sigma 1e-200": (NOISY[..., 0], 1e-200, None),
    "noise, sigma 1e-20": (NOISY[..., 0], 1e-20, None),
    "noise, the smallest sigma": (NOISY[..., 0], 5e-324, None),
}


@pytest.mark.parametrize("case", ODD)
@pytest.mark.parametrize("name", METHODS)
def test_what_is_hardly_a_picture_has_finite_pixels(name, case) -> None:
    image, sigma, axis = ODD[case]
    denoised = quiet(METHODS[name], image, sigma, channel_axis=axis)
    assert denoised.shape == image.shape
    assert np.isfinite(denoised).all()
    if "1e-" in case or "smallest" in case or "checkers" in case:
        assert np.array_equal(denoised, image)


def test_checkers_have_no_noise() -> None:
    assert symsmooth.estimate_sigma(CHECKERS) == 0.0
    assert symsmooth.estimate_noise(CHECKERS).sigma == 0.0


# --- wrong arguments --------------------------------------------------------------------------


@pytest.mark.parametrize("strength", [None, 0.0, -1.0, np.nan, np.inf, "2", True, 1e-200, 1e9])
def test_a_strength_that_is_none_is_refused(strength) -> None:
    with pytest.raises(ValueError, match=r"strength must be a number from 0\.01 to 100.*use 1"):
        symsmooth.denoise(NOISY[..., 0], strength=strength)


@pytest.mark.parametrize("axis", ["last", 1.0, True, (2,)])
@pytest.mark.parametrize("name", METHODS)
def test_a_channel_axis_that_is_none_is_refused(name, axis) -> None:
    with pytest.raises(TypeError, match=r"channel_axis must be a whole number.*use -1"):
        METHODS[name](NOISY, 10.0, channel_axis=axis)


@pytest.mark.parametrize("rng", ["x", -1, 1.5, True])
@pytest.mark.parametrize("name", ["denoise", "gsf", "gsfw", "epll"])
def test_an_rng_that_is_none_is_refused(name, rng) -> None:
    with pytest.raises(TypeError, match=r"rng must be a whole number of 0 or more.*got"):
        METHODS[name](NOISY[..., 0], 10.0, rng=rng)


@pytest.mark.parametrize("name", METHODS)
def test_a_progress_that_is_no_function_is_refused(name) -> None:
    with pytest.raises(TypeError, match=r"progress must be a function.*got True"):
        METHODS[name](NOISY[..., 0], 10.0, progress=True)


@pytest.mark.parametrize("image", ["a.png", Path("folder/a.png")])
@pytest.mark.parametrize("function", [*METHODS.values(), symsmooth.estimate_sigma])
def test_the_name_of_a_file_is_no_image(function, image) -> None:
    with pytest.raises(TypeError, match=r"name of a file.*imread.*symsmooth denoise .*a\.png"):
        function(image)


def test_sigma_and_another_noise_are_refused_for_dask_before_any_work() -> None:
    da = pytest.importorskip("dask.array")
    lazy = da.from_array(NOISY[..., 0], chunks=12)
    with pytest.raises(ValueError, match="not with correlated noise"):
        symsmooth.denoise_blocks(lazy, sigma=5.0, noise="correlated")
    with pytest.raises(TypeError, match="rng must be"):
        symsmooth.denoise_blocks(lazy, rng="x")


# --- a level for other units ------------------------------------------------------------------

GREY = np.random.default_rng(0).integers(0, 256, (16, 16), dtype=np.uint8)


@pytest.mark.parametrize("name", METHODS)
def test_a_level_that_may_be_meant_for_0_to_1_is_asked_about(name) -> None:
    with pytest.warns(UnitsWarning, match=r"sigma 0\.1 is very small.*0 to 1\?.*25") as caught:
        METHODS[name](GREY, 0.1)
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("image", "sigma"),
    [(GREY, 0.2), (GREY, 0.0), (GREY / 255.0, 1e-5), (GREY * np.uint16(250), 5.0), (GREY, None)],
)
def test_other_levels_are_not_asked_about(image, sigma) -> None:
    symsmooth.denoise_gaussian(image, sigma)  # a warning is an error here


def test_blocks_ask_once() -> None:
    da = pytest.importorskip("dask.array")
    lazy = symsmooth.denoise_gaussian(da.from_array(np.tile(GREY, (8, 8)), chunks=64), 0.1, h_s=1.0)
    with pytest.warns(UserWarning, match="0 to 1") as caught:
        lazy.compute(scheduler="synchronous")
    assert len(caught) == 1


# --- a forgotten channel axis -----------------------------------------------------------------

FUNCTIONS = [*(each.function for each in METHODS.values()), symsmooth.fit_gsf, symsmooth.fit_gsfw]
COLOURS = {-1: NOISY, 0: np.moveaxis(NOISY, -1, 0)}


def axis_of(image: Any, **given: Any) -> int | None:
    """The channel axis that an image is opened with."""
    picture: Picture = open_image(image, **given)
    return picture.channel_axis


@pytest.mark.parametrize("axis", COLOURS)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_a_forgotten_channel_axis_is_warned_about(function, axis) -> None:
    words = rf"volume of 3 slices; pass channel_axis={axis} if.*channel_axis=None if"
    with pytest.warns(UserWarning, match=words) as caught:
        function(COLOURS[axis], 10.0)
    assert len(caught) == 1
    assert caught[0].filename == __file__  # the line that forgot it


@pytest.mark.parametrize("function", [symsmooth.estimate_sigma, symsmooth.estimate_noise])
def test_estimates_warn_too(function) -> None:
    with pytest.warns(UserWarning, match="channel_axis=-1"):
        function(NOISY)


def test_dask_warns_when_it_is_called() -> None:
    da = pytest.importorskip("dask.array")
    lazy = da.from_array(NOISY, chunks=12)
    with pytest.warns(UserWarning, match="channel_axis=-1") as caught:
        waiting = symsmooth.denoise_gaussian(lazy, 10.0)
    assert caught[0].filename == __file__
    waiting.compute()  # silently: a warning is an error here
    symsmooth.denoise_gaussian(lazy, 10.0, channel_axis=None).compute()


@pytest.mark.parametrize("shape", [(24, 24, 4), (4, 24, 24)])
def test_four_channels_are_warned_about(shape) -> None:
    with pytest.warns(UserWarning, match="4 slices"):
        assert axis_of(np.zeros(shape)) is None


@pytest.mark.parametrize("shape", [(24, 3), (5, 24, 24), (24, 24, 2), (4, 4, 4), (3, 24, 4)])
def test_other_shapes_are_not(shape) -> None:
    assert axis_of(np.zeros(shape)) is None


def test_a_volume_says_so_with_none() -> None:
    assert axis_of(NOISY, channel_axis=None) is None
    assert axis_of(NOISY, channel_axis=-1) == -1


@pytest.mark.parametrize(
    ("dims", "axis"),
    [
        (("y", "x", "c"), 2), (("Channel", "y", "x"), 0), (("lat", "lon", "BAND"), 2),
        (("y", "x", "rgb"), 2), (("t", "y", "x"), None), (("y", "x", "z"), None),
    ],
)  # fmt: skip
def test_named_dimensions_say_what_they_are(dims, axis) -> None:
    xarray = pytest.importorskip("xarray")
    pixels = COLOURS[0] if axis == 0 or dims[0] == "t" else NOISY
    image = xarray.DataArray(pixels, dims=dims)
    denoised = symsmooth.denoise_gaussian(image, 10.0)
    assert denoised.dims == dims
    expected = symsmooth.denoise_gaussian(pixels, 10.0, channel_axis=axis)
    assert np.array_equal(denoised.values, expected)
    da = pytest.importorskip("dask.array")
    lazy = xarray.DataArray(da.from_array(pixels, chunks=pixels.shape), dims=dims)
    assert np.array_equal(symsmooth.denoise_gaussian(lazy, 10.0).values, expected)


def test_dimensions_without_a_name_are_warned_about_and_two_names_refused() -> None:
    xarray = pytest.importorskip("xarray")
    with pytest.warns(UserWarning, match="channel_axis=-1"):
        assert axis_of(xarray.DataArray(NOISY)) is None
    with pytest.raises(ValueError, match="two dimensions of channels, c and band"):
        open_image(xarray.DataArray(np.zeros((2, 9, 9, 2)), dims=("c", "y", "x", "band")))


@pytest.mark.parametrize(
    "mode", ["L", "I", "F", "I;16", "RGB", "CMYK", "YCbCr", "HSV", "LAB", "RGBA", "LA", "RGBa"]
)
def test_pillow_images_say_what_they_are_and_come_back_as_such(mode) -> None:
    if mode == "I;16":
        image = Image.fromarray(NOISY[..., 0].astype(np.uint16))
    elif mode in ("HSV", "YCbCr", "LAB", "CMYK", "RGBa"):
        size = len(Image.new(mode, (1, 1)).getbands())
        raw = np.random.default_rng(0).integers(0, 256, (24, 24, size), np.uint8)
        image = Image.frombytes(mode, (24, 24), raw.tobytes())
    else:
        alpha = np.random.default_rng(1).integers(0, 256, (24, 24, 1))
        rgba = np.concatenate([NOISY, alpha], -1).astype(np.uint8)
        image = Image.fromarray(rgba).convert(mode)
    image.info["dpi"] = (300, 300)
    same = symsmooth.denoise_gaussian(image, 0.0)
    assert (same.mode, same.size, same.info["dpi"]) == (mode, image.size, (300, 300))
    assert same.tobytes() == image.tobytes()
    before, after = np.asarray(image), np.asarray(symsmooth.denoise_gaussian(image, 10.0))
    if mode[-1] in "Aa":
        assert np.array_equal(before[..., -1], after[..., -1])  # opacity is kept as it is
        before, after = before[..., :-1], after[..., :-1]
    axis = -1 if before.ndim == 3 else None
    assert np.array_equal(after, symsmooth.denoise_gaussian(before, 10.0, channel_axis=axis))
    assert not np.array_equal(before, after)


@pytest.mark.parametrize(("mode", "better"), [("1", "L"), ("P", "RGB")])
def test_pillow_images_without_intensities_are_refused(mode, better) -> None:
    image = Image.fromarray(NOISY.astype(np.uint8)).convert(mode)
    with pytest.raises(TypeError, match=rf"mode {mode}.*convert\('{better}'\)"):
        symsmooth.denoise(image)


@pytest.mark.parametrize("name", ["denoise", "nlm", "gsfw"])
def test_what_is_missing_is_not_asked_about_the_units(name: str) -> None:
    """A saturated pixel under a mask made a level of pixels from 0 to 1 doubtful."""
    image = np.random.default_rng(0).random((24, 24))
    image[3:5, 3:5] = 65535.0
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnitsWarning)
        METHODS[name](image, 0.1, mask=image > 1.0)
    with pytest.warns(UnitsWarning):
        METHODS[name](image, 0.1)
