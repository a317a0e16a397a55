"""One way to denoise a stack: slices, volumes and series, whatever they come from."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.ndimage
from typer.testing import CliRunner

import symsmooth
from symsmooth import cli
from symsmooth.app.compare import CompareJob, MethodChoice, compare
from symsmooth.app.job import DenoiseJob
from symsmooth.app.stack import NONE, Pieces, denoise_stack, find_noise, own_channels
from symsmooth.io import ImageFile, read_image, write_image
from symsmooth.io.images import cut
from symsmooth.methods import METHODS
from symsmooth.noise import White

Array = np.ndarray[Any, Any]
FAST = ("--quality", "preview")


def scene(side: int = 48) -> Array:
    rough = np.random.default_rng(7).uniform(40, 210, (side, side))
    return scipy.ndimage.gaussian_filter(rough, 3.0) * 4 - 375


def noisy(shape: tuple[int, ...], seed: int = 0) -> Array:
    """Return pixels of a shape (..., y, x) that show one scene."""
    noise = np.random.default_rng(seed).normal(0, 12, shape)
    return np.clip(scene(shape[-1]) + noise, 0, 255).astype(np.uint8)


def colours(n_frames: int) -> Array:
    return np.moveaxis(noisy((n_frames, 3, 48, 48)), 1, -1)


def job_of(name: str = "denoise", **more: Any) -> DenoiseJob:
    options = {"quality": "preview"} if name == "denoise" else {}
    return DenoiseJob(METHODS[name], options, None, "auto", 1, 0, **more)


def pieces_of(pixels: Array, axes: str, third: Any = "auto", **more: Any) -> Pieces:
    channels = axes.index("C") if "C" in axes else None
    image = ImageFile(pixels, channels, None, "", axes=axes)
    return Pieces(image, cut(image, third), **more)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(cli.app, list(map(str, arguments)))


@pytest.mark.parametrize("in_colour", [False, True])
def test_a_stack_and_a_folder_of_its_frames_get_the_same_bits(run: Any, in_colour: bool) -> None:
    """Fourteen frames, two of them black and one grey: the noise of all is looked for in the same ones."""
    series = colours(14) if in_colour else noisy((14, 48, 48))
    series[4:6] = 0
    if in_colour:
        series[9] = series[9, ..., :1]
    Path("in").mkdir()
    for number, frame in enumerate(series):
        write_image(f"in/{number}.png", frame)
    together = denoise_stack(
        job_of(third="time"), pieces_of(series, "TYXC" if in_colour else "TYX", "time")
    )
    result = run("denoise", "in", "-o", "out/", "--time", *FAST)
    assert result.exit_code == 0, result.output
    for number, frame in enumerate(together.pixels):
        np.testing.assert_array_equal(read_image(f"out/{number}.png").pixels, frame)
    np.testing.assert_array_equal(together.pixels[4:6], 0)


def test_slices_with_fewer_channels_are_denoised_with_a_noise_of_their_own() -> None:
    """They were a message of NumPy about shapes."""
    stack = colours(5)
    stack[:2] = stack[:2, ..., :1]
    stack[4] = 90
    found = denoise_stack(job_of(), pieces_of(stack, "QYXC"))
    assert (found.pixels[0][..., 0] == found.pixels[0][..., 2]).all()
    np.testing.assert_array_equal(found.pixels[4], 90)
    change = found.pixels.astype(float) - stack
    assert all(8 < change[number].std() < 14 for number in range(4))


@pytest.mark.parametrize(("axes", "third"), [("ZYX", "auto"), ("TYX", "time"), ("QYX", "volume")])
def test_flat_ground_of_a_volume_or_series_is_measured_on_its_middle_plane(
    axes: str, third: Any
) -> None:
    """It was refused as no picture, whatever the rectangle."""
    stack = np.random.default_rng(0).normal(100, 9, (5, 48, 48)).astype(np.float32)
    region = (8, 8, 24, 24)
    pieces = pieces_of(stack, axes, third)
    found = find_noise(job_of(noise_region=region, third=third), pieces)
    assert found is not None
    assert found.sigma == symsmooth.estimate_noise(stack[2], region=region).sigma
    marked = find_noise(
        job_of(noise_region=region, third=third), pieces, (1, slice(None), slice(None))
    )
    assert marked is not None
    assert marked.sigma == symsmooth.estimate_noise(stack[1], region=region).sigma


def test_a_method_that_knows_of_no_time_takes_no_series(run: Any) -> None:
    import tifffile

    tifffile.imwrite("s.ome.tif", noisy((4, 48, 48)), metadata={"axes": "TYX"})
    result = run("denoise", "s.ome.tif", "-o", "o.tif", "--time", "--method", "nlm")
    assert result.exit_code != 0
    assert (
        "nlm knows of no time; denoise frames one by one, or take another method" in result.stderr
    )
    assert result.stderr.endswith("(--slices, --method)\n")
    assert not Path("o.tif").exists()


def test_opacity_stays_and_uncertainty_is_that_of_the_method() -> None:
    pixels = np.concatenate([colours(2), np.full((2, 48, 48, 1), 77, np.uint8)], axis=-1)
    pieces = pieces_of(pixels, "QYXC", n_colours=3)
    found = denoise_stack(job_of(), pieces, with_std=True, noise=White(12.0))
    np.testing.assert_array_equal(found.pixels[..., 3], 77)
    np.testing.assert_array_equal(found.std[..., 3], 0)
    alone = symsmooth.fit_denoise(
        pixels[1, ..., :3], noise=White(12.0), quality="preview", channel_axis=-1, rng=0
    )
    np.testing.assert_array_equal(found.pixels[1, ..., :3], alone.image)
    np.testing.assert_array_equal(found.std[1, ..., :3], alone.std)


def test_a_part_has_the_noise_of_the_whole() -> None:
    stack = noisy((3, 48, 48))
    whole = find_noise(job_of(), pieces_of(stack, "QYX"))
    part = denoise_stack(job_of(), pieces_of(stack[:1, :24, :24], "QYX"), noise=whole)
    assert part.noise is whole


def test_frames_are_taken_one_by_one_unless_asked_for_and_that_is_said(run: Any) -> None:
    import tifffile

    pixels = noisy((4, 48, 48))
    tifffile.imwrite("s.ome.tif", pixels, metadata={"axes": "TYX"})
    result = run("denoise", "s.ome.tif", "-o", "o.ome.tif", "--sigma", "12", *FAST)
    line = "symsmooth: s.ome.tif: its 4 frames were denoised one by one; with --time they help each other\n"
    assert result.stderr == line
    made = read_image("o.ome.tif").pixels
    np.testing.assert_array_equal(
        made[1], symsmooth.denoise(pixels[1], 12.0, quality="preview", rng=0)
    )
    for more in (("--slices",), ("--time",), ("--quiet",), ("--method", "gaussian")):
        again = run(
            "denoise", "s.ome.tif", "-o", "o.ome.tif", "--sigma", "12", "--overwrite", *more
        )
        assert (again.exit_code, again.stderr) == (0, ""), more


def test_a_series_is_compared_with_its_frames_one_by_one(run: Any) -> None:
    """On the middle frame: a method that knows of time is there twice, others once."""
    import tifffile

    pixels = noisy((5, 48, 48))
    tifffile.imwrite("s.ome.tif", pixels, metadata={"axes": "TYX"})
    choices = [
        MethodChoice("denoise:preview", METHODS["denoise"], {"quality": "preview"}),
        MethodChoice("gaussian", METHODS["gaussian"], {}),
    ]
    made: list[Any] = []
    job = CompareJob(Path("s.ome.tif"), choices, sigma=12.0, workers=1, series=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "symsmooth.reports.compare.compare_page", lambda found, _: made.append(found) or ""
        )
        compare(job)
    results = {each.label: each.image for each in made[0].results}
    assert list(results) == ["denoise:preview, series", "denoise:preview", "gaussian"]
    series = symsmooth.denoise(pixels, 12.0, time_axis=0, quality="preview", rng=0)
    np.testing.assert_array_equal(results["denoise:preview, series"], series[2])
    alone = symsmooth.denoise(pixels[2], 12.0, quality="preview", rng=0)
    np.testing.assert_array_equal(results["denoise:preview"], alone)
    assert np.square(series[2] - scene()).mean() < np.square(alone - scene()).mean()
    write_image("flat.png", pixels[0])
    refused = run("compare", "flat.png", "-o", "r.html", "--time")
    assert refused.exit_code == 1
    assert "has no axis of time" in refused.stderr
    assert "(--time)" in refused.stderr


@pytest.mark.parametrize("axes", ["YX", "YXC", "CYX"])
def test_of_a_large_picture_a_sample_says_how_much_was_removed(axes: str) -> None:
    clean = np.full((1300, 1100, 3), 100.0) + np.linspace(0, 50, 1300)[:, None, None]
    pixels = np.rint(clean + np.random.default_rng(0).normal(0, 9, clean.shape)).astype(np.uint8)
    pixels = {"YX": pixels[..., 0], "YXC": pixels, "CYX": pixels.transpose(2, 0, 1).copy()}[axes]
    done = denoise_stack(job_of("gaussian"), pieces_of(pixels, axes), noise=White(9.0))
    change = done.pixels.astype(float) - pixels
    assert done.removed == pytest.approx(np.sqrt((change**2).mean()), rel=0.02)


def test_which_channels_are_there_is_asked_without_opening_the_picture() -> None:
    """In floats a large one would be four times as large."""
    colours = np.random.default_rng(0).integers(0, 256, (1200, 1200, 3)).astype(np.uint8)
    tracemalloc.start()
    assert own_channels(colours, -1) == own_channels(colours[:8, :8], -1)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < colours.nbytes
    grey = np.repeat(colours[..., :1], 3, axis=-1)
    assert own_channels(grey, -1) != own_channels(colours, -1)
    assert own_channels(np.zeros((8, 8, 3), np.uint8), -1) == NONE
    assert own_channels(np.full((8, 8), np.nan), None) == NONE
