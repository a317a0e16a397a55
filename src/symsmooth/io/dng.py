"""DNG: raw mosaics, and linear pictures that were demosaiced, in a TIFF with many tags.

A DNG that is written back is a copy of itself with other pixels in its raw image: previews, profiles,
opcodes, EXIF and maker notes stay where they are.  The pixels are stored uncompressed, or as lossless JPEG
if they were; tags that would then say something false (how they were packed, a digest of them) are
corrected or taken out.  A mosaic that came from another camera format is written anew (``dng_new``).
"""

from __future__ import annotations

import importlib.util
import struct
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
import tifffile

from ..raw.mosaic import parse_pattern
from .base import Array, FileError, ImageFile, OpenFile, native
from .ifd import Value, add_software, first_directory, replace_values
from .segments import count_segments, put_skeleton, take_skeleton
from .tiff_checks import check_levels, open_tiff

_CFA, _LINEAR = 32803, 34892  # PhotometricInterpretation
_SHORT, _LONG, _LONG8 = 3, 4, 16  # types of tags
_TILES, _STRIPS = (324, 325), (273, 279)  # tags: where segments are, how long
_LINEARIZATION, _DIGESTS = 50712, (50972, 51111)  # RawImageDigest, NewRawImageDigest
_INTERLEAVED = (50974, 50975)  # SubTileBlockSize, RowInterleaveFactor
_READABLE = (1, 7, 8, 34892, 52546)  # none, lossless JPEG, deflate, lossy JPEG, JPEG XL
_LOSSLESS_JPEG = 7
_MAX_CLASSIC, _MAX_BIG = 2**32 - 2**20, 2**62  # bytes of a file whose offsets have four, or eight


@dataclass(frozen=True)
class RawInfo:
    """What the pixels of a raw image mean.

    Attributes
    ----------
    pattern : ndarray or None
        Which colour each pixel sees (:mod:`symsmooth.raw.mosaic`); None: all three, a linear picture.
    black : ndarray
        The pixel without light: a tile (rows, columns) that repeats; for a linear picture (1, samples).
    white : float
        Where pixels clip.
    area : (slice, slice)
        The part that sees light; pattern and black begin at its corner.
    profile : tuple of float
        NoiseProfile: pairs S, O of variance S x + O, x from 0 to 1; empty if the file has none.
    """

    pattern: Array | None
    black: Array
    white: float
    area: tuple[slice, slice]
    profile: tuple[float, ...] = ()

    @property
    def span(self) -> float:
        """White less black."""
        return self.white - float(self.black.mean())


def read(file: OpenFile) -> list[ImageFile]:
    """Read the raw image of a DNG."""
    with open_tiff(file.handle) as tiff:
        page = _raw_page(tiff)
        level = tifffile.TiffPageSeries([page], page.shape, page.dtype, page.axes)
        check_levels([level], tiff.filehandle)
        pixels = _linearised(_decode(page), page)
        info = _info(page, pixels)
        skeleton = take_skeleton(file.handle, [level], file.size)
    if skeleton is None:
        raise FileError("has pixels where its tags are, or tags that lead nowhere: damaged")
    axis = 2 if pixels.ndim == 3 else None
    return [ImageFile(native(pixels), axis, None, file.format, {"raw": info, "skeleton": skeleton})]


def _raw_page(tiff: tifffile.TiffFile) -> Any:
    """Return the page with the largest raw image of full size."""
    pages: list[Any] = []
    for page in tiff.pages:
        page = page.aspage()
        pages += [page, *(page.pages or [])]
    raw = [
        page for page in pages
        if page.photometric in (_CFA, _LINEAR) and page.subfiletype == 0 and page.size
    ]  # fmt: skip
    if not raw:
        raise FileError("holds no raw image of full size; convert it with Adobe DNG Converter")
    page = max(raw, key=lambda each: each.imagelength * each.imagewidth)
    samples = page.samplesperpixel
    if samples != (1 if page.photometric == _CFA else 3) or len(page.shape) != 2 + (samples > 1):
        raise FileError(f"has a raw image of {samples} samples a pixel, which is not understood")
    if page.shape[:2] != (page.imagelength, page.imagewidth):
        raise FileError("has samples of a pixel in separate planes; convert it")
    if any(_numbers(page, tag, (1,)) not in ((1,), (1, 1)) for tag in _INTERLEAVED):
        raise FileError("has interleaved rows; convert it with Adobe DNG Converter")
    return page


def _decode(page: Any) -> Array:
    """Return the stored pixels; what tifffile cannot unpack is refused."""
    if int(page.compression) not in _READABLE:
        raise FileError(f"is packed by method {int(page.compression)}, which is not understood")
    if page.dtype is None or page.dtype.kind not in "uf" or page.dtype.itemsize > 4:
        raise FileError(f"has pixels of type {page.dtype}, which no raw image has")
    try:
        return np.asarray(page.asarray())
    except ValueError as error:
        if "imagecodecs" in str(error):
            raise FileError("is compressed; pip install imagecodecs to read it") from error
        raise


def _linearised(pixels: Array, page: Any) -> Array:
    """Return pixels after the table that says what stored numbers stand for."""
    table = _numbers(page, _LINEARIZATION, ())
    if not table or pixels.dtype.kind != "u":
        return pixels if pixels.dtype.kind == "f" else pixels.astype(np.uint16, copy=False)
    return np.array(table, np.uint16)[np.minimum(pixels, len(table) - 1)]


def _info(page: Any, pixels: Array) -> RawInfo:
    """Return what the tags of a raw image say."""
    height, width = pixels.shape[:2]
    top, left, bottom, right = _numbers(page, 50829, (0, 0, height, width))
    if not (0 <= top < bottom <= height and 0 <= left < right <= width):
        raise FileError(f"has an active area outside of its {width} x {height} pixels: damaged")
    samples = pixels.shape[2] if pixels.ndim == 3 else 1
    rows, columns = (int(n) for n in _numbers(page, 50713, (1, 1)))
    black = np.array(_rationals(page, 50714, (0.0,)), np.float64)
    if black.size == 1:
        black = np.full((1, samples), black[0])
    elif black.size != rows * columns * samples or min(rows, columns) < 1:
        raise FileError("has black levels that do not fit their pattern: damaged")
    elif samples == 1:
        black = black.reshape(rows, columns)
    else:
        black = black.reshape(-1, samples).mean(axis=0, keepdims=True)
    largest = 1.0 if pixels.dtype.kind == "f" else 2.0 ** min(page.bitspersample, 16) - 1
    white = float(min(_numbers(page, 50717, (largest,))))
    if not (np.isfinite(black).all() and white > black.max()):
        raise FileError(f"has white at {white:g}, not above its black: damaged")
    area = slice(int(top), int(bottom)), slice(int(left), int(right))
    profile = tuple(float(n) for n in _numbers(page, 51041, ()))
    return RawInfo(_pattern(page), black, white, area, profile)


def _pattern(page: Any) -> Array | None:
    """Return the colours of a mosaic."""
    if page.photometric == _LINEAR:
        return None
    shape = tuple(int(n) for n in _numbers(page, 33421, (2, 2)))
    value = page.tags[33422].value if 33422 in page.tags else b""
    colours = list(value) if isinstance(value, bytes) else [int(n) for n in np.ravel(value)]
    if len(shape) != 2 or len(colours) != shape[0] * shape[1]:
        raise FileError("has a pattern of colours that does not fit its size: damaged")
    return parse_pattern(np.array(colours, np.int64).reshape(shape))


def _numbers(page: Any, tag: int, default: tuple[float, ...]) -> tuple[Any, ...]:
    """Return the numbers of a tag."""
    if tag not in page.tags:
        return default
    value = page.tags[tag].value
    found = tuple(np.ravel(value).tolist())
    if not found or not all(isinstance(n, (int, float)) for n in found):
        raise FileError(f"has a tag {tag} that is no number: damaged")
    return found


def _rationals(page: Any, tag: int, default: tuple[float, ...]) -> tuple[float, ...]:
    """Return the numbers of a tag that may be fractions."""
    found = _numbers(page, tag, default)
    if tag in page.tags and int(page.tags[tag].dtype) in (5, 10):
        pairs = zip(found[::2], found[1::2], strict=True)
        return tuple(a / b if b else float("nan") for a, b in pairs)
    return found


def check_supported(image: ImageFile, format: str) -> None:
    """Raise FileError if the image is no raw one."""
    if "raw" not in image.details:
        raise FileError("DNG holds raw mosaics of cameras; write this image to a TIFF")


def write(handle: BinaryIO, images: Sequence[ImageFile], format: str, note: str) -> None:
    """Write a raw image into a copy of its DNG, or a new one; then the note."""
    image = images[0]
    if "skeleton" in image.details:
        _rewrite(handle, image)
    else:
        from .dng_new import write_anew

        write_anew(handle, image)
    if note:
        with suppress(struct.error):  # a file of 4 GB has no room for it
            add_software(handle, note)


def _rewrite(handle: BinaryIO, image: ImageFile) -> None:
    """Put pixels into the skeleton of the DNG they came from."""
    put_skeleton(handle, image.details["skeleton"])
    with open_tiff(handle) as tiff:
        page = _raw_page(tiff)
        order, big, at = tiff.byteorder, tiff.is_bigtiff, page.offset
        packed = int(page.compression) == _LOSSLESS_JPEG and _can_pack(image.pixels)
        segments = [
            _pack(tile) if packed else tile.tobytes() for tile in _tiles(image.pixels, page, order)
        ]
        old = list(zip(map(int, page.dataoffsets), map(int, page.databytecounts), strict=True))
        tags = _TILES if page.is_tiled else _STRIPS
        bits = [_bits(image.pixels, page, packed)] * page.samplesperpixel
    places = _store(handle, segments, old, _MAX_BIG if big else _MAX_CLASSIC)
    changed: dict[int, Value | None] = {
        tags[0]: _integers(places, order, _LONG8 if big else _LONG),
        tags[1]: _integers([len(segment) for segment in segments], order, _LONG),
        258: _integers(bits, order, _SHORT),
        259: _integers([_LOSSLESS_JPEG if packed else 1], order, _SHORT),
        **dict.fromkeys((317, _LINEARIZATION, *_DIGESTS)),  # differences, packing, what was there
    }
    replace_values(handle, at, changed)
    replace_values(handle, first_directory(handle), dict.fromkeys(_DIGESTS))


def _bits(pixels: Array, page: Any, packed: bool) -> int:
    """Return the bits of a sample: as many as there were, if it is packed as it was."""
    stored = int(page.bitspersample)
    if packed and _LINEARIZATION not in page.tags and int(pixels.max()) < 2**stored:
        return stored
    return 8 * pixels.dtype.itemsize


def _tiles(pixels: Array, page: Any, order: Any) -> list[Array]:
    """Return the strips or tiles of a page, in the file's order of bytes."""
    stored = pixels.astype(pixels.dtype.newbyteorder(order))
    height, width = pixels.shape[:2]
    rows, columns = min(page.rowsperstrip, height), width
    if page.is_tiled:
        rows, columns = page.tilelength, page.tilewidth
        padding = [(0, -height % rows), (0, -width % columns), (0, 0)][: pixels.ndim]
        stored = np.pad(stored, padding, mode="edge")
    found = [
        stored[y : y + rows, x : x + columns]
        for y in range(0, height, rows)
        for x in range(0, width, columns)
    ]
    if len(found) != count_segments(page):
        raise FileError("has segments of a layout that is not understood; convert it")
    return found


def _can_pack(pixels: Array) -> bool:
    """Whether pixels can be stored as lossless JPEG: mosaics of integers, if imagecodecs is there."""
    has_codecs = importlib.util.find_spec("imagecodecs") is not None
    return has_codecs and pixels.ndim == 2 and pixels.dtype == np.uint16


def _pack(tile: Array) -> bytes:
    """Return a tile as lossless JPEG."""
    import imagecodecs

    return bytes(imagecodecs.ljpeg_encode(np.ascontiguousarray(tile, np.uint16), bitspersample=16))


def _store(
    handle: BinaryIO, segments: Sequence[bytes], old: Sequence[tuple[int, int]], max_bytes: int
) -> list[int]:
    """Write each segment into the place of the old one if it fits, else at the end; return where."""
    places = []
    for segment, (place, room) in zip(segments, old, strict=True):
        if len(segment) > room:
            place = handle.seek(0, 2)
            place += handle.write(b"\0" * (place % 2))
        if place + len(segment) > max_bytes:
            raise FileError("would be larger than 4 GB, which this DNG cannot be")
        handle.seek(place)
        handle.write(segment)
        places.append(place)
    return places


def _integers(values: Sequence[int], order: str, kind: int) -> Value:
    """Return numbers as the value of a tag."""
    form = {_SHORT: "H", _LONG: "I", _LONG8: "Q"}[kind]
    return kind, len(values), struct.pack(f"{order}{len(values)}{form}", *values)
