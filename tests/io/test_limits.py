"""What files say of themselves: nothing is believed that would harm, whole or box by box."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import os
import struct
import threading
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from typer.testing import CliRunner

from symsmooth import cli
from symsmooth.io import FileError, read_image, read_images, write_image
from symsmooth.io import base as _base
from symsmooth.io.base import check_next_part, check_scans, name_inside, survey
from symsmooth.io.regions import create_target, open_source

from .test_hostile import big_chunks, fits_of, tiff_of, zarr_json

zarr = pytest.importorskip("zarr")
posix = pytest.mark.skipif(os.name != "posix", reason="links and pipes")


def refused(path: Path, says: str) -> None:
    """Both ways of reading refuse a file in one line that names it."""
    for read in (read_images, open_source):
        with pytest.raises(FileError, match=says) as caught:
            read(path)
        assert str(caught.value).startswith(f"{path}: ")
        assert "\n" not in str(caught.value)


def denoise(source: Path, target: Path) -> Any:
    arguments = ["denoise", str(source), "-o", str(target), "--method", "identity"]
    return CliRunner().invoke(cli.app, arguments)


# --- Zarr: inside its folder ------------------------------------------------------------------------


def make_ome(folder: Path, *paths: object) -> Path:
    """An OME-Zarr whose levels are said to be at these places."""
    store = folder / "evil.zarr"
    group = zarr.open_group(str(store), mode="w")
    pixels = np.full((16, 16), 5, np.uint16)
    group.create_array("0", data=pixels, chunks=(16, 16))
    group.create_array("1", data=pixels[::2, ::2].copy(), chunks=(8, 8))
    axes = [{"name": "y"}, {"name": "x"}]
    levels = [{"path": path} for path in paths]
    group.attrs["multiscales"] = [{"axes": axes, "datasets": levels}]
    return store


@pytest.mark.parametrize("where", ["absolute", "../victim.zarr", "0/../../victim.zarr"])
@pytest.mark.parametrize("boxes", [False, True])
def test_levels_outside_the_store_are_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, boxes: bool
) -> None:
    (tmp_path / "out").mkdir()
    victims = [tmp_path / "victim.zarr", tmp_path / "out" / "victim.zarr"]
    for victim in victims:
        zarr.create_array(str(victim), data=np.full((16, 16), 777, np.uint16), chunks=(16, 16))
    store = make_ome(tmp_path, "0", str(victims[0]) if where == "absolute" else where)
    monkeypatch.setattr("symsmooth.app.large._LARGE", -1 if boxes else 2**28)
    done = denoise(store, tmp_path / "out" / "x.zarr")
    assert done.exit_code == 1
    assert "which is not a place inside it" in done.output
    for victim in victims:
        assert (zarr.open_array(str(victim), mode="r")[...] == 777).all()
    assert os.listdir(tmp_path / "out") == ["victim.zarr"]


@pytest.mark.parametrize("paths", [("",), ("0", ""), ("0", "."), ("0", "/"), (5,), ("0", "0")])
def test_odd_names_of_levels_are_refused(tmp_path: Path, paths: tuple[object, ...]) -> None:
    refused(make_ome(tmp_path, *paths), "names an array|names one level twice")


def test_levels_must_become_smaller(tmp_path: Path) -> None:
    refused(make_ome(tmp_path, "1", "0"), "level 0 that is not a smaller copy")


@pytest.mark.parametrize("boxes", [False, True])
@pytest.mark.parametrize("below", ["x.zarr", "0/x.zarr", "tables/x.zarr"])
def test_a_store_is_not_copied_into_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, below: str, boxes: bool
) -> None:
    store = make_ome(tmp_path, "0", "1")
    (store / "tables").mkdir()
    before = sorted(store.rglob("*"))
    monkeypatch.setattr("symsmooth.app.large._LARGE", -1 if boxes else 2**28)
    done = denoise(store, store / below)
    assert done.exit_code == 1
    assert "lies inside the store it is made from" in done.output
    assert sorted(store.rglob("*")) == before


def test_good_names_are_inside(tmp_path: Path) -> None:
    assert name_inside(tmp_path, "a/0") == "a/0"
    assert name_inside(tmp_path, "./a/") == "a"
    for name in ("/a", "../a", "a/../..", "", ".", None, 5):
        with pytest.raises(FileError, match="not a place inside"):
            name_inside(tmp_path, name)


@posix
@pytest.mark.parametrize("inside", ["notes.txt", "0/c/0/0", "0/notes.txt", "more"])
@pytest.mark.parametrize("to", ["../secret.txt", "absolute", "/", ".", "0", "nowhere"])
def test_links_that_lead_out_are_refused(tmp_path: Path, inside: str, to: str) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    store = make_ome(tmp_path, "0", "1")
    link = store / inside
    link.unlink(missing_ok=True)
    up = "../" * inside.count("/")
    link.symlink_to(tmp_path / "secret.txt" if to == "absolute" else to if to == "/" else up + to)
    refused(store, "holds a link")
    assert denoise(store, tmp_path / "out.zarr").exit_code == 1
    assert not (tmp_path / "out.zarr").exists()


@posix
def test_links_to_files_of_the_store_become_files(tmp_path: Path) -> None:
    store = make_ome(tmp_path, "0", "1")
    (store / "readme.txt").write_text("about")
    (store / "0" / "notes.txt").symlink_to("../readme.txt")
    (store / "notes.txt").symlink_to("readme.txt")
    assert denoise(store, tmp_path / "out.zarr").exit_code == 0
    copy = tmp_path / "out.zarr" / "notes.txt"
    assert copy.read_text() == "about"
    assert not copy.is_symlink()


@posix
@pytest.mark.parametrize("name", ["zarr.json", "0/zarr.json", "0/c/0/0", "notes"])
def test_pipes_in_a_store_are_refused(tmp_path: Path, name: str) -> None:
    store = make_ome(tmp_path, "0", "1")
    (store / name).unlink(missing_ok=True)
    os.mkfifo(store / name)
    refused(store, f"holds {name}, which is not a regular file")


def test_a_survey_counts_the_files_of_each_folder(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "1").write_bytes(b"123")
    (tmp_path / "2").write_bytes(b"12")
    assert survey(tmp_path) == {"": (1, 2), "a/": (1, 3)}


# --- Zarr: no larger than it can be -----------------------------------------------------------------


def put_store(folder: Path, metadata: bytes, chunk: bytes = b"") -> Path:
    store = folder / "in.zarr"
    (store / "c" / "0").mkdir(parents=True)
    (store / "zarr.json").write_bytes(metadata)
    if chunk:
        (store / "c" / "0" / "0").write_bytes(chunk)
    return store


def sharded(shape: int, shard: int, chunk: int) -> bytes:
    little = {"name": "bytes", "configuration": {"endian": "little"}}
    inner = {"chunk_shape": [chunk, chunk], "codecs": [little], "index_codecs": [little]}
    codecs = [{"name": "sharding_indexed", "configuration": inner}]
    return zarr_json(shape=[shape, shape], chunk_grid=big_chunks(shard), codecs=codecs)


@pytest.mark.parametrize(
    "metadata",
    [
        zarr_json(shape=[4_600_000, 4_600_000], chunk_grid=big_chunks(46_000)),
        zarr_json(shape=[20_000, 20_000], chunk_grid=big_chunks(20_000)),
        zarr_json(shape=[102_400, 102_400], chunk_grid=big_chunks(1024)),
        zarr_json(shape=[8, 8], chunk_grid=big_chunks(20_000)),
        zarr_json(shape=[400, 400], chunk_grid=big_chunks(1)),
        sharded(400, 400, 1),
        sharded(100, 1, 1),
    ],
    ids=[
        "terabytes",
        "one chunk",
        "chunks",
        "a chunk alone",
        "tiny",
        "shard of 1x1",
        "shards of 1x1",
    ],
)
def test_stores_that_claim_too_much_are_refused(tmp_path: Path, metadata: bytes) -> None:
    refused(put_store(tmp_path, metadata), "claims .* damaged")


def zstd_of_unknown_size(n_blocks: int) -> bytes:
    """Blocks of 128 kB that repeat a zero."""
    return b"\x28\xb5\x2f\xfd\x00\x58" + b"\x02\x00\x10\0" * n_blocks + b"\x03\x00\x10\0"


PACKED: dict[str, tuple[dict[str, Any], Callable[[int], bytes]]] = {
    "gzip": ({"level": 1}, lambda n: gzip.compress(bytes(n))),
    "zstd": ({"level": 1, "checksum": False}, lambda n: zstd_of_unknown_size(n // 2**17 - 1)),
}


@pytest.mark.parametrize("kind", PACKED)
@pytest.mark.parametrize("in_shard", [False, True])
def test_a_chunk_unpacks_to_a_chunk_at_most(tmp_path: Path, kind: str, in_shard: bool) -> None:
    configuration, pack = PACKED[kind]
    little = {"name": "bytes", "configuration": {"endian": "little"}}
    codecs: list[Any] = [little, {"name": kind, "configuration": configuration}]
    if in_shard:
        inner = {"chunk_shape": [256, 256], "codecs": codecs, "index_codecs": [little]}
        codecs = [{"name": "sharding_indexed", "configuration": inner}]
    metadata = zarr_json(shape=[256, 256], chunk_grid=big_chunks(256), codecs=codecs)
    honest, bomb = pack(2 * 256**2), pack(2**27)

    def stored(data: bytes) -> bytes:
        return data + struct.pack("<QQ", 0, len(data)) if in_shard else data

    store = put_store(tmp_path, metadata, stored(honest))
    assert (read_image(store).pixels == 0).all()
    (store / "c" / "0" / "0").write_bytes(stored(bomb))
    with pytest.raises(FileError, match="unpacks to more than"):
        read_image(store)
    with open_source(store) as source, pytest.raises(FileError, match="unpacks to more than"):
        source.read((slice(0, 9), slice(0, 9)))


@pytest.mark.parametrize("kind", ["zlib", "gzip", "bz2", "lzma", "blosc", "lz4", "zstd"])
def test_chunks_of_version_2_unpack_to_a_chunk_at_most(tmp_path: Path, kind: str) -> None:
    import numcodecs

    codec = numcodecs.get_codec({"id": kind})
    pixels = np.arange(128 * 128, dtype=np.uint16).reshape(128, 128)
    store = tmp_path / "in.zarr"
    zarr.create_array(str(store), data=pixels, chunks=(128, 128), compressors=codec, zarr_format=2)
    np.testing.assert_array_equal(read_image(store).pixels, pixels)
    (store / "0.0").write_bytes(bytes(codec.encode(np.zeros(2**24, np.uint8))))
    with pytest.raises(FileError, match="unpacks to more than"):
        read_image(store)


def test_pickles_are_not_opened(tmp_path: Path) -> None:
    store = tmp_path / "in.zarr"
    zarr.create_array(str(store), data=np.zeros((8, 8)), chunks=(8, 8), zarr_format=2)
    metadata = json.loads((store / ".zarray").read_text())
    metadata["filters"] = [{"id": "pickle"}]
    (store / ".zarray").write_text(json.dumps(metadata))
    refused(store, "pickle|object|codec|[Ff]ilter")


@pytest.mark.parametrize("value", [5, None, "x", {}])
def test_an_odd_note_of_others_is_kept(tmp_path: Path, value: object) -> None:
    store = tmp_path / "in.zarr"
    zarr.create_array(
        str(store), data=np.zeros((8, 8)), chunks=(8, 8), attributes={"symsmooth": value}
    )
    assert denoise(store, tmp_path / "out.zarr").exit_code == 0
    kept, note = zarr.open_array(str(tmp_path / "out.zarr"), mode="r").attrs["symsmooth"]
    assert kept == value
    assert note.startswith("symsmooth ")


# --- TIFF -------------------------------------------------------------------------------------------


def chained(*heights: int, back_to: int | None) -> bytes:
    """Pages of different heights, the last of which leads back to one of them."""
    data, places = b"II*\0" + bytes(4), []
    for height in heights:
        page = tiff_of(20, height, data=bytes(20 * height))
        at = struct.unpack_from("<I", page, 4)[0]
        places.append(len(data))
        data += page[at:]
    data += bytes(20 * max(heights))
    chain = bytearray(data)
    struct.pack_into("<I", chain, 4, places[0])
    links = [place + 2 + 12 * 9 for place in places]
    for link, after in zip(links, places[1:], strict=False):
        struct.pack_into("<I", chain, link, after)
    if back_to is not None:
        struct.pack_into("<I", chain, links[-1], places[back_to])
    return bytes(chain)


def test_chains_that_lead_back_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "in.tif"
    path.write_bytes(chained(16, 24, back_to=None))
    assert [image.pixels.shape for image in read_images(path)] == [(16, 20), (24, 20)]
    for heights, back_to in (((16, 24), 0), ((16, 24), 1), ((16,), 0), ((16, 24, 16, 30), 2)):
        path.write_bytes(chained(*heights, back_to=back_to))
        refused(path, "leads back to an earlier one")


def test_files_of_very_many_sizes_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "in.tif"
    path.write_bytes(chained(*range(1, 400), back_to=None))
    refused(path, "more than 250 sizes")


def copied_box_by_box(path: Path, out: Path) -> None:
    with open_source(path) as source, create_target(out, source) as target:
        box = tuple(slice(0, n) for n in source.shape)
        target.write(box, 255 - source.read(box))
        target.finish("a note that makes the file longer")


@pytest.mark.parametrize("what", ["pixels over tags", "a chain that leads beyond the end"])
def test_damaged_files_that_can_be_read_become_whole_ones(tmp_path: Path, what: str) -> None:
    """Other pixels in their place would damage the tags; the end of the file is not the end any more."""
    path = tmp_path / "in.tif"
    data = bytearray(chained(16, back_to=None))
    page = struct.unpack_from("<I", data, 4)[0]
    place = page if what == "pixels over tags" else len(data) - 20 * 16
    struct.pack_into("<I", data, page + 2 + 12 * 5 + 8, place)  # of the strip
    struct.pack_into("<I", data, page + 2 + 12 * 8 + 8, 20 * 16)
    if what != "pixels over tags":
        struct.pack_into("<I", data, page + 2 + 12 * 9, len(data))
    path.write_bytes(data)
    pixels = read_image(path).pixels
    write_image(tmp_path / "whole.tif", 255 - pixels, read_image(path), "a note that is long")
    copied_box_by_box(path, tmp_path / "boxes.tif")
    for name in ("whole.tif", "boxes.tif"):
        np.testing.assert_array_equal(read_image(tmp_path / name).pixels, 255 - pixels)


def test_a_tag_that_is_there_twice_keeps_its_first_value(tmp_path: Path) -> None:
    """Readers take the first one; a note in the directory may not put the other before it."""
    path, out = tmp_path / "twice.tif", tmp_path / "out.tif"
    tifffile.imwrite(path, np.arange(288, dtype=np.uint16).reshape(16, 18), software="other")
    with tifffile.TiffFile(path) as opened:
        at = opened.pages[0].tags[305].offset
    data = bytearray(path.read_bytes())
    struct.pack_into("<H", data, at, 256)  # the text is another width
    path.write_bytes(data)
    assert read_image(path).pixels.shape == (16, 18)
    done = denoise(path, out)
    assert done.exit_code == 0, done.output
    np.testing.assert_array_equal(read_image(out).pixels, read_image(path).pixels)


def test_directories_below_a_page_may_not_be_the_page(tmp_path: Path) -> None:
    data = bytearray(chained(16, back_to=None))
    page = struct.unpack_from("<I", data, 4)[0]
    struct.pack_into("<HHII", data, page + 2, 330, 4, 1, page)
    (tmp_path / "in.tif").write_bytes(data)
    refused(tmp_path / "in.tif", "leads back to an earlier one")


def test_a_description_that_claims_too_much_is_refused(tmp_path: Path) -> None:
    path, text = tmp_path / "in.tif", json.dumps({"shape": [1_000_000_000, 24, 20]})
    tifffile.imwrite(path, np.zeros((24, 20), np.uint8), description=text, metadata=None)
    refused(path, "claims 480000000000 bytes of pixels in a file of .* damaged")


def ome_tiff(path: Path, size_t: str, file: str = "") -> None:
    named = f'<UUID FileName="{file}">urn:uuid:1</UUID>' if file else ""
    text = (
        '<?xml version="1.0"?><OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06">'
        '<Image ID="a"><Pixels ID="p" DimensionOrder="XYCZT" Type="uint8" SizeX="20" SizeY="24" '
        f'SizeC="1" SizeZ="1" SizeT="{size_t}"><TiffData IFD="0" PlaneCount="{size_t}">{named}'
        "</TiffData></Pixels></Image></OME>"
    )
    tifffile.imwrite(path, np.zeros((24, 20), np.uint8), description=text, metadata=None)


@pytest.mark.parametrize("size", ["1000000000", "&#49;000000000", "1_000_000_000"])
def test_ome_metadata_that_claim_too_many_planes_are_refused(tmp_path: Path, size: str) -> None:
    ome_tiff(tmp_path / "in.tif", size)
    refused(tmp_path / "in.tif", "claims 1000000000 planes and has 1 pages")


@posix
def test_files_that_ome_metadata_name_are_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.tif")
    ome_tiff(tmp_path / "in.tif", "2", "pipe.tif")
    refused(tmp_path / "in.tif", "is one of several files")


def test_a_sparse_tiff_is_refused(tmp_path: Path) -> None:
    """Tiles that are nowhere count as black: a small file could be any size."""
    path = tmp_path / "in.tif"
    tifffile.imwrite(path, np.zeros((64, 64), np.uint8), tile=(16, 16), metadata=None)
    data = bytearray(path.read_bytes())
    with tifffile.TiffFile(path) as tiff:
        tags = tiff.pages.first.tags
        sizes = [tags[code].offset for code in (256, 257, 322, 323)]
    for at, side in zip(sizes, (40_000, 40_000, 20_000, 20_000), strict=True):
        struct.pack_into("<HII", data, at + 2, 4, 1, side)
    path.write_bytes(data)
    refused(path, "claims .* damaged")


@pytest.mark.parametrize(("code", "pack"), [(8, zlib.compress), (34925, lzma.compress)])
def test_a_segment_unpacks_to_a_segment_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, pack: Callable[[bytes], bytes]
) -> None:
    """Where imagecodecs, which knows a limit, is not installed."""
    monkeypatch.setattr("symsmooth.io.tiff._HAS_CODECS", False)
    path = tmp_path / "in.tif"
    path.write_bytes(tiff_of(32, 32, code, pack(bytes(32 * 32))))
    assert (read_image(path).pixels == 0).all()
    path.write_bytes(tiff_of(32, 32, code, pack(bytes(2**24))))
    refused(path, "has a segment that unpacks to more than")


@pytest.mark.parametrize("shape", [(), (7,)])
def test_a_number_or_a_list_is_no_picture(tmp_path: Path, shape: tuple[int, ...]) -> None:
    path = tmp_path / "a.npy"
    np.save(path, np.ones(shape))
    refused(path, "holds no picture: its shape is")


def test_an_empty_or_flat_npy_is_no_picture_to_cut(tmp_path: Path) -> None:
    for shape in ((), (5,), (0, 5)):
        np.save(tmp_path / "in.npy", np.zeros(shape))
        with pytest.raises(FileError, match="holds no picture"):
            open_source(tmp_path / "in.npy")


def test_an_rgb_tiff_may_leave_out_how_samples_are_stored(tmp_path: Path) -> None:
    path = tmp_path / "in.tif"
    pixels = np.arange(24 * 20 * 3, dtype=np.uint8).reshape(24, 20, 3)
    tifffile.imwrite(path, pixels, photometric="rgb", metadata=None)
    data = bytearray(path.read_bytes())
    with tifffile.TiffFile(path) as tiff:
        at = tiff.pages.first.tags[284].offset
    struct.pack_into("<HHII", data, at, 285, 4, 1, 0)  # no such tag: samples are together
    path.write_bytes(data)
    np.testing.assert_array_equal(read_image(path).pixels, pixels)
    with open_source(path) as source, create_target(tmp_path / "out.tif", source) as target:
        box = tuple(slice(0, n) for n in pixels.shape)
        target.write(box, source.read(box))
    np.testing.assert_array_equal(read_image(tmp_path / "out.tif").pixels, pixels)


# --- JPEG, .npy -------------------------------------------------------------------------------------


def scans(n: int) -> bytes:
    """A progressive JPEG with its last scan n times more."""
    from PIL import Image

    buffer = io.BytesIO()
    Image.new("RGB", (32, 32), "grey").save(buffer, "JPEG", progressive=True)
    data = buffer.getvalue()
    last = data.rindex(b"\xff\xda")
    return data[:last] + data[last:-2] * n + data[last:]


def test_jpegs_with_too_many_scans_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "in.jpg"
    path.write_bytes(scans(20))
    assert read_image(path).pixels.shape == (32, 32, 3)
    path.write_bytes(scans(200))
    with pytest.raises(FileError, match="more than 100 scans"):
        read_image(path)


def test_jpegs_with_too_many_scans_in_a_tiff_are_refused(tmp_path: Path) -> None:
    pytest.importorskip("imagecodecs")
    path = tmp_path / "in.tif"
    for n, fits in ((20, True), (200, False)):
        data = bytearray(tiff_of(32, 32, 7, scans(n)))
        page = struct.unpack_from("<I", data, 4)[0]
        struct.pack_into("<HHII", data, page + 2 + 12 * 4, 262, 4, 1, 6)
        struct.pack_into("<HHII", data, page + 2 + 12 * 6, 277, 4, 1, 3)
        path.write_bytes(data)
        if fits:
            assert read_image(path).pixels.shape == (32, 32, 3)
        else:
            refused(path, "more than 100 scans")


def test_what_looks_like_a_scan_in_metadata_is_none() -> None:
    comment = b"\xff\xda" * 500
    plain = scans(1)
    check_scans(plain[:2] + struct.pack(">BBH", 0xFF, 0xFE, len(comment) + 2) + comment + plain[2:])


@pytest.mark.parametrize("shape", [(2**62,), (2**62, 2**62), (3, 2**63), (2**31, 2**10)])
def test_npy_headers_that_claim_too_much_are_one_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], shape: tuple[int, ...]
) -> None:
    text = str({"descr": "<f8", "fortran_order": False, "shape": shape}).encode().ljust(117) + b"\n"
    path = tmp_path / "in.npy"
    path.write_bytes(b"\x93NUMPY\x01\0" + struct.pack("<H", len(text)) + text + bytes(64))
    refused(path, "claims [0-9]+ bytes of pixels in a file of 192: damaged")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("end", [".png", ".bmp", ".jpg", ".webp", ".tif", ".npy", ".zarr", ".fits"])
def test_a_blank_picture_of_some_size_is_not_taken_for_a_bomb(tmp_path: Path, end: str) -> None:
    if end == ".fits":
        pytest.importorskip("astropy")
    pixels = np.full((3000, 4000), 255, np.uint8)
    write_image(tmp_path / f"a{end}", pixels)
    found = read_image(tmp_path / f"a{end}").pixels
    assert found.shape[:2] == pixels.shape or found.shape == pixels.shape
    assert zlib.crc32(np.unique(found).tobytes()) == zlib.crc32(b"\xff")


# --- warnings and threads ---------------------------------------------------------------------------


def test_threads_decode_at_the_same_time() -> None:
    """Two are within at once; with a lock, the first would wait for the second for ever."""
    both = threading.Barrier(2, timeout=10)
    failed: list[BaseException] = []

    def decode() -> None:
        try:
            with _base.suppress_warnings():
                both.wait()
                warnings.warn("of a decoder", UserWarning, stacklevel=1)
                both.wait()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=decode) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []


def test_only_the_warnings_of_decoders_are_kept_from_the_user() -> None:
    inside, outside = threading.Event(), threading.Event()
    heard: list[str] = []

    def decode() -> None:
        with _base.suppress_warnings():
            inside.set()
            outside.wait(10)
            warnings.warn("of a decoder", UserWarning, stacklevel=1)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        thread = threading.Thread(target=decode)
        thread.start()
        assert inside.wait(10)
        try:
            warnings.warn("of the user", UserWarning, stacklevel=1)
        except UserWarning as error:
            heard.append(str(error))
        outside.set()
        thread.join()
        with _base.suppress_warnings():
            warnings.warn("of a decoder", UserWarning, stacklevel=1)
        with pytest.raises(UserWarning, match="after it"):
            warnings.warn("after it", UserWarning, stacklevel=1)
    assert heard == ["of the user"]


def test_filters_of_warnings_do_not_pile_up() -> None:
    with warnings.catch_warnings():
        for _ in range(5):
            warnings.simplefilter("error")
            with _base.suppress_warnings():
                pass
        count = sum(entry is _base._IGNORED for entry in warnings.filters)
    assert count == 1


# --- FITS: headers that lead on ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "parts",
    [
        [fits_of(NAXIS1=-4)],
        [fits_of(NAXIS1=-4, NAXIS2=-4)],
        [fits_of(), fits_of("IMAGE", NAXIS1=-4)],
        [fits_of(), fits_of("IMAGE", PCOUNT=-1, GCOUNT=1)],
        [fits_of(), fits_of("BINTABLE", BITPIX=8, PCOUNT=-1, GCOUNT=1, TFIELDS=0)],
        [fits_of(), fits_of("BINTABLE", BITPIX=8, PCOUNT=0, GCOUNT=-1, TFIELDS=0)],
    ],
)
def test_a_fits_with_a_negative_size_is_refused(tmp_path: Path, parts: list[bytes]) -> None:
    pytest.importorskip("astropy")
    (tmp_path / "x.fits").write_bytes(b"".join(parts))
    with pytest.raises(FileError, match="its size is negative"):
        read_images(tmp_path / "x.fits")


def test_a_fits_has_a_thousand_parts_at_most(tmp_path: Path) -> None:
    pytest.importorskip("astropy")
    empty = fits_of("IMAGE", NAXIS=0, PCOUNT=0, GCOUNT=1)[:2880]
    path = tmp_path / "x.fits"
    path.write_bytes(fits_of() + 999 * empty)
    assert read_image(path).pixels.shape == (4, 4)
    path.write_bytes(fits_of() + 1000 * empty)
    with pytest.raises(FileError, match="more than 1000 parts; take those you need"):
        read_images(path)


def test_a_part_of_a_fits_lies_behind_the_one_before() -> None:
    check_next_part(0, 0, 2880, 0)
    check_next_part(1, 2880, 5760, 2880)
    for start, end in ((0, 2880), (2880, 2880), (2880, 0)):
        with pytest.raises(FileError, match="does not follow"):
            check_next_part(1, start, end, 2880)
