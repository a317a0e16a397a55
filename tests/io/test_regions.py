"""Images box by box: what is read and written so is what it would be as a whole, or is not there."""

from __future__ import annotations

import itertools
import os
import pickle
import shutil
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
from symsmooth.io import FileError, read_image
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
    lock = tmp_path / f".out{path.suffix}.part.lock"
    lock.write_text("process 1 on elsewhere\n")  # of a run that is dead
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
@pytest.mark.parametrize("end", ["part", "part.log", "part.lock"])
@pytest.mark.parametrize("resume", [False, True])
def test_nothing_is_written_through_what_others_planted(
    tmp_path: Path, kind: str, what: str, end: str, resume: bool
) -> None:
    """A run refuses it, or puts its own file in the place: what the link leads to is as it was."""
    (tmp_path / "run").mkdir()
    path, stored = make(tmp_path / "run", kind)
    out = tmp_path / "run" / f"out{path.suffix}"
    whole = tuple(slice(0, n) for n in stored.shape)
    with open_source(path) as source:
        if resume:  # what a run before has left, which then was replaced
            left = create_target(out, source, resume=True, key="k")
            left.write(whole, stored)
            left.close()
        place = out.with_name(f".{out.name}.{end}")
        (tmp_path / "folder").mkdir()
        victim = tmp_path / "precious.txt"
        if place.is_file():
            victim.write_bytes(place.read_bytes())  # it looks right
            place.unlink()
        else:
            victim.write_text("precious")
            shutil.rmtree(place, ignore_errors=True)
        before = victim.read_bytes()
        plant(place, what, victim)
        if end == "part.lock":
            with pytest.raises(FileError, match="is a link, or no file of its own; remove it"):
                create_target(out, source, resume=resume, key="k")
            assert not out.exists()
        else:
            with create_target(out, source, resume=resume, key="k") as target:
                assert not target.is_done(whole)
                target.write(whole, 65535 - stored)
            np.testing.assert_array_equal(read_image(out).pixels, 65535 - stored)
    assert victim.read_bytes() == before
    assert not (tmp_path / "made.txt").exists()
    assert not any((tmp_path / "folder").iterdir())


@pytest.mark.skipif(os.name != "posix", reason="links")
def test_a_log_that_becomes_a_link_is_not_written_to(tmp_path: Path) -> None:
    path, stored = make(tmp_path, "npy")
    (tmp_path / "precious.txt").write_text("precious")
    log = tmp_path / ".out.npy.part.log"
    with open_source(path) as source:
        target = create_target(tmp_path / "out.npy", source)
        log.unlink()
        log.symlink_to(tmp_path / "precious.txt")
        with pytest.raises(FileError, match="is a link"):
            target.write(tuple(slice(0, n) for n in stored.shape), stored)
        target.abandon()
    assert (tmp_path / "precious.txt").read_text() == "precious"


@pytest.mark.parametrize("kind", ["tiles", "npy", "zarr"])
def test_what_another_run_put_in_the_place_gets_no_name(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there are no locks, as on some network disks."""
    monkeypatch.setattr("symsmooth.io.lock._try_lock", lambda handle: True)
    path, stored = make(tmp_path, kind)
    out = tmp_path / f"out{path.suffix}"
    whole = tuple(slice(0, n) for n in stored.shape)
    with open_source(path) as source:
        first = create_target(out, source)
        second = create_target(out, source)
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
    from symsmooth.io.tiff import empty

    with open(tmp_path / "large.tif", "wb") as handle:
        empty(handle, (20_000, 20_000), np.uint16, "YX")  # a sparse file
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
