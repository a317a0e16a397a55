"""DNG files come back as they were, with other pixels; LibRaw opens what we write."""

from __future__ import annotations

import io
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from skimage import data

from symsmooth.io import FileError, ImageFile, read_images, write_images
from symsmooth.io.base import OpenFile
from symsmooth.io.dng import Camera
from symsmooth.io.formats import detect_format
from symsmooth.io.ifd import append_directory, put_value
from symsmooth.io.images import Details, RawInfo
from symsmooth.raw.mosaic import parse_pattern
from symsmooth_repro.sensor import Sensor

from ..dngs import NOTE, PREVIEW, dng

rawpy = pytest.importorskip("rawpy")
camera_raw = pytest.importorskip("symsmooth.io.camera_raw")

BAYER = ("RGGB", "BGGR", "GRBG", "GBRG")
LAYOUTS: dict[str, dict[str, Any]] = {
    "strips": {},
    "big-endian": {"order": ">"},
    "tiles": {"tile": 64},
    "lossless JPEG": {"tile": 64, "packed": True},
    "no preview": {"below": False},
    "turned": {"orientation": 6},
}


@pytest.fixture(scope="module")
def scene() -> np.ndarray:
    return data.astronaut()[:150, 100:300] / 255.0


def tags_of(path: Path) -> list[dict[int, Any]]:
    """All tags of all directories but those of where pixels are."""
    with tifffile.TiffFile(path) as tiff:
        first = tiff.pages[0].aspage()
        pages = [first, *(first.pages or [])]
        left_out = (273, 279, 324, 325, 330)
        return [{t.code: t.value for t in page.tags if t.code not in left_out} for page in pages]


def developed(path: Path) -> np.ndarray:
    with rawpy.imread(str(path)) as raw:
        return np.asarray(raw.postprocess(use_camera_wb=True, no_auto_bright=True))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_dng_comes_back_with_every_tag(layout: str, tmp_path: Path, scene: np.ndarray) -> None:
    sensor = Sensor(100, "GRBG")
    noisy, clean = sensor.expose(scene)
    source, target = tmp_path / "in.dng", tmp_path / "out.dng"
    source.write_bytes(dng(noisy, sensor, **LAYOUTS[layout]))
    (image,) = read_images(source)
    assert np.array_equal(image.pixels, noisy)
    new = np.rint(clean).astype(np.uint16)
    write_images(target, [replace(image, pixels=new)], "a note")
    assert np.array_equal(read_images(target)[0].pixels, new)
    with rawpy.imread(str(target)) as raw:
        assert np.array_equal(raw.raw_image_visible, new)
    before, after = tags_of(source), tags_of(target)
    for old, changed in zip(before, after, strict=True):
        old.pop(51111, None)  # a digest of the old pixels
        software = changed.pop(305) if 305 in changed else ""
        assert "a note" in software or changed[254] == 0
        old.pop(305, None)
        assert changed == old
    assert before[0][50740] == NOTE
    with tifffile.TiffFile(target) as tiff:
        if LAYOUTS[layout].get("below", True):
            assert np.array_equal(tiff.pages[0].asarray(), PREVIEW)
    assert developed(source).shape == developed(target).shape


def test_a_packed_dng_stays_packed(tmp_path: Path, scene: np.ndarray) -> None:
    sensor = Sensor(100)
    noisy, clean = sensor.expose(scene)
    source, target = tmp_path / "in.dng", tmp_path / "out.dng"
    source.write_bytes(dng(noisy, sensor, tile=64, packed=True))
    (image,) = read_images(source)
    write_images(target, [replace(image, pixels=np.rint(clean).astype(np.uint16))])
    assert target.stat().st_size < 1.2 * source.stat().st_size


@pytest.mark.parametrize("pattern", [*BAYER, "X-Trans"])
def test_libraw_develops_both_alike(pattern: str, tmp_path: Path) -> None:
    """Same geometry, same colours: the mean of each channel stays where it was."""
    sensor = Sensor(2000, pattern)
    noisy, clean = sensor.expose(data.astronaut() / 255.0)
    source, target = tmp_path / "in.dng", tmp_path / "out.dng"
    source.write_bytes(dng(noisy, sensor))
    (image,) = read_images(source)
    write_images(target, [replace(image, pixels=np.rint(clean).astype(np.uint16))], "note")
    before, after = developed(source).astype(float), developed(target).astype(float)
    assert before.shape == after.shape
    assert np.allclose(before.mean(axis=(0, 1)), after.mean(axis=(0, 1)), atol=1.0)
    assert np.corrcoef(before.ravel(), after.ravel())[0, 1] > 0.99


@pytest.mark.parametrize("pattern", [*BAYER, "X-Trans"])
def test_a_new_dng_says_what_a_camera_said(pattern: str, tmp_path: Path) -> None:
    sensor = Sensor(100, pattern)
    noisy, _ = sensor.expose(data.astronaut() / 255.0)
    tile = parse_pattern(pattern)
    info = RawInfo(tile, np.full((2, 2), 1024.5), sensor.white, (slice(0, 512), slice(0, 512)))
    camera = {
        "make": "Maker", "model": "Maker X", "orientation": 3, "neutral": (0.5, 1.0, 0.6),
        "exif": {33434: (5, 1, struct.pack("<2I", 1, 125)), 42036: (2, 5, b"Lens\0")},
    }  # fmt: skip
    image = ImageFile(noisy, None, None, "RAW", Details(raw=info, own=Camera(**camera)))
    target = tmp_path / "new.dng"
    write_images(target, [image], "a note")
    assert detect_format(target) == "DNG"
    with rawpy.imread(str(target)) as raw:
        assert np.array_equal(raw.raw_image_visible, noisy)
        assert raw.white_level == sensor.white
        assert np.allclose(raw.black_level_per_channel, 1024, atol=1)
        balance = np.array(raw.camera_whitebalance[:3])
        assert np.allclose(balance / balance[1], [2.0, 1.0, 1 / 0.6], rtol=1e-3)
        letters = raw.color_desc.decode()
        seen = raw.raw_colors_visible[: tile.shape[0], : tile.shape[1]]
        assert [["RGB".index(letters[c]) for c in row] for row in seen] == tile.tolist()
        assert raw.sizes.flip == 3
    again = read_images(target)[0]
    assert np.array_equal(again.details.raw.pattern, tile)
    assert np.allclose(again.details.raw.black, 1024.5)
    with tifffile.TiffFile(target) as tiff:
        first = tiff.pages[0].aspage()
        exif = first.tags[34665].value
        assert exif["ExposureTime"] == (1, 125)
        assert exif["LensModel"] == "Lens"
        # what the specification requires of every DNG, and of one with a mosaic
        assert {271, 272, 274, 50706, 50708, 50721, 50728} <= set(first.tags.keys())
        assert {254, 256, 257, 258, 262, 33421, 33422} <= set(first.pages[0].tags.keys())
        assert first.subfiletype == 1
        assert first.pages[0].subfiletype == 0


def test_linear_dngs(tmp_path: Path, scene: np.ndarray) -> None:
    sensor = Sensor(100)
    colour = np.rint(15000 * scene).astype(np.uint16)
    source, target = tmp_path / "in.dng", tmp_path / "out.dng"
    source.write_bytes(dng(colour, sensor))
    (image,) = read_images(source)
    assert image.channel_axis == 2
    assert image.details.raw.pattern is None
    write_images(target, [replace(image, pixels=colour // 2)])
    assert np.array_equal(read_images(target)[0].pixels, colour // 2)


def test_stored_numbers_may_stand_for_others(tmp_path: Path) -> None:
    """A linearisation table is applied, and is not in the file that has plain pixels."""
    sensor = Sensor(100, black=0, white=1000)
    table = tuple(np.linspace(0, 1000, 256).astype(int).tolist())
    stored = np.random.default_rng(0).integers(0, 256, (40, 60), dtype=np.uint16)
    source, target = tmp_path / "in.dng", tmp_path / "out.dng"
    source.write_bytes(dng(stored, sensor, more={50712: (50712, 3, 256, table, True)}))
    (image,) = read_images(source)
    assert np.array_equal(image.pixels, np.array(table, np.uint16)[stored])
    write_images(target, [image])
    (again,) = read_images(target)
    assert np.array_equal(again.pixels, image.pixels)
    assert 50712 not in tags_of(target)[1]


def test_only_the_active_area_sees_light(tmp_path: Path, scene: np.ndarray) -> None:
    sensor = Sensor(100)
    noisy, _ = sensor.expose(scene)
    source = tmp_path / "in.dng"
    source.write_bytes(dng(noisy, sensor, more={50829: (50829, 4, 4, (2, 4, 148, 196), True)}))
    info = read_images(source)[0].details.raw
    assert info.area == (slice(2, 148), slice(4, 196))


@pytest.mark.parametrize(
    ("tag", "words"),
    [
        ((50829, 4, 4, (0, 0, 9999, 9999), True), "active area"),
        ((50717, 4, 1, 5, True), "not above its black"),
        ((33422, 1, 3, bytes(3), True), "pattern"),
        ((33422, 1, 4, bytes([0, 1, 1, 9]), True), "pattern"),
        ((50714, 3, 3, (1, 2, 3), True), "black levels"),
        ((50975, 3, 1, 2, True), "interleaved"),
    ],
)
def test_tags_that_make_no_sense_are_refused(
    tag: tuple[Any, ...], words: str, tmp_path: Path, scene: np.ndarray
) -> None:
    sensor = Sensor(100)
    noisy, _ = sensor.expose(scene)
    source = tmp_path / "in.dng"
    source.write_bytes(dng(noisy, sensor, more={tag[0]: tag}))
    with pytest.raises(FileError, match=words) as error:
        read_images(source)
    assert "\n" not in str(error.value)


def test_pictures_are_not_written_as_dng(tmp_path: Path) -> None:
    image = ImageFile(np.zeros((4, 4), np.uint8), None, None, "")
    with pytest.raises(FileError, match="write this image to a TIFF"):
        write_images(tmp_path / "a.dng", [image])
    with pytest.raises(FileError, match=r"use \.dng"):
        write_images(tmp_path / "a.nef", [image])


def test_a_raw_name_is_read_by_libraw(tmp_path: Path) -> None:
    """A TIFF that is named like a camera's file, but is none, is refused in one line."""
    path = tmp_path / "a.nef"
    buffer = io.BytesIO()
    tifffile.imwrite(buffer, np.zeros((8, 8), np.uint16))
    path.write_bytes(buffer.getvalue())
    assert detect_format(path) == "RAW"
    with pytest.raises(FileError, match="LibRaw cannot read it") as error:
        read_images(path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("pattern", [*BAYER, "X-Trans"])
def test_what_libraw_reads_becomes_a_new_dng(pattern: str, order: str, tmp_path: Path) -> None:
    """The way of all other formats: geometry, colour, EXIF and maker note of the source are kept.

    Only cameras write such formats, so a DNG stands in for one.
    """
    sensor = Sensor(1000, pattern)
    noisy, _ = sensor.expose(data.astronaut() / 255.0)
    source, target = tmp_path / "in.dng", tmp_path / "out.dng"
    buffer = io.BytesIO(dng(noisy, sensor, order=order, orientation=6))
    exif = {
        33434: (5, 1, struct.pack(f"{order}2I", 1, 60)),
        34855: (3, 1, struct.pack(f"{order}H", 3200)),
        37500: (7, 40, b"note" * 10),
        42036: (2, 12, b"Some lens 50\0"[:12]),
    }
    at = append_directory(buffer, exif)
    put_value(buffer, 34665, (4, 1, struct.pack(f"{order}I", at)))
    source.write_bytes(buffer.getvalue())
    with open(source, "rb") as handle:
        (image,) = camera_raw.read(OpenFile(source, handle, "RAW"))
    assert np.array_equal(image.pixels, noisy)
    write_images(target, [image], "note")
    with rawpy.imread(str(source)) as old, rawpy.imread(str(target)) as new:
        assert np.array_equal(new.raw_image_visible, noisy)
        assert np.array_equal(old.raw_colors_visible, new.raw_colors_visible)
        assert old.black_level_per_channel == new.black_level_per_channel
        assert old.white_level == new.white_level
        assert old.sizes.flip == new.sizes.flip == 6
    assert np.abs(developed(source).astype(int) - developed(target)).max() <= 2
    with tifffile.TiffFile(target) as tiff:
        tags = tiff.pages[0].aspage().tags
        assert tags["Make"].value == "Maker"
        told = tags[34665].value
        assert told["ExposureTime"] == (1, 60)
        assert (
            told["ISOSpeedRatings" if "ISOSpeedRatings" in told else "PhotographicSensitivity"]
            == 3200
        )
        assert told["LensModel"].startswith("Some lens")
        private = bytes(tags[50740].value)
        assert private.startswith(b"Adobe\0MakN")
        assert b"note" * 10 in private
