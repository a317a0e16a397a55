"""Loops of mixtures of full-covariance Gaussians: what matrix products leave to do."""

from __future__ import annotations

import numpy as np

from .base import jit


@jit
def add_squares(projections, starts, out):
    """Set out[c, i] to the sum over r in starts[c]:starts[c + 1] of projections[r, i]^2."""
    m = projections.shape[1]
    for c in range(starts.shape[0] - 1):
        for i in range(m):
            out[c, i] = np.float32(0.0)
        for r in range(starts[c], starts[c + 1]):
            for i in range(m):
                out[c, i] += projections[r, i] * projections[r, i]


@jit
def keep_largest(scores, first, best, label):
    """Update best[i], label[i] with the largest of scores[:, i]; row c is component first + c."""
    m = scores.shape[1]
    for c in range(scores.shape[0]):
        for i in range(m):
            better = scores[c, i] > best[i]
            best[i] = scores[c, i] if better else best[i]
            label[i] = np.int32(first + c) if better else label[i]
