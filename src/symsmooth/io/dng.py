"""DNG: raw mosaics, and linear pictures that were demosaiced, in a TIFF with many tags.

A DNG that is written back is a copy of itself with other pixels in its raw image: previews, profiles,
opcodes, EXIF and maker notes stay where they are.  The pixels are stored uncompressed, or as lossless JPEG
if they were; tags that would then say something false (how they were packed, a digest of them) are
corrected or taken out.  A mosaic that came from another camera format is written anew: thumbnail, raw
image, tags, EXIF.
"""

from __future__ import annotations

import importlib.util
import struct
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Literal

import numpy as np
import tifffile

from ..raw.mosaic import parse_pattern
from .base import FileError, OpenFile
from .boxes import means
from .ifd import (
    Value,
    add_software,
    append_directory,
    first_directory,
    integers,
    put_value,
    replace_values,
)
from .images import Array, Details, ImageFile, RawInfo, native
from .segments import Skeleton, as_stored, put_segments, put_skeleton, take_skeleton
from .tiff import check_levels, open_tiff

_CFA, _LINEAR = 32803, 34892  # PhotometricInterpretation
_BYTE, _ASCII, _SHORT, _LONG, _RATIONAL, _SRATIONAL = 1, 2, 3, 4, 5, 10  # of tags
_LINEARIZATION, _DIGESTS = 50712, (50972, 51111)  # RawImageDigest, NewRawImageDigest
_INTERLEAVED = (50974, 50975)  # SubTileBlockSize, RowInterleaveFactor
_READABLE = (1, 7, 8, 34892, 52546)  # none, lossless JPEG, deflate, lossy JPEG, JPEG XL
_LOSSLESS_JPEG = 7
_EXIF, _GPS = 34665, 34853
_DAYLIGHT = 21  # D65, of CalibrationIlluminant1
_XYZ_TO_SRGB = (3.2406, -1.5372, -0.4986, -0.9689, 1.8758, 0.0415, 0.0557, -0.2040, 1.0570)


@dataclass(frozen=True)
class Camera:
    """What a camera's raw file says of itself, for a DNG that is made of it; all may be missing."""

    make: str = "Unknown"
    model: str = "camera"
    datetime: str | None = None
    orientation: int = 1  # of EXIF
    neutral: tuple[float, ...] = (1.0, 1.0, 1.0)  # what grey is in the three colours
    matrix: tuple[float, ...] = _XYZ_TO_SRGB  # XYZ to camera, 3 x 3
    thumbnail: Array | None = None  # 8-bit RGB
    exif: Mapping[int, Value] = field(default_factory=dict)  # tags as they are stored
    gps: Mapping[int, Value] = field(default_factory=dict)
    private: bytes = b""  # DNGPrivateData
    byteorder: Literal["<", ">"] = "<"


def read(file: OpenFile) -> list[ImageFile]:
    """Read the raw image of a DNG."""
    with open_tiff(file.handle) as tiff:
        page = _raw_page(tiff)
        level = _level(page)
        check_levels([level], tiff.filehandle)
        pixels = _linearised(_decode(page), page)
        info = _info(page, pixels)
        skeleton = take_skeleton(file.handle, [level], file.size)
        if skeleton is None:
            raise FileError("has pixels where its tags are, or tags that lead nowhere: damaged")
        skeleton = skeleton[0], [*skeleton[1]]
    axis = 2 if pixels.ndim == 3 else None
    details = Details(raw=info, own=skeleton)
    return [ImageFile(native(pixels), axis, None, file.format, details)]


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
    black = np.array(_numbers(page, 50714, (0.0,)), np.float64)
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
    """Return the numbers of a tag, which may be fractions."""
    if tag not in page.tags:
        return default
    found = tuple(np.ravel(page.tags[tag].value).tolist())
    if not found or not all(isinstance(n, (int, float)) for n in found):
        raise FileError(f"has a tag {tag} that is no number: damaged")
    if int(page.tags[tag].dtype) in (_RATIONAL, _SRATIONAL):
        pairs = zip(found[::2], found[1::2], strict=True)
        return tuple(a / b if b else float("nan") for a, b in pairs)
    return found


def check_supported(image: ImageFile) -> None:
    """Raise FileError if the image is no raw one."""
    if image.details.raw is None:
        raise FileError("DNG holds raw mosaics of cameras; write this image to a TIFF")


def write(handle: BinaryIO, images: Sequence[ImageFile], format: str, note: str) -> None:
    """Write a raw image into a copy of its DNG, or a new one; then the note."""
    image = images[0]
    if isinstance(image.details.own, Camera) or image.details.own is None:
        _write_anew(handle, image, image.details.own or Camera())
    else:
        _rewrite(handle, image, image.details.own)
    if note:
        with suppress(struct.error):  # a file of 4 GB has no room for it
            add_software(handle, note)


def _rewrite(handle: BinaryIO, image: ImageFile, skeleton: Skeleton) -> None:
    """Put pixels into the skeleton of the DNG they came from."""
    put_skeleton(handle, skeleton)
    pixels = image.pixels
    with open_tiff(handle) as tiff:
        page = _raw_page(tiff)
        order = tiff.byteorder
        # Mosaics of integers are packed as they were, if imagecodecs is there.
        has_codecs = importlib.util.find_spec("imagecodecs") is not None
        packed = int(page.compression) == _LOSSLESS_JPEG and has_codecs
        packed = packed and pixels.ndim == 2 and pixels.dtype == np.uint16
        stored = pixels.dtype.newbyteorder(order)
        coded = (
            _pack(segment[0, ..., 0]) if packed else segment.astype(stored).tobytes()
            for _, segment in as_stored(_level(page), pixels)
        )  # fmt: skip
        try:
            changed = put_segments(handle, page, coded)
        except struct.error as error:
            raise FileError("would be larger than 4 GB, which this DNG cannot be") from error
        # Differences, packing, what was there.
        changed |= {
            258: integers([_bits(pixels, page, packed)] * page.samplesperpixel, order, _SHORT),
            259: integers([_LOSSLESS_JPEG if packed else 1], order, _SHORT),
            **dict.fromkeys((317, _LINEARIZATION, *_DIGESTS)),
        }
        replace_values(handle, page.offset, changed)
    replace_values(handle, first_directory(handle), dict.fromkeys(_DIGESTS))


def _level(page: Any) -> Any:
    """Return a page by itself as one level of an image."""
    return tifffile.TiffPageSeries([page], page.shape, page.dtype, page.axes)


def _bits(pixels: Array, page: Any, packed: bool) -> int:
    """Return the bits of a sample: as many as there were, if it is packed as it was."""
    stored = int(page.bitspersample)
    if packed and _LINEARIZATION not in page.tags and int(pixels.max()) < 2**stored:
        return stored
    return 8 * pixels.dtype.itemsize


def _pack(tile: Array) -> bytes:
    """Return a tile as lossless JPEG."""
    import imagecodecs

    return bytes(imagecodecs.ljpeg_encode(np.ascontiguousarray(tile), bitspersample=16))


def _write_anew(handle: BinaryIO, image: ImageFile, camera: Camera) -> None:
    """Write a mosaic and what is known of it: a thumbnail with all tags of the camera, the raw image."""
    order, plain = camera.byteorder, {"metadata": None, "software": False}
    thumbnail = _thumbnail(image) if camera.thumbnail is None else camera.thumbnail
    main: Any = {"photometric": "rgb", "subifds": 1, "subfiletype": 1, "datetime": camera.datetime}
    rows = max(1, 2**20 // (2 * image.pixels.shape[1]))
    raw: Any = {"photometric": "cfa", "subfiletype": 0, "rowsperstrip": rows}
    with tifffile.TiffWriter(handle, byteorder=order, ome=False, imagej=False) as writer:
        writer.write(thumbnail, **main, **plain, extratags=_main_tags(camera))
        writer.write(image.pixels, **raw, **plain, extratags=_raw_tags(image))
    for tag, values in ((_EXIF, camera.exif), (_GPS, camera.gps)):
        if values:
            at = append_directory(handle, values)
            put_value(handle, tag, integers([at], order, _LONG))


def _main_tags(camera: Camera) -> list[tuple[Any, ...]]:
    """Return the tags of the first directory."""
    make, model = camera.make, camera.model
    unique = model if model.upper().startswith(make.split()[0].upper()) else f"{make} {model}"
    tags = [
        _text(271, make),
        _text(272, model),
        (274, _SHORT, 1, camera.orientation, True),
        (50706, _BYTE, 4, (1, 4, 0, 0), True),  # DNGVersion
        (50707, _BYTE, 4, (1, 1, 0, 0), True),  # DNGBackwardVersion
        _text(50708, unique),
        (50721, _SRATIONAL, 9, _fractions(camera.matrix), True),
        (50728, _RATIONAL, 3, _fractions(camera.neutral), True),
        (50778, _SHORT, 1, _DAYLIGHT, True),
    ]
    private = camera.private
    return [*tags, (50740, _BYTE, len(private), private, True)] if private else tags


def _raw_tags(image: ImageFile) -> list[tuple[Any, ...]]:
    """Return the tags of the raw image."""
    info = image.details.raw
    assert info is not None
    assert info.pattern is not None
    height, width = image.pixels.shape
    (top, bottom), (left, right) = ((part.start, part.stop) for part in info.area)
    return [
        (33421, _SHORT, 2, info.pattern.shape, True),  # CFARepeatPatternDim
        (33422, _BYTE, info.pattern.size, bytes(info.pattern.ravel().tolist()), True),
        (50710, _BYTE, 3, bytes([0, 1, 2]), True),  # CFAPlaneColor
        (50711, _SHORT, 1, 1, True),  # CFALayout: rectangular
        (50713, _SHORT, 2, info.black.shape, True),  # BlackLevelRepeatDim
        (50714, _RATIONAL, info.black.size, _fractions(info.black.ravel(), 256), True),
        (50717, _LONG, 1, round(info.white), True),
        (50718, _RATIONAL, 2, (1, 1, 1, 1), True),  # DefaultScale
        (50719, _LONG, 2, (0, 0), True),  # DefaultCropOrigin
        (50720, _LONG, 2, (right - left, bottom - top), True),
        (50829, _LONG, 4, (top, left, min(bottom, height), min(right, width)), True),
    ]


def _text(tag: int, text: str) -> tuple[Any, ...]:
    return tag, _ASCII, len(text) + 1, text, True


def _fractions(values: Any, below: int = 10_000) -> tuple[int, ...]:
    """Return numbers as fractions, numerator and denominator by turns."""
    return tuple(n for value in values for n in (round(float(value) * below), below))


def _thumbnail(image: ImageFile, side: int = 256) -> Array:
    """Return a small picture of a mosaic, half of whose pixels are green: their means, in sRGB."""
    info = image.details.raw
    assert info is not None
    light = np.clip((image.pixels[info.area] - info.black.mean()) / info.span, 0, 1)
    step = max(6, -(-max(light.shape) // side) // 6 * 6)
    shown = np.rint(255 * means(light, (step, step)) ** (1 / 2.2)).astype(np.uint8)
    return np.repeat(shown[..., np.newaxis], 3, axis=-1)
