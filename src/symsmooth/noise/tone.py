"""Tone bias: noise that was added before a tone curve makes the mean of noisy pixels too dark.

A camera's noise is added in linear light; its tone curve is concave and cuts what is below black.
Averaging noisy pixels faithfully, as every denoiser does, then gives a dark and tinted picture, most of all
in the shadows.  For y = g(clip(x + s n)), n Gaussian and g the sRGB curve, the mean and the standard
deviation of y determine x and s; from the denoised pixel and the local deviation of what was removed
follows by how much the pixel is too dark, as in an exact unbiased inverse.

The curve also skews the noise.  Where what was removed is not skewed as the curve would have it, the noise
was not added before the curve, and nothing is corrected.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

import numpy as np
import scipy.ndimage

from .. import _native
from ..core.image import Array, Float
from ..core.multiscale import halve, quadruple

_WIDTH = 8.0  # pixels, of the window in which the level of what was removed is measured
# What is aimed at: 0 the mean of the clipped linear light, 1 the light before clipping.  The references of
# phone pictures lie between: 0 and 1 give 37.3 and 37.2 dB, .5 gives 37.8 (.3 to .7 within .13).
_BEFORE_CLIPPING = 0.5
_SKEWED = (
    0.1,
    0.3,
)  # skewness of what was removed over that of the model: from no to full correction
_MOST = 0.4  # standard deviation in the table, as a share of white
_LEAST = 0.01  # the same, below which skewness is weighed less
_MEANS, _LEVELS = 129, 81  # size of the table
_BEYOND = (
    0.8  # root of the light below black (twice that: of all light), cube root of the noise, in it
)
_ROWS = 256  # looked up at a time


def curve(light: Array) -> Array:
    """Return the sRGB curve of linear light, both 0 to 1."""
    light = np.clip(light, 0.0, 1.0)
    root = 1.055 * np.maximum(light, 1e-9) ** (1 / 2.4) - 0.055
    return np.where(light <= 0.0031308, 12.92 * light, root)


def removed_level(noisy: Float, denoised: Float) -> Float:
    """Return the local level of what was removed from pixels (*spatial, channels), slice by slice."""
    level = np.empty_like(noisy)
    slices = (each.reshape(-1, *noisy.shape[-3:]) for each in (noisy, denoised, level))
    for before, after, own in zip(*slices, strict=True):
        own[...] = _smooth_level(before - after)
    return level


def _smooth_level(removed: Float) -> Float:
    """Return the local level of (y, x, channels); it is measured at a quarter of the size."""
    height, width, _ = removed.shape
    window = (_WIDTH / 4, _WIDTH / 4, 0.0)
    small = scipy.ndimage.gaussian_filter(halve(halve(removed * removed)), window, truncate=3.0)
    return quadruple(np.sqrt(small), (height, width))


def tone_share(noisy: Float, denoised: Float, level: Float) -> float:
    """Return how much of the correction is due, 0 to 1: as what was removed is skewed.

    Both pictures are gamma-encoded, (*spatial, channels), 0 to 1; ``level`` is that of what was removed.
    """
    _, third = _tables()
    found = expected = 0.0
    for before, after, own_level in _strips(noisy, denoised, level):
        own = _nearest(third, after, own_level)
        weight = own / _cube(np.maximum(own_level, _LEAST)) ** 2 * _can_be_shown(after, own_level)
        found += float((weight * _cube(before - after)).sum(dtype=np.float64))
        expected += float((weight * own).sum(dtype=np.float64))
    skew = found / max(expected, 1e-12)
    return float(np.clip((skew - _SKEWED[0]) / (_SKEWED[1] - _SKEWED[0]), 0.0, 1.0))


def correct_tone(
    denoised: Float, level: Float, share: float, scale: float = 1.0, offset: float = 0.0
) -> Float:
    """Return denoised pixels with a share of the correction.

    ``scale * denoised + offset`` is gamma-encoded, 0 to 1; ``level`` is in the units of ``denoised``.  No
    pixel is moved beyond 0 or 1, and what is far outside stays as it is.
    """
    correction, _ = _tables()
    pixels, levels = (np.asarray(each, np.float32).ravel() for each in (denoised, level))
    found = _native.correct_tone(pixels, levels, correction, _MOST, scale, offset, share)
    return found.reshape(denoised.shape)


def _cube(values: Float) -> Float:
    """Return the third powers: NumPy's own are ten times as slow."""
    return values * values * values


def _can_be_shown(pixels: Float, level: Float) -> Array:
    """Return where pixels lie between black and white, or no further outside than noise brings them."""
    return (pixels > -level) & (pixels < 1 + level)


def _strips(*pictures: Float) -> Iterator[list[Float]]:
    """Cut pictures (*spatial, channels) into the same lines: views."""
    lines = [picture.reshape(-1, *picture.shape[-2:]) for picture in pictures]
    for at in range(0, len(lines[0]), _ROWS):
        yield [each[at : at + _ROWS] for each in lines]


def _nearest(table: Float, mean: Float, level: Float) -> Float:
    """Return what a table of (mean, standard deviation) has nearest."""
    n_means, n_levels = table.shape
    row = np.rint(np.clip(mean, 0.0, 1.0) * np.float32(n_means - 1)).astype(np.int32)
    column = np.rint(np.minimum(level, _MOST) * np.float32((n_levels - 1) / _MOST)).astype(np.int32)
    row *= np.int32(n_levels)
    row += column
    return table.ravel().take(row)


@functools.cache
def _tables() -> tuple[Float, Float]:
    """Return tables over (mean, standard deviation) of noisy pixels: correction and third moment."""
    nodes = np.linspace(-5, 5, 101)
    weights = np.exp(-(nodes**2) / 2)
    weights /= weights.sum()
    root = np.linspace(-_BEYOND, 2 * _BEYOND, _MEANS)  # of light: dense where the curve is steep
    level = np.linspace(0.0, _BEYOND, _LEVELS // 2)
    x, s = np.meshgrid(root * np.abs(root), level**3, indexing="ij")
    clipped = np.clip(x[..., None] + s[..., None] * nodes, 0.0, 1.0)
    y = curve(clipped)
    mean = _average(y, weights)
    centred = y - mean[..., None]
    squares = centred * centred
    spread, third = np.sqrt(_average(squares, weights)), _average(squares * centred, weights)
    seen = (root >= 0) & (root <= 1)
    before = _on_grid(mean[seen], spread[seen], (curve(x) - mean)[seen])
    after = _on_grid(mean, spread, curve(_average(clipped, weights)) - mean)
    correction = _BEFORE_CLIPPING * before + (1 - _BEFORE_CLIPPING) * after
    return correction.astype(np.float32), _on_grid(mean, spread, third).astype(np.float32)


def _average(values: Array, weights: Array) -> Array:
    """Average over the last axis; not by the BLAS, whose threads would only wait for each other."""
    return (values * weights).sum(axis=-1)


def _on_grid(mean: Array, spread: Array, values: Array) -> Array:
    """Interpolate what is known at (light, level) to a table over mean and standard deviation.

    At each level the mean rises with the light; at each mean the deviation rises with the level.  Beyond
    what can occur the table goes on as at the largest deviation.
    """
    means, spreads = np.linspace(0, 1, _MEANS), np.linspace(0, _MOST, _LEVELS)
    lines = [(mean[end], spread[end], values[end]) for end in (0, -1)]  # no light is beyond these
    lines += zip(mean.T, spread.T, values.T, strict=True)
    found = []
    for along, *known in lines:
        rising = np.argsort(along, kind="stable")
        found.append([_between(means, along[rising], each[rising]) for each in known])
    known_spreads, known_values = np.moveaxis(np.array(found), 0, -1)
    table = np.zeros((_MEANS, _LEVELS))
    for row, own_spread, own in zip(table, known_spreads, known_values, strict=True):
        order = np.argsort(own_spread)[: np.isfinite(own_spread).sum()]
        if order.size:
            row[:] = _between(spreads, own_spread[order], own[order])
    table[:, 0] = 0.0
    for j in range(1, _LEVELS):
        table[:, j] = np.where(np.isnan(table[:, j]), table[:, j - 1], table[:, j])
    return table


def _between(places: Array, known: Array, values: Array) -> Array:
    """Interpolate between known places, which rise; NaN beyond them."""
    return np.interp(places, known, values, left=np.nan, right=np.nan)
