"""JPEG below Pillow: its segments as they came, and the coded pixels if they did not change.

A JPEG is a list of segments, then the coded picture.  EXIF, XMP, colour profile, IPTC and comments
are segments: they are copied byte for byte.  JPEG loses a little with every encoding: a picture that
was not changed keeps its coded data, another is encoded at quality 95 without chroma subsampling.
"""

from __future__ import annotations

import hashlib
import io
import struct
from typing import Any, BinaryIO

import numpy as np
from PIL import Image

from .base import Array, ImageFile
from .ifd import exif_with_software

_JFIF, _EXIF_XMP, _ADOBE, _COMMENT = 0xE0, 0xE1, 0xEE, 0xFE
_EXIF = b"Exif\0\0"
_ICC = b"ICC_PROFILE\0"
_XMP = b"http://ns.adobe.com/xap/1.0/\0"
_LONGEST = 65533
_SAVE: dict[str, Any] = {"quality": 95, "subsampling": 0}

Segment = tuple[int, bytes]


def split(data: bytes) -> tuple[list[Segment], bytes]:
    """Return the segments that say something about the picture, and all that follows them."""
    segments, at = [], 2
    while at + 4 <= len(data) and data[at] == 0xFF:
        marker, size = data[at + 1], struct.unpack_from(">H", data, at + 2)[0]
        if not (0xE0 <= marker <= 0xEF or marker == _COMMENT):
            break
        segments.append((marker, data[at + 4 : at + 2 + size]))
        at += 2 + size
    return segments, data[at:]


def write(handle: BinaryIO, pixels: Array, image: ImageFile, note: str) -> None:
    """Write a picture with the segments of the file it came from."""
    coded = image.details.get("coded") if image.format == "JPEG" else None
    if coded is not None and fingerprint(pixels) == image.details["decoded"]:
        segments, rest = split(coded)
    else:
        old = split(coded)[0] if coded is not None else _translated(image)
        segments, rest = _encode(pixels, image)
        segments = _merge(segments, old)
    handle.write(b"\xff\xd8")
    for marker, body in _with_note(segments, note):
        handle.write(struct.pack(">BBH", 0xFF, marker, len(body) + 2) + body)
    handle.write(rest)


def fingerprint(pixels: Array) -> bytes:
    """Return what tells pixels (rows, columns[, samples]) from others, so that none are decoded again."""
    found = hashlib.blake2b(repr((pixels.shape[:2], pixels.dtype.str)).encode())
    found.update(np.ascontiguousarray(pixels).data)
    return found.digest()


def _encode(pixels: Array, image: ImageFile) -> tuple[list[Segment], bytes]:
    """Encode pixels (rows, columns, samples)."""
    if image.is_cmyk:
        size = pixels.shape[1], pixels.shape[0]
        picture = Image.frombytes("CMYK", size, np.ascontiguousarray(pixels).tobytes())
    else:
        picture = Image.fromarray(
            np.ascontiguousarray(pixels.squeeze(2) if pixels.shape[2] == 1 else pixels)
        )
    buffer = io.BytesIO()
    extra = {"dpi": image.details["dpi"]} if image.details.get("dpi") else {}
    picture.save(buffer, format="JPEG", **_SAVE, **extra)
    return split(buffer.getvalue())


def _merge(new: list[Segment], old: list[Segment]) -> list[Segment]:
    """Return the encoder's own segments, then those of the file but what describes its coding."""
    resolution = [s for s in old if s[0] == _JFIF and s[1].startswith(b"JFIF\0")]
    kept = [s for s in old if s[0] not in (_JFIF, _ADOBE) and not s[1].startswith(b"MPF\0")]
    own = [s for s in new if s[0] != _JFIF or not resolution]
    has_jfif = any(s[0] == _JFIF for s in new)
    return (resolution[:1] if has_jfif else []) + own + kept


def _with_note(segments: list[Segment], note: str) -> list[Segment]:
    """Put a note into EXIF, which is made if there is none; too much for a segment is left out."""
    if not note:
        return segments
    at = next((i for i, (m, b) in enumerate(segments) if m == _EXIF_XMP and b[:6] == _EXIF), None)
    old = None if at is None else segments[at][1][6:]
    block = _EXIF + (exif_with_software(old, note) or b"")
    if len(block) > _LONGEST:
        return segments
    if at is not None:
        return [*segments[:at], (_EXIF_XMP, block), *segments[at + 1 :]]
    first = 1 if segments and segments[0][0] == _JFIF else 0
    return [*segments[:first], (_EXIF_XMP, block), *segments[first:]]


def _translated(image: ImageFile) -> list[Segment]:
    """Return what other formats know of a picture, as segments."""
    segments = []
    for key, start in (("exif", _EXIF), ("xmp", _XMP)):
        body = image.details.get(key)
        if body and len(start) + len(body) <= _LONGEST:
            segments.append((_EXIF_XMP, start + body))
    icc = image.details.get("icc") or b""
    room = _LONGEST - len(_ICC) - 2
    parts = [icc[i : i + room] for i in range(0, len(icc), room)]
    for number, part in enumerate(parts, start=1):
        segments.append((0xE2, _ICC + bytes([number, len(parts)]) + part))
    return segments
