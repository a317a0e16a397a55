"""FITS, by astropy: every image in the file, with headers card for card.

Integers come as they are stored, with the unsigned ones of BZERO; those that the header scales, or
where BLANK marks missing pixels, come as physical values (float64, NaN where missing) and go back as
integers.  Tables and one-dimensional data are copied as they are.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

import numpy as np
from astropy.io import fits

from .base import FileError, OpenFile, check_declared_size, check_next_part
from .images import Array, Details, ImageFile, as_integers, native

_BLOCK = 2880
_UNSIGNED = {1: -(2**7), 2: 2**15, 4: 2**31, 8: 2**63}  # BZERO by bytes; of one: with a sign
_OF_STORED = ("BSCALE", "BZERO", "BLANK", "DATAMIN", "DATAMAX", "CHECKSUM", "DATASUM")  # pixels
_PLANES = 3  # a cube of so many planes without a name is colour, as Siril and PixInsight save it
_WIDTH = 72  # letters of a HISTORY card


@dataclass(frozen=True)
class Part:
    """How an image of a FITS is stored."""

    compressed: str | None  # how it is packed
    primary: bool  # it is the first part of its file
    stored: np.dtype[Any]
    scaling: tuple[float, Any, Any]  # BSCALE, BZERO, BLANK
    checksum: bool
    parts: Sequence[bytes | None] = ()  # of the first image: all of the file, None for an image


def read(file: OpenFile) -> list[ImageFile]:
    """Read all images; what is not an image goes into the details of the first."""
    options: Any = {"do_not_scale_image_data": True, "disable_image_compression": False}
    with fits.open(file.handle, memmap=False, **options) as opened:
        hdus = list(_advancing(opened))
        bits = [math.prod(hdu.shape) * abs(hdu.header["BITPIX"]) for hdu in hdus if _is_image(hdu)]
        check_declared_size(sum(bits) // 8, file.size)
        parts: list[bytes | None] = []
        images: list[ImageFile] = []
        for hdu in hdus:
            if _is_image(hdu):
                images.append(_read_image(hdu, file.format))
                parts.append(None)
            else:
                parts.append(_raw(hdu, file.handle, file.size))
    if not images:
        raise FileError("holds no image of two or more dimensions")
    first, details = images[0], images[0].details
    details = replace(details, n_parts=len(parts), own=replace(details.own, parts=parts))
    return [replace(first, details=details), *images[1:]]


def _advancing(opened: Any) -> Iterator[Any]:
    """Yield what headers describe, each checked before the next is looked for.

    astropy goes on by the size that a header claims: by a negative one back to what it has read.
    """
    before = 0
    for number, hdu in enumerate(opened):
        place = hdu.fileinfo()
        counts = [hdu.header.get(key, 1) for key in ("PCOUNT", "GCOUNT")]
        sizes = [place["datSpan"], *getattr(hdu, "shape", ()), *counts]
        if any(isinstance(size, int) and size < 0 for size in sizes):
            raise FileError(f"says of its part {number + 1} that its size is negative: damaged")
        end = place["datLoc"] + place["datSpan"]
        check_next_part(number, place["hdrLoc"], end, before)
        before = end
        yield hdu


def _is_image(hdu: Any) -> bool:
    return bool(hdu.is_image) and len(hdu.shape) >= 2 and 0 not in hdu.shape


def _raw(hdu: Any, handle: BinaryIO, size: int) -> bytes:
    """Return a part of the file as it is stored."""
    place = hdu.fileinfo()
    at = handle.tell()  # astropy continues from there
    handle.seek(place["hdrLoc"])
    stored = handle.read(min(place["datLoc"] + place["datSpan"], size) - place["hdrLoc"])
    handle.seek(at)
    return stored


def _read_image(hdu: Any, format: str) -> ImageFile:
    """Read the pixels of one image and name their axes."""
    compressed = isinstance(hdu, fits.CompImageHDU)
    scale, zero, blank = (hdu.header.get(key) for key in ("BSCALE", "BZERO", "BLANK"))
    if not compressed:
        scale, zero, blank = hdu._orig_bscale, hdu._orig_bzero, hdu._orig_blank
    stored = native(np.asarray(hdu.data))
    scaling = (float(scale or 1), zero or 0, blank if stored.dtype.kind in "ui" else None)
    pixels = _physical(stored, *scaling)
    part = Part(
        hdu.compression_type if compressed else None,
        isinstance(hdu, fits.PrimaryHDU),
        stored.dtype,
        scaling,
        getattr(hdu, "_checksum", None) is not None or "CHECKSUM" in hdu.header,
    )
    details = Details(cards=hdu.header.tostring(), own=part)
    named = str(hdu.header.get("CTYPE3", "")).strip()
    colours = pixels.ndim == 3 and len(pixels) == _PLANES and not named
    return ImageFile(pixels, 0 if colours else None, None, format, details)


def _physical(stored: Array, scale: float, zero: Any, blank: Any) -> Array:
    """Return the values that stored numbers stand for."""
    is_integer, n_bytes = stored.dtype.kind in "ui", stored.dtype.itemsize
    missing = stored == blank if blank is not None else np.zeros(1, bool)
    if (scale, zero) == (1, 0) and not missing.any():
        return stored
    if is_integer and scale == 1 and zero == _UNSIGNED[n_bytes] and not missing.any():
        return _other_half(stored, np.dtype(f"i{n_bytes}" if n_bytes == 1 else f"u{n_bytes}"))
    return np.where(missing, np.nan, stored * scale + zero)


def _other_half(values: Array, dtype: np.dtype[Any]) -> Array:
    """Return integers with or without a sign as the others: the bit of the sign says the other half."""
    unsigned = values.view(f"u{dtype.itemsize}")
    return (unsigned ^ np.array(1 << (8 * dtype.itemsize - 1), unsigned.dtype)).view(dtype)


def _as_stored(pixels: Array, part: Part) -> Array:
    """Return physical values as the numbers the file stores."""
    dtype, (scale, zero, blank) = part.stored, part.scaling
    if pixels.dtype == dtype and (dtype.kind in "ui" or (scale, zero) == (1, 0)):
        return pixels
    if pixels.dtype.kind in "ui":
        return _other_half(pixels, dtype)
    values = (pixels - zero) / scale
    if dtype.kind == "f":
        return values.astype(dtype)
    return as_integers(np.where(np.isfinite(values), values, blank or 0), dtype)


def write(handle: BinaryIO, images: Sequence[ImageFile], format: str, note: str) -> None:
    """Write the parts of the file in their order, images with their new pixels."""
    first = images[0].details.own
    parts = first.parts if isinstance(first, Part) else ()
    waiting = iter(images)
    for stored in parts or [None] * len(images):
        if stored is not None:
            handle.write(stored)
            continue
        image = next(waiting)
        own = image.details.own
        handle.write(_coded(image, own, note) if isinstance(own, Part) else _fresh(image, note))


def _coded(image: ImageFile, part: Part, note: str) -> bytes:
    """Return an image with its own header, and the note as HISTORY."""
    header = fits.Header.fromstring(image.details.cards)
    stored = _as_stored(image.pixels, part)
    if part.compressed:
        return _compressed(header, stored, part, note)
    if note:
        _add_history(header, note)
    if part.checksum:
        kind = fits.PrimaryHDU if part.primary else fits.ImageHDU
        block = kind.fromstring(header.tostring().encode("ascii") + _padded(stored))
        block.add_checksum()
        for key in ("CHECKSUM", "DATASUM"):
            header[key] = block.header[key], block.header.comments[key]
    return header.tostring().encode("ascii") + _padded(stored)


def _compressed(header: Any, stored: Array, part: Part, note: str) -> bytes:
    """Return an image of a compressed file, coded without loss: floats cannot be quantised again."""
    floats = stored.dtype.kind == "f"
    kind = "GZIP_2" if floats else part.compressed
    scaled = [key for key in ("BSCALE", "BZERO") if key in header]
    block = fits.CompImageHDU(
        stored, header, compression_type=kind, quantize_level=0 if floats else 16.0
    )
    for key, value in zip(("BSCALE", "BZERO"), part.scaling, strict=False):
        if key in scaled:
            block.header[key] = value
    if note:
        _add_history(block.header, note)
    buffer = io.BytesIO()
    fits.HDUList([fits.PrimaryHDU(), block]).writeto(buffer, output_verify="silentfix")
    data = buffer.getvalue()
    with fits.open(io.BytesIO(data), disable_image_compression=True) as opened:
        return data[opened[1].fileinfo()["hdrLoc"] :]


def _fresh(image: ImageFile, note: str) -> bytes:
    """Return an image from another format, or of another dtype, whose header then stays: channels first."""
    pixels = image.pixels
    if image.channel_axis is not None:
        pixels = np.moveaxis(pixels, image.channel_axis, 0)
    header = fits.Header.fromstring(image.details.cards)
    for key in _OF_STORED:
        header.remove(key, ignore_missing=True)
    block = fits.PrimaryHDU(np.ascontiguousarray(pixels), header)
    if note:
        _add_history(block.header, note)
    buffer = io.BytesIO()
    block.writeto(buffer)
    return buffer.getvalue()


def _add_history(header: Any, note: str) -> None:
    """Add HISTORY cards; a card holds 72 letters of ASCII."""
    text = note.encode("ascii", "replace").decode()
    for at in range(0, len(text), _WIDTH):
        header.add_history(text[at : at + _WIDTH])


def _padded(stored: Array) -> bytes:
    """Return pixels in the byte order and the blocks of FITS."""
    data = stored.astype(stored.dtype.newbyteorder(">")).tobytes()
    return data + b"\0" * (-len(data) % _BLOCK)
