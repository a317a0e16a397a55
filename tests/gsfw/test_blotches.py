"""Blotches: colour noise that is coarser than a patch."""

from __future__ import annotations

import numpy as np
import scipy.ndimage

from symsmooth.core.image import open_image
from symsmooth.core.parallel import Pool
from symsmooth.gsfw.blotches import remove_blotches
from symsmooth.gsfw.presets import PRESETS
from symsmooth.noise import Correlated

TRANSFORM = np.linalg.qr(np.array([[1.0, 1, 0], [1, 0, 1], [1, -1, -1]]))[0].astype(np.float32)

# Energies of coarse noise: none of it is fine
FALLING = np.where(np.add.outer(np.arange(8), np.arange(8)) < 6, 1.0, 1e-3)


def left_over(shape: tuple[int, int]) -> np.ndarray:
    """What a denoiser leaves: colour stains some 20 pixels wide, of standard deviation 2."""
    stains = np.random.default_rng(0).standard_normal((*shape, 3))
    stains = scipy.ndimage.gaussian_filter(stains, (7, 7, 0))
    stains *= 2 / stains.std() * np.array([0.0, 1.0, 1.0])
    return stains @ TRANSFORM.T


def cleaned(shape: tuple[int, int], scene: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(denoised, without blotches, true) in opponent colours."""
    denoised = scene + left_over(shape)
    picture = open_image(denoised, -1)
    noise = Correlated(np.tile(16.0**2 * FALLING, (3, 1, 1)), TRANSFORM).in_units(
        picture.offset, picture.scale
    )
    rng = np.random.default_rng(0)
    result = remove_blotches(picture, picture.noisy, noise, 1.0, PRESETS["fast"], rng, Pool(1))
    result = result * picture.scale + picture.offset
    return tuple(image @ TRANSFORM for image in (denoised, result, scene))


def test_stains_fade_and_brightness_is_untouched() -> None:
    denoised, result, scene = cleaned((200, 230), np.full((200, 230, 3), 120.0))
    assert np.abs(result - denoised)[..., 0].max() < 1e-3
    before, after = (np.square(image - scene)[..., 1:].mean() for image in (denoised, result))
    assert after < 0.7 * before


def test_the_edge_of_a_coloured_thing_stays_where_it_is() -> None:
    scene = np.full((160, 160, 3), 120.0)
    scene[:, 80:] = [180.0, 90.0, 60.0]
    denoised, result, scene = cleaned((160, 160), scene)
    near = np.abs(result - denoised)[:, 72:88, 1:]
    assert near.max() < 8.0  # the edge itself is some 60 high


def test_small_pictures_and_volumes_come_back_as_they_are() -> None:
    noise = Correlated(np.tile(FALLING, (3, 1, 1)), TRANSFORM)
    for shape in ((40, 200, 3), (70, 70, 70, 3)):
        picture = open_image(np.random.default_rng(0).normal(size=shape), -1)
        rng = np.random.default_rng(0)
        result = remove_blotches(picture, picture.noisy, noise, 1.0, PRESETS["fast"], rng, Pool(1))
        assert result is picture.noisy
