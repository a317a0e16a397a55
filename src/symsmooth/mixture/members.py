"""Which patches belong to a cluster: each patch goes to its strongest clusters, then they are listed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from .. import _native
from ..core.image import Array, Float
from ..core.parallel import Pool
from ..core.patches import Features
from .em import GaussianMixture, Neighbourhood, Strip

# Of its strongest cluster: with less a patch is no member.  0.01: +.002 dB at most for 7 % more time in
# grey, 3 % in colour; 0.05: -.002; 0.1: -.003 (microscopes -.011) for 5 % less.
MIN_SHARE = 0.03
# Lists of members are made in so many bands of patches, of so many at least: listing those takes 0.1 ms.
_MAX_BANDS, _MIN_BAND = 8, 2**14
# Of the time, for the progress callback: the search for clusters, then of the rest the count.
_ASSIGNING, _COUNTING = 0.8, 0.5


@dataclass(frozen=True)
class Members:
    """The patches of each cluster: corners[pointers[i]:pointers[i+1]] with weights shares[...]."""

    pointers: Array  # (k + 1,)
    corners: Array  # int32, flat corners of patches in one channel
    shares: Float
    grid: tuple[int, int, int]  # positions of patches
    patch: tuple[int, int, int]

    @cached_property
    def native(self) -> _native.Members:
        """What kernels take."""
        return _native.Members(self.pointers, self.corners, self.shares, self.grid, self.patch)

    def paired(self) -> Members:
        """Return flat patches of a series (y, t, x) as those of two frames, if one more follows each."""
        (rows, n_frames, columns), (high, _, wide) = self.grid, self.patch
        next_row = columns + wide - 1
        return replace(
            self,
            corners=self.corners + self.corners // next_row * next_row,
            grid=(rows, 2 * n_frames - 1, columns),
            patch=(high, 2, wide),
        )

    def without_rim(self) -> Members:
        """Return the same members with patches that lack their outermost pixels, where they are wide."""
        (slices, rows, columns), (depth, high, wide) = self.grid, self.patch
        rims = [int(side > 2) for side in self.patch]
        next_row = columns + wide - 1  # pixels from one row of a channel to the next
        next_slice = (rows + high - 1) * next_row
        return replace(
            self,
            corners=self.corners + np.int32(rims[0] * next_slice + rims[1] * next_row + rims[2]),
            grid=(slices + 2 * rims[0], rows + 2 * rims[1], columns + 2 * rims[2]),
            patch=(depth - 2 * rims[0], high - 2 * rims[1], wide - 2 * rims[2]),
        )


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
    points, native = features.points, mixture.native

    def run(strip: Strip) -> None:
        _native.strongest_clusters(
            points, strip.tiles, native, temperature, MIN_SHARE, clusters, weights
        )

    for _ in pool.map(run, near.strips, "members", _ASSIGNING):
        pass
    if weight is not None:
        weights *= np.maximum(weight.reshape(-1, 1), np.float32(2 * MIN_SHARE))
    min_share = 0.0 if weight is not None else MIN_SHARE
    return _invert_assignment(features, clusters, weights, min_share, len(mixture.means), pool)


def _invert_assignment(
    features: Features, clusters: Array, weights: Float, min_share: float, k: int, pool: Pool
) -> Members:
    """Turn clusters of each patch (n, m) into patches of each cluster, in bands of patches."""
    n = len(clusters)
    length = max(-(-n // _MAX_BANDS), _MIN_BAND)
    bands = [slice(at, at + length) for at in range(0, n, length)]

    def count(at: slice) -> Array:
        return _native.count_members(clusters[at], weights[at], min_share, k)

    counts = np.stack([own for _, own in pool.map(count, bands, "members", _COUNTING)])
    pointers = np.concatenate([[0], np.cumsum(counts.sum(axis=0))])
    places = pointers[:-1] + np.cumsum(counts, axis=0) - counts
    corners, shares = np.empty(pointers[-1], np.int32), np.empty(pointers[-1], np.float32)
    channel = features.padded.shape[:3]

    def fill(band: int) -> None:
        at = bands[band]
        _native.list_members(
            clusters[at], weights[at], min_share, features.grid, channel, at.start, places[band],
            corners, shares,
        )  # fmt: skip

    for _ in pool.map(fill, range(len(bands)), "members", 1.0):
        pass
    return Members(pointers, corners, shares, features.grid, features.patch)
