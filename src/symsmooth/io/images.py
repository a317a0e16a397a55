"""An image of a file: its pixels, what their axes are, and what is known of it beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .base import FileError

Array = NDArray[Any]

CHANNELS = "SC"  # letters of a channel axis: samples of a pixel, or planes


@dataclass(frozen=True)
class RawInfo:
    """What the pixels of a raw image mean."""

    # Which colour each pixel sees (symsmooth.raw.mosaic); None: all three, a linear picture.
    pattern: Array | None
    # The pixel without light: a tile (rows, columns) that repeats; for a linear picture (1, samples).
    black: Array
    white: float  # where pixels clip
    area: tuple[slice, slice]  # the part that sees light; pattern and black begin at its corner
    # NoiseProfile: pairs S, O of variance S x + O, x from 0 to 1; empty if the file has none.
    profile: tuple[float, ...] = ()

    @property
    def span(self) -> float:
        """White less black."""
        return self.white - float(self.black.mean())


@dataclass(frozen=True, eq=False)
class Ramp:
    """A palette whose numbers are intensities, as is known between the least and largest in use."""

    colours: Array  # uint8 (n, 3)
    first: int
    last: int

    def hold(self, numbers: Array) -> Array:
        """Return numbers between the first and the last."""
        return np.clip(numbers, self.first, self.last).astype(numbers.dtype, copy=False)

    def paint(self, numbers: Array) -> Array:
        """Return the colours, in a last axis, that numbers stand for."""
        return self.colours[self.hold(numbers)]


@dataclass(frozen=True, eq=False)
class Details:
    """What is known of an image beside its pixels; the first four several formats can hold."""

    exif: bytes | None = None
    icc: bytes | None = None
    xmp: bytes | None = None
    dpi: tuple[float, float] | None = None  # across, down
    orientation: int = 1  # of EXIF; pixels are upright
    inks: bool = False  # four channels are inks, as JPEG and TIFF can have them
    bilevel: bool = False  # the file has one bit a pixel, black or white; pixels are 0 and 255 then
    ramp: Ramp | None = None  # the palette of a grey picture in false colours
    from_palette: bool = False  # colours were numbers of another palette
    painted: int | None = None  # the axis of colours that were taken for those of a ramp
    raw: RawInfo | None = None  # what the pixels of a mosaic mean
    cards: str = ""  # the header of a FITS image
    n_parts: int = 1  # of a file that holds more than images
    frame: int | None = None  # the only one of a series that will be written
    span: float | None = None  # how far apart pixels can be, where they do not say that themselves
    own: Any = None  # what the writer of the same format alone understands: a class of its module

    def for_other_pixels(self) -> Details:
        """Return what holds for pixels of any dtype and shape."""
        return replace(
            self, bilevel=False, ramp=None, from_palette=False, painted=None, n_parts=1, own=None
        )


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
        Its name in ``formats.FORMATS``; any other for an image that comes from none of them.
    details : Details
        The metadata.
    axes : str
        A letter for each axis of ``pixels``: X, Y, Z, T, C or S (channels), Q (not known) and what
        else a TIFF may say.  Left empty, the last two are YX and all before them Q.
    """

    pixels: Array
    channel_axis: int | None
    alpha: Array | None
    format: str
    details: Details = field(default_factory=Details)
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
        return self.details.bilevel

    @property
    def ramp(self) -> Ramp | None:
        """The palette of a grey picture in false colours, else None."""
        return self.details.ramp if self.pixels.dtype.kind == "u" else None

    @property
    def is_cmyk(self) -> bool:
        """Whether the four channels are inks, as JPEG and TIFF can have them."""
        return (self.details.inks or self.format == "JPEG") and self.n_channels == 4

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


def as_integers(values: Array, dtype: np.dtype[Any]) -> Array:
    """Return values rounded and held within the limits of integers; those of 64 bits are no floats."""
    limits, whole = np.iinfo(dtype), np.rint(values)
    inside = np.clip(whole, limits.min, limits.max).astype(dtype.newbyteorder("="))
    return np.where(whole >= limits.max, limits.max, inside).astype(dtype)


def guess_channel_axis(shape: Sequence[int]) -> int | None:
    """Return the last axis if it looks like colour, else None: nobody has a volume three voxels wide."""
    return len(shape) - 1 if len(shape) in (3, 4) and shape[-1] == 3 else None
