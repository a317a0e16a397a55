"""Masked pictures: denoised without a crash, and what has no noise stays to the bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from PIL import Image
from typer.testing import CliRunner

import symsmooth
from symsmooth import cli

from .masked_pictures import Case, cases

pytestmark = pytest.mark.filterwarnings("ignore::symsmooth.core.user_warnings.UnitsWarning")


def check(case: Case) -> None:
    image, options = case.arguments()
    before = np.array(image)
    result = symsmooth.denoise(image, **options)
    assert type(result) is type(image)
    assert (result.shape, result.dtype) == (before.shape, before.dtype)
    assert np.isfinite(np.asarray(result, float)).all()
    np.testing.assert_array_equal(np.asarray(image), before)
    np.testing.assert_array_equal(np.asarray(result)[case.constant], before[case.constant])


FAILED = [  # once
    Case((8, 8), "square", 0.4, "photons", 0, 1, "float32", "", False, "auto", "preview", 5),
    Case((32, 32), "frame", 0.9, "few photons", 1, 1, "float64", "", False, "poisson-gaussian", "fast", 32),
]  # fmt: skip


@pytest.mark.parametrize("case", FAILED)
def test_what_failed_once(case: Case) -> None:
    check(case)


@given(cases(8, 64))
@settings(
    max_examples=200, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
def test_masked_pictures(case: Case) -> None:
    check(case)


@pytest.mark.parametrize("suffix", ["npy", "png", "tif"])
@pytest.mark.parametrize("shape", ["square", "disc", "all but a square"])
@pytest.mark.parametrize("size", [(8, 8), (17, 40), (72, 64)])
def test_masked_files(size, shape: str, suffix: str, tmp_path: Path) -> None:
    """On the command line as in Python."""
    dtype = "float32" if suffix == "npy" else "uint8"
    for channels in (1, 3):
        case = Case(size, shape, 0.4, "photons", 0, channels, dtype, "", False, "auto", "fast", 5)
        pixels, source, target = (
            case.pixels(),
            tmp_path / f"in.{suffix}",
            tmp_path / f"out.{suffix}",
        )
        write(source, pixels)
        words = ["denoise", str(source), "-o", str(target), "--overwrite", "--quality", "preview"]
        words += ["--channel-axis", "2"] if channels == 3 else []
        done = CliRunner().invoke(cli.app, words)
        assert done.exit_code == 0, done.output
        found = read(target)
        assert (found.shape, found.dtype) == (pixels.shape, pixels.dtype)
        assert np.isfinite(found).all()
        np.testing.assert_array_equal(found[case.constant], pixels[case.constant])


def write(path: Path, pixels: np.ndarray) -> None:
    if path.suffix == ".npy":
        np.save(path, pixels)
    else:
        Image.fromarray(pixels).save(path)


def read(path: Path) -> np.ndarray:
    return np.load(path) if path.suffix == ".npy" else np.asarray(Image.open(path))


@pytest.mark.slow
@given(cases(8, 300))
@settings(max_examples=3000, deadline=None, suppress_health_check=list(HealthCheck))
def test_three_thousand_masked_pictures(case: Case) -> None:
    check(case)
