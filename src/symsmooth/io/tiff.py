"""TIFF, by tifffile: pages and stacks, ImageJ's and OME's, any integer or float depth.

Channels are what the file itself calls so: samples of a pixel (axis "S") or an axis "C".  An image
goes back into the skeleton of the file it came from (``segments``), so that every tag stays as it
was; only what that cannot be done for (palettes, bits, JPEG inside, other formats) is written anew.
"""

from __future__ import annotations

import io
import logging
import struct
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, BinaryIO

import numpy as np
import tifffile

from .base import Array, FileError, ImageFile, OpenFile, channels_of, native
from .ifd import add_software
from .palette import Ramp, find_ramp
from .pyramid import build, how_reduced
from .segments import (
    Segments,
    can_rewrite,
    put_skeleton,
    take_skeleton,
)
from .tiff_checks import JPEG, PLANAR, checked_series, open_tiff, tiff_of, whole_series

logging.getLogger("tifffile").addHandler(logging.NullHandler())  # its complaints become errors

_UNASSOCIATED = 2  # ExtraSamples: alpha that colour was not multiplied with
_ALPHA = (1, _UNASSOCIATED)
_PHOTOMETRIC = {0: "miniswhite", 1: "minisblack", 2: "rgb", 3: "palette", 5: "separated", 6: "rgb"}
_TEXTS = (
    269,
    271,
    272,
    285,
    306,
    315,
    316,
    33432,
)  # tags that are plain text, kept when written anew
_INCH, _CENTIMETRE = 2, 3


def read(file: OpenFile) -> list[ImageFile]:
    """Read the images and stacks in the file."""
    found = checked_series(tiff_of(file))
    images = [_read_series(series, file) for series in found]
    levels = [level for series in found for level in series.levels]
    skeleton = None
    if all(image.details["as_stored"] for image in images) and all(map(can_rewrite, levels)):
        skeleton = take_skeleton(file.handle, levels, file.size)
    images[0].details["skeleton"] = skeleton  # type: ignore[index]
    return images


def _read_series(series: Any, file: OpenFile) -> ImageFile:
    """Read one image or stack."""
    page = series.keyframe
    photometric = _photometric(page)
    pixels, axes = _decode(series, file), series.axes
    bilevel = pixels.dtype == bool
    ramp, from_palette = None, photometric == "palette"
    if from_palette:
        colours = _palette(pixels, page)
        ramp = find_ramp(pixels, colours)
        if ramp is None:
            pixels, axes, photometric = colours[pixels], axes + "S", "rgb"
    as_stored = not bilevel and (ramp is not None or not from_palette)
    if bilevel and pixels.dtype == bool:
        pixels = pixels.astype(np.uint8) * np.uint8(255)
    inverted = photometric == "miniswhite" and pixels.dtype.kind == "u"
    if inverted:
        pixels, photometric = ~pixels, "minisblack"  # max - value: white is high everywhere
    details = {
        "axes": axes,
        "photometric": photometric,
        "planarconfig": PLANAR[int(page.planarconfig)] if "S" in axes else None,
        "extrasamples": tuple(int(kind) for kind in page.extrasamples),
        "as_stored": as_stored,
        "bilevel": bilevel,
        "ramp": ramp,
        "from_palette": from_palette and ramp is None,
        "inverted": inverted,
        "pyramid": pyramid(series),
    }
    return _split(native(pixels), details | _metadata(page), file.format)


def pyramid(series: Any) -> str:
    """Tell how the smaller copies were made, if there are any."""
    if len(series.levels) < 2:
        return "mean"
    handle = series.keyframe.parent.filehandle
    full, small = (Segments(level, handle) for level in series.levels[:2])
    return how_reduced(full, small)


def _metadata(page: Any) -> dict[str, Any]:
    """Return what other formats can hold too, and the texts to keep when a file is written anew."""
    found: dict[str, Any] = {"texts": {}}
    if page.iccprofile:
        found["icc"] = bytes(page.iccprofile)
    if 700 in page.tags and isinstance(page.tags[700].value, bytes):
        found["xmp"] = page.tags[700].value
    unit = {_INCH: 1.0, _CENTIMETRE: 2.54}.get(int(page.resolutionunit or 0))
    with suppress(Exception):
        if unit and 282 in page.tags:
            across, down = (page.tags[tag].value for tag in (282, 283))
            found["dpi"] = (unit * across[0] / across[1], unit * down[0] / down[1])
    for code in _TEXTS:
        if code in page.tags and isinstance(page.tags[code].value, str):
            found["texts"][code] = page.tags[code].value
    if page.description and not (page.is_shaped or page.is_imagej or page.is_ome):
        found["texts"][270] = page.description  # the others would speak of the old layout
    return found


def name_of(value: Any) -> str:
    """Return the name of what a tag says, or its number if it has none."""
    return str(getattr(value, "name", value))


def _photometric(page: Any) -> str:
    """Return what the pixels mean; a JPEG inside is decoded to RGB from whatever it was."""
    stored = int(page.photometric)
    if stored not in _PHOTOMETRIC or (stored == 6 and int(page.compression) not in JPEG):
        raise FileError(f"has {name_of(page.photometric)} pixels; save it as grey or RGB")
    if stored == 2 and page.samplesperpixel > 4:
        raise FileError(f"has RGB and {page.samplesperpixel - 3} more samples a pixel; save 3 or 4")
    return _PHOTOMETRIC[stored]


def _decode(series: Any, file: OpenFile) -> Array:
    """Return the pixels; what tifffile has no decoder for, Pillow may have."""
    try:
        return np.asarray(series.asarray())
    except ValueError as error:
        if "imagecodecs" not in str(error):
            raise
        pixels = _decode_with_pillow(series, file)
        if pixels is None:
            name = name_of(series.keyframe.compression)
            raise FileError(
                f"is compressed with {name}; pip install imagecodecs, or save it uncompressed"
            ) from error
        return pixels


def _decode_with_pillow(series: Any, file: OpenFile) -> Array | None:
    """Read LZW, JPEG and the like where Pillow keeps every bit, else return None."""
    from PIL import Image, ImageSequence, UnidentifiedImageError

    page = series.keyframe
    as_stored = page.photometric in (1, 2, 3, 6) and 1 not in page.extrasamples
    file.handle.seek(0)
    try:
        with Image.open(file.handle, formats=["TIFF"]) as opened:
            if not as_stored or getattr(opened, "n_frames", 1) != len(series.pages):
                return None
            frames = [np.array(frame) for frame in ImageSequence.Iterator(opened)]
    except UnidentifiedImageError:  # pixels of a kind it does not know
        return None
    if any(frame.shape != page.shape or frame.dtype != page.dtype for frame in frames):
        return None
    return np.stack(frames).reshape(series.shape)


def _palette(numbers: Array, page: Any) -> Array:
    """Return the colours (n, 3), 8-bit, that numbers stand for."""
    if page.colormap is None or int(numbers.max()) >= page.colormap.shape[1]:
        raise FileError("lacks the palette its pixels refer to")
    return np.ascontiguousarray((page.colormap >> 8).astype(np.uint8).T)  # 16-bit in the file


def _split(pixels: Array, details: dict[str, Any], format: str) -> ImageFile:
    """Find the channel axis and take alpha off."""
    axes = details["axes"]
    if "S" not in axes:
        return ImageFile(pixels, channels_of(axes), None, format, details, axes)
    axis = axes.index("S")
    n_samples = pixels.shape[axis]
    extra = details["extrasamples"]
    is_rgb = details["photometric"] == "rgb"
    if not (is_rgb and n_samples == 4) and not (len(extra) == 1 and extra[0] in _ALPHA):
        return ImageFile(pixels, axis, None, format, details, axes)
    alpha = np.take(pixels, -1, axis)
    colour = np.take(pixels, range(n_samples - 1), axis)
    if n_samples == 2:
        grey = axes.replace("S", "")
        return ImageFile(colour.squeeze(axis), channels_of(grey), alpha, format, details, grey)
    return ImageFile(colour, axis, alpha, format, details, axes)


def check_supported(image: ImageFile, format: str) -> None:
    """Raise FileError if TIFF cannot hold the image."""
    if image.pixels.dtype.kind not in "uif" or image.pixels.dtype.itemsize > 8:
        raise FileError(f"TIFF holds integers and floats up to 64 bits, got {image.pixels.dtype}")
    if image.pixels.ndim < 2:
        raise FileError(f"TIFF holds pictures and stacks, got shape {image.pixels.shape}")


def write(handle: BinaryIO, images: Sequence[ImageFile], format: str, note: str) -> None:
    """Write the images into the skeleton of their file, or else anew; then the note."""
    if not _rewrite(handle, images):
        handle.seek(0)
        handle.truncate(0)
        large = sum(image.pixels.nbytes for image in images) > 2**32 - 2**25
        with tifffile.TiffWriter(handle, bigtiff=large, ome=False, imagej=False) as writer:
            for image in images:
                _write_anew(writer, image)
    if note:
        with suppress(struct.error):  # a file of 4 GB has no room for it
            add_software(handle, note)


def _rewrite(handle: BinaryIO, images: Sequence[ImageFile]) -> bool:
    """Put pixels into the skeleton of the file they came from; return whether that could be done."""
    skeleton = images[0].details.get("skeleton")
    if skeleton is None:
        return False
    put_skeleton(handle, skeleton)
    with open_tiff(handle) as tiff:
        for series, image in zip(whole_series(tiff), images, strict=True):
            pixels: Any = _with_alpha(image)
            if image.ramp is not None:
                pixels = image.ramp.hold(pixels)
            if image.details["inverted"]:
                pixels = ~pixels
            for level in series.levels:
                segments = Segments(level, handle, blank=True)
                if level is series:
                    segments[tuple(slice(0, n) for n in level.shape)] = pixels
                else:
                    build(pixels, segments, image.details["pyramid"])
                try:
                    segments.finish()
                except struct.error:  # a table of 16-bit lengths, or beyond 4 GB
                    return False
                pixels = segments if level is not series else pixels
    return True


def _with_alpha(image: ImageFile) -> Array:
    """Return the samples of a TIFF image, alpha among them."""
    if image.alpha is None:
        return image.pixels
    axes = _layout(image)["axes"]
    axis = axes.index("S")
    colour = image.pixels
    if colour.ndim < len(axes):
        colour = np.expand_dims(colour, axis)
    return np.concatenate([colour, np.expand_dims(image.alpha, axis)], axis)


def _write_anew(writer: tifffile.TiffWriter, image: ImageFile) -> None:
    """Write one image in the layout it came in or else a plain one."""
    layout, details = _layout(image), image.details
    across, down = details.get("dpi") or (None, None)
    texts = details.get("texts", {})
    extra = [(code, 2, len(text) + 1, text, True) for code, text in texts.items()]
    if details.get("xmp"):
        extra.append((700, 1, len(details["xmp"]), details["xmp"], True))
    pixels = np.ascontiguousarray(_with_alpha(image))
    colours = None
    if image.ramp is not None:
        pixels = image.ramp.hold(pixels)
        colours = _colour_map(image.ramp, pixels)
    as_bits = image.is_bilevel and image.alpha is None and pixels.dtype == np.uint8
    writer.write(
        pixels > 127 if as_bits else pixels,
        compression="zlib" if as_bits else None,
        photometric="palette" if image.ramp is not None else layout["photometric"],
        colormap=colours,
        planarconfig=layout["planarconfig"],
        extrasamples=layout["extrasamples"] or None,
        metadata={"axes": layout["axes"]} if 270 not in texts else None,
        resolution=(across, down) if across else None,
        resolutionunit=_INCH if across else None,
        iccprofile=details.get("icc"),
        software=False,
        extratags=[tag for tag in extra if tag[0] not in (270, 306)],
        description=texts.get(270),
        datetime=texts.get(306),
    )


def _colour_map(ramp: Ramp, numbers: Array) -> Array:
    """Return the palette as a TIFF has it: (3, one for each number there can be), 16-bit."""
    n_colours = 2 ** (8 * numbers.dtype.itemsize)
    missing = n_colours - len(ramp.colours)
    colours = np.pad(ramp.colours.astype(np.uint16) * 257, ((0, missing), (0, 0)), mode="edge")
    return np.ascontiguousarray(colours.T)


def _layout(image: ImageFile) -> dict[str, Any]:
    """Return how samples are stored: as they came from a TIFF, else plainly.

    RGB (or a JPEG's CMYK) at the end are samples of a pixel; other channels are an axis "C".
    """
    if image.format == "TIFF":
        return dict(image.details)
    axes, photometric = image.axes.replace("S", "C"), "minisblack"
    if axes.endswith("C") and (image.n_channels == 3 or image.is_cmyk):
        photometric = "separated" if image.is_cmyk else "rgb"
        axes = axes[:-1] + "S"
    if image.alpha is not None and "S" not in axes:
        axes = axes.replace("C", "") + "S"
    return {
        "axes": axes,
        "photometric": photometric,
        "planarconfig": "contig" if "S" in axes else None,
        "extrasamples": () if image.alpha is None else (_UNASSOCIATED,),
    }


def empty(handle: BinaryIO | io.BytesIO, shape: Sequence[int], dtype: Any, axes: str) -> None:
    """Write a tiled file of zeros, uncompressed, to be filled piece by piece."""
    probe = ImageFile(
        np.broadcast_to(np.zeros((), dtype), shape), channels_of(axes), None, "", {}, axes
    )
    layout = _layout(probe)
    tifffile.imwrite(
        handle,
        shape=tuple(shape),
        dtype=dtype,
        tile=(256, 256),
        photometric=layout["photometric"],
        planarconfig=layout["planarconfig"],
        metadata={"axes": layout["axes"]},
        bigtiff=probe.pixels.nbytes > 2**32 - 2**26,
        ome=False,
        imagej=False,
    )
