"""The border: whatever the user has <-> float32 ``(*spatial, channels)``, free of units.

This is the one place that validates images.  Inside, pixels are ``(image - offset) / scale``, so
that no method can depend on the units, and float32 is enough for any offset.
"""

from __future__ import annotations

import numbers
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .channels import Channels, Counted, Groups, constant_regions, count_channels, group_channels
from .fill import fill_missing
from .user_warnings import warn_user

Array = NDArray[Any]
Float = NDArray[Any]  # float32 by convention: NumPy's type stubs lose it at the first product
ChannelAxis = int | None | Literal["auto"]  # auto: as the image says, else none

# Units beyond which, or below one over which, float32 holds no pixels with their squares.
_WIDE = 1e30
FARTHEST = 1e18  # of the spread from the median: squares of pixels beyond are none of float32
_SAMPLE = 50_000  # pixels from which offset and scale are taken
_CHANNEL_NAMES = {"c", "channel", "channels", "band", "bands", "rgb", "rgba"}  # in any case


@dataclass(frozen=True)
class Picture:
    """An opened image.

    Channels that are constant, or copies of another, are counted out: they hold nothing of their own.

    Attributes
    ----------
    original : ndarray (*spatial, all channels), as given, channels last
    noisy : float32 ndarray (*spatial, channels), without units; missing pixels filled
    mask : bool ndarray (*spatial) or None
        True where a pixel is missing; None when none is.
    offset, scale : float
        ``original = noisy * scale + offset``.
    channel_axis : int or None
    wrap : callable
        Makes an array what the image was: a masked array, an xarray.DataArray, a Pillow image, a torch
        tensor.
    whole : Picture or None
        What this is a piece of, or a sample of it.
    counted : Counted or None
        Which channels count, and what the others make of them; None if all do.
    channels : {"auto", "together", "apart"} or Groups
        Which of them are denoised together.
    time_axis : int or None
        Which of the spatial axes of the image is time; it is the first one here.
    decided : object
        What a method found out about a whole, or a sample of it, for its pieces.
    """

    original: Array
    noisy: Float
    mask: NDArray[np.bool_] | None
    offset: float
    scale: float
    channel_axis: int | None
    wrap: Callable[[Array], Any] = np.asarray
    whole: Picture | None = None
    counted: Counted | None = None
    channels: Channels | Groups = "auto"
    time_axis: int | None = None
    decided: object = None

    @cached_property
    def groups(self) -> Groups:
        """The channels that are denoised together: as was said, else those that show the same things."""
        n_channels = self.noisy.shape[-1]
        if self.channels == "together":
            return (tuple(range(n_channels)),)
        if self.channels == "apart":
            return tuple((c,) for c in range(n_channels))
        if self.channels != "auto":
            return self.channels
        return group_channels(self.noisy) if self.whole is None else self.whole.groups

    def with_missing(self, missing: NDArray[np.bool_]) -> Picture:
        """Return the picture with more missing pixels, (*spatial), filled from around them."""
        both = missing if self.mask is None else self.mask | missing
        return replace(self, noisy=fill_missing(self.noisy, both), mask=both)

    @property
    def scene(self) -> Picture:
        """What is looked at for choices that hold for the whole: this picture if it is no piece."""
        return self.whole or self

    @property
    def spatial(self) -> tuple[int, ...]:
        """Shape without the channels."""
        return self.noisy.shape[:-1]

    @cached_property
    def step(self) -> float:
        """Distance between neighbouring pixel values, without units; 0 if they are not rounded."""
        if self.original.dtype.kind in "ui":
            return 1.0 / self.scale
        values = self.noisy.reshape(-1)
        sample = np.sort(values[:: max(1, values.size // _SAMPLE)])
        gaps = np.diff(sample)
        gaps = gaps[gaps > 1e-6 * max(float(np.ptp(sample)), 1e-30)]
        if gaps.size > sample.size // 8:  # few values are alike
            return 0.0
        return float(gaps.min()) if gaps.size else 0.0

    @cached_property
    def brightest(self) -> Float:
        """The largest value of each channel, without units."""
        largest = self.noisy
        while largest.ndim > 1:  # axis by axis: forty times as fast as all at once
            largest = largest.max(axis=0)
        return largest

    @cached_property
    def constant(self) -> NDArray[np.bool_] | None:
        """Where pixels lie in a constant region, which has no noise: (*spatial); None if nowhere."""
        return constant_regions(self.original, self.mask)

    @cached_property
    def observed(self) -> Float:
        """1 where a pixel was observed, 0 where it is missing: float32 (*spatial)."""
        if self.mask is None:
            return np.ones(self.spatial, np.float32)
        return (~self.mask).astype(np.float32)

    def frame(self, t: int) -> Picture:
        """Return one picture of a series, or one slice of a volume."""
        return replace(
            self,
            original=self.original[t],
            noisy=self.noisy[t],
            mask=None if self.mask is None or not self.mask[t].any() else self.mask[t],
            whole=None if self.whole is None else self.whole.frame(len(self.whole.noisy) // 2),
            time_axis=None,
        )

    def restore(self, denoised: Array) -> Array:
        """Return denoised pixels with the axes, dtype and units of the image as it came."""
        return self.finish(add_change(*self.change_of(denoised)))

    def finish(self, pixels: Array) -> Array:
        """Return pixels (*spatial, all channels) as what the image was, with its axes."""
        return self.wrap(self.finish_plain(pixels))

    def finish_plain(self, pixels: Array) -> Array:
        """Return pixels (*spatial, all channels) with the axes of the image, as an array."""
        return _in_axes(pixels, self.channel_axis, self.time_axis)

    def change_of(self, denoised: Array) -> tuple[Array, Array]:
        """Return the pixels as they came and what is to be added to them, in their units: all channels.

        The change is what is scaled, so pixels that did not change keep their bits; missing pixels are 0.
        """
        if not np.isfinite(denoised).all():
            raise FloatingPointError(
                "the method gave pixels that are not finite, which is a defect of symsmooth; "
                "try another method or sigma, and please report the image"
            )
        dtype = self.original.dtype
        is_short = dtype.itemsize <= 2 or dtype == np.float32
        work: Any = np.float32 if is_short else np.float64
        original, change = self.original, (denoised - self.noisy).astype(work, copy=False)
        change *= work(self.scale)
        if self.counted is not None:
            change = self.counted.changes(change)
        if self.mask is not None:
            noisy = self.noisy.astype(work)
            if self.counted is not None:
                noisy = self.counted.values(noisy)
            missing = self.mask[..., None]
            filled = noisy * work(self.scale) + work(self.offset)
            original = original.copy()  # np.where would change the order of bytes
            original[self.mask] = 0
            change = np.where(missing, filled + change, change)
        return original, change

    def in_units(self, pixels: Array) -> Float:
        """Return pixels (*spatial, channels) in the image's units and axes, as float32 if that can be."""
        if self.counted is not None:
            pixels = self.counted.values(pixels)
        return self.finish_plain(pixels * self._unit(self.scale) + self._unit(self.offset))

    def deviations(self, pixels: Array) -> Float:
        """Return deviations of pixels (*spatial, channels) in the image's units and axes, likewise."""
        own = pixels if self.counted is None else self.counted.sizes(pixels)
        return self.finish_plain(own * self._unit(self.scale))

    def _unit(self, value: float) -> Any:
        """Return a number as float32, or as float64 where float32 cannot hold such units."""
        is_wide = not 1 / _WIDE < self.scale < _WIDE or abs(self.offset) > _WIDE
        return np.float64(value) if is_wide else np.float32(value)


def _in_axes(pixels: Array, channel_axis: int | None, time_axis: int | None) -> Array:
    """Return pixels (*spatial, channels) with the axes that an image had."""
    if time_axis is not None:
        pixels = np.moveaxis(pixels, 0, time_axis)
    if channel_axis is None:
        return pixels[..., 0]
    return np.ascontiguousarray(np.moveaxis(pixels, -1, channel_axis))


@dataclass(frozen=True, eq=False)
class Piece:
    """A piece of a larger image, to be denoised as it would be there."""

    pixels: Array
    whole: Picture  # or a sample of it, with as many spatial axes


def add_change(pixels: Array, change: Array) -> Array:
    """Return pixels plus a change in their dtype, held within its limits; integers are rounded.

    All integers but those of 64 bits are exact in float64; for these the sum is one of integers, so that
    nothing wraps and pixels above 2^53 keep their bits where the change is 0.
    """
    dtype = pixels.dtype
    if dtype.kind == "f":
        largest = np.finfo(dtype).max
        with np.errstate(over="ignore"):
            return np.clip(pixels + change, -largest, largest).astype(dtype)
    step, limits = np.rint(change), np.iinfo(dtype)
    if dtype.itemsize < 8:
        return np.clip(pixels + step, limits.min, limits.max).astype(dtype)
    whole = pixels.astype(np.uint64)  # arithmetic modulo 2^64: signed and unsigned are alike
    above, below = np.uint64(limits.max) - whole, whole - np.array(limits.min).astype(np.uint64)
    size = np.minimum(np.abs(step), np.nextafter(2.0**64, 0)).astype(np.uint64)
    size[np.abs(step) >= 2.0**64] = np.iinfo(np.uint64).max
    up, down = whole + np.minimum(size, above), whole - np.minimum(size, below)
    return np.where(step > 0, up, down).astype(dtype)


@dataclass(frozen=True, eq=False)
class Input:
    """An image that was found to be one, in its own units: see :func:`check_image`.

    Attributes
    ----------
    pixels : ndarray (*spatial, channels), as given, channels last, time first
    missing : bool ndarray (*spatial) or None
        True where a pixel is missing; None when none is.
    channel_axis, time_axis : int or None
    wrap : callable
        Makes an array what the image was.
    whole : Picture or None
        What this is a piece of, or a sample of it.
    """

    pixels: Array
    missing: NDArray[np.bool_] | None
    channel_axis: int | None
    time_axis: int | None
    wrap: Callable[[Array], Any]
    whole: Picture | None
    opened: Picture | None = None  # if it was open already

    def finish(self, pixels: Array) -> Any:
        """Return pixels (*spatial, channels) as what the image was, with its axes."""
        return self.wrap(self.finish_plain(pixels))

    def finish_plain(self, pixels: Array) -> Array:
        """Return pixels (*spatial, channels) with the axes of the image, as an array."""
        return _in_axes(pixels, self.channel_axis, self.time_axis)

    def open(self, channels: Channels | Groups = "auto") -> Picture:
        """Bring it to float32 without units; a piece has those of its whole."""
        if self.opened is not None:
            return self.opened
        pixels, missing, whole = self.pixels, self.missing, self.whole
        counted = count_channels(pixels, missing) if whole is None else whole.counted
        own = pixels if counted is None else pixels[..., counted.own]
        offset, scale = _units(own, missing) if whole is None else (whole.offset, whole.scale)
        if counted is not None and whole is None:
            counted = counted.in_units(offset, scale)
        work: Any = np.float64
        if pixels.dtype.itemsize <= 2 or pixels.dtype == np.float32:
            work = np.float32
        noisy = own.astype(work)
        noisy -= work(offset)
        noisy /= work(scale)
        with np.errstate(over="ignore"):
            noisy = np.ascontiguousarray(noisy, dtype=np.float32)
        if missing is not None:
            noisy = fill_missing(noisy, missing)
        if pixels.dtype.itemsize > 2:
            _check_distances(noisy)
        return Picture(
            pixels, noisy, missing, offset, scale, self.channel_axis, self.wrap, whole, counted,
            channels, self.time_axis,
        )  # fmt: skip


def open_image(
    image: ArrayLike | Picture,
    channel_axis: ChannelAxis = "auto",
    mask: ArrayLike | None = None,
    channels: Channels | Groups = "auto",
    time_axis: int | None = None,
) -> Picture:
    """Validate an image and bring it to float32 ``(*spatial, channels)`` without units.

    Parameters are those of :func:`check_image`, and ``channels``: {"auto", "together", "apart"}, or groups:
    which of them are denoised together; "auto": those that show the same things.
    """
    return check_image(image, channel_axis, mask, time_axis).open(channels)


def check_image(
    image: ArrayLike | Picture,
    channel_axis: ChannelAxis = "auto",
    mask: ArrayLike | None = None,
    time_axis: int | None = None,
) -> Input:
    """Validate an image, and say where its channels and missing pixels are.

    Parameters
    ----------
    image : array_like
        2-D, or 3-D (a volume), plus a channel axis; any real dtype but bool.  Non-finite pixels, and
        masked ones of a masked array, are missing.  A masked array, an xarray.DataArray, a Pillow image
        or a torch tensor comes back as one; a Piece has the units of its whole.  A Picture is open
        already: nothing else may be said of it.
    channel_axis : int, None or "auto"
        The axis of the channels; None if there is none; see :func:`find_channel_axis` for "auto".
    mask : array_like of bool or None
        Spatial shape; True where a pixel is missing.
    time_axis : int or None
        Which axis is time: the image is a series of flat pictures.
    """
    if isinstance(image, Picture):
        if (channel_axis, mask, time_axis) != ("auto", None, None):
            raise TypeError("image is open already, with its own axes and mask")
        return Input(
            image.original, image.mask, image.channel_axis, image.time_axis, image.wrap, image.whole, image
        )  # fmt: skip
    if isinstance(image, (str, os.PathLike)):
        raise TypeError(
            f"image is the name of a file, {os.fspath(image)!r}; read it first, e.g. with "
            f"imageio.v3.imread, or use the command: symsmooth denoise {os.fspath(image)} -o OUT"
        )
    whole = image.whole if isinstance(image, Piece) else None
    array, wrap = unwrap(image.pixels if isinstance(image, Piece) else image)
    pixels = _check_pixels(array)
    axis = find_channel_axis(image, pixels.shape, channel_axis, time_axis)
    pixels = _channels_last(pixels, axis)
    missing = _find_missing(array, pixels, axis, mask)
    time = None if time_axis is None else find_time_axis(array.shape, axis, time_axis)
    if time is not None:
        pixels = np.moveaxis(pixels, time, 0)
        missing = None if missing is None else np.moveaxis(missing, time, 0)
    return Input(pixels, missing, axis, time, wrap, whole)


def library_of(value: object) -> str:
    """Return the name of the library that a value's type comes from."""
    return type(value).__module__.partition(".")[0]


def holds_dask(image: Any) -> bool:
    """Whether an image is a dask array, or an xarray.DataArray of one."""
    is_xarray = library_of(image) == "xarray" and hasattr(image, "dims")
    return library_of(image.data if is_xarray else image) == "dask"


def unwrap(image: Any) -> tuple[Any, Callable[[Array], Any]]:
    """Return an image as something NumPy takes without a copy, and how a result becomes what it was.

    Libraries are known by the name of the type: none is imported here that the user has not.
    """
    if holds_dask(image):
        raise TypeError(
            "image is a dask array, and all its pixels are needed at once here; pass a part of it, such as "
            "image[:2048, :2048].compute(), or image.compute() if it fits into memory; "
            "symsmooth.denoise and the other methods take it as it is, block by block"
        )
    library = library_of(image)
    if library == "xarray" and hasattr(image, "dims"):
        return image.values, lambda pixels: image.copy(data=pixels)  # dims, coords, attrs, name
    if library == "PIL" and hasattr(image, "mode"):
        return _unwrap_pillow(image)
    if library == "torch":
        import torch

        if image.device.type != "cpu":
            raise TypeError(f"image is a tensor on {image.device}; pass image.cpu()")
        return image.detach().numpy(), torch.from_numpy
    if isinstance(image, np.ma.MaskedArray):
        return image, lambda pixels: _masked_like(image, pixels)
    return image, np.asarray


def _masked_like(image: Any, pixels: Array) -> Any:
    """Return a masked array with the mask and fill value of another; the mask is a copy."""
    mask = image.mask if image.mask is np.ma.nomask else image.mask.copy()
    hard = bool(image.hardmask)
    with np.errstate(over="ignore"):  # NumPy's own fill value is more than halves can hold
        fill = image.fill_value
        return np.ma.MaskedArray(pixels, mask=mask, fill_value=fill, hard_mask=hard)


def _unwrap_pillow(image: Any) -> tuple[Array, Callable[[Array], Any]]:
    """Return the colours of a Pillow image, and how they become one again, with its alpha and info."""
    from PIL import Image

    if image.mode in ("1", "P", "PA"):
        better = "L" if image.mode == "1" else "RGB"
        raise TypeError(
            f"image has the mode {image.mode}, whose pixels are no intensities; "
            f"pass image.convert({better!r})"
        )
    stored = np.asarray(image)
    alpha = stored[..., -1:] if image.mode.endswith(("A", "a")) else stored[..., :0]
    colours = stored[..., : -alpha.shape[-1]] if alpha.size else stored

    def wrap(pixels: Array) -> Any:
        whole = np.concatenate([pixels, alpha], -1) if alpha.size else pixels
        made = Image.frombytes(image.mode, image.size, np.ascontiguousarray(whole).tobytes())
        made.info = dict(image.info)
        return made

    return colours, wrap


def find_channel_axis(
    image: Any, shape: Sequence[int], channel_axis: ChannelAxis = "auto", time_axis: Any = None
) -> int | None:
    """Return which axis of an image of this shape holds its channels, or None.

    With "auto" the last of a Pillow image in colour, or the dimension of an xarray.DataArray that is named
    c, channel, channels, band, bands, rgb or rgba; else there are none, and a warning is given if the first
    or last axis looks like colours.
    """
    if channel_axis is None:
        return None
    if channel_axis == "auto" and time_axis is not None and len(shape) == 3:
        return None  # frames are no colours
    if channel_axis == "auto":
        return _infer_channel_axis(image, shape)
    if isinstance(channel_axis, bool) or not isinstance(channel_axis, numbers.Integral):
        raise TypeError(
            f"channel_axis must be a whole number, None or 'auto', got {channel_axis!r}; "
            "use -1 for the last axis, 0 for the first"
        )
    if not -len(shape) <= channel_axis < len(shape):
        raise ValueError(
            f"channel_axis must lie between {-len(shape)} and {len(shape) - 1} "
            f"for shape {tuple(shape)}, got {channel_axis}"
        )
    return int(channel_axis)


def _infer_channel_axis(image: Any, shape: Sequence[int]) -> int | None:
    """Return the axis that the image itself names; warn if one without a name looks like colours."""
    library = library_of(image)
    names: tuple[Any, ...] = ()
    if library == "PIL" and hasattr(image, "mode"):
        return -1 if len(shape) == 3 else None
    if library == "xarray" and hasattr(image, "dims"):
        names = image.dims
        named = [i for i, name in enumerate(names) if str(name).lower() in _CHANNEL_NAMES]
        if len(named) > 1:
            two = " and ".join(str(names[i]) for i in named[:2])
            raise ValueError(f"image has two dimensions of channels, {two}; pass channel_axis")
        if named:
            return named[0]
    for axis in (-1, 0) if len(shape) == 3 else ():
        others = [n for i, n in enumerate(shape) if i != axis % 3]
        unnamed = not names or re.fullmatch(r"dim_\d+", str(names[axis]))
        if shape[axis] in (3, 4) and min(others) > 4 and unnamed:
            warn_user(
                f"image of shape {tuple(shape)} is treated as a volume of {shape[axis]} slices; "
                f"pass channel_axis={axis} if these are colours, channel_axis=None if it is a volume"
            )
            break
    return None


def find_time_axis(shape: Sequence[int], channel_axis: int | None, time_axis: int) -> int:
    """Return which of the spatial axes is time."""
    n_dims = len(shape)
    if isinstance(time_axis, bool) or not isinstance(time_axis, numbers.Integral):
        raise TypeError(f"time_axis must be a whole number or None, got {time_axis!r}")
    if not -n_dims <= time_axis < n_dims:
        raise ValueError(
            f"time_axis must lie between {-n_dims} and {n_dims - 1} for shape {tuple(shape)}, "
            f"got {time_axis}"
        )
    time = int(time_axis) % n_dims
    other = None if channel_axis is None else channel_axis % n_dims
    if time == other:
        raise ValueError(f"time_axis and channel_axis are both {time}; one axis is one of them")
    if n_dims - (other is not None) != 3:
        raise ValueError(
            f"a series is made of flat pictures, got shape {tuple(shape)}; denoise volumes one by one"
        )
    return time - (other is not None and other < time)


def _check_pixels(image: ArrayLike) -> Array:
    """Return the pixels as an array, or say why they cannot be an image."""
    pixels = np.asarray(image)
    if pixels.dtype == bool:
        raise TypeError("image is boolean: it has no noise level; pass image.astype(float)")
    if pixels.dtype.kind not in "uif":
        raise TypeError(
            f"image must hold real numbers, got dtype {pixels.dtype}; use an integer or float array"
        )
    return pixels


def _channels_last(pixels: Array, channel_axis: int | None) -> Array:
    """Return the pixels with channels last, or say why their shape is none of an image."""
    dims = "2-D, or 3-D for a volume" if channel_axis is None else "2-D or 3-D plus channels"
    spatial_dims = pixels.ndim - (channel_axis is not None)
    if spatial_dims not in (2, 3):
        hint = (
            "; for a single row pass image[np.newaxis, :]"
            if pixels.ndim == 1
            else "; for colour pass channel_axis"
            if pixels.ndim == 4 and channel_axis is None
            else ""
        )
        raise ValueError(f"image must be {dims}, got shape {pixels.shape}{hint}")
    if pixels.size == 0:
        raise ValueError(f"image has no pixel: its shape is {pixels.shape}")
    if channel_axis is None:
        return pixels[..., np.newaxis]
    return np.moveaxis(pixels, channel_axis, -1)


def _find_missing(
    image: ArrayLike, pixels: Array, channel_axis: int | None, mask: ArrayLike | None
) -> NDArray[np.bool_] | None:
    """Return where a pixel is missing in some channel, or None if none is."""
    spatial = pixels.shape[:-1]
    missing = np.zeros(spatial, bool)
    if np.issubdtype(pixels.dtype, np.floating):
        missing |= ~np.isfinite(pixels).all(axis=-1)
    if isinstance(image, np.ma.MaskedArray):
        masked = np.ma.getmaskarray(image)
        missing |= masked if channel_axis is None else masked.any(axis=channel_axis)
    if mask is not None:
        given = np.asarray(mask)
        if given.dtype != bool:
            raise TypeError(
                f"mask must be boolean (True = missing), got dtype {given.dtype}; use mask != 0"
            )
        if given.shape != spatial:
            raise ValueError(
                f"mask must have the image's spatial shape {spatial}, got {given.shape}"
            )
        missing |= given
    if not missing.any():
        return None
    if missing.all():
        raise ValueError("image has no usable pixel: all are masked or not finite")
    return missing


def _check_distances(noisy: Float) -> None:
    """Refuse pixels so far from the others that their squares are no numbers."""
    farthest = max(-float(noisy.min()), float(noisy.max()))
    if not farthest < FARTHEST:
        raise ValueError(
            f"image has a pixel that is more than {FARTHEST:.0e} times the spread of the others away from "
            "them; clip such pixels, or pass a mask in which they are missing"
        )


def _units(pixels: Array, mask: NDArray[np.bool_] | None) -> tuple[float, float]:
    """Return a median and a spread, from a sample of the pixels when there are many."""
    values = pixels.reshape(-1) if mask is None else pixels[~mask].reshape(-1)
    with np.errstate(over="ignore", invalid="ignore"):
        sample = np.sort(values[:: max(1, values.size // _SAMPLE)].astype(np.float64))
        offset = float(np.median(sample))
        low, high = np.quantile(sample, [0.01, 0.99])
        scale = float(high - low)
        if scale == 0.0:
            scale = float(np.ptp(values.astype(np.float64)))
    if not (np.isfinite(scale) and np.isfinite(offset)):
        raise ValueError(
            f"image spans from {values.min()} to {values.max()}, too much for floating point; "
            "divide it by a constant first"
        )
    return offset, scale if scale > 0.0 else 1.0
