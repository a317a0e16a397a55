"""What every file needs: one handle while it is read, one error, a safe way to write.  Without NumPy."""

from __future__ import annotations

import os
import secrets
import shutil
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

_AGAIN = "; if another program opens it, save it again there"
# What a decoder raises where a file leads it astray: its words are of its code, not of the file.
_OF_CODE = (AttributeError, TypeError, IndexError, NameError, AssertionError, ArithmeticError)
_DAMAGED = "what it says of itself does not fit together"
_QUIET: ContextVar[bool] = ContextVar("quiet", default=False)


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
