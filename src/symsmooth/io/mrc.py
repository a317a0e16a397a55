"""MRC (.mrc, .mrcs, .map) of electron microscopy, by the tables of mrcfile: pictures, stacks, volumes.

Header and extended header come back as they were, but for the statistics of the pixels, where they were
known, and a label with the note, where one is free.  The space group says what the third axis is: 0 a
stack of pictures, 1 depth, 401 and above a stack of volumes.  Files that are named .mrcs are stacks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, BinaryIO, Literal, NamedTuple

import numpy as np
from mrcfile.dtypes import HEADER_DTYPE
from mrcfile.utils import byte_order_from_machine_stamp, machine_stamp_from_byte_order

from .base import FileError, OpenFile, check_declared_size
from .images import Array, Details, ImageFile, native

_MODES = {0: "i1", 1: "i2", 2: "f4", 6: "u2", 12: "f2"}
_OTHERS = {3: "complex numbers", 4: "complex numbers", 101: "numbers of 4 bits"}
_STACK, _VOLUME = 0, 1  # space groups
_VOLUMES = range(401, 631)
_IMOD = b"IMOD", b"DOMI"  # a stamp; the number after it says whether bytes are signed
_IMOD_AT = 152
_SIGNED = 1
_VERSION = 20141  # of the format, with its labels and the mode of 16-bit floats
_LABELS, _WIDTH = 10, 80


class Stored(NamedTuple):
    """How pixels are stored: header and extended header, and their dtype."""

    prefix: bytes
    dtype: np.dtype[Any]


def read(file: OpenFile) -> list[ImageFile]:
    """Read the picture, stack or volume."""
    handle, size = file.handle, file.size
    start = handle.read(HEADER_DTYPE.itemsize)
    header = _parse(start)
    dtype, more = _dtype(header, start), int(header["nsymbt"])
    columns, rows, sections = (int(header[name]) for name in ("nx", "ny", "nz"))
    if min(columns, rows, sections) < 1 or more < 0:
        raise FileError(
            f"has a header with {columns} x {rows} x {sections} pixels and {more} bytes of "
            "extended header: damaged"
        )
    n_bytes = columns * rows * sections * dtype.itemsize
    if len(start) + more + n_bytes > size:
        raise FileError(f"claims {n_bytes} bytes of pixels in a file of {size}: damaged or cut off")
    check_declared_size(n_bytes, size)
    prefix = start + handle.read(more)
    stored = np.fromfile(handle, dtype, columns * rows * sections)
    shape, axes = _shape(header, (sections, rows, columns), file.path.suffix.lower() == ".mrcs")
    details = Details(own=Stored(prefix, dtype))
    return [ImageFile(native(stored.reshape(shape)), None, None, file.format, details, axes)]


def _parse(start: bytes) -> Any:
    """Return the header as a record, in the byte order that it has."""
    if len(start) < HEADER_DTYPE.itemsize:
        raise FileError("is cut off within its header; copy it again")
    header = np.frombuffer(start, HEADER_DTYPE)[0]
    try:
        order = byte_order_from_machine_stamp(header["machst"])
    except ValueError:  # some writers leave it out; there are few modes, all of them small
        order = "<" if 0 <= int(header["mode"]) < 2**16 else ">"
    return np.frombuffer(bytearray(start), HEADER_DTYPE.newbyteorder(order))[0]


def _order(header: Any) -> Literal["<", ">"]:
    """Return the byte order of a header: < or >."""
    return "<" if header.dtype["nx"] == np.dtype("<i4") else ">"


def _dtype(header: Any, start: bytes) -> np.dtype[Any]:
    mode = int(header["mode"])
    if mode not in _MODES:
        kind = _OTHERS.get(mode, f"pixels of the unknown mode {mode}")
        raise FileError(f"holds {kind}; save it with mode 1, 2 or 6 (newstack -mode 2)")
    if mode == 0 and start[_IMOD_AT : _IMOD_AT + 4] in _IMOD:
        flags = start[_IMOD_AT + 4 : _IMOD_AT + 8]
        signed = int.from_bytes(flags, "little" if _order(header) == "<" else "big") & _SIGNED
        return np.dtype("i1" if signed else "u1")
    return np.dtype(_MODES[mode]).newbyteorder(_order(header))


def _shape(header: Any, shape: tuple[int, ...], is_stack: bool) -> tuple[tuple[int, ...], str]:
    """Return shape and axes by the space group."""
    group, depth = int(header["ispg"]), int(header["mz"])
    sections, rows, columns = shape
    if group in _VOLUMES and depth > 0 and sections % depth == 0:
        return (sections // depth, depth, rows, columns), "QZYX"
    if group == _STACK or is_stack:
        return ((rows, columns), "YX") if sections == 1 else (shape, "QYX")
    return shape, "ZYX"


def check_supported(image: ImageFile) -> None:
    """Raise FileError if MRC cannot hold the image."""
    own = image.details.own
    as_it_was = isinstance(own, Stored) and own.dtype == image.pixels.dtype
    if not as_it_was and _mode(image.pixels.dtype) is None:
        raise FileError(
            "MRC holds int8, int16, uint16, float16 and float32, "
            f"got {image.pixels.dtype}; write to .tif or .npy"
        )
    if not isinstance(own, Stored) and (image.channel_axis is not None or image.pixels.ndim > 3):
        raise FileError("MRC holds pictures, stacks and volumes without colour; write to .tif")


def _mode(dtype: np.dtype[Any]) -> int | None:
    return next((mode for mode, name in _MODES.items() if np.dtype(name) == dtype), None)


def write(handle: BinaryIO, images: Sequence[ImageFile], format: str, note: str) -> None:
    """Write header, extended header and pixels."""
    (image,) = images
    own = image.details.own
    if isinstance(own, Stored):
        prefix, stored = own.prefix, own.dtype
        header = _parse(prefix[: HEADER_DTYPE.itemsize])
    else:
        prefix, header, stored = b"", _fresh(image), image.pixels.dtype
    if stored.newbyteorder("=") != image.pixels.dtype:
        stored = image.pixels.dtype.newbyteorder(_order(header))
        header["mode"] = _mode(image.pixels.dtype)
    _set_statistics(header, image.pixels)
    used = int(header["nlabl"])
    if note and 0 <= used < _LABELS:  # else no label is free
        header["label"][used] = note.encode("ascii", "replace")[:_WIDTH]
        header["nlabl"] = used + 1
    handle.write(header.tobytes())
    handle.write(prefix[HEADER_DTYPE.itemsize :])
    handle.write(np.ascontiguousarray(image.pixels, stored).view(np.uint8).data)


def _set_statistics(header: Any, pixels: Array) -> None:
    """Write least, largest, mean and deviation, unless the header says that they are not known."""
    values = pixels.astype(np.float64)
    if header["dmax"] >= header["dmin"]:
        header["dmin"], header["dmax"] = values.min(), values.max()
        if header["dmean"] >= min(header["dmin"], header["dmax"]):
            header["dmean"] = values.mean()
    if header["rms"] >= 0:
        header["rms"] = values.std()


def _fresh(image: ImageFile) -> Any:
    """Return a header for pixels of another format, of one angstrom each."""
    header = np.zeros(1, HEADER_DTYPE.newbyteorder("="))[0]
    shape = (1,) * (3 - image.pixels.ndim) + image.pixels.shape
    is_volume = "Z" in image.axes
    sections = shape[0] if is_volume else 1
    for letter, n, sampled in zip("zyx", shape, (sections, *shape[1:]), strict=True):
        header[f"n{letter}"], header[f"m{letter}"] = n, sampled
        header["cella"][letter] = sampled
    for angle in ("alpha", "beta", "gamma"):
        header["cellb"][angle] = 90.0
    header["mapc"], header["mapr"], header["maps"] = 1, 2, 3
    header["mode"] = _mode(image.pixels.dtype)
    header["ispg"] = _VOLUME if is_volume else _STACK
    header["map"], header["nversion"] = b"MAP ", _VERSION
    header["machst"] = machine_stamp_from_byte_order(_order(header))
    return header
