"""Coarse noise: its spectrum, from the regions that are nothing but noise, and how sure that is.

What cannot be known from one picture is whether a rough wall is texture or noise.  Regions of noise are
alike in all directions and at all places (:mod:`.regions`); where there are many of them, and few others
that are as quiet, it is noise.  The finding is used as far as it can be trusted: the spectrum is that of
the white floor plus a share of what the regions show above it, and the share is continuous.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..core.image import Array, Float
from .regions import LEVEL_RINGS, N_RINGS, RADIUS, RING, Regions

_CLASSES, _CLASS_SIZE = 6, 64  # of brightness, with as many regions each, at least so many
_FEWEST = 16  # noise-like regions in a class, or it says nothing
_QUANTILE = 0.25  # of the levels of a class's noise-like regions: texture is louder
_TOLERANCE = 1.5  # times that level: up to there a noise-like region is taken for noise
_WIDE_TOLERANCE = 4.0  # the same where noise is everywhere, and there is no texture to be afraid of
_TOO_DEAD = (0.3, 0.6)  # share of such regions, from full to no trust: noise is everywhere
_DEAD = 0.5  # times the square of a rounding step: quieter regions are flat by quantisation
# Noise has no more than this times the level of its calmest places (quantile), 2^.7 to 2^1.1
# typically; unless the white floor is so low (in rounding steps, from not to fully used) that a JPEG
# has made places dead.
_CALM, _CALM_LIMIT, _NOT_DEAD = 0.01, 1.7, (0.2, 0.6)
# Noise is everywhere: from none to all
_ALL_PURITY, _ALL_SHARE = (0.6, 0.75), (0.25, 0.5)
# So many regions of noise, so few others as quiet, that no more is asked: purity + log2(share) / 4, from
# none to full trust; the coarseness that goes with it (water and grass: up to .46, but less coarse);
# log2 of the quietest regions' level over that of the noise (a clean sky is far quieter than a forest).
_SURE, _SURELY_COARSE, _EVEN = (0.32, 0.42), (1.1, 1.4), (-3.0, -1.5)
# Trust, a linear rule: (middle, scale, weight in colour, weight in grey) of purity; log2 of the share of
# noise regions; coarseness (log2 of the standard deviation in ring 2 over ring 5); slope (ring 0 over ring
# 2); log2 of the quietest regions' level over that of the noise; how far ring 5 is above the white floor;
# luma (ring 2) over chroma (ring 0), unless dead zones hide it; dead zones.  Fitted to real and simulated
# cameras and microscopes, clean pictures, JPEGs of these, white noise.
_TRUST = np.array(
    [
        (0.6, 0.25, 0.3, 0.4),
        (-3.0, 1.5, 1.4, 1.0),
        (1.0, 1.0, 1.3, 1.2),
        (0.5, 0.4, -0.6, -0.7),
        (-1.0, 1.5, 0.4, 0.5),
        (0.5, 0.5, -0.7, -0.6),
        (0.0, 0.8, -0.8, 0.0),
        (0.0, 1.0, 0.5, 0.0),
    ]
)
_MANY_IN_GREY = (32, 96)  # noise regions, from no to full trust
_QUIETEST = 0.05  # quantile
_TRUSTED_IN_COLOUR, _TRUSTED_IN_GREY = (-1.6, -0.3), (2.0, 2.7)  # from none to full trust
# Coarseness plus log2 of the level over the white floor, from white to coarse: white noise is better
# known from its floor.  White noise has at most 1.7 (sigma 15), or 1.0 where noise is everywhere;
# phones at least 2.5.
_NOT_WHITE, _NOT_WHITE_EVERYWHERE = np.array([1.6, 2.4]), np.array([0.9, 1.5])
# What the denoiser is told
_FLATTEN = (0.3, 0.15)  # of the log spectrum in colour, against a wrong shape; less if all is noise
# Times the level found, in colour, where tone curve, noise reduction and compression make noise
# uneven: from few to many regions at the noise floor, where oversmoothing costs little; and more
# chroma if a JPEG's dead zones hide it.
_LUMA, _CHROMA, _HIDDEN = (1.1, 1.3), (1.15, 1.5), 1.0
_FLOOR_SHARE = (0.2, 0.4)  # of the regions
# The standard deviation of ring 0 over ring 1, of ring 1 over ring 2, at most: more is shading
_STEEPEST_IN_COLOUR, _STEEPEST_IN_GREY = (1.25, 1.35), (1.05, 1.05)
_BEND, _SLACK = (
    0.65,
    0.02,
)  # rise of log2 sd from ring to ring, over the rise one ring above, if all is noise
_STEADY = 5  # the ring from where on that spectrum is taken as found
_CENTRES = np.array([RADIUS[np.equal(RING, k)].mean() for k in range(N_RINGS)])


@dataclass(frozen=True)
class CoarseNoise:
    """What the regions say of coarse noise.

    Attributes
    ----------
    variances : ndarray (channels, 8, 8)
    trust : float
        0 to 1: how far what is above the white floor is noise.
    coarseness : float
        Log2 of the standard deviation at middle over that at high frequencies.
    purity, share : float
        Share of noise-like regions among those as quiet; share of all regions that they are.
    level : float
        Standard deviation of the first channel, were it all noise.
    """

    variances: Array
    trust: float
    coarseness: float
    purity: float
    share: float
    level: float


def fit_coarse(
    regions: Regions, floor: Array, step: float, forced: bool = False
) -> CoarseNoise | None:
    """Find the spectrum of coarse noise, or None if there is not one region of noise.

    Parameters
    ----------
    regions : Regions
        With three channels these are opponent colours.
    floor : ndarray (channels,)
        Variance of the white noise that there is at least.
    step : float
        Distance between neighbouring pixel values, 0 if not rounded.
    forced : bool
        Whether noise is known to be coarse: then all that the regions show is noise.
    """
    energy = regions.energy.astype(np.float64)
    level = energy[:, 0, LEVEL_RINGS].mean(axis=1)
    live = level > max(_DEAD * step**2, 1e-12)
    like = live & (regions.oddness < 1.0)
    classes = _classes(level, live, like, regions.brightness)
    if not classes and forced and len(regions) > 0:  # all are noise, then
        classes = [_Class(np.arange(len(regions)), 1.0, 1.0)]
    if not classes:
        return None
    weights = np.array([c.purity**2 * c.share for c in classes])
    weights /= weights.sum()
    spectrum = sum(w * energy[c.chosen].mean(axis=0) for w, c in zip(weights, classes, strict=True))
    purity = float(sum(w * c.purity for w, c in zip(weights, classes, strict=True)))
    share = float(sum(c.share for c in classes) / _n_classes(len(regions)))
    own_level = spectrum[0, LEVEL_RINGS].mean()
    limit = _CALM_LIMIT * float(np.quantile(regions.places, _CALM))
    seen = _ramp(float(np.sqrt(floor[0])) / max(step, 1e-9), *_NOT_DEAD)
    if limit < own_level:  # texture everywhere: the calmest places have less
        spectrum = spectrum * (limit / own_level) ** seen
        own_level = spectrum[0, LEVEL_RINGS].mean()
    everywhere = _ramp(purity, *_ALL_PURITY) * _ramp(share, *_ALL_SHARE)
    inside = like & (level < _WIDE_TOLERANCE * own_level)
    if everywhere > 0.0 and inside.any():
        pool = energy[inside].mean(axis=0)
        if len(pool) == 3:
            pool[0] = _without_texture(pool[0])
        spectrum = spectrum ** (1 - everywhere) * pool**everywhere
    spectrum = np.maximum(spectrum, 1e-6 * spectrum.max() + 1e-30)
    coarseness = float(np.log2(spectrum[0, 2] / spectrum[0, 5]) / 2)
    trust = 1.0
    if not forced:
        quietest = float(np.quantile(level, _QUIETEST) / max(own_level, 1e-30))
        limits = _NOT_WHITE + everywhere * (_NOT_WHITE_EVERYWHERE - _NOT_WHITE)
        ring, whole = _above(spectrum[0, 5], floor[0], step), _above(own_level, floor[0], step)
        trust = _trust(spectrum, purity, share, quietest, ring, seen)
        if len(spectrum) == 3:
            trust = max(trust, everywhere)
        else:  # in grey, texture may be everywhere, too, and a few regions say little
            trust *= _ramp(sum(len(c.chosen) for c in classes), *_MANY_IN_GREY)
        sure = _ramp(purity + np.log2(share) / 4, *_SURE)
        sure *= _ramp(coarseness, *_SURELY_COARSE) * _ramp(np.log2(quietest + 1e-3), *_EVEN)
        trust = max(trust, sure)
        trust *= _ramp(coarseness + whole, *limits)
        trust *= 1.0 - _ramp(float(1.0 - live.mean()), *_TOO_DEAD)
    at_floor = _ramp(float((level < 2 * own_level).mean()), *_FLOOR_SHARE)
    in_colour = len(spectrum) == 3
    chroma = _between(_CHROMA, at_floor) + (1.0 - seen) * _HIDDEN
    strength = np.array([_between(_LUMA, at_floor), chroma, chroma] if in_colour else [1.0])
    flatten = _between(_FLATTEN, everywhere) if in_colour else 0.0
    steepest = _STEEPEST_IN_COLOUR if in_colour else _STEEPEST_IN_GREY
    found = _to_frequencies(spectrum, flatten, steepest)
    found = found * strength[:, None, None] ** 2
    variances = floor[:, None, None] + trust * np.maximum(found - floor[:, None, None], 0.0)
    level = float(np.sqrt(found[0].mean()))
    return CoarseNoise(variances, trust, coarseness, purity, share, level)


@dataclass(frozen=True)
class _Class:
    """Regions of one brightness: those taken for noise, their share, and how few others are as quiet."""

    chosen: Array
    share: float
    purity: float


def _classes(level: Float, live: Array, like: Array, brightness: Float) -> list[_Class]:
    """Cut the regions into classes of brightness and find the noise in each."""
    found = []
    order = np.argsort(brightness, kind="stable")
    for group in np.array_split(order, _n_classes(len(order))):
        noise = group[like[group]]
        if len(noise) < _FEWEST:
            continue
        limit = _TOLERANCE * np.quantile(level[noise], _QUANTILE)
        chosen = noise[level[noise] < limit]
        as_quiet = int((live[group] & (level[group] < limit)).sum())
        found.append(_Class(chosen, len(chosen) / len(group), len(chosen) / as_quiet))
    return found


def _above(variance: float, floor: float, step: float) -> float:
    """Return log2 of a standard deviation over that of the white floor, neither below a rounding step."""
    unit = max(step**2, 1e-12)
    return float(np.log2((variance + unit) / (floor + unit)) / 2)


def _n_classes(n_regions: int) -> int:
    return min(max(n_regions // _CLASS_SIZE, 1), _CLASSES)


def _trust(
    spectrum: Array, purity: float, share: float, quietest: float, above_floor: float, seen: float
) -> float:
    """Return how far a spectrum (channels, rings) is one of noise, 0 to 1."""
    log = np.log2(spectrum) / 2
    in_colour = len(log) == 3
    features = [
        purity,
        np.log2(share + 0.005),
        log[0, 2] - log[0, 5],
        log[0, 0] - log[0, 2],
        np.log2(quietest + 1e-3),
        above_floor,
        seen * (log[0, 2] - log[1, 0]) if in_colour else 0.0,
        1.0 - seen,
    ]
    middle, scale, *weights = _TRUST.T
    weight = weights[0] if in_colour else weights[1]
    score = float(np.clip((np.array(features) - middle) / scale, -3, 3) @ weight)
    return _ramp(score, *(_TRUSTED_IN_COLOUR if in_colour else _TRUSTED_IN_GREY))


def _without_texture(luma: Array) -> Array:
    """Limit the rise of a spectrum (rings,) towards low frequencies, as a short correlation does."""
    log = np.log2(np.maximum(luma, 1e-30)) / 2
    rise = max(log[_STEADY - 1] - log[_STEADY], 0.0)
    for k in range(_STEADY - 2, -1, -1):
        rise = min(max(log[k] - log[k + 1], 0.0), _BEND * rise + _SLACK)
        log[k] = min(log[k], log[k + 1] + rise)
    return 4.0**log


def _to_frequencies(spectrum: Array, flatten: float, steepest: tuple[float, float]) -> Array:
    """Interpolate (channels, rings) over the radius to (channels, 8, 8), flattened towards the mean.

    What rises more steeply towards frequency zero in the first channel is shading.
    """
    spectrum = spectrum.copy()
    for ring in (1, 0):
        limit = steepest[ring] ** 2 * spectrum[0, ring + 1]
        spectrum[0, ring] = min(spectrum[0, ring], limit)
    log = np.log(spectrum)
    found = np.stack([np.interp(RADIUS, _CENTRES, row) for row in log])
    found[:, 0, 0] = log[:, 0] + np.clip(log[:, 0] - log[:, 1], 0.0, np.log(3.0))
    found = np.exp(found)
    return found ** (1 - flatten) * found.mean(axis=(1, 2), keepdims=True) ** flatten


def _ramp(value: float, low: float, high: float) -> float:
    """Go from 0 at low to 1 at high."""
    return float(np.clip((value - low) / (high - low), 0.0, 1.0))


def _between(ends: tuple[float, float], share: float) -> float:
    return ends[0] + share * (ends[1] - ends[0])
