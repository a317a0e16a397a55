"""Palettes: numbers that are intensities are denoised as they are, and the palette stays."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest
import tifffile
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, PngImagePlugin
from skimage import data
from typer.testing import CliRunner

from symsmooth import cli
from symsmooth.io import ImageFile, read_image
from symsmooth.io.images import find_ramp, painted, unpainted

Array = np.ndarray[Any, Any]

ALL = np.arange(256, dtype=np.uint8).reshape(16, 16)
RAMPS = ("gray", "gray_r", "viridis", "magma", "inferno", "plasma", "hot", "cividis", "cubehelix")
NO_RAMPS = ("jet", "hsv", "coolwarm", "tab20", "twilight")


def table(name: str) -> Array:
    """Return 256 colours: a map of Matplotlib, or black to one colour as microscopes have it."""
    if name in ("red", "green", "blue", "magenta", "yellow", "cyan"):
        has = {"red": "r", "green": "g", "blue": "b", "magenta": "rb", "yellow": "rg", "cyan": "gb"}
        colour = [letter in has[name] for letter in "rgb"]
        return np.outer(np.arange(256), colour).astype(np.uint8)
    mapped = matplotlib.colormaps[name](np.linspace(0, 1, 256))[:, :3]
    return np.asarray(np.rint(255 * mapped), np.uint8)


def cells() -> Array:
    noise = np.random.default_rng(0).normal(0, 12, (64, 64))
    return np.clip(data.camera()[96:160, 200:264] * 0.7 + 30 + noise, 5, 250).astype(np.uint8)


def write(path: Path, numbers: Array, colours: Array, **more: Any) -> None:
    if path.suffix == ".tif":
        colormap = (colours.astype(np.uint16) * 257).T
        tifffile.imwrite(path, numbers, photometric="palette", colormap=colormap, **more)
        return
    picture = Image.fromarray(numbers)
    picture.putpalette(colours.tobytes())
    picture.save(path, **more)


def run(*words: object) -> Any:
    done = CliRunner().invoke(cli.app, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    return done


def numbers_and_colours(path: Path) -> tuple[Array, Array]:
    """Return what another program sees."""
    with Image.open(path) as opened:
        assert opened.mode == "P"
        palette = opened.getpalette("RGB")
        assert palette is not None
        return np.asarray(opened), np.array(palette, np.uint8).reshape(-1, 3)


# --- which palettes are ramps --------------------------------------------------------------------


@pytest.mark.parametrize("name", [*RAMPS, "red", "green", "blue", "magenta", "yellow", "cyan"])
def test_tables_from_dark_to_bright_and_back_are_ramps(name: str) -> None:
    colours = table(name)
    assert find_ramp(ALL, colours) is not None
    assert find_ramp(ALL, colours[::-1]) is not None


@pytest.mark.parametrize("name", NO_RAMPS)
def test_tables_that_turn_are_none(name: str) -> None:
    assert find_ramp(ALL, table(name)) is None


@pytest.mark.parametrize("picture", ["astronaut", "coffee", "chelsea", "retina"])
def test_palettes_of_photographs_are_none_even_if_they_are_sorted(picture: str) -> None:
    photo = Image.fromarray(getattr(data, picture)()[:256, :256]).quantize(256)
    colours = np.array(photo.getpalette("RGB"), np.uint8).reshape(-1, 3)
    colours = colours[: int(np.asarray(photo).max()) + 1]
    numbers = np.arange(len(colours))
    assert find_ramp(numbers, colours) is None
    by_brightness = np.argsort(colours @ [0.299, 0.587, 0.114], kind="stable")
    assert find_ramp(numbers, colours[by_brightness]) is None


def test_drawings_of_few_colours_are_none() -> None:
    steps = table("gray")[::30]
    assert find_ramp(np.arange(len(steps)), steps) is None


@given(st.integers(0, 200), st.integers(30, 55), st.sampled_from(RAMPS))
@settings(deadline=None)
def test_only_what_the_picture_uses_counts(first: int, n: int, name: str) -> None:
    colours = np.random.default_rng(first).integers(0, 256, (256, 3)).astype(np.uint8)
    colours[first : first + n] = table(name)[:: 256 // n][:n]
    numbers = np.arange(first, first + n)
    ramp = find_ramp(numbers, colours)
    assert ramp is not None
    held = ramp.hold(np.arange(256))
    assert (held.min(), held.max()) == (first, first + n - 1)
    assert np.array_equal(ramp.hold(numbers), numbers)


# --- files ---------------------------------------------------------------------------------------

FILES: dict[str, dict[str, Any]] = {
    "a.png": {},
    "a.bmp": {},
    "a.tif": {},
    "packed.tif": {"compression": "zlib"},
    "tiled.tif": {"tile": (32, 32), "compression": "lzw", "metadata": None},
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("map", ["yellow", "viridis", "gray_r"])
def test_the_numbers_are_denoised_as_grey_and_the_palette_stays(
    tmp_path: Path, name: str, map: str
) -> None:
    source, target = tmp_path / name, tmp_path / f"out-{name}"
    write(source, cells(), table(map), **FILES[name])
    words = ("--quality", "fast")
    done = run("denoise", source, "-o", target, *words)
    assert "grey with a palette" in done.stdout
    numbers, colours = numbers_and_colours(target)
    assert np.array_equal(colours[: int(numbers.max()) + 1], table(map)[: int(numbers.max()) + 1])
    np.save(tmp_path / "grey.npy", cells())
    run("denoise", tmp_path / "grey.npy", "-o", tmp_path / "clean.npy", *words)
    as_grey = np.load(tmp_path / "clean.npy")
    assert np.array_equal(numbers, np.clip(as_grey, cells().min(), cells().max()))


@pytest.mark.parametrize("name", FILES)
def test_numbers_that_did_not_change_come_back(tmp_path: Path, name: str) -> None:
    source, target = tmp_path / name, tmp_path / f"out-{name}"
    write(source, cells(), table("inferno"), **FILES[name])
    run("denoise", source, "-o", target, "--method", "identity")
    for before, after in zip(numbers_and_colours(source), numbers_and_colours(target), strict=True):
        assert np.array_equal(before[: len(after)], after[: len(before)])


def test_stacks_of_numbers_keep_their_palette_and_tags(tmp_path: Path) -> None:
    source, target = tmp_path / "a.tif", tmp_path / "b.tif"
    frames = np.stack([cells(), cells()[::-1]])
    write(source, frames, table("green"), metadata={"axes": "TYX"}, datetime=True)
    run("denoise", source, "-o", target, "--quality", "preview")
    with tifffile.TiffFile(source) as before, tifffile.TiffFile(target) as after:
        assert after.series[0].shape == frames.shape
        for code in (262, 306, 320):
            old, new = (each.pages[0].tags[code].value for each in (before, after))
            assert np.array_equal(old, new)


def test_chunks_of_a_png_stay_and_stand_where_they_must(tmp_path: Path) -> None:
    texts = PngImagePlugin.PngInfo()
    texts.add_text("Title", "cells")
    texts.add(b"bKGD", b"\x07")
    source, target = tmp_path / "a.png", tmp_path / "b.png"
    write(source, cells(), table("magma"), pnginfo=texts, dpi=(300, 300))
    run("denoise", source, "-o", target, "--quality", "preview")
    coded = target.read_bytes()
    assert coded.index(b"PLTE") < coded.index(b"bKGD") < coded.index(b"IDAT")
    assert coded.index(b"pHYs") < coded.index(b"PLTE")
    with Image.open(target) as opened:
        assert opened.info["Title"] == "cells"


def test_formats_for_the_eye_show_the_colours_and_those_for_numbers_have_the_numbers(
    tmp_path: Path,
) -> None:
    source = tmp_path / "a.png"
    colours = table("hot")
    write(source, cells(), colours)
    for ending in ("webp", "jpg", "npy", "tif", "fits"):
        run("denoise", source, "-o", tmp_path / f"b.{ending}", "--method", "identity")
    shown = colours[cells()].astype(float)
    assert np.array_equal(read_image(tmp_path / "b.webp").pixels, shown)
    assert np.abs(read_image(tmp_path / "b.jpg").pixels - shown).mean() < 5
    for ending in ("npy", "fits"):
        assert np.array_equal(read_image(tmp_path / f"b.{ending}").pixels, cells())
    numbers, found = numbers_and_colours(tmp_path / "b.tif")
    assert np.array_equal(numbers, cells())
    assert np.array_equal(found, colours)


@pytest.mark.parametrize("name", ["a.png", "a.tif"])
def test_other_palettes_become_rgb_and_that_is_said(tmp_path: Path, name: str) -> None:
    photo = Image.fromarray(data.astronaut()[:64, 180:244]).quantize(200)
    photo.save(tmp_path / name)
    done = run("denoise", tmp_path / name, "-o", tmp_path / f"b-{name}", "--quality", "preview")
    assert "3 channels, its palette made RGB" in done.stdout
    assert read_image(tmp_path / f"b-{name}").n_channels == 3


def test_what_shines_through_keeps_its_opacity(tmp_path: Path) -> None:
    write(tmp_path / "a.png", cells(), table("gray"), transparency=60)
    image = read_image(tmp_path / "a.png")
    assert image.ramp is None
    assert image.alpha is not None
    assert np.array_equal(image.alpha == 0, cells() == 60)


# --- pictures that were painted -----------------------------------------------------------------


def grey_picture() -> np.ndarray:
    noise = np.random.default_rng(0).normal(0, 20, (96, 96))
    return np.clip(data.camera()[100:196, 100:196] / 1.5 + noise, 0, 255).astype(np.uint8)


@pytest.mark.parametrize("name", ["hot", "afmhot", "bone", "gist_heat"])
def test_a_painted_picture_is_denoised_as_the_grey_one_and_painted_again(
    tmp_path: Path, name: str
) -> None:
    colours = np.rint(255 * matplotlib.colormaps[name](np.arange(256))[:, :3]).astype(np.uint8)
    grey = grey_picture()
    Image.fromarray(colours[grey]).save(tmp_path / "painted.png")
    found = CliRunner().invoke(
        cli.app,
        [
            "denoise",
            str(tmp_path / "painted.png"),
            "-o",
            str(tmp_path / "out.png"),
            "--quality",
            "fast",
        ],
    )
    assert found.exit_code == 0, found.output
    assert "grey in false colours" in found.output
    result = read_image(tmp_path / "out.png").pixels
    assert result.shape == (96, 96, 3)
    known = {tuple(colour) for colour in colours.tolist()}
    assert {tuple(colour) for colour in result.reshape(-1, 3).tolist()} <= known
    clean = colours[np.clip(data.camera()[100:196, 100:196] / 1.5, 0, 255).astype(np.uint8)]
    before, after = (
        np.mean((np.asarray(each, float) - clean) ** 2) for each in (colours[grey], result)
    )
    assert after < before / 4


def test_unpainted_and_painted_undo_each_other() -> None:
    colours = np.rint(255 * matplotlib.colormaps["hot"](np.arange(256))[:, :3]).astype(np.uint8)
    image = ImageFile(colours[grey_picture()], 2, None, "PNG")
    inner = unpainted(image)
    assert inner.pixels.ndim == 2
    again = painted(inner)
    np.testing.assert_array_equal(again.pixels, image.pixels)
    assert (again.channel_axis, again.axes) == (image.channel_axis, image.axes)


@pytest.mark.parametrize("picture", ["photograph", "grey", "drawing", "16 bit"])
def test_other_pictures_stay_what_they_are(picture: str) -> None:
    grey = grey_picture()
    pixels = {
        "photograph": data.astronaut()[:96, :96],
        "grey": np.repeat(grey[..., np.newaxis], 3, axis=-1),
        "drawing": np.random.default_rng(0).integers(0, 2, (96, 96, 3), np.uint8) * 255,
        "16 bit": np.repeat(grey[..., np.newaxis], 3, axis=-1).astype(np.uint16),
    }[picture]
    image = ImageFile(pixels, 2, None, "PNG")
    assert unpainted(image) is image


def test_a_photograph_is_told_from_a_painted_picture_by_a_sample() -> None:
    """A large one is not copied for that."""
    colours = np.random.default_rng(0).integers(0, 256, (1500, 1500, 3)).astype(np.uint8)
    photograph = ImageFile(colours, 2, None, "PNG")
    tracemalloc.start()
    assert unpainted(photograph) is photograph
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < colours.nbytes / 2
