"""Members of clusters: which patches they are, with and without their rim."""

from __future__ import annotations

import numpy as np
import pytest

from symsmooth.core.parallel import Pool
from symsmooth.core.patches import whiten_inside
from symsmooth.gsfw.estimators import spectral
from symsmooth.mixture.em import fit_mixture, initial_mixture
from symsmooth.mixture.members import Members, assign_patches


def members_of(image: np.ndarray, extent: tuple[int, ...]) -> Members:
    features = whiten_inside(image, extent, 8.0, 10.0)
    rng = np.random.default_rng(0)
    with Pool(1) as pool:
        start = initial_mixture(features, 12, rng)
        fit = fit_mixture(features, start, pool, max_iter=1, tol=-np.inf, subsample=1, reach=2.0)
        return assign_patches(
            features, fit.mixture, fit.near, pool, max_clusters=3, temperature=0.5
        )


@pytest.mark.parametrize(
    ("shape", "extent"), [((20, 26), (6, 6)), ((5, 18, 21), (2, 5, 5)), ((18, 3, 21), (6, 1, 6))]
)
def test_patches_without_their_rim_are_the_middles_of_the_same_patches(shape, extent) -> None:
    image = np.random.default_rng(1).normal(100, 20, (*shape, 1)).astype(np.float32)
    members = members_of(image, extent)
    inner = members.without_rim()
    flat, width = np.arange(np.prod(shape)), shape[-1]

    def pixels(own: Members) -> np.ndarray:
        """Return the places of each member's pixels, (members, depth, y, x)."""
        depth, high, wide = (np.arange(n) for n in own.patch)
        steps = (
            depth[:, None, None] * shape[-2] * width + high[:, None] * width + wide
        )  # from a corner
        return flat[own.corners[:, None, None, None] + steps]

    inside = tuple(slice(1, -1) if side > 2 else slice(None) for side in members.patch)
    np.testing.assert_array_equal(pixels(inner), pixels(members)[(slice(None), *inside)])
    np.testing.assert_array_equal(inner.shares, members.shares)
    np.testing.assert_array_equal(inner.pointers, members.pointers)


def test_pixels_that_only_a_rim_covers_stay_as_they_are() -> None:
    image = np.random.default_rng(2).normal(100, 20, (24, 24, 1)).astype(np.float32)
    inner = members_of(image, (6, 6)).without_rim()
    with Pool(1) as pool:
        found = spectral(image[..., 0], inner, 20.0, pool).image
    np.testing.assert_array_equal(found[0], image[0, :, 0])
    assert np.abs(found[1:-1, 1:-1] - image[1:-1, 1:-1, 0]).min() > 0
