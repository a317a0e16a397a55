"""Blocks equal the whole, without seams; on files and clusters every box is right or not there."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import symsmooth
from symsmooth import blocks
from symsmooth.noise import add_noise

from .conftest import psnr

da = pytest.importorskip("dask.array")
zarr = pytest.importorskip("zarr")

SIGMA = 0.1
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(symsmooth.__file__).parents[1])}


@pytest.fixture(scope="module")
def clean() -> np.ndarray:
    from skimage import data

    return data.camera()[:320, 100:420] / 255.0


@pytest.fixture(scope="module")
def noisy(clean) -> np.ndarray:
    return add_noise(clean, SIGMA, 0)


@pytest.fixture
def small_blocks(monkeypatch) -> None:
    monkeypatch.setitem(blocks._SIDE, 2, 160 + 96)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(
    "options", [{"method": "nlm"}, {"quality": "preview"}, {"quality": "fast"}]
)
def test_blocks_equal_the_whole_without_seams(clean, noisy, options) -> None:
    options = dict(options)
    method = options.pop("method", "denoise")
    found = symsmooth.denoise_blocks(
        da.from_array(noisy, chunks=80), method, sigma=SIGMA, **options
    )
    assert found.chunks == da.from_array(noisy, chunks=80).chunks
    result = found.compute(scheduler="sync")
    whole = symsmooth.METHODS[method](noisy, SIGMA, **options)
    assert psnr(result, clean) > psnr(whole, clean) - 0.04
    steps = np.abs(np.diff(result - whole, axis=0)).mean(axis=1)  # a seam is a step between rows
    assert steps[159] < 1.5 * np.median(steps[140:180]) + 1e-3 * SIGMA
    if method == "nlm":
        assert np.abs(result - whole).max() < 1e-4 * SIGMA  # each block has its own units


@pytest.mark.usefixtures("small_blocks")
def test_schedulers_and_workers_give_the_same_bits(noisy) -> None:
    lazy = symsmooth.denoise(da.from_array(noisy, chunks=80), quality="preview")
    first = lazy.compute(scheduler="sync")
    assert np.array_equal(first, lazy.compute(scheduler="threads"))
    again = symsmooth.denoise(da.from_array(noisy, chunks=160), quality="preview", workers=2)
    assert np.array_equal(first, again.compute(scheduler="threads"))


def test_one_block_is_the_method_itself_and_nothing_is_computed_early(noisy) -> None:
    def fail(_: object) -> np.ndarray:
        raise AssertionError("computed")

    broken = da.from_array(noisy, chunks=80).map_blocks(fail, dtype=float, meta=np.empty((0, 0)))
    symsmooth.denoise_blocks(broken)
    found = symsmooth.denoise_nlm(da.from_array(noisy.astype(np.float32), chunks=80)).compute()
    whole = symsmooth.denoise_nlm(noisy.astype(np.float32))
    assert np.array_equal(found, whole)


@pytest.mark.usefixtures("small_blocks")
def test_colour_masks_and_missing_blocks(noisy) -> None:
    colour = np.stack([noisy, noisy[::-1], noisy[:, ::-1]]).astype(np.float32)
    colour[:, :, 210:] = np.nan  # the last block has no pixel but those in its halo
    mask = np.zeros(noisy.shape, bool)
    mask[5:8, 5:8] = True
    array = da.from_array(colour, chunks=(1, 80, 80))
    found = symsmooth.denoise_nlm(array, SIGMA, channel_axis=0, mask=mask)
    assert found.chunks == array.chunks
    pixels = found.compute(scheduler="sync")
    assert pixels.dtype == np.float32
    assert np.isfinite(pixels[:, :, :210]).all()


def test_noise_is_estimated_from_a_bounded_sample() -> None:
    shape = (4000, 5000)
    found = blocks.windows(shape, [0, 1])
    assert len(found) == 16
    assert sum(np.prod([p.stop - p.start for p in box]) for box in found) == 2**20
    noise = np.random.default_rng(0).normal(0, 7.0, (2000, 2000))
    recipe = blocks.Recipe(symsmooth.METHODS["nlm"], {}, None, 0)
    parts = [noise[box] for box in blocks.windows(noise.shape, [0, 1])]
    assert abs(recipe.estimate(blocks.mosaic(parts, (0, 1), None)) - 7.0) < 0.1


def test_weights_of_all_blocks_sum_to_one() -> None:
    grid = blocks.make_grid((700, 90), (100, 90), (0, 1), halo=30)
    small = blocks.Grid(((0, 100, 200, 330), (0, 60, 150)), (30, 30))
    for cut in (grid, small):
        for index in cut.indices:
            parts = [
                np.ones([p.stop - p.start for p in cut.outer(other)], np.float32)
                for other in cut.neighbours(index)
            ]
            assert np.allclose(cut.blend(index, parts), 1.0, atol=1e-6)


def test_methods_can_be_sent_to_other_processes() -> None:
    for function in symsmooth.METHODS.values():
        assert pickle.loads(pickle.dumps(function)) is function


def test_xarray_comes_back_as_it_was(noisy) -> None:
    xarray = pytest.importorskip("xarray")
    image = xarray.DataArray(
        noisy,
        dims=("y", "x"),
        coords={"y": np.arange(320) / 2},
        attrs={"units": "counts"},
        name="a",
    )
    found = symsmooth.denoise_nlm(image, SIGMA)
    assert isinstance(found, xarray.DataArray)
    assert found.dims == image.dims
    assert found.attrs == image.attrs
    assert found.name == "a"
    assert np.array_equal(found.y, image.y)
    assert np.array_equal(found.values, symsmooth.denoise_nlm(noisy, SIGMA))
    lazy = symsmooth.denoise_nlm(image.chunk({"y": 100}), SIGMA)
    assert lazy.chunks == image.chunk({"y": 100}).chunks
    assert lazy.attrs == image.attrs
    assert np.allclose(lazy.values, found.values, atol=1e-5)


def test_torch_tensors_come_back_as_tensors(noisy) -> None:
    torch = pytest.importorskip("torch")
    image = torch.from_numpy(noisy.astype(np.float32)).requires_grad_()
    found = symsmooth.denoise_nlm(image, SIGMA)
    assert isinstance(found, torch.Tensor)
    assert found.dtype == image.dtype
    assert np.array_equal(found.numpy(), symsmooth.denoise_nlm(noisy.astype(np.float32), SIGMA))


def test_nothing_of_this_is_imported_without_need() -> None:
    code = (
        "import sys, numpy as np, symsmooth; symsmooth.denoise_bilateral(np.eye(8), 0.1);"
        "print([m for m in ('dask', 'xarray', 'torch', 'distributed') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=ENVIRONMENT, capture_output=True, text=True
    )
    assert done.stdout.strip() == "[]"


def make_store(folder: Path, side: int, chunk: int = 256) -> Path:
    """A noisy 16-bit Zarr, made a chunk at a time."""
    path = folder / "in.zarr"
    array = zarr.create_array(str(path), shape=(side, side), chunks=(chunk, chunk), dtype="u2")
    wave = 2000 + 1500 * np.sin(np.add.outer(np.arange(1024) / 17, np.arange(1024) / 41))
    for y in range(0, side, 1024):
        for x in range(0, side, 1024):
            noise = np.random.default_rng([y, x]).normal(0, 200, wave.shape)
            part = (wave + noise).clip(0).astype(np.uint16)
            array[y : y + 1024, x : x + 1024] = part[: side - y, : side - x]
    return path


def command(*arguments: object, small: bool = True) -> list[str]:
    """The command line, with small boxes and a low limit if the test is small."""
    change = (
        "from symsmooth import blocks; blocks._SIDE[2] = 352;"
        "from symsmooth.cli import pieces; pieces._LARGE = 1000;"
    )
    code = (change if small else "") + "from symsmooth.cli import main; main()"
    return [sys.executable, "-c", code, "denoise", *map(str, arguments)]


NLM = ("--method", "nlm", "--window", "9", "--json")


def run(*arguments: object, small: bool = True) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments, small=small), env=ENVIRONMENT, capture_output=True, text=True
    )


def test_a_store_is_denoised_box_by_box_as_the_library_does(tmp_path) -> None:
    path = make_store(tmp_path, 600, 128)
    done = run(path, "-o", tmp_path / "out.zarr", *NLM, "--sigma", 200)
    assert done.returncode == 0, done.stderr
    assert '"boxes": 4' in done.stdout
    stored = zarr.open_array(str(path), mode="r")[...]
    whole = symsmooth.denoise_nlm(stored, 200.0, window=9)
    found = zarr.open_array(str(tmp_path / "out.zarr"), mode="r")[...]
    assert np.abs(found.astype(int) - whole).max() <= 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.zarr", "out.zarr"]


@pytest.mark.skipif(os.name != "posix", reason="kills")
def test_a_killed_run_leaves_no_output_and_can_be_taken_up(tmp_path) -> None:
    path = make_store(tmp_path, 1024)
    out, log = tmp_path / "out.zarr", tmp_path / ".out.zarr.part.log"
    process = subprocess.Popen(command(path, "-o", out, *NLM), env=ENVIRONMENT)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        if log.exists() and log.read_bytes().count(b"\n") > 3:
            break
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not out.exists()
    assert log.exists()
    assert run(path, "-o", out, *NLM, "--resume").returncode == 0
    assert run(path, "-o", tmp_path / "undisturbed.zarr", *NLM).returncode == 0
    found, expected = (
        zarr.open_array(str(tmp_path / name), mode="r")[...]
        for name in ("out.zarr", "undisturbed.zarr")
    )
    assert np.array_equal(found, expected)
    assert not log.exists()


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="kills")
def test_a_worker_that_dies_costs_no_pixel(tmp_path) -> None:
    distributed = pytest.importorskip("distributed")
    path = make_store(tmp_path, 2048)
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, env=dict(ENVIRONMENT)
    ) as cluster:
        address = cluster.scheduler_address
        arguments = ("--quality", "preview", "--json", "--scheduler", address)
        log = tmp_path / ".out.zarr.part.log"
        process = subprocess.Popen(
            command(path, "-o", tmp_path / "out.zarr", *arguments), env=ENVIRONMENT
        )
        while process.poll() is None:
            if log.exists() and log.read_bytes().count(b"\n") > 4:
                break
            time.sleep(0.005)
        assert process.poll() is None
        os.kill(next(iter(cluster.workers.values())).pid, signal.SIGKILL)
        assert process.wait(300) == 0
    assert run(path, "-o", tmp_path / "calm.zarr", "--quality", "preview", "--json").returncode == 0
    found, expected = (
        zarr.open_array(str(tmp_path / name), mode="r")[...] for name in ("out.zarr", "calm.zarr")
    )
    assert np.array_equal(found, expected)


@pytest.mark.slow
def test_four_hundred_megapixels_in_two_gigabytes(tmp_path) -> None:
    side = int(os.environ.get("SYMSMOOTH_LARGE_SIDE", "20000"))
    path = make_store(tmp_path, side, 1000)
    watched = (
        "import resource, sys; from symsmooth.cli import app;"
        "app(sys.argv[1:], standalone_mode=False);"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    out = tmp_path / "out.zarr"
    arguments = ["denoise", str(path), "-o", str(out), "--quality", "preview", "--json"]
    done = subprocess.run(
        [sys.executable, "-c", watched, *arguments], env=ENVIRONMENT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[-1]) * 1024 < 2 * 2**30
    assert zarr.open_array(str(out), mode="r").shape == (side, side)
