"""Inspecting what was dropped: what it is, its noise, and what is shown of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..core.image import Array
from ..io import FileError, ImageFile, format_of, limit_decoded_size, read_images
from ..io.formats import ending_of
from ..io.stacks import cut
from . import arrays, bridge, drawing
from .examples import write_example
from .sessions import NOISE, VIEW
from .worker import Reporter

# Formats that can hold channels as pictures of their own.
_MANY_AXES = ("TIFF", "FITS", "NPY", "NIFTI", "NIFTI.GZ", "MRC")
_DEVELOPED = (0.0, 255.0)  # black and white of a developed picture


def inspect_file(path: Path, folder: Path, max_bytes: int, reporter: Reporter) -> dict[str, Any]:
    """Inspect a file that was dropped, and write what is shown of it into a folder."""
    kind = bridge.kind_of(path)
    if kind == "video":
        view, played = arrays.unpack(path, folder / VIEW, max_bytes)
        own = {**played, "thirds": ["time", "none"], "blends": False}
        return {"path": path, "info": _info_of_frames([path], view, max_bytes, own)}
    with limit_decoded_size(max_bytes):
        if kind == "raw":
            return _inspect_raw(path, folder)
        images = read_images(path)
    image = images[0]
    if image.is_bilevel:
        raise FileError(f"{path}: has one bit a pixel, black or white, and so no noise level")
    bridge.check_memory(image.pixels[cut(image).pieces[0]])
    pixels, others = arrays.arrange(image)
    middle = drawing.middle_of(pixels, len(others))
    if middle.dtype == bool or not np.isfinite(middle).any():
        raise FileError(f"{path}: has no usable pixel: all are masked, or not finite")
    *noise, level = bridge.noise_of_file(image)
    np.save(folder / VIEW, pixels)
    info = _info((image, *noise), pixels, others) | {
        "apart": middle.ndim == 3 and image.format in _MANY_AXES,
        "tints": drawing.tints_of(image),
        "thirds": _thirds(image, others),
        "images": len(images),
    }
    info["noise"]["sigma"] = level
    return {"path": _named_as_it_is(path, image.format), "info": drawing.finite(info)}


def inspect_series(
    paths: Sequence[Path], folder: Path, max_bytes: int, reporter: Reporter
) -> dict[str, Any]:
    """Inspect pictures that are frames of one series, in this order; write all to be shown."""
    view = arrays.join(paths, folder / VIEW, max_bytes)
    return {"path": paths[0], "info": _info_of_frames(paths, view, max_bytes, {"thirds": ["time"]})}


def _info_of_frames(
    paths: Sequence[Path], view: Array, max_bytes: int, own: dict[str, Any]
) -> dict[str, Any]:
    """Return what was found in frames."""
    with limit_decoded_size(max_bytes):
        looked = bridge.noise_of_frames(paths)
    time = [{"letter": "T", "name": "Time", "size": len(view)}]
    return drawing.finite(_info(looked, view, time) | own)


def _inspect_raw(path: Path, folder: Path) -> dict[str, Any]:
    """Inspect a raw file: what it is, the noise of its sensor; develop it to be shown."""
    looked = image, model, words = bridge.noise_of_raw(path)
    if image.format == "DNG":
        path = _named_as_it_is(path, "DNG")
    bridge.keep_noise(model, folder / NOISE, image)
    shown = bridge.developed(image)
    np.save(folder / VIEW, shown)
    name, span = bridge.mosaic_name(image), bridge.span_of(image)
    ranges = dict.fromkeys(("all", "0", "1", "2"), _DEVELOPED)
    info = _info(looked, shown, []) | {
        "description": f"{shown.shape[1]}x{shown.shape[0]}, {name}",
        "dtype": str(image.pixels.dtype),
        "span": 255.0,
        "mosaic": name,
        "blends": False,
        "ranges": ranges,
        "histogram": drawing.histogram(shown, _DEVELOPED),
        "noise": {**bridge.noise_details(model, words, span, (0.0, span)), "sigma": words.level},
    }
    return {"path": path, "info": drawing.finite(info)}


def _info(looked: Any, view: Array, others: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what the page knows of a picture; what is special about it is added to that."""
    image, model, words = looked
    span, ranges = bridge.span_of(image), drawing.ranges_of(view, len(others))
    middle = drawing.middle_of(view, len(others))
    noise = bridge.noise_details(model, words, span, ranges["all"])
    return {
        "description": bridge.describe(image),
        "format": image.format,
        "dtype": str(view.dtype),
        "width": middle.shape[1],
        "height": middle.shape[0],
        "channels": middle.shape[2] if middle.ndim == 3 else 1,
        "apart": False,
        "tints": [],
        "others": others,
        "middle": [each["size"] // 2 for each in others],
        "thirds": [],
        "images": 1,
        "span": span,
        "mosaic": "",
        "blends": True,
        "ranges": ranges,
        "histogram": drawing.histogram(middle, ranges["all"]),
        "noise": {**noise, "sigma": words.level},
    }


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


def inspect_reference(
    path: Path, folder: Path, max_bytes: int, reporter: Reporter
) -> dict[str, Any]:
    """Make sure that the picture without noise can be read and is as large as the noisy one."""
    pixels = arrays.write_view([path], "image", path.parent / VIEW, max_bytes)
    noisy = np.load(folder / VIEW, mmap_mode="r", allow_pickle=False)
    if pixels.shape != noisy.shape:
        ours, theirs = (" x ".join(map(str, each.shape)) for each in (pixels, noisy))
        raise FileError(f"{path}: is {ours}, the noisy picture {theirs}")
    return {}


def example(name: str, folder: Path, max_bytes: int, reporter: Reporter) -> dict[str, Any]:
    """Write an example, and inspect it as if it had been dropped."""
    clean_folder = folder / "clean"
    clean_folder.mkdir()
    noisy, clean = write_example(name, folder, clean_folder)
    found = inspect_file(noisy, folder, max_bytes, reporter)
    inspect_reference(clean, folder, max_bytes, reporter)
    return {**found, "reference": clean_folder, "reference_name": clean.name}
