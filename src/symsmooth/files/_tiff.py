"""TIFF, by tifffile: one page or a stack, any integer or float depth, any order of the axes.

Channels are what the file itself calls so: samples of a pixel (axis "S") or an axis "C".  A stack
without either is a volume.  What the axes are called, and how samples are stored and meant, goes
into ``ImageFile.details`` and is written back.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import tifffile

from ._base import Array, FileError, ImageFile, native

logging.getLogger("tifffile").addHandler(logging.NullHandler())  # its complaints become errors

_UNASSOCIATED = 2  # ExtraSamples: alpha that colour was not multiplied with
_ALPHA = (1, _UNASSOCIATED)
_PHOTOMETRIC = {0: "miniswhite", 1: "minisblack", 2: "rgb", 3: "palette", 5: "separated", 6: "rgb"}
_JPEG = (6, 7)  # its two compression tags
_LARGE = 2**30  # bytes from which the declared size must be likely for the size of the file
_BEST_COMPRESSION = 1100  # deflate reaches 1032


def read(path: Path, format: str) -> ImageFile:
    """Read the one image or stack in the file."""
    with tifffile.TiffFile(path) as tiff:
        series = _only_series(tiff)
        page = series.keyframe
        _check_sizes(series)
        photometric = _photometric(page)
        pixels, axes = _decode(series, path), series.axes
        if photometric == "palette":
            pixels, axes, photometric = _apply_palette(pixels, page), axes + "S", "rgb"
        if pixels.dtype == bool:
            pixels = pixels.astype(np.uint8) * np.uint8(255)
        if photometric == "miniswhite" and pixels.dtype.kind == "u":
            pixels, photometric = ~pixels, "minisblack"  # max - value: white is high everywhere
        details = {
            "axes": axes,
            "photometric": photometric,
            "planarconfig": page.planarconfig.name.lower() if "S" in axes else None,
            "extrasamples": tuple(int(kind) for kind in page.extrasamples),
        }
    return _split(native(pixels), details, format)


def _photometric(page: Any) -> str:
    """Return what the pixels mean; a JPEG inside is decoded to RGB from whatever it was."""
    stored = int(page.photometric)
    if stored not in _PHOTOMETRIC or (stored == 6 and int(page.compression) not in _JPEG):
        raise FileError(f"has {page.photometric.name} pixels; save it as grey or RGB")
    if stored == 2 and page.samplesperpixel > 4:
        raise FileError(f"has RGB and {page.samplesperpixel - 3} more samples a pixel; save 3 or 4")
    return _PHOTOMETRIC[stored]


def _only_series(tiff: tifffile.TiffFile) -> Any:
    """Return the image, leaving out thumbnails; more than one is an error."""
    whole = [series for series in tiff.series if series.size and not series.keyframe.is_reduced]
    if not whole:
        raise FileError("holds no image")
    if len(whole) > 1:
        shapes = ", ".join(str(series.shape) for series in whole[:3])
        raise FileError(f"holds {len(whole)} images ({shapes}); save each as a file of its own")
    return whole[0]


def _check_sizes(series: Any) -> None:
    """Refuse a file that ends before its pixels do, or that unpacks to the impossible."""
    file_size = series.keyframe.parent.filehandle.size
    if series.nbytes > max(_LARGE, _BEST_COMPRESSION * file_size):
        raise FileError(f"claims {series.nbytes} bytes of pixels in a file of {file_size}: damaged")
    for page in series.pages:
        if page is None:
            raise FileError("lacks some of its pages")
        for start, count in zip(page.dataoffsets, page.databytecounts, strict=True):
            if start + count > page.parent.filehandle.size:
                raise FileError("is truncated: it ends before its pixels do")


def _decode(series: Any, path: Path) -> Array:
    """Return the pixels; what tifffile has no decoder for, Pillow may have."""
    try:
        return np.asarray(series.asarray())
    except ValueError as error:
        if "imagecodecs" not in str(error):
            raise
        pixels = _decode_with_pillow(series, path)
        if pixels is None:
            name = series.keyframe.compression.name
            raise FileError(
                f"is compressed with {name}; pip install imagecodecs, or save it uncompressed"
            ) from error
        return pixels


def _decode_with_pillow(series: Any, path: Path) -> Array | None:
    """Read LZW, JPEG and the like where Pillow keeps every bit, else return None."""
    from PIL import Image, ImageSequence

    page = series.keyframe
    as_stored = page.photometric in (1, 2, 3, 6) and 1 not in page.extrasamples
    with Image.open(path, formats=["TIFF"]) as opened:
        if not as_stored or getattr(opened, "n_frames", 1) != len(series.pages):
            return None
        frames = [np.array(frame) for frame in ImageSequence.Iterator(opened)]
    if any(frame.shape != page.shape or frame.dtype != page.dtype for frame in frames):
        return None
    return np.stack(frames).reshape(series.shape)


def _apply_palette(indices: Array, page: Any) -> Array:
    """Return the RGB pixels (8-bit, last axis) that palette indices stand for."""
    if page.colormap is None or int(indices.max()) >= page.colormap.shape[1]:
        raise FileError("lacks the palette its pixels refer to")
    colours = (page.colormap >> 8).astype(np.uint8)  # (3, entries), 16-bit in the file
    return np.moveaxis(colours[:, indices], 0, -1)


def _split(pixels: Array, details: dict[str, Any], format: str) -> ImageFile:
    """Find the channel axis and take alpha off."""
    axes = details["axes"]
    if "S" not in axes:
        return ImageFile(pixels, axes.index("C") if "C" in axes else None, None, format, details)
    axis = axes.index("S")
    n_samples = pixels.shape[axis]
    extra = details["extrasamples"]
    is_rgb = details["photometric"] == "rgb"
    if not (is_rgb and n_samples == 4) and not (len(extra) == 1 and extra[0] in _ALPHA):
        return ImageFile(pixels, axis, None, format, details)
    alpha = np.take(pixels, -1, axis)
    colour = np.take(pixels, range(n_samples - 1), axis)
    if n_samples == 2:
        return ImageFile(colour.squeeze(axis), None, alpha, format, details)
    return ImageFile(colour, axis, alpha, format, details)


def refuse(image: ImageFile, format: str) -> None:
    """Raise FileError if TIFF cannot hold the image."""
    if image.pixels.dtype.kind not in "uif" or image.pixels.dtype.itemsize > 8:
        raise FileError(f"TIFF holds integers and floats up to 64 bits, got {image.pixels.dtype}")
    if image.pixels.ndim < 2:
        raise FileError(f"TIFF holds pictures and stacks, got shape {image.pixels.shape}")


def write(handle: BinaryIO, image: ImageFile, format: str) -> None:
    """Write the pixels, alpha put back, in the layout they came in or else a plain one."""
    layout = image.details if image.format == "TIFF" else _plain_layout(image)
    pixels, axes = image.pixels, layout["axes"]
    if image.alpha is not None:
        axis = axes.index("S")
        colour = pixels if pixels.ndim == len(axes) else np.expand_dims(pixels, axis)
        pixels = np.concatenate([colour, np.expand_dims(image.alpha, axis)], axis)
    tifffile.imwrite(
        handle,
        np.ascontiguousarray(pixels),
        photometric=layout["photometric"],
        planarconfig=layout["planarconfig"],
        extrasamples=layout["extrasamples"] or None,
        metadata={"axes": axes},
        ome=False,
        imagej=False,
    )


def _plain_layout(image: ImageFile) -> dict[str, Any]:
    """Name the axes of pixels that do not come from a TIFF file.

    RGB (or a JPEG's CMYK) at the end are samples of a pixel; other channels are an axis "C".
    """
    axes = "QQZYX"[-len(image.spatial) :]
    photometric = "minisblack"
    if image.channel_axis is not None:
        at = image.channel_axis % image.pixels.ndim
        is_last = at == image.pixels.ndim - 1
        if is_last and (image.n_channels == 3 or image.is_cmyk):
            photometric = "separated" if image.is_cmyk else "rgb"
            axes += "S"
        else:
            axes = axes[:at] + "C" + axes[at:]
    if image.alpha is not None and "S" not in axes:
        axes = axes.replace("C", "") + "S"
    return {
        "axes": axes,
        "photometric": photometric,
        "planarconfig": "contig" if "S" in axes else None,
        "extrasamples": () if image.alpha is None else (_UNASSOCIATED,),
    }
