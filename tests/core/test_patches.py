"""P and its adjoint."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from symsmooth.core.patches import aggregate_patches, extract_patches, whiten

from ..oracles import generalised_patches

shapes = st.one_of(
    st.tuples(st.integers(1, 8), st.integers(1, 8)),
    st.tuples(st.integers(1, 4), st.integers(1, 5), st.integers(1, 5)),
)


@given(shapes, st.sampled_from([1, 3, 5]), st.integers(1, 3), st.integers(0, 99))
def test_aggregation_is_the_adjoint_of_extraction(spatial, patch_size, channels, seed) -> None:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((*spatial, channels))
    q = rng.standard_normal((*spatial, patch_size ** len(spatial) * channels))
    left = np.sum(extract_patches(x, patch_size) * q)
    right = np.sum(x * aggregate_patches(q, patch_size, channels))
    assert np.isclose(left, right)


@given(shapes, st.sampled_from([1, 3, 5, 7]))
def test_every_pixel_is_covered_d_times(spatial, patch_size) -> None:
    """The paper's Assumption 1, sum_j P_j^T P_j = d I, holds exactly with mirrored borders."""
    x = np.random.default_rng(0).standard_normal((*spatial, 1))
    again = aggregate_patches(extract_patches(x, patch_size), patch_size)
    assert np.allclose(again, patch_size ** len(spatial) * x)


@pytest.mark.parametrize("shape", [(9, 7, 1), (6, 8, 3), (4, 5, 6, 2)])
def test_features_are_place_and_patch_over_their_spreads(shape) -> None:
    image = np.random.default_rng(0).random(shape).astype(np.float32)
    features = whiten(image, 3, 10.0, 0.2)
    expected = generalised_patches(image, 3, 10.0, 0.2)
    assert features.dim == expected.shape[1]
    assert np.allclose(features.at(np.arange(features.n_pixels)), expected, atol=1e-5)
