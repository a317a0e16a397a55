"""Half size and back: means over blocks of two pixels a side, and linear interpolation between them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.ndimage

from .. import _native
from .image import Float


def halve(image: Float) -> Float:
    """Average blocks of two pixels along each spatial axis of (*spatial, channels).

    White noise stays white, its standard deviation falls by sqrt 2 for each axis.  An odd last row is
    doubled first.
    """
    if image.ndim > 3:
        if len(image) % 2:
            image = np.concatenate([image, image[-1:]])
        image = np.float32(0.5) * (image[::2] + image[1::2])
    slices, back = _slices(image)
    return back(_native.halve(slices))


def double(image: Float, spatial: tuple[int, ...]) -> Float:
    """Interpolate (*half, channels) linearly to ``spatial``; pixels lie a quarter beside the centres."""
    if image.ndim > 3:
        near, far = np.float32(0.75) * image, np.float32(0.25) * image
        before, after = np.concatenate([far[:1], far[:-1]]), np.concatenate([far[1:], far[-1:]])
        image = np.stack([near + before, near + after], axis=1).reshape(-1, *image.shape[1:])
        image = image[: spatial[0]]
    slices, back = _slices(image)
    return back(_native.enlarge(slices, 2, *spatial[-2:]))


def quadruple(image: Float, spatial: tuple[int, int]) -> Float:
    """Double (*quarter, channels) of a flat picture twice."""
    slices, back = _slices(image)
    return back(_native.enlarge(slices, 4, *spatial))


def _slices(image: Float) -> tuple[Float, Callable[[Float], Float]]:
    """Return a picture or volume as slices (z, y, x, channels), and what makes one of other slices.

    Where each channel lies together in memory, slices are of one channel, and no pixel is moved.
    """
    *above, n_channels = (*image.shape[:-3], image.shape[-1])
    planes = np.moveaxis(image, -1, 0)
    if n_channels > 1 and planes.flags.c_contiguous and image.dtype == np.float32:

        def from_planes(slices: Float) -> Float:
            return np.moveaxis(slices.reshape(n_channels, *above, *slices.shape[1:3]), 0, -1)

        return planes.reshape(-1, *image.shape[-3:-1], 1), from_planes

    def from_slices(slices: Float) -> Float:
        return slices.reshape(*above, *slices.shape[1:])

    return np.ascontiguousarray(image, np.float32).reshape(-1, *image.shape[-3:]), from_slices


def blurred(image: Float, width: float, n_halved: int) -> Float:
    """Return (y, x, channels) halved so many times, then blurred by ``width`` pixels of the full size."""
    for _ in range(n_halved):
        image = halve(image)
    own = width / 2**n_halved
    return np.asarray(scipy.ndimage.gaussian_filter(image, (own, own, 0.0), truncate=3.0))


def replace_coarse(image: Float, coarse: Float, weight: float) -> Float:
    """Move what the image says at half size towards ``coarse``, by a share ``weight`` of the way."""
    return image + np.float32(weight) * double(coarse - halve(image), image.shape[:-1])
