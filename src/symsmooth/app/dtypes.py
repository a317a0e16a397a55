"""The dtype of what is written: one that was asked for, and what rounding to it costs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..io import ImageFile
from ..io.formats import FORMATS, format_of
from .errors import UsageError
from .job_warnings import JobWarning

DTYPES = ("uint8", "uint16", "uint32", "int8", "int16", "int32", "float16", "float32", "float64")
_LOST = 0.1  # share of the noise reduction that rounding may throw away
_FEW_COUNTS = 64  # the brightest 8-bit pixel of a picture of counts, not of a photograph
_KEPT_WORDS = "only EXIF, XMP, ICC profile, resolution and the header of a FITS image are"


def working_dtype(own: np.dtype[Any], asked: str) -> np.dtype[Any]:
    """Return the dtype in which pixels are denoised: a float if another than their own is asked for."""
    return own if asked in ("", own.name) else np.result_type(own, np.float32)


def written_like(image: ImageFile, asked: str) -> ImageFile:
    """Return what an image will be written as; pixels of another dtype are yet to come."""
    if asked in ("", image.pixels.dtype.name):
        return image
    if image.alpha is not None:
        raise UsageError(
            "the file has opacity, which keeps its dtype; leave the dtype out", "dtype"
        )
    pixels = np.broadcast_to(np.zeros((), asked), image.pixels.shape)
    return replace(image, pixels=pixels, format="", details=image.details.for_other_pixels())


def written(image: ImageFile, asked: str, pixels: Any) -> ImageFile:
    """Return an image with other pixels, as it is written."""
    like = written_like(image, asked)
    return replace(like, pixels=rounded(pixels, like.pixels.dtype))


def rounded(pixels: Any, dtype: np.dtype[Any]) -> Any:
    """Return pixels in a dtype, held within its limits; integers are rounded, what is missing is 0."""
    if pixels.dtype == dtype:
        return pixels
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            return pixels.astype(dtype)
    limits = np.iinfo(dtype)
    whole = np.nan_to_num(np.rint(pixels.astype(np.float64)), posinf=np.inf, neginf=-np.inf)
    return np.clip(whole, limits.min, limits.max).astype(dtype)


def dtype_warnings(image: ImageFile, asked: str, pixels: Any) -> list[JobWarning]:
    """Return what another dtype than the file's own costs; pixels, or a sample, are not rounded yet."""
    if asked in ("", image.pixels.dtype.name):
        return []
    warnings = []
    if np.dtype(asked).kind in "ui":
        limits = np.iinfo(asked)
        outside = 1 - ((pixels >= limits.min - 0.5) & (pixels <= limits.max + 0.5)).mean()
        if outside > 0:
            share = f"{100 * outside:.2g} % of the pixels"
            text = f"{share} do not fit into {asked} and are clipped; {{floats}}"
            warnings.append(JobWarning("clipped", text))
    known = FORMATS.get(image.format)
    if (known is not None and known.tied) or image.details.n_parts > 1:
        own = f"{image.format} metadata is that of {image.pixels.dtype} pixels"
        warnings.append(JobWarning("metadata", f"{own}: {_KEPT_WORDS} kept in {asked}"))
    return warnings


def rounding_warning(
    pixels: Any, n_channels: int, dtype: np.dtype[Any], removed: float, target: Path
) -> list[JobWarning]:
    """Say if rounding to integers throws away more than a tenth of the noise reduction.

    Only where somebody may want to measure: in a format for data, and with 8 bits for few counts in grey.
    In a photograph nobody sees it.  ``pixels`` are those before, or a sample; ``removed`` is the root mean
    square of the change: where it is less than that of rounding, there is nothing to lose.
    """
    cost = 1 / 12  # variance of rounding to whole numbers
    if dtype.kind not in "ui" or not cost <= removed**2 < cost / _LOST:
        return []
    format = FORMATS[format_of(target)]
    if format.for_the_eye or format.is_raw:
        return []
    if dtype.itemsize == 1 and (n_channels == 3 or float(pixels.max()) >= _FEW_COUNTS):
        return []
    place = "" if format.holds_floats else " and -o to a .tif"
    text = (
        f"rounding to {dtype.name} throws away more than a tenth of the noise reduction; {{floats}}"
    )
    return [JobWarning("rounding", text, place)]
