"""NIfTI-1 and -2 in one file (.nii, .nii.gz), headers by nibabel: volumes and series of them.

All that lies before the voxels, header and extensions, comes back byte for byte, and with it affine, units
and what scanners and pipelines have written there.  Voxels that the header scales (scl_slope, scl_inter)
come as physical values and go back as they were stored.  There is no place for a note that would not
change the header, so none is kept.
"""

from __future__ import annotations

import gzip
import io
import math
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
from nibabel.nifti1 import Nifti1Header
from nibabel.nifti2 import Nifti2Header

from .base import DEFLATE, FileError, OpenFile, check_declared_size
from .images import Array, Details, ImageFile, as_integers, native

_SIZES = {348: Nifti1Header, 540: Nifti2Header}  # bytes of a header, which are its first number
_AFTER = 4  # bytes that say whether extensions follow a header
_AXES = "QQQTZYX"  # the last ones; NIfTI counts them from behind
_GZIP_LEVEL = 6


@dataclass(frozen=True)
class Stored:
    """How voxels are stored: what lies before them, dtype, factor and summand; the dtype of pixels."""

    prefix: bytes
    dtype: np.dtype[Any]
    scaling: tuple[float, float]
    pixels: np.dtype[Any]


def read(file: OpenFile) -> list[ImageFile]:
    """Read the volume, or the series."""
    packed = file.format == "NIFTI.GZ"
    with gzip.GzipFile(fileobj=file.handle) if packed else nullcontext(file.handle) as handle:
        start, header = _read_header(handle)
        shape, dtype = _shape(header), _dtype(header)
        n_bytes = math.prod(shape) * dtype.itemsize
        offset = float(header["vox_offset"]) or len(start) + _AFTER  # some writers leave it out
        if not (len(start) <= offset < 2**62 and offset == int(offset)):
            raise FileError(f"says that its voxels start at byte {offset:g}: damaged")
        check_declared_size(n_bytes, file.size, piece=int(offset), best=DEFLATE if packed else 1)
        prefix = start + _read_exactly(handle, int(offset) - len(start))
        stored = np.frombuffer(_read_exactly(handle, n_bytes), dtype).reshape(shape)
        handle.read(1)  # at its end gzip compares the checksum
    slope, inter = header.get_slope_inter()
    scaling = (1.0, 0.0) if slope is None else (float(slope), float(inter))
    pixels = _physical(native(stored), *scaling)
    details = Details(own=Stored(prefix, dtype, scaling, pixels.dtype))
    return [ImageFile(pixels, None, None, file.format, details, _AXES[-len(shape) :])]


def _read_header(handle: Any) -> tuple[bytes, Any]:
    """Return the bytes of the header and those numbers."""
    start = handle.read(4)
    size = int.from_bytes(start, "little")
    size = size if size in _SIZES else int.from_bytes(start, "big")
    if size not in _SIZES:
        raise FileError("is no NIfTI: its header has another size")
    start += _read_exactly(handle, size - 4)
    return start, _SIZES[size](start, check=False)


def _shape(header: Any) -> tuple[int, ...]:
    """Return the shape, x last."""
    ndim, *sizes = (int(n) for n in header["dim"])
    if not 1 <= ndim <= 7 or min(sizes[:ndim]) < 1:
        raise FileError(f"has a header with the dimensions {[ndim, *sizes]}: damaged")
    while ndim > 3 and sizes[ndim - 1] == 1:  # often a series of one
        ndim -= 1
    return tuple(reversed(sizes[: max(ndim, 2)])) if ndim > 1 else (1, sizes[0])


def _dtype(header: Any) -> np.dtype[Any]:
    try:
        dtype: np.dtype[Any] = header.get_data_dtype()
    except KeyError as error:
        raise FileError(f"has the unknown data type {error}") from error
    if dtype.kind not in "uif" or dtype.itemsize not in (1, 2, 4, 8):
        raise FileError(
            f"holds {dtype} values; save magnitudes or channels as integers or floats to 64 bits"
        )
    return dtype


def _read_exactly(handle: Any, n_bytes: int) -> bytes:
    """Return so many bytes, or say that they are not there."""
    data: bytes = handle.read(n_bytes)
    if len(data) < n_bytes:
        raise FileError(f"ends {n_bytes - len(data)} bytes too early; copy it again")
    return data


def _physical(stored: Array, slope: float, inter: float) -> Array:
    """Return the values that stored numbers stand for."""
    if (slope, inter) == (1.0, 0.0):
        return stored
    small = stored.dtype.kind in "ui" and stored.dtype.itemsize <= 2
    values = stored.astype(np.float64) * slope + inter
    if not np.abs(values).max() < (np.finfo(np.float32).max if small else np.inf):
        raise FileError(f"is scaled by {slope:g} beyond what floats can hold: damaged")
    return values.astype(np.float32) if small else values


def check_supported(image: ImageFile) -> None:
    """Raise FileError if NIfTI cannot hold the image."""
    if not isinstance(image.details.own, Stored) and image.channel_axis is not None:
        raise FileError("NIfTI holds no colours here; write to .tif or .npy")
    if image.pixels.ndim > len(_AXES):
        raise FileError(f"NIfTI holds 7 dimensions, got {image.pixels.ndim}; write to .npy")


def write(handle: BinaryIO, images: Sequence[ImageFile], format: str, note: str) -> None:
    """Write header, extensions and voxels."""
    (image,) = images
    own, packed = image.details.own, format == "NIFTI.GZ"
    prefix, stored = _coded(image, own) if isinstance(own, Stored) else _fresh(image)
    options: Any = {"fileobj": handle, "compresslevel": _GZIP_LEVEL, "mtime": 0}
    with gzip.GzipFile("", "wb", **options) if packed else nullcontext(handle) as place:
        place.write(prefix)
        place.write(np.ascontiguousarray(stored).view(np.uint8).data)


def _coded(image: ImageFile, own: Stored) -> tuple[bytes, Array]:
    """Return what lies before the voxels, and these; with another data type the header says so."""
    if image.pixels.dtype == own.pixels:
        slope, inter = own.scaling
        values = image.pixels
        if (slope, inter) != (1.0, 0.0):
            values = (values.astype(np.float64) - inter) / slope
            if own.dtype.kind != "f":
                return own.prefix, as_integers(np.nan_to_num(values), own.dtype)
        return own.prefix, values.astype(own.dtype)
    _, header = _read_header(io.BytesIO(own.prefix))
    header.set_data_dtype(image.pixels.dtype)
    header["scl_slope"], header["scl_inter"] = 1.0, 0.0
    rest = own.prefix[len(header.binaryblock) :]
    return header.binaryblock + rest, image.pixels.astype(header.get_data_dtype())


def _fresh(image: ImageFile) -> tuple[bytes, Array]:
    """Return a header for pixels of another format: voxels of one millimetre, nothing turned."""
    large = max(image.pixels.shape) > np.iinfo(np.int16).max
    header = (Nifti2Header if large else Nifti1Header)()
    header.set_data_dtype(image.pixels.dtype)
    header.set_data_shape(image.pixels.shape[::-1])
    header["vox_offset"] = len(header.binaryblock) + _AFTER
    header["magic"] = header.single_magic
    return header.binaryblock + bytes(_AFTER), image.pixels
