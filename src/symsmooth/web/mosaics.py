"""Raw files: a mosaic is denoised as one and taken home as a DNG; what is shown is developed from it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..app.job import DenoiseJob
from ..app.raw import describe_raw_noise, find_raw_noise, is_raw, law_of_light, law_of_pixels
from ..app.raw import develop as developed
from ..core.image import Array
from ..core.parallel import part_of
from ..io import ImageFile, limit_decoded_size, read_images, write_images
from ..io.formats import open_file
from ..io.images import RawInfo
from ..raw.mosaic import COLOURS
from . import bridge, drawing, noise_files
from .catalogue import result_of
from .pictures import VIEW
from .settings import Settings
from .worker import Reporter

_SHOWN = (0.0, 255.0)  # black and white of a developed picture
_BAYER = (2, 2)  # patterns of this size have a name, RGGB


def is_mosaic(path: Path) -> bool:
    """Whether a file has yet to be developed."""
    with open_file(path) as file:
        return is_raw(file)


def inspect_file(path: Path, folder: Path, max_bytes: int) -> dict[str, Any]:
    """Inspect a raw file: what it is, the noise of its sensor; develop it to be shown."""
    with limit_decoded_size(max_bytes):
        image = read_images(path)[0]
    bridge.check_memory(image.pixels)
    if image.format == "DNG" and path.suffix.lower() != ".dng":
        path = path.rename(path.with_suffix(".dng"))
    info = image.details.raw
    assert info is not None
    shown = _shown(image)
    np.save(folder / VIEW, shown)
    span = float(info.white - info.black.mean())
    model = find_raw_noise(image)
    words = describe_raw_noise(model, image)
    noise = bridge.model_details(model, words, span, (0.0, span))
    noise_files.keep(law_of_pixels(model, image), folder)
    height, width = shown.shape[:2]
    found = {
        "description": f"{width}x{height}, {_name(info)}",
        "format": image.format,
        "dtype": str(image.pixels.dtype),
        "width": width,
        "height": height,
        "channels": 3,
        "apart": False,
        "others": [],
        "middle": [],
        "tints": [],
        "thirds": [],
        "images": 1,
        "span": 255.0,
        "mosaic": _name(info),
        "blends": False,
        "ranges": dict.fromkeys(("all", "0", "1", "2"), _SHOWN),
        "histogram": drawing.histogram(shown, _SHOWN),
        "noise": {**noise, "sigma": words.level},
    }
    return {"path": path, "info": drawing.finite(found)}


def denoise(
    path: Path, given: dict[str, Any], folder: Path, settings: Settings, workers: int | None,
    max_bytes: int, reporter: Reporter,
) -> dict[str, Any]:  # fmt: skip
    """Denoise a mosaic into a DNG, with the bits of the command line, and develop it to be shown."""
    job = _job(settings, given["sigma"], workers)
    target = folder / f"{path.stem}-denoised.dng"
    with limit_decoded_size(max_bytes):
        noise = _law_given(path, job) if job.has_model else given["noise"]
        outcome = bridge.denoise_file(path, target, job, part_of(reporter.progress, 0.02, 0.9))
    reporter.progress(0.92, "developing")
    with limit_decoded_size(2 * max_bytes):
        shown = _shown(read_images(target)[0])
    np.save(folder / "result-0.npy", shown)
    before = np.load(path.parent / VIEW, mmap_mode="r", allow_pickle=False)
    noise_files.keep_file(Path(settings.model or path.parent / noise_files.KEPT), folder)
    reporter.progress(0.99, "drawing")
    return drawing.finite({
        "files": [target.name],
        "panels": [{"label": result_of(settings), "removed": drawing.removed(before, shown)}],
        **outcome,
        "noise": noise,
        "histogram": drawing.histogram(shown, _SHOWN),
    })  # fmt: skip


def develop(path: Path, reporter: Reporter) -> Path:
    """Write the developed picture of a DNG of ours beside it, as the command line would."""
    target = path.with_suffix(".tif")
    write_images(target, [developed(read_images(path)[0])])
    return target


def _job(settings: Settings, level: float, workers: int | None) -> DenoiseJob:
    """Return what is done to a mosaic, or say what cannot be."""
    if settings.method != Settings().method:
        raise ValueError("A raw file is denoised by the method Automatic; choose that.")
    if settings.noise not in ("auto", "file"):
        raise ValueError("The noise of a raw file is that of its sensor; choose Auto or Saved.")
    if settings.chroma_strength is not None:
        raise ValueError("A mosaic has one colour a pixel; leave the strength of colour alone.")
    return bridge.make_job(settings, level, workers)


def _law_given(path: Path, job: DenoiseJob) -> dict[str, Any]:
    """Return what the page shows of a model that was opened for a raw file."""
    image = read_images(path)[0]
    info = image.details.raw
    assert info is not None
    model: Any = job.options["noise"]
    law = model if info.pattern is None else law_of_light(model, info)
    span = float(info.white - info.black.mean())
    words = describe_raw_noise(law, image, given=True)
    return bridge.model_details(law, words, span, (0.0, span))


def _shown(image: ImageFile) -> Array:
    """Return a raw image developed, 8 bits a colour."""
    return (developed(image).pixels >> 8).astype(np.uint8)


def _name(info: RawInfo) -> str:
    """Return what kind of mosaic it is."""
    if info.pattern is None:
        return "linear raw"
    letters = "".join(COLOURS[colour] for colour in np.ravel(info.pattern))
    return f"raw mosaic {letters}" if info.pattern.shape == _BAYER else "raw mosaic, X-Trans"
