"""Blotches: colour noise that is coarser than a patch, removed at a quarter of the size.

A camera's colour noise reaches 16 to 64 pixels; patches of 8 pixels cannot tell it from a stain.  So the
denoised picture is denoised once more at a quarter of the size, where what is left is 4 to 16 pixels wide,
and the change is carried back to the colours of the full size.  As much is taken for left over as the noise
had at the lowest frequencies (0.6 of it: -.01 dB on phones, -.02 on cameras).  Brightness is left as it is:
its noise is finer, and its shading is not noise.
"""

from __future__ import annotations

import numpy as np

from ..core.channels import mix
from ..core.image import Float, Picture
from ..core.multiscale import halve, quadruple
from ..core.parallel import Pool
from ..noise import Noise
from .observation import Observation, Scene
from .presets import Preset
from .stages import run_gsfw

_SMALLEST = 64  # pixels a side: a smaller picture has no room for blotches


def remove_blotches(
    picture: Picture,
    denoised: Float,
    noise: Noise,
    strength: float,
    preset: Preset,
    rng: np.random.Generator,
    pool: Pool,
    scene: Scene | None = None,
) -> Float:
    """Return denoised pixels whose colours have no blotches; flat pictures in colour only.

    ``scene`` is what :func:`blotch_scene` says of the picture that this is a piece of.
    """
    coarse = noise.coarse_levels()
    if coarse is None or picture.noisy.shape[-1] != 3 or len(picture.spatial) != 2:
        return denoised
    if min(picture.spatial) < _SMALLEST:
        return denoised
    levels, transform = coarse
    level = (levels / 4).astype(np.float32)
    small = _quartered(denoised, transform, level)
    mask = picture.mask
    if mask is not None:
        mask = _quarter(mask[..., np.newaxis].astype(np.float32))[..., 0] > 0.5
    observed = None if mask is None else (~mask).astype(np.float32)
    scene = scene or Scene.of(small)
    is_piece = picture.whole is not None
    observation = Observation(small, observed, strength, scene, is_piece=is_piece)
    found = run_gsfw(observation, preset, rng, pool)
    change = (found.image - small) * level
    change[..., 0] = 0.0
    rows, columns = picture.spatial
    return denoised + quadruple(mix(change, transform.T), (rows, columns))


def blotch_scene(sample: Picture, noise: Noise) -> Scene | None:
    """Return the scene in which blotches are removed, from a sample of a picture; None if it has none."""
    coarse = noise.coarse_levels()
    if coarse is None or sample.noisy.shape[-1] != 3:
        return None
    levels, transform = coarse
    return Scene.of(_quartered(sample.noisy, transform, levels / 4))


def _quartered(pixels: Float, transform: Float, level: Float) -> Float:
    """Return pixels at a quarter of their size, channels transformed and of noise level 1."""
    return (mix(_quarter(pixels), transform) / level).astype(np.float32)


def _quarter(image: Float) -> Float:
    return halve(halve(image))
