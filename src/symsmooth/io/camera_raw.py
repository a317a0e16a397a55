"""Raw files of cameras, by LibRaw (rawpy): their mosaic, and all that a DNG of it needs.  Read only.

Many of them are TIFF files inside.  Their directories are walked to the end before LibRaw sees the file,
and EXIF is copied from them as it is stored; for the others LibRaw gives the little it knows.
"""

from __future__ import annotations

import io
import struct
from contextlib import closing, suppress
from typing import Any, BinaryIO

import numpy as np
import rawpy

from ..raw.mosaic import COLOURS, parse_pattern
from .base import FileError, OpenFile, check_declared_size
from .dng import Camera
from .ifd import Value, check_directories, first_directory, place_of, read_values
from .images import Array, Details, ImageFile, RawInfo

_ORIENTATIONS = {0: 1, 3: 3, 5: 8, 6: 6}  # LibRaw's flip -> EXIF
_MAKE, _MODEL, _DATE, _EXIF, _GPS = 271, 272, 306, 34665, 34853
_MAKER_NOTE, _INTEROPERABILITY = 37500, 40965  # have offsets of their own
_PERIODS = (2, 6)  # of Bayer, of X-Trans
_THUMBNAIL = 256  # pixels a side
_BEST_COMPRESSION = 40  # of any camera's format


def read(file: OpenFile) -> list[ImageFile]:
    """Read the mosaic of a camera's raw file, which LibRaw opens for itself."""
    said = _tiff_metadata(file.handle)
    try:
        with closing(rawpy.RawPy()) as raw:
            raw.open_file(str(file.path))
            sizes = raw.sizes
            n_pixels = int(sizes.raw_height) * int(sizes.raw_width)
            check_declared_size(2 * n_pixels, file.size, best=_BEST_COMPRESSION)
            raw.unpack()
            if raw.raw_type != rawpy.RawType.Flat or raw.raw_image_visible is None:
                raise FileError("has no mosaic of one colour a pixel; develop it, denoise the TIFF")
            pixels = np.array(raw.raw_image_visible, np.uint16)
            details = Details(
                raw=_info(raw, pixels),
                own=Camera(**_camera(raw, said.get("byteorder", "<")) | said),
            )
    except rawpy.LibRawError as error:
        text = error.args[0].decode() if isinstance(error.args[0], bytes) else str(error)
        raise FileError(f"LibRaw cannot read it: {text}") from error
    return [ImageFile(pixels, None, None, file.format, details)]


def develop(dng: BinaryIO, linear: bool) -> Array:
    """Return the picture (y, x, 3) of a DNG in 16 bits, upright: sRGB, or linear with its primaries."""
    with rawpy.imread(dng) as raw:
        picture = raw.postprocess(
            use_camera_wb=True,
            no_auto_bright=True,
            output_bps=16,
            gamma=(1.0, 1.0) if linear else (2.4, 12.92),
        )
    return np.asarray(picture)


def _info(raw: Any, pixels: Array) -> RawInfo:
    """Return pattern, black and white of a mosaic."""
    letters = raw.color_desc.decode()
    colours = np.array(raw.raw_colors_visible[: 2 * max(_PERIODS), : 2 * max(_PERIODS)])
    period = next((n for n in _PERIODS if _repeats(colours, n)), max(_PERIODS))
    tile = colours[:period, :period]
    if any(letters[index] not in COLOURS for index in np.unique(tile)):
        raise FileError(f"has a mosaic of the colours {letters}; only red, green, blue are known")
    pattern = parse_pattern([[COLOURS.index(letters[index]) for index in row] for row in tile])
    levels = np.array(raw.black_level_per_channel, np.float64)
    area = slice(0, pixels.shape[0]), slice(0, pixels.shape[1])
    return RawInfo(pattern, levels[tile], float(raw.white_level), area)


def _repeats(colours: Array, n: int) -> bool:
    """Whether a pattern repeats after n pixels, down and across."""
    down, across = colours[n:] == colours[:-n], colours[:, n:] == colours[:, :-n]
    return bool(down.all() and across.all())


def _camera(raw: Any, order: str) -> dict[str, Any]:
    """Return what LibRaw says of the camera and the exposure: attributes of a Camera."""
    balance = np.array(raw.camera_whitebalance[:3], float)
    if not (np.isfinite(balance).all() and (balance > 0).all()):
        balance = np.array(raw.daylight_whitebalance[:3], float)
    neutral = balance[1] / balance if (balance > 0).all() else np.ones(3)
    matrix = np.array(raw.rgb_xyz_matrix, float)[:3]
    known = {"matrix": tuple(matrix.ravel().tolist())} if matrix.any() else {}
    return known | {
        "orientation": _ORIENTATIONS.get(int(raw.sizes.flip), 1),
        "neutral": tuple(neutral.tolist()),
        "thumbnail": _thumbnail(raw),
        "exif": _exposure(raw, order),
    }


def _exposure(raw: Any, order: str) -> dict[int, Value]:
    """Return the exposure as EXIF tags."""
    found: dict[int, Value] = {}
    other, lens = getattr(raw, "other", None), getattr(raw, "lens", None)
    for tag, name in ((33434, "shutter"), (33437, "aperture"), (37386, "focal_len")):
        value = float(getattr(other, name, 0.0) or 0.0)
        if 0.0 < value < 1e5:
            found[tag] = 5, 1, struct.pack(f"{order}2I", round(value * 10_000), 10_000)
    speed = float(getattr(other, "iso_speed", 0.0) or 0.0)
    if 0.0 < speed < 65536:
        found[34855] = 3, 1, struct.pack(f"{order}H", round(speed))
    model: Any = getattr(lens, "model", "") or ""
    text = model if isinstance(model, bytes) else str(model).encode("ascii", "replace")
    if text.strip():
        found[42036] = 2, len(text) + 1, text + b"\0"
    return found


def _thumbnail(raw: Any) -> Array | None:
    """Return the thumbnail in small, or None."""
    from PIL import Image

    with suppress(rawpy.LibRawError, OSError, ValueError):
        found = raw.extract_thumb()
        is_jpeg = found.format == rawpy.ThumbFormat.JPEG
        data: Any = io.BytesIO(found.data) if is_jpeg else found.data
        small: Any = Image.open(data, formats=["JPEG"]) if is_jpeg else Image.fromarray(data)
        small.thumbnail((_THUMBNAIL, _THUMBNAIL))
        return np.asarray(small.convert("RGB"))
    return None


def _tiff_metadata(handle: BinaryIO) -> dict[str, Any]:
    """Return camera, date, EXIF and maker note of a file that is a TIFF inside; empty for others."""
    handle.seek(0)
    start = handle.read(4)
    if start not in (b"II*\0", b"MM\0*"):
        return {}
    check_directories(handle)
    order = {b"II": "<", b"MM": ">"}[start[:2]]
    main = read_values(handle, first_directory(handle))
    texts = {"make": _MAKE, "model": _MODEL, "datetime": _DATE}
    found: dict[str, Any] = {"byteorder": order}
    for name, tag in texts.items():
        text = main[tag][2].split(b"\0")[0].decode("ascii", "replace") if tag in main else ""
        if text.strip():
            found[name] = text.strip()
    for name, tag in (("exif", _EXIF), ("gps", _GPS)):
        with suppress(ValueError, KeyError, OSError, struct.error):
            found[name] = read_values(handle, struct.unpack(f"{order}I", main[tag][2])[0])
    exif = found.get("exif", {})
    exif.pop(_INTEROPERABILITY, None)
    note = exif.pop(_MAKER_NOTE, None)
    if note is not None:
        below = struct.unpack(f"{order}I", main[_EXIF][2])[0]
        found["private"] = _private(note[2], order, place_of(handle, below, _MAKER_NOTE))
    return found


def _private(note: bytes, order: str, place: int) -> bytes:
    """Return a maker note as DNGPrivateData in Adobe's form, which says where it was in its file."""
    body = (b"II" if order == "<" else b"MM") + struct.pack(">I", place) + note
    return b"Adobe\0MakN" + struct.pack(">I", len(body)) + body + b"\0" * (len(body) % 2)
