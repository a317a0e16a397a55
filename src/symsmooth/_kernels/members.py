"""Which clusters a patch belongs to: the few largest responsibilities, tempered.

``strongest_strip`` writes them patch by patch, ``list_members`` turns the list around.
"""

from __future__ import annotations

import numpy as np

from .base import exp2, jit
from .em import logits_tile, row_maximum


@jit
def strongest_strip(
    pixels, strides, offsets, n_dims, inv_hs, boxes, pointers, ids, means, log2_proportions,
    thin, temper, least, grid, clusters, weights,
):  # fmt: skip
    """For each point of a strip keep the clusters of the largest log-densities L.

    At most as many as ``clusters`` (n, m) has columns, with weights proportional to exp(temper (L - max
    L)), without those below ``least`` of the largest; unused places keep weight 0.
    """
    dim = means.shape[1]
    most_kept = clusters.shape[1]
    most, points = 0, 0
    for t in range(boxes.shape[0]):
        most = max(most, pointers[t + 1] - pointers[t])
        area = (boxes[t, 1] - boxes[t, 0]) * (boxes[t, 3] - boxes[t, 2])
        points = max(points, area * (boxes[t, 5] - boxes[t, 4]))
    rows = np.empty((points, dim + 2), np.float32)
    corners = np.empty(points, np.int64)
    cluster_rows = np.empty((most, dim + 2), np.float32)
    buffer = np.empty(points * most, np.float32)
    centre = np.empty(dim, np.float32)
    values = np.empty(most + 1, np.float32)
    which = np.empty(most + 1, np.int32)
    margin = np.float32(np.log2(least) / temper)
    for t in range(boxes.shape[0]):
        near = ids[pointers[t] : pointers[t + 1]]
        n = logits_tile(
            pixels, strides, offsets, n_dims, inv_hs, boxes[t], thin, near, means,
            log2_proportions, rows, corners, cluster_rows, centre, buffer,
        )  # fmt: skip
        logits = buffer[: n * near.size].reshape(n, near.size)
        for r in range(n):
            row = logits[r]
            best = row_maximum(row)
            threshold = best + margin
            kept = 0
            for c in range(row.size):  # without a branch: each is written, few are counted
                values[kept] = row[c]
                which[kept] = c
                kept += 1 if row[c] > threshold else 0
            if kept > most_kept:
                weakest = 0
                for q in range(1, most_kept):
                    weakest = q if values[q] < values[weakest] else weakest
                for q in range(most_kept, kept):
                    if values[q] > values[weakest]:
                        values[weakest] = values[q]
                        which[weakest] = which[q]
                        weakest = 0
                        for o in range(1, most_kept):
                            weakest = o if values[o] < values[weakest] else weakest
                kept = most_kept
            mass = np.float32(0.0)
            for q in range(kept):
                values[q] = exp2((values[q] - best) * temper)
                mass += values[q]
            corner = corners[r]
            z = corner // strides[0]
            y = (corner - z * strides[0]) // strides[1]
            x = (corner - z * strides[0] - y * strides[1]) // strides[2]
            at = (z * grid[1] + y) * grid[2] + x
            for q in range(kept):
                clusters[at, q] = near[which[q]]
                weights[at, q] = values[q] / mass


@jit
def count_members(clusters, weights, least, counts):
    """Add to counts how many patches of (n, m) belong to each cluster."""
    for j in range(clusters.shape[0]):
        for q in range(clusters.shape[1]):
            if weights[j, q] > least:
                counts[clusters[j, q]] += 1


@jit
def list_members(clusters, weights, least, grid, steps, first, places, corners, shares):
    """Write the members of each cluster, in the order of the picture, from ``places`` on.

    corners receives the flat corner of a member's patch (by ``steps``, the strides of a single channel),
    shares its weight; ``first`` is the number of the first patch of (n, m).
    """
    for r in range(clusters.shape[0]):
        j = first + r
        z = j // (grid[1] * grid[2])
        y = j // grid[2] - z * grid[1]
        corner = z * steps[0] + y * steps[1] + (j % grid[2]) * steps[2]
        for q in range(clusters.shape[1]):
            if weights[r, q] > least:
                i = clusters[r, q]
                corners[places[i]] = corner
                shares[places[i]] = weights[r, q]
                places[i] += 1
