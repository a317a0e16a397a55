"""The mixture's E- and M-steps on tiles of pixels.

A tile's generalised patches are the rows of one matrix and its clusters the rows of another, so
that log-densities are one matrix product and the M-step's sums another; responsibilities live in
the tile's buffer and nowhere else.  Rows carry two columns behind the patch: a one (which gives a
cluster's mass for free) and |p|^2 (which gives its scatter).  Everything is taken relative to the
tile's mean point, so that float32 is enough at any contrast.
"""

from __future__ import annotations

import numpy as np

from .base import LOG2E, exp2, jit

HALF_LOG2E = np.float32(0.5) * LOG2E


@jit
def gather_patch(image, channels, patch, z, y, x, out):
    """Copy the patch whose first corner is (z, y, x); image is (z, y, x * channels)."""
    run = patch[2] * channels
    at = 0
    for u in range(patch[0]):
        for v in range(patch[1]):
            line = image[z + u, y + v, x * channels : x * channels + run]
            for e in range(run):
                out[at + e] = line[e]
            at += run


@jit
def load_patches(image, channels, patch, box, thin, rows):
    """Fill rows with the patches of a tile; return how many: those with (z+y+x) % thin == 0."""
    n = 0
    for z in range(box[0], box[1]):
        for y in range(box[2], box[3]):
            first = box[4] + (-(z + y + box[4])) % thin
            for x in range(first, box[5], thin):
                gather_patch(image, channels, patch, z, y, x, rows[n])
                n += 1
    return n


@jit
def load_coordinates(box, thin, n_dims, inv_hs, rows):
    """Fill the first n_dims columns with x/h_s, in the order of load_patches."""
    n = 0
    for z in range(box[0], box[1]):
        for y in range(box[2], box[3]):
            first = box[4] + (-(z + y + box[4])) % thin
            for x in range(first, box[5], thin):
                if n_dims == 3:
                    rows[n, 0] = z * inv_hs
                rows[n, n_dims - 2] = y * inv_hs
                rows[n, n_dims - 1] = x * inv_hs
                n += 1


@jit
def load_features(image, channels, patch, box, thin, n_dims, inv_hs, rows, centre):
    """Fill rows with [p_j - centre, 1, |p_j - centre|^2], centre being the tile's mean; return n."""
    dim = rows.shape[1] - 2
    n = load_patches(image, channels, patch, box, thin, rows[:, n_dims:])
    load_coordinates(box, thin, n_dims, inv_hs, rows)
    for e in range(dim):
        centre[e] = 0.0
    for r in range(n):
        row = rows[r]
        for e in range(dim):
            centre[e] += row[e]
    inv_n = np.float32(1.0) / np.float32(max(n, 1))
    for e in range(dim):
        centre[e] *= inv_n
    for r in range(n):
        row = rows[r]
        square = np.float32(0.0)
        for e in range(dim):
            row[e] -= centre[e]
            square += row[e] * row[e]
        row[dim] = 1.0
        row[dim + 1] = square
    return n


@jit
def load_clusters(ids, means, log2_proportions, centre, rows):
    """Fill rows so that <feature row, cluster row> = log2 of pi_i exp(-|p_j - mu_i|^2 / 2)."""
    dim = rows.shape[1] - 2
    for c in range(ids.size):
        mean = means[ids[c]]
        row = rows[c]
        square = np.float32(0.0)
        for e in range(dim):
            centred = mean[e] - centre[e]
            square += centred * centred
            row[e] = centred * LOG2E
        row[dim] = log2_proportions[ids[c]] - square * HALF_LOG2E
        row[dim + 1] = -HALF_LOG2E


@jit
def row_max(row):
    best = row[0]
    for c in range(row.size):
        value = row[c]
        best = value if value > best else best
    return best


@jit
def exponentiate_rows(logits, scale):
    """Turn each row into 2^(row - max), its inverse sum into scale; return sum of log2 densities.

    This is eq. (em,gamma): responsibilities are ``logits[r] * scale[r]``.
    """
    total = 0.0
    for r in range(logits.shape[0]):
        row = logits[r]
        best = row_max(row)
        mass = np.float32(0.0)
        for c in range(row.size):
            value = exp2(row[c] - best)
            row[c] = value
            mass += value
        scale[r] = np.float32(1.0) / mass
        total += best + np.log2(mass)
    return total


@jit
def tile_weights(weight, box, thin, out):
    """Copy the weights of a tile's points (1 = usable, 0 = missing)."""
    n = 0
    for z in range(box[0], box[1]):
        for y in range(box[2], box[3]):
            first = box[4] + (-(z + y + box[4])) % thin
            for x in range(first, box[5], thin):
                out[n] = weight[z, y, x]
                n += 1


@jit
def em_strip(
    image, channels, patch, n_dims, inv_hs, boxes, pointers, ids, means, log2_proportions,
    weight, thin, first, sums, tile_mass,
):  # fmt: skip
    """One E-step on a strip of tiles, and what the M-step needs of it.

    ``sums[i - first]`` receives, over the strip's points j, sum gamma (p_j - mu_i), sum gamma and
    sum gamma |p_j - mu_i|^2; ``tile_mass`` the mass of each candidate in its tile.  Returns the sum
    of log2 densities.
    """
    dim = means.shape[1]
    most, points = 0, 0
    for t in range(boxes.shape[0]):
        most = max(most, pointers[t + 1] - pointers[t])
        box = boxes[t]
        points = max(points, (box[1] - box[0]) * (box[3] - box[2]) * (box[5] - box[4]))
    feature_rows = np.empty((points, dim + 2), np.float32)
    cluster_rows = np.empty((most, dim + 2), np.float32)
    logits_buffer = np.empty(points * most, np.float32)
    sums_buffer = np.empty((most, dim + 2), np.float32)
    centre = np.empty(dim, np.float32)
    scale = np.empty(points, np.float32)
    point_weight = np.ones(points, np.float32)
    log_likelihood = 0.0
    for t in range(boxes.shape[0]):
        near = ids[pointers[t] : pointers[t + 1]]
        n_near = near.size
        if n_near == 0:
            continue
        n = load_features(
            image, channels, patch, boxes[t], thin, n_dims, inv_hs, feature_rows, centre
        )
        if n == 0:
            continue
        load_clusters(near, means, log2_proportions, centre, cluster_rows)
        features = feature_rows[:n]
        clusters = cluster_rows[:n_near]
        gamma = logits_buffer[: n * n_near].reshape(n, n_near)
        np.dot(features, clusters.T, gamma)
        log_likelihood += exponentiate_rows(gamma, scale)
        if weight.size > 0:
            tile_weights(weight, boxes[t], thin, point_weight)
        for r in range(n):  # normalise the few columns of the points, not all responsibilities
            row = features[r]
            factor = scale[r] * point_weight[r]
            for e in range(dim + 2):
                row[e] *= factor
        tile_sums = sums_buffer[:n_near]
        np.dot(gamma.T, features, tile_sums)
        for c in range(n_near):
            total = sums[near[c] - first]
            part = tile_sums[c]
            mean = means[near[c]]
            mass = part[dim]
            cross = np.float32(0.0)
            square = np.float32(0.0)
            for e in range(dim):
                centred = mean[e] - centre[e]
                cross += centred * part[e]
                square += centred * centred
                total[e] += part[e] - mass * centred
            total[dim] += mass
            total[dim + 1] += part[dim + 1] - np.float32(2.0) * cross + mass * square
            tile_mass[pointers[t] + c] = mass
    return log_likelihood


@jit
def responsibilities_tile(
    image, channels, patch, n_dims, inv_hs, box, near, means, log2_proportions, gamma
):  # fmt: skip
    """Fill gamma (points, candidates) with the responsibilities of one tile."""
    dim = means.shape[1]
    features = np.empty((gamma.shape[0], dim + 2), np.float32)
    clusters = np.empty((near.size, dim + 2), np.float32)
    centre = np.empty(dim, np.float32)
    scale = np.empty(gamma.shape[0], np.float32)
    load_features(image, channels, patch, box, 1, n_dims, inv_hs, features, centre)
    load_clusters(near, means, log2_proportions, centre, clusters)
    np.dot(features, clusters.T, gamma)
    total = exponentiate_rows(gamma, scale)
    for r in range(gamma.shape[0]):
        row = gamma[r]
        for c in range(row.size):
            row[c] *= scale[r]
    return total


@jit
def cluster_average_strip(
    image, noisy, channels, patch, n_dims, inv_hs, boxes, pointers, ids, means, log2_proportions,
    weight, first, sums,
):  # fmt: skip
    """Responsibilities from ``image``, sums over the patches of ``noisy``.

    ``sums[i - first]`` receives sum gamma y_j, sum gamma, and sum gamma^2 (for div(u)).
    """
    patch_dim = sums.shape[1] - 2
    for t in range(boxes.shape[0]):
        near = ids[pointers[t] : pointers[t + 1]]
        if near.size == 0:
            continue
        box = boxes[t]
        n = (box[1] - box[0]) * (box[3] - box[2]) * (box[5] - box[4])
        gamma = np.empty((n, near.size), np.float32)
        responsibilities_tile(
            image, channels, patch, n_dims, inv_hs, box, near, means, log2_proportions, gamma
        )
        patches = np.empty((n, patch_dim), np.float32)
        load_patches(noisy, channels, patch, box, 1, patches)
        if weight.size > 0:
            point_weight = np.empty(n, np.float32)
            tile_weights(weight, box, 1, point_weight)
            for r in range(n):
                row = gamma[r]
                for c in range(row.size):
                    row[c] *= point_weight[r]
        tile_sums = np.empty((near.size, patch_dim), np.float32)
        np.dot(gamma.T, patches, tile_sums)
        mass = np.zeros(near.size, np.float32)
        square = np.zeros(near.size, np.float32)
        for r in range(n):
            row = gamma[r]
            for c in range(row.size):
                mass[c] += row[c]
                square[c] += row[c] * row[c]
        for c in range(near.size):
            total = sums[near[c] - first]
            part = tile_sums[c]
            for e in range(patch_dim):
                total[e] += part[e]
            total[patch_dim] += mass[c]
            total[patch_dim + 1] += square[c]


@jit
def patch_average_strip(
    image, channels, patch, n_dims, inv_hs, boxes, pointers, ids, means, log2_proportions,
    answers, z0, y0, out,
):  # fmt: skip
    """Add P_j^T w_j to out, with w_j = sum_i gamma_ij answers_i (eq. vwj).

    ``out`` is (z, y, x * channels) and begins at row (z0, y0) of the padded image.
    """
    patch_dim = answers.shape[1]
    run = patch[2] * channels
    for t in range(boxes.shape[0]):
        near = ids[pointers[t] : pointers[t + 1]]
        if near.size == 0:
            continue
        box = boxes[t]
        n = (box[1] - box[0]) * (box[3] - box[2]) * (box[5] - box[4])
        gamma = np.empty((n, near.size), np.float32)
        responsibilities_tile(
            image, channels, patch, n_dims, inv_hs, box, near, means, log2_proportions, gamma
        )
        replies = np.empty((near.size, patch_dim), np.float32)
        for c in range(near.size):
            answer = answers[near[c]]
            reply = replies[c]
            for e in range(patch_dim):
                reply[e] = answer[e]
        estimates = np.empty((n, patch_dim), np.float32)
        np.dot(gamma, replies, estimates)
        r = 0
        for z in range(box[0], box[1]):
            for y in range(box[2], box[3]):
                for x in range(box[4], box[5]):
                    at = 0
                    for u in range(patch[0]):
                        for v in range(patch[1]):
                            line = out[z - z0 + u, y - y0 + v, x * channels : x * channels + run]
                            piece = estimates[r, at : at + run]
                            for e in range(run):
                                line[e] += piece[e]
                            at += run
                    r += 1


@jit
def bin_clusters(positions, tile, n_tiles, order, starts):
    """Sort clusters by the tile their centre lies in (counting sort, stable)."""
    k = positions.shape[0]
    cells = np.empty(k, np.int64)
    for i in range(k):
        cell = 0
        for axis in range(3):
            at = int(positions[i, axis]) // tile[axis]
            cell = cell * n_tiles[axis] + min(max(at, 0), n_tiles[axis] - 1)
        cells[i] = cell
        starts[cell + 1] += 1
    for c in range(starts.size - 1):
        starts[c + 1] += starts[c]
    at = starts[:-1].copy()
    for i in range(k):
        order[at[cells[i]]] = i
        at[cells[i]] += 1


@jit
def candidates_of_tile(box, positions, tile, n_tiles, radius, order, starts, out):
    """Collect the clusters within radius of a tile's box; return how many (out may be empty)."""
    low = np.empty(3, np.int64)
    high = np.empty(3, np.int64)
    for axis in range(3):
        low[axis] = max(int(np.floor((box[2 * axis] - radius) / tile[axis])), 0)
        high[axis] = min(
            int(np.floor((box[2 * axis + 1] - 1 + radius) / tile[axis])), n_tiles[axis] - 1
        )
    n = 0
    for a in range(low[0], high[0] + 1):
        for b in range(low[1], high[1] + 1):
            for c in range(low[2], high[2] + 1):
                cell = (a * n_tiles[1] + b) * n_tiles[2] + c
                for q in range(starts[cell], starts[cell + 1]):
                    i = order[q]
                    far = np.float32(0.0)
                    for axis in range(3):
                        at = positions[i, axis]
                        gap = max(box[2 * axis] - at, at - (box[2 * axis + 1] - 1), 0.0)
                        far += gap * gap
                    if far < radius * radius:
                        if out.size > 0:
                            out[n] = i
                        n += 1
    return n


@jit
def find_candidates(boxes, positions, tile, n_tiles, radius, pointers):
    """Return, tile after tile, the ascending ids of the clusters near it; fill pointers."""
    order = np.empty(positions.shape[0], np.int64)
    starts = np.zeros(n_tiles[0] * n_tiles[1] * n_tiles[2] + 1, np.int64)
    bin_clusters(positions, tile, n_tiles, order, starts)
    nothing = np.empty(0, np.int32)
    for t in range(boxes.shape[0]):
        pointers[t + 1] = pointers[t] + candidates_of_tile(
            boxes[t], positions, tile, n_tiles, radius, order, starts, nothing
        )
    ids = np.empty(pointers[-1], np.int32)
    for t in range(boxes.shape[0]):
        mine = ids[pointers[t] : pointers[t + 1]]
        candidates_of_tile(boxes[t], positions, tile, n_tiles, radius, order, starts, mine)
        mine.sort()
    return ids
