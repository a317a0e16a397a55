"""Table I: operator, sparse matrix and equation agree."""

from __future__ import annotations

import numpy as np
import pytest

from symsmooth.filters import weights

from ..oracles import coordinates, generalised_patches, squared_distances, table_one

pytestmark = pytest.mark.usefixtures("instruction_set")
SHAPES = [(9, 11, 1), (7, 8, 3), (5, 6, 7, 1), (1, 20, 1), (3, 2, 1)]
THIN = [(1, 70, 5, 1), (2, 70, 3, 1), (70, 1, 4, 1), (1, 1, 70, 1), (70, 3, 1)]  # more than a strip


def make(shape):
    return np.random.default_rng(3).random(shape).astype(np.float32)


def in_box(spatial, radius):
    x = coordinates(spatial)
    return (np.abs(x[:, None] - x[None]).max(axis=-1) <= radius).astype(float)


def in_ball(spatial, radius):
    x = coordinates(spatial)
    return (squared_distances(x, x) <= radius**2 + 1e-9).astype(float)


def build(name, image):
    """Return (operator, dense matrix of the equation)."""
    spatial = image.shape[:-1]
    x, y = coordinates(spatial), image.reshape(-1, image.shape[-1]).astype(float)
    if name == "gaussian":
        return weights.gaussian(image, 1.1), table_one(x / 1.1, in_ball(spatial, 3.3))
    if name == "bilateral":
        features = np.concatenate([x / 1.2, y / 0.4], axis=1)
        return weights.bilateral(image, 1.2, 0.4), table_one(features, in_ball(spatial, 3.6))
    if name == "nlm":
        patches = generalised_patches(image, 3, np.inf, 0.9)
        return weights.nlm(image, 3, 7, 0.9), table_one(patches, in_box(spatial, 3))
    features = generalised_patches(image, 3, 1.3, 0.8)
    return weights.regulated_nlm(image, 3, 1.3, 0.8), table_one(features, in_ball(spatial, 3.9))


@pytest.mark.parametrize("shape", SHAPES + THIN, ids=str)
@pytest.mark.parametrize("name", ["gaussian", "bilateral", "nlm", "regulated"])
def test_symmetric_filters_are_the_equations_of_table_one(name, shape) -> None:
    W, expected = build(name, make(shape))
    v = np.random.default_rng(0).random((W.shape[1], 2))
    assert np.allclose(W.to_sparse().toarray(), expected, rtol=2e-4, atol=1e-6)
    assert np.allclose(W @ v, expected @ v, rtol=2e-4)
    assert np.allclose(W @ v.astype(np.float32), expected @ v, rtol=3e-4)
    assert np.allclose(W.T @ v, expected.T @ v, rtol=2e-4)
    assert np.allclose(W.row_sums(), expected.sum(axis=1), rtol=2e-4)
    assert np.allclose(W.T @ np.ones(W.shape[0]), W.row_sums(), rtol=1e-5)


@pytest.mark.parametrize("shape", [(9, 11), (4, 5, 6), (1, 12)], ids=str)
def test_lark_is_the_equation_of_table_one(shape) -> None:
    rng = np.random.default_rng(0)
    dims = len(shape)
    root = rng.standard_normal((*shape, dims, dims)) * 0.5
    precision = (root @ np.swapaxes(root, -1, -2) + 0.1 * np.eye(dims)).astype(np.float32)
    W = weights.lark(precision, 7)
    x = coordinates(shape)
    steps = x[None] - x[:, None]
    forms = np.einsum("ija,iab,ijb->ij", steps, precision.reshape(-1, dims, dims), steps)
    expected = np.exp(-forms / 2) * in_box(shape, 3)
    v = rng.random((W.shape[1], 2))
    assert np.allclose(W.to_sparse().toarray(), expected, rtol=2e-4, atol=1e-6)
    assert np.allclose(W @ v, expected @ v, rtol=2e-4)
    assert np.allclose(W.T @ v, expected.T @ v, rtol=2e-4)
    assert np.allclose(W.T.to_sparse().toarray(), expected.T, rtol=2e-4, atol=1e-6)
    assert not np.allclose(expected, expected.T)


def test_steering_follows_the_edge() -> None:
    """Across a vertical edge the kernel is short, along it long."""
    image = np.zeros((32, 32, 1), np.float32)
    image[:, 16:] = 1.0
    precision = weights.steering_precision(image, 0.05, 1.0, 0.5)
    across, along = precision[16, 16, 1, 1], precision[16, 16, 0, 0]
    assert across > 10 * along
    flat = precision[16, 3]
    assert np.isclose(flat[0, 0], flat[1, 1], rtol=0.05)


def test_running_sums_do_not_drift_on_a_tall_bright_image() -> None:
    """The strip's running sum of squares must not lose a faint patch after a bright one."""
    image = np.random.default_rng(0).random((200, 16, 1)).astype(np.float32)
    image[:60] *= 60.0  # 120 h_r: some 400 sigma
    W = weights.nlm(image, 5, 5, 0.5)
    patches = generalised_patches(image, 5, np.inf, 0.5)
    expected = table_one(patches, in_box((200, 16), 2))
    assert np.allclose(W.to_sparse().toarray(), expected, rtol=0.05, atol=2e-3)
