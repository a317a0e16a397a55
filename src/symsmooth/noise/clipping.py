"""Clipping bias: where noise was clipped, the mean of noisy pixels is too bright (at black) or too dark.

For y = clip(x + s n), n Gaussian, the mean of y is known from x and s; inverting it at the denoised pixel
gives the light before clipping, as in an exact unbiased inverse.  It is done where as many pixels lie
exactly at the end as noise of this level would have brought there.

References
----------
A. Foi, "Clipped noisy images: heteroskedastic modeling and practical denoising", Signal Processing 89
(2009), doi:10.1016/j.sigpro.2009.04.035.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import scipy.special

from ..core.image import Array, Float

_PILED_UP = 0.5  # of the pixels that must be expected at the end: fewer, and nothing was clipped
_FEWEST = 1e-3  # share of the pixels
_REACH = 4.0  # standard deviations from the end: beyond, nothing is clipped


class End(NamedTuple):
    """An end of the range of a channel, at which noise was clipped."""

    channel: int
    sign: float  # 1: black, -1: white
    value: float


def may_be_clipped(noisy: Float) -> bool:
    """Whether many pixels (*spatial, channels) lie exactly at an end, as in few pictures."""
    return any(_n_at(noisy, end) > 0 for end in _ends(noisy))


def correct_clipping(
    noisy: Float, denoised: Float, sigma: float, known: tuple[End, ...] | None = None
) -> tuple[Float, tuple[End, ...]]:
    """Return denoised pixels (*spatial, channels) without the bias of clipped noise, and where.

    In a piece of a picture the ends are known from the whole.
    """
    corrected, ends = denoised, []
    for end in _ends(noisy) if known is None else known:
        found = _n_at(noisy, end) if known is None else 0
        if known is None and not found:
            continue
        own = corrected[..., end.channel]
        away = end.sign * (own.astype(np.float64) - end.value) / sigma
        light = before_clipping(away)
        if known is not None or found > _PILED_UP * float(scipy.special.ndtr(-light).sum()):
            corrected = denoised.copy() if corrected is denoised else corrected
            result = corrected[..., end.channel]
            result[...] = np.where(away < _REACH, end.value + end.sign * sigma * light, result)
            ends.append(end)
    return corrected, tuple(ends)


def _ends(noisy: Float) -> Iterator[End]:
    """Return the ends of the range of each channel."""
    for channel in range(noisy.shape[-1]):
        own = noisy[..., channel]
        yield End(channel, 1.0, float(own.min()))
        yield End(channel, -1.0, float(own.max()))


def _n_at(noisy: Float, end: End) -> int:
    """Return how many pixels lie exactly at an end; 0 if they are few, as in most pictures."""
    own = noisy[..., end.channel]
    number = int(np.count_nonzero(own == end.value))
    return number if number > _FEWEST * own.size else 0


def before_clipping(mean: Array) -> Array:
    """Return x >= 0 for which max(x + n, 0), n Gaussian of variance 1, has this mean."""
    x = np.linspace(0.0, _REACH, 401)
    return np.where(mean < _REACH, np.interp(mean, _clipped_mean(x), x), mean)


def _clipped_mean(x: Array) -> Array:
    """Return E[max(x + n, 0)] = x Phi(x) + phi(x)."""
    return x * scipy.special.ndtr(x) + np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)
