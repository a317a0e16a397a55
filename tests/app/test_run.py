"""The only way in: files are opened and decoded once, progress is one fraction, both paths agree."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from PIL import Image
from typer.testing import CliRunner

import symsmooth
from symsmooth import cli
from symsmooth.app import large
from symsmooth.app.compare import CompareJob, Page
from symsmooth.app.job import DenoiseJob, Outcome
from symsmooth.app.run import BatchJob, FileJob, run
from symsmooth.app.series import SeriesJob
from symsmooth.cli.arguments import parse_methods
from symsmooth.cli.console import time_left
from symsmooth.core import blocks, image
from symsmooth.core.metrics import psnr
from symsmooth.io import read_image, write_image
from symsmooth.methods import METHODS
from symsmooth.noise.tone import curve
from symsmooth_repro.cli.explain import explain_file
from symsmooth_repro.sensor import Sensor

from ..clips import make_clip
from ..dngs import dng
from ..test_contract import assert_progress

_heard: list[Counter[str]] = []  # an audit hook is for ever: it is told when to listen


def _hook(event: str, arguments: Any) -> None:
    if _heard and event == "open" and isinstance(arguments[0], (str, Path)):
        _heard[-1][Path(arguments[0]).name] += 1


@pytest.fixture
def opens() -> Iterator[Counter[str]]:
    """Counts how often each file is opened, by whomever."""
    if not hasattr(sys, "_symsmooth_hook"):
        sys.addaudithook(_hook)
        sys._symsmooth_hook = True  # type: ignore[attr-defined]
    _heard.append(Counter())
    yield _heard[-1]
    _heard.pop()


@pytest.fixture
def decodes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Grows with every PNG or JPEG that Pillow decodes."""
    counted: list[str] = []
    make = Image._getdecoder

    def counting(mode: str, name: str, *rest: Any) -> Any:
        counted.extend([name] if name in ("zip", "jpeg") else [])
        return make(mode, name, *rest)

    monkeypatch.setattr("PIL.Image._getdecoder", counting)
    return counted


def scene(shape: tuple[int, ...] = (64, 72)) -> np.ndarray:
    y, x = np.indices(shape[-2:])
    wave = 120 + 50 * np.sin(x / 9) * np.cos(y / 11)
    noise = np.random.default_rng(0).normal(0, 15, shape)
    return np.clip(np.rint(wave + noise), 0, 255).astype(np.uint8)


# --- a file is opened once and decoded once -----------------------------------------------------


ENDINGS = ["png", "jpg", "bmp", "webp", "tif", "npy", "fits", "nii", "nii.gz", "mrc"]


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize(
    "command",
    [
        ("denoise", "-o", "out", "--quality", "preview"),
        ("compare", "-o", "page.html", "--methods", "denoise:preview,gaussian"),
        ("explain", "-o", "page.html", "--side", "32"),
        ("noise",),
    ],
    ids=lambda command: command[0],
)
def test_a_file_is_opened_and_decoded_once(
    opens, decodes, tmp_path, monkeypatch, ending, command
) -> None:
    monkeypatch.chdir(tmp_path)
    pixels = {"nii": scene(), "nii.gz": scene(), "mrc": scene().astype(np.int16)}
    write_image(f"in.{ending}", pixels.get(ending, np.dstack([scene()] * 3)))
    opens.clear()
    decodes.clear()
    options = [f"out.{ending}" if word == "out" else word for word in command[1:]]
    done = CliRunner().invoke(cli.app, [command[0], f"in.{ending}", *options])
    assert done.exit_code == 0, done.output
    assert opens[f"in.{ending}"] == 1
    assert len(decodes) == (ending in ("png", "jpg"))


@pytest.mark.parametrize("kind", ["picture", "stack", "boxes", "series", "video", "raw"])
def test_who_asks_is_told_the_noise_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Once, whatever is denoised: the page shows the part on the screen then."""
    told: list[Any] = []
    target = tmp_path / {"video": "out.mp4", "raw": "out.dng"}.get(kind, "out.tif")

    def on_noise(noise: Any) -> None:
        assert not target.exists()
        told.append(noise)

    how = replace(job_of(), on_noise=on_noise)
    source = tmp_path / "in.tif"
    if kind == "series":
        sources = [tmp_path / f"f{n}.tif" for n in range(3)]
        for number, path in enumerate(sources):
            write_image(path, np.roll(scene(), number))
        done = run(SeriesJob(sources, {sources[1]: target}, replace(how, third="time")))
    else:
        if kind == "raw":
            sensor = Sensor(peak=300)
            source = tmp_path / "in.dng"
            source.write_bytes(dng(sensor.expose(np.full((64, 64, 3), 0.3))[0], sensor))
        elif kind == "video":
            pytest.importorskip("av")
            source = make_clip(tmp_path / "in.mp4")
        else:
            write_image(source, scene((3, 64, 72)) if kind == "stack" else scene())
        if kind == "boxes":
            monkeypatch.setattr(large, "_LARGE", 0)
        done = run(FileJob(source, target, how))
    (noise,) = told
    assert done.noise is not None
    assert done.noise.detail == str(noise)


@pytest.mark.parametrize("ending", ["png", "jpg", "tif"])
@pytest.mark.parametrize("method", ["denoise", "gaussian"])
def test_pixels_are_opened_once(tmp_path, monkeypatch, ending, method) -> None:
    """One open picture serves to find the noise, to remove it, and to look at what is left."""
    write_image(tmp_path / f"in.{ending}", np.dstack([scene()] * 3))
    opened = []
    real = image.unwrap

    def count(pixels: Any) -> Any:
        opened.append(np.shape(pixels))
        return real(pixels)

    monkeypatch.setattr(image, "unwrap", count)
    how = replace(job_of(), method=METHODS[method])
    run(FileJob(tmp_path / f"in.{ending}", tmp_path / f"out.{ending}", how))
    assert opened == [(*scene().shape, 3)]


def test_chunks_of_a_zarr_are_read_once(opens, tmp_path) -> None:
    """Its metadata is a file of its own: zarr looks for it, opens the array by it, and it is copied."""
    write_image(tmp_path / "in.zarr", scene())
    opens.clear()
    run(FileJob(tmp_path / "in.zarr", tmp_path / "out.tif", job_of(quality="preview")))
    assert {name: n for name, n in opens.items() if name == "0"} == {"0": 1}
    assert opens["zarr.json"] <= 2


def test_a_dng_is_opened_once(opens, tmp_path) -> None:
    """Other raw files are opened a second time, by LibRaw, which asks for a name."""
    sensor = Sensor(100)
    mosaic, _ = sensor.expose(np.full((64, 64, 3), 0.2))
    (tmp_path / "in.dng").write_bytes(dng(mosaic, sensor))
    opens.clear()
    run(FileJob(tmp_path / "in.dng", tmp_path / "out.dng", job_of(quality="preview")))
    assert opens["in.dng"] == 1


@pytest.mark.parametrize("ending", ["tif", "npy"])
def test_a_file_that_is_taken_box_by_box_is_opened_once(
    opens, tmp_path, monkeypatch, ending
) -> None:
    write_image(tmp_path / f"in.{ending}", scene((96, 100)))
    monkeypatch.setattr(large, "_LARGE", 0)
    opens.clear()
    run(FileJob(tmp_path / f"in.{ending}", tmp_path / "out.npy", job_of(quality="preview")))
    assert opens[f"in.{ending}"] == 1


def test_both_pictures_of_a_comparison_are_opened_once(opens, tmp_path) -> None:
    for name in ("noisy.png", "clean.png"):
        write_image(tmp_path / name, scene())
    opens.clear()
    run(CompareJob(tmp_path / "noisy.png", parse_methods("gaussian"), tmp_path / "clean.png"))
    assert (opens["noisy.png"], opens["clean.png"]) == (1, 1)


# --- progress -----------------------------------------------------------------------------------


@pytest.fixture
def reports() -> list[tuple[float, str]]:
    return []


def job_of(method: str = "denoise", **options: Any) -> DenoiseJob:
    return DenoiseJob(METHODS[method], options, None, "auto", 1, 0)


@pytest.mark.parametrize("quality", ["preview", "fast", "balanced", "best"])
@pytest.mark.parametrize("noise", ["gaussian", "poisson-gaussian", "correlated"])
def test_progress_of_every_preset_and_noise(reports, quality, noise) -> None:
    colour = np.dstack([scene()] * 3)
    symsmooth.denoise(
        colour, quality=quality, noise=noise, channel_axis=-1, progress=lambda *r: reports.append(r)
    )
    assert_progress(reports)


@pytest.mark.parametrize("method", METHODS)
def test_progress_of_every_method_in_a_volume(reports, method) -> None:
    METHODS[method](scene((5, 20, 22)), 15.0, progress=lambda *r: reports.append(r), workers=2)
    assert_progress(reports)


def test_progress_of_a_mosaic_is_steady(reports) -> None:
    mosaic, _ = Sensor(100).expose(np.full((64, 80, 3), 0.3))
    symsmooth.denoise_raw(mosaic, "RGGB", 1024, 15360, progress=lambda *r: reports.append(r))
    assert_progress(reports)
    assert max(np.diff([fraction for fraction, _ in reports])) < 0.1


def test_progress_of_blocks(reports, monkeypatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK_PIXELS", 60 * 60)
    for method in (symsmooth.denoise, symsmooth.denoise_gsf):
        reports.clear()
        method(scene((96, 100)), 15.0, progress=lambda *r: reports.append(r))
        assert_progress(reports)
        assert any("block 2 of 4: " in what for _, what in reports)


@pytest.mark.parametrize(
    ("axes", "shape", "part"),
    [("YX", (64, 72), ""), ("ZYX", (6, 24, 26), ""), ("TYX", (3, 40, 44), "slice 2 of 3: ")],
)
@pytest.mark.parametrize("method", ["denoise", "nlm"])
def test_progress_of_files(reports, tmp_path, method, axes, shape, part) -> None:
    kept = {"metadata": {"axes": axes}, "photometric": "minisblack"}
    tifffile.imwrite(tmp_path / "in.tif", scene(shape), **kept)
    job = FileJob(tmp_path / "in.tif", tmp_path / "out.tif", job_of(method))
    assert isinstance(run(job, lambda *r: reports.append(r)), Outcome)
    assert_progress(reports)
    assert any(what.startswith(part) for _, what in reports)


def test_progress_of_boxes(reports, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("symsmooth.app.large._LARGE", 0)
    monkeypatch.setattr(blocks, "BLOCK_PIXELS", 200**2)
    tifffile.imwrite(tmp_path / "in.tif", scene((300, 320)), tile=(64, 64))
    job = FileJob(tmp_path / "in.tif", tmp_path / "out.tif", job_of(quality="preview"))
    run(job, lambda *r: reports.append(r))
    assert_progress(reports)
    assert any(what.startswith("box 2 of ") for _, what in reports)


@pytest.mark.parametrize("command", ["compare", "explain"])
def test_progress_of_pages(reports, tmp_path, command) -> None:
    source = tmp_path / "in.png"
    write_image(source, scene())

    def report(*told: Any) -> None:
        reports.append(told)

    if command == "compare":
        page = run(CompareJob(source, parse_methods("denoise:preview,gsf,nlm")), report)
    else:
        page = explain_file(source, progress=report)
    assert isinstance(page, Page)
    assert_progress(reports)


@pytest.mark.parametrize("at_a_time", [1, 2])
def test_progress_of_a_batch_is_that_of_all_files(reports, tmp_path, at_a_time) -> None:
    sources = [tmp_path / f"{i}.png" for i in range(3)]
    for source in sources[:2]:
        write_image(source, scene((40, 40)))
    targets = {source: tmp_path / f"out-{source.name}" for source in sources}
    jobs = [FileJob(source, target, job_of("nlm")) for source, target in targets.items()]
    job = BatchJob(jobs, at_a_time=at_a_time)
    results = dict(run(job, lambda *r: reports.append(r)))
    assert [type(results[source]).__name__ for source in sources] == ["Outcome"] * 2 + ["FileError"]
    fractions = [fraction for fraction, _ in reports]
    assert fractions == sorted(fractions)
    assert {what.partition(":")[0] for _, what in reports} == {s.name for s in sources}


@pytest.mark.parametrize(
    ("fraction", "seconds", "words"),
    [
        (0.0, 9, ""),
        (0.5, 0.2, ""),
        (0.5, 90, "1:30 left"),
        (0.01, 9, ""),
        (0.1, 3600, "9:00:00 left"),
    ],
)
def test_the_time_that_is_left(fraction, seconds, words) -> None:
    assert time_left(fraction, seconds) == words


# --- few calls between modules -----------------------------------------------------------------


def test_a_small_picture_goes_through_few_doors() -> None:
    """Of the shell (command line, app, files): calls in loops of the numerics are many and say little."""
    script = Path(__file__).parents[2] / "benchmarks" / "crossings.py"
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    found = re.search(r"of (\d+) modules\nof the shell: (\d+)", done.stdout)
    assert found
    assert int(found[1]) <= 40, done.stdout
    assert int(found[2]) <= 90, done.stdout


# --- small files and large ones -----------------------------------------------------------------


@pytest.mark.parametrize("method", ["denoise", "nlm", "gsf", "bm3d"])
def test_a_file_and_its_boxes_give_the_same(tmp_path, monkeypatch, method) -> None:
    """What lies away from the borders of boxes feels them only through clusters that begin elsewhere."""
    from skimage import data

    clean = data.camera()[100:420, 100:420].astype(np.float32)
    noisy = clean + np.random.default_rng(0).normal(0, 20, clean.shape).astype(np.float32)
    tifffile.imwrite(tmp_path / "in.tif", noisy, tile=(64, 64))
    monkeypatch.setattr(blocks, "BLOCK_PIXELS", 192**2)
    results = []
    for limit in (2**28, 0):
        monkeypatch.setattr("symsmooth.app.large._LARGE", limit)
        target = tmp_path / f"{limit}.tif"
        results.append(run(FileJob(tmp_path / "in.tif", target, job_of(method))))
    small, large = (read_image(result.target).pixels for result in results)
    assert results[1].parameters["boxes"] == 4
    assert results[0].noise.level == results[1].noise.level  # type: ignore[union-attr]
    apart = np.sqrt(np.mean((small - large) ** 2)) / 20.0
    assert apart < {"nlm": 1e-4, "bm3d": 0.06}.get(method, 0.15)
    quality = [psnr(pixels, clean, 255) for pixels in (small, large)]
    assert quality[1] > quality[0] - 0.1


@pytest.mark.parametrize("kind", ["a tone curve", "cut off"])
def test_boxes_lose_the_bias_of_the_whole(tmp_path, monkeypatch, kind) -> None:
    """Noise that a tone curve has bent, or that was cut off at black: the same mean from boxes."""
    ramp = np.linspace(0.0, 0.2, 320)
    noisy = np.stack([np.broadcast_to(ramp, (320, 320))] * 3, axis=-1)
    noisy = noisy + 0.03 * np.random.default_rng(0).standard_normal(noisy.shape)
    pixels = np.rint(255 * curve(noisy)).astype(np.uint8)
    if kind == "cut off":
        pixels = np.rint(60000 * noisy.clip(0)).astype(np.uint16)[..., 0]
    tifffile.imwrite(tmp_path / "in.tif", pixels, tile=(64, 64), compression="zlib")
    monkeypatch.setattr(blocks, "BLOCK_PIXELS", 192**2)
    means = []
    for limit in (2**28, 0):
        monkeypatch.setattr("symsmooth.app.large._LARGE", limit)
        how = job_of(quality="preview")
        if kind == "cut off":
            how = replace(how, sigma=1800.0)
        outcome = run(FileJob(tmp_path / "in.tif", tmp_path / f"{limit}.tif", how))
        assert ("tone" in outcome.parameters) == (kind == "a tone curve")
        means.append(read_image(outcome.target).pixels[:, :100].mean() - pixels[:, :100].mean())
    assert abs(means[0]) > 0.004 * np.ptp(pixels)
    assert means[1] == pytest.approx(means[0], rel=0.1)
