"""The noise of a mosaic: a sensor's Poisson-Gaussian law, found from the mosaic itself.

Black is known, so the law is variance = gain * light + read noise, light being what a pixel is above its
black.  As a rule all colours of a sensor share it; a colour that clearly does not has its own.

A first estimate is made from patches of one colour each, along the lattice on which a mosaic has it.  These
are wide, and texture in them looks like noise.  With it the mosaic is stabilised and its colour taken off
(:mod:`symsmooth.raw.colour`); patches of what is left are five pixels wide, and correct the estimate: on
twelve Kodak pictures at peaks 20, 100, 500 the gain was off by 6, 10, 16 % before (X-Trans: 9, 16, 48 %),
and is off by 5, 3, 7 % (5, 4, 8 %) on 24 after; docs/howto/raw.md has more.
"""

from __future__ import annotations

import numpy as np
import scipy.ndimage
from numpy.typing import ArrayLike

from ..core.image import Array, Float
from ..core.parallel import Pool
from ..noise.level import gradient_energy, patch_variance
from ..noise.levels import Photons
from .colour import find_colour
from .mosaic import lattice, sites, tiled

_SIDE = 5  # pixels of a patch
_PATCHES = 24_000  # of a colour
_GROUPS = 12  # of them, by brightness
# Patches of all colours together, and groups of them: the variance of a group of few flat patches is too
# small.  With 40 000 the gain of Kodak pictures is off by 9 % at peak 500 and 6 % at 100, not 7 and 3.
_FINE_PATCHES, _FINE_GROUPS = 160_000, 16
_FEWEST = 400  # patches in a group
_OWN = 1.5  # times the variance of another colour: with more, colours have laws of their own
_CALM = 0.3  # quantile of the energy where colours are compared
# Where there is no noise at all, for light whose spread is 1: what it takes for noise is a few times what
# float32 rounds by.
_MIN_GAIN = 1e-10
_WINDOW, _WINDOWS = 240, 4  # pixels (a multiple of all patterns), windows along each side
_NO_GROWTH = 1e-4  # gain over standard deviation where noise does not grow with the light
_ROUNDS, _SETTLED = 30, 1e-4  # of the fit, unless it moves by less
_TEXTURE = 1.5  # a variance above the line is doubted so much more than one below


def fit_sensor_noise(light: Float, pattern: Array, excluded: Array | None = None) -> Photons:
    """Estimate gain and read noise of red, green and blue from a mosaic less its black.

    Light is in units of its spread; of a large mosaic sixteen windows are looked at.  Pixels that are
    ``excluded`` say nothing: missing, clipped.
    """
    light = _windows(light, pattern)
    excluded = None if excluded is None else _windows(excluded, pattern)
    rough = _fit_colours(light, pattern, excluded)
    if rough is None:
        return Photons((_MIN_GAIN,) * 3, (0.0,) * 3)
    return _refine(rough, light, pattern, excluded)


def stabilise(light: Float, pattern: Array, noise: Photons) -> Float:
    """Return a mosaic whose noise has variance 1 in all colours: generalised Anscombe transform."""
    out = np.empty(light.shape, np.float32)
    for colour, site in sites(pattern):
        out[site] = _of_colour(noise, colour).stabilise(light[site][..., np.newaxis])[..., 0]
    return out


def undo_stabilise(stabilised: Float, pattern: Array, noise: Photons) -> Float:
    """Return the light whose stabilised pixels have these means: the exact unbiased inverse."""
    out = np.empty(stabilised.shape, np.float32)
    for colour, site in sites(pattern):
        out[site] = _of_colour(noise, colour).undo(stabilised[site][..., np.newaxis])[..., 0]
    return out


def _of_colour(noise: Photons, colour: int) -> Photons:
    return Photons((noise.gain[colour],), (noise.offset[colour],))


def _windows(values: Array, pattern: Array) -> Array:
    """Return a mosaic, or sixteen windows of a large one, side by side in the same pattern."""
    side = _WINDOW // np.lcm.reduce(pattern.shape) * np.lcm.reduce(pattern.shape)
    for axis, period in enumerate(pattern.shape):
        size = values.shape[axis]
        if size > _WINDOWS * side:
            starts = [round((size - side) * i / (_WINDOWS - 1)) for i in range(_WINDOWS)]
            at = [np.arange(side) + start // period * period for start in starts]
            values = values.take(np.concatenate(at), axis)
    return values


def _refine(
    rough: tuple[float, float], light: Float, pattern: Array, excluded: Array | None
) -> Photons:
    """Correct a law by the variance of patches of all colours, which is 1 where it is true."""
    common = Photons((rough[0],) * 3, (rough[1],) * 3)
    if min(light.shape) < 4 * _SIDE:
        return common
    grey = stabilise(light, pattern, common)
    grey -= find_colour(grey, pattern, 1.0, "fast", np.random.default_rng(0), Pool(None))
    height, width = (n - _SIDE + 1 for n in light.shape)
    y, x = np.divmod(_draw(height * width, _FINE_PATCHES, 1), width)
    u, v = np.indices((_SIDE, _SIDE))
    places = y[:, np.newaxis, np.newaxis] + u, x[:, np.newaxis, np.newaxis] + v
    if excluded is not None:
        whole = ~excluded[places].any(axis=(1, 2))
        places = places[0][whole], places[1][whole]
    means = light[places].mean(axis=(1, 2), dtype=np.float64)
    levels, ratios = _grouped(grey[places].astype(np.float64), means, _FINE_GROUPS)
    if levels.size == 0 or ratios.max() <= 0.0:
        return common
    variances = ratios * (rough[0] * np.maximum(levels, 0.0) + rough[1])
    gain, read = _fit(levels, variances)
    read = max(read, min(_read_at_least(light), float(variances[0])))
    lines = [
        _growing(float(factor) * gain, float(factor) * read)
        for factor in _colour_factors(grey, pattern, excluded)
    ]
    gains, reads = zip(*lines, strict=True)
    return Photons(gains, reads)


def _read_at_least(light: Float) -> float:
    """Return a bound from below on the read noise: light is below zero by it alone."""
    below = light[light < 0.0]
    return float(np.mean(below**2, dtype=np.float64)) if below.size >= _FEWEST else 0.0


def _colour_factors(grey: Float, pattern: Array, excluded: Array | None) -> Array:
    """Return the variance of each colour in that of all, (3,); ones unless they clearly differ.

    Measured on what a pixel is above its neighbours, where that is least: texture is the same for all.
    """
    detail = np.float32(9 / 8) * (grey - scipy.ndimage.uniform_filter(grey, 3))
    energy = scipy.ndimage.uniform_filter(detail**2, _SIDE)
    if excluded is not None:  # a clipped colour has no noise, and calms its neighbours
        energy[scipy.ndimage.maximum_filter(excluded, _SIDE + 2)] = np.inf
    calm = energy <= np.quantile(energy, _CALM * np.isfinite(energy).mean(), method="lower")
    calm &= np.isfinite(energy)
    if calm.sum() < _FEWEST:
        return np.ones(3)
    colours = tiled(pattern, grey.shape)
    levels = [np.median(np.abs(detail[calm & (colours == colour)])) for colour in range(3)]
    variances = np.square(np.maximum(levels, 1e-6))
    if variances.max() < _OWN * variances.min():
        return np.ones(3)
    shares = np.array([(pattern == colour).mean() for colour in range(3)])
    return variances / (variances @ shares)


def _fit_colours(
    light: Float, pattern: Array, excluded: Array | None
) -> tuple[float, float] | None:
    """Estimate the law from patches of one colour each; None if no patch is there, or none has noise."""
    groups = [_colour_groups(light, pattern, colour, excluded) for colour in range(3)]
    levels, variances = (np.concatenate(each) for each in zip(*groups, strict=True))
    return _fit(levels, variances) if levels.size and variances.max() > 0.0 else None


def profile_noise(profile: ArrayLike, span: float) -> Photons:
    """Return what the NoiseProfile of a DNG says, for pixels that lie ``span`` between black and white.

    It has pairs (S, O) with variance S x + O of a pixel x between 0 and 1: one, or one for each colour.
    """
    pairs = np.asarray(profile, np.float64).reshape(-1, 2)
    pairs = np.repeat(pairs, 3, axis=0) if len(pairs) == 1 else pairs
    if len(pairs) != 3 or not np.isfinite(pairs).all() or (pairs < 0).any() or not pairs.any():
        raise ValueError(f"NoiseProfile must have one or three pairs of numbers, got {profile!r}")
    gain, read = zip(*(_growing(slope, offset) for slope, offset in pairs), strict=True)
    return in_other_units(Photons(gain, read), span)


def in_other_units(noise: Photons, unit: float) -> Photons:
    """Return a law for light that was counted in a unit, in the units of that unit."""
    gain = tuple(unit * slope for slope in noise.gain)
    read = tuple(unit * (unit * offset) for offset in noise.offset)
    if not (np.isfinite([*gain, *read]).all() and min(gain) > 0.0):
        raise ValueError(
            f"mosaic has light of about {unit:.0e}, whose noise has a variance beyond floating point; "
            "multiply it by a constant first"
        )
    return Photons(gain, read)


def _fit(levels: Array, variances: Array) -> tuple[float, float]:
    """Fit variance = gain * level + read, read >= 0, in the relative residuals, robustly."""
    gain, read = _fit_line(levels, variances)
    if read < 0.0:  # less than no read noise: the line must begin at black
        gain, read = float(np.median(variances / np.maximum(levels, 1e-30))), 0.0
    elif gain <= 0.0:
        gain, read = 0.0, float(np.median(variances))
    return _growing(gain, read)


def _fit_line(levels: Array, variances: Array) -> tuple[float, float]:
    """Fit variance = gain * level + offset by reweighting (Cauchy): texture only adds to variances."""
    tiny = 1e-12 + 1e-6 * float(variances.max(initial=0.0))
    gain, offset = _least_squares(levels, variances, 1.0 / np.maximum(variances, tiny) ** 2)
    for _ in range(_ROUNDS):
        predicted = np.maximum(gain * levels + offset, tiny)
        residuals = (variances - predicted) / predicted
        scaled = np.where(residuals > 0, _TEXTURE, 1.0) * residuals / _spread(residuals)
        before = np.array([gain, offset])
        gain, offset = _least_squares(levels, variances, 1.0 / (1.0 + scaled**2) / predicted**2)
        if np.abs([gain, offset] - before).max() <= _SETTLED * max(abs(gain), abs(offset)):
            break
    return float(gain), float(offset)


def _least_squares(levels: Array, variances: Array, weights: Array) -> tuple[float, float]:
    """Fit a line by weighted least squares."""
    total = weights.sum()
    centre, mean = weights @ levels / total, weights @ variances / total
    away = levels - centre
    gain = weights @ (away * variances) / max(weights @ away**2, 1e-300)
    return gain, mean - gain * centre


def _spread(residuals: Array) -> float:
    """Return their robust standard deviation; groups of patches are not surer than 3 %."""
    return max(1.4826 * float(np.median(np.abs(residuals))), 0.03)


def _growing(gain: float, read: float) -> tuple[float, float]:
    """Return a law that the generalised Anscombe transform takes: with a gain, however small."""
    return max(gain, _NO_GROWTH * float(np.sqrt(max(read, 0.0))), _MIN_GAIN), max(read, 0.0) + 0.0


def _colour_groups(
    light: Float, pattern: Array, colour: int, excluded: Array | None
) -> tuple[Array, Array]:
    """Return the mean level and the variance of groups of patches of one colour."""
    patches = _sample(light, pattern, colour, excluded)
    return _grouped(patches, patches.mean(axis=(1, 2)), _GROUPS)


def _grouped(patches: Array, means: Array, max_groups: int) -> tuple[Array, Array]:
    """Return the mean level and the variance of groups of patches of like brightness."""
    count = min(max_groups, len(patches) // _FEWEST)
    if count == 0:
        return np.empty(0), np.empty(0)
    groups = np.array_split(np.argsort(means, kind="stable"), count)
    with Pool(1):  # many small products: threads of the BLAS would only wait for each other
        energy = gradient_energy(patches)
        variances = np.array([patch_variance(patches[group], energy[group]) for group in groups])
    return np.array([means[group].mean() for group in groups]), variances


def _sample(light: Float, pattern: Array, colour: int, excluded: Array | None) -> Array:
    """Return patches (m, 5, 5) of one colour, along its lattice, at random places."""
    across, down = lattice(pattern, colour)
    u, v = np.indices((_SIDE, _SIDE))
    steps = u[..., np.newaxis] * across + v[..., np.newaxis] * down
    places = np.argwhere(pattern == colour)
    low, high = steps.min(axis=(0, 1)), steps.max(axis=(0, 1))
    shape, tile = np.array(light.shape), np.array(pattern.shape)
    tiles = -(-shape // tile)
    chosen = _draw(int(tiles.prod()) * len(places), _PATCHES, 0)
    which, place = np.divmod(chosen, len(places))
    origin = np.stack(np.divmod(which, tiles[1]), axis=1) * tile + places[place]
    origin = origin[((origin + low >= 0) & (origin + high < shape)).all(axis=1)]
    y, x = np.moveaxis(origin[:, np.newaxis, np.newaxis] + steps, -1, 0)
    if excluded is not None:
        whole = ~excluded[y, x].any(axis=(1, 2))
        y, x = y[whole], x[whole]
    return light[y, x].astype(np.float64)


def _draw(count: int, max_count: int, seed: int) -> Array:
    """Return all numbers below ``count``, or ``max_count`` of them at random."""
    if count <= max_count:
        return np.arange(count)
    return np.sort(np.random.default_rng(seed).choice(count, max_count, replace=False))
