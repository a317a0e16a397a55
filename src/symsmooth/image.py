"""The border: whatever the user has <-> float32 ``(*spatial, channels)``, free of units.

This is the one place that validates images.  Inside, pixels are ``(image - offset) / scale``, so
that no method can depend on the units, and float32 is enough for any offset.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[Any]
Float = NDArray[Any]  # float32 by convention: NumPy's type stubs lose it at the first product

_SAMPLE = 50_000  # pixels from which offset and scale are taken


@dataclass(frozen=True)
class Picture:
    """An opened image.

    Attributes
    ----------
    original : ndarray (*spatial, channels), as given, channels last
    noisy : float32 ndarray (*spatial, channels), without units; missing pixels filled
    valid : bool ndarray (*spatial) or None
        False where a pixel is missing; None when none is.
    offset, scale : float
        ``original = noisy * scale + offset``.
    channel_axis : int or None
    wrap : callable
        Makes an array what the image was: an xarray.DataArray, a torch tensor.
    whole : Picture or None
        What this is a piece of, or a sample of it.
    """

    original: Array
    noisy: Float
    valid: NDArray[np.bool_] | None
    offset: float
    scale: float
    channel_axis: int | None
    wrap: Callable[[Array], Any] = np.asarray
    whole: Picture | None = None

    @property
    def scene(self) -> Picture:
        """What is looked at for choices that hold for the whole: this picture if it is no piece."""
        return self.whole or self

    @property
    def spatial(self) -> tuple[int, ...]:
        """Shape without the channels."""
        return self.noisy.shape[:-1]

    @cached_property
    def usable(self) -> Float:
        """1 where a pixel was observed, 0 where it is missing: float32 (*spatial)."""
        if self.valid is None:
            return np.ones(self.spatial, np.float32)
        return self.valid.astype(np.float32)

    def restore(self, denoised: Array) -> Array:
        """Return denoised pixels with the axes, dtype and units of the image as it came.

        The change is what is scaled and added, so pixels that did not change keep their bits.
        """
        dtype = self.original.dtype
        work: Any = np.float32 if dtype in (np.float16, np.float32) else np.float64
        change = (denoised - self.noisy).astype(work) * work(self.scale)
        if self.valid is None:
            restored = self.original + change
        else:
            filled = self.noisy.astype(work) * work(self.scale) + work(self.offset)
            restored = np.where(self.valid[..., None], self.original, filled) + change
        if np.issubdtype(dtype, np.integer):
            limits = np.iinfo(dtype)
            restored = np.clip(np.rint(restored), limits.min, limits.max)
        restored = restored.astype(dtype)
        return self.wrap(self.in_axes(restored))

    def in_units(self, pixels: Array) -> Float:
        """Return pixels (*spatial, channels) in the image's units and axes, as float32."""
        return self.in_axes(pixels * np.float32(self.scale) + np.float32(self.offset))

    def in_axes(self, pixels: Array) -> Array:
        """Return pixels (*spatial, channels) with the axes of the image as it came."""
        if self.channel_axis is None:
            return pixels[..., 0]
        return np.ascontiguousarray(np.moveaxis(pixels, -1, self.channel_axis))


@dataclass(frozen=True, eq=False)
class Piece:
    """A piece of a larger image, to be denoised as it would be there: an array that knows the whole."""

    pixels: Array
    whole: Picture  # or a sample of it, with as many spatial axes

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self.pixels, dtype, copy=copy)


def open_image(
    image: ArrayLike, channel_axis: int | None = None, mask: ArrayLike | None = None
) -> Picture:
    """Validate an image and bring it to float32 ``(*spatial, channels)`` without units.

    Parameters
    ----------
    image : array_like
        2-D, or 3-D (a volume), plus a channel axis if ``channel_axis`` is given; any real dtype
        but bool.  Non-finite pixels, and masked ones of a masked array, are missing.  For an
        xarray.DataArray or a torch tensor ``restore`` returns one; a Piece has the units of its whole.
    channel_axis : int or None
        The axis of the channels; None if there is none.
    mask : array_like of bool or None
        Spatial shape; True where a pixel is missing.
    """
    image, wrap = unwrap(image)
    pixels = _check_pixels(image, channel_axis)
    valid = _find_valid(image, pixels, channel_axis, mask)
    whole = image.whole if isinstance(image, Piece) else None
    offset, scale = _units(pixels, valid) if whole is None else (whole.offset, whole.scale)
    work: Any = np.float64
    if pixels.dtype.itemsize <= 2 or pixels.dtype == np.float32:
        work = np.float32
    noisy = pixels.astype(work)
    noisy -= work(offset)
    noisy /= work(scale)
    noisy = np.ascontiguousarray(noisy, dtype=np.float32)
    if valid is not None:
        noisy = fill_missing(noisy, valid)
    return Picture(pixels, noisy, valid, offset, scale, channel_axis, wrap, whole)


def unwrap(image: Any) -> tuple[Any, Callable[[Array], Any]]:
    """Return an image as something NumPy takes without a copy, and how a result becomes what it was.

    Libraries are known by the name of the type: none is imported here that the user has not.
    """
    library = type(image).__module__.partition(".")[0]
    if library == "xarray" and hasattr(image, "dims"):
        return image.values, lambda pixels: image.copy(data=pixels)  # dims, coords, attrs, name
    if library == "torch":
        import torch

        if image.device.type != "cpu":
            raise TypeError(f"image is a tensor on {image.device}; pass image.cpu()")
        return image.detach().numpy(), torch.from_numpy
    return image, np.asarray


def _check_pixels(image: ArrayLike, channel_axis: int | None) -> Array:
    """Return the pixels with channels last, or say why they cannot be an image."""
    pixels = np.asarray(image)
    if pixels.dtype == bool:
        raise TypeError("image is boolean: it has no noise level; pass image.astype(float)")
    if not (np.issubdtype(pixels.dtype, np.integer) or np.issubdtype(pixels.dtype, np.floating)):
        raise TypeError(
            f"image must hold real numbers, got dtype {pixels.dtype}; use an integer or float array"
        )
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
    if not -pixels.ndim <= channel_axis < pixels.ndim:
        raise ValueError(
            f"channel_axis must lie between {-pixels.ndim} and {pixels.ndim - 1} "
            f"for shape {pixels.shape}, got {channel_axis}"
        )
    return np.moveaxis(pixels, channel_axis, -1)


def _find_valid(
    image: ArrayLike, pixels: Array, channel_axis: int | None, mask: ArrayLike | None
) -> NDArray[np.bool_] | None:
    """Return where a pixel is present in all channels, or None if that is everywhere."""
    spatial = pixels.shape[:-1]
    valid = np.ones(spatial, bool)
    if np.issubdtype(pixels.dtype, np.floating):
        valid &= np.isfinite(pixels).all(axis=-1)
    if isinstance(image, np.ma.MaskedArray):
        masked = np.ma.getmaskarray(image)
        valid &= ~(masked if channel_axis is None else masked.any(axis=channel_axis))
    if mask is not None:
        missing = np.asarray(mask)
        if missing.dtype != bool:
            raise TypeError(
                f"mask must be boolean (True = missing), got dtype {missing.dtype}; use mask != 0"
            )
        if missing.shape != spatial:
            raise ValueError(
                f"mask must have the image's spatial shape {spatial}, got {missing.shape}"
            )
        valid &= ~missing
    if valid.all():
        return None
    if not valid.any():
        raise ValueError("image has no usable pixel: all are masked or not finite")
    return valid


def _units(pixels: Array, valid: NDArray[np.bool_] | None) -> tuple[float, float]:
    """Return a median and a spread, from a sample of the pixels when there are many."""
    values = pixels.reshape(-1) if valid is None else pixels[valid].reshape(-1)
    with np.errstate(over="ignore"):
        return _median_and_spread(values)


def _median_and_spread(values: Array) -> tuple[float, float]:
    sample = values[:: max(1, values.size // _SAMPLE)].astype(np.float64)
    offset = float(np.median(sample))
    low, high = np.quantile(sample, [0.01, 0.99])
    scale = float(high - low)
    if scale == 0.0:
        scale = float(np.ptp(values.astype(np.float64)))
    if not np.isfinite(scale):
        raise ValueError(
            f"image spans from {values.min()} to {values.max()}, too much for floating point; "
            "divide it by a constant first"
        )
    return offset, scale if scale > 0.0 else 1.0


def fill_missing(noisy: Float, valid: NDArray[np.bool_]) -> Float:
    """Fill missing pixels smoothly from those around them (push-pull pyramid).

    Averages of the valid pixels are taken over cells of 2, 4, 8, ... pixels until no cell is
    empty; each missing pixel takes the value of the smallest cell that knows one.
    """
    weight = valid.astype(np.float32)[..., None]
    values = np.where(valid[..., None], noisy, np.float32(0.0))
    if valid.all() or max(valid.shape) == 1:
        return values
    coarse_sum, coarse_weight = _halve(values), _halve(weight)
    known = coarse_weight[..., 0] > 0
    coarse = np.divide(
        coarse_sum, coarse_weight, out=np.zeros_like(coarse_sum), where=coarse_weight > 0
    )
    coarse = fill_missing(coarse, known)
    for axis, size in enumerate(valid.shape):
        coarse = _double(coarse, axis, size)
    return np.where(valid[..., None], values, coarse)


def _halve(values: Float) -> Float:
    """Sum over cells of two pixels along each spatial axis."""
    for axis in range(values.ndim - 1):
        values = np.add.reduceat(values, np.arange(0, values.shape[axis], 2), axis=axis)
    return values


def _double(values: Float, axis: int, size: int) -> Float:
    """Interpolate cells of two pixels back to pixels along one axis, linearly."""
    at = (np.arange(size, dtype=np.float32) - 0.5) / 2
    low = np.clip(np.floor(at).astype(int), 0, values.shape[axis] - 1)
    high = np.minimum(low + 1, values.shape[axis] - 1)
    part = np.clip(at - low, 0.0, 1.0).astype(np.float32)
    part = part.reshape([-1 if a == axis else 1 for a in range(values.ndim)])
    return np.take(values, low, axis) * (1 - part) + np.take(values, high, axis) * part
