"""Which patches belong to a cluster: each patch goes to its strongest clusters, then they are listed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .. import _native
from ..core.image import Array, Float
from ..core.parallel import Pool
from ..core.patches import Features, strides_of
from .em import GaussianMixture, Neighbourhood

_MIN_SHARE = 0.01  # a patch is no member of a cluster that has less of it


_BANDS = 8  # pieces in which lists of members are made
_ASSIGNING = 0.8  # of the time, for the progress callback; the lists take the rest


@dataclass(frozen=True)
class Members:
    """The patches of each cluster: corners[pointers[i]:pointers[i+1]] with weights shares[...]."""

    pointers: Array  # (k + 1,)
    corners: Array  # int32, flat corners of patches in one channel
    shares: Float
    grid: tuple[int, int, int]  # positions of patches
    patch: tuple[int, int, int]

    @property
    def chunks(self) -> list[tuple[int, int]]:
        """Runs of clusters: the pieces of work (they depend on the picture alone)."""
        k = len(self.pointers) - 1
        size = max(256, -(-k // 64))
        return [(first, min(first + size, k)) for first in range(0, k, size)]


def assign_patches(
    features: Features,
    mixture: GaussianMixture,
    near: Neighbourhood,
    pool: Pool,
    *,
    max_clusters: int,
    temperature: float,
    weight: Float | None = None,
) -> Members:
    """Give each patch to its ``max_clusters`` strongest clusters, with weights exp(temperature log gamma).

    temperature < 1 makes clusters overlap: more samples for a covariance, several estimates for a pixel.
    """
    n = features.n_pixels
    clusters = np.zeros((n, max_clusters), np.int32)
    weights = np.zeros((n, max_clusters), np.float32)
    log2_proportions = mixture.log2_proportions

    def run(strip: slice) -> None:
        _native.strongest_clusters(
            *features.points, *near.of(strip), mixture.means, log2_proportions, temperature,
            _MIN_SHARE, clusters, weights,
        )  # fmt: skip

    with pool.part(_ASSIGNING):
        for _ in pool.map(run, near.tiles.strips, "members"):
            pass
    pool.expect(2)
    if weight is not None:
        weights *= np.maximum(weight.reshape(-1, 1), np.float32(2 * _MIN_SHARE))
    min_share = 0.0 if weight is not None else _MIN_SHARE
    return _invert_assignment(features, clusters, weights, min_share, mixture.n_clusters, pool)


def _invert_assignment(
    features: Features, clusters: Array, weights: Float, min_share: float, k: int, pool: Pool
) -> Members:
    """Turn clusters of each patch (n, m) into patches of each cluster, in bands of patches."""
    n = len(clusters)
    bands = [slice(at, at + -(-n // _BANDS)) for at in range(0, n, -(-n // _BANDS))]
    counts = np.zeros((len(bands), k), np.int64)

    def count(band: int) -> None:
        at = bands[band]
        _native.count_members(clusters[at], weights[at], min_share, counts[band])

    for _ in pool.map(count, range(len(bands)), "members"):
        pass
    pointers = np.concatenate([[0], np.cumsum(counts.sum(axis=0))])
    places = pointers[:-1] + np.cumsum(counts, axis=0) - counts
    corners, shares = np.empty(pointers[-1], np.int32), np.empty(pointers[-1], np.float32)
    steps = strides_of((*features.padded.shape[:3], 1))

    def fill(band: int) -> None:
        at = bands[band]
        _native.list_members(
            clusters[at], weights[at], min_share, features.grid, steps, at.start, places[band],
            corners, shares,
        )  # fmt: skip

    for _ in pool.map(fill, range(len(bands)), "members"):
        pass
    return Members(pointers, corners, shares, features.grid, features.patch)
