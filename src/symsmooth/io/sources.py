"""Images that are read box by box: tiled TIFF, Zarr and .npy."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from .base import Array, FileError, channels_of, one_line, plain_axes, suppress_warnings
from .boxes import Box, check_box
from .formats import detect_format, module_of


class Source:
    """An image that is read box by box; a context manager.

    Attributes
    ----------
    path : Path
    format : "TIFF", "ZARR" or "NPY"
    shape, dtype, axes
        As of an ImageFile; alpha stays among the samples.
    chunks : tuple of int
        What is stored in one piece: boxes that are multiples of it are read fastest.
    """

    def __init__(self, path: Path, format: str, pixels: Any, axes: str, details: Any) -> None:
        self.path, self.format, self.axes, self.details = path, format, axes, details
        self.shape: tuple[int, ...] = tuple(pixels.shape)
        self.dtype: np.dtype[Any] = pixels.dtype.newbyteorder("=")
        self.chunks: tuple[int, ...] = tuple(getattr(pixels, "chunks", None) or self.shape)
        self._pixels = pixels

    @property
    def channel_axis(self) -> int | None:
        """The axis of the channels, or None."""
        return channels_of(self.axes)

    @property
    def nbytes(self) -> int:
        """Bytes of all pixels."""
        return int(np.prod(self.shape, dtype=object)) * self.dtype.itemsize

    def read(self, box: Box) -> Array:
        """Return the pixels of a box, in native byte order."""
        try:
            with suppress_warnings():
                return np.array(self._pixels[check_box(box, self.shape)], dtype=self.dtype)
        except Exception as error:  # a damaged file can raise anything in a decoder
            raise FileError(f"{self.path}: cannot be read: {one_line(error)}") from error

    def as_plain(self, dtype: np.dtype[Any]) -> Source:
        """Return what a new image of this shape and another dtype is made like; it has no metadata."""
        zeros = np.broadcast_to(np.zeros((), dtype), self.shape)
        plain = Source(self.path, "", zeros, self.axes, {})
        plain.chunks = self.chunks
        return plain

    def close(self) -> None:
        """Close the file."""
        for name in ("tiff", "handle"):
            if name in self.details:
                self.details[name].close()

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return open_source, (str(self.path),)  # another process opens the file itself


def open_source(path: str | os.PathLike[str]) -> Source:
    """Open a TIFF, Zarr or .npy image to read it box by box.

    Raises
    ------
    FileError
        If it is no such image, holds several, or its pixels mean something only a whole read knows
        (a palette).

    Examples
    --------
    >>> import numpy as np, tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "a.npy")
    >>> np.save(path, np.arange(20).reshape(4, 5))
    >>> open_source(path).read((slice(1, 2), slice(0, 3)))
    array([[5, 6, 7]])
    """
    file = Path(path)
    opener = {"TIFF": _open_tiff, "ZARR": _open_zarr, "NPY": _open_npy}
    try:
        format = detect_format(file)
        if format not in opener:
            raise FileError(f"is {format}, which cannot be read in pieces; save it as tiled TIFF")
        with suppress_warnings():
            return opener[format](file)
    except FileError as error:
        raise FileError(f"{file}: {error}") from error
    except FileNotFoundError as error:
        raise FileError(f"{file}: no such file") from error
    except Exception as error:
        raise FileError(f"{file}: cannot be read: {one_line(error)}") from error


def _open_tiff(path: Path) -> Source:
    from .segments import Segments
    from .tiff import name_of
    from .tiff_checks import checked_series, open_tiff

    with ExitStack() as opened:
        tiff = opened.enter_context(open_tiff(path))
        found = checked_series(tiff, whole=False)
        if len(found) > 1:
            raise FileError(f"holds {len(found)} images; save each as a file of its own")
        page = found[0].keyframe
        if page.photometric not in (1, 2, 5) or page.dtype.kind not in "uif":
            raise FileError(f"has {name_of(page.photometric)} pixels; save it as grey or RGB")
        handle = opened.enter_context(open(path, "rb"))
        segments = Segments(found[0], handle)
        opened.pop_all()  # closed by the source
    details = {"tiff": tiff, "handle": handle, "series": found[0]}
    return Source(path, "TIFF", segments, found[0].axes, details)


def _open_zarr(path: Path) -> Source:
    zarr = module_of("ZARR")
    found = zarr.find_images(path, whole=False)
    if len(found) != 1:
        raise FileError(f"holds {len(found)} images; give one of them, as {path}/NAME")
    names, axes = found[0]
    array = zarr.open_array(path, names[0], "r")
    return Source(path, "ZARR", array, axes, {"levels": names})


def _open_npy(path: Path) -> Source:
    from .npy import guess_channel_axis, open_mapped

    pixels = open_mapped(path, whole=False)
    if pixels.ndim < 2 or pixels.size == 0:
        raise FileError(f"holds no picture: its shape is {pixels.shape}")
    axes = plain_axes(pixels.ndim, guess_channel_axis(pixels.shape))
    return Source(path, "NPY", pixels, axes, {})
