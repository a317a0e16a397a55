"""``symsmooth blend`` on files: exact at its ends, between them in between, everything else kept."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from PIL import Image

from symsmooth.app.blend import BlendJob
from symsmooth.app.messages import UsageError
from symsmooth.cli import main
from symsmooth.io import read_image, read_images, write_image

rng = np.random.default_rng(0)


def run(monkeypatch: pytest.MonkeyPatch, *words: Any) -> int:
    monkeypatch.setattr(sys, "argv", ["symsmooth", "blend", *map(str, words)])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


def photographs(folder: Path) -> tuple[Path, Path]:
    """Write a JPEG with EXIF, and another of the same size."""
    noisy, denoised = folder / "noisy.jpg", folder / "denoised.jpg"
    pixels = rng.integers(60, 200, (24, 32, 3), np.uint8)
    exif = Image.Exif()
    exif[0x010F] = "Camera"
    Image.fromarray(pixels).save(noisy, quality=95, exif=exif, dpi=(300, 300))
    Image.fromarray(pixels // 2 + 60).save(denoised, quality=95, exif=exif)
    return noisy, denoised


def test_the_ends_are_copies(tmp_path, monkeypatch, capsys) -> None:
    noisy, denoised = photographs(tmp_path)
    for strength, expected in ((0, noisy), (1, denoised)):
        out = tmp_path / f"out-{strength}.jpg"
        assert run(monkeypatch, noisy, denoised, "--strength", strength, "-o", out) == 0
        assert out.read_bytes() == expected.read_bytes()
    out = tmp_path / "out.png"  # another format: the pixels are the same
    assert run(monkeypatch, noisy, denoised, "--strength", 1, "-o", out) == 0
    np.testing.assert_array_equal(read_image(out).pixels, read_image(denoised).pixels)
    assert "1 of the noise reduction" in capsys.readouterr().out


def test_a_photograph_keeps_its_metadata(tmp_path, monkeypatch) -> None:
    noisy, denoised = photographs(tmp_path)
    out = tmp_path / "out.jpg"
    words = (noisy, denoised, "--strength", 0.7, "--colour-strength", 0.2, "-o", out, "-q")
    assert run(monkeypatch, *words) == 0
    with Image.open(out) as made:
        assert made.getexif()[0x010F] == "Camera"
        assert made.info["dpi"] == (300, 300)
    a, b, c = (read_image(path).pixels.astype(float) for path in (noisy, denoised, out))
    assert np.abs(c.mean(-1) - (0.3 * a + 0.7 * b).mean(-1)).mean() < 2  # JPEG's own loss


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
def test_bit_depth_and_channels_are_kept(tmp_path, monkeypatch, dtype) -> None:
    a, b = (rng.integers(0, 200, (3, 9, 8)).astype(dtype) for _ in range(2))
    for name, pixels in (("a", a), ("b", b)):
        tifffile.imwrite(
            tmp_path / f"{name}.tif", pixels, photometric="rgb", planarconfig="separate"
        )
    out = tmp_path / "out.tif"
    assert (
        run(monkeypatch, tmp_path / "a.tif", tmp_path / "b.tif", "--strength", 0.5, "-o", out) == 0
    )
    made = read_image(out)
    assert made.pixels.dtype == dtype
    exact = 0.5 * a.astype(float) + 0.5 * b
    np.testing.assert_array_equal(
        made.channels_last, np.moveaxis(exact if dtype == np.float32 else np.rint(exact), 0, -1)
    )


def test_alpha_is_that_of_the_noisy_file_and_all_images_are_blended(tmp_path, monkeypatch) -> None:
    a, b = (rng.integers(0, 255, (9, 8, 4), np.uint8) for _ in range(2))
    Image.fromarray(a).save(tmp_path / "a.png")
    Image.fromarray(np.dstack([b[..., :3], a[..., 3]])).save(tmp_path / "b.png")
    out = tmp_path / "out.png"
    assert (
        run(monkeypatch, tmp_path / "a.png", tmp_path / "b.png", "--strength", 0.5, "-o", out) == 0
    )
    with Image.open(out) as made:
        np.testing.assert_array_equal(np.asarray(made)[..., 3], a[..., 3])
    pages = [Image.fromarray(rng.integers(0, 255, (9, n), np.uint8)) for n in (8, 7)]
    pages[0].save(tmp_path / "two.tif", save_all=True, append_images=pages[1:])
    two = tmp_path / "two.tif"
    assert run(monkeypatch, two, two, "--strength", 0.5, "-o", tmp_path / "both.tif") == 0
    for one, other in zip(read_images(two), read_images(tmp_path / "both.tif"), strict=True):
        np.testing.assert_array_equal(one.pixels, other.pixels)


def test_what_does_not_belong_together_is_one_line(tmp_path, monkeypatch, capsys) -> None:
    noisy, denoised = photographs(tmp_path)
    write_image(tmp_path / "small.png", np.zeros((5, 6, 3), np.uint8))
    write_image(tmp_path / "deep.png", np.zeros((24, 32, 3), np.uint16))
    write_image(tmp_path / "grey.png", np.zeros((24, 32), np.uint8))
    Image.new("1", (8, 8)).save(tmp_path / "fax.tif")
    out = tmp_path / "out.png"
    grey, fax = tmp_path / "grey.png", tmp_path / "fax.tif"
    for words, said in [
        ((noisy, tmp_path / "small.png", "--strength", 0.5), "32x24 with 3 channels and 6x5"),
        ((noisy, tmp_path / "deep.png", "--strength", 0.5), "uint8 and uint16"),
        ((noisy, grey, "--strength", 0.5), "with 3 channels and 32x24;"),
        (
            (grey, grey, "--strength", 0.5, "--colour-strength", 1),
            "leave its strength out (--colour-strength)",
        ),
        ((fax, fax, "--strength", 0.5), "one bit a pixel"),
        (
            (noisy, denoised, "--strength", 1.5),
            "the strength must be a number from 0 to 1, got 1.5 (--strength)",
        ),
        ((noisy, denoised, "--strength", "much"), "--strength must be a number"),
        (
            (noisy, denoised, "--strength", 0.5, "--colour-strength", -1),
            "the strength of colour must be",
        ),
        ((noisy, denoised), "--strength"),
        ((noisy, tmp_path / "none.jpg", "--strength", 0.5), "none.jpg"),
    ]:
        assert run(monkeypatch, *words, "-o", out) in (1, 2)
        error = capsys.readouterr().err
        assert said in error
        assert error.count("\n") == 1
        assert not out.exists()


def test_nothing_is_replaced_unless_that_is_said(tmp_path, monkeypatch, capsys) -> None:
    noisy, denoised = photographs(tmp_path)
    before = noisy.read_bytes()
    assert run(monkeypatch, noisy, denoised, "--strength", 0.5, "-o", noisy) == 2
    assert "is one of the inputs" in capsys.readouterr().err
    assert noisy.read_bytes() == before
    words = (noisy, denoised, "--strength", 0.5, "-o", noisy, "--overwrite", "--json")
    assert run(monkeypatch, *words) == 0
    assert json.loads(capsys.readouterr().out)["strength"] == 0.5
    assert noisy.read_bytes() != before


def test_a_job_says_what_it_cannot_do() -> None:
    with pytest.raises(UsageError, match="from 0 to 1, got nan"):
        BlendJob(Path("a"), Path("b"), Path("c"), float("nan"))
