"""The mixture's E- and M-steps on tiles of pixels.

A tile's generalised patches are the rows of one matrix and its clusters the rows of another, so
that log-densities are one matrix product and the M-step's sums another; responsibilities live in
the tile's buffer and nowhere else.  Rows carry two columns behind the patch: a one (which gives a
cluster's mass for free) and |p|^2 (which gives its scatter).  Everything is taken relative to the
tile's mean point, so that float32 is enough at any contrast.

Few functions, each with one signature: what costs the user time at the first run is compiling.
"""

from __future__ import annotations

import numpy as np

from .base import LOG2E, exp2, inlined, jit

HALF_LOG2E = np.float32(0.5) * LOG2E


@inlined
def load_points(pixels, strides, offsets, n_dims, inv_hs, box, thin, rows, corners):
    """Fill rows with the generalised patches of a tile; return how many.

    pixels is the padded image, flat; strides are those of its (z, y, x); offsets lead from the first
    corner of a patch, which corners receives, to its numbers.  box is the tile (z0, z1, y0, y1,
    x0, x1), of whose positions every thin-th is taken, on diagonals that are shifted, irregularly, from
    each cell of 8 pixels to the next: of a periodic picture plain ones would show some patches only.
    """
    n = 0
    for z in range(box[0], box[1]):
        for y in range(box[2], box[3]):
            for x in range(box[4], box[5]):
                cell = (x >> 3) * 2654435 + (y >> 3) * 1640531 + (z >> 3) * 974711
                if (z + y + x + (cell >> 7)) % thin == 0:
                    corners[n] = z * strides[0] + y * strides[1] + x * strides[2]
                    rows[n, 0] = z * inv_hs  # overwritten in a flat picture
                    rows[n, n_dims - 2] = y * inv_hs
                    rows[n, n_dims - 1] = x * inv_hs
                    n += 1
    for r in range(n):
        row = rows[r]
        for e in range(offsets.size):
            row[n_dims + e] = pixels[corners[r] + offsets[e]]
    return n


@inlined
def logits_tile(
    pixels, strides, offsets, n_dims, inv_hs, box, thin, near, means, log2_proportions,
    rows, corners, cluster_rows, centre, gamma,
):  # fmt: skip
    """Fill gamma, flat (points, clusters), with log2 of pi_i exp(-|p_j - mu_i|^2 / 2) for a tile.

    Fills rows with [p_j - centre, 1, |p_j - centre|^2], and cluster_rows such that the product of the two
    is the logarithm.  Returns the number of points.
    """
    dim = means.shape[1]
    n = load_points(pixels, strides, offsets, n_dims, inv_hs, box, thin, rows, corners)
    for e in range(dim):
        centre[e] = 0.0
    for r in range(n):
        row = rows[r]
        for e in range(dim):
            centre[e] += row[e]
    share = np.float32(1.0) / np.float32(max(n, 1))
    for e in range(dim):
        centre[e] *= share
    for r in range(n):
        row = rows[r]
        for e in range(dim):
            row[e] -= centre[e]
        square = np.float32(0.0)
        for e in range(dim):  # sums that also write would be vectorised at some addresses only
            square += row[e] * row[e]
        row[dim] = 1.0
        row[dim + 1] = square
    for c in range(near.size):
        mean = means[near[c]]
        row = cluster_rows[c]
        for e in range(dim):
            row[e] = mean[e] - centre[e]
        square = np.float32(0.0)
        for e in range(dim):
            square += row[e] * row[e]
        for e in range(dim):
            row[e] *= LOG2E
        row[dim] = log2_proportions[near[c]] - square * HALF_LOG2E
        row[dim + 1] = -HALF_LOG2E
    np.dot(rows[:n], cluster_rows[: near.size].T, gamma[: n * near.size].reshape(n, near.size))
    return n


@inlined
def row_maximum(row):
    """Return the largest number of a row."""
    best = row[0]
    for c in range(row.size):
        value = row[c]
        best = value if value > best else best
    return best


@inlined
def e_step_tile(
    pixels, strides, offsets, n_dims, inv_hs, box, thin, near, means, log2_proportions,
    rows, corners, cluster_rows, centre, gamma, scale,
):  # fmt: skip
    """Responsibilities of a tile's points: ``gamma[r, c] * scale[r]`` (eq. em,gamma).

    See logits_tile; returns the number of points and the sum of their log2 densities.
    """
    n = logits_tile(
        pixels, strides, offsets, n_dims, inv_hs, box, thin, near, means, log2_proportions,
        rows, corners, cluster_rows, centre, gamma,
    )  # fmt: skip
    logits = gamma[: n * near.size].reshape(n, near.size)
    total = np.float64(0.0)
    for r in range(n):
        row = logits[r]
        best = row_maximum(row)
        mass = np.float32(0.0)
        for c in range(row.size):
            value = exp2(row[c] - best)
            row[c] = value
            mass += value
        scale[r] = np.float32(1.0) / mass
        total += best + np.log2(mass)
    return n, total


@jit
def em_strip(
    pixels, target, strides, offsets, n_dims, inv_hs, boxes, pointers, ids, means,
    log2_proportions, weight, thin, first, shift, tail, tile_mass, answers, estimates,
):  # fmt: skip
    """One E-step on a strip of tiles, and what is wanted of its responsibilities gamma.

    Without ``answers``, the sums of the M-step: ``shift[i - first]`` receives sum gamma (q_j - mu_i),
    ``tail[i - first]`` sum gamma and sum gamma |q_j - mu_i|^2, and ``tile_mass`` each candidate's mass
    in its tile.  The points q_j are those of ``target`` if that is not empty (then sum gamma^2 takes
    the place of the scatter), else the points p_j of ``pixels`` that gamma was computed from.
    With ``answers`` (k, p), ``estimates`` receives w_j = sum_i gamma_ij answers_i (eq. vwj), without
    the coordinates, tile after tile.
    Returns the sum of log2 densities.
    """
    dim = means.shape[1]
    most, points = 0, 0
    for t in range(boxes.shape[0]):
        most = max(most, pointers[t + 1] - pointers[t])
        area = (boxes[t, 1] - boxes[t, 0]) * (boxes[t, 3] - boxes[t, 2])
        points = max(points, area * (boxes[t, 5] - boxes[t, 4]))
    rows = np.empty((points, dim + 2), np.float32)
    corners = np.empty(points, np.int64)
    cluster_rows = np.empty((most, dim + 2), np.float32)
    answer_rows = np.empty((most, estimates.shape[1]), np.float32)
    gamma_buffer = np.empty(points * most, np.float32)
    part_rows = np.empty((most, dim + 2), np.float32)
    squares = np.empty(most, np.float32)
    centre = np.empty(dim, np.float32)
    scale = np.empty(points, np.float32)
    log_likelihood = 0.0
    done = 0
    for t in range(boxes.shape[0]):
        near = ids[pointers[t] : pointers[t + 1]]
        n, value = e_step_tile(
            pixels, strides, offsets, n_dims, inv_hs, boxes[t], thin, near, means,
            log2_proportions, rows, corners, cluster_rows, centre, gamma_buffer, scale,
        )  # fmt: skip
        log_likelihood += value
        gamma = gamma_buffer[: n * near.size].reshape(n, near.size)
        if answers.size > 0:
            for c in range(near.size):
                for e in range(offsets.size):
                    answer_rows[c, e] = answers[near[c], n_dims + e]
            np.dot(gamma, answer_rows[: near.size], estimates[done : done + n])
            for r in range(n):
                for e in range(offsets.size):
                    estimates[done + r, e] *= scale[r]
            done += n
            continue
        if target.size > 0:
            for c in range(near.size):
                squares[c] = 0.0
            for r in range(n):
                for e in range(offsets.size):
                    rows[r, n_dims + e] = target[corners[r] + offsets[e]] - centre[n_dims + e]
                for c in range(near.size):
                    share = gamma[r, c] * scale[r]
                    squares[c] += share * share
        for r in range(n):  # normalise the few columns of the points, not all responsibilities
            if weight.size > 0:
                scale[r] *= weight[corners[r] // strides[2]]
            for e in range(dim + 2):
                rows[r, e] *= scale[r]
        parts = part_rows[: near.size]
        np.dot(gamma.T, rows[:n], parts)
        for c in range(near.size):
            i = near[c]
            mass = parts[c, dim]
            scatter = parts[c, dim + 1]
            for e in range(dim):
                centred = means[i, e] - centre[e]
                scatter += centred * (mass * centred - np.float32(2.0) * parts[c, e])
            for e in range(dim):
                shift[i - first, e] += parts[c, e] - mass * (means[i, e] - centre[e])
            tail[i - first, 0] += mass
            tail[i - first, 1] += squares[c] if target.size > 0 else scatter
            tile_mass[pointers[t] + c] = mass
    return log_likelihood


@jit
def scatter_strip(estimates, strides, offsets, boxes, start, out):
    """Add P_j^T w_j to out, tile after tile; out is flat and begins at ``start`` of the padded image."""
    r = 0
    for t in range(boxes.shape[0]):
        for z in range(boxes[t, 0], boxes[t, 1]):
            for y in range(boxes[t, 2], boxes[t, 3]):
                for x in range(boxes[t, 4], boxes[t, 5]):
                    corner = z * strides[0] + y * strides[1] + x * strides[2] - start
                    for e in range(offsets.size):
                        out[corner + offsets[e]] += estimates[r, e]
                    r += 1


@jit
def find_candidates(boxes, positions, tile, n_tiles, radius, pointers):
    """Return, tile after tile, the ids of the clusters within radius of it; fill pointers.

    Clusters are first sorted by the tile their centre lies in (counting sort).
    """
    k = positions.shape[0]
    cells = np.empty(k, np.int64)
    starts = np.zeros(n_tiles[0] * n_tiles[1] * n_tiles[2] + 1, np.int64)
    for i in range(k):
        cell = 0
        for axis in range(3):
            at = int(positions[i, axis]) // tile[axis]
            cell = cell * n_tiles[axis] + min(max(at, 0), n_tiles[axis] - 1)
        cells[i] = cell
        starts[cell + 1] += 1
    for cell in range(starts.size - 1):
        starts[cell + 1] += starts[cell]
    order = np.empty(k, np.int64)
    filled = starts.copy()
    for i in range(k):
        order[filled[cells[i]]] = i
        filled[cells[i]] += 1
    low = np.empty(3, np.int64)
    high = np.empty(3, np.int64)
    ids = np.empty(0, np.int32)
    for writing in range(2):  # count, then write
        n = 0
        for t in range(boxes.shape[0]):
            for axis in range(3):
                first, last = boxes[t, 2 * axis], boxes[t, 2 * axis + 1] - 1
                low[axis] = max(int(np.floor((first - radius) / tile[axis])), 0)
                high[axis] = min(int(np.floor((last + radius) / tile[axis])), n_tiles[axis] - 1)
            for a in range(low[0], high[0] + 1):
                for b in range(low[1], high[1] + 1):
                    row = (a * n_tiles[1] + b) * n_tiles[2]
                    for q in range(starts[row + low[2]], starts[row + high[2] + 1]):
                        far = np.float32(0.0)
                        for axis in range(3):
                            at = positions[order[q], axis]
                            before = boxes[t, 2 * axis] - at
                            behind = at - (boxes[t, 2 * axis + 1] - 1)
                            gap = max(before, behind)
                            far += gap * gap if gap > 0 else 0.0
                        if far < radius * radius:
                            if writing == 1:
                                ids[n] = order[q]
                            n += 1
            pointers[t + 1] = n
        if writing == 0:
            ids = np.empty(n, np.int32)
    return ids
