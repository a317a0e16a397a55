"""The low-level helpers against their plain twins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from symsmooth._kernels import vector
from symsmooth._kernels.members import largest


def unbuildable(*_: object) -> None:
    raise RuntimeError("no code for this processor")


TWINS = list(zip(vector.choose(vector._probe), vector.choose(unbuildable), strict=True))
NUMBERS, FACTORS = np.random.default_rng(0).standard_normal((2, 768)).astype(np.float32)
LINES = np.array([0, 11, 25, 60])
LANES = np.array([1, 1, 1, 1, 1, 0, 0, 0], np.float32)


def test_the_twins_serve_where_the_helpers_cannot_be_built() -> None:
    for helper, plain in TWINS:
        assert type(helper) is not type(plain)
        assert hasattr(plain, "py_func")


def call(function: Any, *arguments: Any) -> Any:
    """Helpers can be called by compiled functions only."""
    return numba.njit(lambda *given: function(*given))(*arguments)


def product(written, count):
    return (NUMBERS, 1, 30, 2, FACTORS, 5, 24, count, written, 2, 40)


@pytest.mark.parametrize(
    ("which", "arguments"),
    [
        *((which, lambda written: (written, 3, 64, 65, FACTORS, 2, 7)) for which in range(4)),
        *((which, lambda written: product(written, 9)) for which in range(4, 7)),
        (6, lambda written: product(written, 0)),
        (8, lambda w: (w, 7, LINES, 4, 5, NUMBERS, 3, FACTORS, LANES, LANES[0], FACTORS[0])),
    ],
)
def test_a_helper_writes_what_its_twin_does(which: int, arguments: Callable[..., Any]) -> None:
    before = np.linspace(-1, 1, 768, dtype=np.float32)
    written = before.copy(), before.copy()
    for function, own in zip(TWINS[which], written, strict=True):
        call(function, *arguments(own))
    assert np.allclose(*written, atol=1e-5)
    assert (written[0] != before).any()


@pytest.mark.parametrize("side", [1, 3, 5, 8])
def test_patches_are_taken_line_by_line(side) -> None:
    """Up to eight places beyond the patch may be written."""
    for function in TWINS[7]:
        row = np.zeros(64, np.float32)
        call(function, NUMBERS, 7, LINES, 4, side, row, 2)
        expected = np.concatenate([NUMBERS[7 + line : 7 + line + side] for line in LINES])
        assert (row[2 : 2 + 4 * side] == expected).all()
        assert not row[:2].any()
        assert not row[2 + 4 * side + 8 :].any()


ABOVE = {f: numba.njit(lambda a, b, c, d, f=f: f(a, b, c, d)) for f in TWINS[9]}
BITS = {f: numba.njit(lambda a, f=f: f(a)) for pair in TWINS[10:] for f in pair}


@given(st.integers(0, 600), st.integers(1, 64), st.floats(-2, 2, width=32))
def test_bits_are_where_numbers_are_large(at, size, threshold) -> None:
    threshold = np.float32(threshold)
    large = np.flatnonzero(NUMBERS[at : at + size] > threshold)
    for above, lowest, count in zip(*TWINS[9:], strict=True):
        mask = ABOVE[above](NUMBERS, at, size, threshold)
        assert mask & (2**64 - 1) == sum(1 << int(place) for place in large)
        assert BITS[count](mask) == large.size
        if mask:
            assert BITS[lowest](mask) == large[0]


@given(
    st.lists(st.floats(-60, 0, width=32), min_size=1, max_size=150),
    st.integers(1, 12),
    st.floats(-40, -1, width=32),
    st.floats(0, 1, width=32),
)
def test_the_largest_are_found(numbers, most, margin, share) -> None:
    """Wherever the search begins, and among equal ones any."""
    padded = np.array([*numbers, *[0.0] * 8], np.float32)
    best = padded[: len(numbers)].max()
    values, which = np.empty(len(numbers), np.float32), np.empty(len(numbers), np.int32)
    margin = np.float32(margin)
    gap = margin * np.float32(share)
    kept, _ = largest(padded, 0, len(numbers), margin, best, gap, most, values, which)
    expected = np.sort([n for n in padded[: len(numbers)] if n > best + margin])[-most:]
    assert np.array_equal(np.sort(values[:kept]), expected)
    assert np.array_equal(padded[which[:kept]], values[:kept])
    assert len(set(which[:kept])) == kept
