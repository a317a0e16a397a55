"""What a soft cluster does with its patches, cluster by cluster.

Members of cluster c are ``corners[pointers[c]:pointers[c + 1]]``, the flat corners of their patches in
``pixels``, with weights ``shares``.  Estimates are added to ``total`` at the pixels, their weight to
``mass`` and weight times variance to ``spread`` at the patch's corner (one box sum at the end does the
rest); these three are flat and begin at ``start``.
"""

from __future__ import annotations

import numpy as np

from .base import jit
from .linalg import eigh, solve

ZERO, ONE = np.float32(0.0), np.float32(1.0)


@jit
def gather(pixels, offsets, corners, shares, rows, mean):
    """Fill rows with the members' patches and mean with their weighted mean; return sum g, sum g^2."""
    mass, square = ZERO, ZERO
    for e in range(offsets.size):
        mean[e] = 0.0
    for r in range(corners.size):
        row = rows[r]
        share = shares[r]
        mass += share
        square += share * share
        for e in range(offsets.size):
            row[e] = pixels[corners[r] + offsets[e]]
        for e in range(offsets.size):
            mean[e] += share * row[e]
    for e in range(offsets.size):
        mean[e] /= mass
    return mass, square


@jit
def scatter(rows, mean, offsets, corners, shares, quality, variance, start, total, mass, spread):
    """Add mean + rows, with weight shares * quality."""
    for r in range(corners.size):
        weight = shares[r] * quality
        corner = corners[r] - start
        row = rows[r]
        for e in range(offsets.size):
            total[corner + offsets[e]] += weight * (row[e] + mean[e])
        mass[corner] += weight
        spread[corner] += weight * variance


@jit
def spectral_chunk(
    pixels, offsets, pointers, corners, shares, first, last, noise, bias, start, total, mass, spread
):  # fmt: skip
    """Optimal shrinkage of the spectrum of each cluster's covariance; noise is sigma^2."""
    d = offsets.size
    wide = (d + 7) // 8 * 8
    most = 0
    for c in range(first, last):
        most = max(most, pointers[c + 1] - pointers[c])
    row_buffer = np.zeros((most, d), np.float32)
    weighted_buffer = np.empty((most, d), np.float32)
    estimate_buffer = np.empty((most, d), np.float32)
    mean = np.empty(d, np.float32)
    covariance = np.empty((d, d), np.float32)
    vectors = np.zeros((d, wide), np.float32)
    values = np.zeros(wide, np.float32)
    work = np.zeros(wide, np.float32)
    kept = np.empty((d, d), np.float32)
    scaled = np.empty((d, d), np.float32)
    for c in range(first, last):
        at = corners[pointers[c] : pointers[c + 1]]
        g = shares[pointers[c] : pointers[c + 1]]
        n = at.size
        if n == 0:
            continue
        rows = row_buffer[:n]
        estimates = estimate_buffer[:n]
        count, square = gather(pixels, offsets, at, g, rows, mean)
        freedom = count * count / square - ONE
        rank = 0
        trace = ZERO
        if freedom > 2:
            weighted = weighted_buffer[:n]
            for r in range(n):
                root = np.sqrt(g[r] / count)
                for e in range(d):
                    rows[r, e] -= mean[e]
                    weighted[r, e] = root * rows[r, e]
            np.dot(weighted.T, weighted, covariance)
            for e in range(d):
                for q in range(d):
                    vectors[e, q] = covariance[e, q]
                for q in range(d, wide):
                    vectors[e, q] = 0.0
            eigh(vectors, d, values, work)
            for e in range(d):
                factor = shrink(values[e] / (bias * noise), np.float32(d) / freedom)
                if factor > 0:
                    for q in range(d):
                        kept[rank, q] = vectors[e, q]
                        scaled[rank, q] = vectors[e, q] * factor
                    rank += 1
                    trace += factor
        if rank > 0:  # U diag(f) U' (y - mu): by way of the few directions that are kept
            projected = weighted_buffer.reshape(-1)[: n * rank].reshape(n, rank)
            np.dot(rows, kept[:rank].T, projected)
            np.dot(projected, scaled[:rank], estimates)
        else:
            for r in range(n):
                for e in range(d):
                    estimates[r, e] = 0.0
        variance = noise * (trace / np.float32(d) + square / (count * count))
        scatter(estimates, mean, offsets, at, g, ONE, variance, start, total, mass, spread)


@jit
def shrink(x, ratio):
    """Frobenius-optimal factor for an eigenvalue x (in units of the noise), ratio = d / n_eff.

    Gavish and Donoho (2017): sqrt((x - b - 1)^2 - 4 b) / x above the bulk's edge (1 + sqrt b)^2, else 0.
    """
    if ratio > 1:
        x = x / ratio
        ratio = ONE / ratio
    edge = ONE + np.sqrt(ratio)
    if x <= edge * edge:
        return ZERO
    inside = (x - ratio - ONE) * (x - ratio - ONE) - np.float32(4.0) * ratio
    return np.sqrt(max(inside, ZERO)) / x


@jit
def wiener_chunk(
    pixels, pilot, offsets, pointers, corners, shares, first, last, noise, strength, trust,
    both_sides, start, total, mass, spread,
):  # fmt: skip
    """Wiener filter of each cluster with moments from the pilot, one- or two-sided; noise is sigma^2.

    With u the pilot's patches less their mean, y the noisy ones less the blended mean:
    C = strength * sum g u u' / sum g,  F = (C + noise I)^-1 C,  E = y F  (rows are patches); and across
    patches E <- U (U'U + k I)^-1 U' E with k = d noise / strength.  Where there are fewer patches than 64
    the same is done in the space of patches: U U' (U U' + k I)^-1 y D' (D D' + noise I)^-1 D.
    """
    d = offsets.size
    most = 0
    for c in range(first, last):
        most = max(most, pointers[c + 1] - pointers[c])
    row_buffer = np.zeros((most, d), np.float32)
    pilot_buffer = np.zeros((most, d), np.float32)
    weighted_buffer = np.zeros((most, d), np.float32)
    mean = np.empty(d, np.float32)
    pilot_mean = np.empty(d, np.float32)
    system = np.zeros(64 * 128, np.float32)
    factors = np.zeros(64, np.float32)
    pivots = np.zeros(64, np.float32)
    small_a = np.empty(64 * 64, np.float32)
    small_b = np.empty(64 * 64, np.float32)
    roots = np.empty(most, np.float32)
    kappa = np.float32(d) * noise / strength
    for c in range(first, last):
        at = corners[pointers[c] : pointers[c + 1]]
        g = shares[pointers[c] : pointers[c + 1]]
        n = at.size
        if n == 0:
            continue
        rows = row_buffer[:n]
        guide = pilot_buffer[:n]
        weighted = weighted_buffer[:n]
        gather(pixels, offsets, at, g, rows, mean)
        count, square = gather(pilot, offsets, at, g, guide, pilot_mean)
        for e in range(d):
            mean[e] = pilot_mean[e] + trust * (mean[e] - pilot_mean[e])
        for r in range(n):
            roots[r] = np.sqrt(strength * g[r] / count)
            row, own, scaled = rows[r], guide[r], weighted[r]
            for e in range(d):
                row[e] -= mean[e]
            for e in range(d):
                own[e] -= pilot_mean[e]
                scaled[e] = roots[r] * own[e]
        trace = ZERO
        if both_sides and n <= 64:
            gram = small_a[: n * n].reshape(n, n)
            cross = small_b[: n * n].reshape(n, n)
            np.dot(guide, guide.T, gram)
            np.dot(weighted, rows.T, cross)  # (y D')'
            for a in range(n):
                left = system[a * 128 : a * 128 + 64]
                right = system[a * 128 + 64 : a * 128 + 128]
                for b in range(n):
                    left[b] = gram[a, b] * (roots[a] * roots[b])
                    right[b] = cross[a, b]
                left[a] += noise
            solve(system, n, factors, pivots)
            for a in range(n):
                trace += ONE - noise * pivots[a]
                right = system[a * 128 + 64 : a * 128 + 128]
                for b in range(n):
                    cross[b, a] = right[b]
            for a in range(n):
                left = system[a * 128 : a * 128 + 64]
                right = system[a * 128 + 64 : a * 128 + 128]
                for b in range(n):
                    left[b] = gram[a, b]
                    right[b] = cross[a, b]
                left[a] += kappa
            solve(system, n, factors, pivots)
            for a in range(n):
                right = system[a * 128 + 64 : a * 128 + 128]
                for b in range(n):
                    cross[a, b] -= kappa * right[b]
            np.dot(cross, weighted, rows)
        else:
            covariance = small_a[: d * d].reshape(d, d)
            moment = small_b[: d * d].reshape(d, d)
            np.dot(weighted.T, weighted, covariance)
            if both_sides:
                np.dot(rows.T, guide, moment)
            for a in range(d):
                left = system[a * 128 : a * 128 + 64]
                right = system[a * 128 + 64 : a * 128 + 128]
                for b in range(d):
                    left[b] = covariance[a, b]
                    right[b] = moment[a, b] if both_sides else covariance[a, b]
                left[a] += noise
            solve(system, d, factors, pivots)
            for a in range(d):
                trace += ONE - noise * pivots[a]
            if both_sides:
                for a in range(d):
                    right = system[a * 128 + 64 : a * 128 + 128]
                    for b in range(d):
                        moment[a, b] -= noise * right[b]
                np.dot(guide.T, guide, covariance)
                for a in range(d):
                    left = system[a * 128 : a * 128 + 64]
                    right = system[a * 128 + 64 : a * 128 + 128]
                    for b in range(d):
                        left[b] = covariance[a, b]
                        right[b] = moment[b, a]
                    left[a] += kappa
                solve(system, d, factors, pivots)
            for a in range(d):
                right = system[a * 128 + 64 : a * 128 + 128]
                for b in range(d):
                    covariance[a, b] = right[b]
            if both_sides:
                np.dot(guide, covariance, rows)
            else:
                np.dot(rows, covariance, weighted)
                for r in range(n):
                    for e in range(d):
                        rows[r, e] = weighted[r, e]
        uncertainty = trace / np.float32(d) + square / (count * count)
        quality = ONE / (uncertainty + np.float32(0.02))
        scatter(
            rows, mean, offsets, at, g, quality, noise * uncertainty, start, total, mass, spread
        )
