"""Images box by box: what is read and written so is what it would be as a whole, or is not there."""

from __future__ import annotations

import itertools
import os
import pickle
import signal
import subprocess
import sys
import threading
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile

import symsmooth
from symsmooth.io import FileError, ImageFile, read_image
from symsmooth.io.regions import Box, Source, Target, create_target, open_source

from .test_roundtrip import make_ome_zarr, means, nodes_of, pixels_of, tags_of

Array = np.ndarray[Any, Any]

TIFFS: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {
    "tiles": ((70, 90), {"tile": (32, 16)}),
    "strips": ((70, 90), {"rowsperstrip": 9}),
    "one strip": ((70, 90), {}),
    "deflate": ((70, 90), {"tile": (32, 16), "compression": "zlib"}),
    "lzw": ((70, 90), {"tile": (32, 16), "compression": "lzw", "predictor": True}),
    "rgb": ((70, 90, 3), {"tile": (32, 16), "photometric": "rgb", "compression": "zlib"}),
    "planes": (
        (3, 70, 90),
        {"tile": (32, 16), "photometric": "rgb", "planarconfig": "separate", "compression": "zlib"},
    ),
    "pages": ((4, 70, 90), {"photometric": "minisblack", "tile": (32, 16)}),
    "hyperstack": ((2, 3, 2, 30, 40), {"imagej": True, "metadata": {"axes": "TZCYX"}}),
    "OME": (
        (2, 3, 40, 50),
        {"ome": True, "metadata": {"axes": "CZYX"}, "tile": (16, 16), "compression": "zlib"},
    ),
    "swapped": ((70, 90), {"tile": (32, 16), "byteorder": ">", "compression": "zlib"}),
}


def cut_up(shape: tuple[int, ...], seed: int) -> list[Box]:
    """Boxes that cover a shape once, cut anywhere, in any order."""
    rng = np.random.default_rng(seed)
    axes = []
    for n in shape:
        cuts = sorted({0, n, *rng.integers(0, n, 2).tolist()})
        axes.append([slice(a, b) for a, b in itertools.pairwise(cuts)])
    boxes = list(itertools.product(*axes))
    rng.shuffle(boxes)  # type: ignore[arg-type]
    return [tuple(box) for box in boxes]


def make(folder: Path, kind: str) -> tuple[Path, Array]:
    """A file of some kind and its pixels."""
    if kind == "npy":
        stored = pixels_of((5, 30, 40), "f4")
        np.save(folder / "in.npy", stored)
        return folder / "in.npy", stored
    if kind == "zarr":
        zarr = pytest.importorskip("zarr")
        stored = pixels_of((3, 50, 60), "u2")
        path = folder / "in.zarr"
        zarr.create_array(str(path), data=stored, chunks=(1, 16, 16), attributes={"a": 1})
        return path, stored
    if kind == "OME-Zarr":
        pytest.importorskip("zarr")
        stored = pixels_of((2, 2, 3, 32, 40), "u2")
        make_ome_zarr(folder / "in.zarr", stored, 3, means)
        return folder / "in.zarr", stored
    if kind == "lzw":
        pytest.importorskip("imagecodecs")
    shape, options = TIFFS[kind]
    stored = pixels_of(shape, "u2")
    tifffile.imwrite(folder / "in.tif", stored, **options)
    return folder / "in.tif", stored


KINDS = [*TIFFS, "npy", "zarr", "OME-Zarr"]


@pytest.mark.parametrize("kind", KINDS)
def test_boxes_are_what_the_whole_is(tmp_path: Path, kind: str) -> None:
    path, stored = make(tmp_path, kind)
    image = read_image(path)
    with open_source(path) as source:
        assert (source.shape, source.dtype) == (stored.shape, stored.dtype)
        assert (source.axes, source.channel_axis) == (image.axes, image.channel_axis)
        assert len(source.chunks) == len(source.shape)
        for box in cut_up(stored.shape, 0):
            np.testing.assert_array_equal(source.read(box), stored[box])


@pytest.mark.parametrize("kind", KINDS)
def test_writing_boxes_is_writing_the_whole(tmp_path: Path, kind: str) -> None:
    path, stored = make(tmp_path, kind)
    target_path = tmp_path / f"out{path.suffix}"
    changed = stored[..., ::-1].copy()
    with open_source(path) as source, create_target(target_path, source) as target:
        for box in cut_up(stored.shape, 1):
            assert not target.is_done(box)
            target.write(box, changed[box])
            assert target.is_done(box)
            assert not target_path.exists()
        target.finish("symsmooth: a note")
    image = read_image(target_path)
    np.testing.assert_array_equal(image.pixels, changed)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([path.name, target_path.name])
    if path.suffix == ".tif":
        np.testing.assert_equal(tags_of(target_path), tags_of(path))
    if path.suffix == ".zarr":
        assert nodes_of(target_path) == nodes_of(path)
    if kind == "OME-Zarr":
        import zarr

        np.testing.assert_array_equal(
            zarr.open_array(str(target_path / "1"), mode="r")[...], means(changed)
        )


@pytest.mark.parametrize("compression", ["zlib", None])
def test_smaller_copies_follow_what_is_written(tmp_path: Path, compression: str | None) -> None:
    full = pixels_of((64, 96), "u2")
    with tifffile.TiffWriter(tmp_path / "in.tif") as writer:
        options: dict[str, Any] = {"tile": (16, 16), "compression": compression, "metadata": None}
        writer.write(full, subifds=2, **options)
        for step in (2, 4):
            writer.write(full[::step, ::step].copy(), subfiletype=1, **options)
    with (
        open_source(tmp_path / "in.tif") as source,
        create_target(tmp_path / "out.tif", source) as target,
    ):
        for box in cut_up(full.shape, 5):
            target.write(box, 65535 - source.read(box))
    with tifffile.TiffFile(tmp_path / "out.tif") as tiff:
        for step, level in zip((1, 2, 4), tiff.series[0].levels, strict=True):
            np.testing.assert_array_equal(level.asarray(), (65535 - full)[::step, ::step])
    np.testing.assert_equal(tags_of(tmp_path / "out.tif"), tags_of(tmp_path / "in.tif"))


def test_what_is_written_anew_keeps_what_is_said_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pixels of another dtype cannot take the place of the old ones; a large file is tiled."""
    monkeypatch.setattr("symsmooth.io.tiff._LARGE", 100)
    path, stored = make(tmp_path, "tiles")
    options: dict[str, Any] = {"resolution": (300, 150), "resolutionunit": "INCH"}
    tifffile.imwrite(path, stored, tile=(32, 16), description="what it shows", **options)
    with open_source(path) as source:
        like = source.like
        details = like.details.for_other_pixels()
        like = ImageFile(np.zeros(stored.shape, "f4"), None, None, "", details, like.axes)
        with create_target(tmp_path / "out.tif", source, like=like) as target:
            target.write((slice(0, 70), slice(0, 90)), stored / 2)
    image = read_image(tmp_path / "out.tif")
    np.testing.assert_array_equal(image.pixels, (stored / 2).astype("f4"))
    assert image.details.dpi == pytest.approx((300, 150))
    with open_source(tmp_path / "out.tif") as source:
        assert source.chunks == (256, 256)


@pytest.mark.parametrize("kind", ["tiles", "rgb", "OME", "npy", "zarr"])
@pytest.mark.parametrize("end", [".tif", ".zarr", ".npy"])
def test_one_format_becomes_another(tmp_path: Path, kind: str, end: str) -> None:
    path, stored = make(tmp_path, kind)
    with open_source(path) as source:
        with create_target(tmp_path / f"out{end}", source) as target:
            for box in cut_up(stored.shape, 2):
                target.write(box, source.read(box))
        axes = source.axes
    image = read_image(tmp_path / f"out{end}")
    np.testing.assert_array_equal(image.pixels, stored)
    if end != ".npy":
        assert image.axes.replace("S", "C") == axes.replace("S", "C")


@pytest.mark.parametrize("kind", ["deflate", "tiles", "hyperstack", "npy", "zarr"])
def test_threads_may_share_a_source_and_a_target(tmp_path: Path, kind: str) -> None:
    path, stored = make(tmp_path, kind)
    with (
        open_source(path) as source,
        create_target(tmp_path / f"out{path.suffix}", source) as target,
    ):
        steps = source.chunks if kind in ("deflate", "tiles", "zarr") else (1, *stored.shape[1:])
        grid = [
            [slice(a, min(a + step, n)) for a in range(0, n, step)]
            for n, step in zip(stored.shape, steps, strict=True)
        ]
        boxes: list[Box] = list(itertools.product(*grid))

        def copy(part: list[Box]) -> None:
            for box in part:
                target.write(box, source.read(box))

        threads = [threading.Thread(target=copy, args=(boxes[i::3],)) for i in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    np.testing.assert_array_equal(read_image(tmp_path / f"out{path.suffix}").pixels, stored)


def write_and_stop(target: Target, boxes: list[Box], stored: Array) -> None:
    """Write some boxes, then hear Ctrl-C."""
    with target:
        for box in boxes:
            target.write(box, stored[box])
        raise KeyboardInterrupt


@pytest.mark.parametrize("kind", ["deflate", "tiles", "hyperstack", "npy", "zarr"])
def test_an_interrupted_run_is_taken_up_where_it_was(tmp_path: Path, kind: str) -> None:
    path, stored = make(tmp_path, kind)
    out = tmp_path / f"out{path.suffix}"
    boxes = cut_up(stored.shape, 3)
    half = len(boxes) // 2
    source = open_source(path)
    with pytest.raises(KeyboardInterrupt):
        write_and_stop(create_target(out, source, resume=True, key="k"), boxes[:half], stored)
    assert not out.exists()

    with create_target(out, source, resume=True, key="k") as target:
        assert [target.is_done(box) for box in boxes] == [i < half for i in range(len(boxes))]
        for box in boxes[half:]:
            target.write(box, stored[box])
    np.testing.assert_array_equal(read_image(out).pixels, stored)
    if path.suffix == ".tif":
        np.testing.assert_equal(tags_of(out), tags_of(path))
    assert not [p for p in tmp_path.iterdir() if "part" in p.name]
    source.close()


def test_another_key_starts_afresh(tmp_path: Path) -> None:
    path, stored = make(tmp_path, "tiles")
    box = (slice(0, 70), slice(0, 90))
    with open_source(path) as source:
        first = create_target(tmp_path / "o.tif", source, resume=True, key="a")
        first.write(box, stored)
        first.close()
        again = create_target(tmp_path / "o.tif", source, resume=True, key="b")
        assert not again.is_done(box)
        again.abandon()
    assert os.listdir(tmp_path) == ["in.tif"]


@pytest.mark.parametrize("kind", ["tiles", "npy", "zarr"])
def test_one_run_at_a_time_writes_a_file(tmp_path: Path, kind: str) -> None:
    path, stored = make(tmp_path, kind)
    out = tmp_path / f"out{path.suffix}"
    folder = tmp_path / f".out{path.suffix}.part"
    folder.mkdir()
    (folder / "lock").write_text("process 1 on elsewhere\n")  # of a run that is dead
    whole = tuple(slice(0, n) for n in stored.shape)
    with open_source(path) as source:
        first = create_target(out, source)
        told = rf"another run is writing it \(process {os.getpid()} on .*\); wait for it, or give"
        with pytest.raises(FileError, match=told):
            create_target(out, source, resume=True)
        first.write(whole, stored)
        first.finish()
        create_target(out, source).abandon()
    np.testing.assert_array_equal(read_image(out).pixels, stored)
    assert sorted(os.listdir(tmp_path)) == sorted([path.name, out.name])


def plant(place: Path, what: str, victim: Path) -> None:
    """Put something at a name that a run will use."""
    if what == "link":
        place.symlink_to(victim)
    elif what == "dangling":
        place.symlink_to(victim.with_name("made.txt"))
    elif what == "hard link":
        os.link(victim, place)
    elif what == "folder":
        place.symlink_to(victim.parent / "folder")
    else:
        os.mkfifo(place)


@pytest.mark.skipif(os.name != "posix", reason="links and pipes")
@pytest.mark.parametrize("kind", ["tiles", "npy", "zarr"])
@pytest.mark.parametrize("what", ["link", "dangling", "hard link", "folder", "pipe"])
def test_nothing_is_written_through_what_others_planted(
    tmp_path: Path, kind: str, what: str
) -> None:
    (tmp_path / "run").mkdir()
    path, _ = make(tmp_path / "run", kind)
    out = tmp_path / "run" / f"out{path.suffix}"
    victim = tmp_path / "precious.txt"
    victim.write_text("precious")
    (tmp_path / "folder").mkdir()
    plant(out.with_name(f".{out.name}.part"), what, victim)
    told = "beside it is no folder of ours; remove it"
    with open_source(path) as source, pytest.raises(FileError, match=told):
        create_target(out, source, resume=True, key="k")
    assert not out.exists()
    assert victim.read_text() == "precious"
    assert not (tmp_path / "made.txt").exists()
    assert not any((tmp_path / "folder").iterdir())


@pytest.mark.skipif(os.name != "posix", reason="owners of files")
def test_a_folder_of_somebody_else_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, _ = make(tmp_path, "npy")
    (tmp_path / ".out.npy.part").mkdir(mode=0o777)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    told = "beside it is no folder of ours; remove it"
    with open_source(path) as source, pytest.raises(FileError, match=told):
        create_target(tmp_path / "out.npy", source)


@pytest.mark.skipif(os.name != "posix", reason="modes of folders")
def test_nobody_else_can_look_into_the_hidden_folder(tmp_path: Path) -> None:
    path, _ = make(tmp_path, "npy")
    with open_source(path) as source:
        target = create_target(tmp_path / "out.npy", source)
        assert (tmp_path / ".out.npy.part").stat().st_mode & 0o077 == 0
        target.abandon()


@pytest.mark.parametrize("kind", ["tiles", "npy", "zarr"])
def test_what_another_run_put_in_the_place_gets_no_name(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there are no locks, as on some network disks."""
    monkeypatch.setattr("symsmooth.io.workplace._try_lock", lambda handle: True)
    path, stored = make(tmp_path, kind)
    out = tmp_path / f"out{path.suffix}"
    whole = tuple(slice(0, n) for n in stored.shape)
    with open_source(path) as source:
        first = create_target(out, source)
        second = create_target(out, source)
        with pytest.raises(FileError, match="another run has replaced"):
            first.write(whole, stored)
        with pytest.raises(FileError, match="another run has replaced"):
            first.finish()
        first.abandon()
        assert not out.exists()
        second.write(whole, stored)
        second.finish()
    np.testing.assert_array_equal(read_image(out).pixels, stored)


@pytest.mark.parametrize("kind", ["deflate", "npy", "zarr"])
def test_a_failed_run_leaves_nothing_and_an_unfinished_one_gets_no_name(
    tmp_path: Path, kind: str
) -> None:
    path, stored = make(tmp_path, kind)
    out = tmp_path / f"out{path.suffix}"
    box = cut_up(stored.shape, 4)[0]
    with open_source(path) as source:
        with pytest.raises(KeyboardInterrupt):
            write_and_stop(create_target(out, source), [box], stored)
        assert os.listdir(tmp_path) == [path.name]
        with pytest.raises(FileError, match="not all of it"), create_target(out, source) as target:
            target.write(box, stored[box])
    assert os.listdir(tmp_path) == [path.name]


KILLED = """
import sys, numpy as np
from symsmooth.io.regions import create_target, open_source
source = open_source(sys.argv[1])
target = create_target(sys.argv[2], source, resume=True, key="k")
for row in range(0, 70, 7):
    box = (slice(row, min(row + 7, 70)), slice(0, 90))
    if not target.is_done(box):
        target.write(box, 65535 - source.read(box))
        print(row, flush=True)
        sys.stdin.readline()
target.finish()
"""


@pytest.mark.skipif(os.name != "posix", reason="sends SIGKILL")
@pytest.mark.parametrize("end", [".tif", ".zarr"])
def test_kill_9_leaves_no_output_or_a_resumable_one(tmp_path: Path, end: str) -> None:
    path, stored = make(tmp_path, "deflate")
    if end == ".zarr":
        pytest.importorskip("zarr").create_array(
            str(tmp_path / "in.zarr"), data=stored, chunks=(16, 16)
        )
        path = tmp_path / "in.zarr"
    out = tmp_path / f"out{end}"
    environment = {**os.environ, "PYTHONPATH": str(Path(symsmooth.__file__).parents[1])}
    command = [sys.executable, "-c", KILLED, str(path), str(out)]
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    process = subprocess.Popen(command, env=environment, **pipes)
    assert process.stdout is not None
    assert process.stdout.readline() == "0\n"  # one box is written, and it waits to be told more
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert not out.exists()
    done = subprocess.run(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [str(row) for row in range(7, 70, 7)]
    np.testing.assert_array_equal(read_image(out).pixels, 65535 - stored)


def test_other_processes_can_read_and_write(tmp_path: Path) -> None:
    pytest.importorskip("zarr")
    path, stored = make(tmp_path, "zarr")
    with open_source(path) as source, create_target(tmp_path / "o.zarr", source) as target:
        far: tuple[Source, Any] = pickle.loads(pickle.dumps((source, target)))
        for box in itertools.product(
            [slice(0, 1), slice(1, 3)], [slice(0, 50)], [slice(0, 16), slice(16, 60)]
        ):
            far[1].write(box, far[0].read(box))
    np.testing.assert_array_equal(read_image(tmp_path / "o.zarr").pixels, stored)


def test_a_box_of_a_large_image_costs_no_more_than_the_box(tmp_path: Path) -> None:
    tifffile.imwrite(  # a sparse file
        tmp_path / "large.tif", shape=(20_000, 20_000), dtype=np.uint16, tile=(256, 256)
    )
    with open_source(tmp_path / "large.tif") as source:
        assert source.nbytes == 800_000_000
        tracemalloc.start()
        source.read((slice(9_000, 9_512), slice(100, 612)))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 8e6


@pytest.mark.parametrize(
    "box",
    [
        (slice(0, 71), slice(0, 90)),
        (slice(0, 70),),
        (slice(5, 5), slice(0, 90)),
        (slice(-1, 3), slice(0, 90)),
        (slice(0, 70, 2), slice(0, 90)),
    ],
)
def test_wrong_boxes_are_refused(tmp_path: Path, box: Any) -> None:
    path, stored = make(tmp_path, "tiles")
    with open_source(path) as source:
        with pytest.raises(ValueError, match=r"box must lie in the shape \(70, 90\)"):
            source.read(box)
        target = create_target(tmp_path / "o.tif", source)
        with pytest.raises(ValueError, match="box must lie"):
            target.write(box, stored)
        target.abandon()


def test_what_has_no_pieces_is_refused(tmp_path: Path) -> None:
    from PIL import Image

    Image.new("L", (9, 9)).save(tmp_path / "a.png")
    np.save(tmp_path / "a.npy", np.zeros((9, 9)))
    (tmp_path / "bad.tif").write_bytes(b"II*\0\xff\xff\xff\xff")
    for name, says in (("a.png", "tiled TIFF"), ("bad.tif", "no image"), ("no", "no such")):
        with pytest.raises(FileError, match=says):
            open_source(tmp_path / name)
    with open_source(tmp_path / "a.npy") as source, pytest.raises(FileError, match=r"use \.tif"):
        create_target(tmp_path / "o.png", source)
