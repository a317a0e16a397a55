"""Small matrices: our loops against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from symsmooth import _native

pytestmark = pytest.mark.usefixtures("instruction_set")


def covariance(size: int, seed: int, samples: int) -> np.ndarray:
    points = np.random.default_rng(seed).standard_normal((samples, size))
    return points.T @ points / samples


@given(st.integers(1, 80), st.integers(0, 99), st.integers(1, 80), st.floats(1e-6, 1e6))
def test_eigenvectors_diagonalise(size, seed, samples, scale) -> None:
    """Also of singular matrices, and in any units."""
    matrix = scale * covariance(size, seed, samples)
    width = -(-size // 8) * 8
    vectors = np.zeros((size, width), np.float32)
    vectors[:, :size] = matrix
    values = _native.eigenvectors(vectors)
    rows = vectors[:, :size].astype(float)
    assert not vectors[:, size:].any()
    assert np.allclose(rows @ rows.T, np.eye(size), atol=1e-4)
    assert np.allclose((rows.T * values[:size]) @ rows, matrix, atol=1e-4 * scale * (1 + size / 4))
    expected = np.linalg.eigvalsh(matrix)
    assert np.allclose(np.sort(values[:size]), expected, atol=1e-4 * scale * (1 + size / 4))


@pytest.mark.parametrize("rank", [0, 1, 2])
@given(st.integers(2, 49), st.integers(0, 99))
def test_eigenvectors_of_almost_nothing_are_finite(rank, size, seed) -> None:
    """Patches of a picture of two pixels, mirrored: equal columns, entries zero but for rounding."""
    rng = np.random.default_rng(seed)
    two = rng.standard_normal((rank, 2))[:, rng.integers(0, 2, size)]
    matrix = two.T @ two + 1e-30 * rng.standard_normal((size, size))
    vectors = np.zeros((size, -(-size // 8) * 8), np.float32)
    vectors[:, :size] = matrix + matrix.T
    expected = vectors[:, :size].astype(float)
    values = _native.eigenvectors(vectors)
    rows = vectors[:, :size].astype(float)
    assert np.allclose(rows @ rows.T, np.eye(size), atol=1e-4)
    assert np.allclose(
        (rows.T * values[:size]) @ rows, expected, atol=1e-4 * (1 + np.trace(expected))
    )


@given(st.integers(1, 70), st.integers(1, 80), st.integers(1, 64), st.booleans(), st.booleans())
def test_products_are_numpys(n_rows, columns, count, transposed, upper) -> None:
    rng = np.random.default_rng(0)
    width, tall = -(-columns // 8) * 8, -(-n_rows // 4) * 4
    x = rng.standard_normal((tall, count)).astype(np.float32)
    y = rng.standard_normal((count, width)).astype(np.float32)
    left = np.ascontiguousarray(x.T) if transposed else x
    out = _native.product(left, transposed, y, n_rows, upper)
    difference = out[:n_rows] - x[:n_rows].astype(float) @ y
    assert np.allclose(np.triu(difference) if upper else difference, 0, atol=1e-4)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 16, 31, 32, 33, 40, 41, 49, 56, 57, 63, 64])
def test_solve_is_numpys(size) -> None:
    matrix = covariance(size, 0, 2 * size) + 0.5 * np.eye(size)
    right = np.random.default_rng(1).standard_normal((size, size))
    system = np.zeros((64, 128), np.float32)
    system[:size, :size], system[:size, 64 : 64 + size] = np.triu(matrix), right
    inverse_d = _native.solve(system, size)
    solution = system[:size, 64 : 64 + size]
    assert np.allclose(solution, np.linalg.solve(matrix, right), atol=1e-4)
    determinant = np.prod(1 / inverse_d[:size].astype(float))
    assert np.isclose(determinant, np.linalg.det(matrix), rtol=1e-3)


def test_power_of_two_is_accurate_and_clamped() -> None:
    x = np.linspace(-40, 10, 2001, dtype=np.float32)
    values = _native.exp2(x)
    assert np.abs(values / np.exp2(x.astype(float)) - 1).max() < 6e-5
    ends = _native.exp2(np.array([-1e30, 0.0], np.float32))
    assert 0 <= ends[0] < 2e-38
    assert ends[1] == 1.0
    beside = np.array([205.0, 1e30, np.nan, 3.0, np.inf, -2.0, 126.0, 9e9], np.float32)
    values = _native.exp2(beside)  # lanes that nobody looks at hold anything, and harm no other
    np.testing.assert_allclose(values[[3, 5, 6]], [8.0, 0.25, 2.0**126], rtol=6e-5)


@given(
    st.lists(st.floats(-60, 0, width=32), min_size=1, max_size=150),
    st.integers(1, 12),
    st.floats(-40, -1, width=32),
    st.floats(0, 1, width=32),
)
def test_the_largest_are_found(numbers, max_count, margin, share) -> None:
    """Wherever the search begins, and among equal ones any."""
    numbers = np.array(numbers, np.float32)
    margin = np.float32(margin)
    gap = float(margin * np.float32(share))
    kept, values, which = _native.largest(numbers, float(margin), gap, max_count)
    expected = np.sort(numbers[numbers > numbers.max() + margin])[-max_count:]
    assert np.array_equal(np.sort(values[:kept]), expected)
    assert np.array_equal(numbers[which[:kept]], values[:kept])
    assert len(set(which[:kept])) == kept
