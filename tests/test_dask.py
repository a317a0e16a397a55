"""Blocks equal the whole, without seams, for any scheduler; arrays of other libraries come back as such."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symsmooth
from symsmooth.core import blocks, image
from symsmooth.core.metrics import psnr
from symsmooth.dask import BlockTask
from symsmooth.noise import add_noise

da = pytest.importorskip("dask.array")

SIGMA = 0.1
SYNC: dict[str, Any] = {"scheduler": "sync"}


@pytest.fixture(scope="module")
def clean() -> np.ndarray:
    from skimage import data

    return data.camera()[:320, 100:420] / 255.0


@pytest.fixture(scope="module")
def noisy(clean) -> np.ndarray:
    return add_noise(clean, SIGMA, 0)


@pytest.fixture
def small_blocks(monkeypatch) -> None:
    """Four blocks of 160 x 160 and their halo."""
    monkeypatch.setattr(blocks, "BLOCK_PIXELS", 160**2)


def chunked(pixels: np.ndarray, chunks: Any = 80) -> Any:
    return da.from_array(pixels, chunks=chunks)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("name", ["gaussian", "bilateral", "nlm", "lark"])
def test_a_filter_with_a_window_gives_what_it_gives_on_the_whole(name, noisy) -> None:
    found = symsmooth.denoise_blocks(chunked(noisy), name, sigma=SIGMA)
    assert found.chunks == chunked(noisy).chunks
    whole = symsmooth.METHODS[name](noisy, SIGMA)
    assert np.abs(found.compute(**SYNC) - whole).max() < 1e-4 * SIGMA


@pytest.mark.usefixtures("small_blocks")
def test_integers_are_rounded_once(noisy) -> None:
    counts = np.clip(1000 * noisy + 100, 0, None).astype(np.uint16)
    found = symsmooth.denoise_blocks(chunked(counts), "nlm", sigma=100.0).compute(**SYNC)
    whole = symsmooth.denoise_nlm(counts, 100.0)
    assert found.dtype == np.uint16
    assert np.mean(found != whole) < 1e-3  # ties, decided by the last bit


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("quality", ["preview", "fast"])
def test_learned_clusters_do_as_well_as_on_the_whole_without_seams(clean, noisy, quality) -> None:
    """Clusters begin in random places, so bits differ: PSNR by 0.01 dB from seed to seed."""
    results, wholes = [], []
    for seed in range(3):
        lazy = symsmooth.denoise(chunked(noisy), SIGMA, quality=quality, rng=seed)
        results.append(lazy.compute(**SYNC))
        wholes.append(symsmooth.denoise(noisy, SIGMA, quality=quality, rng=seed))
    ours, theirs = ([psnr(one, clean) for one in found] for found in (results, wholes))
    assert np.mean(ours) > np.mean(theirs) - 0.02
    steps = np.abs(np.diff(results[0] - wholes[0], axis=0)).mean(axis=1)
    assert steps[159] < 1.3 * np.median(steps)  # a seam is a step between rows


@pytest.mark.usefixtures("small_blocks")
def test_what_holds_for_the_whole_is_found_once(monkeypatch, noisy) -> None:
    from symsmooth.gsfw import removal

    pieces = []

    def noted(observation: Any, *others: Any, **asked: Any) -> Any:
        if observation.is_piece:
            pieces.append(observation)
        return run_gsfw(observation, *others, **asked)

    run_gsfw = removal.run_gsfw
    monkeypatch.setattr(removal, "run_gsfw", noted)
    uneven = noisy * np.linspace(0.2, 1.0, 320)[:, None]
    symsmooth.denoise(chunked(uneven), quality="preview").compute(**SYNC)
    assert len(pieces) >= 4
    assert len({piece.contrast for piece in pieces}) == 1
    assert len({float(np.std(piece.pixels)) for piece in pieces}) > 1


@pytest.mark.usefixtures("small_blocks")
def test_schedulers_and_workers_give_the_same_bits(noisy) -> None:
    lazy = symsmooth.denoise(chunked(noisy), quality="preview")
    first = lazy.compute(**SYNC)
    assert np.array_equal(first, lazy.compute(scheduler="threads"))
    again = symsmooth.denoise(chunked(noisy, 160), quality="preview", workers=2)
    assert np.array_equal(first, again.compute(scheduler="threads"))
    other = symsmooth.denoise(chunked(noisy), quality="preview", rng=1)
    assert not np.array_equal(first, other.compute(**SYNC))


def test_one_block_is_the_method_itself_and_nothing_is_computed_early(noisy) -> None:
    def fail(_: object) -> np.ndarray:
        raise AssertionError("computed")

    broken = chunked(noisy).map_blocks(fail, dtype=float, meta=np.empty((0, 0)))
    symsmooth.denoise_blocks(broken)
    counts = (200 * noisy + 50).astype(np.uint8)
    found = symsmooth.denoise_nlm(chunked(counts)).compute(**SYNC)
    assert np.array_equal(found, symsmooth.denoise_nlm(counts))


@pytest.mark.usefixtures("small_blocks")
def test_colour_masks_and_missing_blocks(noisy) -> None:
    colour = np.stack([noisy, noisy[::-1], noisy[:, ::-1]]).astype(np.float32)
    colour[:, :, 210:] = np.nan  # the last block has no pixel but those in its halo
    mask = np.zeros(noisy.shape, bool)
    mask[5:8, 5:8] = True
    array = chunked(colour, (1, 80, 80))
    found = symsmooth.denoise_nlm(array, SIGMA, channel_axis=0, mask=mask)
    assert found.chunks == array.chunks
    pixels = found.compute(**SYNC)
    assert pixels.dtype == np.float32
    assert np.isfinite(pixels[:, :, :210]).all()
    whole = symsmooth.denoise_nlm(colour, SIGMA, channel_axis=0, mask=mask)
    seen = ~mask & np.isfinite(colour[0])
    assert np.abs(pixels - whole)[:, seen].max() < 0.05 * SIGMA  # what is filled in may differ


def test_volumes_in_blocks(monkeypatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK_PIXELS", 32**3)
    volume = add_noise(np.indices((8, 72, 70)).sum(axis=0) / 60.0, SIGMA, 0)
    for window in (5, 15):  # each asks for its own halo
        options = {"window": window, "patch_size": 3}
        lazy = symsmooth.denoise_nlm(chunked(volume, (8, 36, 35)), SIGMA, **options)
        whole = symsmooth.denoise_nlm(volume, SIGMA, **options)
        assert np.abs(lazy.compute(**SYNC) - whole).max() < 1e-4 * SIGMA


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(
    ("name", "options"),
    [("gaussian", {"h_s": 12.0}), ("bilateral", {"h_s": 10.0}), ("nlm", {"window": 61})],
)
def test_a_wide_window_has_a_wide_halo(name, options, noisy) -> None:
    found = symsmooth.denoise_blocks(chunked(noisy), name, sigma=SIGMA, **options)
    whole = symsmooth.METHODS[name](noisy, SIGMA, **options)
    assert np.abs(found.compute(**SYNC) - whole).max() < 1e-4 * SIGMA


@pytest.mark.usefixtures("small_blocks")
def test_chunks_larger_than_a_block_are_cut(noisy) -> None:
    """A block is all that is in memory at once, however large the chunks are."""
    lazy = symsmooth.denoise(chunked(noisy, 320), SIGMA, quality="preview", rng=1)
    assert lazy.chunks == ((320,), (320,))
    small = symsmooth.denoise(chunked(noisy, 160), SIGMA, quality="preview", rng=1)
    assert np.array_equal(lazy.compute(**SYNC), small.compute(**SYNC))


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"method": "bm4d"}, "there is no method"),
        ({"halo": 0}, "halo must be"),
        ({"sigma": np.ones((9, 9))}, "sigma must be"),
        ({"mask": np.ones((3, 3), bool)}, "mask must be"),
        ({"mask": np.ones((9, 9))}, "mask must be"),
        ({"progress": print}, "ProgressBar"),
        ({"method": "gaussian", "h_s": -1.0}, "h_s must be"),
        ({"method": "bilateral", "h_s": "wide"}, "h_s must be"),
        ({"method": "nlm", "window": 4}, "window must be odd"),
        ({"method": "lark", "window": 0}, "window must be"),
        ({"method": "gsf", "patch_size": 2}, "patch_size must be odd"),
    ],
)
def test_wrong_requests_are_refused_at_once(options, what) -> None:
    with pytest.raises(ValueError, match=what):
        symsmooth.denoise_blocks(chunked(np.ones((9, 9))), **options)


def test_the_whole_is_looked_at_in_a_bounded_sample() -> None:
    found = blocks.windows((4000, 5000), (0, 1))
    assert len(found) == 16
    assert sum(np.prod([p.stop - p.start for p in box]) for box in found) == 2**20
    noise = np.random.default_rng(0).normal(0, 7.0, (2000, 2000))
    parts = [noise[box] for box in blocks.windows(noise.shape, (0, 1))]
    scene = BlockTask(symsmooth.METHODS["nlm"], {}, None, 0).survey(blocks.mosaic(parts, (0, 1)))
    assert scene.sample.spatial == (1024, 1024)
    assert abs(scene.noise.sigma - 7.0) < 0.1
    stack = blocks.windows(
        (40, 300, 3, 2000), (1, 3), (0,)
    )  # pictures at 40 times, colours between
    assert len({box[0].start for box in stack}) == 16
    assert {tuple(p.stop - p.start for p in box) for box in stack} == {(1, 256, 3, 256)}


def test_blending_is_a_partition_of_unity_and_keeps_what_all_agree_on() -> None:
    made = blocks.cut_along_chunks((700, 90), (100, 90), (0, 1), halo=30)
    small = blocks.Grid(((0, 100, 200, 330), (0, 60, 150)), (30, 30))
    for cut in (made, small):
        shape = [edges[-1] for edges in cut.edges]
        pixels = np.random.default_rng(0).normal(size=shape)
        weights = np.zeros(shape)
        for index in cut.indices:
            around = cut.neighbours(index)
            parts = [pixels[cut.outer(other)] for other in around]
            assert np.array_equal(cut.blend(index, parts, pixels.dtype), pixels[cut.inner(index)])
            for chosen in around:
                ones = [
                    np.full(part.shape, float(other == chosen))
                    for other, part in zip(around, parts, strict=True)
                ]
                weights[cut.inner(index)] += cut.blend(index, ones, pixels.dtype)
        assert np.allclose(weights, 1.0, atol=1e-6)


def test_methods_can_be_sent_to_other_processes() -> None:
    for method in symsmooth.METHODS.values():
        assert pickle.loads(pickle.dumps(method)).function is method.function


def test_xarray_comes_back_as_it_was(noisy) -> None:
    xarray = pytest.importorskip("xarray")
    coords = {"y": np.arange(320) / 2}
    attrs = {"units": "counts"}
    given = xarray.DataArray(noisy, dims=("y", "x"), coords=coords, attrs=attrs, name="a")
    found = symsmooth.denoise_nlm(given, SIGMA)
    expected = symsmooth.denoise_nlm(noisy, SIGMA)
    xarray.testing.assert_identical(found, given.copy(data=expected))
    lazy = symsmooth.denoise_nlm(given.chunk({"y": 100}), SIGMA)
    assert lazy.chunks == given.chunk({"y": 100}).chunks
    xarray.testing.assert_allclose(lazy.compute(**SYNC), found, atol=1e-5)
    assert lazy.attrs == attrs


class Tensor:
    """What torch tensors do that matters here."""

    __module__ = "torch"

    def __init__(self, pixels: np.ndarray, device: str = "cpu") -> None:
        self.pixels, self.device = pixels, types.SimpleNamespace(type=device)

    def detach(self) -> Tensor:
        return self

    def numpy(self) -> np.ndarray:
        return self.pixels


def test_tensors_come_back_as_tensors_without_a_copy(monkeypatch, noisy) -> None:
    stand_in: Any = types.ModuleType("torch")
    stand_in.from_numpy = Tensor
    monkeypatch.setitem(sys.modules, "torch", stand_in)
    pixels = noisy.astype(np.float32)
    assert np.shares_memory(image.open_image(Tensor(pixels)).original, pixels)  # type: ignore[arg-type]
    found: Any = symsmooth.denoise_nlm(Tensor(pixels), SIGMA)  # type: ignore[arg-type]
    assert isinstance(found, Tensor)
    assert np.array_equal(found.pixels, symsmooth.denoise_nlm(pixels, SIGMA))
    with pytest.raises(TypeError, match="cpu"):
        symsmooth.denoise_nlm(Tensor(pixels, "cuda"), SIGMA)  # type: ignore[arg-type]


def test_real_tensors(noisy) -> None:
    torch = pytest.importorskip("torch")
    given = torch.from_numpy(noisy.astype(np.float32)).requires_grad_()
    found = symsmooth.denoise_nlm(given, SIGMA)
    assert isinstance(found, torch.Tensor)
    assert found.dtype == given.dtype
    assert np.array_equal(found.numpy(), symsmooth.denoise_nlm(noisy.astype(np.float32), SIGMA))


def test_nothing_of_this_is_imported_without_need() -> None:
    code = (
        "import sys, numpy as np, symsmooth; symsmooth.denoise_bilateral(np.eye(8), 0.1);"
        "print([m for m in ('dask', 'xarray', 'torch', 'distributed') if m in sys.modules])"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(symsmooth.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True
    )
    assert done.stdout.strip() == "[]", done.stderr
