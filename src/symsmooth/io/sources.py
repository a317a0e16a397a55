"""Images that are read box by box: tiled TIFF, Zarr and .npy."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from .base import (
    Array,
    FileError,
    OpenFile,
    channels_of,
    naming_errors,
    one_line,
    plain_axes,
    suppress_warnings,
)
from .boxes import Box, check_box
from .formats import module_of, open_file


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

    def __init__(
        self, path: Path, format: str, pixels: Any, axes: str, file: OpenFile | None = None
    ) -> None:
        self.path, self.format, self.axes = path, format, axes
        self.series: Any = None  # of a TIFF
        self.levels: Sequence[Any] = ()  # of a Zarr: its arrays
        self.level_names: Sequence[str] = ("",)
        self._file = file
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
        plain = Source(self.path, "", zeros, self.axes)
        plain.chunks = self.chunks
        return plain

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

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
    >>> with open_source(path) as source:
    ...     source.read((slice(1, 2), slice(0, 3)))
    array([[5, 6, 7]])
    """
    with ExitStack() as opened:
        source = source_of(opened.enter_context(open_file(path)))
        opened.pop_all()  # closed by the source
    return source


def source_of(file: OpenFile) -> Source:
    """Return what reads an open file box by box; errors are those of :func:`open_source`."""
    opener = {"TIFF": _tiff_source, "ZARR": _zarr_source, "NPY": _npy_source}
    with naming_errors(file.path):
        if file.format not in opener:
            raise FileError(
                f"is {file.format}, which cannot be read in pieces; save it as tiled TIFF"
            )
        return opener[file.format](file)


def _tiff_source(file: OpenFile) -> Source:
    from .segments import Segments
    from .tiff import name_of
    from .tiff_checks import checked_series, tiff_of

    found = checked_series(tiff_of(file), whole=False)
    if len(found) > 1:
        raise FileError(f"holds {len(found)} images; save each as a file of its own")
    series = found[0]
    page = series.keyframe
    if page.photometric not in (1, 2, 5) or page.dtype.kind not in "uif":
        raise FileError(f"has {name_of(page.photometric)} pixels; save it as grey or RGB")
    segments = Segments(series, file.handle)
    source = Source(file.path.resolve(), "TIFF", segments, series.axes, file)
    source.series = series
    return source


def _zarr_source(file: OpenFile) -> Source:
    found = module_of("ZARR").find_images(file, whole=False)
    if len(found) != 1:
        raise FileError(f"holds {len(found)} images; give one of them, as {file.path}/NAME")
    names, axes, levels = found[0]
    source = Source(file.path.resolve(), "ZARR", levels[0], axes, file)
    source.levels, source.level_names = levels, names
    return source


def _npy_source(file: OpenFile) -> Source:
    from .npy import guess_channel_axis, open_mapped

    pixels = open_mapped(file, whole=False)
    if pixels.ndim < 2 or pixels.size == 0:
        raise FileError(f"holds no picture: its shape is {pixels.shape}")
    axes = plain_axes(pixels.ndim, guess_channel_axis(pixels.shape))
    return Source(file.path.resolve(), "NPY", pixels, axes, file)
