"""The border: what comes in goes out with its dtype, axes, units; what cannot be an image is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from symsmooth.core.fill import fill_missing
from symsmooth.core.image import open_image

DTYPES = [np.uint8, np.int8, np.uint16, np.int16, np.int32, np.int64, np.uint32, np.float16,
          np.float32, np.float64, np.dtype(">f4"), np.dtype(">u2")]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(("shape", "axis"), [((7, 9), None), ((3, 7, 9), 0), ((4, 7, 9, 2), -1)])
def test_untouched_pixels_come_back_with_the_same_bits(dtype, shape, axis) -> None:
    image = (np.random.default_rng(0).random(shape) * 100 + 3).astype(dtype)
    picture = open_image(image, axis)
    restored = picture.restore(picture.noisy)
    assert restored.dtype == image.dtype
    assert np.array_equal(restored, image)


@given(
    hnp.arrays(
        np.float64,
        hnp.array_shapes(min_dims=2, max_dims=3, max_side=6),
        elements=st.integers(-(10**9), 10**9).map(lambda n: n / 1024),
    )
)
def test_opening_is_affine_invariant(image) -> None:
    a = open_image(image)
    b = open_image(image * 4.0 - 1024.0)
    assert np.allclose(a.noisy, b.noisy, atol=1e-3 * (1 + np.abs(a.noisy).max()))
    assert np.isclose(b.scale, 4.0 * a.scale) or a.scale == 1.0


def test_large_offset_keeps_the_contrast() -> None:
    small = np.random.default_rng(1).random((16, 16))
    picture = open_image(small + 1e9)
    assert np.allclose(
        picture.noisy[..., 0] * picture.scale, small + 1e9 - picture.offset, atol=1e-6
    )


def test_integers_are_rounded_and_clipped_once() -> None:
    picture = open_image(np.array([[0, 255], [100, 101]], np.uint8))
    shifted = picture.noisy + np.float32(0.6 / picture.scale)
    assert picture.restore(shifted).tolist() == [[1, 255], [101, 102]]


def test_input_is_never_modified_and_any_layout_is_taken() -> None:
    base = np.asfortranarray(np.arange(60.0).reshape(6, 10))
    view = base[::2, ::-1]
    view.flags.writeable = False
    before = view.copy()
    picture = open_image(view)
    picture.restore(picture.noisy * 2)
    assert np.array_equal(view, before)
    assert np.array_equal(picture.restore(picture.noisy), before)


@pytest.mark.parametrize(
    ("image", "error", "words"),
    [
        (np.ones((4, 4), bool), TypeError, "astype"),
        (np.ones((4, 4), complex), TypeError, "complex"),
        (np.array([["a", "b"]]), TypeError, "real numbers"),
        (np.array([[object()]]), TypeError, "object"),
        (np.ones(5), ValueError, "newaxis"),
        (np.ones((2, 2, 2, 2)), ValueError, "channel_axis"),
        (np.ones((0, 5)), ValueError, "no pixel"),
        (np.full((3, 3), np.nan), ValueError, "no usable pixel"),
        (np.array([[-1.7e308, 1.7e308]]), ValueError, "divide it"),
    ],
)
def test_what_is_no_image_is_refused_with_a_reason(image, error, words) -> None:
    with pytest.raises(error, match=words):
        open_image(image)


def test_wrong_channel_axis_and_mask_are_refused() -> None:
    with pytest.raises(ValueError, match="channel_axis must lie between -3 and 2"):
        open_image(np.ones((4, 4, 3)), 3)
    with pytest.raises(ValueError, match="spatial shape"):
        open_image(np.ones((4, 4)), mask=np.zeros((4, 5), bool))
    with pytest.raises(TypeError, match="boolean"):
        open_image(np.ones((4, 4)), mask=np.zeros((4, 4)))


def test_missing_pixels_are_filled_from_their_neighbours() -> None:
    ramp = np.add.outer(np.arange(40.0), np.arange(50.0))
    holes = ramp.copy()
    holes[10:14, 20:25] = np.nan
    holes[30, 3] = np.inf
    picture = open_image(holes)
    assert picture.mask is not None
    assert picture.mask.sum() == 21
    filled = picture.restore(picture.noisy)
    assert np.isfinite(filled).all()
    assert np.array_equal(filled[~picture.mask], ramp[~picture.mask])
    assert np.abs(filled - ramp).max() < 6.0


@pytest.mark.parametrize("garbage", [np.nan, np.inf, -1e30, 0.0])
def test_what_lies_under_the_mask_does_not_matter(garbage) -> None:
    image = np.random.default_rng(0).random((12, 13, 2))
    mask = np.zeros((12, 13), bool)
    mask[3:6, 4:9] = True
    expected = open_image(image, -1, mask).noisy
    image[mask] = garbage
    assert np.array_equal(open_image(image, -1, mask).noisy, expected)


def test_masked_arrays_carry_their_mask() -> None:
    image = np.ma.masked_greater(np.arange(20.0).reshape(4, 5), 17.0)
    picture = open_image(image)
    assert picture.mask is not None
    assert picture.mask.sum() == 2


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "float64"])
@pytest.mark.parametrize("hard", [False, True])
def test_a_masked_array_comes_back_as_one(dtype, hard) -> None:
    image = np.ma.masked_less(np.arange(20, dtype=dtype).reshape(4, 5), 3)
    image.set_fill_value(7)
    if hard:
        image.harden_mask()
    picture = open_image(image)
    result = picture.restore(picture.noisy)
    assert isinstance(result, np.ma.MaskedArray)
    assert np.array_equal(result.mask, image.mask)
    assert result.mask is not image.mask  # nobody's mask is shared
    assert (result.fill_value, result.hardmask, result.dtype) == (7, hard, image.dtype)
    assert np.array_equal(result.compressed(), image.compressed())


def test_a_masked_array_in_which_nothing_is_masked_stays_one() -> None:
    image = np.ma.array(np.random.default_rng(0).random((8, 9, 3)))
    picture = open_image(image, -1)
    assert picture.mask is None
    result = picture.restore(picture.noisy)
    assert isinstance(result, np.ma.MaskedArray)
    assert result.mask is np.ma.nomask


def test_filling_reaches_across_a_picture_that_is_almost_empty() -> None:
    valid = np.zeros((33, 65), bool)
    valid[0, 0] = True
    noisy = np.where(valid, 5.0, np.nan).astype(np.float32)[..., None]
    assert np.allclose(fill_missing(noisy, ~valid), 5.0)


@pytest.mark.parametrize("dtype", [">f4", "<f4", ">f8", ">i2", "<u2", ">u8", ">f2"])
@pytest.mark.parametrize("missing", ["nothing", "mask", "nan", "masked array"])
def test_the_order_of_bytes_comes_back(dtype, missing) -> None:
    """Whatever is missing: the same dtype, to the order of its bytes."""
    image = np.random.default_rng(0).integers(0, 200, (12, 13)).astype(dtype)
    mask = np.zeros(image.shape, bool)
    mask[3, 4] = missing != "nothing"
    if missing == "nan" and image.dtype.kind == "f":
        image[mask] = np.nan
    given = np.ma.array(image, mask=mask) if missing == "masked array" else image
    picture = open_image(given, None, mask if missing == "mask" else None)
    result = picture.restore(picture.noisy)
    assert result.dtype.str == image.dtype.str
    np.testing.assert_array_equal(result[~mask], image[~mask])


@pytest.mark.parametrize("value", [1e308, -1.7e308])
def test_a_median_that_floating_point_cannot_hold_is_one_line(value) -> None:
    for image in (np.full((8, 8), value), np.linspace(0.9, 1.0, 64).reshape(8, 8) * value):
        with pytest.raises(
            ValueError, match="too much for floating point; divide it by a constant"
        ):
            open_image(image)


def test_times_are_no_intensities() -> None:
    for dtype in ("m8[s]", "M8[s]"):
        with pytest.raises(TypeError, match="must hold real numbers"):
            open_image(np.zeros((4, 4), dtype))
