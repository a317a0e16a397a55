"""Block matching: the patches nearest to each reference, in a box around it.

Pictures come as planes (planes, z, y, x); a patch is named by its corner, a flat number in one plane.
Distances of a whole row of candidates are summed together, so that the loops run along memory.
"""

from __future__ import annotations

import numpy as np

from .base import inlined, jit

ZERO = np.float32(0.0)
FAR = np.float32(1e30)


@inlined
def row_distances(guide, reference, candidate, patch, x_last, sums):
    """Fill sums with |P_r - P_c|^2 for a row of candidates c.

    reference is (z, y, x) of r, candidate (z, y, x) of the first c and ``x_last`` the x of the last.
    """
    n = x_last - candidate[2] + 1
    for j in range(n):
        sums[j] = ZERO
    for p in range(guide.shape[0]):
        for a in range(patch[0]):
            for b in range(patch[1]):
                own = guide[p, reference[0] + a, reference[1] + b]
                row = guide[p, candidate[0] + a, candidate[1] + b]
                e = 0
                while e + 4 <= patch[2]:
                    at, to = reference[2] + e, candidate[2] + e
                    r0, r1, r2, r3 = own[at], own[at + 1], own[at + 2], own[at + 3]
                    c0, c1 = row[to : to + n], row[to + 1 : to + 1 + n]
                    c2, c3 = row[to + 2 : to + 2 + n], row[to + 3 : to + 3 + n]
                    for j in range(n):
                        d0, d1 = c0[j] - r0, c1[j] - r1
                        d2, d3 = c2[j] - r2, c3[j] - r3
                        sums[j] += (d0 * d0 + d1 * d1) + (d2 * d2 + d3 * d3)
                    e += 4
                while e < patch[2]:
                    value = own[reference[2] + e]
                    column = row[candidate[2] + e : candidate[2] + e + n]
                    for j in range(n):
                        d = column[j] - value
                        sums[j] += d * d
                    e += 1
    return n


@jit
def sift_up(keys, corners, at, key, corner):
    """Put (key, corner) into a heap (largest key on top) that has ``at`` entries."""
    while at > 0 and keys[(at - 1) // 2] < key:
        keys[at] = keys[(at - 1) // 2]
        corners[at] = corners[(at - 1) // 2]
        at = (at - 1) // 2
    keys[at] = key
    corners[at] = corner


@jit
def sift_down(keys, corners, size, key, corner):
    """Put (key, corner) in the place of the top of a heap of ``size`` entries."""
    hole = 0
    while True:
        child = 2 * hole + 1
        if child >= size:
            break
        if child + 1 < size and keys[child + 1] > keys[child]:
            child += 1
        if keys[child] <= key:
            break
        keys[hole] = keys[child]
        corners[hole] = corners[child]
        hole = child
    keys[hole] = key
    corners[hole] = corner


@inlined
def sort_heap(keys, corners, size):
    """Turn a heap into a list, smallest key first."""
    for end in range(size - 1, 0, -1):
        key, corner = keys[0], corners[0]
        sift_down(keys, corners, end, keys[end], corners[end])
        keys[end] = key
        corners[end] = corner


@inlined
def nearest(guide, whole, reference, own, patch, radius, most, sums, keys, corners):
    """Fill keys and corners with the ``most`` nearest patches of a reference, as a heap; return how many.

    The reference (whose corner is ``own``) is always among them, with a key below all others.
    """
    height, width = guide.shape[2], guide.shape[3]
    z, y, x = reference
    x_first, x_last = max(x - radius[2], 0), min(x + radius[2], width - patch[2])
    keys[0] = -FAR
    corners[0] = own
    size = 1
    for cz in range(max(z - radius[0], 0), min(z + radius[0], guide.shape[1] - patch[0]) + 1):
        for cy in range(max(y - radius[1], 0), min(y + radius[1], height - patch[1]) + 1):
            n = row_distances(guide, reference, (cz, cy, x_first), patch, x_last, sums)
            first = (cz * height + cy) * width + x_first
            for j in range(n):
                key = sums[j]
                if size == most and key >= keys[0]:
                    continue
                corner = first + j
                if corner == own or (whole.size > 0 and whole[corner] == 0):
                    continue
                if size < most:
                    sift_up(keys, corners, size, key, corner)
                    size += 1
                else:
                    sift_down(keys, corners, size, key, corner)
    return size


@jit
def match_tile(
    guide, whole, ref_z, ref_y, ref_x, patch, radius, least, most, limit, boost, members, counts
):  # fmt: skip
    """List, for each reference of a grid, its nearest patches within radius, nearest first.

    The ``most`` nearest are found; those whose squared distance exceeds ``limit`` are dropped, but the
    ``least`` nearest stay.  The reference always comes first.  Where ``whole`` is not empty, patches for
    which it is 0 are in no group but their own.  With ``boost`` a patch that was in an earlier list
    is no reference: its count is 0.
    """
    height, width = guide.shape[2], guide.shape[3]
    sums = np.empty(2 * radius[2] + 1, np.float32)
    keys = np.empty(most, np.float32)
    done = np.zeros(guide.shape[1] * height * width, np.uint8)
    m = 0
    for z in ref_z:
        for y in ref_y:
            for x in ref_x:
                own = (z * height + y) * width + x
                corners = members[m]
                size = 0
                if done[own] == 0:
                    size = nearest(
                        guide, whole, (z, y, x), own, patch, radius, most, sums, keys, corners
                    )
                    sort_heap(keys, corners, size)
                    while size > least and keys[size - 1] > limit:
                        size -= 1
                if boost:
                    for r in range(size):
                        done[corners[r]] = 1
                counts[m] = size
                m += 1
