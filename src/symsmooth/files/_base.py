"""What every format shares: the picture as it was read, the one error, the safe way to write."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class FileError(ValueError):
    """A file that cannot be read or written; the message is one line and names the file."""


@dataclass(frozen=True, eq=False)
class ImageFile:
    """The pixels of a file and what is needed to write them back as they came.

    Attributes
    ----------
    pixels : ndarray
        In the file's own dtype (native byte order), alpha taken off.
    channel_axis : int or None
        The axis of ``pixels`` that holds the channels; None for grey pictures and volumes.
    alpha : ndarray or None
        Opacity, in the shape of ``pixels`` without channels; never denoised.
    format : str
        "PNG", "JPEG", "BMP", "WEBP", "TIFF" or "NPY".
    details : mapping
        What only the format itself understands (for TIFF its axes and photometric tags).
        This is the place for metadata: a format puts in what its writer will want back.
    """

    pixels: Array
    channel_axis: int | None
    alpha: Array | None
    format: str
    details: Mapping[str, Any] = field(default_factory=dict)

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
    def is_cmyk(self) -> bool:
        """Whether the four channels are inks, as JPEG and TIFF can have them."""
        inks = self.format == "JPEG" or self.details.get("photometric") == "separated"
        return inks and self.n_channels == 4

    @property
    def spatial(self) -> tuple[int, ...]:
        """Shape without the channels."""
        shape = self.channels_last.shape
        return shape if self.channel_axis is None else shape[:-1]


def native(pixels: Array) -> Array:
    """Return real numbers in native byte order, or say why they are not pixels."""
    if pixels.dtype.kind not in "uif":
        raise FileError(f"holds {pixels.dtype} values; save it as integers or floats")
    if pixels.size == 0:
        raise FileError(f"holds no pixel: its shape is {pixels.shape}")
    return np.array(pixels, dtype=pixels.dtype.newbyteorder("="), order="C")


def one_line(error: BaseException) -> str:
    """Return an exception's message on one line, or its name if it has none."""
    return " ".join(str(error).split()) or type(error).__name__


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file beside ``path`` that takes its place when all went well.

    Whatever goes wrong, Ctrl-C included, ``path`` is as it was and no temporary file is left.
    """
    final = Path(os.path.realpath(path))  # replace what a link points to, not the link
    temporary = final.with_name(f".{final.name[:100]}.{secrets.token_hex(6)}.part")
    try:
        with open(temporary, "xb+") as handle:
            yield handle
            handle.flush()
            os.fsync(handle.fileno())
        if final.exists():
            os.chmod(temporary, final.stat().st_mode & 0o7777)
        os.replace(temporary, final)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
