"""What is seldom: codecs that are not there, odd headers, pixels a format cannot hold, disks that fail."""

from __future__ import annotations

import errno
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from PIL import Image

from symsmooth.io import (
    FileError,
    ImageFile,
    formats,
    pillow,
    read_image,
    read_images,
    regions,
    segments,
    workplace,
    write_image,
    write_images,
)
from symsmooth.io import base as io_base
from symsmooth.io.base import commit, naming_errors
from symsmooth.io.formats import ending_of, format_of, module_of
from symsmooth.io.images import cut, native
from symsmooth.io.regions import create_target, open_source
from symsmooth.io.workplace import Workplace

rng = np.random.default_rng(0)


# --- writing: all or nothing ------------------------------------------------------------------


def test_a_folder_that_cannot_take_its_name_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = tmp_path / "a.zarr", tmp_path / ".a.part"
    for folder, text in ((old, "old"), (new, "new")):
        folder.mkdir()
        (folder / "x").write_text(text)
    real = os.replace

    def replace(source: Any, target: Any) -> None:
        if Path(source) == new:
            raise OSError(errno.EIO, "the disk fails")
        real(source, target)

    monkeypatch.setattr(io_base.os, "replace", replace)
    with pytest.raises(OSError, match="the disk fails"):
        commit(new, old)
    assert (old / "x").read_text() == "old"
    monkeypatch.setattr(io_base.os, "replace", real)
    commit(new, old)
    assert (old / "x").read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["a.zarr"]


def test_a_store_that_cannot_be_written_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    zarr = pytest.importorskip("zarr")

    def fail(*given: Any, **more: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(zarr, "create_array", fail)
    with pytest.raises(FileError, match=r"cannot be written: .*No space left"):
        write_image(tmp_path / "a.zarr", np.zeros((8, 8), np.uint8))
    assert [*tmp_path.iterdir()] == []


def test_a_target_that_cannot_be_begun_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "a.npy"
    np.save(source, np.zeros((8, 8), np.uint8))

    def fail(handle: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(regions, "reserve", fail)
    with open_source(source) as opened:
        for end in (".npy", ".tif"):
            with pytest.raises(FileError, match=r"cannot be written: .*No space left"):
                create_target(tmp_path / f"out{end}", opened)
        with pytest.raises(FileError, match="PNG cannot be written in pieces"):
            create_target(tmp_path / "out.png", opened)
    assert [path.name for path in tmp_path.iterdir()] == ["a.npy"]


def test_a_target_whose_end_fails_has_no_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "a.npy"
    np.save(source, np.ones((8, 8), np.uint8))

    def fail(temporary: Path, final: Path) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(regions, "commit", fail)
    with open_source(source) as opened:
        target = create_target(tmp_path / "out.npy", opened)
        box = (slice(0, 8), slice(0, 8))
        with pytest.raises(FileError, match=r"cannot be written: .*Input/output error"), target:
            target.write(box, opened.read(box))
    assert [path.name for path in tmp_path.iterdir()] == ["a.npy"]


def test_a_log_that_is_damaged_is_as_good_as_none(tmp_path: Path) -> None:
    place = Workplace(tmp_path / "a.npy")
    assert place.done() == set()
    place.lock()
    assert place.begin({"key": 1}, resume=False)
    place.pixels.touch()
    assert not place.begin({"key": 1}, resume=True)
    (tmp_path / ".a.npy.part" / "log").write_bytes(b'{"key": 1}\n{"box": [[0, 1\n{"box"')
    assert place.begin({"key": 1}, resume=True)
    place.release(remove=True)


def test_places_that_cannot_be_written_to_are_told_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pixels = np.zeros((8, 8), np.uint8)
    images = [ImageFile(pixels, None, None, "TIFF")] * 2
    (tmp_path / "folder.tif").mkdir()
    for path, like, message in (
        (tmp_path / "none" / "a.tif", images[:1], "there is no folder"),
        (tmp_path / "folder.tif", images[:1], "is a folder; give a file name"),
        (tmp_path / "a.png", images, "PNG takes one image here, got 2; write to a TIFF file"),
    ):
        with pytest.raises(FileError, match=message):
            formats.check_writable(path, like)
    monkeypatch.setattr(formats.os, "access", lambda path, mode: False)
    with pytest.raises(FileError, match="cannot be written to"):
        formats.check_writable(tmp_path / "a.tif", images[:1])


def test_pixels_beyond_memory_are_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.npy"
    np.save(path, np.zeros((8, 8)))

    def fail(*given: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(module_of("NPY"), "read", fail)
    with pytest.raises(FileError, match="claims more pixels than memory can hold"):
        read_images(path)


def test_what_does_not_fit_into_memory_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(io_base, "memory", lambda: 2**20)
    path = tmp_path / "a.npy"
    np.save(path, np.ones((400, 400)))
    with pytest.raises(FileError, match="GB of pixels, more than memory; cut it"):
        read_images(path)
    with pytest.raises(FileError, match="is stored in pieces of 2147483648 bytes"):
        io_base.check_declared_size(2**31, 2**31, piece=2**31, whole=False)


# --- locks ------------------------------------------------------------------------------------


def test_a_disk_without_locks_is_written_to_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fcntl = pytest.importorskip("fcntl")

    def unsupported(handle: int, how: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", unsupported)
    place = Workplace(tmp_path / "a.npy")
    place.lock()
    place.release(remove=True)
    place.release(remove=True)  # a second time does nothing
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("removed", ["lock", "folder"])
def test_a_lock_that_was_just_removed_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, removed: str
) -> None:
    """Between opening the file and locking it, the run that held it may have ended."""
    folder, tries = tmp_path / ".a.npy.part", []
    real = workplace._try_lock

    def remove(handle: int) -> bool:
        tries.append(handle)
        if len(tries) == 1:
            (folder / "lock").unlink()
            if removed == "folder":
                folder.rmdir()
        return real(handle)

    monkeypatch.setattr(workplace, "_try_lock", remove)
    place = Workplace(tmp_path / "a.npy")
    place.lock()
    assert len(tries) == 2
    assert "process" in (folder / "lock").read_text()
    place.release(remove=True)


# --- TIFF -------------------------------------------------------------------------------------


def without_codecs(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if imagecodecs were not installed."""

    def fail(self: Any, *given: Any, **more: Any) -> None:
        raise ValueError("<COMPRESSION.LZW: 5> requires the 'imagecodecs' package")

    monkeypatch.setattr(tifffile.TiffPageSeries, "asarray", fail)


@pytest.mark.parametrize("shape", [(20, 24), (20, 24, 3), (2, 20, 24)])
def test_without_codecs_pillow_decodes_what_it_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shape: tuple[int, ...]
) -> None:
    path = tmp_path / "a.tif"
    pixels = rng.integers(0, 256, shape, np.uint8)
    pages = [pixels] if shape[0] != 2 else [*pixels]
    first, *others = map(Image.fromarray, pages)
    first.save(path, compression="tiff_lzw", save_all=True, append_images=others)
    without_codecs(monkeypatch)
    found = read_image(path)
    np.testing.assert_array_equal(found.pixels.reshape(shape), pixels)


def test_without_codecs_what_nobody_decodes_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Floats of 64 bits, which Pillow does not know; pages of two kinds, of which it sees all."""
    without_codecs(monkeypatch)
    large, mixed = tmp_path / "large.tif", tmp_path / "mixed.tif"
    tifffile.imwrite(large, rng.random((20, 24)), compression="zlib")
    with tifffile.TiffWriter(mixed) as writer:
        for shape in ((20, 24), (10, 12)):
            writer.write(rng.integers(0, 256, shape, np.uint8), compression="zlib", metadata=None)
    for path in (large, mixed):
        with pytest.raises(FileError, match="pip install imagecodecs, or save it uncompressed"):
            read_images(path)


def test_pixels_that_are_no_numbers_are_refused(tmp_path: Path) -> None:
    for pixels, message in (
        (np.zeros((4, 4), complex), "holds complex128 values"),
        (np.zeros((0, 4)), "holds no pixel|empty|shape"),
    ):
        with pytest.raises(FileError, match=message):
            native(pixels)
    for pixels, message in (
        (np.zeros((4, 4), complex), "TIFF holds integers and floats"),
        (np.zeros(4), r"TIFF holds pictures and stacks, got shape \(4,\)"),
    ):
        with pytest.raises(FileError, match=message):
            write_image(tmp_path / "a.tif", pixels)


def test_a_palette_that_is_not_there_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.tif"
    palette = np.zeros((3, 256), np.uint16)
    tifffile.imwrite(
        path, np.full((8, 8), 9, np.uint8), photometric="palette", colormap=palette, metadata=None
    )
    with tifffile.TiffFile(path) as opened:
        tag = opened.pages[0].tags[320].offset
    data = bytearray(path.read_bytes())
    struct.pack_into("<H", data, tag, 65000)  # another name for it
    path.write_bytes(data)
    with pytest.raises(FileError, match="palette"):
        read_images(path)


def test_xmp_and_resolution_go_with_a_picture_to_tiff(tmp_path: Path) -> None:
    path, again = tmp_path / "a.tif", tmp_path / "b.tif"
    xmp = b"<x:xmpmeta xmlns:x='adobe:ns:meta/'/>"
    tifffile.imwrite(
        path, rng.integers(0, 256, (8, 8), np.uint8), extratags=[(700, 1, len(xmp), xmp, True)],
        resolution=(118, 118), resolutionunit="CENTIMETER", metadata=None,
    )  # fmt: skip
    found = read_image(path)
    floats = found.pixels.astype(np.float32)
    write_image(again, floats, ImageFile(floats, None, None, "NEW", found.details))
    assert read_image(again).details.xmp == xmp
    as_png = tmp_path / "c.png"
    write_image(as_png, found.pixels, found)
    assert xmp in as_png.read_bytes()


def test_pixels_are_not_written_through_a_memory_map(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a full disk that would be a crash (SIGBUS), not an error."""
    path, out = tmp_path / "a.tif", tmp_path / "b.tif"
    pixels = rng.integers(0, 256, (3, 20, 24), np.uint8)
    tifffile.imwrite(path, pixels, imagej=True, metadata={"axes": "ZYX"})
    image = read_image(path)
    with tifffile.TiffFile(path) as opened:
        assert opened.series[0].dataoffset is not None  # stored without gaps

    def fail(*given: Any, **more: Any) -> None:
        raise AssertionError("mapped")

    monkeypatch.setattr(np, "memmap", fail)
    write_image(out, 255 - image.pixels, image)
    monkeypatch.undo()
    np.testing.assert_array_equal(tifffile.imread(out), 255 - pixels)


def test_what_cannot_be_put_into_its_place_is_not(tmp_path: Path) -> None:
    """A codec that is not installed, or bits that fill no byte: such a file is written anew."""
    path = tmp_path / "a.tif"
    tifffile.imwrite(path, rng.integers(0, 256, (32, 32), np.uint8), compression="zlib")
    with tifffile.TiffFile(path) as opened:
        series = opened.series[0]
        assert segments.can_rewrite(series)

        def missing(page: Any) -> Any:
            raise KeyError("no such codec")

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(segments, "_encoder", missing)
            assert not segments.can_rewrite(series)
        series.keyframe.fillorder = 2
        assert not segments.can_rewrite(series)


# --- PNG and others ---------------------------------------------------------------------------


def test_notes_follow_what_png_says_of_its_software(tmp_path: Path) -> None:
    chunks = [(b"tEXt", b"Title\0x"), (b"tEXt", b"Software\0other 1.0")]
    for _ in range(2):  # it is said once
        pillow._add_text(chunks, "ours")
        assert chunks[1:] == [(b"tEXt", b"Software\0other 1.0; ours")]
    others = [(b"IDAT", b""), (b"tIME", b"")]
    pillow._add_text(others, "ours")
    assert others[0] == (b"tEXt", b"Software\0ours")


def test_png_with_endless_metadata_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from .test_files import png_of

    path = tmp_path / "a.png"
    header = struct.pack(">IIBBBBB", 4, 4, 8, 0, 0, 0, 0)
    import zlib

    pixels = zlib.compress(bytes(20))
    parts = [(b"IHDR", header), (b"abCd", bytes(1000)), (b"IDAT", pixels), (b"IEND", b"")]
    path.write_bytes(png_of(parts))
    assert read_image(path).pixels.shape == (4, 4)
    monkeypatch.setattr(pillow, "_MAX_METADATA", 999)
    with pytest.raises(FileError, match="more metadata than is safe"):
        read_images(path)


def test_pictures_of_other_modes_become_grey_or_colour() -> None:
    for mode, plain in (("1", "L"), ("P", "RGB"), ("PA", "RGBA"), ("I", "I;16"), ("L", "L")):
        assert pillow._plain_mode(Image.new(mode, (4, 4))).mode == plain
    see_through = Image.new("L", (4, 4))
    see_through.info["transparency"] = 0
    assert pillow._plain_mode(see_through).mode == "LA"
    with pytest.raises(FileError, match="has pixels of the kind 'HSV'"):
        pillow._plain_mode(Image.new("HSV", (4, 4)))


def test_names_without_a_format_are_told() -> None:
    with pytest.raises(FileError, match=r"which only cameras do; use \.dng"):
        format_of("a.nef")
    with pytest.raises(FileError, match="a name without ending"):
        format_of("a")
    with pytest.raises(FileError, match="RAW cannot be written"):
        ending_of("RAW")


def test_a_library_that_is_broken_is_no_missing_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib

    def fail(name: str, package: str | None = None) -> Any:
        raise ModuleNotFoundError("No module named 'x'", name=missing)

    monkeypatch.setattr(importlib, "import_module", fail)
    missing = "zarr.core"
    with pytest.raises(FileError, match=r"ZARR needs zarr; pip install 'symsmooth\[dask\]'"):
        module_of("ZARR")
    missing = "something_else"
    with pytest.raises(ModuleNotFoundError):
        module_of("ZARR")


# --- axes -------------------------------------------------------------------------------------


def test_axes_can_be_called_channels_or_not() -> None:
    stack = ImageFile(np.zeros((5, 9, 8)), None, None, "TIFF", axes="ZYX")
    assert stack.with_channels(0).axes == "CYX"
    assert stack.with_channels(2).axes == "YXC"
    assert stack.with_channels(2).with_channels(None).axes == "YXQ"
    unnamed = ImageFile(np.zeros((5, 9, 8)), None, None, "NPY")
    assert unnamed.with_channels(0).channel_axis == 0


def test_a_plane_without_names_is_the_last_two_axes() -> None:
    stack = ImageFile(np.zeros((5, 9, 8)), None, None, "TIFF", axes="QQQ")
    assert cut(stack, "none").pieces[0] == (0, slice(None), slice(None))


# --- Zarr -------------------------------------------------------------------------------------


def test_groups_are_all_the_arrays_in_them(tmp_path: Path) -> None:
    """But labels, lists and texts are no pictures."""
    zarr = pytest.importorskip("zarr")
    store, out = tmp_path / "a.zarr", tmp_path / "b.zarr"
    group = zarr.open_group(str(store), mode="w")
    pixels = rng.integers(0, 2**16, (16, 16), np.uint16)
    group.create_array("one", data=pixels)
    group.create_group("deep").create_array("two", data=pixels[::2].copy())
    group.create_group("labels").create_array("cells", data=pixels)
    group.create_array("list", data=np.arange(5))
    group.create_array("flags", data=pixels > 3)
    found = read_images(store)
    assert [image.details.own.levels for image in found] == [["deep/two"], ["one"]]
    write_images(out, found, "note")
    again = read_images(out)
    for ours, theirs in zip(again, found, strict=True):
        np.testing.assert_array_equal(ours.pixels, theirs.pixels)
    copied = zarr.open_group(str(out), mode="r")
    np.testing.assert_array_equal(copied["labels/cells"][...], pixels)
    assert copied.attrs["symsmooth"] == ["note"]
    assert open_source(store / "one").shape == (16, 16)
    with pytest.raises(FileError, match="holds 2 images; give one of them"):
        open_source(store)


def test_names_of_axes_are_believed_if_they_fit(tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    pixels = np.zeros((3, 16, 16), np.uint8)
    for names, axes in (
        (["channel", "lat", "lon"], "CYX"), (["time", "y", "x"], "TYX"), (["u", "v", "w"], "QYX"),
    ):  # fmt: skip
        path = tmp_path / f"{names[0]}.zarr"
        zarr.create_array(str(path), data=pixels, dimension_names=names)
        assert read_image(path).axes == axes
    path = tmp_path / "wrong.zarr"
    array = zarr.create_array(str(path), data=pixels, zarr_format=2)
    array.attrs["_ARRAY_DIMENSIONS"] = ["y", "x"]
    with pytest.raises(FileError, match="names 2 axes of 3"):
        read_images(path)


def test_stores_without_a_picture_are_refused(tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    empty = tmp_path / "empty.zarr"
    zarr.open_group(str(empty), mode="w").create_array("list", data=np.arange(5))
    with pytest.raises(FileError, match="holds no array of two or more dimensions"):
        read_images(empty)
    flags = tmp_path / "flags.zarr"
    zarr.create_array(str(flags), data=np.zeros((8, 8), bool))
    with pytest.raises(FileError, match="holds bool values"):
        read_images(flags)


def test_the_store_a_picture_came_from_must_be_there(tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    store = tmp_path / "a.zarr"
    zarr.create_array(str(store), data=np.zeros((8, 8), np.uint8))
    found = read_images(store)
    store.rename(tmp_path / "away.zarr")
    with pytest.raises(FileError, match=r"the store it came from, .*, is gone"):
        write_images(tmp_path / "b.zarr", found)
    alpha = ImageFile(np.zeros((8, 8)), None, np.zeros((8, 8)), "")
    with pytest.raises(FileError, match="Zarr holds no alpha channel"):
        write_images(tmp_path / "b.zarr", [alpha])


# --- NIfTI and MRC ----------------------------------------------------------------------------


def nifti(**changed: Any) -> bytes:
    """A volume of 2 x 8 x 8 with other numbers in its header."""
    nibabel = pytest.importorskip("nibabel")
    header = nibabel.Nifti1Header()
    header.set_data_shape((8, 8, 2))
    header.set_data_dtype(np.int16)
    header["vox_offset"], header["magic"] = 352, b"n+1"
    for name, value in changed.items():
        header[name] = value
    return header.binaryblock + bytes(4) + np.arange(128, dtype=np.int16).tobytes()


def test_odd_headers_of_nifti(tmp_path: Path) -> None:
    path = tmp_path / "a.nii"
    path.write_bytes(nifti(vox_offset=0.0))  # some writers leave it out
    assert read_image(path).pixels.ravel()[5] == 5
    for data, message in (
        (nifti(scl_slope=2.0, scl_inter=np.nan), "invalid intercept nan"),
        (nifti(scl_slope=1e38), "beyond what floats can hold"),
        (nifti(vox_offset=353.5), "start at byte 353.5: damaged"),
        (nifti(datatype=32), "holds complex64 values"),
        (b"\1\0\0\0" + nifti()[4:], "header has another size"),
        (nifti()[:352][:340] + b"\0" * 4 + b"n+1\0", "cut off|too early|is not"),
    ):
        path.write_bytes(data)
        with pytest.raises(FileError, match=message):
            read_images(path)


def test_what_nifti_and_mrc_cannot_hold(tmp_path: Path) -> None:
    pytest.importorskip("nibabel")
    pytest.importorskip("mrcfile")
    with_alpha = ImageFile(np.zeros((8, 8)), None, np.zeros((8, 8)), "")
    eight = ImageFile(np.zeros((1,) * 8), None, None, "", axes="QQQQQQYX")
    for end, image, message in (
        (".nii", with_alpha, "NIfTI holds no alpha channel"), (".nii", eight, "7 dimensions, got 8"),
        (".mrc", with_alpha, "MRC holds no alpha channel"), (".mrc", eight, "MRC holds"),
    ):  # fmt: skip
        with pytest.raises(FileError, match=message):
            write_images(tmp_path / f"a{end}", [image])


def test_an_mrc_without_a_stamp_or_a_free_label(tmp_path: Path) -> None:
    pytest.importorskip("mrcfile")
    path, again = tmp_path / "a.mrc", tmp_path / "b.mrc"
    pixels = rng.integers(0, 999, (2, 8, 8)).astype(np.int16)
    write_images(path, [ImageFile(pixels, None, None, "", axes="ZYX")], "first")
    data = bytearray(path.read_bytes())
    data[212:216] = bytes(4)  # its byte order
    struct.pack_into("<i", data, 220, 10)  # all labels are used
    path.write_bytes(data)
    found = read_images(path)
    np.testing.assert_array_equal(found[0].pixels, pixels)
    write_images(again, found, "no room for this")
    assert b"no room for this" not in again.read_bytes()


@pytest.mark.parametrize(
    "error",
    [AttributeError("'NoneType' object has no attribute 'itemsize'"), TypeError("int & str")],
)
def test_a_decoder_that_is_led_astray_speaks_of_the_file(tmp_path: Path, error: Exception) -> None:
    says = "does not fit together; if another program"
    with pytest.raises(FileError, match=says) as caught, naming_errors(tmp_path / "x.tif"):
        raise error
    assert str(error) not in str(caught.value)
