"""DNG files for tests, written by tifffile tag by tag."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import numpy as np
import tifffile

from symsmooth.raw.mosaic import parse_pattern
from symsmooth_repro.sensor import BALANCE, Sensor

MATRIX = (3.2406, -1.5372, -0.4986, -0.9689, 1.8758, 0.0415, 0.0557, -0.2040, 1.0570)
NOTE = b"maker note with \x00 bytes"
PREVIEW = np.random.default_rng(3).integers(0, 255, (24, 32, 3), dtype=np.uint8)


def text(tag: int, words: str) -> tuple[Any, ...]:
    return tag, 2, len(words) + 1, words, True


def fractions(values: Any, unit: int = 10_000) -> tuple[int, ...]:
    return tuple(n for value in values for n in (round(value * unit), unit))


def main_tags(orientation: int = 1) -> list[tuple[Any, ...]]:
    return [
        text(271, "Maker"),
        text(272, "Model X"),
        (274, 3, 1, orientation, True),
        (50706, 1, 4, (1, 4, 0, 0), True),
        (50707, 1, 4, (1, 1, 0, 0), True),
        text(50708, "Maker Model X"),
        (50721, 10, 9, fractions(MATRIX), True),
        (50728, 5, 3, fractions(BALANCE), True),
        (50778, 3, 1, 21, True),
        (50740, 1, len(NOTE), NOTE, True),
        (51111, 1, 16, bytes(range(16)), True),  # NewRawImageDigest
    ]


def raw_tags(
    sensor: Sensor, more: Mapping[int, tuple[Any, ...]] | None = None
) -> list[tuple[Any, ...]]:
    pattern = parse_pattern(sensor.pattern)
    rows, columns = pattern.shape
    tags = {
        33421: (33421, 3, 2, (rows, columns), True),
        33422: (33422, 1, pattern.size, bytes(pattern.ravel().tolist()), True),
        50710: (50710, 1, 3, bytes([0, 1, 2]), True),
        50714: (50714, 3, 1, sensor.black, True),
        50717: (50717, 4, 1, sensor.white, True),
        51041: (51041, 12, 2, (1e-3, 1e-6), True),
    }
    return list((tags | dict(more or {})).values())


def lossless_jpeg(mosaic: np.ndarray, tile: int) -> list[bytes]:
    import imagecodecs

    height, width = mosaic.shape
    padded = np.pad(mosaic, [(0, -height % tile), (0, -width % tile)], mode="edge")
    return [
        imagecodecs.ljpeg_encode(np.ascontiguousarray(padded[y : y + tile, x : x + tile]), bitspersample=16)
        for y in range(0, height, tile)
        for x in range(0, width, tile)
    ]  # fmt: skip


def dng(
    pixels: np.ndarray,
    sensor: Sensor,
    *,
    more: Mapping[int, tuple[Any, ...]] | None = None,
    order: str = "<",
    orientation: int = 1,
    tile: int | None = None,
    packed: bool = False,
    below: bool = True,
) -> bytes:
    """Return a DNG: a preview with the raw image below it, or the raw image alone."""
    buffer = io.BytesIO()
    kind = "cfa" if pixels.ndim == 2 else 34892
    tags = raw_tags(sensor, more) if pixels.ndim == 2 else [
        (50714, 3, 3, (sensor.black,) * 3, True), (50717, 4, 3, (sensor.white,) * 3, True)
    ]  # fmt: skip
    options: dict[str, Any] = {"photometric": kind, "metadata": None, "software": False}
    if tile:
        options["tile"] = (tile, tile)
    data: Any = pixels
    if packed:
        data = iter(lossless_jpeg(pixels, tile or 64))
        options |= {
            "compression": 7,
            "bitspersample": 16,
            "shape": pixels.shape,
            "dtype": pixels.dtype,
        }
    with tifffile.TiffWriter(buffer, byteorder=order) as writer:
        if below:
            writer.write(
                PREVIEW, photometric="rgb", subifds=1, subfiletype=1, metadata=None,
                software="camera 1.0", extratags=main_tags(orientation),
            )  # fmt: skip
            writer.write(data, subfiletype=0, extratags=tags, **options)
        else:
            writer.write(data, subfiletype=0, extratags=[*main_tags(orientation), *tags], **options)
    return buffer.getvalue()
