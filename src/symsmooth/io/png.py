"""PNG below Pillow: 16-bit colour, which Pillow cuts to 8 bits, and chunks as they came.

Pillow decodes: for 16-bit colour twice, once for the high bytes and once for the low ones.  We
encode: all that is not pixels is copied from the file the picture came from, in its order, but what
speaks of the old pixels (palette, transparent colour) is left out; a palette that is a ramp is put back.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from typing import BinaryIO

import numpy as np
from PIL import Image

from .base import Array, FileError, ImageFile
from .ifd import exif_with_software

SIGNATURE = b"\x89PNG\r\n\x1a\n"
_KINDS = {(1, False): 0, (3, False): 2, (1, True): 4, (3, True): 6}  # channels, alpha: colour type
_PALETTE = 3  # the colour type of numbers
_OF_OLD_PIXELS = {b"tRNS", b"hIST", b"PLTE", b"IDAT", b"IHDR", b"IEND"}
_OF_OLD_KIND = {b"bKGD", b"sBIT"}  # true only while colour type and depth are the same
_KNOWN = set(b"cHRM gAMA iCCP sRGB cICP mDCV cLLI pHYs sPLT tIME oFFs pCAL sCAL sTER".split())
_MAX_METADATA = 2**27
_BAND = 2**21  # bytes that are filtered at a time

Chunk = tuple[bytes, bytes]


def header(handle: BinaryIO) -> tuple[int, int]:
    """Return the bit depth and the colour type."""
    start = handle.read(26)
    return (start[24], start[25]) if len(start) == 26 else (0, 0)


def read_chunks(handle: BinaryIO) -> dict[str, list[Chunk]]:
    """Return what is not pixels: the chunks "before" the pixels and "after" them."""
    found: dict[str, list[Chunk]] = {"before": [], "after": []}
    place, total = "before", 0
    handle.seek(len(SIGNATURE))
    while len(start := handle.read(8)) == 8:
        size, kind = struct.unpack(">I4s", start)
        if kind == b"IDAT":
            place = "after"
        if kind in _OF_OLD_PIXELS:
            handle.seek(size + 4, 1)
            continue
        total += size
        if total > _MAX_METADATA:
            raise FileError("has more metadata than is safe to open; save it as TIFF")
        body = handle.read(size)
        if len(body) == size and handle.read(4) == struct.pack(">I", zlib.crc32(kind + body)):
            found[place].append((kind, body))
    return found


def read_deep(opened: Image.Image, handle: BinaryIO, colour_type: int) -> Array:
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


def check_supported(image: ImageFile) -> None:
    """Raise FileError if the depth is not that of a PNG."""
    if image.pixels.dtype not in (np.uint8, np.uint16):
        kinds = {1: "grey", 3: "RGB"}
        kind = f"{image.pixels.dtype} {kinds.get(image.n_channels, 'pixels')}"
        raise FileError(f"PNG holds 8- or 16-bit pixels, got {kind}; write to .tif or .npy")


def write(handle: BinaryIO, pixels: Array, image: ImageFile, note: str) -> None:
    """Write pixels (rows, columns, samples) between the chunks of the file they came from."""
    rows, columns, samples = pixels.shape
    depth = 8 * pixels.dtype.itemsize
    kind = _KINDS[samples - (image.alpha is not None), image.alpha is not None]
    if image.ramp is not None:
        kind = _PALETTE
    same_kind = image.details.get("kind") == (depth, kind)
    before, after = _metadata(image, note, same_kind)
    if image.ramp is not None:
        before = _with_palette(before, image.ramp.colours)
    handle.write(SIGNATURE)
    _put(handle, b"IHDR", struct.pack(">IIBBBBB", columns, rows, depth, kind, 0, 0, 0))
    for chunk in before:
        _put(handle, *chunk)
    deflate = zlib.compressobj(6)
    for band in _filtered(pixels):
        if coded := deflate.compress(band.tobytes()):
            _put(handle, b"IDAT", coded)
    _put(handle, b"IDAT", deflate.flush())
    for chunk in [*after, (b"IEND", b"")]:
        _put(handle, *chunk)


def _with_palette(chunks: list[Chunk], colours: Array) -> list[Chunk]:
    """Put a palette among chunks: only a background colour comes after it."""
    later = [chunk for chunk in chunks if chunk[0] == b"bKGD"]
    return [*(c for c in chunks if c not in later), (b"PLTE", colours.tobytes()), *later]


def _put(handle: BinaryIO, kind: bytes, body: bytes) -> None:
    """Write one chunk."""
    handle.write(struct.pack(">I", len(body)) + kind + body)
    handle.write(struct.pack(">I", zlib.crc32(kind + body)))


def _metadata(image: ImageFile, note: str, same_kind: bool) -> tuple[list[Chunk], list[Chunk]]:
    """Return the chunks before and after the pixels, with the note in EXIF or in a text."""
    if image.format == "PNG":
        before, after = list(image.details["before"]), list(image.details["after"])
    else:
        before, after = _translated(image), []
    kept = [
        [(kind, body) for kind, body in chunks if _still_true(kind, same_kind)]
        for chunks in (before, after)
    ]
    if note and not any(kind == b"eXIf" for chunks in kept for kind, _ in chunks):
        kept[0] = _with_text(kept[0], note)
    for chunks in kept:
        for i, (kind, body) in enumerate(chunks):
            if kind == b"eXIf":
                chunks[i] = kind, exif_with_software(body, note) or body
    return kept[0], kept[1]


def _still_true(kind: bytes, same_kind: bool) -> bool:
    """Whether a chunk holds for new pixels; unknown ones say so in the case of their last letter."""
    if kind in _OF_OLD_KIND:
        return same_kind
    return kind not in _OF_OLD_PIXELS and (kind in _KNOWN or kind[3:].islower())


def _with_text(chunks: list[Chunk], note: str) -> list[Chunk]:
    """Add a note to the text "Software", the first of that name, or make one."""
    added = note.encode("latin-1", "replace")
    for i, (kind, body) in enumerate(chunks):
        if kind == b"tEXt" and body.startswith(b"Software\0"):
            if not body.endswith(added):
                chunks[i] = kind, body + b"; " + added
            return chunks
    return [*chunks, (b"tEXt", b"Software\0" + added)]


def _translated(image: ImageFile) -> list[Chunk]:
    """Return what other formats know of a picture, as chunks."""
    details, chunks = image.details, []
    if icc := details.get("icc"):
        chunks.append((b"iCCP", b"ICC profile\0\0" + zlib.compress(icc)))
    if dpi := details.get("dpi"):
        across, down = (round(value / 0.0254) for value in dpi)
        chunks.append((b"pHYs", struct.pack(">IIB", across, down, 1)))
    if exif := details.get("exif"):
        chunks.append((b"eXIf", exif))
    if xmp := details.get("xmp"):
        chunks.append((b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + xmp))
    return chunks


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
