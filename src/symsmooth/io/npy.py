"""NumPy's own format.  It says nothing about channels, so one rule decides.

A last axis of exactly 3 after two or three others is colour: nobody has a volume three voxels
wide, everybody has ``(rows, columns, 3)``.  All else is a picture or a stack without channels;
users who know better say so (the command line has ``--channel-axis`` and ``--volume``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import BinaryIO

import numpy as np

from .base import FileError, OpenFile, check_declared_size
from .images import Array, Details, ImageFile, guess_channel_axis, native, plain_axes
from .regions import Source


def read(file: OpenFile) -> list[ImageFile]:
    """Read one array."""
    pixels = native(open_mapped(file))
    if pixels.ndim < 2:
        raise FileError(f"holds no picture: its shape is {pixels.shape}")
    return [ImageFile(pixels, guess_channel_axis(pixels.shape), None, file.format)]


def open_mapped(file: OpenFile, *, whole: bool = True) -> Array:
    """Map an array where it is, once its file is known to be as long as the array."""
    handle = file.handle
    handle.seek(0)
    version = np.lib.format.read_magic(handle)
    if version == (1, 0):
        shape, by_columns, dtype = np.lib.format.read_array_header_1_0(handle)
    elif version == (2, 0):
        shape, by_columns, dtype = np.lib.format.read_array_header_2_0(handle)
    else:
        raise FileError(f"is a .npy of version {version[0]}; save it as integers or floats")
    n_bytes, start = math.prod(map(int, (dtype.itemsize, *shape))), handle.tell()
    if dtype.kind not in "uif":
        raise FileError(f"holds {dtype} values; save it as integers or floats")
    stored = file.size
    if n_bytes > stored - start or min(shape, default=1) < 0:
        raise FileError(f"claims {n_bytes} bytes of pixels in a file of {stored}: damaged")
    check_declared_size(n_bytes, stored, whole=whole)
    if n_bytes == 0:
        return np.empty(shape, dtype)  # nothing that could be mapped
    return np.memmap(handle, dtype, "r", start, shape, "F" if by_columns else "C")


def write(handle: BinaryIO, images: Sequence[ImageFile], format: str, note: str) -> None:
    """Write the pixels; there is no place for a note."""
    (image,) = images
    np.lib.format.write_array(handle, image.pixels, allow_pickle=False)


def open_source(file: OpenFile) -> Source:
    """Return what reads an array box by box."""
    pixels = open_mapped(file, whole=False)
    if pixels.ndim < 2 or pixels.size == 0:
        raise FileError(f"holds no picture: its shape is {pixels.shape}")
    return Source(
        file, pixels, plain_axes(pixels.ndim, guess_channel_axis(pixels.shape)), Details()
    )
