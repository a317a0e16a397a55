"""Raw files: a mosaic is denoised as one, and written as a DNG or developed."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from .. import __version__
from ..core.parallel import Progress, part_of
from ..gsfw.denoise import fit_denoise
from ..io import FileError, ImageFile
from ..io.base import OpenFile
from ..io.formats import FORMATS, check_writable, format_of, module_of, read_opened, write_checked
from ..io.images import RawInfo, cut
from ..methods import DEFAULT
from ..noise import Noise, NoiseModel, PoissonGaussian, estimate_noise
from ..noise.levels import Photons
from ..noise.resolve import pixel_range
from ..raw.denoise import estimate_raw_noise, fit_denoise_raw
from .job import Denoised, DenoiseJob, Outcome
from .messages import NoiseDescription, UsageError, describe

_WRITING = 0.95  # where that begins, for the progress callback
_OPTIONS = ("quality", "strength", "grain")  # of denoise that make sense here
_DEPTHS = ("uint8", "uint16")  # of developed pictures
_IN_COLOUR = (*_OPTIONS, "chroma_strength")  # for pictures that are no mosaics


def is_raw(file: OpenFile) -> bool:
    """Whether a file is a mosaic that has yet to be developed."""
    return FORMATS[file.format].is_raw


def denoise_raw_file(
    file: OpenFile, target: Path, job: DenoiseJob, progress: Progress | None
) -> Outcome:
    """Read a raw file, denoise its mosaic, write a DNG or the developed picture."""
    _check(job)
    image = read_opened(file)[0]
    file.close()
    target.parent.mkdir(parents=True, exist_ok=True)
    format = format_of(target)
    as_dng = format == "DNG"
    depth = _depth(format, job.dtype)
    check_writable(target, image if as_dng else _developed_like(image, depth))
    done = _denoise(image, job, part_of(progress, 0.0, _WRITING))
    assert done.words is not None
    note = f"symsmooth {__version__}: raw, {done.words.words}"
    made = replace(image, pixels=done.pixels)
    written = made if as_dng else develop(made, job.linear, depth)
    write_checked(target, [written], note)
    if progress is not None:
        progress(1.0, "done")
    used = {name: value for name, value in job.options.items() if name in _IN_COLOUR}
    return Outcome(
        file.path, target, image, cut(image), replace(job, options=used), replace(done, pixels=None)
    )


def raw_noise(file: OpenFile) -> tuple[ImageFile, Noise]:
    """Return a raw file and the noise it has."""
    image = read_opened(file)[0]
    return image, find_raw_noise(image)


def _info(image: ImageFile) -> RawInfo:
    """Return what the pixels of a raw image mean."""
    assert image.details.raw is not None
    return image.details.raw


def find_raw_noise(image: ImageFile) -> Noise:
    """Return the noise of a raw image: of a mosaic, the law of its sensor."""
    info = _info(image)
    pixels = image.pixels[info.area]
    if info.pattern is None:
        return estimate_noise(pixels, channel_axis=-1)
    return estimate_raw_noise(pixels, info.pattern, info.black, info.white)


def _denoise(image: ImageFile, job: DenoiseJob, progress: Progress | None) -> Denoised:
    """Denoise what sees light; the rest of the sensor stays as it is."""
    info = _info(image)
    pixels = image.pixels[info.area]
    known = _IN_COLOUR if info.pattern is None else _OPTIONS
    if info.pattern is not None and "chroma_strength" in job.options:
        raise UsageError(
            "a mosaic has one colour a pixel, and no strength of colour; develop it to a .tif first",
            "chroma_strength",
        )
    options: dict[str, Any] = {k: v for k, v in job.options.items() if k in known}
    options |= {"rng": job.seed, "workers": job.workers, "progress": progress}
    learned: dict[str, object] = {}
    model: Noise
    if info.pattern is None:
        if job.has_model:
            options["noise"] = job.options["noise"]
        linear = fit_denoise(pixels, channel_axis=-1, tone="linear", **options)
        result, model = linear.image, linear.noise
        clipped = pixels >= info.white
        result[clipped] = pixels[clipped]
    else:
        if job.has_model:
            options["noise"] = law_of_light(job.options["noise"], info)
        found = fit_denoise_raw(pixels, info.pattern, info.black, info.white, **options)
        result, model = found.image, found.noise
        learned = {"hot_pixels": found.n_defects} if found.n_defects else {}
    job.on_noise(model)
    denoised = image.pixels.copy()
    denoised[info.area] = result
    words = describe_raw_noise(model, image, given=job.has_model)
    return Denoised(denoised, noise=model, words=words, learned=learned)


def law_of_light(model: Any, info: RawInfo) -> NoiseModel:
    """Return a law of the pixels of a mosaic, as files keep it, for the light above its black."""
    law = getattr(model, "sensor_law", None)
    if law is None or len(law.gain) not in (1, 3):
        raise UsageError(
            f"a raw mosaic needs the noise model of a sensor (one law, or one a colour), and this is "
            f"{model}; make one from a raw file of this camera: symsmooth noise",
            "save",
        )
    n = len(law.gain)
    black = _black_of_colours(info) if n == 3 else [float(info.black.mean())]
    offset = tuple(b + a * m for a, b, m in zip(law.gain, law.offset, black, strict=True))
    return PoissonGaussian(law.gain, offset)


def law_of_pixels(model: Any, image: ImageFile) -> NoiseModel:
    """Return a law of the light of a mosaic for its pixels, black and all: what a file keeps."""
    info = _info(image)
    about = pixel_range(image.pixels[info.area])
    if info.pattern is None:
        return replace(model, pixels=about)
    law, black = model.photons, tuple(_black_of_colours(info))
    offset = tuple(b - a * m for a, b, m in zip(law.gain, law.offset, black, strict=True))
    return NoiseModel(Photons(law.gain, offset, black), pixels=about)


def _black_of_colours(info: RawInfo) -> list[float]:
    """Return the black of red, green and blue of a mosaic."""
    assert info.pattern is not None
    shape = np.lcm(info.black.shape, info.pattern.shape)
    tiles: list[Any] = [info.black, info.pattern]
    black, pattern = (np.tile(tile, shape // np.array(tile.shape)) for tile in tiles)
    return [float(black[pattern == colour].mean()) for colour in range(3)]


def describe_raw_noise(model: Noise, image: ImageFile, *, given: bool = False) -> NoiseDescription:
    """Say in words what noise a mosaic has; a sensor's law is about the light above its black."""
    info = _info(image)
    black = float(info.black.mean())
    offset = 0.0 if info.pattern is None else black
    sample = image.pixels[info.area][::7, ::7].astype(float) - offset
    return describe(model, sample, info.white - black, given=given, assumed=False)


def develop(image: ImageFile, linear: bool = False, dtype: str = "uint16") -> ImageFile:
    """Return the developed picture of a raw image, by way of a DNG in memory; uint8 or uint16."""
    dng = io.BytesIO()
    module_of("DNG").write(dng, [image], "DNG", "")
    dng.seek(0)
    picture = module_of("RAW").develop(dng, linear)
    if dtype == "uint8":
        picture = ((picture.astype(np.uint32) + 128) // 257).astype(np.uint8)  # to the nearest
    return ImageFile(picture, 2, None, "")


def _depth(format: str, asked: str) -> str:
    """Return the dtype of a developed picture: 8 bits in formats for the eye, else 16."""
    if not asked:
        return "uint8" if FORMATS[format].for_the_eye else "uint16"
    if format == "DNG":
        raise UsageError("a raw file keeps the bits of its sensor; leave the dtype out", "dtype")
    if asked not in _DEPTHS:
        raise UsageError(f"a developed picture is {' or '.join(_DEPTHS)}, not {asked}", "dtype")
    return asked


def _developed_like(image: ImageFile, dtype: str) -> ImageFile:
    """Return what a developed picture will be like; rawpy must be there to develop."""
    try:
        module_of("RAW")
    except FileError as error:
        raise UsageError(f"to develop a raw file: {error}; or write a .dng") from error
    return ImageFile(np.broadcast_to(np.zeros((), dtype), (*image.spatial, 3)), 2, None, "")


def _check(job: DenoiseJob) -> None:
    """Refuse what makes no sense for a mosaic."""
    if job.method.name != DEFAULT:
        raise UsageError(
            f"raw files are denoised by {DEFAULT} alone; choose no other method", "method"
        )
    kind = "noise" in job.options and not job.has_model
    if job.sigma is not None or job.noise_region is not None or kind:
        raise UsageError(
            "the noise of a raw file is that of its sensor, which is measured; change the strength to "
            "remove more or less of it, or give a model of its camera",
            "strength",
            "model",
        )
