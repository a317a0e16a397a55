"""A DNG written anew, for the mosaic of another camera format: thumbnail, raw image, tags, EXIF."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np
import tifffile

from .base import Array, ImageFile
from .ifd import Value, append_directory, put_value

_BYTE, _ASCII, _SHORT, _LONG, _RATIONAL, _SRATIONAL = 1, 2, 3, 4, 5, 10
_EXIF, _GPS = 34665, 34853
_DAYLIGHT = 21  # D65, of CalibrationIlluminant1
_FRACTION = 10_000
_XYZ_TO_SRGB = (3.2406, -1.5372, -0.4986, -0.9689, 1.8758, 0.0415, 0.0557, -0.2040, 1.0570)


def write_anew(handle: BinaryIO, image: ImageFile) -> None:
    """Write a mosaic and what is known of it.

    ``image.details`` has "raw" (``RawInfo``) and "camera", a mapping with any of: "make", "model",
    "datetime", "orientation", "neutral" (3), "matrix" (XYZ to camera, 9), "thumbnail" (uint8 RGB), "exif"
    and "gps" (tags as stored), "private" (DNGPrivateData), "byteorder".
    """
    camera: Mapping[str, Any] = image.details.get("camera", {})
    order = camera.get("byteorder", "<")
    thumbnail = camera.get("thumbnail")
    if thumbnail is None:
        thumbnail = _thumbnail(image)
    with tifffile.TiffWriter(handle, byteorder=order, ome=False, imagej=False) as writer:
        writer.write(
            thumbnail,
            photometric="rgb",
            subifds=1,
            subfiletype=1,
            metadata=None,
            software=False,
            datetime=camera.get("datetime"),
            extratags=_main_tags(camera),
        )
        writer.write(
            image.pixels,
            photometric="cfa",
            subfiletype=0,
            metadata=None,
            software=False,
            rowsperstrip=max(1, 2**20 // (2 * image.pixels.shape[1])),
            extratags=_raw_tags(image),
        )
    _add_directory(handle, _EXIF, camera.get("exif"), order)
    _add_directory(handle, _GPS, camera.get("gps"), order)


def _main_tags(camera: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """Return the tags of the first directory."""
    make, model = camera.get("make") or "Unknown", camera.get("model") or "camera"
    unique = model if model.upper().startswith(make.split()[0].upper()) else f"{make} {model}"
    tags = [
        _text(271, make),
        _text(272, model),
        (274, _SHORT, 1, int(camera.get("orientation", 1)), True),
        (50706, _BYTE, 4, (1, 4, 0, 0), True),  # DNGVersion
        (50707, _BYTE, 4, (1, 1, 0, 0), True),  # DNGBackwardVersion
        _text(50708, unique),
        (50721, _SRATIONAL, 9, _fractions(camera.get("matrix") or _XYZ_TO_SRGB), True),
        (50728, _RATIONAL, 3, _fractions(camera.get("neutral") or (1.0, 1.0, 1.0)), True),
        (50778, _SHORT, 1, _DAYLIGHT, True),
    ]
    if camera.get("private"):
        tags.append((50740, _BYTE, len(camera["private"]), camera["private"], True))
    return tags


def _raw_tags(image: ImageFile) -> list[tuple[Any, ...]]:
    """Return the tags of the raw image."""
    info = image.details["raw"]
    rows, columns = info.pattern.shape
    height, width = image.pixels.shape
    top, left = info.area[0].start, info.area[1].start
    bottom, right = info.area[0].stop, info.area[1].stop
    black = np.rint(info.black * 256).astype(int).ravel()
    fractions = tuple(n for value in black.tolist() for n in (value, 256))
    return [
        (33421, _SHORT, 2, (rows, columns), True),  # CFARepeatPatternDim
        (33422, _BYTE, rows * columns, bytes(info.pattern.ravel().tolist()), True),
        (50710, _BYTE, 3, bytes([0, 1, 2]), True),  # CFAPlaneColor
        (50711, _SHORT, 1, 1, True),  # CFALayout: rectangular
        (50713, _SHORT, 2, tuple(info.black.shape), True),  # BlackLevelRepeatDim
        (50714, _RATIONAL, len(black), fractions, True),
        (50717, _LONG, 1, round(info.white), True),
        (50718, _RATIONAL, 2, (1, 1, 1, 1), True),  # DefaultScale
        (50719, _LONG, 2, (0, 0), True),  # DefaultCropOrigin
        (50720, _LONG, 2, (right - left, bottom - top), True),
        (50829, _LONG, 4, (top, left, min(bottom, height), min(right, width)), True),
    ]


def _text(tag: int, text: str) -> tuple[Any, ...]:
    return tag, _ASCII, len(text) + 1, text, True


def _fractions(values: Any) -> tuple[int, ...]:
    """Return numbers as fractions, numerator and denominator by turns."""
    return tuple(n for value in values for n in (round(float(value) * _FRACTION), _FRACTION))


def _thumbnail(image: ImageFile, side: int = 256) -> Array:
    """Return a small picture of a mosaic, half of whose pixels are green: their means, in sRGB."""
    info = image.details["raw"]
    light = np.clip(
        (image.pixels[info.area] - info.black.mean()) / (info.white - info.black.mean()), 0, 1
    )
    step = max(6, -(-max(light.shape) // side) // 6 * 6)
    rows, columns = (max(1, n // step) for n in light.shape)
    cut = light[: rows * step, : columns * step]
    if cut.shape != (rows * step, columns * step):  # smaller than one step
        grey = np.full((1, 1), light.mean())
    else:
        grey = cut.reshape(rows, step, columns, step).mean(axis=(1, 3))
    shown = np.rint(255 * grey ** (1 / 2.2)).astype(np.uint8)
    return np.repeat(shown[..., np.newaxis], 3, axis=-1)


def _add_directory(
    handle: BinaryIO, tag: int, values: Mapping[int, Value] | None, order: str
) -> None:
    """Write a directory below the first one."""
    if values:
        at = append_directory(handle, values)
        put_value(handle, tag, (_LONG, 1, struct.pack(f"{order}I", at)))
