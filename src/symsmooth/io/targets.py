"""Images that are written box by box, under a hidden name until they are whole.

Beside the hidden file is its log: a first line that says what the file is, then a line for each box
that is done.  A box is logged after its pixels are with the operating system; so whatever a killed
process leaves, the boxes in the log are right.
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
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from .base import Array, FileError, atomic_write, commit, one_line, open_own
from .boxes import Box, check_box
from .formats import module_of
from .ifd import add_software
from .limits import survey
from .lock import Lock
from .pyramid import build

if TYPE_CHECKING:
    from .sources import Source

_COPIED = 2**24  # bytes of a skeleton that are copied at a time


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
        return _key(box) in self._done

    def write(self, box: Box, pixels: Array) -> None:
        """Write the pixels of a box; boxes must not overlap."""
        check_box(box, self.shape)
        self._pixels[box] = np.asarray(pixels, dtype=self.dtype)
        self._keep_log(box)
        self._done.add(_key(box))

    def _keep_log(self, box: Box) -> None:
        append(self._log, {"box": _key(box)})

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
            remove(self._part)
            remove(self._log)
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


class NpyTarget(Target):
    """A .npy file, memory-mapped."""

    def _complete(self, note: str) -> None:
        self._pixels.flush()


class TiffTarget(Target):
    """A TIFF: a copy of the source's skeleton, or a plain tiled file, with segments written into it."""

    def __init__(self, path: Path, part: Path, log: Path, resume: bool, how: str) -> None:
        from .segments import Segments
        from .tiff_checks import open_tiff, whole_series

        with ExitStack() as opened:
            self._handle = opened.enter_context(_open_part(part))
            self._tiff = opened.enter_context(open_tiff(self._handle))
            self._series, self._how = whole_series(self._tiff)[0], how
            segments = Segments(self._series, self._handle, blank=True)
            for line in lines_of(log):
                segments.moved |= {(p, i): (at, n) for p, i, at, n in line.get("moved", [])}
            self._logged = set(segments.moved.items())
            super().__init__(path, segments, part, log, resume)
            opened.pop_all()  # closed when finished or abandoned

    def _keep_log(self, box: Box) -> None:
        """Say where segments went before saying that the box is done."""
        with self._pixels._lock:
            self._handle.flush()
            now = set(self._pixels.moved.items())
            moved = [[*key, *place] for key, place in sorted(now - self._logged)]
            self._logged = now
            append(self._log, {"moved": moved, "box": _key(box)})

    def _complete(self, note: str) -> None:
        from .segments import Segments

        self._pixels.finish()
        above = self._pixels
        for level in self._series.levels[1:]:
            segments = Segments(level, self._handle, blank=True)
            build(above, segments, self._how)  # type: ignore[arg-type]
            segments.finish()
            above = segments
        if note:
            add_software(self._handle, note)
        self._handle.flush()
        os.fsync(self._handle.fileno())
        self._let_go()

    def _let_go(self) -> None:
        self._tiff.close()
        self._handle.close()


class ZarrTarget(Target):
    """A Zarr store.  It may be sent to other processes that see the same folder, and written there."""

    def __init__(
        self, path: Path, part: Path, log: Path, resume: bool, levels: Sequence[str], how: str
    ) -> None:
        self._levels, self._how = levels, how
        pixels = module_of("ZARR").open_array(part, levels[0], "r+")
        super().__init__(path, pixels, part, log, resume)
        self.chunks = tuple(pixels.shards or pixels.chunks)

    def __reduce__(self) -> tuple[Any, ...]:
        place = (self.path, self._part, self._log, self._resume)
        return ZarrTarget, (*place, self._levels, self._how)

    def finish(self, note: str = "") -> None:
        """As :meth:`Target.finish`; boxes that other processes wrote count."""
        lines = lines_of(self._log)
        self._done |= {tuple(map(tuple, line["box"])) for line in lines if "box" in line}
        super().finish(note)

    def _complete(self, note: str) -> None:
        zarr = module_of("ZARR")
        zarr.build_levels(self._part, self._levels, self._how)
        if note:
            zarr.add_note(self._part, note)


def _make_npy(part: Path, source: Source) -> None:
    with open(part, "xb") as handle:
        module_of("NPY").make_empty(handle, source.shape, source.dtype)
        _reserve(handle)


def _make_tiff(part: Path, source: Source) -> None:
    from .segments import can_rewrite, gaps
    from .tiff import empty

    series = source.series
    between = None
    if series is not None and all(map(can_rewrite, series.levels)):
        with open(source.path, "rb") as original:
            between = gaps(series.levels, original, source.path.stat().st_size)
    with open(part, "xb") as handle:
        if between is None:
            empty(handle, source.shape, source.dtype, source.axes)
        else:
            with open(source.path, "rb") as original:
                handle.truncate(source.path.stat().st_size)
                for start, end in between:
                    original.seek(start)
                    handle.seek(start)
                    while start < end:
                        start += handle.write(original.read(min(end - start, _COPIED)))
        _reserve(handle)


def _make_zarr(part: Path, source: Source) -> None:
    zarr = module_of("ZARR")
    part.mkdir()
    if source.format == "ZARR":
        zarr.copy_store(source.path, part, source.level_names)
    else:
        zarr.create(part, source.shape, source.dtype, source.axes)


def _open_zarr_target(file: Path, part: Path, log: Path, resume: bool, source: Source) -> Target:
    how = module_of("ZARR").pyramid(source.levels)
    return ZarrTarget(file, part, log, resume, source.level_names, how)


def _open_tiff_target(file: Path, part: Path, log: Path, resume: bool, source: Source) -> Target:
    from .tiff import pyramid

    how = "mean" if source.series is None else pyramid(source.series)
    target = TiffTarget(file, part, log, resume, how)
    if (target.shape, target.dtype) != (source.shape, source.dtype):
        target.close()
        raise FileError("the input stores pixels in the place of its metadata: damaged")
    return target


def _open_npy_target(file: Path, part: Path, log: Path, resume: bool, source: Source) -> Target:
    with _open_part(part) as handle:
        return NpyTarget(file, module_of("NPY").memory_map(handle), part, log, resume)


MAKERS: dict[str, tuple[Any, Any]] = {
    "NPY": (_make_npy, _open_npy_target),
    "TIFF": (_make_tiff, _open_tiff_target),
    "ZARR": (_make_zarr, _open_zarr_target),
}


def _open_part(part: Path) -> BinaryIO:
    """Open what was made, or left by a run before, for reading and writing."""
    return open(part, "r+b", opener=lambda _, flags: open_own(part, flags))


def _reserve(handle: BinaryIO) -> None:
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


def _key(box: Box) -> tuple[tuple[int, int], ...]:
    """Return a box as plain numbers."""
    return tuple((int(part.start), int(part.stop)) for part in box)


def begin(log: Path, lines: Sequence[dict[str, Any]]) -> None:
    """Write a log that is this run's from now on: what it is, then what was done before."""
    first = {**lines[0], "run": secrets.token_hex(8)}
    with atomic_write(log, through_links=False) as handle:
        handle.write(b"".join(json.dumps(line).encode() + b"\n" for line in [first, *lines[1:]]))


def append(log: Path, line: dict[str, Any]) -> None:
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


def is_own(path: Path) -> bool:
    """Whether a file or folder is one that we made: no link, no second name, no link that leads out."""
    try:
        about = path.lstat()
        if stat.S_ISDIR(about.st_mode):
            survey(path)
            return True
    except (OSError, FileError):
        return False
    return stat.S_ISREG(about.st_mode) and about.st_nlink == 1


def remove(path: Path) -> None:
    """Remove a file or folder that may not be there; of a link, the link."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
