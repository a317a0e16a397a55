"""Images larger than memory: tiled TIFF, Zarr and .npy, read and written box by box.

A box is a tuple of slices with start and stop, one for each axis.  Sources and targets may be shared
by threads.  A target is a hidden file (or folder) beside its name, with a log of the boxes that are
done; it takes its name when it is finished.  So there is never a wrong file under the right name, and
a run that was killed can be continued where it stopped.

The log has a first line that says what the file is, then a line for each box that is done.  A box is
logged after its pixels are with the operating system; so whatever a killed process leaves, the boxes in
the log are right.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import stat
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np

from .base import (
    FileError,
    OpenFile,
    atomic_write,
    commit,
    naming_errors,
    one_line,
    open_own,
    suppress_warnings,
)
from .boxes import Box, check_box
from .formats import FORMATS, format_of, module_of, open_file
from .images import Array, channels_of
from .limits import survey
from .lock import Lock

__all__ = ["Box", "Source", "Target", "create_target", "open_source", "source_of", "target_chunks"]


class Source:
    """An image that is read box by box; a context manager.

    Attributes
    ----------
    path : Path
    format : str
        That of the file; empty for an image that is to be made.
    shape, dtype, axes
        As of an ImageFile; alpha stays among the samples.
    chunks : tuple of int
        What is stored in one piece: boxes that are multiples of it are read fastest.
    has_alpha : bool
        Whether the last sample of a pixel is opacity.
    own : object
        What a target of the same format is made from.
    """

    def __init__(
        self,
        path: Path,
        format: str,
        pixels: Any,
        axes: str,
        file: OpenFile | None = None,
        has_alpha: bool = False,
        own: Any = None,
    ) -> None:
        self.path, self.format, self.axes = path, format, axes
        self.has_alpha, self.own, self._file = has_alpha, own, file
        self.shape: tuple[int, ...] = tuple(pixels.shape)
        self.dtype: np.dtype[Any] = pixels.dtype.newbyteorder("=")
        self.chunks: tuple[int, ...] = tuple(getattr(pixels, "chunks", None) or self.shape)
        self._pixels = pixels

    @property
    def channel_axis(self) -> int | None:
        """The axis of the channels, or None."""
        return channels_of(self.axes)

    @property
    def chunks_written(self) -> tuple[int, ...]:
        """What is written in one piece: of a Zarr the shard that holds several chunks."""
        return tuple(getattr(self._pixels, "shards", None) or self.chunks)

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
    hidden name if it was made with ``resume`` or ``keep``.

    Attributes
    ----------
    path : Path
        The name it will have.
    shape, dtype, chunks
        Boxes that are multiples of ``chunks`` can be written at once by many threads (and, to Zarr,
        by many processes) and are coded once.
    """

    def __init__(self, path: Path, pixels: Any, part: Path, log: Path, resume: bool) -> None:
        self.path, self._pixels = path, pixels
        self.shape: tuple[int, ...] = tuple(pixels.shape)
        self.dtype: np.dtype[Any] = pixels.dtype.newbyteorder("=")
        self.chunks: tuple[int, ...] = tuple(getattr(pixels, "chunks", None) or self.shape)
        self._part, self._log, self._resume = part, log, resume
        self._identity = _identity(part, log)
        self._lock: Lock | None = None
        self._over = False  # finished or abandoned
        self._done = {tuple(map(tuple, line["box"])) for line in lines_of(log) if "box" in line}

    def hold(self, lock: Lock) -> Target:
        """Keep a lock on the name until the target is finished, closed or abandoned."""
        self._lock = lock
        return self

    @property
    def key(self) -> object:
        """The key of the run whose boxes the log holds now; None if there is no log."""
        return next(iter(lines_of(self._log)), {}).get("key")

    @property
    def n_done(self) -> int:
        """How many boxes are written, those of other processes too."""
        return sum("box" in line for line in lines_of(self._log))

    def is_done(self, box: Box) -> bool:
        """Whether this very box was written, now or by a run before."""
        return box_key(box) in self._done

    def write(self, box: Box, pixels: Array) -> None:
        """Write the pixels of a box; boxes must not overlap."""
        check_box(box, self.shape)
        self._pixels[box] = np.asarray(pixels, dtype=self.dtype)
        self._keep_log(box)
        self._done.add(box_key(box))

    def _keep_log(self, box: Box) -> None:
        append_line(self._log, {"box": box_key(box)})

    def finish(self, note: str = "") -> None:
        """Give the file its name; it must be whole: every pixel written."""
        covered = sum(int(np.prod([b - a for a, b in key])) for key in self._done)
        if covered != int(np.prod(self.shape)):
            raise FileError(f"{self.path}: not all of it was written; give all boxes")
        self._check_identity()
        try:
            self._complete(note)
        except Exception as error:  # of the disk, or of tags that are damaged
            raise FileError(f"{self.path}: cannot be written: {one_line(error)}") from error
        self._check_identity()
        commit(self._part, Path(os.path.realpath(self.path)))
        self._log.unlink(missing_ok=True)
        self._over = True
        self.close()

    def _check_identity(self) -> None:
        """Refuse to name a file that has come into the place of the one that was written."""
        if _identity(self._part, self._log) != self._identity:
            raise FileError(
                f"{self.path}: another run has replaced what this one wrote; run it again alone"
            )

    def _complete(self, note: str) -> None:
        """Do what is left to do when all pixels are there."""

    def _let_go(self) -> None:
        """Close the files."""

    def close(self) -> None:
        """Let go of the files; what was written stays under its hidden name."""
        self._let_go()
        if self._lock is not None:
            self._lock.release()

    def abandon(self) -> None:
        """Remove what was written."""
        self._let_go()
        ours = _identity(self._part, self._log) == self._identity  # else they are another run's
        if ours and not self._over:
            _remove(self._part)
            _remove(self._log)
        self._over = True
        self.close()

    def __enter__(self) -> Target:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        whole = False
        try:
            if kind is None and not self._over:
                self.finish()
            whole = kind is None
        finally:
            if not whole and not self._resume:
                self.abandon()
            self.close()


def target_chunks(path: str | os.PathLike[str], source: Source) -> tuple[int, ...]:
    """Return what will be stored in one piece by the target of that name."""
    chunks = getattr(module_of(format_of(path)), "new_chunks", None)
    if source.format == "ZARR" or chunks is None:
        return source.chunks_written
    made: tuple[int, ...] = chunks(source.shape, source.axes)
    return made


def create_target(
    path: str | os.PathLike[str], source: Source, *, resume: bool = False, keep: bool = False,
    key: str = "",
) -> Target:  # fmt: skip
    """Make a TIFF, Zarr or .npy image like a source, to be written box by box.

    Parameters
    ----------
    path : path
        Its ending says the format.  TIFF from TIFF and Zarr from Zarr keep all metadata.
    source : Source
        Gives shape, dtype, axes and, in the same format, everything else.
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
    file = Path(path)
    final = Path(os.path.realpath(file))
    part, log, held = (
        final.with_name(f".{final.name[:100]}.{end}") for end in ("part", "part.log", "part.lock")
    )
    about = {"shape": list(source.shape), "dtype": source.dtype.str, "key": key}
    format = format_of(file)
    try:
        if not FORMATS[format].in_pieces:
            raise FileError(f"{format} cannot be written in pieces; use .tif, .zarr or .npy")
        module = module_of(format)
        lock = Lock(held)
        lines = lines_of(log) if resume and _is_own(log) and _is_own(part) else []
        afresh = not (lines and about.items() <= lines[0].items())
        try:
            if afresh:
                _remove(part)
                _remove(log)
                module.make_target(part, source)
            _begin(log, [about] if afresh else lines)
            with suppress_warnings():
                target: Target = module.open_target(file, part, log, resume or keep, source)
            return target.hold(lock)
        except BaseException:
            if afresh:
                _remove(part)
                _remove(log)
            lock.release()
            raise
    except FileError as error:
        raise FileError(f"{file}: {error}") from error
    except Exception as error:  # of the disk, or of a decoder that looks at the source's levels
        raise FileError(f"{file}: cannot be written: {one_line(error)}") from error


def open_part(part: Path) -> BinaryIO:
    """Open what was made, or left by a run before, for reading and writing."""
    return open(part, "r+b", opener=lambda _, flags: open_own(part, flags))


def reserve(handle: BinaryIO) -> None:
    """Take the space on disk now: a full disk is an error here, a crash in a memory map later."""
    handle.flush()
    with suppress(AttributeError):
        os.posix_fallocate(handle.fileno(), 0, os.fstat(handle.fileno()).st_size)


def _identity(part: Path, log: Path) -> tuple[object, ...] | None:
    """Return what distinguishes a file and its log from others of the same name; None if there is none.

    A file system may give a number again once its file is removed: so the log has one of its own.
    """
    try:
        about = part.stat()
    except FileNotFoundError:
        return None
    return about.st_dev, about.st_ino, next(iter(lines_of(log)), {}).get("run")


def box_key(box: Box) -> tuple[tuple[int, int], ...]:
    """Return a box as plain numbers."""
    return tuple((int(part.start), int(part.stop)) for part in box)


def _begin(log: Path, lines: Sequence[dict[str, Any]]) -> None:
    """Write a log that is this run's from now on: what it is, then what was done before."""
    first = {**lines[0], "run": secrets.token_hex(8)}
    with atomic_write(log, through_links=False) as handle:
        handle.write(b"".join(json.dumps(line).encode() + b"\n" for line in [first, *lines[1:]]))


def append_line(log: Path, line: dict[str, Any]) -> None:
    """Add a line to the log in one write, which many processes may do at once."""
    handle = open_own(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(handle, json.dumps(line).encode() + b"\n")
    finally:
        os.close(handle)


def lines_of(log: Path) -> list[dict[str, Any]]:
    """Return the lines of the log; the last may have been cut off."""
    if not log.exists():
        return []
    whole, _, _ = log.read_bytes().rpartition(b"\n")
    try:
        return [json.loads(line) for line in whole.splitlines()]
    except ValueError:
        return []


def _is_own(path: Path) -> bool:
    """Whether a file or folder is one that we made: no link, no second name, no link that leads out."""
    try:
        about = path.lstat()
        if stat.S_ISDIR(about.st_mode):
            survey(path)
            return True
    except (OSError, FileError):
        return False
    return stat.S_ISREG(about.st_mode) and about.st_nlink == 1


def _remove(path: Path) -> None:
    """Remove a file or folder that may not be there; of a link, the link."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
