"""Half size and back: means over blocks of two pixels a side, and linear interpolation between them."""

from __future__ import annotations

import numpy as np
import scipy.ndimage

from .image import Float


def halve(image: Float) -> Float:
    """Average blocks of two pixels along each spatial axis of (*spatial, channels).

    White noise stays white, its standard deviation falls by sqrt 2 for each axis.  An odd last row is
    doubled first.
    """
    for axis in range(image.ndim - 1):
        if image.shape[axis] % 2:
            image = np.concatenate([image, image.take([-1], axis)], axis)
        image = image[_along(axis, 0, None, 2)] + image[_along(axis, 1, None, 2)]
        image *= np.float32(0.5)
    return image


def double(image: Float, spatial: tuple[int, ...]) -> Float:
    """Interpolate (*half, channels) linearly to ``spatial``; pixels lie a quarter beside the centres."""
    # The last axis takes longest, so it comes first, while there are fewest pixels.
    for axis in reversed(range(len(spatial))):
        image = np.ascontiguousarray(_double_along(image, axis)[_along(axis, 0, spatial[axis])])
    return image


def _double_along(image: Float, axis: int) -> Float:
    """Interpolate along one axis to twice as many pixels."""
    n = image.shape[axis]
    fine = np.empty((*image.shape[:axis], 2 * n, *image.shape[axis + 1 :]), np.float32)
    near, far = np.float32(0.75) * image, np.float32(0.25) * image
    first, last = _along(axis, 0, 1), _along(axis, n - 1, n)
    all_but_first, all_but_last = _along(axis, 1, n), _along(axis, 0, n - 1)
    np.add(near[first], far[first], out=fine[_along(axis, 0, 1)])
    np.add(near[all_but_first], far[all_but_last], out=fine[_along(axis, 2, 2 * n, 2)])
    np.add(near[all_but_last], far[all_but_first], out=fine[_along(axis, 1, 2 * n - 1, 2)])
    np.add(near[last], far[last], out=fine[_along(axis, 2 * n - 1, 2 * n)])
    return fine


def _along(axis: int, start: int, stop: int | None, step: int = 1) -> tuple[slice, ...]:
    """Return an index that takes some of an axis, and all of those before it."""
    return (*[slice(None)] * axis, slice(start, stop, step))


def blurred(image: Float, width: float, n_halved: int) -> Float:
    """Return (y, x, channels) halved so many times, then blurred by ``width`` pixels of the full size."""
    for _ in range(n_halved):
        image = halve(image)
    own = width / 2**n_halved
    return np.asarray(scipy.ndimage.gaussian_filter(image, (own, own, 0.0), truncate=3.0))


def replace_coarse(image: Float, coarse: Float, weight: float) -> Float:
    """Move what the image says at half size towards ``coarse``, by a share ``weight`` of the way."""
    return image + np.float32(weight) * double(coarse - halve(image), image.shape[:-1])
