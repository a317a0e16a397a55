"""``--method identity``: pixels come back bit for bit, metadata equal but for the note.

Files are made, and read again, by each library's own writer and reader.
"""

from __future__ import annotations

import io
import json
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from PIL import Image, ImageCms, PngImagePlugin
from typer.testing import CliRunner

from symsmooth import cli
from symsmooth.io import read_image, read_images, write_image

Array = np.ndarray[Any, Any]
NOTE = "symsmooth"


def pixels_of(shape: tuple[int, ...], dtype: str) -> Array:
    """Pixels that use all bits of an integer dtype, or floats of both signs with a NaN."""
    rng, kind = np.random.default_rng(7), np.dtype(dtype)
    if kind.kind == "f":
        values = rng.normal(0.0, 3.0, shape).astype(kind)
        values.flat[3] = np.nan
        return values
    limits = np.iinfo(kind)
    return rng.integers(limits.min, limits.max, shape, dtype=kind, endpoint=True)


def smooth(shape: tuple[int, ...]) -> Array:
    return np.indices(shape).sum(axis=0).astype(np.uint8)


def identity(source: Path, target: Path, *options: str) -> None:
    arguments = ["denoise", str(source), "-o", str(target), "--method", "identity", *options]
    result = CliRunner().invoke(cli.app, arguments)
    assert result.exit_code == 0, result.output


def assert_same_images(left: Path, right: Path) -> None:
    """Compare pixels, alpha and axes as we read them."""
    for a, b in zip(read_images(left), read_images(right), strict=True):
        assert (a.axes, a.pixels.dtype) == (b.axes, b.pixels.dtype)
        np.testing.assert_array_equal(a.pixels, b.pixels)
        assert (a.alpha is None) == (b.alpha is None)
        if a.alpha is not None:
            np.testing.assert_array_equal(a.alpha, b.alpha)


# --- Pillow's formats --------------------------------------------------------------------------


def exif_block() -> Image.Exif:
    exif = Image.Exif()
    exif[0x010F], exif[0x0110], exif[0x0112] = "Maker", "Model 5", 6
    exif[0x8298] = "(c) somebody"
    exif.get_ifd(0x8769)[0x829A] = (1, 250)
    exif.get_ifd(0x8769)[0x927C] = b"private notes of the maker \0\1\2"
    exif.get_ifd(0x8825)[1] = "N"
    return exif


ICC = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
XMP = b"<x:xmpmeta xmlns:x='adobe:ns:meta/'><a/></x:xmpmeta>"


def info_of(path: Path) -> dict[str, Any]:
    """All Pillow knows of a file; the note is taken out of Software."""
    with Image.open(path) as opened:
        opened.load()
        exif = opened.getexif()
        tags = dict(exif) | {f"exif {k}": v for k, v in exif.get_ifd(0x8769).items()}
        tags |= {f"gps {k}": v for k, v in exif.get_ifd(0x8825).items()}
        info = {k: v for k, v in opened.info.items() if k not in ("exif", "Software")}
        for name in [0x0131, 0x8769, 0x8825]:  # Software; places of the other directories
            tags.pop(name, None)
        return {"mode": opened.mode, "size": opened.size, "tags": tags} | info


def software_of(path: Path) -> str:
    with Image.open(path) as opened:
        opened.load()
        return str(opened.getexif().get(0x0131) or opened.info.get("Software", ""))


def save_png(path: Path, picture: Image.Image) -> None:
    text = PngImagePlugin.PngInfo()
    text.add_text("Title", "a title")
    text.add_itxt("Author", "Ångström", "de")
    text.add(b"gAMA", struct.pack(">I", 45455))
    text.add(b"cHRM", struct.pack(">8I", 31270, 32900, 64000, 33000, 30000, 60000, 15000, 6000))
    picture.save(path, pnginfo=text, icc_profile=ICC, exif=exif_block(), dpi=(300, 150))


MODES = {
    "L": ((20, 24), "u1"),
    "LA": ((20, 24, 2), "u1"),
    "RGB": ((20, 24, 3), "u1"),
    "RGBA": ((20, 24, 4), "u1"),
    "I;16": ((20, 24), "u2"),
}


@pytest.mark.parametrize("mode", MODES)
def test_png(tmp_path: Path, mode: str) -> None:
    stored = pixels_of(*MODES[mode])
    save_png(tmp_path / "in.png", Image.fromarray(stored))
    identity(tmp_path / "in.png", tmp_path / "out.png")
    with Image.open(tmp_path / "out.png") as opened:
        np.testing.assert_array_equal(np.asarray(opened), stored)
    assert info_of(tmp_path / "out.png") == info_of(tmp_path / "in.png")
    assert NOTE in software_of(tmp_path / "out.png")
    assert_same_images(tmp_path / "in.png", tmp_path / "out.png")


@pytest.mark.parametrize("samples", [3, 4])
def test_png_of_16_bit_colour(tmp_path: Path, samples: int) -> None:
    imagecodecs = pytest.importorskip("imagecodecs")
    stored = pixels_of((20, 24, samples), "u2")
    (tmp_path / "in.png").write_bytes(imagecodecs.png_encode(stored))
    identity(tmp_path / "in.png", tmp_path / "out.png")
    np.testing.assert_array_equal(
        imagecodecs.png_decode((tmp_path / "out.png").read_bytes()), stored
    )


def test_png_palette_keeps_its_colours_and_texts(tmp_path: Path) -> None:
    picture = Image.fromarray(pixels_of((20, 24, 3), "u1")).quantize(64)
    save_png(tmp_path / "in.png", picture)
    identity(tmp_path / "in.png", tmp_path / "out.png")
    with Image.open(tmp_path / "out.png") as opened:
        np.testing.assert_array_equal(np.asarray(opened), np.asarray(picture.convert("RGB")))
    before, after = info_of(tmp_path / "in.png"), info_of(tmp_path / "out.png")
    assert after | {"mode": "P"} == before


@pytest.mark.parametrize("mode", ["L", "RGB", "CMYK"])
def test_jpeg_that_did_not_change_is_not_coded_again(tmp_path: Path, mode: str) -> None:
    picture = Image.fromarray(smooth((20, 24))).convert(mode)
    picture.save(
        *(tmp_path / "in.jpg",),
        **{"quality": 50, "exif": exif_block(), "icc_profile": ICC, "dpi": (300, 150)},
        **{"comment": "a comment", "xmp": XMP},
    )
    identity(tmp_path / "in.jpg", tmp_path / "out.jpg")
    with Image.open(tmp_path / "in.jpg") as old, Image.open(tmp_path / "out.jpg") as new:
        np.testing.assert_array_equal(np.asarray(new), np.asarray(old))
        assert new.quantization == old.quantization
    assert info_of(tmp_path / "out.jpg") == info_of(tmp_path / "in.jpg")
    assert NOTE in software_of(tmp_path / "out.jpg")


@pytest.mark.parametrize("at", [(0, 0, 0), (19, 23, 2), (7, 11, 1)])
def test_a_jpeg_of_which_one_value_changed_is_coded_again(
    tmp_path: Path, at: tuple[int, ...]
) -> None:
    Image.fromarray(np.dstack([smooth((20, 24))] * 3)).save(tmp_path / "in.jpg", quality=50)
    image = read_image(tmp_path / "in.jpg")
    pixels = image.pixels.copy()
    pixels[at] ^= 1
    write_image(tmp_path / "out.jpg", pixels, like=image)
    with Image.open(tmp_path / "in.jpg") as old, Image.open(tmp_path / "out.jpg") as new:
        assert new.quantization != old.quantization


def test_jpeg_that_changed_keeps_its_segments(tmp_path: Path) -> None:
    picture = Image.fromarray(np.dstack([smooth((40, 48))] * 3))
    exif = exif_block()
    exif[0x0131] = "firmware 1.2"
    picture.save(tmp_path / "in.jpg", exif=exif, icc_profile=ICC, dpi=(300, 150), xmp=XMP)
    arguments = ["denoise", tmp_path / "in.jpg", "-o", tmp_path / "o.jpg", "--sigma", "9"]
    result = CliRunner().invoke(cli.app, [*map(str, arguments), "--method", "gaussian"])
    assert result.exit_code == 0, result.output
    assert info_of(tmp_path / "o.jpg") == info_of(tmp_path / "in.jpg")
    assert software_of(tmp_path / "o.jpg").startswith("firmware 1.2; symsmooth")
    with Image.open(tmp_path / "in.jpg") as old, Image.open(tmp_path / "o.jpg") as new:
        assert np.abs(np.asarray(new, float) - np.asarray(old)).mean() < 4  # turned back as stored


@pytest.mark.parametrize("mode", ["RGB", "RGBA"])
@pytest.mark.parametrize("lossless", [True, False])
def test_webp(tmp_path: Path, mode: str, lossless: bool) -> None:
    picture = Image.fromarray(pixels_of(*MODES[mode]))
    metadata = {"exif": exif_block(), "icc_profile": ICC, "xmp": XMP}
    picture.save(tmp_path / "in.webp", lossless=lossless, exact=True, **metadata)
    identity(tmp_path / "in.webp", tmp_path / "out.webp")
    with Image.open(tmp_path / "in.webp") as old, Image.open(tmp_path / "out.webp") as new:
        np.testing.assert_array_equal(np.asarray(new), np.asarray(old))
    assert info_of(tmp_path / "out.webp") == info_of(tmp_path / "in.webp")
    assert NOTE in software_of(tmp_path / "out.webp")


@pytest.mark.parametrize("mode", ["L", "RGB"])
def test_bmp(tmp_path: Path, mode: str) -> None:
    Image.fromarray(pixels_of(*MODES[mode])).save(tmp_path / "in.bmp", dpi=(300, 150))
    identity(tmp_path / "in.bmp", tmp_path / "out.bmp")
    assert (tmp_path / "out.bmp").read_bytes() == (tmp_path / "in.bmp").read_bytes()


def test_metadata_goes_along_into_other_formats(tmp_path: Path) -> None:
    picture = Image.fromarray(pixels_of((20, 24, 3), "u1"))
    picture.save(tmp_path / "in.png", icc_profile=ICC, exif=exif_block(), dpi=(300, 150))
    before = info_of(tmp_path / "in.png")
    for name in ("a.jpg", "a.webp", "b.png"):
        identity(tmp_path / "in.png", tmp_path / name)
        after = info_of(tmp_path / name)
        assert (after["tags"], after["icc_profile"]) == (before["tags"], ICC)
    identity(tmp_path / "a.jpg", tmp_path / "c.png")
    assert info_of(tmp_path / "c.png")["dpi"] == pytest.approx((300, 150), rel=1e-3)
    identity(tmp_path / "in.png", tmp_path / "a.tif")
    with tifffile.TiffFile(tmp_path / "a.tif") as tiff:
        assert tiff.pages[0].iccprofile == ICC
        assert tiff.pages[0].resolution == pytest.approx((300, 150), rel=1e-3)
        upright = np.rot90(np.asarray(picture), -1)
        np.testing.assert_array_equal(tiff.asarray(), upright)  # TIFF carries no EXIF of others


# --- TIFF --------------------------------------------------------------------------------------

OF_STORAGE = {"StripOffsets", "StripByteCounts", "TileOffsets", "TileByteCounts"}


def tags_of(path: Path) -> list[dict[str, Any]]:
    """All tags of all pages but where pixels are and the note; ImageJ's and OME's metadata."""
    with tifffile.TiffFile(path) as tiff:
        pages = []
        for page in tiff.pages:
            tags = {tag.name: tag.value for tag in page.aspage().tags.values()}
            pages.append({k: v for k, v in tags.items() if k not in OF_STORAGE | {"Software"}})
        return [*pages, {"imagej": tiff.imagej_metadata, "ome": tiff.ome_metadata}]


def check_tiff(tmp_path: Path) -> None:
    identity(tmp_path / "in.tif", tmp_path / "out.tif")
    np.testing.assert_equal(tags_of(tmp_path / "out.tif"), tags_of(tmp_path / "in.tif"))
    np.testing.assert_array_equal(
        tifffile.imread(tmp_path / "out.tif"), tifffile.imread(tmp_path / "in.tif")
    )
    with (
        tifffile.TiffFile(tmp_path / "in.tif") as old,
        tifffile.TiffFile(tmp_path / "out.tif") as new,
    ):
        assert [(s.axes, s.shape, s.dtype) for s in new.series] == [
            (s.axes, s.shape, s.dtype) for s in old.series
        ]
        assert NOTE in new.pages[0].tags["Software"].value
        assert new.byteorder == old.byteorder
    assert_same_images(tmp_path / "in.tif", tmp_path / "out.tif")


@pytest.mark.parametrize("dtype", ["u1", "u2", "u4", "i1", "i2", "i4", "f2", "f4", "f8"])
@pytest.mark.parametrize("kind", ["strips", "tiles", "zlib", "big", "swapped"])
def test_tiff_of_every_depth(tmp_path: Path, dtype: str, kind: str) -> None:
    options: dict[str, Any] = {
        "strips": {"rowsperstrip": 7},
        "tiles": {"tile": (16, 16)},
        "zlib": {"compression": "zlib", "tile": (16, 16)},
        "big": {"bigtiff": True},
        "swapped": {"byteorder": ">", "rowsperstrip": 7},
    }[kind]
    extra = [(315, 2, 8, "an artist", True), (65000, 7, 5, b"\0\1\2\3\4", True)]
    described = {"description": "what it shows", "metadata": None, "extratags": extra}
    resolution = {"resolution": (300.5, 150), "resolutionunit": 3, "datetime": True}
    tifffile.imwrite(
        tmp_path / "in.tif", pixels_of((40, 37), dtype), **options, **described, **resolution
    )
    check_tiff(tmp_path)


@pytest.mark.parametrize("compression", ["lzw", "packbits", "zstd", "lzma"])
@pytest.mark.parametrize("predictor", [False, True])
@pytest.mark.parametrize("byteorder", ["<", ">"])
def test_tiff_keeps_its_compression(
    tmp_path: Path, compression: str, predictor: bool, byteorder: str
) -> None:
    pytest.importorskip("imagecodecs")
    stored = pixels_of((40, 37, 3), "u2")
    stored[:20] = 500  # some segments become shorter, some longer
    options: dict[str, Any] = {"compression": compression, "tile": (16, 16), "photometric": "rgb"}
    if predictor and compression != "packbits":
        options["predictor"] = True
    tifffile.imwrite(tmp_path / "in.tif", stored, byteorder=byteorder, **options)
    check_tiff(tmp_path)


def test_tiff_segments_that_grow_find_a_place(tmp_path: Path) -> None:
    options: dict[str, Any] = {"compression": "zlib", "tile": (16, 16)}
    flat = np.zeros((3, 40, 37), "u2")
    tifffile.imwrite(tmp_path / "in.tif", flat, photometric="minisblack", **options)
    image = read_images(tmp_path / "in.tif")[0]
    noisy = pixels_of((3, 40, 37), "u2")
    from symsmooth.io import write_image

    write_image(tmp_path / "out.tif", noisy, image, "a note")
    np.testing.assert_array_equal(tifffile.imread(tmp_path / "out.tif"), noisy)
    np.testing.assert_equal(tags_of(tmp_path / "out.tif"), tags_of(tmp_path / "in.tif"))


STACKS: dict[str, tuple[tuple[int, ...], str, dict[str, Any]]] = {
    "hyperstack": (
        (3, 4, 2, 20, 24),
        "u2",
        {
            "imagej": True,
            "resolution": (4.5, 4.5),
            "metadata": {
                **{"axes": "TZCYX", "spacing": 0.5, "unit": "um", "finterval": 0.1},
                **{"Labels": [f"slice {i}" for i in range(24)], "Info": "made by a test"},
                **{"LUTs": [np.zeros((3, 256), np.uint8)] * 2, "Ranges": (0.0, 9.0, 1.0, 8.0)},
            },
        },
    ),
    "colour hyperstack": ((4, 20, 24, 3), "u1", {"imagej": True, "metadata": {"axes": "ZYXS"}}),
    "float hyperstack": ((5, 20, 24), "f4", {"imagej": True, "metadata": {"axes": "TYX"}}),
    "OME": (
        (3, 2, 4, 20, 24),
        "u2",
        {
            "ome": True,
            "metadata": {
                **{"axes": "TCZYX", "PhysicalSizeX": 0.2, "PhysicalSizeXUnit": "µm"},
                **{"Channel": {"Name": ["DAPI", "GFP"]}, "Description": "cells"},
            },
        },
    ),
    "OME tiles": ((4, 40, 36), "u1", {"ome": True, "tile": (16, 16), "metadata": {"axes": "ZYX"}}),
    "OME colour": ((2, 20, 24, 3), "u1", {"ome": True, "metadata": {"axes": "TYXS"}}),
    "pages": ((5, 20, 24), "u2", {"photometric": "minisblack"}),
    "planes": ((3, 20, 24), "u1", {"photometric": "rgb", "planarconfig": "separate"}),
    "white is 0": ((20, 24), "u1", {"photometric": "miniswhite"}),
    "cmyk": ((20, 24, 4), "u1", {"photometric": "separated"}),
}


@pytest.mark.parametrize("name", STACKS)
def test_tiff_stacks(tmp_path: Path, name: str) -> None:
    shape, dtype, options = STACKS[name]
    tifffile.imwrite(tmp_path / "in.tif", pixels_of(shape, dtype), **options)
    check_tiff(tmp_path)


def test_tiff_pages_keep_tags_of_their_own(tmp_path: Path) -> None:
    with tifffile.TiffWriter(tmp_path / "in.tif") as writer:
        for i in range(4):
            extra = [(51123, 2, 0, json.dumps({"time": i}), True)]
            page = pixels_of((20, 24), "u2") + np.uint16(i)
            writer.write(page, description=f"page {i}", metadata=None, extratags=extra)
    check_tiff(tmp_path)


def test_tiff_exif_is_kept(tmp_path: Path) -> None:
    exif = exif_block()
    Image.fromarray(pixels_of((20, 24, 3), "u1")).save(
        tmp_path / "in.tif", exif=exif, icc_profile=ICC
    )
    check_tiff(tmp_path)
    before, after = info_of(tmp_path / "in.tif"), info_of(tmp_path / "out.tif")
    for told in (before, after):
        for offset in (273, 279):
            told["tags"].pop(offset, None)
    assert after == before


def test_tiff_pyramids_are_made_again(tmp_path: Path) -> None:
    full = smooth((64, 96))
    with tifffile.TiffWriter(tmp_path / "in.tif") as writer:
        options: dict[str, Any] = {"tile": (16, 16), "compression": "zlib"}
        writer.write(full, subifds=2, metadata=None, **options)
        writer.write(full[::2, ::2].copy(), subfiletype=1, metadata=None, **options)
        writer.write(full[::4, ::4].copy(), subfiletype=1, metadata=None, **options)
    check_tiff(tmp_path)
    from symsmooth.io import write_image

    image = read_images(tmp_path / "in.tif")[0]
    write_image(tmp_path / "o.tif", 255 - full, image)
    with tifffile.TiffFile(tmp_path / "o.tif") as tiff:
        for step, level in zip((1, 2, 4), tiff.series[0].levels, strict=True):
            np.testing.assert_array_equal(level.asarray(), (255 - full)[::step, ::step])


# --- FITS --------------------------------------------------------------------------------------

FITS = {"u1": 8, "i2": 16, "u2": 16, "i4": 32, "u4": 32, "f4": -32, "f8": -64}


def headers_of(path: Path) -> list[list[tuple[str, Any, str]]]:
    """All cards of all parts but the note."""
    from astropy.io import fits

    with fits.open(path, do_not_scale_image_data=True) as opened:
        return [
            [
                (c.keyword, c.value, c.comment)
                for c in hdu.header.cards
                if not (c.keyword == "HISTORY" and NOTE in str(c.value))
            ]
            for hdu in opened
        ]


@pytest.mark.parametrize("dtype", FITS)
def test_fits_of_every_depth_with_all_its_parts(tmp_path: Path, dtype: str) -> None:
    fits = pytest.importorskip("astropy.io.fits")
    first, second = pixels_of((20, 24), dtype), pixels_of((3, 12, 14), dtype)
    primary = fits.PrimaryHDU(first)
    primary.header["OBJECT"] = ("M 31", "what was looked at")
    primary.header["HISTORY"] = "flat-fielded"
    primary.header["COMMENT"] = "a comment"
    primary.header["HIERARCH ESO DET GAIN"] = 1.5
    table = fits.BinTableHDU.from_columns([fits.Column("x", "E", array=np.arange(5.0))])
    cube = fits.ImageHDU(second, name="SCI")
    line = fits.ImageHDU(np.arange(9.0), name="SPECTRUM")
    fits.HDUList([primary, table, cube, line]).writeto(tmp_path / "in.fits")
    identity(tmp_path / "in.fits", tmp_path / "out.fits")
    assert headers_of(tmp_path / "out.fits") == headers_of(tmp_path / "in.fits")
    with fits.open(tmp_path / "out.fits") as opened:
        opened.verify("exception")
        np.testing.assert_array_equal(opened[0].data, first)
        np.testing.assert_array_equal(opened["SCI"].data, second)
        np.testing.assert_array_equal(opened["SPECTRUM"].data, np.arange(9.0))
        np.testing.assert_array_equal(opened[1].data["x"], np.arange(5.0))
        assert NOTE in str(opened[0].header["HISTORY"])
        assert opened[0].header["BITPIX"] == FITS[dtype]


def test_fits_scaled_integers_with_blanks_come_back_as_integers(tmp_path: Path) -> None:
    fits = pytest.importorskip("astropy.io.fits")
    stored = np.arange(480, dtype=np.int16).reshape(20, 24)
    block = fits.PrimaryHDU(stored)
    block.header["BSCALE"], block.header["BZERO"], block.header["BLANK"] = 0.25, 10.0, 7
    data = block.header.tostring().encode() + stored.astype(">i2").tobytes().ljust(2880, b"\0")
    (tmp_path / "in.fits").write_bytes(data)
    image = read_images(tmp_path / "in.fits")[0]
    assert np.isnan(image.pixels[0, 7])
    assert image.pixels[0, 8] == 12.0
    identity(tmp_path / "in.fits", tmp_path / "out.fits")
    assert headers_of(tmp_path / "out.fits") == headers_of(tmp_path / "in.fits")
    with fits.open(tmp_path / "out.fits", do_not_scale_image_data=True) as opened:
        np.testing.assert_array_equal(opened[0].data, stored)


def test_scaled_values_beyond_64_bits_are_held_at_the_limits(tmp_path: Path) -> None:
    """The largest integers of 64 bits are no floats: rounded up, they would turn into the least."""
    fits = pytest.importorskip("astropy.io.fits")
    block = fits.PrimaryHDU(np.ones((4, 5), np.int64))
    block.header["BSCALE"] = 2.0
    data = block.header.tostring().encode() + bytes(2880)
    (tmp_path / "in.fits").write_bytes(data)
    (image,) = read_images(tmp_path / "in.fits")
    from symsmooth.io import write_image

    write_image(tmp_path / "out.fits", np.array([[1e30, -1e30, 8, 0, 4]] * 4), image)
    with fits.open(tmp_path / "out.fits", do_not_scale_image_data=True) as opened:
        assert opened[0].data[0].tolist() == [2**63 - 1, -(2**63), 4, 0, 2]


def test_fits_checksums_are_true_after_a_note(tmp_path: Path) -> None:
    fits = pytest.importorskip("astropy.io.fits")
    block = fits.PrimaryHDU(pixels_of((20, 24), "i2"))
    block.add_checksum(when="updated on another day")  # the sum is over this remark, too
    pixels = block.data.astype(">i2").tobytes().ljust(2880, b"\0")
    (tmp_path / "in.fits").write_bytes(block.header.tostring().encode() + pixels)
    identity(tmp_path / "in.fits", tmp_path / "out.fits")
    with fits.open(tmp_path / "out.fits", checksum=True) as opened:  # warnings are errors
        assert opened[0].verify_checksum() == 1
        assert opened[0].verify_datasum() == 1


@pytest.mark.parametrize("dtype", ["i2", "u2", "f4"])
def test_fits_compressed_images(tmp_path: Path, dtype: str) -> None:
    fits = pytest.importorskip("astropy.io.fits")
    stored = smooth((40, 48)).astype(dtype)
    kind, level = ("GZIP_2", 0) if dtype == "f4" else ("RICE_1", 16)
    block = fits.CompImageHDU(stored, compression_type=kind, quantize_level=level)
    block.header["OBJECT"] = "M 31"
    fits.HDUList([fits.PrimaryHDU(), block]).writeto(tmp_path / "in.fits")
    identity(tmp_path / "in.fits", tmp_path / "out.fits")
    with fits.open(tmp_path / "out.fits") as opened:
        np.testing.assert_array_equal(opened[1].data, stored)
        assert opened[1].data.dtype.newbyteorder("=") == stored.dtype
        assert opened[1].compression_type == kind
        assert opened[1].header["OBJECT"] == "M 31"
        assert NOTE in str(opened[1].header["HISTORY"])


# --- .npy and Zarr ---------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["u1", "u2", "u4", "i8", "f2", "f4", "f8"])
def test_npy(tmp_path: Path, dtype: str) -> None:
    np.save(tmp_path / "in.npy", pixels_of((3, 20, 24), dtype))
    identity(tmp_path / "in.npy", tmp_path / "out.npy")
    assert (tmp_path / "out.npy").read_bytes() == (tmp_path / "in.npy").read_bytes()


def nodes_of(path: Path) -> dict[str, Any]:
    """Metadata of all nodes of a store but the note."""
    found = {}
    for file in sorted(path.rglob("*")):
        if file.name in ("zarr.json", ".zarray", ".zattrs", ".zgroup"):
            told = json.loads(file.read_text())
            for attributes in (told, told.get("attributes", {})):
                attributes.pop("symsmooth", None)
            if told or file.name != ".zattrs":
                found[str(file.relative_to(path))] = told
    return found


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("dtype", ["u1", "u2", "i4", "f4", "f8"])
def test_zarr_arrays(tmp_path: Path, version: Any, dtype: str) -> None:
    zarr = pytest.importorskip("zarr")
    stored = pixels_of((2, 40, 37), dtype)
    array = zarr.create_array(
        str(tmp_path / "in.zarr"),
        **{"shape": stored.shape, "dtype": stored.dtype, "chunks": (1, 16, 16)},
        **{"zarr_format": version, "attributes": {"scale": 0.5, "by": "a test"}},
    )
    array[...] = stored
    identity(tmp_path / "in.zarr", tmp_path / "out.zarr")
    back = zarr.open_array(str(tmp_path / "out.zarr"), mode="r")
    np.testing.assert_array_equal(back[...], stored)
    assert NOTE in str(back.attrs["symsmooth"])
    assert nodes_of(tmp_path / "out.zarr") == nodes_of(tmp_path / "in.zarr")


def make_ome_zarr(path: Path, full: Array, version: Any, how: Callable[[Array], Array]) -> None:
    """An image of three levels with labels, as OME-Zarr 0.4 (Zarr 2) or 0.5 (Zarr 3) wants it."""
    import zarr

    group = zarr.open_group(str(path), mode="w", zarr_format=version)
    axes = [{"name": name, "type": "space" if name in "zyx" else "other"} for name in "tczyx"]
    scales = {"axes": axes, "datasets": [{"path": str(i)} for i in range(3)], "name": "cells"}
    ome = {"multiscales": [scales], "omero": {"channels": [{"label": "DAPI"}, {"label": "GFP"}]}}
    group.attrs.update(ome if version == 2 else {"ome": ome | {"version": "0.5"}})
    for i in range(3):
        group.create_array(str(i), data=full, chunks=(1, 1, 2, 16, 16))
        full = how(full)
    labels = group.create_group("labels").create_group("nuclei")
    labels.create_array("0", data=np.arange(16).reshape(4, 4), chunks=(4, 4))


def every_other(full: Array) -> Array:
    return full[..., ::2, ::2]


def means(full: Array) -> Array:
    t, c, z, y, x = full.shape
    return np.rint(full.reshape(t, c, z, y // 2, 2, x // 2, 2).mean(axis=(4, 6))).astype(full.dtype)


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("how", [every_other, means])
def test_ome_zarr_with_levels_and_labels(tmp_path: Path, version: Any, how: Any) -> None:
    zarr = pytest.importorskip("zarr")
    full = pixels_of((2, 2, 3, 32, 40), "u2")
    make_ome_zarr(tmp_path / "in.zarr", full, version, how)
    (image,) = read_images(tmp_path / "in.zarr")
    assert (image.axes, image.channel_axis) == ("TCZYX", 1)
    identity(tmp_path / "in.zarr", tmp_path / "out.zarr")
    back = zarr.open_group(str(tmp_path / "out.zarr"), mode="r")
    for i in range(3):
        np.testing.assert_array_equal(back[str(i)][...], full)
        full = how(full)
    np.testing.assert_array_equal(back["labels/nuclei/0"][...], np.arange(16).reshape(4, 4))
    assert nodes_of(tmp_path / "out.zarr") == nodes_of(tmp_path / "in.zarr")


def test_arrays_become_zarr_and_zarr_becomes_tiff(tmp_path: Path) -> None:
    pytest.importorskip("zarr")
    stored = pixels_of((5, 20, 24), "u2")
    tifffile.imwrite(tmp_path / "in.tif", stored, imagej=True, metadata={"axes": "ZYX"})
    identity(tmp_path / "in.tif", tmp_path / "a.zarr")
    (image,) = read_images(tmp_path / "a.zarr")
    assert image.axes == "ZYX"
    identity(tmp_path / "a.zarr", tmp_path / "b.tif")
    with tifffile.TiffFile(tmp_path / "b.tif") as tiff:
        assert tiff.series[0].axes == "ZYX"
        np.testing.assert_array_equal(tiff.asarray(), stored)


def test_a_missing_extra_says_what_to_install(tmp_path: Path, monkeypatch: Any) -> None:
    import sys

    from symsmooth.io import FileError

    (tmp_path / "a.fits").write_bytes(b"SIMPLE  =                    T".ljust(2880))
    monkeypatch.setitem(sys.modules, "astropy", None)
    monkeypatch.setitem(sys.modules, "astropy.io", None)
    monkeypatch.delitem(sys.modules, "symsmooth.io.fits", raising=False)
    with pytest.raises(FileError, match=r"pip install 'symsmooth\[fits\]'"):
        read_images(tmp_path / "a.fits")


def test_a_note_is_not_repeated_and_a_broken_exif_block_is_left_alone() -> None:
    from symsmooth.io.ifd import exif_with_software

    made = exif_with_software(None, "symsmooth 1")
    assert made is not None
    assert exif_with_software(made, "symsmooth 1") == made
    exif = Image.Exif()
    exif.load(made)
    assert exif[0x0131] == "symsmooth 1"
    for broken in (
        b"nonsense",
        b"II*\0",
        b"II*\0\xff\xff\xff\xff",
        zlib.compress(b"x"),
        io.BytesIO().read(),
    ):
        assert exif_with_software(broken, "x") in (broken, exif_with_software(None, "x"))
