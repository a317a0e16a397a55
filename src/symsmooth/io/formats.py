"""Which format a file has, by content or by name, and the module that reads and writes it."""

from __future__ import annotations

import importlib
import os
from contextlib import nullcontext
from pathlib import Path
from typing import Any, BinaryIO

from .base import FileError

_MODULES = {
    "PNG": "pillow",
    "JPEG": "pillow",
    "BMP": "pillow",
    "WEBP": "pillow",
    "TIFF": "tiff",
    "FITS": "fits",
    "ZARR": "zarr",
    "NPY": "npy",
}
_SUFFIXES = {
    ".png": "PNG",
    ".jpg": "JPEG",
    ".jpeg": "JPEG",
    ".bmp": "BMP",
    ".webp": "WEBP",
    ".tif": "TIFF",
    ".tiff": "TIFF",
    ".fits": "FITS",
    ".fit": "FITS",
    ".fts": "FITS",
    ".zarr": "ZARR",
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
    (b"SIMPLE  =", "FITS"),
    (b"\x93NUMPY", "NPY"),
)
_IN_ZARR = ("zarr.json", ".zarray", ".zgroup")
_EXTRAS = {"astropy": "fits", "zarr": "dask"}  # what must be installed for some formats


def detect_format(file: Path, handle: BinaryIO | None = None) -> str:
    """Return the format by the first bytes of the file, or by what is in the folder.

    A handle of the file, if it is open already, is left at its start.
    """
    if file.is_dir():
        if is_zarr(file):
            return "ZARR"
        raise FileError(f"is a folder; give its files, as in '{file}/**/*.tif' with the quotes")
    if file.exists() and not file.is_file():
        raise FileError("is not a regular file")
    with nullcontext(handle) if handle is not None else open(file, "rb") as opened:
        start = opened.read(16)
        opened.seek(0)
    for signature, format in _SIGNATURES:
        if start.startswith(signature):
            return format
    known = "PNG, JPEG, BMP, WebP, TIFF, FITS, Zarr or .npy"
    raise FileError("is empty" if not start else f"is not {known}; convert it to one of these")


def is_zarr(folder: Path) -> bool:
    """Whether a folder is a Zarr array or group."""
    return any((folder / name).exists() for name in _IN_ZARR)


def format_of(path: str | os.PathLike[str]) -> str:
    """Return the format by the ending of a name."""
    suffix = Path(path).suffix
    format = _SUFFIXES.get(suffix.lower())
    if format is None:
        raise FileError(
            f"cannot write {suffix or 'a name without ending'!r}; use one of {', '.join(_SUFFIXES)}"
        )
    return format


def ending_of(format: str) -> str:
    """Return the usual ending of a format, ``.png``."""
    for suffix, name in _SUFFIXES.items():
        if name == format:
            return suffix
    raise FileError(f"{format} cannot be written; use one of {', '.join(_SUFFIXES)}")


def module_of(format: str) -> Any:
    """Import what reads and writes a format, when it is first needed."""
    try:
        return importlib.import_module(f".{_MODULES[format]}", __package__)
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library not in _EXTRAS:
            raise
        extra = _EXTRAS[library]
        raise FileError(f"{format} needs {library}; pip install 'symsmooth[{extra}]'") from error
