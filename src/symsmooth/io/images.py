"""An image of a file: its pixels, what their axes are, what is known of it beside them, and how it is cut.

A palette may be a ramp: a grey picture that is shown in false colours, as ImageJ's tables do.  The number
of a colour is an intensity if colours follow each other as on a way that leads from dark to bright, or from
bright to dark, without turning.  Then the numbers are what was measured: they are read, denoised and
written, and the palette stays.

An image of many axes is cut into pictures and volumes that are denoised one by one.  Channels stay
together.  Height and width are always there; depth (Z) makes a volume, so do other axes if asked for.
Time, pages and axes nobody named make stacks: one piece for each place along them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .base import FileError

Array = NDArray[Any]

DTYPES = ("uint8", "uint16", "uint32", "int8", "int16", "int32", "float16", "float32", "float64")
CHANNELS = "SC"  # letters of a channel axis: samples of a pixel, or planes
_LUMINANCE = np.array([0.299, 0.587, 0.114])
# Tables of ImageJ and Matplotlib that grow in brightness fall back by 0.5 and wind 2.4 times the way at
# most; palettes of photographs, sorted by brightness, wind 9 times and more.
_MAX_FALL = 2.0  # of luminance, in 0 to 255
_MAX_WINDING = 4.0
_MIN_COLOURS = 16  # drawings have fewer
_MAX_COLOURS = 256  # of a ramp of 8 bits
_SAMPLE = 20_000  # pixels that are looked at first
Third = Literal["auto", "none", "volume", "time"]
_UNNAMED = "QI"  # axes of stacks and pages that may be anything


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

    @property
    def size(self) -> str:
        """Width x height (x depth) in words."""
        return "x".join(str(n) for n in reversed(self.spatial))

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

    def written_like(self, dtype: str) -> ImageFile:
        """Return what it will be written as; pixels of another dtype than its own are yet to come."""
        if dtype in ("", self.pixels.dtype.name):
            return self
        if self.alpha is not None:
            raise FileError(
                "the file has opacity, which keeps its dtype; leave the dtype out", "dtype"
            )
        pixels = np.broadcast_to(np.zeros((), dtype), self.pixels.shape)
        return replace(self, pixels=pixels, format="", details=self.details.for_other_pixels())

    def written(self, dtype: str, pixels: Array) -> ImageFile:
        """Return it with other pixels, as it is written."""
        like = self.written_like(dtype)
        return replace(like, pixels=rounded(pixels, like.pixels.dtype))


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


def native(pixels: Array, *, copy: bool | None = True) -> Array:
    """Return real numbers in native byte order, or say why they are not pixels; a copy, or if need be."""
    if pixels.dtype.kind not in "uif":
        raise FileError(f"holds {pixels.dtype} values; save it as integers or floats")
    if pixels.size == 0:
        raise FileError(f"holds no pixel: its shape is {pixels.shape}")
    return np.array(pixels, dtype=pixels.dtype.newbyteorder("="), order="C", copy=copy)


def as_integers(values: Array, dtype: np.dtype[Any]) -> Array:
    """Return values rounded and held within the limits of integers; those of 64 bits are no floats."""
    limits, whole = np.iinfo(dtype), np.rint(values)
    inside = np.clip(whole, limits.min, limits.max).astype(dtype.newbyteorder("="))
    return np.where(whole >= limits.max, limits.max, inside).astype(dtype)


def guess_channel_axis(shape: Sequence[int]) -> int | None:
    """Return the last axis if it looks like colour, else None: nobody has a volume three voxels wide."""
    return len(shape) - 1 if len(shape) in (3, 4) and shape[-1] == 3 else None


def working_dtype(own: np.dtype[Any], asked: str) -> np.dtype[Any]:
    """Return the dtype in which pixels are denoised: a float if another than their own is asked for."""
    return own if asked in ("", own.name) else np.result_type(own, np.float32)


def rounded(pixels: Any, dtype: np.dtype[Any]) -> Any:
    """Return pixels in a dtype, held within its limits; integers are rounded, what is missing is 0."""
    if pixels.dtype == dtype:
        return pixels
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            return pixels.astype(dtype)
    limits = np.iinfo(dtype)
    whole = np.nan_to_num(np.rint(pixels.astype(np.float64)), posinf=np.inf, neginf=-np.inf)
    return np.clip(whole, limits.min, limits.max).astype(dtype)


def find_ramp(numbers: Array, colours: Array) -> Ramp | None:
    """Return the palette (n, 3) of a picture if it is a ramp, as far as the picture uses it, else None."""
    first, last = int(numbers.min()), int(numbers.max())
    if last >= len(colours):
        return None
    used = colours[first : last + 1].astype(np.float64)
    if len(np.unique(used, axis=0)) < _MIN_COLOURS:
        return None
    brightness = used @ _LUMINANCE
    if brightness[-1] < brightness[0]:
        brightness = -brightness
    fall = np.maximum.accumulate(brightness) - brightness
    way = float(np.linalg.norm(np.diff(used, axis=0), axis=1).sum())
    if fall.max() > _MAX_FALL or way > _MAX_WINDING * np.linalg.norm(used[-1] - used[0]):
        return None
    return Ramp(colours, first, last)


def unpainted(image: ImageFile) -> ImageFile:
    """Return a picture that was painted with the colours of a ramp as the grey one it is, else itself.

    Screenshots and exports of microscopes are such: 8 bits in RGB, but not more than 256 colours, which
    follow each other from dark to bright.  :func:`painted` gives them their colours back.
    """
    axis, pixels = image.channel_axis, image.pixels
    if axis is None or pixels.dtype != np.uint8 or pixels.shape[axis] != 3 or pixels.ndim != 3:
        return image
    last = np.moveaxis(pixels, axis, -1)
    flat = last.reshape(-1, 3)
    sample = np.unique(_codes(flat[:: max(1, len(flat) // _SAMPLE)]))
    if sample.size > _MAX_COLOURS or sample.size < _MIN_COLOURS:
        return image
    codes, numbers = np.unique(_codes(flat), return_inverse=True)
    if codes.size > _MAX_COLOURS:
        return image
    colours = (codes[:, np.newaxis] >> np.array([16, 8, 0], np.uint32) & 255).astype(np.uint8)
    if (np.ptp(colours.astype(np.int64), axis=1) == 0).all():  # grey: that is known elsewhere
        return image
    order = np.argsort(colours @ _LUMINANCE, kind="stable")
    rank = np.empty(len(order), np.uint8)
    rank[order] = np.arange(len(order))
    grey = rank[numbers].reshape(last.shape[:2])
    ramp = find_ramp(grey, colours[order])
    if ramp is None or not (np.diff(colours[order].astype(int), axis=0) >= 0).all():
        return image
    details = replace(image.details, ramp=ramp, painted=axis)
    return replace(image, pixels=grey, channel_axis=None, axes="", details=details)


def _codes(colours: Array) -> Array:
    """Return a number for each colour (n, 3) of 8 bits."""
    return colours.astype(np.uint32) @ np.array([1 << 16, 1 << 8, 1], np.uint32)


def painted(image: ImageFile) -> ImageFile:
    """Return a picture with the colours that :func:`unpainted` took from it; others as they are."""
    axis = image.details.painted
    if axis is None or image.ramp is None:
        return image
    colours = np.moveaxis(image.ramp.paint(image.pixels), -1, axis)
    details = replace(image.details, ramp=None, painted=None)
    return replace(image, pixels=colours, channel_axis=axis, axes="", details=details)


@dataclass(frozen=True)
class Stack:
    """How an image is cut."""

    pieces: list[tuple[int | slice, ...]]  # indices: a number or a whole slice for each axis
    channel_axis: int | None  # of a piece
    third: str  # letter of the third axis of volumes; empty for pictures
    time_axis: int | None = None  # of a piece, if it is a series

    def __len__(self) -> int:
        return len(self.pieces)

    def __iter__(self) -> Iterator[tuple[int | slice, ...]]:
        return iter(self.pieces)


def cut(image: ImageFile, third: Third = "auto") -> Stack:
    """Say which pieces of an image are denoised, each by itself.

    ``third`` is the axis that joins height and width: Z if there is one ("auto"); none; Z or else the only
    other axis ("volume"); time, or else the only other axis if nobody named it.

    Examples
    --------
    >>> import numpy as np
    >>> from symsmooth.io import ImageFile
    >>> stack = cut(ImageFile(np.zeros((5, 9, 8)), None, None, "TIFF", axes="TYX"))
    >>> len(stack), stack.third
    (5, '')
    """
    axes = image.axes
    channel_axis = image.channel_axis
    if channel_axis is not None:
        channel_axis %= image.pixels.ndim
    spatial = _plane(axes, channel_axis)
    depth = _third_axis(image, third, spatial, channel_axis)
    if depth is not None and image.pixels.shape[depth] == 1:
        depth = None  # a volume of one slice is a picture
    kept = {*spatial, channel_axis, depth}
    ranges = [
        [slice(None)] if i in kept else list(range(n)) for i, n in enumerate(image.pixels.shape)
    ]
    before = sum(i not in kept for i in range(channel_axis)) if channel_axis is not None else 0
    return Stack(
        list(itertools.product(*ranges)),
        None if channel_axis is None else channel_axis - before,
        "" if depth is None else axes[depth],
        None if depth is None or third != "time" else sum(i in kept for i in range(depth)),
    )


def _plane(axes: str, channel_axis: int | None) -> set[int]:
    """Return the axes of height and width: by name, else the last two that are no channels."""
    if "Y" in axes and "X" in axes:
        return {axes.index("Y"), axes.index("X")}
    return set([i for i in range(len(axes)) if i != channel_axis][-2:])


def _third_axis(
    image: ImageFile, third: Third, spatial: set[int], channel_axis: int | None
) -> int | None:
    """Return the axis of depth, or None."""
    axes = image.axes
    if third == "none":
        return None
    others = [i for i in range(len(axes)) if i not in {*spatial, channel_axis}]
    longer = [i for i in others if image.pixels.shape[i] > 1]
    if third == "time":
        if "T" in axes:
            return axes.index("T")
        if len(longer) == 1 and axes[longer[0]] in _UNNAMED:
            return longer[0]
        raise FileError(
            f"has no axis of time: its axes are {axes}; denoise it as a volume, or slice by slice",
            "volume",
            "slices",
        )
    if "Z" in axes:
        return axes.index("Z")
    if third == "auto":
        return None
    if len(longer) != 1:
        shape = "x".join(str(n) for n in image.pixels.shape)
        raise FileError(
            f"is no volume: its axes are {axes}, {shape}; denoise it slice by slice", "slices"
        )
    return longer[0]
