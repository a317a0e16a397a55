"""Small matrices: our loops against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from symsmooth._kernels.base import jit
from symsmooth._kernels.linalg import eigh, solve
from symsmooth._kernels.vector import (
    choose,
    plain_64,
    plain_subtract_rows,
    subtract_rows_32,
    subtract_rows_64,
)


def covariance(size: int, seed: int, samples: int) -> np.ndarray:
    points = np.random.default_rng(seed).standard_normal((samples, size))
    return points.T @ points / samples


@given(st.integers(1, 40), st.integers(0, 99), st.integers(1, 80), st.floats(1e-6, 1e6))
def test_eigenvectors_diagonalise(size, seed, samples, scale) -> None:
    """Also of singular matrices, and in any units."""
    matrix = scale * covariance(size, seed, samples)
    width = -(-size // 8) * 8
    vectors = np.zeros((size, width), np.float32)
    vectors[:, :size] = matrix
    values, work = np.zeros(width, np.float32), np.zeros(width, np.float32)
    eigh(vectors, size, values, work)
    rows = vectors[:, :size].astype(float)
    assert np.allclose(rows @ rows.T, np.eye(size), atol=1e-4)
    assert np.allclose((rows.T * values[:size]) @ rows, matrix, atol=1e-4 * scale * (1 + size / 4))
    expected = np.linalg.eigvalsh(matrix)
    assert np.allclose(np.sort(values[:size]), expected, atol=1e-4 * scale * (1 + size / 4))


@pytest.mark.parametrize("size", [1, 5, 16, 31, 32, 33, 49, 64])
def test_solve_is_numpys(size) -> None:
    matrix = covariance(size, 0, 2 * size) + 0.5 * np.eye(size)
    right = np.random.default_rng(1).standard_normal((size, 64))
    system = np.zeros((64, 128), np.float32)
    system[:size, :size], system[:size, 64:] = np.triu(matrix), right
    flat, factors, pivots = system.reshape(-1), np.zeros(64, np.float32), np.zeros(64, np.float32)
    solve(flat, size, factors, pivots)
    assert np.allclose(system[:size, 64:], np.linalg.solve(matrix, right), atol=1e-4)
    assert np.isclose(np.prod(1 / pivots[:size].astype(float)), np.linalg.det(matrix), rtol=1e-3)


@jit
def with_helper(rows, factors, count, wide):
    if wide:
        subtract_rows_64(rows, 0, 64, 64, factors, 0, count)
    else:
        subtract_rows_32(rows, 0, 64, 64, factors, 0, count)


@pytest.mark.parametrize("count", [0, 1, 2, 7])
@pytest.mark.parametrize("wide", [True, False])
def test_the_helper_equals_its_plain_twin(count, wide) -> None:
    rows = np.random.default_rng(0).standard_normal(64 * 8).astype(np.float32)
    factors = np.random.default_rng(1).standard_normal(8).astype(np.float32)
    plain = rows.copy()
    with_helper(rows, factors, count, wide)
    plain_subtract_rows(plain, 0, 64, 64, factors, 0, count, 64 if wide else 32)
    assert np.allclose(rows, plain, atol=1e-5)


def test_the_plain_twin_serves_where_the_helper_cannot_be_built() -> None:
    def unbuildable(*_: object) -> None: ...

    assert choose(unbuildable, plain_64) is plain_64
    assert choose(subtract_rows_64, plain_64) is subtract_rows_64
