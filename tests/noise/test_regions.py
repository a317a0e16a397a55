"""Regions of nothing but noise: found by the shape of their statistics, not by their energy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.ndimage
from skimage import data

from symsmooth import estimate_noise
from symsmooth.core.image import open_image
from symsmooth.noise.regions import LEVEL_RINGS, dct_blocks, measure, transform_of


def noise(shape: tuple[int, ...], width: float, seed: int = 0) -> np.ndarray:
    """Noise of variance 1, smooth over ``width`` pixels."""
    white = np.random.default_rng(seed).standard_normal(shape)
    smooth = scipy.ndimage.gaussian_filter(white, (width, width) + (0.0,) * (len(shape) - 2))
    return smooth / smooth.std()


def tiles(shape: tuple[int, int], side: int, joint: int) -> np.ndarray:
    """A wall of flat tiles, bright joints between them."""
    rows, columns = (np.arange(n) % side < joint for n in shape)
    return np.where(rows[:, None] | columns, 170.0, 90.0)


def measured(image: np.ndarray):
    picture = open_image(image, -1 if image.ndim == 3 else None)
    return measure(picture, transform_of(picture)), picture


@pytest.mark.parametrize("width", [0.0, 0.7, 1.0])
@pytest.mark.parametrize("level", [0.5, 50.0])
def test_noise_is_noise_at_any_level(width: float, level: float) -> None:
    regions, picture = measured(100 + level * noise((256, 256), width))
    assert (regions.oddness < 1).mean() > 0.7
    found = regions.energy[:, 0, LEVEL_RINGS].mean() * picture.scale**2
    squares = dct_blocks((level * noise((256, 256), width))[..., None].astype(np.float32), 4) ** 2
    radius = np.hypot(*np.indices((8, 8)))
    true = np.mean([squares[..., (radius >= a) & (radius < b)].mean() for a, b in RINGS])
    assert found == pytest.approx(true, rel=0.05)


RINGS = ((1.2, 2.1), (2.1, 3.1), (3.1, 4.3))


def test_edges_and_lines_are_not_noise() -> None:
    pictures = [
        np.where(np.arange(256)[:, None] > np.arange(256), 200.0, 50.0),
        100 + 50 * np.sin(np.arange(256) / 3) * np.ones((256, 1)),
    ]
    for clean in pictures:
        regions, picture = measured(clean + 0.1 * noise(clean.shape, 0.0))
        loud = regions.energy[:, 0, LEVEL_RINGS].mean(axis=1) * picture.scale**2 > 100 * 0.1**2
        assert loud.sum() > 50
        assert (regions.oddness[loud] < 1).mean() < 0.1


def test_missing_pixels_are_no_evidence() -> None:
    image = 100 + 5 * noise((128, 128), 1.0)
    image[:, :64] = np.nan
    regions, _ = measured(image)
    assert 0 < len(regions) < 0.6 * 15**2


def test_noise_between_the_joints_of_tiles_is_found() -> None:
    wall = tiles((320, 320), 32, 5)[..., None] * np.array([1.0, 0.9, 0.8])
    levels = np.array([8.0, 7.0, 6.0])
    model = estimate_noise(np.rint(wall + levels * noise(wall.shape, 0.8)), channel_axis=-1)
    assert model.kind == "correlated"
    luma = np.sqrt(model.variances[0].mean())
    assert luma == pytest.approx(np.sqrt(np.mean(levels**2)), rel=0.4)


@pytest.mark.parametrize("name", ["camera", "coins", "moon", "page"])
def test_clean_pictures_have_no_coarse_noise(name: str) -> None:
    image = getattr(data, name)()
    model = estimate_noise(image)
    assert model.kind != "correlated" or model.sigma < 2.0
