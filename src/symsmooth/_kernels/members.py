"""Which clusters a patch belongs to: the few largest responsibilities, tempered.

``strongest_strip`` writes them patch by patch, ``list_members`` turns the list around.
"""

from __future__ import annotations

import numpy as np

from .base import exp2, jit, part
from .em import logits_tile, row_maximum
from .vector import above, count_bits, lowest_bit


@jit
def strongest_strip(
    pixels, strides, offsets, n_dims, inv_hs, boxes, pointers, ids, means, log2_proportions,
    temper, least, grid, clusters, weights,
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
    buffer = np.zeros(points * most + 8, np.float32)
    centre = np.empty(dim, np.float32)
    values = np.empty(most + 8, np.float32)
    which = np.empty(most, np.int32)
    margin = np.float32(np.log2(least) / temper)
    for t in range(boxes.shape[0]):
        near = ids[pointers[t] : pointers[t + 1]]
        box = boxes[t]
        logits_tile(
            pixels, strides, offsets, n_dims, inv_hs, box, 1, near, means, log2_proportions, rows,
            corners, cluster_rows, centre, buffer,
        )  # fmt: skip
        start = np.int64(0)
        gap = margin
        for z in range(box[0], box[1]):
            for y in range(box[2], box[3]):
                for x in range(box[4], box[5]):
                    best = row_maximum(buffer[start : start + near.size])
                    kept, gap = largest(
                        buffer, start, near.size, margin, best, gap, most_kept, values, which
                    )
                    start += near.size
                    mass = np.float32(0.0)
                    for first in range(0, kept, 8):
                        for q in range(first, first + 8):
                            values[q] = exp2((values[q] - best) * temper)
                    for q in range(kept):
                        mass += values[q]
                    at = (z * grid[1] + y) * grid[2] + x
                    for q in range(kept):
                        clusters[at, q] = near[which[q]]
                        weights[at, q] = values[q] / mass


@part
def largest(numbers, start, size, margin, best, gap, most, values, which):
    """Find the at most ``most`` largest of numbers[start:start + size] that are above best + margin.

    Fills values and which (the place, from 0), in any order.  First a threshold is sought that a few
    more exceed, by bisection from best + gap on, then the smallest go.  Returns how many were found, and
    the threshold's gap: a good one to begin with at the next point.
    """
    low, high, middle = best + margin, best, best + gap
    kept = count_above(numbers, start, size, low)
    for _ in range(8):
        if kept <= most + 2:
            break
        count = count_above(numbers, start, size, middle)
        if count >= most:
            low = middle
            kept = count
        else:
            high = middle
        middle = np.float32(0.5) * (low + high)
    kept = 0
    for first in range(0, size, 64):
        mask = above(numbers, start + first, min(size - first, 64), low)
        while mask:
            place = first + lowest_bit(mask)
            mask &= mask - 1
            values[kept] = numbers[start + place]
            which[kept] = place
            kept += 1
    while kept > most:
        weakest = 0
        for q in range(1, kept):
            weakest = q if values[q] < values[weakest] else weakest
        kept -= 1
        values[weakest] = values[kept]
        which[weakest] = which[kept]
    return kept, low - best


@part
def count_above(numbers, start, size, threshold):
    """Return how many of numbers[start:start + size] are above the threshold."""
    count = 0
    for first in range(0, size, 64):
        count += count_bits(above(numbers, start + first, min(size - first, 64), threshold))
    return count


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
