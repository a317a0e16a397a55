"""Smoothing filters with a search window, applied without storing W.

Images are planar here, ``(channels, z, y, x)``, so that the innermost loop runs along a row.
"""

from __future__ import annotations

import numpy as np

from .base import exp2, inlined, jit

ZERO = np.float32(0.0)  # a plain 0.0 would turn the sums around it to float64


@inlined
def add_squared_difference(padded, c, z, y, x, dz, dy, dx, columns):
    """columns[i] += (row[x + i] - shifted row[x + i])^2."""
    n = columns.size
    here = padded[c, z, y, x : x + n]
    there = padded[c, z + dz, y + dy, x + dx : x + dx + n]
    for i in range(n):
        difference = here[i] - there[i]
        columns[i] += difference * difference


@inlined
def move_squared_difference(padded, c, z, y_in, y_out, x, dz, dy, dx, columns):
    """Add the squared differences of the row that enters, take off those of the one that leaves."""
    n = columns.size
    in_here = padded[c, z, y_in, x : x + n]
    in_there = padded[c, z + dz, y_in + dy, x + dx : x + dx + n]
    out_here = padded[c, z, y_out, x : x + n]
    out_there = padded[c, z + dz, y_out + dy, x + dx : x + dx + n]
    for i in range(n):
        enters = in_here[i] - in_there[i]
        leaves = out_here[i] - out_there[i]
        columns[i] += enters * enters - leaves * leaves


@jit
def symmetric_window_strip(
    padded, patch, shape, offsets, spatial, coefficient, span, values, origin, out, emit
):  # fmt: skip
    """Add W V to out for the pairs (i, i + offset) whose first pixel lies in the strip.

    W_ij = 2^-(spatial[o] + coefficient * |patch_i - patch_j|^2): symmetric, so each pair is
    weighed once and serves both its pixels.  The sum of squares over a patch runs down the rows
    (add the row that enters, take off the one that leaves), so its cost does not grow with height.

    padded (channels, Z, Y, X) carries half a patch on each side; offsets (m, 3) one half of the
    window; span = (z0, z1, y0, y1) the strip; values (columns, z, y, x); out begins at
    ``origin`` = (z, y) and holds the strip and what lies in reach below it.  If ``emit`` is not
    empty, its (m, z, y, x) receive the weights themselves and out is left alone.
    """
    depth, height, width = shape
    box_z, box_y, box_x = patch
    columns_buffer = np.empty(width + box_x - 1, np.float32)
    weights_buffer = np.empty(width, np.float32)
    for o in range(offsets.shape[0]):
        dz, dy, dx = offsets[o, 0], offsets[o, 1], offsets[o, 2]
        x0, x1 = max(0, -dx), width - max(0, dx)
        y0, y1 = max(span[2], -dy), min(span[3], height - dy)
        z0, z1 = max(span[0], -dz), min(span[1], depth - dz)
        n = x1 - x0
        if n <= 0 or y1 <= y0:
            continue
        columns = columns_buffer[: n + box_x - 1]
        weights = weights_buffer[:n]
        for z in range(z0, z1):
            for i in range(columns.size):
                columns[i] = 0.0
            if coefficient > 0:
                for u in range(box_z):
                    for v in range(box_y):
                        for c in range(padded.shape[0]):
                            add_squared_difference(
                                padded, c, z + u, y0 + v, x0, dz, dy, dx, columns
                            )
            for y in range(y0, y1):
                if box_x == 5:
                    second, third = columns[1:], columns[2:]
                    fourth, fifth = columns[3:], columns[4:]
                    for i in range(n):
                        total = columns[i] + second[i] + third[i] + fourth[i] + fifth[i]
                        weights[i] = exp2(-(spatial[o] + coefficient * max(total, ZERO)))
                else:
                    for i in range(n):
                        weights[i] = columns[i]
                    for v in range(1, box_x):
                        shifted = columns[v:]
                        for i in range(n):
                            weights[i] += shifted[i]
                    for i in range(n):
                        weights[i] = exp2(-(spatial[o] + coefficient * max(weights[i], ZERO)))
                if coefficient > 0 and y + 1 < y1:
                    for u in range(box_z):
                        for c in range(padded.shape[0]):
                            move_squared_difference(
                                padded, c, z + u, y + box_y, y, x0, dz, dy, dx, columns
                            )
                if emit.size > 0:
                    kept = emit[o, z, y, x0:x1]
                    for i in range(n):
                        kept[i] = weights[i]
                    continue
                for m in range(values.shape[0]):
                    here = values[m, z, y, x0:x1]
                    there = values[m, z + dz, y + dy, x0 + dx : x1 + dx]
                    gain_here = out[m, z - origin[0], y - origin[1], x0:x1]
                    gain_there = out[m, z + dz - origin[0], y + dy - origin[1], x0 + dx : x1 + dx]
                    for i in range(n):
                        gain_here[i] += weights[i] * there[i]
                    for i in range(n):
                        gain_there[i] += weights[i] * here[i]


@jit
def steered_window_strip(steering, offsets, span, values, transpose, origin, out, emit):
    """Add W V (or W^T V) to out, W_ij = 2^-(x_j - x_i)^T Q_i (x_j - x_i), for rows i in the strip.

    steering (6, z, y, x) holds Q_i as zz, yy, xx, 2zy, 2zx, 2yx; offsets (m, 3) is the whole window;
    out begins at ``origin``.
    """
    depth, height, width = steering.shape[1], steering.shape[2], steering.shape[3]
    weights_buffer = np.empty(width, np.float32)
    for o in range(offsets.shape[0]):
        dz, dy, dx = offsets[o, 0], offsets[o, 1], offsets[o, 2]
        x0, x1 = max(0, -dx), width - max(0, dx)
        y0, y1 = max(span[2], -dy), min(span[3], height - dy)
        z0, z1 = max(span[0], -dz), min(span[1], depth - dz)
        n = x1 - x0
        if n <= 0:
            continue
        weights = weights_buffer[:n]
        factors = np.array([dz * dz, dy * dy, dx * dx, dz * dy, dz * dx, dy * dx], np.float32)
        for z in range(z0, z1):
            for y in range(y0, y1):
                for i in range(n):
                    weights[i] = 0.0
                for q in range(6):
                    if factors[q] != 0:
                        row = steering[q, z, y, x0:x1]
                        for i in range(n):
                            weights[i] += factors[q] * row[i]
                for i in range(n):
                    weights[i] = exp2(-max(weights[i], ZERO))
                if emit.size > 0:
                    kept = emit[o, z, y, x0:x1]
                    for i in range(n):
                        kept[i] = weights[i]
                    continue
                for m in range(values.shape[0]):
                    if transpose:
                        source = values[m, z, y, x0:x1]
                        gain = out[m, z + dz - origin[0], y + dy - origin[1], x0 + dx : x1 + dx]
                    else:
                        source = values[m, z + dz, y + dy, x0 + dx : x1 + dx]
                        gain = out[m, z - origin[0], y - origin[1], x0:x1]
                    for i in range(n):
                        gain[i] += weights[i] * source[i]
