"""Palettes that are a ramp: a grey picture that is shown in false colours, as ImageJ's tables do.

The number of a colour is an intensity if colours follow each other as on a way that leads from dark to
bright, or from bright to dark, without turning.  Then the numbers are what was measured: they are read,
denoised and written, and the palette stays.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .images import Array, ImageFile, Ramp

_LUMINANCE = np.array([0.299, 0.587, 0.114])
# Tables of ImageJ and Matplotlib that grow in brightness fall back by 0.5 and wind 2.4 times the way at
# most; palettes of photographs, sorted by brightness, wind 9 times and more.
_MAX_FALL = 2.0  # of luminance, in 0 to 255
_MAX_WINDING = 4.0
_MIN_COLOURS = 16  # drawings have fewer
_MAX_COLOURS = 256  # of a ramp of 8 bits
_SAMPLE = 20_000  # pixels that are looked at first


def find_ramp(numbers: Array, colours: Array) -> Ramp | None:
    """Return the palette of a picture if it is a ramp, as far as the picture uses it, else None.

    Parameters
    ----------
    numbers : integer ndarray
        The pixels.
    colours : uint8 ndarray (n, 3)

    Examples
    --------
    >>> numbers = np.arange(256).reshape(16, 16)
    >>> green = np.zeros((256, 3), np.uint8)
    >>> green[:, 1] = np.arange(256)
    >>> find_ramp(numbers, green) is not None, find_ramp(numbers, np.roll(green, 99, 0)) is not None
    (True, False)
    """
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
