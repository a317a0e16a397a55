"""Pictures of one bit a pixel have no noise level: they stay what they are, and a line says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from PIL import Image
from typer.testing import CliRunner

from symsmooth import cli
from symsmooth.io import read_images, write_images

PAGES = np.random.default_rng(0).random((3, 60, 80)) < 0.2


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(*words: str) -> Any:
    return CliRunner().invoke(cli.app, list(words))


def write_fax(path: str, photometric: str = "miniswhite", compression: str = "group4") -> None:
    """Write pages of several sizes, as fax machines and scanners do."""
    frames = [Image.fromarray(page[: 60 - 10 * n]) for n, page in enumerate(PAGES)]
    more = {"compression": compression, "save_all": True, "append_images": frames[1:]}
    frames[0].save(path, format="TIFF", **more)


def write_one_bit(name: str) -> None:
    if name == "fax.tif":
        write_fax(name)
    elif name == "pages.tif":
        tifffile.imwrite(name, PAGES, photometric="minisblack")
    else:
        Image.fromarray(PAGES[0]).save(name)


@pytest.mark.parametrize("name", ["fax.tif", "pages.tif", "a.png", "a.bmp"])
@pytest.mark.parametrize("more", [(), ("--sigma", "20"), ("--method", "nlm")])
def test_a_picture_of_one_bit_is_copied_byte_for_byte(name: str, more: tuple[str, ...]) -> None:
    write_one_bit(name)
    result = run("denoise", name, "-o", f"out/{name}", *more)
    assert result.exit_code == 0, result.output
    assert Path("out", name).read_bytes() == Path(name).read_bytes()
    (said,) = result.stderr.splitlines()
    assert "one bit a pixel" in said
    assert "1 bit" in result.stdout
    told = json.loads(run("denoise", name, "-o", f"out/{name}", "--overwrite", "--json").stdout)
    assert told["warning_codes"] == ["bilevel"]
    assert told["noise"] is None


def test_in_another_format_the_pixels_are_the_same_and_a_tiff_keeps_the_bits() -> None:
    write_one_bit("a.png")
    for target in ("b.tif", "b.bmp", "b.npy"):
        assert run("denoise", "a.png", "-o", target).exit_code == 0
        (found,) = read_images(target)
        assert np.array_equal(found.pixels > 0, PAGES[0])
    with tifffile.TiffFile("b.tif") as tiff:
        assert tiff.pages[0].bitspersample == 1


def test_pages_of_one_bit_among_others_stay_of_one_bit() -> None:
    grey = np.random.default_rng(1).integers(80, 120, (48, 48), np.uint8)
    with tifffile.TiffWriter("mixed.tif") as writer:
        writer.write(PAGES[0], photometric="minisblack", metadata=None)
        writer.write(grey, photometric="minisblack", metadata=None)
    result = run("denoise", "mixed.tif", "-o", "out.tif", "--quality", "preview")
    assert result.exit_code == 0, result.output
    assert "1 of 2 images has one bit a pixel" in result.stderr
    bits, denoised = read_images("out.tif")
    assert bits.is_bilevel
    assert np.array_equal(bits.pixels > 0, PAGES[0])
    assert denoised.pixels.std() < grey.std()


@pytest.mark.parametrize("photometric", ["miniswhite", "minisblack"])
def test_what_was_read_can_be_written_with_its_bits(photometric: str) -> None:
    tifffile.imwrite("a.tif", PAGES, photometric=photometric)
    images = read_images("a.tif")
    write_images("b.tif", images)
    assert np.array_equal(read_images("b.tif")[0].pixels, images[0].pixels)
    assert Path("b.tif").stat().st_size < 2 * Path("a.tif").stat().st_size


def test_the_noise_of_one_bit_is_none_and_said_so() -> None:
    write_fax("fax.tif")
    lines = run("noise", "fax.tif").stdout.splitlines()
    assert len(lines) == len(PAGES)
    assert all(line.endswith("no noise level") for line in lines)
    told = [json.loads(line) for line in run("noise", "fax.tif", "--json").stdout.splitlines()]
    assert [each["noise"] for each in told] == [None] * len(PAGES)
