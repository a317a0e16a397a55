"""Inspecting a file that was dropped: what it is, its noise, and what is shown of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from ..core.image import Array
from ..io import FileError, ImageFile, format_of, limit_decoded_size, write_image
from ..io.formats import ending_of
from ..io.stacks import cut
from . import bridge, drawing, mosaics, series
from .examples import write_example
from .pictures import VIEW
from .worker import Reporter

_MANY_AXES = (
    "TIFF",
    "FITS",
    "NPY",
    "NIFTI",
    "NIFTI.GZ",
    "MRC",
)  # formats that can hold channels as pictures of their own


def inspect_file(path: Path, folder: Path, max_bytes: int, reporter: Reporter) -> dict[str, Any]:
    """Inspect a file that was dropped: what it is, its noise; write what is shown of it."""
    if mosaics.is_mosaic(path):
        return mosaics.inspect_file(path, folder, max_bytes)
    if series.is_video(path):
        return series.inspect_video(path, folder, max_bytes)
    with limit_decoded_size(max_bytes):
        images = bridge.read_file(path)
    image = images[0]
    if image.is_bilevel:
        raise FileError(f"{path}: has one bit a pixel, black or white, and so no noise level")
    bridge.check_memory(image.pixels[cut(image).pieces[0]])
    pixels, others = drawing.arrange(image)
    middle = drawing.middle_of(pixels, len(others))
    if middle.dtype == bool or not np.isfinite(middle).any():
        raise FileError(f"{path}: has no usable pixel: all are masked, or not finite")
    path = _named_as_it_is(path, image.format)
    ranges = drawing.ranges_of(pixels, len(others))
    model, level = bridge.noise_of_file(image)
    noise = bridge.noise_details(model, image, ranges["all"], given=False, assumed=False)
    np.save(folder / VIEW, pixels)
    info = {
        "description": bridge.describe(image),
        "format": image.format,
        "dtype": str(image.pixels.dtype),
        "width": middle.shape[1],
        "height": middle.shape[0],
        "channels": middle.shape[2] if middle.ndim == 3 else 1,
        "apart": middle.ndim == 3 and image.format in _MANY_AXES,
        "tints": drawing.tints_of(image),
        "others": others,
        "middle": [each["size"] // 2 for each in others],
        "thirds": _thirds(image, others),
        "images": len(images),
        "span": bridge.span_of(image),
        "mosaic": "",
        "blends": True,
        "ranges": ranges,
        "histogram": drawing.histogram(middle, ranges["all"]),
        "noise": {**noise, "sigma": level},
    }
    return {"path": path, "info": drawing.finite(info)}


def inspect_reference(
    path: Path, folder: Path, max_bytes: int, reporter: Reporter
) -> dict[str, Any]:
    """Make sure that the picture without noise can be read and is as large as the noisy one."""
    with limit_decoded_size(max_bytes):
        pixels, _ = drawing.arrange(bridge.read_file(path)[0])
    noisy = np.load(folder / VIEW, mmap_mode="r", allow_pickle=False)
    if pixels.shape != noisy.shape:
        raise FileError(f"{path}: is {_size(pixels)}, the noisy picture {_size(noisy)}")
    np.save(path.parent / VIEW, pixels)
    return {}


def example(name: str, folder: Path, max_bytes: int, reporter: Reporter) -> dict[str, Any]:
    """Write an example, and inspect it as if it had been dropped."""
    clean_folder = folder / "clean"
    clean_folder.mkdir()
    noisy, clean = write_example(name, folder, clean_folder)
    found = inspect_file(noisy, folder, max_bytes, reporter)
    inspect_reference(clean, folder, max_bytes, reporter)
    return {**found, "reference": clean_folder, "reference_name": clean.name}


def draw(wanted: dict[str, Any], reporter: Reporter) -> bytes:
    """Draw a slice, or a part of one, as a PNG file."""
    return drawing.draw_view(wanted)


def warm_up_reader(folder: Path, reporter: Reporter) -> None:
    """Load what inspecting a picture takes."""
    with TemporaryDirectory(dir=folder) as name:
        path = Path(name) / "noise.tif"
        write_image(path, np.random.default_rng(0).normal(100.0, 20.0, (64, 64)).astype("f4"))
        inspect_file(path, Path(name), 2**20, reporter)


def warm_up_runner(workers: int | None, reporter: Reporter) -> None:
    """Load what the default method takes."""
    bridge.warm_up(workers)


def _thirds(image: ImageFile, others: Sequence[dict[str, Any]]) -> list[str]:
    """Return what a stack may be taken for; what the file says first."""
    long = [each["letter"] for each in others if each["size"] > 1]
    if not long:
        return []
    found = ["none"]
    if "Z" in long or len(long) == 1:
        found.append("volume")
    if "T" in long or (len(long) == 1 and "Z" not in long):
        found.append("time")
    own = "volume" if cut(image).third else "none"
    return [own, *(each for each in found if each != own)]


def _named_as_it_is(path: Path, format: str) -> Path:
    """Give a file the ending of what it holds, so that the result is written as the same."""
    try:
        right = format_of(path) == format
    except FileError:
        right = False
    return path if right else path.rename(path.with_suffix(ending_of(format)))


def _size(pixels: Array) -> str:
    return " x ".join(map(str, pixels.shape))
