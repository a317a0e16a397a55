"""Half size and back: means over blocks of two pixels a side, and linear interpolation between them."""

from __future__ import annotations

import numpy as np

from .image import Float


def halve(image: Float) -> Float:
    """Average blocks of two pixels along each spatial axis of (*spatial, channels).

    White noise stays white, its standard deviation falls by sqrt 2 for each axis.  An odd last row is
    doubled first.
    """
    for axis in range(image.ndim - 1):
        if image.shape[axis] % 2:
            image = np.concatenate([image, image.take([-1], axis)], axis)
        even = image.take(range(0, image.shape[axis], 2), axis)
        even += image.take(range(1, image.shape[axis], 2), axis)
        image = even * np.float32(0.5)
    return image


def double(image: Float, spatial: tuple[int, ...]) -> Float:
    """Interpolate (*half, channels) linearly to ``spatial``; pixels lie a quarter beside the centres."""
    for axis, size in enumerate(spatial):
        coarse = np.moveaxis(image, axis, 0)
        before = np.concatenate([coarse[:1], coarse[:-1]])
        after = np.concatenate([coarse[1:], coarse[-1:]])
        fine = np.empty((2 * len(coarse), *coarse.shape[1:]), np.float32)
        fine[0::2] = np.float32(0.75) * coarse + np.float32(0.25) * before
        fine[1::2] = np.float32(0.75) * coarse + np.float32(0.25) * after
        image = np.moveaxis(fine[:size], 0, axis)
    return np.ascontiguousarray(image)


def replace_coarse(image: Float, coarse: Float, weight: float) -> Float:
    """Move what the image says at half size towards ``coarse``, by a share ``weight`` of the way."""
    return image + np.float32(weight) * double(coarse - halve(image), image.shape[:-1])
