"""Pages of documentation, their blocks of code, and files for these to work on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tifffile
import typer
from PIL import Image

from symsmooth.cli import app
from symsmooth_repro.sensor import Sensor

from .dngs import dng

ROOT = Path(__file__).parent.parent
BUILT = ("_build", "gallery", "generated", "backreferences", "reproduction.md")
SHELL, PYTHON, PLAIN = ("", "sh"), ("python",), ("text",)
DIRECTIVES = {"eval-rst", "image", "include", "toctree"}  # of MyST, between fences; no code

_FENCE = re.compile(r"^(?P<fence>`{3,})(?P<language>[^`]*)$")


def pages() -> list[Path]:
    """The README and its neighbours, and all pages in docs that are written by hand."""
    written = [
        path
        for ending in ("md", "rst")
        for path in sorted((ROOT / "docs").rglob(f"*.{ending}"))
        if not set(path.relative_to(ROOT).parts) & set(BUILT)
    ]
    return [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")] + written


@dataclass(frozen=True)
class Block:
    """A block of code."""

    page: Path
    line: int  # of its first line of code, from 1
    language: str
    text: str

    @property
    def name(self) -> str:
        page = self.page.relative_to(ROOT) if self.page.is_relative_to(ROOT) else self.page
        return f"{page}:{self.line}"


def commands() -> dict[str, Any]:
    """All commands by name, also those of symsmooth-repro."""
    group: Any = typer.main.get_command(app)
    found: dict[str, Any] = group.load_commands()
    return found


def blocks(page: Path) -> list[Block]:
    """All blocks between fences that hold code, in order."""
    return [block for block in _fenced(page) if not block.language.startswith("{")]


def directives(page: Path) -> set[str]:
    """What MyST is told to do between fences."""
    return {
        block.language.partition("}")[0].strip("{")
        for block in _fenced(page)
        if block.language.startswith("{")
    }


def _fenced(page: Path) -> Iterator[Block]:
    lines = page.read_text(encoding="utf-8").splitlines()
    start, language, fence = 0, "", ""
    for number, line in enumerate(lines, 1):
        found = _FENCE.match(line)
        if fence and line.strip() == fence:
            yield Block(page, start, language, "\n".join(lines[start - 1 : number - 1]) + "\n")
            fence = ""
        elif found and not fence:
            fence, language, start = found["fence"], found["language"].strip(), number + 1
    assert not fence, f"{page}: a block that begins at line {start} does not end"


def write_samples(folder: Path) -> None:
    """Write what the pages' examples work on: small, and as they say it is."""
    from astropy.io import fits
    from skimage import data

    rng = np.random.default_rng(0)
    scene = data.camera()[96:160, 200:264].astype(np.float32)
    noisy = np.clip(scene + rng.normal(0, 20, scene.shape), 0, 255).astype(np.uint8)
    Image.fromarray(noisy).save(folder / "noisy.png")
    photo = data.astronaut()[:64, 180:244]
    grain = np.clip(photo + rng.normal(0, 20, photo.shape), 0, 255).astype(np.uint8)
    Image.fromarray(grain).save(folder / "photo.jpg", quality=95)
    (folder / "pictures").mkdir()
    Image.fromarray(noisy).save(folder / "pictures" / "a.png")
    Image.fromarray(grain).save(folder / "pictures" / "b.jpg", quality=95)
    (folder / "raws").mkdir()
    mosaic = rng.poisson(np.linspace(20, 300, 96), (96, 96)).astype(np.uint16) + 1024
    for name in (
        "IMG.NEF",
        "raws/b.CR3",
    ):  # known by what is in them: only cameras write the others
        (folder / name).write_bytes(dng(mosaic, Sensor(100)))

    counts = (100 + 2.2 * rng.poisson(scene / 4) + rng.normal(0, 3.5, scene.shape)).astype(
        np.uint16
    )
    tifffile.imwrite(folder / "cells.tif", counts)
    for place, lights in (("flats", (200, 200, 2000, 2000)), ("darks", (0, 0))):
        (folder / place).mkdir()
        for number, light in enumerate(lights):
            frame = 100 + 2.2 * rng.poisson(light / 2.2, (96, 96)) + rng.normal(0, 3.5, (96, 96))
            tifffile.imwrite(folder / place / f"{number}.tif", np.rint(frame).astype(np.uint16))
    stack = rng.normal(100, 20, (5, 20, 22)).astype(np.float32)
    tifffile.imwrite(folder / "stack.tif", stack)
    tifffile.imwrite(folder / "series.ome.tif", stack, metadata={"axes": "TYX"})
    tifffile.imwrite(folder / "big.tif", noisy, tile=(32, 32))
    np.save(folder / "scan.npy", rng.normal(100, 20, (100, 80)))
    for place in ("a", "b"):
        (folder / "folder" / place).mkdir(parents=True)
        tifffile.imwrite(folder / "folder" / place / "x.tif", counts[:24, :24])

    sky = rng.normal(200, 3, (64, 64)).astype(np.float32)
    sky[20:23, 30:33] += 500
    sky[5, 5] = np.nan
    fits.PrimaryHDU(sky).writeto(folder / "m31.fits")

    import mrcfile
    import nibabel

    real, imaginary = 12.5 * rng.standard_normal((2, 24, 24, 12))
    real[6:18, 6:18, 3:9] += 200
    nibabel.Nifti1Image(np.hypot(real, imaginary).astype(np.int16), np.eye(4)).to_filename(
        folder / "head.nii.gz"
    )
    mrcfile.write(folder / "tomogram.mrc", stack)

    import zarr

    from .clips import make_clip
    from .clips import noisy as noisy_frame

    (folder / "frames").mkdir()
    for number in range(4):
        Image.fromarray(noisy_frame(number)).save(folder / "frames" / f"f{number}.png")
    make_clip(folder / "clip.mp4", frames=[noisy_frame(number) for number in range(5)])

    array = zarr.create_array(folder / "big.zarr", shape=(64, 64), chunks=(32, 32), dtype="uint8")
    array[:] = noisy
