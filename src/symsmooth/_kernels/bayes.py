"""NL-Bayes on groups of patches: Gaussian moments of a group, and the estimate they give.

Everything is in units of the noise: sigma = 1.
"""

from __future__ import annotations

import numpy as np

from .base import inlined, jit, part
from .linalg import eigh

ZERO, ONE = np.float32(0.0), np.float32(1.0)


@part
def gather(planes, first, last, corners, offsets, rows, mean):
    """Fill rows (n, d) with patches of planes first to last, less their mean; return their variance.

    The variance is that of all numbers, plane by plane, as if each plane were flat.
    """
    n, d = rows.shape
    side = offsets.size
    for e in range(d):
        mean[e] = ZERO
    for r in range(n):
        row = rows[r]
        for p in range(first, last):
            pixels = planes[p]
            at = (p - first) * side
            for e in range(side):
                row[at + e] = pixels[corners[r] + offsets[e]]
        for e in range(d):
            mean[e] += row[e]
    share = ONE / np.float32(n)
    for e in range(d):
        mean[e] *= share
    square = ZERO
    for r in range(n):
        row = rows[r]
        for e in range(d):
            row[e] -= mean[e]
        for e in range(d):
            square += row[e] * row[e]
    square *= share
    for p in range(last - first):  # and how the means differ within a plane
        level = ZERO
        for e in range(side):
            level += mean[p * side + e]
        level /= np.float32(side)
        for e in range(side):
            square += (mean[p * side + e] - level) * (mean[p * side + e] - level)
    freedom = np.float32(n * side) / np.float32(max(n * side - 1, 1))
    return square * freedom / np.float32(d)


@inlined
def flatten(rows, mean, side):
    """Make all patches of a group equal to their mean, plane by plane."""
    n, d = rows.shape
    for first in range(0, d, side):
        level = ZERO
        for e in range(side):
            level += mean[first + e]
        level /= np.float32(side)
        for e in range(side):
            mean[first + e] = level
    for r in range(n):
        for e in range(d):
            rows[r, e] = ZERO


@part
def shrink(rows, guide, bias, pilot, covariance, vectors, values, work, kept, scaled, projected):
    """Replace rows (less their mean) by their estimate under the covariance of guide.

    With C = U diag(l) U' the covariance of guide: U diag(f) U' y, f = l / (l + 1) if guide is a pilot's,
    else f = (l - bias)+ / l.
    """
    n, d = rows.shape
    np.dot(guide.T, guide, covariance)
    share = ONE / np.float32(max(n - 1, 1))
    for e in range(d):
        for q in range(d):
            vectors[e, q] = covariance[e, q] * share
        for q in range(d, vectors.shape[1]):
            vectors[e, q] = ZERO
    eigh(vectors, d, values, work)
    rank = 0
    for e in range(d):
        value = values[e]
        factor = value / (value + ONE) if pilot else ONE - bias / max(value, np.float32(1e-6))
        if factor > np.float32(1e-3):
            for q in range(d):
                kept[rank, q] = vectors[e, q]
                scaled[rank, q] = vectors[e, q] * factor
            rank += 1
    if rank == 0:
        for r in range(n):
            for e in range(d):
                rows[r, e] = ZERO
    else:
        few = projected[: n * rank].reshape(n, rank)
        np.dot(rows, kept[:rank].T, few)
        np.dot(few, scaled[:rank], rows)


@jit
def bayes_tile(planes, pilot, members, counts, offsets, together, flat, bias, total, mass):
    """Estimate each group of a tile, ``together`` planes at a time, and add it to total and mass.

    Without a pilot (no planes) this is step 1, else step 2.  Groups whose variance is below
    1 + flat sqrt(2 / numbers), ``flat`` deviations above that of pure noise, become their mean.
    """
    side = offsets.size
    d = side * together
    wide = (d + 7) // 8 * 8
    most = members.shape[1]
    row_buffer = np.empty(most * d, np.float32)
    guide_buffer = np.empty(most * d, np.float32)
    projected = np.empty(most * d, np.float32)
    mean = np.empty(d, np.float32)
    guide_mean = np.empty(d, np.float32)
    covariance = np.empty((d, d), np.float32)
    kept = np.empty((d, d), np.float32)
    scaled = np.empty((d, d), np.float32)
    vectors = np.zeros((d, wide), np.float32)
    values = np.zeros(wide, np.float32)
    work = np.zeros(wide, np.float32)
    has_pilot = pilot.shape[0] > 0
    for g in range(members.shape[0]):
        n = counts[g]
        if n == 0:
            continue
        corners = members[g, :n]
        rows = row_buffer[: n * d].reshape(n, d)
        guide = guide_buffer[: n * d].reshape(n, d)
        for first in range(0, planes.shape[0], together):
            last = first + together
            variance = gather(planes, first, last, corners, offsets, rows, mean)
            if has_pilot:
                gather(pilot, first, last, corners, offsets, guide, guide_mean)
            if variance < ONE + flat * np.sqrt(np.float32(2.0) / np.float32(n * d)):
                flatten(rows, mean, side)
            else:
                shrink(
                    rows, guide if has_pilot else rows, bias, has_pilot, covariance, vectors,
                    values, work, kept, scaled, projected,
                )  # fmt: skip
            for r in range(n):
                for p in range(first, last):
                    out = total[p]
                    at = (p - first) * side
                    for e in range(side):
                        out[corners[r] + offsets[e]] += rows[r, at + e] + mean[at + e]
                    mass[p, corners[r]] += ONE
