"""Sinkhorn-Knopp: Algorithm 1 and its limit."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from symsmooth.filters import weights
from symsmooth.filters.sinkhorn import (
    BalanceError,
    balance,
    balance_general,
    degrees_of_freedom,
    normalize_rows,
    sinkhorn_knopp,
)


def scaled(W, scalings):
    return scalings.row_scale[:, None] * W * scalings.col_scale[None, :]


def random_kernel(n, seed, spread):
    points = np.random.default_rng(seed).standard_normal((n, 3))
    return np.exp(-((points[:, None] - points[None]) ** 2).sum(-1) / (2 * spread**2))


@given(st.integers(1, 12), st.integers(0, 50), st.integers(0, 4))
def test_iterations_are_algorithm_one_by_hand(n, seed, iterations) -> None:
    W = np.random.default_rng(seed).random((n, n)) + 0.01
    expected = W.copy()
    for _ in range(iterations):
        expected = expected / expected.sum(axis=0, keepdims=True)
        expected = expected / expected.sum(axis=1, keepdims=True)
    if iterations == 0:
        expected = W / W.sum(axis=1, keepdims=True)
    assert np.allclose(scaled(W, sinkhorn_knopp(W, iterations)), expected)
    started = sinkhorn_knopp(W, 2) if iterations > 2 else None
    further = sinkhorn_knopp(W, iterations - 2 if started else iterations, started)
    assert np.allclose(scaled(W, further), expected)


@given(st.integers(1, 15), st.integers(0, 50), st.floats(0.05, 10.0))
def test_balanced_rows_and_columns_sum_to_one(n, seed, spread) -> None:
    W = random_kernel(n, seed, spread)
    doubly = scaled(W, balance(W))
    assert np.allclose(doubly.sum(axis=0), 1, atol=1e-6)
    assert np.allclose(doubly.sum(axis=1), 1, atol=1e-6)
    assert np.allclose(doubly, doubly.T)


def test_the_symmetric_iteration_has_the_limit_of_the_alternation() -> None:
    W = random_kernel(20, 0, 1.0)
    assert np.allclose(scaled(W, balance(W)), scaled(W, sinkhorn_knopp(W, 3000)), atol=1e-5)
    assert np.allclose(scaled(W, balance(W)), scaled(W, balance_general(W)), atol=1e-5)


def test_a_peaked_kernel_on_which_alternation_stalls_is_balanced() -> None:
    W = random_kernel(60, 1, 0.35)
    alternated = scaled(W, sinkhorn_knopp(W, 100))
    assert np.abs(alternated.sum(axis=0) - 1).max() > 1e-6
    assert np.abs(scaled(W, balance(W, max_iter=100)).sum(axis=0) - 1).max() < 1e-6


def test_dense_sparse_and_operator_agree() -> None:
    image = np.random.default_rng(0).random((12, 13, 1)).astype(np.float32)
    W = weights.nlm(image, 3, 7, 0.8)
    sparse = W.to_sparse().astype(float)
    dense = sparse.toarray()
    for one, two in ((W, sparse), (sparse, dense), (scipy.sparse.csc_array(sparse), dense)):
        assert np.allclose(balance(one).row_scale, balance(two).row_scale, rtol=1e-4)
        assert np.allclose(
            sinkhorn_knopp(one, 2).col_scale, sinkhorn_knopp(two, 2).col_scale, rtol=1e-4
        )
    s = balance(W)
    assert np.abs(s.row_scale * (W @ s.col_scale) - 1).max() < 1e-6
    assert np.abs(s.row_scale * (dense @ s.col_scale) - 1).max() < 1e-5


def test_lark_is_balanced_by_alternation() -> None:
    image = np.random.default_rng(0).random((16, 17, 1)).astype(np.float32)
    W = weights.lark(weights.steering_precision(image, 0.2, 1.0, 0.5), 7)
    s = balance_general(W)
    assert np.abs(s.row_scale * (W @ s.col_scale) - 1).max() < 2e-6
    assert np.abs(s.col_scale * (W.T @ s.row_scale) - 1).max() < 2e-6


@pytest.mark.parametrize(
    ("find", "W"),
    [
        (balance, np.array([[1.0, 1.0], [1.0, 0.0]])),
        (balance_general, np.array([[1.0, 1.0], [0.0, 1.0]])),
        (balance, np.array([[1.0, 0.0], [0.0, 0.0]])),
        (balance_general, np.array([[1.0, 1.0], [0.0, 0.0]])),
        (normalize_rows, np.array([[1.0, -2.0], [1.0, 1.0]])),
    ],
)
def test_a_matrix_without_such_a_scaling_is_an_error_that_says_so(find, W) -> None:
    with pytest.raises(BalanceError, match=r"no doubly stochastic scaling|cannot be normalised"):
        find(W)


def test_degrees_of_freedom_is_the_trace_and_grows_with_normalisation() -> None:
    """Good friends count more, weak friends less: the trace rises from D^-1 W to the balanced one."""
    image = np.random.default_rng(0).random((16, 16, 1)).astype(np.float32)
    W = weights.nlm(image, 3, 9, 1.0)
    dense = W.to_sparse().toarray()
    traces = []
    for scalings in (normalize_rows(W), sinkhorn_knopp(W, 1), balance(W)):
        assert np.isclose(
            degrees_of_freedom(W.diagonal(), scalings), np.trace(scaled(dense, scalings)), rtol=1e-4
        )
        traces.append(degrees_of_freedom(W.diagonal(), scalings))
    assert traces[0] < traces[1]
