"""Read pictures with their bit depth and alpha, and write them back as they came.

One module a format; each has ``read``, ``refuse`` and ``write``.  A new format is a new module and
its rows in the tables below.

- ``_pillow``: PNG, JPEG, BMP, WebP
- ``_tiff``: TIFF, single pages and stacks
- ``_npy``: NumPy arrays
"""

from __future__ import annotations

import importlib
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from ._base import Array, FileError, ImageFile, one_line, replacing

__all__ = ["FileError", "ImageFile", "check_writable", "read_image", "replacing", "write_image"]

_MODULES = {
    "PNG": "_pillow",
    "JPEG": "_pillow",
    "BMP": "_pillow",
    "WEBP": "_pillow",
    "TIFF": "_tiff",
    "NPY": "_npy",
}
_SUFFIXES = {
    ".png": "PNG",
    ".jpg": "JPEG",
    ".jpeg": "JPEG",
    ".bmp": "BMP",
    ".webp": "WEBP",
    ".tif": "TIFF",
    ".tiff": "TIFF",
    ".npy": "NPY",
}
_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "PNG"),
    (b"\xff\xd8\xff", "JPEG"),
    (b"BM", "BMP"),
    (b"RIFF", "WEBP"),
    (b"II*\0", "TIFF"),
    (b"MM\0*", "TIFF"),
    (b"II+\0", "TIFF"),
    (b"MM\0+", "TIFF"),
    (b"\x93NUMPY", "NPY"),
)


def read_image(path: str | os.PathLike[str]) -> ImageFile:
    """Read a picture, a stack or an array; the content decides the format, not the name.

    Parameters
    ----------
    path : path
        A PNG, JPEG, BMP, WebP, TIFF or .npy file.

    Returns
    -------
    ImageFile
        Pixels in the file's own dtype; the axis of the channels, if any; alpha apart.

    Raises
    ------
    FileError
        If the file is missing, damaged, or not one of the above; the message is one line.

    Examples
    --------
    >>> import numpy as np, tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "grey.png")
    >>> write_image(path, np.full((4, 5), 7, np.uint16))
    >>> read_image(path).pixels.dtype
    dtype('uint16')
    """
    file = Path(path)
    try:
        format = _sniff(file)
        image: ImageFile = _module(format).read(file, format)
        return image
    except FileError as error:
        raise FileError(f"{file}: {error}") from error
    except FileNotFoundError as error:
        raise FileError(f"{file}: no such file") from error
    except Exception as error:  # a damaged file can raise anything in a decoder
        raise FileError(f"{file}: cannot be read: {one_line(error)}") from error


def check_writable(path: str | os.PathLike[str], like: ImageFile) -> None:
    """Raise FileError if pixels like these could not be written to ``path``.

    Meant to be called before the work starts: floats do not fit into a JPEG, whatever they are.
    """
    file = Path(path)
    try:
        format = _format_of(file)
        if not file.parent.is_dir():
            raise FileError(f"there is no folder {file.parent}; make it first")
        if not os.access(file.parent, os.W_OK):
            raise FileError(f"the folder {file.parent.resolve()} cannot be written to")
        if file.is_dir():
            raise FileError("is a folder; give a file name")
        _module(format).refuse(like, format)
    except FileError as error:
        raise FileError(f"{file}: {error}") from error


def write_image(path: str | os.PathLike[str], pixels: Array, like: ImageFile | None = None) -> None:
    """Write pixels in the format the name asks for, all of them or nothing.

    Parameters
    ----------
    path : path
        Its ending says the format; an existing file is replaced.
    pixels : ndarray
        In the shape and dtype of ``like.pixels``.
    like : ImageFile or None
        The file the pixels came from: gives the channel axis, alpha and the layout.  With None a
        last axis of 3 is colour.

    Raises
    ------
    FileError
        If the format cannot hold the pixels, or writing failed; then ``path`` is as it was.
    """
    file = Path(path)
    image = _assemble(file, pixels, like)
    check_writable(file, image)
    format = _format_of(file)
    try:
        with replacing(file) as handle:
            _module(format).write(handle, image, format)
    except Exception as error:
        raise FileError(f"{file}: cannot be written: {one_line(error)}") from error


def _assemble(file: Path, pixels: Array, like: ImageFile | None) -> ImageFile:
    """Put new pixels in the place of the old ones."""
    if like is None:
        from ._npy import guess_channel_axis

        return ImageFile(pixels, guess_channel_axis(pixels), None, "")
    if pixels.shape != like.pixels.shape:
        raise FileError(f"{file}: pixels must have shape {like.pixels.shape}, got {pixels.shape}")
    if like.alpha is not None and like.alpha.dtype != pixels.dtype:
        raise FileError(
            f"{file}: pixels must be {like.alpha.dtype} as their alpha is, got {pixels.dtype}"
        )
    return replace(like, pixels=pixels)


def _sniff(file: Path) -> str:
    """Return the format by the first bytes of the file."""
    if file.is_dir():
        raise FileError("is a folder; give the files in it")
    if file.exists() and not file.is_file():
        raise FileError("is not a regular file")
    with open(file, "rb") as handle:
        start = handle.read(16)
    for signature, format in _SIGNATURES:
        if start.startswith(signature):
            return format
    raise FileError("is empty" if not start else "is not PNG, JPEG, BMP, WebP, TIFF or .npy")


def _format_of(file: Path) -> str:
    """Return the format by the ending of the name."""
    format = _SUFFIXES.get(file.suffix.lower())
    if format is None:
        raise FileError(
            f"cannot write {file.suffix or 'a name without ending'!r}; "
            f"use one of {', '.join(_SUFFIXES)}"
        )
    return format


def _module(format: str) -> Any:
    """Import what reads and writes a format, when it is first needed."""
    return importlib.import_module(f".{_MODULES[format]}", __name__)
