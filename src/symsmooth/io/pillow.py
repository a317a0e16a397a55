"""PNG, JPEG, BMP and WebP: Pillow decodes; what it does not keep is read and written here.

Read: palettes become RGB(A), but those that are a ramp stay, and 1-bit pictures become 8-bit grey; pixels
are upright, as the EXIF orientation says.  Written: PNG, BMP and WebP without loss (WebP has no grey, so a
grey picture comes back from it as RGB); with its EXIF a picture is turned back as it was stored.

PNG: Pillow cuts 16-bit colour to 8 bits, so it decodes such a file twice, for the high bytes and for the
low ones.  We encode: all that is not pixels is copied from the file the picture came from, in its order,
but what speaks of the old pixels (palette, transparent colour) is left out; a ramp is put back.

JPEG is a list of segments, then the coded picture.  EXIF, XMP, colour profile, IPTC and comments are
segments: they are copied byte for byte.  JPEG loses a little with every encoding: a picture that was not
changed keeps its coded data, another is encoded at quality 95 without chroma subsampling.
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

import numpy as np
from PIL import Image

from .base import FileError, OpenFile, check_declared_size, check_scans
from .formats import FORMATS
from .ifd import exif_with_software
from .images import Array, Details, ImageFile, Ramp, find_ramp, native

_BEST_COMPRESSION = {"WEBP": 100_000}  # plain surfaces take next to nothing; others as deflate
_ORIENTATION = 0x0112
_UNTURN = {6: 8, 8: 6}  # the others undo themselves

Chunk = tuple[bytes, bytes]  # of a PNG: kind, body
_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_PIXELS: Chunk = (b"IDAT", b"")  # stands for all of them
_KINDS = {(1, False): 0, (3, False): 2, (1, True): 4, (3, True): 6}  # channels, alpha: colour type
_PALETTE = 3  # the colour type of numbers
_OF_OLD_PIXELS = {b"tRNS", b"hIST", b"PLTE", b"IDAT", b"IHDR", b"IEND"}
_OF_OLD_KIND = {b"bKGD", b"sBIT"}  # true only while colour type and depth are the same
_KNOWN = set(b"IDAT cHRM gAMA iCCP sRGB cICP mDCV cLLI pHYs sPLT tIME oFFs pCAL sCAL sTER".split())
_MAX_METADATA = 2**27
_BAND = 2**21  # bytes that are filtered at a time

Segment = tuple[int, bytes]  # of a JPEG: marker, body
_JFIF, _EXIF_XMP, _ADOBE, _COMMENT = 0xE0, 0xE1, 0xEE, 0xFE
_EXIF = b"Exif\0\0"
_ICC = b"ICC_PROFILE\0"
_XMP = b"http://ns.adobe.com/xap/1.0/\0"
_LONGEST = 65533  # bytes of a segment
_SAVE: dict[str, Any] = {"quality": 95, "subsampling": 0}


@dataclass(frozen=True)
class PngParts:
    """What a PNG holds: chunks, an empty one in the place of pixels; bit depth and colour type."""

    chunks: Sequence[Chunk]
    kind: tuple[int, int]


@dataclass(frozen=True)
class CodedJpeg:
    """A JPEG as it was, and the fingerprint of what it decodes to."""

    coded: bytes
    decoded: tuple[int, ...]


def read(file: OpenFile) -> list[ImageFile]:
    """Read one picture and split off its alpha channel."""
    handle, format = file.handle, file.format
    ramp: Ramp | None = None
    depth, colour_type = 8, 2
    if format == "PNG":
        depth, colour_type = handle.read(26)[24:].ljust(2, b"\0")
    elif format == "JPEG":
        coded = handle.read()
        check_scans(coded)
    handle.seek(0)
    try:
        with Image.open(handle, formats=[format]) as opened:
            if getattr(opened, "n_frames", 1) > 1 and opened.format != "MPO":
                raise FileError("is an animation; save its frames as files of their own")
            _check_size(opened, depth, file.size)
            if depth == 16 and colour_type != 0:
                stored = _read_deep(opened, handle, colour_type)
                split = _split_samples(stored, has_alpha=colour_type != 2)
            else:
                opened.load()
                ramp = _ramp(opened)
                split = _split(_plain_mode(opened) if ramp is None else opened)
            details = replace(
                _metadata(opened), bilevel=opened.mode == "1", ramp=ramp, inks=opened.mode == "CMYK",
                from_palette=ramp is None and opened.mode in ("P", "PA"),
            )  # fmt: skip
    except Image.DecompressionBombError as error:
        raise FileError("has more pixels than is safe to open; save it as TIFF") from error
    if format == "PNG":
        details = replace(details, own=PngParts(_read_chunks(handle), (depth, colour_type)))
    elif format == "JPEG":
        details = replace(details, own=CodedJpeg(coded, tuple(_fingerprint(split[0]))))
    pixels, alpha = (None if part is None else _turned(part, details.orientation) for part in split)
    assert pixels is not None
    return [ImageFile(pixels, 2 if pixels.ndim == 3 else None, alpha, format, details)]


def _check_size(opened: Image.Image, depth: int, stored: int) -> None:
    """Refuse a picture that is larger than its file can be."""
    packed = opened.mode in ("P", "PA", "1")  # unpacked from as little as a bit a pixel
    samples = 4 if opened.mode in ("P", "PA") else len(opened.getbands())
    n_bytes = opened.width * opened.height * samples * max(depth, 8) // 8
    best = _BEST_COMPRESSION.get(str(opened.format), 1100) * (32 if packed else 1)
    check_declared_size(n_bytes, stored, best=best)


def _ramp(opened: Image.Image) -> Ramp | None:
    """Return the palette of a picture if it is a ramp and nothing shines through it."""
    if opened.mode != "P" or "transparency" in opened.info:
        return None
    colours = np.array(opened.getpalette("RGB") or [], np.uint8).reshape(-1, 3)
    return find_ramp(np.asarray(opened), colours)


def _metadata(opened: Image.Image) -> Details:
    """Return EXIF, colour profile, XMP, resolution and orientation; a broken EXIF says nothing."""
    info = opened.info
    exif, xmp = (info.get(name) for name in ("exif", "xmp"))
    orientation = 1
    with suppress(Exception):
        orientation = int(opened.getexif().get(_ORIENTATION, 1))
    return Details(
        exif=(exif.removeprefix(_EXIF) or None) if isinstance(exif, bytes) else None,
        icc=info.get("icc_profile") or None,
        xmp=(xmp or None) if isinstance(xmp, bytes) else None,
        dpi=info.get("dpi") or None,
        orientation=orientation if orientation in range(1, 9) else 1,
    )


def _turned(pixels: Array, orientation: int) -> Array:
    """Return a picture turned and mirrored as an EXIF orientation says."""
    turned = pixels.swapaxes(0, 1) if orientation >= 5 else pixels
    if orientation in (3, 4, 7, 8):
        turned = turned[::-1]
    if orientation in (2, 3, 6, 7):
        turned = turned[:, ::-1]
    return np.ascontiguousarray(turned)


def _split(picture: Image.Image) -> tuple[Array, Array | None]:
    """Return the pixels of a plain mode and the alpha of those that have it."""
    pixels = native(np.asarray(picture), copy=None)  # which are nobody else's
    if picture.mode == "I;16" and "transparency" in picture.info:
        opaque = pixels != picture.info["transparency"]
        return pixels, np.where(opaque, 65535, 0).astype(np.uint16)
    return _split_samples(pixels, has_alpha=picture.mode in ("LA", "RGBA"))


def _split_samples(pixels: Array, *, has_alpha: bool) -> tuple[Array, Array | None]:
    """Take the last sample off if it is alpha; grey has no axis of samples."""
    if not has_alpha:
        return pixels, None
    colour, alpha = pixels[..., :-1], pixels[..., -1].copy()
    return (colour[..., 0] if colour.shape[-1] == 1 else colour).copy(), alpha


def _plain_mode(picture: Image.Image) -> Image.Image:
    """Bring palettes, 1-bit pixels and transparent colours to grey or RGB, with alpha if any."""
    see_through = "transparency" in picture.info
    if picture.mode in ("L", "LA", "RGB", "RGBA", "CMYK", "I;16"):
        if see_through and picture.mode in ("L", "RGB"):
            return picture.convert(picture.mode + "A")
        return picture
    if picture.mode in ("P", "PA"):
        return picture.convert("RGBA" if see_through or picture.mode == "PA" else "RGB")
    if picture.mode == "I":  # 16-bit PNG in older Pillow
        return picture.convert("I;16")
    if picture.mode == "1":
        return picture.convert("L")
    raise FileError(f"has pixels of the kind {picture.mode!r}; save it as grey or RGB")


def write(handle: BinaryIO, images: Sequence[ImageFile], format: str, note: str) -> None:
    """Write one picture, its alpha put back."""
    (image,) = images
    pixels, ramp = image.channels_last, image.ramp
    if pixels.ndim == 2:
        pixels = pixels[..., np.newaxis]
    if ramp is not None:
        pixels = ramp.hold(pixels) if FORMATS[format].palette else ramp.paint(pixels[..., 0])
    if image.alpha is not None:
        pixels = np.dstack([pixels, image.alpha])
    if FORMATS[format].exif:
        orientation = image.details.orientation
        pixels = _turned(pixels, _UNTURN.get(orientation, orientation))
    if format == "PNG":
        _write_png(handle, pixels, image, ramp, note)
    elif format == "JPEG":
        _write_jpeg(handle, pixels, image, note)
    else:
        _save(handle, pixels, image, format, note)


def _save(handle: BinaryIO, pixels: Array, image: ImageFile, format: str, note: str) -> None:
    """Write WebP with its metadata, or BMP with its resolution, which is all it holds."""
    details = image.details
    grey = pixels.shape[2] == 1
    picture = Image.fromarray(np.ascontiguousarray(pixels[..., 0] if grey else pixels))
    if grey and image.ramp is not None:
        picture.putpalette(image.ramp.colours.tobytes())
    extra: dict[str, Any] = {"dpi": details.dpi}
    if format == "WEBP":
        extra = {"lossless": True, "exact": True}
        extra |= {"icc_profile": details.icc, "xmp": details.xmp}
        extra["exif"] = exif_with_software(details.exif, note)
    picture.save(handle, format=format, **{k: v for k, v in extra.items() if v})


def _read_chunks(handle: BinaryIO) -> list[Chunk]:
    """Return what is not pixels, and an empty chunk where these are."""
    chunks: list[Chunk] = []
    total, has_pixels = 0, False
    handle.seek(len(_SIGNATURE))
    while len(start := handle.read(8)) == 8:
        size, kind = struct.unpack(">I4s", start)
        if kind == b"IDAT" and not has_pixels:
            chunks.append(_PIXELS)
            has_pixels = True
        if kind in _OF_OLD_PIXELS:
            handle.seek(size + 4, 1)
            continue
        total += size
        if total > _MAX_METADATA:
            raise FileError("has more metadata than is safe to open; save it as TIFF")
        body = handle.read(size)
        if len(body) == size and handle.read(4) == struct.pack(">I", zlib.crc32(kind + body)):
            chunks.append((kind, body))
    return chunks


def _read_deep(opened: Image.Image, handle: BinaryIO, colour_type: int) -> Array:
    """Return 16-bit colour or grey with alpha: (rows, columns, samples), uint16.

    Raw modes that end in "16B" give the first byte of two, "16L" the second.  Grey with alpha has
    four bytes a pixel: it is read as if they were RGBA in 8 bits.
    """
    if colour_type == 4:
        return _load_as(opened, "RGBA", "RGBA").view(">u2").astype(np.uint16)
    mode = "RGBA" if colour_type == 6 else "RGB"
    tiles = list(opened.tile)  # type: ignore[attr-defined]
    high = _load_as(opened, mode, f"{mode};16B", tiles).astype(np.uint16)
    handle.seek(0)
    with Image.open(handle, formats=["PNG"]) as again:
        low = _load_as(again, mode, f"{mode};16L")
    return high << 8 | low


def _load_as(
    opened: Image.Image, mode: str, raw: str, tiles: Sequence[tuple[object, ...]] = ()
) -> Array:
    """Decode a PNG as if its pixels were of another mode."""
    opened._mode = mode
    opened.tile = [(*tile[:3], raw) for tile in tiles or opened.tile]  # type: ignore[attr-defined]
    opened.info.pop("transparency", None)
    opened.load()
    return np.array(opened)


def _write_png(
    handle: BinaryIO, pixels: Array, image: ImageFile, ramp: Ramp | None, note: str
) -> None:
    """Write pixels (rows, columns, samples) among the chunks of the file they came from."""
    rows, columns, samples = pixels.shape
    depth, has_alpha = 8 * pixels.dtype.itemsize, image.alpha is not None
    kind = _PALETTE if ramp is not None else _KINDS[samples - has_alpha, has_alpha]
    handle.write(_SIGNATURE)
    _put(handle, b"IHDR", struct.pack(">IIBBBBB", columns, rows, depth, kind, 0, 0, 0))
    for chunk in _png_chunks(image.details, ramp, note, (depth, kind)):
        if chunk != _PIXELS:
            _put(handle, *chunk)
            continue
        deflate = zlib.compressobj(6)
        for band in _filtered(pixels):
            if coded := deflate.compress(band.tobytes()):
                _put(handle, b"IDAT", coded)
        _put(handle, b"IDAT", deflate.flush())
    _put(handle, b"IEND", b"")


def _put(handle: BinaryIO, kind: bytes, body: bytes) -> None:
    """Write one chunk."""
    handle.write(struct.pack(">I", len(body)) + kind + body)
    handle.write(struct.pack(">I", zlib.crc32(kind + body)))


def _png_chunks(
    details: Details, ramp: Ramp | None, note: str, kind_now: tuple[int, int]
) -> list[Chunk]:
    """Return the chunks around the pixels, with the palette, and the note in EXIF or in a text."""
    own, is_png = details.own, isinstance(details.own, PngParts)
    found = own.chunks if is_png else [*_as_chunks(details), _PIXELS]
    same_kind = is_png and own.kind == kind_now
    chunks = [  # unknown ones say in the case of their last letter whether they hold for new pixels
        (kind, body)
        for kind, body in found
        if kind in _KNOWN or kind[3:].islower() or (same_kind and kind in _OF_OLD_KIND)
    ]
    if ramp is not None:  # only a background colour may stand between a palette and pixels
        _insert(chunks, (b"PLTE", ramp.colours.tobytes()), b"bKGD", b"IDAT")
    exif = [i for i, (kind, _) in enumerate(chunks) if kind == b"eXIf"]
    for i in exif:
        chunks[i] = b"eXIf", exif_with_software(chunks[i][1], note) or chunks[i][1]
    if note and not exif:
        _add_text(chunks, note)
    return chunks


def _insert(chunks: list[Chunk], chunk: Chunk, *before: bytes) -> None:
    """Put a chunk before the first of some kinds, or at the end."""
    at = next((i for i, (kind, _) in enumerate(chunks) if kind in before), len(chunks))
    chunks.insert(at, chunk)


def _add_text(chunks: list[Chunk], note: str) -> None:
    """Add a note to the text "Software", the first of that name, or make one."""
    added = note.encode("latin-1", "replace")
    for i, (kind, body) in enumerate(chunks):
        if kind == b"tEXt" and body.startswith(b"Software\0"):
            if not body.endswith(added):
                chunks[i] = kind, body + b"; " + added
            return
    _insert(chunks, (b"tEXt", b"Software\0" + added), b"IDAT")


def _as_chunks(details: Details) -> list[Chunk]:
    """Return what other formats know of a picture, as chunks."""
    across, down = (round(value / 0.0254) for value in details.dpi or (0, 0))
    made = (
        (b"iCCP", details.icc and b"ICC profile\0\0" + zlib.compress(details.icc)),
        (b"pHYs", details.dpi and struct.pack(">IIB", across, down, 1)),
        (b"eXIf", details.exif),
        (b"iTXt", details.xmp and b"XML:com.adobe.xmp\0\0\0\0\0" + details.xmp),
    )
    return [(kind, body) for kind, body in made if body]


def _filtered(pixels: Array) -> Iterator[Array]:
    """Yield bands of rows, each row with the filter that leaves the smallest differences.

    The filters are those of the PNG specification (section 9): a byte less its neighbour to the
    left, above, their mean, or Paeth's choice of left, above and corner.
    """
    n_rows, columns, samples = pixels.shape
    step = samples * pixels.dtype.itemsize  # bytes between neighbours
    width = columns * step
    above = np.zeros(width, np.uint8)
    n_band = max(_BAND // width, 1)
    for start in range(0, n_rows, n_band):
        part = pixels[start : start + n_band]
        stored = part.astype(part.dtype.newbyteorder(">"), order="C")
        rows = stored.reshape(len(part), -1).view(np.uint8)
        up = np.vstack([above[np.newaxis], rows[:-1]])
        left, corner = _shifted(rows, step), _shifted(up, step)
        mean = ((left.astype(np.uint16) + up) >> 1).astype(np.uint8)
        tried = [rows, rows - left, rows - up, rows - mean, rows - _paeth(left, up, corner)]
        costs = [np.abs(rest.view(np.int8).astype(np.int16)).sum(axis=1) for rest in tried]
        best = np.argmin(costs, axis=0).astype(np.uint8)
        chosen = np.choose(best[:, np.newaxis], tried)
        yield np.hstack([best[:, np.newaxis], chosen])
        above = rows[-1]


def _shifted(rows: Array, step: int) -> Array:
    """Return each byte's neighbour to the left; 0 before the first."""
    out = np.zeros_like(rows)
    out[:, step:] = rows[:, :-step]
    return out


def _paeth(left: Array, up: Array, corner: Array) -> Array:
    """Return whichever of three neighbours is nearest to left + up - corner."""
    a, b, c = (part.astype(np.int16) for part in (left, up, corner))
    to_left, to_up, to_corner = np.abs(b - c), np.abs(a - c), np.abs(a + b - 2 * c)
    is_left = (to_left <= to_up) & (to_left <= to_corner)
    return np.where(is_left, left, np.where(to_up <= to_corner, up, corner))


def _jpeg_segments(data: bytes) -> tuple[list[Segment], bytes]:
    """Return the segments that say something about the picture, and all that follows them."""
    segments, at = [], 2
    while at + 4 <= len(data) and data[at] == 0xFF:
        marker, size = data[at + 1], struct.unpack_from(">H", data, at + 2)[0]
        if not (0xE0 <= marker <= 0xEF or marker == _COMMENT):
            break
        segments.append((marker, data[at + 4 : at + 2 + size]))
        at += 2 + size
    return segments, data[at:]


def _write_jpeg(handle: BinaryIO, pixels: Array, image: ImageFile, note: str) -> None:
    """Write a picture with the segments of the file it came from."""
    own = image.details.own
    if isinstance(own, CodedJpeg):
        segments, rest = _jpeg_segments(own.coded)
    else:
        segments, rest = _as_segments(image.details), b""
    if not isinstance(own, CodedJpeg) or not _is_as_decoded(pixels, own):
        new, rest = _encode(pixels, image)
        segments = _merge(new, segments)
    handle.write(b"\xff\xd8")
    for marker, body in _with_note(segments, note):
        handle.write(struct.pack(">BBH", 0xFF, marker, len(body) + 2) + body)
    handle.write(rest)


def _fingerprint(pixels: Array) -> Iterator[int]:
    """Yield what tells pixels (rows, columns[, samples]) from others, row by row: none are decoded again.

    A checksum of 32 bits sees every change of up to four bytes in a row, and misses one in 2^32 of others.
    """
    yield zlib.crc32(repr((pixels.shape[:2], pixels.dtype.str)).encode())
    for row in pixels:
        yield zlib.crc32(np.ascontiguousarray(row).data)


def _is_as_decoded(pixels: Array, jpeg: CodedJpeg) -> bool:
    """Whether pixels are those of a JPEG still; the first row that is not says so."""
    return all(one == other for one, other in zip(jpeg.decoded, _fingerprint(pixels), strict=True))


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
    extra = {"dpi": image.details.dpi} if image.details.dpi else {}
    picture.save(buffer, format="JPEG", **_SAVE, **extra)
    return _jpeg_segments(buffer.getvalue())


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


def _as_segments(details: Details) -> list[Segment]:
    """Return what other formats know of a picture, as segments."""
    segments = []
    for body, start in ((details.exif, _EXIF), (details.xmp, _XMP)):
        if body and len(start) + len(body) <= _LONGEST:
            segments.append((_EXIF_XMP, start + body))
    icc = details.icc or b""
    room = _LONGEST - len(_ICC) - 2
    parts = [icc[i : i + room] for i in range(0, len(icc), room)]
    for number, part in enumerate(parts, start=1):
        segments.append((0xE2, _ICC + bytes([number, len(parts)]) + part))
    return segments
