"""What a soft cluster does with its patches: mean, spectral shrinkage, Wiener.

A cluster's members are patches j with weights g_j.  GSF lets it answer with its mean; the others also
use how the members vary.  All are mean + (patch - mean) F for some F, aggregated with weights; F = 0 is
the mean.  Kernels are in ``native/cluster_filters.cpp``, literal twins in ``tests/oracles.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from . import _native
from .image import Array, Float
from .mixture import GaussianMixture, MixtureFit, Neighbourhood, cluster_sums
from .patches import Features, as_volume, fold_padding, patch_offsets, strides_of, whiten
from .tiles import Pool

_LEAST_SHARE = 0.01  # a patch is no member of a cluster that has less of it
_BANDS = 8  # pieces in which lists of members are made
_SPARE = 8  # pixels beyond the last that kernels may touch
_MAX_SIDE, _MAX_PIXELS = 8, 64  # of a patch, in kernels
_SPECTRUM_BIAS = 0.95  # eigenvalues are taken in units of this * sigma^2; 1: -.02 to -.04 dB


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


@dataclass(frozen=True)
class Estimate:
    """An estimated channel and the variance that the clusters give it, both (*spatial)."""

    image: Float
    variance: Float


def find_members(
    features: Features,
    mixture: GaussianMixture,
    near: Neighbourhood,
    pool: Pool,
    *,
    most: int,
    temper: float,
    weight: Float | None = None,
) -> Members:
    """Give each patch to its ``most`` strongest clusters, with weights exp(temper log gamma).

    temper < 1 makes clusters overlap: more samples for a covariance, several estimates for a pixel.
    """
    n = features.n_pixels
    clusters = np.zeros((n, most), np.int32)
    weights = np.zeros((n, most), np.float32)
    log2_proportions = mixture.log2_proportions

    def run(strip: slice) -> None:
        _native.strongest_clusters(
            *features.points, *near.of(strip), mixture.means, log2_proportions, temper,
            _LEAST_SHARE, clusters, weights,
        )  # fmt: skip

    for _ in pool.map(run, near.tiles.strips, "members"):
        pass
    if weight is not None:
        weights *= np.maximum(weight.reshape(-1, 1), np.float32(2 * _LEAST_SHARE))
    least = 0.0 if weight is not None else _LEAST_SHARE
    return _turn_around(features, clusters, weights, least, mixture.n_clusters, pool)


def _turn_around(
    features: Features, clusters: Array, weights: Float, least: float, k: int, pool: Pool
) -> Members:
    """Turn clusters of each patch (n, m) into patches of each cluster, in bands of patches."""
    n = len(clusters)
    bands = [slice(at, at + -(-n // _BANDS)) for at in range(0, n, -(-n // _BANDS))]
    counts = np.zeros((len(bands), k), np.int64)

    def count(band: int) -> None:
        at = bands[band]
        _native.count_members(clusters[at], weights[at], least, counts[band])

    for _ in pool.map(count, range(len(bands)), "members"):
        pass
    pointers = np.concatenate([[0], np.cumsum(counts.sum(axis=0))])
    places = pointers[:-1] + np.cumsum(counts, axis=0) - counts
    corners, shares = np.empty(pointers[-1], np.int32), np.empty(pointers[-1], np.float32)
    steps = strides_of((*features.padded.shape[:3], 1))

    def fill(band: int) -> None:
        at = bands[band]
        _native.list_members(
            clusters[at], weights[at], least, features.grid, steps, at.start, places[band],
            corners, shares,
        )  # fmt: skip

    for _ in pool.map(fill, range(len(bands)), "members"):
        pass
    return Members(pointers, corners, shares, features.grid, features.patch)


@dataclass(frozen=True)
class ClusterAverages:
    """What each cluster's members say of the noisy image."""

    answers: Float  # [x, mu^(r)]_i = sum_j gamma_ij [x_j, y_j] / sum_j gamma_ij, whitened: (k, p)
    divergence: float  # div(u) for one channel, eq. (div vu) with gamma held fixed


def cluster_averages(
    features: Features,
    mixture: GaussianMixture,
    near: Neighbourhood,
    noisy: Float,
    pool: Pool,
    *,
    weight: Float | None = None,
) -> ClusterAverages:
    """Average the patches of ``noisy`` (*spatial, channels) over each cluster.

    div(u) = sum_i (sum_j gamma_ij^2) / (sum_j gamma_ij): the trace of the paper's eq. (div vu).
    """
    target = whiten(noisy, features.patch_size, features.h_s, features.h_r)
    answers, tail, _, _ = cluster_sums(features, target, mixture, near, pool, weight, 1, "averages")
    mass = np.maximum(tail[:, 0], np.float32(1e-20))
    answers /= mass[:, None]
    answers += mixture.means
    return ClusterAverages(answers, float(np.sum(tail[:, 1] / mass, dtype=np.float64)))


def average_answers(
    features: Features,
    mixture: GaussianMixture,
    near: Neighbourhood,
    answers: Float,
    pool: Pool,
) -> Float:
    """Return u = (1/d) sum_j P_j^T w_j, w_j = sum_i gamma_ij answers_i (eqs. vwj and vu).

    answers (k, p) are whitened, as the mixture's means are; u is not.
    """
    log2_proportions = mixture.log2_proportions
    total = np.zeros(features.padded.size, np.float32)

    def run(strip: slice) -> tuple[int, Float]:
        boxes, pointers, ids = near.of(strip)
        start = int(np.dot(boxes[0, ::2], features.strides))
        stop = int(np.dot(boxes[-1, 1::2] - 1, features.strides)) + int(features.offsets[-1]) + 1
        part = np.zeros(stop - start, np.float32)
        _native.mix_answers(
            *features.points, boxes, pointers, ids, mixture.means, log2_proportions, answers,
            start, part,
        )  # fmt: skip
        return start, part

    for _, (start, part) in pool.map(run, near.tiles.strips, "aggregation"):
        total[start : start + len(part)] += part
    padded = total.reshape(features.padded.shape)
    if features.n_dims == 2:
        padded = padded[0]
    folded = fold_padding(padded, features.spatial, features.patch_size)
    folded *= np.float32(features.h_r / features.patch_size**features.n_dims)
    return folded


def mean(
    features: Features, fit: MixtureFit, noisy: Float, pool: Pool, *, weight: Float | None = None
) -> tuple[Float, float]:
    """Answer with the cluster's mean: GSF.  Return u (*spatial, channels) and div(u)."""
    own = cluster_averages(features, fit.mixture, fit.near, noisy, pool, weight=weight)
    return average_answers(features, fit.mixture, fit.near, own.answers, pool), own.divergence


def spectral(noisy: Float, members: Members, sigma: float, pool: Pool) -> Estimate:
    """Shrink the spectrum of each cluster's covariance; needs no pilot.

    Notes
    -----
    C = sum g (y - mu)(y - mu)' / sum g = U diag(l) U'; the estimate is mu + U diag(f) U' (y - mu) with
    f the Frobenius-optimal shrinkage at ratio d / n_eff, n_eff = (sum g)^2 / sum g^2 (M. Gavish,
    D. L. Donoho, "Optimal shrinkage of singular values", IEEE Trans. Inf. Theory 63 (2017),
    doi:10.1109/TIT.2017.2653801).
    """

    def chunk(first: int, last: int, start: int, total: Float, mass: Float, spread: Float) -> None:
        _native.spectral_filter(
            plane, lines, members.patch[-1], members.pointers, members.corners, members.shares,
            first, last, sigma**2, _SPECTRUM_BIAS, start, total, mass, spread,
        )  # fmt: skip

    plane, lines = _flat(noisy, members)
    return _aggregate(noisy, members, lines, chunk, pool, noisy)


def wiener(
    noisy: Float,
    pilot: Float,
    members: Members,
    sigma: float,
    pool: Pool,
    *,
    strength: float,
    trust: float = 0.75,
) -> Estimate:
    """Filter each cluster's patches with the pilot's moments, within patches and across them.

    Notes
    -----
    mu = mu_u + trust (mu_y - mu_u), C = strength * sum g (u - mu_u)(u - mu_u)' / sum g,
    F = (C + sigma^2 I)^-1 C, E = (Y - mu) F, then E <- P (P'WP + (d sigma^2 / strength) I)^-1 P'W E
    with P the rows u_j - mu_u and W = diag(n g_j / sum g).  Aggregation weight
    g / (trace F / d + sum g^2 / (sum g)^2 + 0.02).
    """

    def chunk(first: int, last: int, start: int, total: Float, mass: Float, spread: Float) -> None:
        _native.wiener_filter(
            plane, guide, lines, members.patch[-1], members.pointers, members.corners,
            members.shares, first, last, sigma**2, strength, trust, start, total, mass, spread,
        )  # fmt: skip

    plane, lines = _flat(noisy, members)
    guide, _ = _flat(pilot, members)
    return _aggregate(noisy, members, lines, chunk, pool, pilot)


def _flat(plane: Float, members: Members) -> tuple[Float, Array]:
    """Return one channel (*spatial) flat, with a few places to spare, and where a patch's lines begin.

    What the kernels cannot hold, or would read from beyond the channel, is refused here.
    """
    if max(members.patch) > _MAX_SIDE or np.prod(members.patch) > _MAX_PIXELS:
        raise ValueError(
            f"patches may be {_MAX_SIDE} pixels wide and have {_MAX_PIXELS} pixels at most, "
            f"got {members.patch}; use a smaller patch_size"
        )
    volume = as_volume(plane[..., np.newaxis])
    positions = tuple(s - p + 1 for s, p in zip(volume.shape[:3], members.patch, strict=True))
    if positions != members.grid:
        raise ValueError(
            f"members were found for {members.grid} positions, a channel of shape {plane.shape} "
            f"has {positions}"
        )
    flat = np.zeros(volume.size + _SPARE, np.float32)
    flat[: volume.size] = volume.reshape(-1)
    return flat, patch_offsets(volume.shape, members.patch)[:: members.patch[-1]].copy()


def _aggregate(
    noisy: Float,
    members: Members,
    lines: Array,
    chunk: Callable[..., None],
    pool: Pool,
    otherwise: Float,
) -> Estimate:
    """Run a kernel on all clusters and divide by the weights; ``otherwise`` where there are none."""
    total, mass, spread = (np.zeros(noisy.size, np.float32) for _ in range(3))

    def run(clusters: tuple[int, int]) -> tuple[int, Array]:
        first, last = clusters
        own = members.corners[members.pointers[first] : members.pointers[last]]
        if own.size == 0:
            return 0, np.zeros((3, 0), np.float32)
        start = int(own.min())
        length = int(own.max()) + int(lines[-1]) + members.patch[-1] - start
        parts = np.zeros((3, length + _SPARE), np.float32)
        chunk(first, last, start, *parts)
        return start, parts[:, :length]

    for _, (start, parts) in pool.map(run, members.chunks, "estimates"):
        reach = slice(start, start + parts.shape[1])
        total[reach] += parts[0]
        mass[reach] += parts[1]
        spread[reach] += parts[2]
    weight = _box_sum(mass, noisy.shape, members.patch)
    known = weight > 1e-4
    safe = np.where(known, weight, np.float32(1.0))
    image = np.where(known, total.reshape(noisy.shape) / safe, otherwise)
    return Estimate(image, _box_sum(spread, noisy.shape, members.patch) / safe)


def _box_sum(values: Float, shape: tuple[int, ...], patch: tuple[int, int, int]) -> Float:
    """Spread what stands at patch corners over the patches: (*spatial)."""
    sums = values.reshape(shape)
    for axis, side in enumerate(patch[3 - len(shape) :]):
        spread_out = sums.copy()
        for step in range(1, side):
            behind, ahead = [slice(None)] * len(shape), [slice(None)] * len(shape)
            behind[axis], ahead[axis] = slice(step, None), slice(None, -step)
            spread_out[tuple(behind)] += sums[tuple(ahead)]
        sums = spread_out
    return sums
