"""Raw files through the command: DNG in and out, developed, many at once, and what is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from skimage import data
from typer.testing import CliRunner

from symsmooth import cli
from symsmooth.app.job import plan_outputs
from symsmooth.core.metrics import psnr
from symsmooth.io import read_images
from symsmooth_repro.sensor import Sensor

from ..dngs import dng

SENSOR = Sensor(100, "GRBG")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    noisy, _ = SENSOR.expose(data.astronaut()[60:188, 120:260] / 255.0)
    path = tmp_path / "in.dng"
    path.write_bytes(dng(noisy, SENSOR, more={50829: (50829, 4, 4, (0, 4, 128, 140), True)}))
    return path


def run(*words: object) -> Any:
    return CliRunner().invoke(cli.app, [str(word) for word in words])


def test_a_dng_becomes_a_dng(source: Path, tmp_path: Path) -> None:
    _, clean = SENSOR.expose(data.astronaut()[60:188, 120:260] / 255.0)
    target = tmp_path / "out.dng"
    done = run("denoise", source, "-o", target, "--quality", "fast", "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["noise"]["gain"][0] == pytest.approx(SENSOR.gain, rel=0.25)
    before, after = read_images(source)[0].pixels, read_images(target)[0].pixels
    assert psnr(after, clean, SENSOR.white) > psnr(before, clean, SENSOR.white) + 5
    assert np.array_equal(before[:, :4], after[:, :4])  # what sees no light
    with tifffile.TiffFile(target) as tiff:
        assert "symsmooth" in tiff.pages[0].tags[305].value
    again = tmp_path / "again.dng"
    run("denoise", source, "-o", again, "--quality", "fast", "--workers", 1)
    assert again.read_bytes() == target.read_bytes()


@pytest.mark.parametrize("linear", [False, True])
def test_a_dng_is_developed(linear: bool, source: Path, tmp_path: Path) -> None:
    rawpy = pytest.importorskip("rawpy")
    target = tmp_path / "out.tif"
    more = ["--linear"] if linear else []
    done = run("denoise", source, "-o", target, "--quality", "fast", *more)
    assert done.exit_code == 0, done.output
    picture = tifffile.imread(target)
    assert picture.dtype == np.uint16
    with rawpy.imread(str(source)) as raw:
        gamma = (1, 1) if linear else (2.4, 12.92)
        plain = raw.postprocess(use_camera_wb=True, no_auto_bright=True, output_bps=16, gamma=gamma)
    assert picture.shape == plain.shape
    assert np.allclose(picture.mean(axis=(0, 1)), plain.mean(axis=(0, 1)), rtol=0.1)


@pytest.mark.parametrize(
    ("name", "more", "dtype"),
    [
        ("out.jpg", [], np.uint8),
        ("out.png", [], np.uint8),
        ("out.webp", [], np.uint8),
        ("out.png", ["--dtype", "uint16"], np.uint16),
        ("out.tif", ["--dtype", "uint8"], np.uint8),
    ],
)
def test_formats_for_the_eye_get_8_bits_of_the_same_picture(
    name: str, more: list[str], dtype: Any, source: Path, tmp_path: Path
) -> None:
    pytest.importorskip("rawpy")
    words = ["--quality", "preview"]
    assert run("denoise", source, "-o", tmp_path / "deep.tif", *words).exit_code == 0
    done = run("denoise", source, "-o", tmp_path / name, *words, *more)
    assert done.exit_code == 0, done.output
    picture = read_images(tmp_path / name)[0].pixels
    assert picture.dtype == dtype
    deep = tifffile.imread(tmp_path / "deep.tif") / 257  # in 0 to 255
    shallow = picture / (257 if dtype == np.uint16 else 1)
    if name.endswith("jpg"):
        assert psnr(shallow, deep, 255) > 35  # what JPEG itself costs
    else:
        assert np.abs(shallow - deep).max() <= 0.5


def test_a_developed_picture_has_8_or_16_bits(source: Path, tmp_path: Path) -> None:
    pytest.importorskip("rawpy")
    for name, dtype, words in (
        ("a.tif", "float32", "uint8 or uint16"),
        ("a.jpg", "uint16", "8-bit"),
        ("a.dng", "uint8", "leave the dtype out (--dtype)"),
    ):
        done = run("denoise", source, "-o", tmp_path / name, "--dtype", dtype)
        assert done.exit_code != 0
        assert words in done.output
        assert not (tmp_path / name).exists()


def test_linear_dngs_are_denoised_in_colour(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    clean = data.astronaut()[60:188, 120:260] / 255.0
    noisy = np.clip(8000 * clean + 1024 + 400 * rng.standard_normal(clean.shape), 0, SENSOR.white)
    source, target = tmp_path / "in.dng", tmp_path / "out.dng"
    source.write_bytes(dng(noisy.astype(np.uint16), SENSOR))
    done = run("denoise", source, "-o", target, "--quality", "fast")
    assert done.exit_code == 0, done.output
    found = read_images(target)[0].pixels
    assert np.square(found - 8000 * clean - 1024).mean() < 0.3 * 400**2


def test_all_grain_is_the_mosaic_that_came(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.dng"
    done = run("denoise", source, "-o", target, "--quality", "preview", "--grain", 1)
    assert done.exit_code == 0, done.output
    after, before = read_images(target)[0].pixels, read_images(source)[0].pixels
    assert np.mean(after != before) < 1e-3  # what was taken for a defect is replaced


def test_many_files_go_to_a_folder(source: Path, tmp_path: Path) -> None:
    (tmp_path / "many").mkdir()
    for name in ("a.dng", "b.DNG"):
        (tmp_path / "many" / name).write_bytes(source.read_bytes())
    done = run("denoise", f"{tmp_path}/many/*", "-o", f"{tmp_path}/out/", "--quality", "preview")
    assert done.exit_code == 0, done.output
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["a.dng", "b.DNG"]


def test_formats_of_cameras_become_dng(tmp_path: Path) -> None:
    (tmp_path / "a.NEF").write_bytes(b"II*\0")
    plan = plan_outputs([str(tmp_path / "a.NEF")], f"{tmp_path}/out/", False)
    assert [path.name for path in plan.targets.values()] == ["a.dng"]


def test_noise_is_told(source: Path) -> None:
    done = run("noise", source)
    assert done.exit_code == 0, done.output
    assert "photon" in done.output
    told = json.loads(run("noise", source, "--json").stdout)
    assert told["noise"]["gain"][0] == pytest.approx(SENSOR.gain, rel=0.25)
    assert told["range"] == SENSOR.white - SENSOR.black


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--sigma", "5"], "measured"),
        (["--method", "nlm"], "choose no other method (--method)"),
        (["--noise", "gaussian"], "measured"),
        (["--chroma-strength", "0.5"], "no strength of colour"),
        (["--dtype", "float32"], "leave the dtype out (--dtype)"),
        (["--grain", "2"], "from 0 to 1"),
    ],
)
def test_what_makes_no_sense_is_refused(
    more: list[str], words: str, source: Path, tmp_path: Path
) -> None:
    target = tmp_path / "out.dng"
    done = run("denoise", source, "-o", target, *more)
    assert done.exit_code != 0
    assert words in done.output
    assert not target.exists()


def test_other_commands_ask_for_a_developed_picture(source: Path, tmp_path: Path) -> None:
    done = run("compare", source, "-o", tmp_path / "page.html")
    assert done.exit_code != 0
    assert "raw mosaic" in done.output


def test_dngs_need_no_libraw(source: Path, tmp_path: Path) -> None:
    """Where rawpy is not installed, DNGs are denoised all the same; what needs it says so."""
    program = (
        "import sys; sys.modules['rawpy'] = None; from symsmooth.cli import main;"
        "sys.argv = ['symsmooth', 'denoise', *sys.argv[1:]]; main()"
    )

    def without(*words: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", program, *map(str, words)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    done = without(source, "-o", tmp_path / "a.dng", "--quality", "preview")
    assert done.returncode == 0, done.stderr
    developed = without(source, "-o", tmp_path / "a.tif", "--quality", "preview")
    assert developed.returncode != 0
    assert "symsmooth[raw]" in developed.stderr
    camera = tmp_path / "a.nef"
    tifffile.imwrite(camera, np.zeros((8, 8), np.uint16))
    refused = without(camera, "-o", tmp_path / "b.dng")
    assert "symsmooth[raw]" in refused.stderr
    assert refused.stderr.count("\n") == 1
