"""What every format shares: the picture as it was read, the one error, the safe way to write."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

CHANNELS = "SC"  # letters of a channel axis: samples of a pixel, or planes
_AGAIN = "if another program opens it, save it again there"
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
    """A file while it is read: opened once, and all that is read comes from its handle.

    Attributes
    ----------
    path : Path
    handle : binary file, or None for a Zarr, which is a folder
    format : str
        As of an ImageFile.
    parsed : object
        What the module of its format made of its directories or headers, for the next reader.
    """

    path: Path
    handle: Any
    format: str
    parsed: Any = None

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


@dataclass(frozen=True, eq=False)
class ImageFile:
    """The pixels of one image of a file and what is needed to write them back as they came.

    Attributes
    ----------
    pixels : ndarray
        In the file's own dtype (native byte order), alpha taken off.
    channel_axis : int or None
        The axis of ``pixels`` that holds the channels; None for grey pictures and volumes.
    alpha : ndarray or None
        Opacity, in the shape of ``pixels`` without channels; never denoised.
    format : str
        "PNG", "JPEG", "BMP", "WEBP", "TIFF", "FITS", "ZARR", "NPY", "NIFTI",
        "NIFTI.GZ", "MRC", "DNG" or "RAW".
    details : mapping
        The metadata.  What other formats can hold too has one name in all: "exif", "icc", "xmp"
        (bytes), "dpi" (across, down), "orientation" (of EXIF; ``pixels`` are upright).  The rest is
        understood by the writer of the same format alone.
    axes : str
        A letter for each axis of ``pixels``: X, Y, Z, T, C or S (channels), Q (not known) and what
        else a TIFF may say.  Left empty, the last two are YX and all before them Q.
    """

    pixels: Array
    channel_axis: int | None
    alpha: Array | None
    format: str
    details: Mapping[str, Any] = field(default_factory=dict)
    axes: str = ""

    def __post_init__(self) -> None:
        if not self.axes:
            axes = plain_axes(self.pixels.ndim, self.channel_axis)
            object.__setattr__(self, "axes", axes)

    @property
    def channels_last(self) -> Array:
        """The pixels with the channel axis, if there is one, moved to the end."""
        if self.channel_axis is None:
            return self.pixels
        return np.moveaxis(self.pixels, self.channel_axis, -1)

    @property
    def n_channels(self) -> int:
        """Number of channels without alpha; 1 for grey."""
        return 1 if self.channel_axis is None else self.pixels.shape[self.channel_axis]

    @property
    def is_bilevel(self) -> bool:
        """Whether the file has one bit a pixel, black or white; ``pixels`` are 0 and 255 then."""
        return bool(self.details.get("bilevel"))

    @property
    def ramp(self) -> Any:
        """The palette of a grey picture in false colours, else None."""
        return self.details.get("ramp") if self.pixels.dtype.kind == "u" else None

    @property
    def is_cmyk(self) -> bool:
        """Whether the four channels are inks, as JPEG and TIFF can have them."""
        inks = self.format == "JPEG" or self.details.get("photometric") == "separated"
        return inks and self.n_channels == 4

    @property
    def spatial(self) -> tuple[int, ...]:
        """Shape without the channels."""
        shape = self.channels_last.shape
        return shape if self.channel_axis is None else shape[:-1]

    def with_channels(self, axis: int | None) -> ImageFile:
        """Return the same pixels with another axis, or none, called that of the channels."""
        ndim = self.pixels.ndim
        if self.format in ("NPY", "ZARR", "") and self.axes == plain_axes(ndim, self.channel_axis):
            return replace(self, channel_axis=axis, axes="")  # nobody had named them
        letters = ["Q" if letter in CHANNELS else letter for letter in self.axes]
        if axis is not None:
            letters[axis] = "C"
            rest = [i for i, letter in enumerate(letters) if letter != "C"]
            for i, letter in zip(rest[-2:], "YX", strict=False):
                letters[i] = letter
        return replace(self, channel_axis=axis, axes="".join(letters))


def plain_axes(ndim: int, channel_axis: int | None) -> str:
    """Return the letters of axes nobody named: YX at the end, Q before, C for the channels."""
    spatial = ndim - (channel_axis is not None)
    axes = ("Q" * spatial + "YX")[-spatial:]
    if channel_axis is None:
        return axes
    at = channel_axis % ndim
    return axes[:at] + "C" + axes[at:]


def channels_of(axes: str) -> int | None:
    """Return the axis of the channels by its letter: samples of a pixel before planes."""
    return next((axes.index(letter) for letter in CHANNELS if letter in axes), None)


def native(pixels: Array) -> Array:
    """Return real numbers in native byte order, or say why they are not pixels."""
    if pixels.dtype.kind not in "uif":
        raise FileError(f"holds {pixels.dtype} values; save it as integers or floats")
    if pixels.size == 0:
        raise FileError(f"holds no pixel: its shape is {pixels.shape}")
    return np.array(pixels, dtype=pixels.dtype.newbyteorder("="), order="C")


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
        raise FileError(f"{file}: cannot be read: {why}; {_AGAIN}") from error


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


def open_own(path: Path, flags: int) -> int:
    """Open a file of our own making, and return its number.

    A link, something that is no file, or a file with a second name was put there by somebody else:
    whatever is written to it would change another file.
    """
    flags |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    flags |= getattr(os, "O_NONBLOCK", 0)  # a pipe must not keep us waiting
    try:
        handle = os.open(path, flags, 0o644)
    except OSError as error:
        if path.is_symlink() or error.errno == errno.ENXIO:
            raise FileError(_not_ours(path)) from error
        raise
    about = os.fstat(handle)
    if not stat.S_ISREG(about.st_mode) or about.st_nlink > 1 or path.is_symlink():
        os.close(handle)
        raise FileError(_not_ours(path))
    return handle


def _not_ours(path: Path) -> str:
    return f"{path.name} beside it is a link, or no file of its own; remove it"


@contextmanager
def atomic_write(path: Path, *, through_links: bool = True) -> Iterator[BinaryIO]:
    """Open a temporary file beside ``path`` that takes its place when all went well.

    Whatever goes wrong, Ctrl-C included, ``path`` is as it was and no temporary file is left.
    With ``through_links`` a link stays, and what it points to is replaced; else the link is.
    """
    final = Path(os.path.realpath(path)) if through_links else path
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
