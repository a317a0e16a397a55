"""Files: what was read is written back as it came, or not at all."""

from __future__ import annotations

import io
import os
import struct
import subprocess
import sys
import warnings
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

import symsmooth
from symsmooth.io import (
    FileError,
    ImageFile,
    check_writable,
    formats,
    read_image,
    read_images,
    write_image,
    write_images,
)

Array = np.ndarray[Any, Any]
rng = np.random.default_rng(0)

DEPTHS = ["u1", "u2", "u4", "i1", "i2", "i4", "f2", "f4", "f8"]


def random_pixels(shape: tuple[int, ...], dtype: str) -> Array:
    """Return pixels that use all bits of an integer dtype, or floats of both signs."""
    kind = np.dtype(dtype)
    if kind.kind == "f":
        return rng.normal(0.0, 3.0, shape).astype(kind)
    limits = np.iinfo(kind)
    return rng.integers(limits.min, limits.max, shape, dtype=kind, endpoint=True)


def assert_same(left: ImageFile, right: ImageFile) -> None:
    assert left.pixels.dtype == right.pixels.dtype
    assert left.channel_axis == right.channel_axis
    np.testing.assert_array_equal(left.pixels, right.pixels)
    assert (left.alpha is None) == (right.alpha is None)
    if left.alpha is not None and right.alpha is not None:
        np.testing.assert_array_equal(left.alpha, right.alpha)


def round_trip(image: ImageFile, path: Path) -> ImageFile:
    write_image(path, image.pixels, image)
    return read_image(path)


# --- round trips are bit-identical -----------------------------------------------------------


@pytest.mark.parametrize("name", ["a.png", "a.bmp", "a.tif", "a.npy"])
@pytest.mark.parametrize("shape", [(7, 5), (7, 5, 3), (1, 9), (1, 1)])
def test_8_bit_pictures_come_back_bit_for_bit(
    tmp_path: Path, name: str, shape: tuple[int, ...]
) -> None:
    image = ImageFile(random_pixels(shape, "u1"), 2 if len(shape) == 3 else None, None, "")
    assert_same(round_trip(image, tmp_path / name), image)


@pytest.mark.parametrize("name", ["a.tif", "a.tiff", "a.npy"])
@pytest.mark.parametrize("dtype", DEPTHS)
@pytest.mark.parametrize("shape", [(7, 5), (7, 5, 3), (4, 7, 5), (4, 7, 5, 3)])
def test_every_depth_comes_back_bit_for_bit(
    tmp_path: Path, name: str, dtype: str, shape: tuple[int, ...]
) -> None:
    axis = len(shape) - 1 if shape[-1] == 3 else None
    image = ImageFile(random_pixels(shape, dtype), axis, None, "")
    assert_same(round_trip(image, tmp_path / name), image)


def test_16_bit_grey_png_stays_16_bit(tmp_path: Path) -> None:
    image = ImageFile(random_pixels((6, 7), "u2"), None, None, "")
    assert_same(round_trip(image, tmp_path / "a.png"), image)


def test_webp_is_lossless_in_colour_and_turns_grey_into_rgb(tmp_path: Path) -> None:
    colour = ImageFile(random_pixels((6, 7, 3), "u1"), 2, None, "")
    assert_same(round_trip(colour, tmp_path / "a.webp"), colour)
    grey = random_pixels((6, 7), "u1")
    write_image(tmp_path / "g.webp", grey)
    np.testing.assert_array_equal(read_image(tmp_path / "g.webp").pixels, np.dstack([grey] * 3))


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_jpeg_comes_back_with_its_channels_and_close(tmp_path: Path, channels: int) -> None:
    ramp = np.add.outer(np.arange(32), np.arange(24)).astype(np.uint8) * 3
    pixels = ramp if channels == 1 else np.dstack([ramp] * channels)
    image = ImageFile(pixels, None if channels == 1 else 2, None, "JPEG")
    back = round_trip(image, tmp_path / "a.jpg")
    assert back.channel_axis == image.channel_axis
    assert np.abs(back.pixels.astype(int) - pixels).max() <= 3


def test_jpeg_keeps_colour_at_full_resolution(tmp_path: Path) -> None:
    stripes = np.zeros((32, 32, 3), np.uint8)
    stripes[:, ::2, 0] = stripes[:, 1::2, 2] = 200  # red and blue in turn
    back = round_trip(ImageFile(stripes, 2, None, ""), tmp_path / "a.jpg")
    assert np.abs(back.pixels.astype(int) - stripes).mean() < 10


@pytest.mark.parametrize("name", ["a.png", "a.webp", "a.tif"])
@pytest.mark.parametrize("channels", [1, 3])
def test_alpha_is_split_off_and_put_back_untouched(
    tmp_path: Path, name: str, channels: int
) -> None:
    if name == "a.webp" and channels == 1:
        pytest.skip("WebP has no grey")
    source = tmp_path / "source.png"
    stored = random_pixels((6, 7, channels + 1), "u1")
    stored[0, :, -1] = 0  # colours under full transparency are kept too
    picture = Image.fromarray(stored)
    assert picture.mode == ("LA" if channels == 1 else "RGBA")
    picture.save(source)
    image = read_image(source)
    assert image.pixels.shape == ((6, 7) if channels == 1 else (6, 7, 3))
    assert image.alpha is not None
    np.testing.assert_array_equal(image.alpha, stored[..., -1])

    changed = (255 - image.pixels).astype(np.uint8)
    write_image(tmp_path / name, changed, image)
    back = read_image(tmp_path / name)
    np.testing.assert_array_equal(back.pixels, changed)
    assert back.alpha is not None
    np.testing.assert_array_equal(back.alpha, image.alpha)


def test_palette_png_becomes_rgb_or_rgba(tmp_path: Path) -> None:
    picture = Image.fromarray(random_pixels((6, 7, 3), "u1")).convert("P")
    expected = np.asarray(picture.convert("RGB"))
    picture.save(tmp_path / "p.png")
    image = read_image(tmp_path / "p.png")
    assert image.channel_axis == 2
    assert image.alpha is None
    np.testing.assert_array_equal(image.pixels, expected)

    picture.save(tmp_path / "t.png", transparency=int(np.asarray(picture)[0, 0]))
    see_through = read_image(tmp_path / "t.png")
    np.testing.assert_array_equal(see_through.pixels, expected)
    assert see_through.alpha is not None
    assert see_through.alpha[0, 0] == 0


def test_transparent_colour_of_a_grey_png_becomes_alpha(tmp_path: Path) -> None:
    for dtype, opaque in (("u1", 255), ("u2", 65535)):
        pixels = np.arange(20, dtype=dtype).reshape(4, 5)
        Image.fromarray(pixels).save(tmp_path / "t.png", transparency=7)
        image = read_image(tmp_path / "t.png")
        np.testing.assert_array_equal(image.pixels, pixels)
        assert image.alpha is not None
        np.testing.assert_array_equal(image.alpha, np.where(pixels == 7, 0, opaque))


def test_one_bit_pictures_become_8_bit_grey(tmp_path: Path) -> None:
    bits = rng.random((6, 7)) > 0.5
    Image.fromarray(bits).save(tmp_path / "b.png")
    tifffile.imwrite(tmp_path / "b.tif", bits, photometric="minisblack")
    tifffile.imwrite(tmp_path / "w.tif", ~bits, photometric="miniswhite")
    for name in ("b.png", "b.tif", "w.tif"):
        image = read_image(tmp_path / name)
        np.testing.assert_array_equal(image.pixels, bits * np.uint8(255))


@pytest.mark.parametrize("interlaced", [False, True])
@pytest.mark.parametrize(("colour_type", "samples"), [(2, 3), (4, 2), (6, 4)])
def test_16_bit_colour_png_keeps_all_bits(
    tmp_path: Path, colour_type: int, samples: int, interlaced: bool
) -> None:
    """Pillow would drop the lower 8 bits without a word."""
    stored = random_pixels((8, 8, samples), "u2")
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in stored)
    if interlaced:  # the seven passes of Adam7
        starts = [(0, 0), (0, 4), (4, 0), (0, 2), (2, 0), (0, 1), (1, 0)]
        steps = [(8, 8), (8, 8), (8, 4), (4, 4), (4, 2), (2, 2), (2, 1)]
        passes = [stored[y::dy, x::dx] for (y, x), (dy, dx) in zip(starts, steps, strict=True)]
        rows = b"".join(b"\0" + row.astype(">u2").tobytes() for part in passes for row in part)
    header = struct.pack(">IIBBBBB", 8, 8, 16, colour_type, 0, 0, interlaced)
    path = tmp_path / "deep.png"
    path.write_bytes(png_of([(b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]))
    image = read_image(path)
    assert image.pixels.dtype == np.uint16
    back = round_trip(image, tmp_path / "out.png")
    assert_same(back, image)
    together = image.pixels.reshape(8, 8, -1)
    if image.alpha is not None:
        together = np.dstack([together, image.alpha])
    np.testing.assert_array_equal(together, stored)


def png_of(chunks: list[tuple[bytes, bytes]]) -> bytes:
    """Return a PNG of these chunks."""
    data = b"\x89PNG\r\n\x1a\n"
    for kind, body in chunks:
        data += struct.pack(">I", len(body)) + kind + body
        data += struct.pack(">I", zlib.crc32(kind + body))
    return data


def test_exif_orientation_turns_the_picture_upright(tmp_path: Path) -> None:
    pixels = random_pixels((4, 6, 3), "u1")
    exif = Image.Exif()
    exif[0x0112] = 6  # turn a quarter clockwise to see it upright
    Image.fromarray(pixels).save(tmp_path / "a.png", exif=exif)
    np.testing.assert_array_equal(read_image(tmp_path / "a.png").pixels, np.rot90(pixels, -1))


# --- TIFF: layouts ----------------------------------------------------------------------------

LAYOUTS: dict[str, tuple[tuple[int, ...], dict[str, Any], int | None, bool]] = {
    # name: shape, arguments of imwrite, channel axis, has alpha
    "volume 3 wide": ((5, 4, 3), {"photometric": "minisblack"}, None, False),
    "volume 4 wide": ((5, 6, 4), {"photometric": "minisblack"}, None, False),
    "rgb": ((5, 4, 3), {"photometric": "rgb"}, 2, False),
    "rgba": ((5, 4, 4), {"photometric": "rgb", "extrasamples": [2]}, 2, True),
    "planar rgb": ((3, 5, 4), {"photometric": "rgb", "planarconfig": "separate"}, 0, False),
    "planar rgba": (
        (4, 5, 4),
        {"photometric": "rgb", "planarconfig": "separate", "extrasamples": [1]},
        0,
        True,
    ),
    "stack of rgb": ((7, 5, 4, 3), {"photometric": "rgb"}, 3, False),
    "stack of planar rgb": (
        (7, 3, 5, 4),
        {"photometric": "rgb", "planarconfig": "separate"},
        1,
        False,
    ),
    "grey and alpha": (
        (5, 4, 2),
        {"photometric": "minisblack", "planarconfig": "contig", "extrasamples": [2]},
        None,
        True,
    ),
    "six bands": (
        (5, 4, 6),
        {"photometric": "minisblack", "planarconfig": "contig"},
        2,
        False,
    ),
    "cmyk": ((5, 4, 4), {"photometric": "separated"}, 2, False),
    "channels": ((2, 5, 4), {"photometric": "minisblack", "metadata": {"axes": "CYX"}}, 0, False),
    "channels of a stack": ((6, 2, 5, 4), {"imagej": True, "metadata": {"axes": "ZCYX"}}, 1, False),
    "time": ((6, 5, 4), {"photometric": "minisblack", "metadata": {"axes": "TYX"}}, None, False),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["u1", "u2"])
def test_tiff_layouts_are_understood_and_kept(tmp_path: Path, layout: str, dtype: str) -> None:
    shape, arguments, axis, has_alpha = LAYOUTS[layout]
    stored = random_pixels(shape, dtype)
    tifffile.imwrite(tmp_path / "in.tif", stored, **arguments)
    image = read_image(tmp_path / "in.tif")
    assert image.channel_axis == axis
    assert (image.alpha is not None) == has_alpha

    back = round_trip(image, tmp_path / "out.tif")
    assert_same(back, image)
    with (
        tifffile.TiffFile(tmp_path / "in.tif") as old,
        tifffile.TiffFile(tmp_path / "out.tif") as new,
    ):
        before, after = old.series[0], new.series[0]
        np.testing.assert_array_equal(after.asarray(), stored)
        assert after.axes == before.axes
        for tag in ("photometric", "planarconfig", "extrasamples"):
            assert getattr(after.keyframe, tag) == getattr(before.keyframe, tag)


def test_white_is_high_whatever_the_tiff_says(tmp_path: Path) -> None:
    stored = random_pixels((5, 4), "u1")
    tifffile.imwrite(tmp_path / "w.tif", stored, photometric="miniswhite")
    image = read_image(tmp_path / "w.tif")
    np.testing.assert_array_equal(image.pixels, 255 - stored)
    assert_same(round_trip(image, tmp_path / "w.png"), image)
    assert_same(round_trip(image, tmp_path / "w2.tif"), image)


@pytest.mark.parametrize("byteorder", ["<", ">"])
def test_pixels_are_in_native_byte_order(tmp_path: Path, byteorder: str) -> None:
    pixels = random_pixels((5, 4), "u2")
    tifffile.imwrite(tmp_path / "a.tif", pixels, byteorder=byteorder)
    np.save(tmp_path / "a.npy", pixels.astype(byteorder + "u2"))
    for name in ("a.tif", "a.npy"):
        image = read_image(tmp_path / name)
        assert image.pixels.dtype.isnative
        np.testing.assert_array_equal(image.pixels, pixels)


@pytest.mark.parametrize("compression", ["tiff_lzw", "tiff_adobe_deflate", "packbits"])
@pytest.mark.parametrize("kind", ["grey", "rgb", "deep grey"])
def test_compressed_tiffs_are_read_whole(tmp_path: Path, compression: str, kind: str) -> None:
    shape = (40, 30, 3) if kind == "rgb" else (40, 30)
    pixels = random_pixels(shape, "u2" if kind == "deep grey" else "u1")
    Image.fromarray(pixels).save(tmp_path / "c.tif", compression=compression)
    np.testing.assert_array_equal(read_image(tmp_path / "c.tif").pixels, pixels)


def test_lzw_stack_is_read_whole(tmp_path: Path) -> None:
    stack = random_pixels((3, 20, 30), "u1")
    first, *others = [Image.fromarray(page) for page in stack]
    first.save(tmp_path / "s.tif", compression="tiff_lzw", save_all=True, append_images=others)
    image = read_image(tmp_path / "s.tif")
    assert image.channel_axis is None
    np.testing.assert_array_equal(image.pixels, stack)


def test_premultiplied_colours_of_an_lzw_tiff_are_read_as_stored_or_not_at_all(
    tmp_path: Path,
) -> None:
    stored = random_pixels((8, 8, 4), "u1")
    path = tmp_path / "a.tif"
    Image.fromarray(stored).save(path, compression="tiff_lzw")
    with tifffile.TiffFile(path, mode="r+b") as tiff:
        tiff.pages[0].tags[338].overwrite(1)  # ExtraSamples: associated alpha
    try:
        pixels = read_image(path).pixels
    except FileError as error:
        pixels, said = None, str(error)
    if pixels is None:
        assert "pip install imagecodecs" in said
    else:
        np.testing.assert_array_equal(pixels, stored[..., :3])


@pytest.mark.parametrize("compression", ["raw", "tiff_lzw", "tiff_adobe_deflate"])
def test_pixels_beyond_the_end_of_a_tiff_are_called_so(tmp_path: Path, compression: str) -> None:
    path = tmp_path / "a.tif"
    Image.fromarray(random_pixels((40, 30), "u1")).save(path, compression=compression)
    with tifffile.TiffFile(path, mode="r+b") as tiff:
        tiff.pages[0].tags[273].overwrite(path.stat().st_size - 5)  # StripOffsets
    with pytest.raises(FileError, match="is truncated"):
        read_image(path)


def test_palette_tiff_becomes_rgb(tmp_path: Path) -> None:
    picture = Image.fromarray(random_pixels((6, 7, 3), "u1")).convert("P")
    picture.save(tmp_path / "p.tif")
    image = read_image(tmp_path / "p.tif")
    np.testing.assert_array_equal(image.pixels, np.asarray(picture.convert("RGB")))
    assert_same(round_trip(image, tmp_path / "q.tif"), image)


def test_a_thumbnail_is_not_a_second_image_but_another_picture_is(tmp_path: Path) -> None:
    pixels = random_pixels((8, 8), "u1")
    for name, subfiletype in (("thumb.tif", 1), ("two.tif", 0)):
        with tifffile.TiffWriter(tmp_path / name) as writer:
            writer.write(pixels, metadata=None)
            writer.write(pixels[:5, :3].copy(), subfiletype=subfiletype, metadata=None)
    np.testing.assert_array_equal(read_image(tmp_path / "thumb.tif").pixels, pixels)
    with pytest.raises(FileError, match="holds 2 images"):
        read_image(tmp_path / "two.tif")
    both = read_images(tmp_path / "two.tif")
    assert [image.pixels.shape for image in both] == [(8, 8), (5, 3)]
    write_images(tmp_path / "out.tif", both)
    for old, new in zip(both, read_images(tmp_path / "out.tif"), strict=True):
        assert_same(new, old)


# --- .npy and formats apart from names -----------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "axis"),
    [((5, 4), None), ((5, 4, 3), 2), ((6, 5, 4, 3), 3), ((5, 4, 4), None), ((3, 5, 4), None)],
)
def test_npy_is_colour_only_with_a_last_axis_of_three(
    tmp_path: Path, shape: tuple[int, ...], axis: int | None
) -> None:
    np.save(tmp_path / "a.npy", np.zeros(shape, np.float32))
    assert read_image(tmp_path / "a.npy").channel_axis == axis


def test_content_decides_the_format_not_the_name(tmp_path: Path) -> None:
    pixels = random_pixels((5, 4), "u1")
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, format="BMP")
    (tmp_path / "a.png").write_bytes(buffer.getvalue())
    image = read_image(tmp_path / "a.png")
    assert image.format == "BMP"
    np.testing.assert_array_equal(image.pixels, pixels)


# --- refusals, before the work -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "image", "says"),
    [
        ("a.jpg", ImageFile(np.zeros((4, 4), np.float32), None, None, ""), "float32.*.tif or .npy"),
        ("a.png", ImageFile(np.zeros((4, 4), np.float64), None, None, ""), "float64.*.tif or .npy"),
        ("a.jpg", ImageFile(np.zeros((4, 4, 3), np.uint16), 2, None, ""), "uint16 RGB.*.png"),
        ("a.fits", ImageFile(np.zeros((4, 4), np.float16), None, None, ""), "float16.*.tif"),
        ("a.bmp", ImageFile(np.zeros((4, 4), np.uint16), None, None, ""), "uint16 grey.*.png"),
        ("a.webp", ImageFile(np.zeros((4, 4), np.int32), None, None, ""), "int32.*.tif"),
        ("a.png", ImageFile(np.zeros((4, 4, 4), np.uint8), None, None, ""), "2-D.*.tif"),
        ("a.png", ImageFile(np.zeros((4, 4, 2), np.uint8), 2, None, ""), "2 channels.*.tif"),
        ("a.jpg", ImageFile(np.zeros((4, 4, 4), np.uint8), 2, None, "TIFF"), "4 channels.*.tif"),
        (
            "a.webp",
            ImageFile(np.zeros((1, 20000), np.uint8), None, None, ""),
            "16383.*.png or .tif",
        ),
        ("a.gif", ImageFile(np.zeros((4, 4), np.uint8), None, None, ""), "'.gif'.*use one of .png"),
        ("a", ImageFile(np.zeros((4, 4), np.uint8), None, None, ""), "without ending"),
        ("no/a.png", ImageFile(np.zeros((4, 4), np.uint8), None, None, ""), "no folder"),
    ],
)
def test_what_cannot_be_written_is_refused_with_what_would_work(
    tmp_path: Path, name: str, image: ImageFile, says: str
) -> None:
    path = tmp_path / name
    with pytest.raises(FileError, match=says) as caught:
        check_writable(path, image)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    with pytest.raises(FileError, match=says):
        write_image(path, image.pixels, image)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["a.jpg", "a.bmp", "a.npy", "a.fits", "a.zarr"])
def test_alpha_is_never_dropped_without_a_word(tmp_path: Path, name: str) -> None:
    image = ImageFile(np.zeros((4, 4, 3), np.uint8), 2, np.zeros((4, 4), np.uint8), "PNG")
    with pytest.raises(FileError, match=r"no alpha channel; write to \.png"):
        check_writable(tmp_path / name, image)


def test_pixels_must_match_the_file_they_came_from(tmp_path: Path) -> None:
    like = ImageFile(np.zeros((4, 4), np.uint8), None, np.zeros((4, 4), np.uint8), "PNG")
    with pytest.raises(FileError, match=r"shape \(4, 4\), got \(5, 4\)"):
        write_image(tmp_path / "a.png", np.zeros((5, 4), np.uint8), like)
    with pytest.raises(FileError, match="uint8 as their alpha is, got uint16"):
        write_image(tmp_path / "a.png", np.zeros((4, 4), np.uint16), like)


# --- damaged and hostile files -----------------------------------------------------------------


def sample_files() -> dict[str, bytes]:
    """Return one small valid file of each format."""
    pixels = np.random.default_rng(1).integers(0, 256, (24, 20, 3), dtype=np.uint8)
    found = {}
    for format in ("PNG", "JPEG", "BMP", "WEBP"):
        buffer = io.BytesIO()
        Image.fromarray(pixels).save(buffer, format=format)
        found[format] = buffer.getvalue()
    for name, compression in (("TIFF", None), ("TIFF deflate", "zlib")):
        buffer = io.BytesIO()
        tifffile.imwrite(buffer, pixels, photometric="rgb", compression=compression)
        found[name] = buffer.getvalue()
    buffer = io.BytesIO()
    np.save(buffer, pixels)
    found["NPY"] = buffer.getvalue()
    return found


SAMPLES = sample_files()


@pytest.mark.parametrize("kind", SAMPLES)
@pytest.mark.parametrize("part", [0.0, 0.01, 0.1, 0.5, 0.9])
def test_truncated_files_are_one_line_errors(
    tmp_path: Path, kind: str, part: float, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "cut"
    path.write_bytes(SAMPLES[kind][: int(len(SAMPLES[kind]) * part)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(FileError) as caught:
            read_image(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)
    assert capfd.readouterr() == ("", "")  # nothing prints below the command line


def test_a_damaged_tiff_prints_nothing(tmp_path: Path) -> None:
    path = tmp_path / "cut.tif"
    path.write_bytes(SAMPLES["TIFF"][:200])
    code = (
        "import sys; from symsmooth.io import *\n"
        "try: read_image(sys.argv[1])\n"
        "except FileError: print('refused')"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(symsmooth.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, env=environment
    )
    assert (done.stdout, done.stderr) == ("refused\n", "")


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    kind=st.sampled_from(sorted(SAMPLES)),
    changes=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), max_size=6),
    header_only=st.booleans(),
)
def test_damaged_files_give_a_picture_or_a_file_error(
    tmp_path: Path, kind: str, changes: list[tuple[float, int]], header_only: bool
) -> None:
    data = bytearray(SAMPLES[kind])
    span = min(len(data), 300) if header_only else len(data)
    for place, value in changes:
        data[int(place * span)] = value
    path = tmp_path / "damaged"
    path.write_bytes(data)
    said = ""
    try:
        pixels = read_image(path).pixels
    except FileError as error:
        said = str(error)
    assert "\n" not in said
    if not said:
        assert pixels.dtype.kind in "uif"
        assert pixels.size > 0


def test_an_npy_file_runs_no_code_and_claims_no_more_than_it_has(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[Any, tuple[str]]:
            return os.mkdir, (str(tmp_path / "sprung"),)

    np.save(tmp_path / "evil.npy", np.array([Trap()], dtype=object), allow_pickle=True)
    with open(tmp_path / "huge.npy", "wb") as handle:
        header = {"descr": "<f8", "fortran_order": False, "shape": (2**40, 2**10)}
        np.lib.format.write_array_header_1_0(handle, header)
    for name in ("evil.npy", "huge.npy"):
        with pytest.raises(FileError):
            read_image(tmp_path / name)
    assert not (tmp_path / "sprung").exists()


def test_decompression_bombs_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 10)
    (tmp_path / "bomb.png").write_bytes(SAMPLES["PNG"])
    with pytest.raises(FileError, match="more pixels than is safe"):
        read_image(tmp_path / "bomb.png")


@pytest.mark.parametrize("dtype", ["bool", "complex64", "U3"])
def test_arrays_that_are_no_pixels_are_refused(tmp_path: Path, dtype: str) -> None:
    np.save(tmp_path / "a.npy", np.zeros((4, 4), dtype))
    with pytest.raises(FileError, match="save it as integers or floats"):
        read_image(tmp_path / "a.npy")


def test_what_is_no_file_is_a_file_error(tmp_path: Path) -> None:
    (tmp_path / "text.png").write_text("hello")
    (tmp_path / "empty.png").write_bytes(b"")
    for name, says in (
        ("none.png", "no such file"),
        ("", "is a folder"),
        ("text.png", "is not PNG"),
        ("empty.png", "is empty"),
    ):
        with pytest.raises(FileError, match=says):
            read_image(tmp_path / name)


def test_animations_are_refused(tmp_path: Path) -> None:
    frames = [Image.fromarray(random_pixels((8, 8, 3), "u1")) for _ in range(2)]
    for name in ("a.webp", "a.png"):
        frames[0].save(tmp_path / name, save_all=True, append_images=frames[1:])
        with pytest.raises(FileError, match="animation"):
            read_image(tmp_path / name)


# --- writing is all or nothing -------------------------------------------------------------------


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError("disk full"), MemoryError])
@pytest.mark.parametrize("name", ["a.png", "a.jpg", "a.tif", "a.fits", "a.npy"])
def test_a_failed_write_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Any, name: str
) -> None:
    path = tmp_path / name
    path.write_bytes(b"old")
    real_write = formats.module_of(formats.format_of(path)).write

    def fail_at_the_end(place: Any, images: list[ImageFile], format: str, note: str) -> None:
        real_write(place, images, format, note)
        assert len(list(tmp_path.iterdir())) == 2  # the half-written file is there, beside the old
        raise error

    monkeypatch.setattr(formats.module_of(formats.format_of(path)), "write", fail_at_the_end)
    expected = KeyboardInterrupt if error is KeyboardInterrupt else FileError
    with pytest.raises(expected):
        write_image(path, np.zeros((4, 4), np.uint8))
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_bytes() == b"old"


def test_a_failed_rename_leaves_no_temporary_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise PermissionError("not allowed")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(FileError, match="cannot be written: not allowed"):
        write_image(tmp_path / "a.png", np.zeros((4, 4), np.uint8))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name != "posix", reason="modes and links of POSIX")
def test_written_files_have_the_usual_mode_and_links_are_followed(tmp_path: Path) -> None:
    usual = tmp_path / "usual"
    usual.touch()
    write_image(tmp_path / "a.png", np.zeros((4, 4), np.uint8))
    assert (tmp_path / "a.png").stat().st_mode == usual.stat().st_mode

    (tmp_path / "a.png").chmod(0o640)
    (tmp_path / "link.png").symlink_to(tmp_path / "a.png")
    write_image(tmp_path / "link.png", np.ones((4, 4), np.uint8))
    assert (tmp_path / "link.png").is_symlink()
    assert read_image(tmp_path / "a.png").pixels[0, 0] == 1
    assert (tmp_path / "a.png").stat().st_mode & 0o777 == 0o640


def in_mp4(brand: bytes) -> bytes:
    return b"\0\0\0\x1cftyp" + brand + bytes(16)


@pytest.mark.parametrize(
    ("name", "data", "told"),
    [
        ("a.gif", b"GIF89a" + bytes(20), "is a GIF.*convert it: magick in.gif out.png"),
        ("a.heic", in_mp4(b"heic"), "is a HEIC picture; export it as JPEG .* heif-convert"),
        ("a.avif", in_mp4(b"avif"), "is an AVIF picture; convert it: avifdec"),
        ("a.dcm", bytes(128) + b"DICM", "is a DICOM file; convert a series with dcm2niix"),
        ("a.hdr", bytes(344) + b"ni1\0", "pair; make it one file: nib-convert"),
        ("a.gz", b"\x1f\x8b" + bytes(9), "is a damaged gzip file"),
        ("a.mp4", in_mp4(b"isom"), "is a video, not a picture; symsmooth denoise|needs av; pip"),
        ("a.txt", b"no picture", "is not PNG, .*NIfTI, MRC.*; convert it"),
    ],
)
def test_what_is_known_and_not_read_says_what_converts_it(
    tmp_path: Path, name: str, data: bytes, told: str
) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(FileError, match=told) as caught:
        read_image(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_pictures_for_the_eye_that_are_not_written_name_what_is(tmp_path: Path) -> None:
    for name in ("a.heic", "a.HEIF", "a.avif"):
        with pytest.raises(FileError, match=r"cannot write .*; use \.jpg, or \.png") as caught:
            write_image(tmp_path / name, np.zeros((4, 4), np.uint8))
        assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "library", "extra"), [("nifti", "nibabel", "mri"), ("mrc", "mrcfile", "em")]
)
def test_formats_that_need_a_library_name_its_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, library: str, extra: str
) -> None:
    for module in [m for m in sys.modules if m == library or m.startswith(f"{library}.")]:
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.delitem(sys.modules, f"symsmooth.io.{name}", raising=False)
    file = tmp_path / {"nifti": "a.nii", "mrc": "a.mrc"}[name]
    marks = {"nifti": bytes(344) + b"n+1\0", "mrc": bytes(208) + b"MAP "}
    file.write_bytes(marks[name])
    with pytest.raises(FileError, match=rf"needs {library}; pip install 'symsmooth\[{extra}\]'"):
        read_image(file)


@pytest.mark.parametrize("name", [name for name, each in formats.FORMATS.items() if each.module])
def test_a_format_is_a_record_and_a_module(name: str) -> None:
    record = formats.FORMATS[name]
    if record.needs is not None:
        pytest.importorskip(record.needs[0])
    module = formats.module_of(name)
    assert callable(module.read)
    if record.suffixes:
        assert callable(module.write)
        assert formats.ending_of(name) == record.suffixes[0]
        assert all(formats.format_of(f"a{each}") == name for each in record.suffixes)
    assert hasattr(module, "open_source") == record.in_pieces


def test_a_sound_is_no_webp(tmp_path: Path) -> None:
    (tmp_path / "a.webp").write_bytes(b"RIFF\x24\0\0\0WAVEfmt " + bytes(40))
    with pytest.raises(FileError, match="is not PNG"):
        read_image(tmp_path / "a.webp")


@pytest.mark.parametrize("end", [".jfif", ".jpe", ".JFIF"])
def test_a_jpeg_by_another_ending_is_one(tmp_path: Path, end: str) -> None:
    pixels = np.random.default_rng(0).integers(90, 110, (16, 16), dtype=np.uint8)
    write_image(tmp_path / f"a{end}", pixels)
    assert read_image(tmp_path / f"a{end}").format == "JPEG"
