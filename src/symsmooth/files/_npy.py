"""NumPy's own format.  It says nothing about channels, so one rule decides.

A last axis of exactly 3 after two or three others is colour: nobody has a volume three voxels
wide, everybody has ``(rows, columns, 3)``.  All else is a picture or a volume without channels;
whoever knows better replaces ``channel_axis`` (the command line has ``--channel-axis``).
"""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

import numpy as np

from ._base import Array, FileError, ImageFile, native


def read(path: Path, format: str) -> ImageFile:
    """Read one array; the memory map checks the declared size against the file's."""
    pixels = native(np.lib.format.open_memmap(path, mode="r"))
    return ImageFile(pixels, guess_channel_axis(pixels), None, format)


def guess_channel_axis(pixels: Array) -> int | None:
    """Return the last axis if it looks like colour, else None."""
    return pixels.ndim - 1 if pixels.ndim in (3, 4) and pixels.shape[-1] == 3 else None


def refuse(image: ImageFile, format: str) -> None:
    """Raise FileError if .npy cannot hold the image."""
    if image.alpha is not None:
        raise FileError(".npy holds no alpha channel; write to .png, .webp or .tif")


def write(handle: BinaryIO, image: ImageFile, format: str) -> None:
    """Write the pixels."""
    np.lib.format.write_array(handle, image.pixels, allow_pickle=False)
