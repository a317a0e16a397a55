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
from .curve import LevelCurve, fit_curve
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
# has made places dead: rounding alone leaves 0.29.
_CALM, _CALM_LIMIT, _NOT_DEAD = 0.01, 1.7, (0.2, 0.4)
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
_TRUSTED_IN_GREY = (2.0, 2.7)  # from none to full trust
# Texture out of focus looks like noise that was much blurred: from full to no trust in grey, log2 of the
# standard deviation in ring 1 over ring 3 (texture 1.36 to 1.73, noise .1 to 1.16, or more if blurred by
# 1.2 pixels or more), unless noise is everywhere.
_STEEP_IN_GREY, _NOT_EVERYWHERE = (1.15, 1.35), (0.0, 0.4)
# In colour there is always some: at a score of 0 at most this share of the pixels' range is removed, twice
# as much for each 1 above, half for each below.  If it was texture after all, no more than that is lost.
# Camera JPEGs gain 0.1 dB over trust from a score of -1.6 on; clean ones (75 to 95) keep 39.6 dB or more.
_AT_RISK = 0.08
# Coarseness plus log2 of the level over the white floor, from white to coarse: white noise is better
# known from its floor.  White noise has at most 1.7 (sigma 15), or 1.0 where noise is everywhere;
# phones at least 2.5.
_NOT_WHITE, _NOT_WHITE_EVERYWHERE = np.array([1.6, 2.4]), np.array([0.9, 1.5])
# The same in chroma, where there is little texture: log2 of the standard deviation in ring 4 over ring 6,
# from white to coarse.  White and photon noise have at most 0.3, cameras and phones at least 0.6.  Chroma
# is asked where its ring 6 is above half a rounding step and an eighth of luma's, from not to fully.
_NOT_WHITE_CHROMA, _CHROMA_ASKED = (0.3, 0.6), (0.0, 1.0)
# What the denoiser is told
_FLATTEN = (0.3, 0.15)  # of the log spectrum in colour, against a wrong shape; less if all is noise
# Times the level found, in colour, where tone curve, noise reduction and compression make noise
# uneven: from few to many regions at the noise floor, where oversmoothing costs little; and more
# chroma if a JPEG's dead zones hide it, whose chroma is coarser than its luma.
_LUMA, _CHROMA, _HIDDEN, _NOT_HIDDEN = (1.1, 1.3), (1.15, 1.5), 1.0, (0.2, 0.6)
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
    curve : LevelCurve or None
        Its level against the brightness of the first channel; None if that is flat.
    """

    variances: Array
    trust: float
    coarseness: float
    purity: float
    share: float
    level: float
    curve: LevelCurve | None


def fit_coarse(
    regions: Regions, floor: Array, step: float, span: float, forced: bool = False
) -> CoarseNoise | None:
    """Find the spectrum of coarse noise, or None if there is not one region of noise.

    Parameters
    ----------
    regions : Regions
        With three channels these are opponent colours.
    floor : ndarray (channels,)
        Variance of the white noise that there is at least.
    step, span : float
        Distance between neighbouring pixel values, 0 if not rounded; between the least and the largest.
    forced : bool
        Whether noise is known to be coarse: then all that the regions show is noise.
    """
    bottom = float(np.sqrt(floor[0])) / max(step, 1e-9)
    seen = _ramp(bottom, *_NOT_DEAD)
    pool = _pool(regions, floor, step, seen, forced)
    if pool is None:
        return None
    found = _denoiser_spectrum(pool, _ramp(bottom, *_NOT_HIDDEN))
    level = float(np.sqrt(found[0].mean()))
    trust = 1.0 if forced else _trust(pool, floor[0], step, level / max(span, 1e-30), seen)
    variances = floor[:, None, None] + trust * np.maximum(found - floor[:, None, None], 0.0)
    curve = fit_curve(pool.levels, pool.like, regions.brightness, trust)
    return CoarseNoise(variances, trust, pool.coarseness, pool.purity, pool.share, level, curve)


@dataclass(frozen=True)
class _Pool:
    """The regions that are taken for noise.

    ``levels`` and ``like`` are the levels of all regions, and which look like noise.  ``spectrum``
    (channels, rings) is the mean of those taken, ``number`` how many they are; of all regions ``quietest``
    is a low level over theirs, ``at_floor`` the share that is about as quiet, ``dead`` the share without
    anything; ``everywhere`` goes to 1 if nearly all are noise.
    """

    levels: Array
    like: Array
    spectrum: Array
    number: int
    purity: float
    share: float
    everywhere: float
    quietest: float
    at_floor: float
    dead: float

    @property
    def level(self) -> float:
        """Variance of the first channel in the rings that are called its level."""
        return float(self.spectrum[0, LEVEL_RINGS].mean())

    @property
    def coarseness(self) -> float:
        """Log2 of the standard deviation at middle over that at high frequencies."""
        return float(np.log2(self.spectrum[0, 2] / self.spectrum[0, 5]) / 2)


def _pool(regions: Regions, floor: Array, step: float, seen: float, forced: bool) -> _Pool | None:
    """Find the regions that are noise, by classes of brightness; None if there are none."""
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
    if limit < own_level:  # texture everywhere: calm places have less, but no less than the floor
        lowest = np.minimum(floor[:, np.newaxis], spectrum)
        left = max(limit - floor[0], 1e-3 * limit) / max(own_level - floor[0], 1e-3 * limit)
        spectrum = lowest + (spectrum - lowest) * min(left, 1.0) ** seen
        own_level = spectrum[0, LEVEL_RINGS].mean()
    everywhere = _ramp(purity, *_ALL_PURITY) * _ramp(share, *_ALL_SHARE)
    inside = like & (level < _WIDE_TOLERANCE * own_level)
    if everywhere > 0.0 and inside.any():
        wide = energy[inside].mean(axis=0)
        if len(wide) == 3:
            wide[0] = _without_texture(wide[0])
        spectrum = spectrum ** (1 - everywhere) * wide**everywhere
    spectrum = np.maximum(spectrum, 1e-6 * spectrum.max() + 1e-30)
    own_level = max(float(spectrum[0, LEVEL_RINGS].mean()), 1e-30)
    return _Pool(
        level,
        like,
        spectrum,
        sum(len(c.chosen) for c in classes),
        purity,
        share,
        everywhere,
        quietest=float(np.quantile(level, _QUIETEST)) / own_level,
        at_floor=float((level < 2 * own_level).mean()),
        dead=float(1.0 - live.mean()),
    )


def _denoiser_spectrum(pool: _Pool, chroma_seen: float) -> Array:
    """Return what the denoiser is told, (channels, 8, 8), were it all noise."""
    at_floor = _ramp(pool.at_floor, *_FLOOR_SHARE)
    if len(pool.spectrum) != 3:
        return _to_frequencies(pool.spectrum, 0.0, _STEEPEST_IN_GREY)
    luma = _between(_LUMA, at_floor)
    chroma = _between(_CHROMA, at_floor) + (1.0 - chroma_seen) * _HIDDEN
    flatten = _between(_FLATTEN, pool.everywhere)
    found = _to_frequencies(pool.spectrum, flatten, _STEEPEST_IN_COLOUR)
    return found * np.array([luma, chroma, chroma])[:, None, None] ** 2


def _trust(pool: _Pool, floor: float, step: float, level: float, seen: float) -> float:
    """Return how far the regions' spectrum is one of noise, 0 to 1; the level is a share of the range."""
    score = _score(pool, _above(pool.spectrum[0, 5], floor, step), seen)
    if len(pool.spectrum) == 3:
        at_most = _AT_RISK * 2.0**score / max(level, 1e-30)
        trust = max(min(at_most**2, 1.0), pool.everywhere)
    else:  # in grey, texture may be everywhere, too, and a few regions say little
        trust = _ramp(score, *_TRUSTED_IN_GREY) * _ramp(pool.number, *_MANY_IN_GREY)
    sure = _ramp(pool.purity + np.log2(pool.share) / 4, *_SURE)
    sure *= _ramp(pool.coarseness, *_SURELY_COARSE) * _ramp(np.log2(pool.quietest + 1e-3), *_EVEN)
    whole = _above(pool.level, floor, step)
    limits = _NOT_WHITE + pool.everywhere * (_NOT_WHITE_EVERYWHERE - _NOT_WHITE)
    not_white = _ramp(pool.coarseness + whole, *limits)
    if len(pool.spectrum) == 3:
        not_white *= 1.0 - _flat_chroma(pool.spectrum, step)
    else:
        steepness = _ramp(np.log2(pool.spectrum[0, 1] / pool.spectrum[0, 3]) / 2, *_STEEP_IN_GREY)
        not_white *= 1.0 - steepness * _ramp(1.0 - pool.everywhere, *_NOT_EVERYWHERE)
    return max(trust, sure) * not_white * (1.0 - _ramp(pool.dead, *_TOO_DEAD))


def _flat_chroma(spectrum: Array, step: float) -> float:
    """Return how far chroma says that noise is white, 0 to 1."""
    luma, *chroma = np.log2(spectrum) / 2
    least = max(luma[6] - 3.0, np.log2(max(step / 2, 1e-9)))
    fall = max(ring[4] - ring[6] for ring in chroma)
    asked = min(ring[6] - least for ring in chroma)
    return _ramp(asked, *_CHROMA_ASKED) * (1.0 - _ramp(fall, *_NOT_WHITE_CHROMA))


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


def _score(pool: _Pool, above_floor: float, seen: float) -> float:
    """Return what speaks for noise, against texture."""
    log = np.log2(pool.spectrum) / 2
    in_colour = len(log) == 3
    features = [
        pool.purity,
        np.log2(pool.share + 0.005),
        pool.coarseness,
        log[0, 0] - log[0, 2],
        np.log2(pool.quietest + 1e-3),
        above_floor,
        seen * (log[0, 2] - log[1, 0]) if in_colour else 0.0,
        1.0 - seen,
    ]
    middle, scale, *weights = _TRUST.T
    weight = weights[0] if in_colour else weights[1]
    return float(np.clip((np.array(features) - middle) / scale, -3, 3) @ weight)


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
