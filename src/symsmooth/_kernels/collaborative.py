"""BM3D's collaborative filters: a group of patches shrunk in the domain of a separable transform.

A group is ``rows`` (n, d), n a power of two: Haar across patches, then a small matrix along each axis of
the patch.  For the latter the group is turned round to (d, n), so that the loops run along memory.
"""

from __future__ import annotations

import numpy as np

from .base import inlined, jit, part

ZERO, ONE = np.float32(0.0), np.float32(1.0)
ROOT_HALF = np.float32(0.5**0.5)


@part
def butterfly(rows, n, width, stride):
    """One level of the Haar transform, in place; it is its own inverse."""
    for i in range(0, n, 2 * stride):
        a = rows[i * width : (i + 1) * width]
        b = rows[(i + stride) * width : (i + stride + 1) * width]
        for e in range(width):
            low = (a[e] + b[e]) * ROOT_HALF
            b[e] = (a[e] - b[e]) * ROOT_HALF
            a[e] = low


@part
def along(matrix, source, target, outer, inner):
    """Apply a matrix (m, m), m a multiple of four, to the middle axis of (outer, m, inner)."""
    m = matrix.shape[0]
    for o in range(outer):
        for i in range(m):
            out = target[(o * m + i) * inner : (o * m + i + 1) * inner]
            for k in range(0, m, 4):
                t0, t1, t2, t3 = matrix[i, k], matrix[i, k + 1], matrix[i, k + 2], matrix[i, k + 3]
                at = (o * m + k) * inner
                x0, x1 = source[at : at + inner], source[at + inner : at + 2 * inner]
                x2 = source[at + 2 * inner : at + 3 * inner]
                x3 = source[at + 3 * inner : at + 4 * inner]
                if k == 0:
                    for j in range(inner):
                        out[j] = (t0 * x0[j] + t1 * x1[j]) + (t2 * x2[j] + t3 * x3[j])
                else:
                    for j in range(inner):
                        out[j] += (t0 * x0[j] + t1 * x1[j]) + (t2 * x2[j] + t3 * x3[j])


@part
def along_axes(matrix, n_axes, size, spectrum, work):
    """Apply a matrix along each axis of a patch: spectrum (side, ..., side, n), ``size`` numbers."""
    side = matrix.shape[0]
    outer, inner = 1, size // side
    for axis in range(n_axes):
        if axis % 2 == 0:
            along(matrix, spectrum, work, outer, inner)
        else:
            along(matrix, work, spectrum, outer, inner)
        outer *= side
        inner //= side
    if n_axes % 2 == 1:
        for e in range(size):
            spectrum[e] = work[e]


@part
def analyse(pixels, corners, n, offsets, matrix, n_axes, rows, spectrum, work):
    """Fill spectrum, flat (d, n), with the transform of a group."""
    d = offsets.size
    for r in range(n):
        corner = corners[r]
        row = rows[r * d : (r + 1) * d]
        for e in range(d):
            row[e] = pixels[corner + offsets[e]]
    stride = 1
    while stride < n:
        butterfly(rows, n, d, stride)
        stride *= 2
    for e in range(d):
        for r in range(n):
            spectrum[e * n + r] = rows[r * d + e]
    along_axes(matrix, n_axes, d * n, spectrum, work)


@part
def synthesise(spectrum, n, offsets, matrix, n_axes, rows, work):
    """Fill rows, flat (n, d), with the inverse transform; spectrum is used up."""
    d = offsets.size
    along_axes(matrix, n_axes, d * n, spectrum, work)
    for e in range(d):
        for r in range(n):
            rows[r * d + e] = spectrum[e * n + r]
    stride = n // 2
    while stride > 0:
        butterfly(rows, n, d, stride)
        stride //= 2


@part
def scatter(rows, corners, n, offsets, window, weight, scaled, total, mass):
    """Add the patches to total with weight * window, and weight to mass at their corners."""
    d = offsets.size
    for e in range(d):
        scaled[e] = weight * window[e]
    for r in range(n):
        corner = corners[r]
        row = rows[r * d : (r + 1) * d]
        for e in range(d):
            total[corner + offsets[e]] += scaled[e] * row[e]
        mass[corner] += weight


@inlined
def power_of_two(count):
    """Return the largest power of two that is not above count."""
    n = 1
    while 2 * n <= count:
        n *= 2
    return n


@jit
def threshold_tile(
    planes, members, counts, offsets, forward, backward, n_axes, threshold, window, total, mass
):  # fmt: skip
    """Hard-threshold each group of a tile, plane by plane (step 1); weight 1 / coefficients kept.

    The mean of a group is always kept: the filter does not depend on where zero is.
    """
    d = offsets.size
    size = d * members.shape[1]
    rows = np.empty(size, np.float32)
    spectrum = np.empty(size, np.float32)
    work = np.empty(size, np.float32)
    scaled = np.empty(d, np.float32)
    for g in range(members.shape[0]):
        if counts[g] == 0:
            continue
        n = power_of_two(counts[g])
        for p in range(planes.shape[0]):
            analyse(planes[p], members[g], n, offsets, forward, n_axes, rows, spectrum, work)
            kept = ONE
            for e in range(1, d * n):
                if abs(spectrum[e]) > threshold:
                    kept += ONE
                else:
                    spectrum[e] = ZERO
            synthesise(spectrum, n, offsets, backward, n_axes, rows, work)
            scatter(
                rows, members[g], n, offsets, window, ONE / kept, scaled, total[p], mass[p]
            )  # fmt: skip


@jit
def wiener_tile(
    planes, pilot, members, counts, offsets, forward, backward, n_axes, noise, window, total, mass
):  # fmt: skip
    """Wiener-filter each group of a tile with the pilot's spectrum (step 2); weight 1 / |W|^2.

    W = s^2 / (s^2 + noise), s the pilot's coefficients, noise = sigma^2; W = 1 for the group's mean.
    """
    d = offsets.size
    size = d * members.shape[1]
    rows = np.empty(size, np.float32)
    spectrum = np.empty(size, np.float32)
    guide = np.empty(size, np.float32)
    work = np.empty(size, np.float32)
    scaled = np.empty(d, np.float32)
    for g in range(members.shape[0]):
        if counts[g] == 0:
            continue
        n = power_of_two(counts[g])
        for p in range(planes.shape[0]):
            analyse(planes[p], members[g], n, offsets, forward, n_axes, rows, spectrum, work)
            analyse(pilot[p], members[g], n, offsets, forward, n_axes, rows, guide, work)
            norm = ONE
            for e in range(1, d * n):
                square = guide[e] * guide[e]
                gain = square / (square + noise)
                guide[e] = gain
                norm += gain * gain
            for e in range(1, d * n):
                spectrum[e] *= guide[e]
            synthesise(spectrum, n, offsets, backward, n_axes, rows, work)
            scatter(rows, members[g], n, offsets, window, ONE / norm, scaled, total[p], mass[p])
