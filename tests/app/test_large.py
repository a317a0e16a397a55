"""Large files, box by box: what the library makes of the whole; lost processes cost no pixel."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile

import symsmooth
from symsmooth.app import large
from symsmooth.app.job import DenoiseJob
from symsmooth.app.messages import UsageError
from symsmooth.core import blocks
from symsmooth.io import read_image
from symsmooth.io.formats import open_file
from symsmooth.io.regions import Target, open_source
from symsmooth.methods import find_method

from ..barriers import Barrier

zarr = pytest.importorskip("zarr")

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(symsmooth.__file__).parents[1])}
# Coverage could not write what it has counted, and would say so.
NOT_COUNTED = {name: text for name, text in ENVIRONMENT.items() if not name.startswith("COVERAGE")}
SMALL = (
    "from symsmooth.core import blocks; blocks.BLOCK_PIXELS = 256**2;"
    "from symsmooth.app import large; large._LARGE = 1000; large._PATIENCE = 5;"
)
NLM = ("--method", "nlm:window=9")
posix = pytest.mark.skipif(os.name != "posix", reason="signals")


def picture(side: int) -> np.ndarray:
    wave = 2000 + 1500 * np.sin(np.add.outer(np.arange(side) / 17, np.arange(side) / 41))
    noise = np.random.default_rng(side).normal(0, 200, wave.shape)
    return (wave + noise).clip(0).astype(np.uint16)


def make_store(folder: Path, pixels: np.ndarray, chunk: int = 128) -> Path:
    chunks = (1,) * (pixels.ndim - 2) + (chunk, chunk)
    zarr.create_array(str(folder / "in.zarr"), data=pixels, chunks=chunks)
    return folder / "in.zarr"


def pixels_of(path: Path) -> np.ndarray:
    return np.asarray(zarr.open_array(str(path), mode="r")[...])


def command(*arguments: object, small: bool = True) -> list[str]:
    """The command line, with small boxes and a low limit if the test is small."""
    code = (SMALL if small else "") + "from symsmooth.cli import main; main()"
    return [sys.executable, "-c", code, "denoise", *map(str, arguments)]


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*arguments), env=ENVIRONMENT, capture_output=True, text=True)


def lines_in(log: Path) -> int:
    return log.read_bytes().count(b"\n") if log.exists() else 0


def heed_ctrl_c() -> None:
    """What runs in the background ignores Ctrl-C, and so would its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


# Wait after some boxes; those of other processes count.  A dask worker runs what it preloads twice.
WAITS = """
from symsmooth.io import regions
write = getattr(regions.Target.write, "real", regions.Target.write)
def write_and_wait(self, box, pixels):
    write(self, box, pixels)
    if self.n_done >= {boxes}:
        barrier()
write_and_wait.real = write
regions.Target.write = write_and_wait
"""


def start_waiting(barrier: Barrier, boxes: int, *arguments: object) -> subprocess.Popen[bytes]:
    """Start a run that waits at a barrier whenever so many boxes, or more, are done."""
    python, flag, code, *words = command(*arguments)
    code = barrier.code + WAITS.format(boxes=boxes) + code
    return subprocess.Popen(
        [python, flag, code, *words],
        env=ENVIRONMENT,
        stderr=subprocess.PIPE,
        preexec_fn=heed_ctrl_c,
    )


def test_a_store_becomes_what_the_library_makes_of_it(tmp_path) -> None:
    path = make_store(tmp_path, picture(600))
    done = run(path, "-o", tmp_path / "out.zarr", *NLM, "--sigma", 200, "--json")
    assert done.returncode == 0, done.stderr
    assert '"boxes": 4' in done.stdout
    whole = symsmooth.denoise_nlm(picture(600), 200.0, window=9)
    assert np.mean(pixels_of(tmp_path / "out.zarr") != whole) < 1e-3  # ties
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.zarr", "out.zarr"]


def denoise_here(
    source: Path, target: Path, monkeypatch: Any, resume: bool = False, scheduler: str = "",
    method: str = "nlm", stages: list[str] | None = None, **options: Any,
) -> list[str]:  # fmt: skip
    """Denoise in this process with small boxes; return the stages that were reported."""
    monkeypatch.setattr(blocks, "BLOCK_PIXELS", 256**2)
    stages = [] if stages is None else stages
    own = {"window": 9} if method == "nlm" else {}
    job = DenoiseJob(find_method(method), own, 20.0, "auto", 1, 0, **options)
    how = large.BoxOptions(resume, scheduler, stages.append)
    with open_source(source) as opened:
        large.denoise_boxes(opened, target, job, lambda _, what: stages.append(what), how)
    return stages


@pytest.mark.parametrize("end", [".tif", ".zarr"])
def test_tiled_tiff_with_alpha(tmp_path, monkeypatch, end) -> None:
    pixels = (np.stack([picture(600) // 20] * 4, axis=-1)).astype(np.uint8)
    pixels[..., 3] = np.arange(600) % 256
    options: dict[str, Any] = {"photometric": "rgb", "extrasamples": ["unassalpha"]}
    tifffile.imwrite(tmp_path / "in.tif", pixels, tile=(128, 128), **options)
    if end == ".zarr":  # which has no alpha
        monkeypatch.setattr("symsmooth.io.zarr._CHUNK", 128**2)
        pixels = pixels[..., :3].copy()
        tifffile.imwrite(tmp_path / "in.tif", pixels, tile=(128, 128), photometric="rgb")
    stages = denoise_here(tmp_path / "in.tif", tmp_path / f"out{end}", monkeypatch)
    assert {re.sub(": .*", "", stage) for stage in stages} == {
        "survey", "finishing", "done", *(f"box {i} of 4" for i in range(1, 5))
    }  # fmt: skip
    image = read_image(tmp_path / f"out{end}")
    whole = symsmooth.denoise_nlm(pixels[..., :3], 20.0, window=9, channel_axis=-1)
    assert np.mean(image.pixels != whole) < 1e-3
    if end == ".tif":
        assert image.alpha is not None
        assert np.array_equal(np.squeeze(image.alpha), pixels[..., 3])


def test_pages_larger_than_a_block_are_cut(tmp_path, monkeypatch) -> None:
    """The boxes of a volume are blocks of it, not stacks of its whole pages."""
    volume = np.stack([picture(80)] * 36) + np.arange(36, dtype=np.uint16)[:, None, None]
    tifffile.imwrite(tmp_path / "in.tif", volume, metadata={"axes": "ZYX"}, rowsperstrip=80)
    monkeypatch.setattr(blocks, "BLOCK_PIXELS", 40**3)
    stages: list[str] = []
    job = DenoiseJob(find_method("nlm"), {"window": 3}, 200.0, "auto", 1, 0, third="volume")
    how = large.BoxOptions(False, "", stages.append)
    with open_source(tmp_path / "in.tif") as opened:
        large.denoise_boxes(
            opened, tmp_path / "out.tif", job, lambda _, what: stages.append(what), how
        )
    boxes = {re.sub(": .*", "", stage) for stage in stages if stage.startswith("box ")}
    assert boxes == {f"box {i} of 4" for i in range(1, 5)}
    whole = symsmooth.denoise_nlm(volume, 200.0, window=3, channel_axis=None)
    assert np.mean(read_image(tmp_path / "out.tif").pixels != whole) < 1e-3  # ties


@pytest.mark.parametrize("dtype", ["u1", "i4", "f4", "f8"])
def test_the_identity_keeps_every_bit(tmp_path, monkeypatch, dtype) -> None:
    pixels = np.random.default_rng(0).normal(100, 20, (600, 600)).astype(dtype)
    path = make_store(tmp_path, pixels)
    denoise_here(path, tmp_path / "out.zarr", monkeypatch, method="identity")
    assert np.array_equal(pixels_of(tmp_path / "out.zarr"), pixels)


def test_every_picture_of_a_stack_is_its_own(tmp_path, monkeypatch) -> None:
    stack = np.stack([picture(400), picture(400)[::-1]])
    path = make_store(tmp_path, stack)
    denoise_here(path, tmp_path / "out.zarr", monkeypatch, third="none")
    found = pixels_of(tmp_path / "out.zarr")
    for one, given in zip(found, stack, strict=True):
        assert np.mean(one != symsmooth.denoise_nlm(given, 20.0, window=9)) < 1e-3


@posix
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_stopped_leaves_no_output_and_can_be_gone_on_with(
    tmp_path, monkeypatch, barrier, how
) -> None:
    path = make_store(tmp_path, picture(1024), 256)
    out, log = tmp_path / "out.zarr", tmp_path / ".out.zarr.part" / "log"
    process = start_waiting(barrier, 9, path, "-o", out, *NLM, "--sigma", 20)
    barrier.wait(process)
    process.send_signal(how)
    _, error = process.communicate()
    assert process.returncode == (-9 if how == signal.SIGKILL else 128 + how)
    if how != signal.SIGKILL:
        assert b"9 of 16 boxes are done and kept; --resume continues" in error
    assert not out.exists()
    assert lines_in(log) == 1 + 9
    stages = denoise_here(path, out, monkeypatch, resume=True)
    assert len(set(stages)) < 16  # some need not be done
    assert not log.exists()
    denoise_here(path, tmp_path / "calm.zarr", monkeypatch)
    assert np.array_equal(pixels_of(out), pixels_of(tmp_path / "calm.zarr"))


def make_input(folder: Path, end: str, pixels: np.ndarray) -> Path:
    path = folder / f"in{end}"
    if end == ".zarr":
        return make_store(folder, pixels, 256)
    if end == ".npy":
        np.save(path, pixels)
    else:
        tifffile.imwrite(path, pixels, tile=(256, 256), compression="zlib")
    return path


@posix
@pytest.mark.parametrize(
    ("end", "more"),
    [
        (".tif", ()),
        pytest.param(".tif", ("--resume",), marks=pytest.mark.slow),
        (".zarr", ("--resume",)),
        pytest.param(".zarr", (), marks=pytest.mark.slow),
        pytest.param(".npy", (), marks=pytest.mark.slow),
    ],
)
def test_a_second_run_on_one_output_is_refused_and_spoils_nothing(
    tmp_path, monkeypatch, barrier, end, more
) -> None:
    path = make_input(tmp_path, end, picture(1024))
    out, log = tmp_path / f"out{end}", tmp_path / f".out{end}.part" / "log"
    arguments = (path, "-o", out, "--sigma", 20, *NLM, *more)
    with start_waiting(barrier, 1, *arguments) as first:
        barrier.wait(first)
        assert lines_in(log) == 2  # it is in the midst of it while the second comes
        second = run(*arguments)
        barrier.open()
        told = first.communicate()[1].decode()
    assert (first.returncode, told) == (0, "")
    assert second.returncode == 1
    assert len(second.stderr.splitlines()) == 1
    assert f"another run is writing it (process {first.pid} on " in second.stderr
    calm = tmp_path / f"calm{end}"
    denoise_here(path, calm, monkeypatch)
    assert np.array_equal(read_image(out).pixels, read_image(calm).pixels)
    assert not [p.name for p in tmp_path.iterdir() if "part" in p.name]


def small_files() -> None:
    """A disk with room for files of 100 kB: as good as full."""
    import resource

    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))


@posix
@pytest.mark.parametrize("end", [".tif", ".zarr", ".npy"])
def test_a_full_disk_is_one_line_and_leaves_nothing(tmp_path, end) -> None:
    path = make_input(tmp_path, end, np.random.default_rng(0).integers(0, 2**16, (600, 600), "u2"))
    done = subprocess.run(
        command(path, "-o", tmp_path / f"out{end}", "--method", "identity"),
        env=NOT_COUNTED, capture_output=True, text=True, preexec_fn=small_files,
    )  # fmt: skip
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "File too large" in done.stderr
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_another_picture_is_not_gone_on_with(tmp_path, monkeypatch) -> None:
    path, out = make_store(tmp_path, picture(600)), tmp_path / "out.zarr"
    stages: list[str] = []

    def stop(self: Any, box: Any, pixels: Any) -> None:
        write(self, box, pixels)
        raise KeyboardInterrupt

    write = Target.write
    with monkeypatch.context() as patch:
        patch.setattr(Target, "write", stop)
        with pytest.raises(KeyboardInterrupt):
            denoise_here(path, out, patch, stages=stages)
    assert str(stages[-1]).startswith("1 of 4 boxes are done and kept")
    assert lines_in(tmp_path / ".out.zarr.part" / "log") == 2
    zarr.open_array(str(path), mode="r+")[...] = picture(600)[::-1]
    denoise_here(path, out, monkeypatch, resume=True)
    denoise_here(path, tmp_path / "calm.zarr", monkeypatch)
    assert np.array_equal(pixels_of(out), pixels_of(tmp_path / "calm.zarr"))


@contextmanager
def a_cluster(
    n_workers: int, prepare: Path | None = None
) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A scheduler, and workers that nobody starts again; each runs a script first."""
    distributed = pytest.importorskip("distributed")
    start = [sys.executable, "-m", "dask", "worker"]
    options = ["--nthreads", "1", "--no-nanny", "--no-dashboard"]
    options += ["--death-timeout", "600", "--memory-limit", "0"]
    options += [] if prepare is None else ["--preload", str(prepare)]
    with distributed.LocalCluster(n_workers=0, dashboard_address=None, silence_logs=50) as local:
        address = local.scheduler_address
        workers = [
            subprocess.Popen(
                [*start, address, *options], env=ENVIRONMENT, stderr=subprocess.DEVNULL
            )
            for _ in range(n_workers)
        ]
        try:
            while len(local.scheduler_info["workers"]) < n_workers:
                assert all(worker.poll() is None for worker in workers)
                time.sleep(0.05)
            yield address, workers
        finally:
            for worker in workers:
                worker.kill()
                worker.wait()


def test_a_cluster_gives_the_same_bits(tmp_path, monkeypatch) -> None:
    distributed = pytest.importorskip("distributed")
    path = make_store(tmp_path, picture(600))
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, protocol="tcp", dashboard_address=None
    ) as local:
        address = local.scheduler_address
        stages = denoise_here(path, tmp_path / "out.zarr", monkeypatch, scheduler=address)
    assert stages == ["survey", *["boxes"] * 4, "finishing", "done"]
    denoise_here(path, tmp_path / "calm.zarr", monkeypatch)
    assert np.array_equal(pixels_of(tmp_path / "out.zarr"), pixels_of(tmp_path / "calm.zarr"))


@posix
@pytest.mark.slow
def test_a_worker_that_dies_costs_no_pixel(tmp_path, monkeypatch, barrier) -> None:
    path = make_store(tmp_path, picture(1536), 256)
    out, log = tmp_path / "out.zarr", tmp_path / ".out.zarr.part" / "log"
    prepare = tmp_path / "prepare.py"
    prepare.write_text(barrier.code + WAITS.format(boxes=4))
    with a_cluster(2, prepare) as (address, workers):
        arguments = (path, "-o", out, *NLM, "--sigma", 20, "--scheduler", address)
        process = subprocess.Popen(command(*arguments), env=ENVIRONMENT)
        barrier.wait(process, 2)  # both have written a box, and not said so
        assert lines_in(log) >= 5
        workers[0].kill()
        barrier.open()
        assert process.wait() == 0
    denoise_here(path, tmp_path / "calm.zarr", monkeypatch)
    assert np.array_equal(pixels_of(out), pixels_of(tmp_path / "calm.zarr"))


def test_a_cluster_that_is_not_there_is_one_line(tmp_path, monkeypatch) -> None:
    path, out = make_store(tmp_path, picture(64), 64), tmp_path / "out.zarr"
    done = run(path, "-o", out, *NLM, "--scheduler", "tcp://127.0.0.1:1")
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "no dask scheduler answers at tcp://127.0.0.1:1" in done.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["in.zarr"]
    for address in ("nonsense", "tcp://127.0.0.1", "tcp://127.0.0.1:many", "tcp://no.such.host.:9"):
        with pytest.raises(UsageError, match="no dask scheduler"), large.connected(address):
            pass
    monkeypatch.setattr(large, "_PATIENCE", 0.5)
    with (
        a_cluster(0) as (idle, _),
        pytest.raises(UsageError, match="no worker"),
        large.connected(idle),
    ):
        pass
    with open_file(path) as file, pytest.raises(UsageError, match=r"must end in \.zarr"):
        large.large_source(file, Path("a.tif"), "x")


WATCHED = """
import sys, threading, time, psutil
from symsmooth.cli import app
peak, me = [0], psutil.Process()
def watch():
    while True:
        family = [me, *me.children(recursive=True)]
        peak[0] = max(peak[0], sum(p.memory_info().rss for p in family))
        time.sleep(0.05)
threading.Thread(target=watch, daemon=True).start()
app(sys.argv[1:], standalone_mode=False)
import resource
print(max(peak[0], 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))
"""


@posix
@pytest.mark.slow
def test_four_hundred_megapixels_in_two_gigabytes(tmp_path) -> None:
    side = int(os.environ.get("SYMSMOOTH_LARGE_SIDE", "20000"))
    path, out = tmp_path / "in.zarr", tmp_path / "out.zarr"
    array = zarr.create_array(str(path), shape=(side, side), chunks=(1000, 1000), dtype="u2")
    part = picture(1000)
    for y in range(0, side, 1000):
        for x in range(0, side, 1000):
            array[y : y + 1000, x : x + 1000] = np.roll(part, (y // 7, x // 11), (0, 1))
    arguments = ["denoise", path, "-o", out, "--quality", "preview", "--workers", 2, "--json"]
    done = subprocess.run(
        [sys.executable, "-c", WATCHED, *map(str, arguments)],
        env=ENVIRONMENT, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    peak = int(done.stdout.split()[-1])
    print(f"\n{side} x {side}: peak {peak / 2**30:.2f} GiB; {done.stdout.splitlines()[0]}")
    assert peak < 2 * 2**30
    assert zarr.open_array(str(out), mode="r").shape == (side, side)


@pytest.mark.parametrize("end", [".tif", ".npy", ".zarr"])
def test_boxes_of_another_dtype_are_not_rounded(tmp_path, monkeypatch, end) -> None:
    pixels = picture(600).astype(np.uint16)
    tifffile.imwrite(tmp_path / "in.tif", pixels, tile=(128, 128))
    target = tmp_path / f"out{end}"
    denoise_here(tmp_path / "in.tif", target, monkeypatch, dtype="float32")
    image = read_image(target)
    assert image.pixels.dtype == np.float32
    whole = symsmooth.denoise_nlm(pixels.astype(np.float32), 20.0, window=9)
    assert np.allclose(image.pixels, whole, rtol=1e-4)


def test_boxes_of_floats_become_whole_numbers(tmp_path, monkeypatch) -> None:
    pixels = picture(600).astype(np.float32)
    np.save(tmp_path / "in.npy", pixels)
    denoise_here(tmp_path / "in.npy", tmp_path / "out.npy", monkeypatch, dtype="uint16")
    made = np.load(tmp_path / "out.npy")
    assert made.dtype == np.uint16
    whole = symsmooth.denoise_nlm(pixels, 20.0, window=9)
    assert np.abs(made - whole).max() < 0.51
