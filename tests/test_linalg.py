"""Small matrices: our loops against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from symsmooth._kernels.linalg import eigh, multiply, solve


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


@given(st.integers(1, 70), st.integers(1, 64), st.integers(0, 64), st.booleans())
def test_products_are_numpys(n_rows, columns, count, upper) -> None:
    """Rows beyond the last are written in fours, others are left alone."""
    rng = np.random.default_rng(0)
    width, tall = -(-columns // 8) * 8, -(-n_rows // 4) * 4
    y = rng.standard_normal((max(count, 1), width)).astype(np.float32)
    for turned in (False, True):
        x = rng.standard_normal((tall, count + 1)).astype(np.float32)
        steps = (1, tall) if turned else (count + 1, 1)
        flat = (x.T if turned else x).reshape(-1)
        out = np.full((tall + 1, width + 3), 7, np.float32)
        shape = width + 3, n_rows, width
        multiply(flat, *steps, y.reshape(-1), width, count, out.reshape(-1), *shape, upper)
        difference = out[:n_rows, :width] - x[:n_rows, :count] @ y[:count]
        wanted = np.triu(difference) if upper else difference
        assert np.allclose(wanted, 0, atol=1e-4)
        assert (out[tall:] == 7).all()
        assert (out[:, width:] == 7).all()


@pytest.mark.parametrize("size", [1, 5, 16, 31, 32, 33, 40, 41, 49, 56, 57, 64])
def test_solve_is_numpys(size) -> None:
    matrix = covariance(size, 0, 2 * size) + 0.5 * np.eye(size)
    right = np.random.default_rng(1).standard_normal((size, size))
    system = np.zeros((64, 128), np.float32)
    system[:size, :size], system[:size, 64 : 64 + size] = np.triu(matrix), right
    flat, factors, pivots = system.reshape(-1), np.zeros(64, np.float32), np.zeros(64, np.float32)
    solve(flat, size, factors, pivots)
    solution = system[:size, 64 : 64 + size]
    assert np.allclose(solution, np.linalg.solve(matrix, right), atol=1e-4)
    assert np.isclose(np.prod(1 / pivots[:size].astype(float)), np.linalg.det(matrix), rtol=1e-3)
