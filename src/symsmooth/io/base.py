"""What every file needs: one handle while it is read, one error, limits, a safe way to write.  No NumPy.

What files say of themselves is checked before anything is allocated, unpacked or opened for it.  Every
format comes here, whether it is read whole or box by box: how large pixels may be for the size of the file,
how many pieces they may be stored in, which files belong to a store.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import stat
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

_AGAIN = "; if another program opens it, save it again there"
# What a decoder raises where a file leads it astray: its words are of its code, not of the file.
_OF_CODE = (AttributeError, TypeError, IndexError, NameError, AssertionError, ArithmeticError)
_DAMAGED = "what it says of itself does not fit together"
_QUIET: ContextVar[bool] = ContextVar("quiet", default=False)
_LIKELY_FROM = 2**25  # bytes from which the declared size must be likely for the size of the file
DEFLATE = 1100  # how much smaller it may be: deflate reaches 1032
_LARGEST_PIECE = 2**30  # bytes of a tile, strip or chunk, of which a few are in memory at a time
_FEW = 2000  # pieces from which some share of them must be there
_PIECES_A_FILE = 100  # the others may be empty
_INDEX = 16  # bytes of a shard for each chunk in it
_MAX_SCANS = 100  # of a progressive JPEG; encoders make about ten
_MAX_PARTS = 1000  # headers of a FITS; each takes about a millisecond to read
# In a JPEG: not a stuffed byte, not a restart.  (With a plain byte first it is found 20 times as fast.)
_MARKER = re.compile(rb"\xff\xff*([^\x00\xd0-\xd7\xff])")
_LIMIT: ContextVar[list[int] | None] = ContextVar("limit", default=None)  # bytes in all, bytes left


class FileError(ValueError):
    """A file that cannot be read or written; the message is one line and names the file.

    ``options`` are those that it is about, for surfaces that name their controls: "volume".
    """

    def __init__(self, message: str, *options: str) -> None:
        super().__init__(message)
        self.options = options


@dataclass(eq=False)
class OpenFile:
    """A file while it is read: opened once, and all that is read comes from its handle."""

    path: Path
    handle: Any  # None for a Zarr, which is a folder
    format: str  # as of an ImageFile
    parsed: Any = None  # what the module of its format made of its headers, for the next reader

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return os.fstat(self.handle.fileno()).st_size

    def close(self) -> None:
        """Close the file; what was parsed must not be used any more."""
        if self.format == "TIFF" and self.parsed is not None:
            self.parsed.close()
        self.parsed = None
        if self.handle is not None:
            self.handle.close()

    def __enter__(self) -> OpenFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def one_line(error: BaseException) -> str:
    """Return an exception's message on one line, or its name if it has none."""
    if isinstance(error, KeyError):
        return f"{error} is missing or unknown"
    if type(error).__name__ == "UnidentifiedImageError":  # Pillow's: it says which handle it had
        return "it is damaged at its beginning"
    if isinstance(error, OSError) and error.strerror:  # without its number and our hidden names
        return error.strerror
    return " ".join(str(error).split()) or type(error).__name__


class _WhileQuiet:
    """A pattern for a filter of warnings that matches within :func:`suppress_warnings` only."""

    def match(self, text: str) -> bool:
        """Whether a warning is one of a decoder's."""
        return _QUIET.get()


_IGNORED: Any = ("ignore", _WhileQuiet(), Warning, None, 0)
_FILTERS = threading.Lock()


def _put_first(entry: Any) -> None:
    """Move a filter of warnings before those that others have added since."""
    with _FILTERS:
        filters: Any = warnings.filters
        if not filters or filters[0] is not entry:
            with suppress(ValueError):
                filters.remove(entry)
            filters.insert(0, entry)


@contextmanager
def naming_errors(file: Path) -> Iterator[None]:
    """Make whatever goes wrong while a file is read a FileError of one line that names it."""
    try:
        with suppress_warnings():
            yield
    except FileError as error:
        raise FileError(f"{file}: {error}", *error.options) from error
    except FileNotFoundError as error:
        raise FileError(f"{file}: no such file") from error
    except MemoryError as error:
        raise FileError(f"{file}: claims more pixels than memory can hold") from error
    except Exception as error:  # a damaged file can raise anything in a decoder
        why = _DAMAGED if isinstance(error, _OF_CODE) else one_line(error)
        of_disk = isinstance(error, OSError) and error.strerror
        raise FileError(f"{file}: cannot be read: {why}{'' if of_disk else _AGAIN}") from error


@contextmanager
def naming_write_errors(file: Path) -> Iterator[None]:
    """Make whatever goes wrong while a file is written a FileError of one line that names it."""
    try:
        with suppress_warnings():
            yield
    except Exception as error:
        remedy = "; choose another place for it" if isinstance(error, OSError) else ""
        raise FileError(f"{file}: cannot be written: {one_line(error)}{remedy}") from error


def check_place(file: Path) -> None:
    """Refuse a name in a folder that is not there, or cannot be written to."""
    if not file.parent.is_dir():
        raise FileError(f"{file}: there is no folder {file.parent}; make it first")
    if not os.access(file.parent, os.W_OK):
        raise FileError(f"{file}: the folder {file.parent.resolve()} cannot be written to")


@contextmanager
def suppress_warnings() -> Iterator[None]:
    """Keep a decoder's warnings from the user: what matters is raised as an error.

    The filters of warnings belong to the whole process.  They are not swapped here, which threads
    would undo for each other: one filter stays among them and looks at the thread that warns (and
    those that work for it: context variables follow tasks of asyncio).
    """
    if getattr(sys.flags, "context_aware_warnings", False):  # Python 3.14: each thread has its own
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
        return
    _put_first(_IGNORED)
    token = _QUIET.set(True)
    try:
        yield
    finally:
        _QUIET.reset(token)


def temporary_name(final: Path) -> Path:
    """Return a hidden name beside a file that no other run takes."""
    return final.with_name(f".{final.name[:100]}.{secrets.token_hex(6)}.part")


@contextmanager
def atomic_write(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file beside ``path`` that takes its place when all went well.

    Whatever goes wrong, Ctrl-C included, ``path`` is as it was and no temporary file is left.
    A link stays, and what it points to is replaced.
    """
    final = Path(os.path.realpath(path))
    temporary = temporary_name(final)
    try:
        with open(temporary, "xb+") as handle:
            yield handle
            handle.flush()
            os.fsync(handle.fileno())
        commit(temporary, final)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Give a temporary folder beside ``path`` that takes its place when all went well."""
    final = Path(os.path.realpath(path))
    temporary = temporary_name(final)
    try:
        temporary.mkdir()
        yield temporary
        commit(temporary, final)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def commit(temporary: Path, final: Path) -> None:
    """Give a finished file or folder its name; a file keeps the mode of the one it replaces."""
    if not temporary.is_dir():
        if final.exists():
            os.chmod(temporary, final.stat().st_mode & 0o7777)
        os.replace(temporary, final)
        return
    old = temporary_name(final)
    if final.exists():
        os.replace(final, old)  # a folder cannot be replaced in one step
    try:
        os.replace(temporary, final)
    except BaseException:
        if old.exists():
            os.replace(old, final)
        raise
    shutil.rmtree(old, ignore_errors=True)


@contextmanager
def limit_decoded_size(n_bytes: int) -> Iterator[None]:
    """Refuse, in this thread, files whose pixels would take more, before they are unpacked.

    Parameters
    ----------
    n_bytes : int
        Bytes of all pixels that are read within.

    Examples
    --------
    >>> import numpy as np, tempfile, os
    >>> from symsmooth.io import read_image
    >>> path = os.path.join(tempfile.mkdtemp(), "a.npy")
    >>> np.save(path, np.zeros((4, 5)))
    >>> with limit_decoded_size(160):
    ...     read_image(path).pixels.shape
    (4, 5)
    """
    token = _LIMIT.set([n_bytes, n_bytes])
    try:
        yield
    finally:
        _LIMIT.reset(token)


def check_declared_size(
    n_bytes: int, stored: int, *, piece: int = 0, whole: bool = True, best: int = DEFLATE
) -> None:
    """Refuse pixels that cannot come from a file of that size, or that memory cannot hold.

    ``stored`` is the size of the file, or of all files of a store; ``piece`` the bytes of the largest
    tile, strip or chunk once it is unpacked, which may reach over the image; with ``whole`` all pixels
    will be in memory, and not only some pieces; ``best`` is how much smaller than its pixels a file of
    this format can be.
    """
    budget = _LIMIT.get()
    if whole and budget is not None:
        budget[1] -= n_bytes
        if budget[1] < 0:
            raise FileError(
                f"unpacks to more than the {budget[0] / 1e6:.0f} MB of pixels allowed here; cut it"
            )
    for claimed in (n_bytes, piece):
        if claimed > max(_LIKELY_FROM, best * stored):
            raise FileError(
                f"claims {claimed} bytes of pixels in a file of {stored}: damaged or empty"
            )
    if not whole and piece > _LARGEST_PIECE:
        raise FileError(f"is stored in pieces of {piece} bytes; store it in smaller ones")
    if whole and max(n_bytes, piece) > memory():
        raise FileError(
            f"holds {n_bytes / 2**30:.1f} GB of pixels, more than memory; cut it, or make it a Zarr"
        )


def check_pieces(count: int, files: int, stored: int, *, sharded: bool) -> None:
    """Refuse a store that claims far more chunks than it has files (or room in shards) for."""
    room = stored // _INDEX if sharded else files
    if count > max(_FEW, _PIECES_A_FILE * room):
        raise FileError(f"claims {count} chunks and has {files} files of {stored} bytes: damaged")


def check_scans(jpeg: bytes) -> None:
    """Refuse a JPEG that paints its picture over and over: each scan takes as long as a picture."""
    at, scans = 2, 0
    while found := _MARKER.search(jpeg, at):
        marker = found[1][0]
        if marker == 0xD9:  # the end; another picture may follow
            return
        scans += marker == 0xDA
        if scans > _MAX_SCANS:
            raise FileError(
                f"has more than {_MAX_SCANS} scans of one picture: damaged; save it again"
            )
        size = int.from_bytes(jpeg[found.end() : found.end() + 2], "big")
        at = found.end() + (max(size, 2) if marker != 0x01 else 0)


def check_next_part(number: int, start: int, end: int, before: int) -> None:
    """Refuse a part of a file that does not lie behind the end of the one before, or is one of too many."""
    if start < before or end <= start:
        raise FileError(f"says that its part {number + 1} does not follow the one before: damaged")
    if number >= _MAX_PARTS:
        raise FileError(
            f"has more than {_MAX_PARTS} parts; take those you need to a file of their own"
        )


Survey = dict[str, tuple[int, int]]  # folder below the root: number and bytes of the files in it


def survey(root: Path) -> Survey:
    """Count the files of a store; refuse what is no file or folder, and links that lead out of it.

    A folder may not be a link at all: it would be another name of what is elsewhere in the store.
    """
    top = os.path.realpath(root)
    found: Survey = {}
    waiting = [""]
    while waiting:
        below = waiting.pop()
        files = stored = 0
        with os.scandir(os.path.join(top, below)) as entries:
            for entry in entries:
                name = f"{below}{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(f"{name}/")
                    continue
                if entry.is_symlink():
                    _check_link(top, name)
                about = entry.stat()
                if not stat.S_ISREG(about.st_mode):
                    raise FileError(f"holds {name}, which is not a regular file; remove it")
                files, stored = files + 1, stored + about.st_size
        found[below] = files, stored
    return found


def _check_link(top: str, name: str) -> None:
    """Refuse a link to a folder, to nothing, or to a file that is not in the store."""
    place = os.path.realpath(os.path.join(top, name))
    if not os.path.exists(place):
        raise FileError(f"holds a link that leads nowhere, {name}; remove it")
    if os.path.isdir(place) or not Path(place).is_relative_to(top):
        raise FileError(f"holds a link, {name}, to {place}; put a copy in its place (cp -rL)")


def amount(found: Survey, name: str) -> tuple[int, int]:
    """Return number and bytes of the files of one array, by its name in the store."""
    start = f"{name}/" if name else ""
    parts = [part for below, part in found.items() if below.startswith(start)]
    return sum(files for files, _ in parts), sum(stored for _, stored in parts)


def name_inside(root: Path, name: object) -> str:
    """Return a name that a store gives to one of its arrays, if it stays inside the store."""
    path = PurePosixPath(str(name))
    top = Path(os.path.realpath(root))
    place = Path(os.path.realpath(top / path))
    plain = isinstance(name, str) and ".." not in path.parts and not path.is_absolute()
    if not plain or place == top or not place.is_relative_to(top):
        raise FileError(
            f"names an array {name!r}, which is not a place inside it; correct the name"
        )
    return str(path)


def memory() -> int:
    """Return the bytes of memory of this machine, or a guess where that is not known."""
    with suppress(AttributeError, ValueError, OSError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return 16 * 2**30
