"""Small dense matrices: products, eigenvectors and solves, a few dozen rows, thousands of times.

LAPACK's call overhead dominates at these sizes; plain loops over contiguous rows are several times
faster.  All routines are tested against NumPy.
"""

from __future__ import annotations

import numpy as np

from .base import jit, part
from .vector import (
    product_8,
    product_16,
    product_24,
    subtract_rows_32,
    subtract_rows_40,
    subtract_rows_56,
    subtract_rows_64,
)

TINY = np.float32(1e-30)
FIRST, QUARTER, RIGHT = np.int64(0), np.int64(32), np.int64(64)  # columns of a system
ZERO, HALF, ONE, TWO = np.float32(0.0), np.float32(0.5), np.float32(1.0), np.float32(2.0)


@jit
def multiply(x, x_row, x_step, y, y_step, count, out, out_row, n_rows, width, upper):
    """out[i, j] = sum over q < count of x[i * x_row + q * x_step] * y[q * y_step + j]; all are flat.

    With (x_row, x_step) = (columns of x, 1) this is x y, with (1, columns of x) it is x' y.  ``width``
    is a multiple of eight; rows are written in fours, so that three more than ``n_rows`` may be.  If
    ``upper``, what lies left of the diagonal is not needed, and most of it is not written.
    """
    for i in range(0, n_rows, 4):
        j = i // 8 * 8 if upper else 0
        while j < width:
            left = width - j
            at, to = i * x_row, i * out_row + j
            if left >= 24 and left != 32:
                product_24(x, at, x_row, x_step, y, j, y_step, count, out, to, out_row)
                j += 24
            elif left >= 16:
                product_16(x, at, x_row, x_step, y, j, y_step, count, out, to, out_row)
                j += 16
            else:
                product_8(x, at, x_row, x_step, y, j, y_step, count, out, to, out_row)
                j += 8


@part
def eigh(a, size, values, work):
    """Replace the rows of a symmetric a[:size, :size] by its eigenvectors; fill values.

    Householder tridiagonalisation, then implicit QL (EISPACK's tred2 and tql2), on rows: row i of
    the result belongs to values[i]; they are not sorted.  Rows are processed over their whole
    stored width, which should be a multiple of eight with zeros beyond ``size``.
    """
    width = a.shape[1]
    for j in range(size):
        values[j] = a[j, size - 1]
    for i in range(size - 1, 0, -1):
        scale = ZERO
        for k in range(i):
            scale += abs(values[k])
        h = ZERO
        if scale < TINY:
            work[i] = values[i - 1]
            for j in range(i):
                values[j] = a[j, i - 1]
                a[j, i] = 0.0
                a[i, j] = 0.0
        else:
            inverse = ONE / scale
            for k in range(i):
                values[k] *= inverse
                h += values[k] * values[k]
            f = values[i - 1]
            g = np.sqrt(h)
            if f > 0:
                g = -g
            work[i] = scale * g
            h -= f * g
            values[i - 1] = f - g
            for j in range(i):
                a[i, j] = values[j]
            for j in range(i):
                row = a[j]
                g = ZERO
                for k in range(i):
                    g += row[k] * values[k]
                work[j] = g
            f = ZERO
            inverse = ONE / h
            for j in range(i):
                work[j] *= inverse
            for j in range(i):
                f += work[j] * values[j]
            shift = f * inverse * HALF
            for j in range(i):
                work[j] -= shift * values[j]
            for j in range(i):
                f = values[j]
                g = work[j]
                row = a[j]
                for k in range(i):
                    row[k] -= f * work[k] + g * values[k]
            for j in range(i):
                values[j] = a[j, i - 1]
                a[j, i] = 0.0
        values[i] = h
    for i in range(size - 1):
        a[i, size - 1] = a[i, i]
        a[i, i] = 1.0
        following = a[i + 1]
        if values[i + 1] != 0:
            inverse = ONE / values[i + 1]
            for k in range(i + 1):
                values[k] = following[k] * inverse
            for j in range(i + 1):
                row = a[j]
                g = ZERO
                for k in range(i + 1):
                    g += following[k] * row[k]
                for k in range(i + 1):
                    row[k] -= g * values[k]
        for k in range(i + 1):
            following[k] = 0.0
    for j in range(size):
        values[j] = a[j, size - 1]
        a[j, size - 1] = 0.0
    a[size - 1, size - 1] = 1.0
    for i in range(1, size):
        work[i - 1] = work[i]
    work[size - 1] = 0.0
    offset = ZERO
    largest = ZERO
    for low in range(size):
        largest = max(largest, abs(values[low]) + abs(work[low]))
        small = np.float32(1e-6) * largest
        high = low
        while high < size - 1 and abs(work[high]) > small:
            high += 1
        if high > low:
            for _ in range(30):
                g = values[low]
                p = (values[low + 1] - g) / (TWO * work[low])
                r = np.sqrt(p * p + ONE)
                if p < 0:
                    r = -r
                values[low] = work[low] / (p + r)
                values[low + 1] = work[low] * (p + r)
                next_value = values[low + 1]
                h = g - values[low]
                for i in range(low + 2, size):
                    values[i] -= h
                offset += h
                p = values[high]
                c = c2 = c3 = ONE
                s = s2 = ZERO
                next_work = work[low + 1]
                for i in range(high - 1, low - 1, -1):
                    c3 = c2
                    c2 = c
                    s2 = s
                    g = c * work[i]
                    h = c * p
                    r = np.sqrt(p * p + work[i] * work[i])
                    work[i + 1] = s * r
                    inverse = ONE / r
                    s = work[i] * inverse
                    c = p * inverse
                    p = c * values[i] - s * g
                    values[i + 1] = h + s * (c * g + s * values[i])
                    upper = a[i]
                    lower = a[i + 1]
                    for k in range(width):
                        u = upper[k]
                        v = lower[k]
                        lower[k] = s * u + c * v
                        upper[k] = c * u - s * v
                p = -s * s2 * c3 * next_work * work[low] / next_value
                work[low] = s * p
                values[low] = c * p
                if abs(work[low]) <= small:
                    break
        values[low] += offset
        work[low] = 0.0


@part
def solve(system, size, factors, pivots):
    """Solve in place for a symmetric positive definite matrix of at most 64 rows.

    ``system`` is flat, rows of 128: A in the first 64 columns, B, as wide as A, in the last; B becomes
    A^-1 B.  Only A's upper triangle is read.  pivots receives the inverse of D in A = L D L^T.
    """
    for i in range(size):
        row = i * 128
        for k in range(i):
            factors[k] = system[k * 128 + i] * pivots[k]
        if i < 32:
            subtract(system, row, FIRST, factors, FIRST, i, size)
        else:
            subtract(system, row + QUARTER, QUARTER, factors, FIRST, i, size - QUARTER)
        subtract(system, row + RIGHT, RIGHT, factors, FIRST, i, size)
        pivots[i] = ONE / system[row + i]
    for i in range(size - 1, -1, -1):
        row = i * 128
        below = (i + 1) * 128 + RIGHT
        subtract(system, row + RIGHT, below, system, row + i + 1, size - 1 - i, size)
        right = system[row + 64 : row + 128]
        for j in range(64):
            right[j] *= pivots[i]


@part
def subtract(system, target, first, factors, start, count, width):
    """system[target:] -= a combination of rows of 128, at least ``width`` columns of them."""
    if width <= 32:
        subtract_rows_32(system, target, first, 128, factors, start, count)
    elif width <= 40:
        subtract_rows_40(system, target, first, 128, factors, start, count)
    elif width <= 56:
        subtract_rows_56(system, target, first, 128, factors, start, count)
    else:
        subtract_rows_64(system, target, first, 128, factors, start, count)
