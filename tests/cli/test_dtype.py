"""``--dtype``: what is written is not rounded to the integers of the file, unless that is asked for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from typer.testing import CliRunner

import symsmooth
from symsmooth import cli
from symsmooth.io import read_image, write_image

COUNTS = np.random.default_rng(0).poisson(np.linspace(0.1, 1, 64)[:, None], (64, 64))
FAST = ("--quality", "preview", "--json")


def run(*words: object) -> Any:
    return CliRunner().invoke(cli.app, ["denoise", *map(str, words)])


def told(done: Any) -> dict[str, Any]:
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[0])
    return found


@pytest.mark.parametrize("end", [".tif", ".npy", ".fits", ".zarr"])
def test_floats_are_not_rounded_and_are_the_result(tmp_path: Path, end: str) -> None:
    write_image(tmp_path / "in.tif", COUNTS.astype(np.uint16))
    target = tmp_path / f"out{end}"
    outcome = told(run(tmp_path / "in.tif", "-o", target, "--dtype", "float32", *FAST))
    assert outcome["parameters"]["dtype"] == "float32"
    assert not any("rounding" in warning for warning in outcome["warnings"])
    made = read_image(target).pixels
    assert made.dtype == np.float32
    assert len(np.unique(made)) > 500
    whole = told(run(tmp_path / "in.tif", "-o", tmp_path / "whole.tif", *FAST))
    assert any("write --dtype float32" in warning for warning in whole["warnings"])
    assert whole["warning_codes"] == ["rounding"]
    rounded = read_image(tmp_path / "whole.tif").pixels
    assert np.abs(made - rounded).max() < 0.5 + 1e-3


def test_the_own_dtype_changes_no_bit(tmp_path: Path) -> None:
    pixels = np.clip(COUNTS * 30, 0, 255).astype(np.uint8)
    write_image(tmp_path / "in.png", pixels)
    told(run(tmp_path / "in.png", "-o", tmp_path / "a.png", *FAST))
    told(run(tmp_path / "in.png", "-o", tmp_path / "b.png", "--dtype", "uint8", *FAST))
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_floats_become_integers_and_what_does_not_fit_is_told(tmp_path: Path) -> None:
    pixels = np.random.default_rng(1).normal(240.0, 20.0, (64, 64))
    pixels[:8, :8] = 500.0
    np.save(tmp_path / "in.npy", pixels)
    outcome = told(run(tmp_path / "in.npy", "-o", tmp_path / "o.png", "--dtype", "uint8", *FAST))
    assert any("do not fit into uint8" in warning for warning in outcome["warnings"])
    made = read_image(tmp_path / "o.png").pixels
    assert made.dtype == np.uint8
    assert (made[2:6, 2:6] == 255).all()


def test_what_a_new_dtype_keeps_and_drops(tmp_path: Path) -> None:
    colour = np.random.default_rng(2).integers(90, 110, (40, 48, 3)).astype(np.uint8)
    tifffile.imwrite(tmp_path / "in.tif", colour, photometric="rgb", iccprofile=b"profile")
    outcome = told(run(tmp_path / "in.tif", "-o", tmp_path / "o.tif", "--dtype", "float32", *FAST))
    assert any("TIFF metadata" in warning for warning in outcome["warnings"])
    made = read_image(tmp_path / "o.tif")
    assert made.pixels.shape == colour.shape
    assert made.channel_axis == 2
    assert made.details.icc == b"profile"


def test_a_fits_header_stays(tmp_path: Path) -> None:
    from astropy.io import fits

    block = fits.PrimaryHDU(COUNTS.astype(np.uint16))  # stored as int16 with BZERO
    block.header["CRVAL1"], block.header["OBJECT"] = 12.5, "M 31"
    block.writeto(tmp_path / "in.fits", checksum=True)
    told(run(tmp_path / "in.fits", "-o", tmp_path / "o.fits", "--dtype", "float32", *FAST))
    with fits.open(tmp_path / "o.fits") as opened:
        header, pixels = opened[0].header, opened[0].data
    assert (header["BITPIX"], header["CRVAL1"], header["OBJECT"]) == (-32, 12.5, "M 31")
    assert "BZERO" not in header
    assert "symsmooth" in str(header["HISTORY"])
    assert pixels.shape == COUNTS.shape
    assert abs(pixels.mean() - COUNTS.mean()) < 0.05


@pytest.mark.parametrize(
    ("target", "dtype", "message"),
    [
        ("o.png", "float32", "PNG holds 8- or 16-bit"),
        ("o.jpg", "uint16", "JPEG holds 8-bit"),
        ("o.tif", "float128", "the dtype must be one of uint8"),
    ],
)
def test_what_a_format_cannot_hold_is_said_before_the_work(
    tmp_path: Path, target: str, dtype: str, message: str
) -> None:
    write_image(tmp_path / "in.tif", COUNTS.astype(np.uint16))
    done = run(tmp_path / "in.tif", "-o", tmp_path / target, "--dtype", dtype)
    assert done.exit_code in (1, 2)
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / target).exists()


def test_opacity_keeps_its_dtype(tmp_path: Path) -> None:
    from PIL import Image

    Image.new("RGBA", (32, 32), (100, 90, 80, 70)).save(tmp_path / "in.png")
    done = run(tmp_path / "in.png", "-o", tmp_path / "o.tif", "--dtype", "float32")
    assert done.exit_code != 0
    assert "opacity" in done.stderr


def test_rounding_that_costs_little_is_not_mentioned(tmp_path: Path) -> None:
    pixels = np.random.default_rng(3).normal(120.0, 8.0, (64, 64)).round().astype(np.uint8)
    write_image(tmp_path / "in.png", pixels)
    assert not told(run(tmp_path / "in.png", "-o", tmp_path / "o.png", *FAST))["warnings"]


QUIET = np.random.default_rng(5).normal(0.0, 0.6, (64, 64, 3))  # less noise than a grey level


def test_few_counts_in_a_file_for_data_are_warned_about(tmp_path: Path) -> None:
    for name, dtype in (("in.tif", np.uint8), ("in.npy", np.uint8), ("in.fits", np.int16)):
        write_image(tmp_path / name, COUNTS.astype(dtype))
        outcome = told(run(tmp_path / name, "-o", tmp_path / f"out-{name}", *FAST))
        assert "rounding" in outcome["warning_codes"]


@pytest.mark.parametrize("name", ["in.jpg", "in.png", "in.webp", "in.tif", "in.npy"])
@pytest.mark.parametrize("grey", [False, True])
def test_photographs_are_not(tmp_path: Path, name: str, grey: bool) -> None:
    photo = np.rint(np.linspace(40, 200, 64)[:, None, None] + QUIET).astype(np.uint8)
    write_image(tmp_path / name, photo[..., 0] if grey else photo)
    outcome = told(run(tmp_path / name, "-o", tmp_path / f"out-{name}", "--sigma", 0.6, *FAST))
    assert "rounding" not in outcome["warning_codes"]


def test_counts_in_a_picture_for_the_eye_are_not(tmp_path: Path) -> None:
    write_image(tmp_path / "in.png", COUNTS.astype(np.uint8))
    outcome = told(run(tmp_path / "in.png", "-o", tmp_path / "out.png", *FAST))
    assert "rounding" not in outcome["warning_codes"]


def test_knobs_are_options(tmp_path: Path) -> None:
    colour = np.random.default_rng(4).normal(100.0, 9.0, (40, 48, 3)).astype(np.float32)
    np.save(tmp_path / "in.npy", colour)
    knobs = ("--strength", 0.8, "--chroma-strength", 0, "--grain", 0.25)
    target = tmp_path / "o.npy"
    done = run(tmp_path / "in.npy", "-o", target, "--sigma", 9, "--channel-axis", -1, *knobs, *FAST)
    parameters = told(done)["parameters"]
    assert parameters == {
        "strength": 0.8,
        "chroma_strength": 0.0,
        "grain": 0.25,
        "quality": "preview",
    }
    expected = symsmooth.denoise(
        colour, 9.0, strength=(0.8, 0.0), grain=0.25, quality="preview", channel_axis=-1
    )
    assert np.array_equal(np.load(target), expected)
