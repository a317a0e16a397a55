"""What a soft cluster does with its patches, cluster by cluster.

Members of cluster c are ``corners[pointers[c]:pointers[c + 1]]``, the flat corners of their patches in
``pixels``, with weights ``shares``.  Estimates are added to ``total`` at the pixels, their weight to
``mass`` and weight times variance to ``spread`` at the patch's corner (one box sum at the end does the
rest); these three are flat and begin at ``start``.

A patch is ``lines.size`` lines of ``side`` pixels (at most 8), which begin at corner + lines.  Patches
stand in flat buffers, one in ``wide`` places: its d pixels and zeros up to a multiple of eight.  Lines are
moved eight pixels at a time: ``pixels``, ``total`` and the buffers have eight places to spare.
"""

from __future__ import annotations

import numpy as np

from .base import jit, part
from .linalg import eigh, multiply, solve
from .vector import add_patch, take_patch

ZERO, ONE = np.float32(0.0), np.float32(1.0)
# not plain numbers, for each of which a kernel would be compiled anew
STEP, HALF, WHOLE = np.int64(1), np.int64(64), np.int64(128)
UPPER, ALL = np.bool_(True), np.bool_(False)
FEWEST = np.float32(0.1)  # degrees of freedom: with fewer a cluster is one patch, its own mean
LEAST, MOST = np.float32(1e-30), np.float32(1e12)
RESOLUTION = np.float32(1e-6)  # of a Gram matrix's trace: eigenvalues below it may be rounding


@part
def widest(pointers, first, last):
    """Return the largest number of members of clusters first to last."""
    most = 0
    for c in range(first, last):
        most = max(most, pointers[c + 1] - pointers[c])
    return most


@part
def gather(pixels, lines, side, corners, shares, rows, wide, mean):
    """Fill rows with the members' patches and mean with their weighted mean; return sum g, sum g^2."""
    d = lines.size * side
    mass, square = ZERO, ZERO
    for e in range(wide):
        mean[e] = 0.0
    for r in range(corners.size):
        take_patch(pixels, corners[r], lines, lines.size, side, rows, r * wide)
        row = rows[r * wide : r * wide + wide]
        for e in range(d, wide):
            row[e] = 0.0
        share = shares[r]
        mass += share
        square += share * share
        for e in range(wide):
            mean[e] += share * row[e]
    for e in range(wide):
        mean[e] /= mass
    return mass, square


@part
def centre(rows, wide, mean, roots, n):
    """Replace each patch y by root (y - mean)."""
    for r in range(n):
        row = rows[r * wide : r * wide + wide]
        for e in range(wide):
            row[e] = roots[r] * (row[e] - mean[e])


@part
def scatter(
    rows, wide, mean, roots, lines, side, lanes, corners, shares, quality, variance, start, total,
    mass, spread,
):  # fmt: skip
    """Add mean + row / root, with weight shares * quality."""
    for r in range(corners.size):
        weight = shares[r] * quality
        corner = corners[r] - start
        add_patch(
            total, corner, lines, lines.size, side, rows, r * wide, mean, lanes,
            weight / roots[r], weight,
        )  # fmt: skip
        mass[corner] += weight
        spread[corner] += weight * variance


@part
def first_lanes(side):
    """Return ones for the pixels of a line, zeros for what is moved along with them."""
    lanes = np.zeros(8, np.float32)
    lanes[:side] = 1.0
    return lanes


@jit
def spectral_chunk(
    pixels, lines, side, pointers, corners, shares, first, last, noise, bias, start, total, mass,
    spread,
):  # fmt: skip
    """Optimal shrinkage of the spectrum of each cluster's covariance; noise is sigma^2.

    With Y the rows sqrt(g / sum g) (y - mu): C = Y'Y = V' diag(l) V, M = V' diag(f) V, Y <- Y M.
    C is divided by its trace, so that squares of its entries neither vanish nor overflow.
    """
    d = lines.size * side
    wide = (d + 7) // 8 * 8
    most = widest(pointers, first, last)
    rows = np.zeros((most + 4) * wide + 8, np.float32)
    estimates = np.zeros((most + 4) * wide + 8, np.float32)
    roots = np.empty(most, np.float32)
    mean = np.zeros(wide + 8, np.float32)
    lanes = first_lanes(side)
    matrix = np.zeros((wide + 4) * wide, np.float32)
    vectors = matrix[: d * wide].reshape(d, wide)
    values = np.zeros(wide, np.float32)
    work = np.zeros(wide, np.float32)
    kept = np.zeros(wide * wide, np.float32)
    scaled = np.zeros(wide * wide, np.float32)
    for c in range(first, last):
        at = corners[pointers[c] : pointers[c + 1]]
        g = shares[pointers[c] : pointers[c + 1]]
        n = at.size
        if n == 0:
            continue
        count, square = gather(pixels, lines, side, at, g, rows, wide, mean)
        for r in range(n):
            roots[r] = np.sqrt(g[r] / count)
        centre(rows, wide, mean, roots, n)
        freedom = count * count / square - ONE
        rank = np.int64(0)
        trace = ZERO
        if freedom > FEWEST:
            multiply(rows, STEP, wide, rows, wide, n, matrix, wide, d, wide, UPPER)
            energy = ZERO
            for e in range(d):
                energy += vectors[e, e]
            inverse = ONE / max(energy, LEAST)
            for e in range(d):
                for q in range(e, d):
                    vectors[e, q] *= inverse
                    vectors[q, e] = vectors[e, q]
            eigh(vectors, d, values, work)
            for e in range(d):
                x = values[e] * (energy / (bias * noise))
                factor = shrink(x, np.float32(d) / freedom)
                if factor > 0:
                    for q in range(d):
                        kept[rank * wide + q] = vectors[e, q]
                        scaled[rank * wide + q] = vectors[e, q] * factor
                    rank += 1
                    trace += factor
        if rank > 0:
            multiply(kept, STEP, wide, scaled, wide, rank, matrix, wide, d, wide, ALL)
            multiply(rows, wide, STEP, matrix, wide, d, estimates, wide, n, wide, ALL)
        else:
            estimates[: n * wide] = 0.0
        variance = noise * (trace / np.float32(d) + square / (count * count))
        scatter(
            estimates, wide, mean, roots, lines, side, lanes, at, g, ONE, variance, start, total,
            mass, spread,
        )  # fmt: skip


@part
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
    x = min(x, MOST)
    apart = ONE - (ratio + ONE) / x
    return np.sqrt(max(apart * apart - np.float32(4.0) * ratio / (x * x), ZERO))


@jit
def wiener_chunk(
    pixels, pilot, lines, side, pointers, corners, shares, first, last, noise, strength, trust,
    start, total, mass, spread,
):  # fmt: skip
    """Wiener filter of each cluster with moments from the pilot, within patches and across them.

    With U the rows w (u - mu_u) of the pilot and Y the rows w (y - mu), w^2 = n g / sum g, S = U'U and
    a = n noise / strength, b = d noise / strength, a member becomes a row of
    E = U (S + b I)^-1 U' Y (S + a I)^-1 S.  Written with D = Y - U, which is no more than noise, it is

        E = U W (I - a (S + a I)^-1),    W = I - (S + b I)^-1 (b I - U'D),

    where nothing large is left over from a difference: without noise it is E = U.  Of fewer patches than
    pixels it is found with G = U U' instead:

        E = (I - b (G + b I)^-1) W U,    W = I - (a I - D U') (G + a I)^-1.

    The shifts of S and G are no smaller than what float32 can tell from zero (``shift_of``).
    """
    d = lines.size * side
    wide = (d + 7) // 8 * 8
    most = widest(pointers, first, last)
    rows = np.zeros((most + 4) * wide + 8, np.float32)
    guide = np.zeros((most + 4) * wide + 8, np.float32)
    roots = np.empty(most, np.float32)
    mean = np.zeros(wide + 8, np.float32)
    pilot_mean = np.zeros(wide + 8, np.float32)
    lanes = first_lanes(side)
    system = np.zeros(64 * 128, np.float32)
    right = system[64:]
    factors = np.zeros(64, np.float32)
    pivots = np.zeros(64, np.float32)
    gram = np.zeros(64 * 64, np.float32)
    turned = np.zeros(64 * 64, np.float32)
    whole = np.zeros(64 * 64, np.float32)
    for c in range(first, last):
        at = corners[pointers[c] : pointers[c + 1]]
        g = shares[pointers[c] : pointers[c + 1]]
        n = at.size
        if n == 0:
            continue
        gather(pixels, lines, side, at, g, rows, wide, mean)
        count, square = gather(pilot, lines, side, at, g, guide, wide, pilot_mean)
        for e in range(d):
            mean[e] = pilot_mean[e] + trust * (mean[e] - pilot_mean[e])
        for r in range(n):
            roots[r] = np.sqrt(np.float32(n) * g[r] / count)
        centre(rows, wide, mean, roots, n)
        centre(guide, wide, pilot_mean, roots, n)
        for e in range(n * wide):
            rows[e] -= guide[e]
        a = np.float32(n) * noise / strength
        b = np.float32(d) * noise / strength
        if n < d:
            columns = (n + 7) // 8 * 8
            transpose(guide, wide, n, d, turned)
            multiply(guide, wide, STEP, turned, HALF, d, gram, HALF, n, columns, UPPER)
            transpose(rows, wide, n, d, turned)
            multiply(guide, wide, STEP, turned, HALF, d, right, WHOLE, n, columns, ALL)
            complement(right, WHOLE, a, n)
            divide(system, gram, shift_of(gram, a, n), n, factors, pivots)
            trace = degrees_of_freedom(pivots, a, n)
            complement(right, WHOLE, ONE, n)
            turn(right, WHOLE, turned, n)  # W
            copy(turned, right, n)
            divide(system, gram, shift_of(gram, b, n), n, factors, pivots)
            for e in range(n):
                for q in range(n):
                    turned[e * 64 + q] -= b * right[e * 128 + q]
            multiply(turned, HALF, STEP, guide, wide, n, rows, wide, n, wide, ALL)
        else:
            multiply(guide, STEP, wide, guide, wide, n, gram, HALF, d, wide, UPPER)
            multiply(guide, STEP, wide, rows, wide, n, right, WHOLE, d, wide, ALL)
            complement(right, WHOLE, b, d)
            divide(system, gram, shift_of(gram, b, d), d, factors, pivots)
            complement(right, WHOLE, ONE, d)
            turn(right, WHOLE, turned, d)  # W'
            copy(turned, right, d)
            divide(system, gram, shift_of(gram, a, d), d, factors, pivots)
            trace = degrees_of_freedom(pivots, a, d)
            for e in range(d):
                for q in range(d):
                    turned[e * 64 + q] -= a * right[e * 128 + q]
            turn(turned, HALF, whole, d)
            multiply(guide, wide, STEP, whole, HALF, d, rows, wide, n, wide, ALL)
        uncertainty = trace / np.float32(d) + square / (count * count)
        quality = ONE / (uncertainty + np.float32(0.02))
        scatter(
            rows, wide, mean, roots, lines, side, lanes, at, g, quality, noise * uncertainty,
            start, total, mass, spread,
        )  # fmt: skip


@part
def shift_of(matrix, shift, size):
    """Return the shift that makes a Gram matrix safely positive definite in float32: at least ``shift``.

    Rounding leaves errors of a few 1e-7 of the trace in the eigenvalues.
    """
    trace = ZERO
    for e in range(size):
        trace += matrix[e * 64 + e]
    return max(shift, RESOLUTION * trace)


@part
def complement(matrix, step, diagonal, size):
    """Replace a matrix with rows of ``step`` by diagonal I - matrix."""
    for e in range(size):
        row = matrix[e * step : e * step + size]
        for q in range(size):
            row[q] = -row[q]
        row[e] += diagonal


@part
def turn(matrix, step, turned, size):
    """Transpose a square matrix with rows of ``step`` into one with rows of 64."""
    for e in range(size):
        for q in range(size):
            turned[e * 64 + q] = matrix[q * step + e]


@part
def transpose(rows, wide, n, d, turned):
    """Write n <= 64 patches as columns of d rows of 64, zeros up to a multiple of eight."""
    for r in range(n):
        for e in range(d):
            turned[e * 64 + r] = rows[r * wide + e]
    for r in range(n, (n + 7) // 8 * 8):
        for e in range(d):
            turned[e * 64 + r] = 0.0


@part
def copy(matrix, right, size):
    """Copy a matrix with rows of 64 to one with rows of 128."""
    for e in range(size):
        own, other = right[e * 128 : e * 128 + 64], matrix[e * 64 : e * 64 + 64]
        for q in range(64):
            own[q] = other[q]


@part
def divide(system, matrix, shift, size, factors, pivots):
    """Multiply the system's right half by (matrix + shift I)^-1; of the matrix the upper half is read."""
    for e in range(size):
        own, other = system[e * 128 : e * 128 + 64], matrix[e * 64 : e * 64 + 64]
        for q in range(64):
            own[q] = other[q]
        own[e] += shift
    solve(system, size, factors, pivots)


@part
def degrees_of_freedom(pivots, shift, size):
    """Return about the trace of S (S + shift I)^-1, from above: of the inverse only pivots are known."""
    trace = ZERO
    for e in range(size):
        trace += ONE - shift * pivots[e]
    return trace
