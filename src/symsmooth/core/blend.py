"""Strength after the fact: a picture between the noisy one and the denoised one."""

from __future__ import annotations

import numpy as np

from .image import Array


def blend(
    noisy: Array, denoised: Array, strength: float, colour_strength: float | None = None,
    channel_axis: int | None = None,
) -> Array:  # fmt: skip
    """Return the noisy picture with a share of the change that denoising made.

    Parameters
    ----------
    noisy, denoised : ndarray
        Of one shape and dtype.
    strength : float
        0 (noisy, to the bit) to 1 (denoised, to the bit).
    colour_strength : float or None
        The same for colour, which is what channels differ in; ``strength`` is that of their mean then.
    channel_axis : int or None
        Needed for ``colour_strength`` only.

    Returns
    -------
    ndarray
        In the dtype of both; integers are rounded, and held within the limits of their dtype.
        A pixel that is missing in one of the two is that of ``denoised``, unless both strengths are 0.

    Examples
    --------
    >>> blend(np.array([10, 20], np.uint8), np.array([20, 20], np.uint8), 0.7)
    array([17, 20], dtype=uint8)
    """
    colour = strength if colour_strength is None else colour_strength
    if strength == colour and strength in (0.0, 1.0):
        return (denoised if strength else noisy).copy()
    with np.errstate(invalid="ignore", over="ignore"):  # infinite pixels stay what they are
        change = np.subtract(denoised, noisy, dtype=np.float64)
        share = strength * change
        if strength != colour:
            brightness = change.mean(axis=channel_axis, keepdims=True)
            share = strength * brightness + colour * (change - brightness)
        made = noisy + share
    if noisy.dtype.kind == "f":
        return np.where(np.isfinite(made), made, denoised).astype(noisy.dtype)
    limits = np.iinfo(noisy.dtype)
    high = float(limits.max)
    if int(high) > limits.max:  # of 64 bits: the next number that float64 has is too large
        high = float(np.nextafter(high, 0.0))
    inside = np.clip(np.rint(made), limits.min, high).astype(noisy.dtype)
    return np.where(share == 0, noisy, inside)  # float64 does not hold all of 64 bits
