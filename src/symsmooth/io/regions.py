"""Images larger than memory: tiled TIFF, Zarr and .npy, read and written box by box.

A box is a tuple of slices with start and stop, one for each axis.  Sources and targets may be shared
by threads.  A target is made in a hidden folder beside its name (``workplace``): its pixels as an array
on disk, or a Zarr as what it will be.  It takes its name when it is finished, a TIFF by being written from
that array as any other.  So there is never a wrong file under the right name, and a run that was killed can
be continued where it stopped.
"""

from __future__ import annotations

import os
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from .base import (
    FileError,
    OpenFile,
    commit,
    naming_errors,
    naming_write_errors,
    one_line,
    suppress_warnings,
)
from .boxes import Box, check_box
from .formats import FORMATS, format_of, module_of, open_file, write_checked
from .images import Array, Details, ImageFile, channels_of
from .workplace import Workplace, box_key

__all__ = ["Box", "Source", "Target", "create_target", "open_source", "source_of", "target_chunks"]


class Source:
    """An image that is read box by box; a context manager.

    Attributes
    ----------
    path : Path
    like : ImageFile
        What the image would be if it were read; pixels take no memory, and alpha stays among them.
    shape, dtype, format, axes, channel_axis
        As of it.
    chunks : tuple of int
        What is stored in one piece: boxes that are multiples of it are read fastest.
    has_alpha : bool
        Whether the last sample of a pixel is opacity.
    """

    def __init__(
        self, file: OpenFile, pixels: Any, axes: str, details: Details, has_alpha: bool = False
    ) -> None:
        self.path, self.format, self.axes = file.path.resolve(), file.format, axes
        self.shape: tuple[int, ...] = tuple(pixels.shape)
        self.dtype: np.dtype[Any] = pixels.dtype.newbyteorder("=")
        self.chunks: tuple[int, ...] = tuple(getattr(pixels, "chunks", None) or self.shape)
        self.channel_axis, self.has_alpha = channels_of(axes), has_alpha
        zeros = np.broadcast_to(np.zeros((), self.dtype), self.shape)
        self.like = ImageFile(zeros, self.channel_axis, None, self.format, details, axes)
        self._file, self._pixels = file, pixels

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

    def close(self) -> None:
        """Close the file."""
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
    with naming_errors(file.path):
        if not FORMATS[file.format].in_pieces:
            raise FileError(
                f"is {file.format}, which cannot be read in pieces; save it as tiled TIFF"
            )
        source: Source = module_of(file.format).open_source(file)
        return source


class Target:
    """An image that is written box by box; a context manager.

    Leaving it normally finishes it.  Leaving it by an exception removes it, or keeps it under its
    hidden name if it was made with ``resume`` or ``keep``.  One that is made as a Zarr may be sent to
    other processes that see the same folder, and written there.

    Attributes
    ----------
    path : Path
        The name it will have.
    shape, dtype
    """

    def __init__(
        self, path: Path, place: Workplace, like: ImageFile | None = None, keep: bool = False
    ) -> None:
        self.path, self._place, self._like, self._keep = path, place, like, keep
        level = place.about["level"]  # the name of an array in a Zarr; None for one by itself
        self._pixels: Any = (
            np.lib.format.open_memmap(place.pixels, mode="r+")
            if level is None
            else module_of("ZARR").open_array(place.pixels, level, "r+")
        )
        self.shape: tuple[int, ...] = tuple(self._pixels.shape)
        self.dtype: np.dtype[Any] = self._pixels.dtype.newbyteorder("=")
        self._done = place.done()

    def __reduce__(self) -> tuple[Any, ...]:
        return Target, (self.path, self._place)

    @property
    def n_done(self) -> int:
        """How many boxes are written, those of other processes too."""
        return len(self._place.done())

    def is_done(self, box: Box) -> bool:
        """Whether this very box was written, now or by a run before."""
        return box_key(box) in self._done

    def write(self, box: Box, pixels: Array) -> None:
        """Write the pixels of a box, unless the output has become another run's; boxes must not overlap.

        Boxes that are multiples of the chunks of a Zarr can be written at once by many threads and
        processes.
        """
        check_box(box, self.shape)
        self._check_place()
        self._pixels[box] = np.asarray(pixels, dtype=self.dtype)
        self._place.add(box)
        self._done.add(box_key(box))

    def _check_place(self) -> None:
        try:
            self._place.check()
        except FileError as error:
            raise FileError(f"{self.path}: {error}") from error

    def finish(self, note: str = "") -> None:
        """Give the file its name; it must be whole: every pixel written."""
        self._check_place()
        covered = sum(int(np.prod([b - a for a, b in key])) for key in self._place.done())
        if covered != int(np.prod(self.shape)):
            raise FileError(f"{self.path}: not all of it was written; give all boxes")
        assert self._like is not None
        image, format = replace(self._like, pixels=self._pixels), format_of(self.path)
        self._pixels = None
        if format == "TIFF":
            write_checked(self.path, [image], note)
        else:
            with naming_write_errors(self.path):
                if format == "ZARR":
                    module_of("ZARR").complete(self._place.pixels, image.details, note)
                del image  # of a memory map that is in use Windows does not change the name
                self._place.check()
                commit(self._place.pixels, Path(os.path.realpath(self.path)))
        self._place.release(remove=True)

    def close(self) -> None:
        """Let go of the files; what was written stays under its hidden name."""
        self._pixels = None
        self._place.release(remove=False)

    def abandon(self) -> None:
        """Remove what was written, if it is still ours."""
        self._pixels = None
        remove = False
        with suppress(FileError):
            self._place.check()
            remove = True
        self._place.release(remove=remove)

    def __enter__(self) -> Target:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None and self._pixels is not None:
                self.finish()
        finally:
            if self._keep:
                self.close()
            else:
                self.abandon()


def target_chunks(path: str | os.PathLike[str], source: Source, like: ImageFile) -> tuple[int, ...]:
    """Return what a Zarr of that name will store in one piece; for others, what is read in one."""
    if format_of(path) != "ZARR":
        return source.chunks
    chunks: tuple[int, ...] = module_of("ZARR").chunks_like(like)
    return chunks


def create_target(
    path: str | os.PathLike[str], source: Source, *, like: ImageFile | None = None,
    resume: bool = False, keep: bool = False, key: str = "",
) -> Target:  # fmt: skip
    """Make a TIFF, Zarr or .npy image like a source, to be written box by box.

    Parameters
    ----------
    path : path
        Its ending says the format.  TIFF from TIFF and Zarr from Zarr keep all metadata.
    source : Source
        Gives shape, dtype, axes and, in the same format, everything else.  It must be open until the
        target is finished.
    like : ImageFile or None
        What is written, if it is to be unlike ``source.like``: of another dtype.
    resume : bool
        Continue what a run with the same ``key`` left, and keep it when interrupted.
    keep : bool
        Keep it when interrupted, for a run that resumes.
    key : str
        What the pixels depend on (method, options, the input's date): another key starts afresh.

    Raises
    ------
    FileError
        If it cannot be written, or another run is writing it.
    """
    file, image = Path(path), like or source.like
    format, dtype = format_of(file), image.pixels.dtype
    module = module_of(format)
    about = {"shape": list(source.shape), "dtype": dtype.str, "key": key, "level": None}
    if format == "ZARR":
        about["level"] = module.first_level(image.details)
    place, afresh = Workplace(Path(os.path.realpath(file))), False
    try:
        if not FORMATS[format].in_pieces:
            raise FileError(f"{format} cannot be written in pieces; use .tif, .zarr or .npy")
        place.lock()
        afresh = place.begin(about, resume=resume)
        if afresh and format == "ZARR":
            module.prepare(place.pixels, image)
        elif afresh:
            np.lib.format.open_memmap(place.pixels, "w+", dtype, source.shape)  # of zeros
            with open(place.pixels, "r+b") as handle:
                reserve(handle)
        with suppress_warnings():
            return Target(file, place, image, resume or keep)
    except BaseException as error:
        place.release(remove=afresh)
        if isinstance(error, FileError):
            raise FileError(f"{file}: {error}") from error
        if isinstance(error, Exception):  # of the disk
            raise FileError(f"{file}: cannot be written: {one_line(error)}") from error
        raise


def reserve(handle: BinaryIO) -> None:
    """Take the space on disk now: a full disk is an error here, a crash in a memory map later."""
    with suppress(AttributeError):
        os.posix_fallocate(handle.fileno(), 0, os.fstat(handle.fileno()).st_size)
