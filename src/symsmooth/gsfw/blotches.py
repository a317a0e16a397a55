"""Blotches: colour noise that is coarser than a patch, removed at a quarter of the size.

A camera's colour noise reaches 16 to 64 pixels; patches of 8 pixels cannot tell it from a stain.  So the
denoised picture is denoised once more at a quarter of the size, where what is left is 4 to 16 pixels wide,
and the change is carried back to the colours of the full size.  Brightness is left as it is: its noise is
finer, and its shading is not noise.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..core.channels import mix
from ..core.image import Float, Picture
from ..core.multiscale import double, halve
from ..core.parallel import Pool
from ..noise import Noise
from .presets import Preset
from .stages import run_gsfw

# Of the level at the lowest frequencies: what is taken for left over.  On 20 phone pictures: 0 gives 38.11
# dB, .3 38.30, .5 38.34, .8 38.34; the noisy picture in place of the denoised one, at its best, 38.29.
_LEFT_OVER = 0.6
_SMALLEST = 64  # pixels a side: a smaller picture has no room for blotches


def remove_blotches(
    picture: Picture,
    denoised: Float,
    noise: Noise,
    strength: float,
    preset: Preset,
    rng: np.random.Generator,
    pool: Pool,
) -> Float:
    """Return denoised pixels whose colours have no blotches; flat pictures in colour only."""
    coarse = noise.coarse_levels()
    if coarse is None or picture.noisy.shape[-1] != 3 or len(picture.spatial) != 2:
        return denoised
    if min(picture.spatial) < _SMALLEST:
        return denoised
    levels, transform = coarse
    level = (strength * _LEFT_OVER / 4 * levels).astype(np.float32)
    small = _quartered(replace(picture, noisy=denoised), transform, level)
    found = run_gsfw(small, 1.0, preset, rng, pool)
    change = (found.image - small.noisy) * level
    change[..., 0] = 0.0
    half = tuple(-(-size // 2) for size in picture.spatial)
    full = double(double(change, half), picture.spatial)
    return denoised + mix(full, transform.T)


def _quartered(picture: Picture, transform: Float, level: Float) -> Picture:
    """Return the picture at a quarter of its size, channels transformed and of noise level 1."""
    whole = picture.whole and _quartered(picture.whole, transform, level)
    mask = picture.mask
    if mask is not None:
        mask = _quarter(mask[..., np.newaxis].astype(np.float32))[..., 0] > 0.5
    small = mix(_quarter(picture.noisy), transform) / level
    return replace(picture, noisy=small.astype(np.float32), mask=mask, whole=whole)


def _quarter(image: Float) -> Float:
    return halve(halve(image))
