"""The Gaussian mixture of generalised patches, and EM for it (Algorithm 2 of the paper).

Features are whitened, so the known covariance is I.  Clusters are local: one with spatial spread
h_s only meets pixels within a few h_s, so each tile of pixels looks at the clusters near it, and
time and memory are linear in pixels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .. import _native
from ..core.blocks import Tiling
from ..core.image import Array, Float
from ..core.parallel import Pool
from ..core.patches import Features

if TYPE_CHECKING:
    import scipy.sparse

REACH = 4.0  # a tile first meets clusters within REACH * h_s: their weight beyond is below exp(-8)
MIN_MASS = 0.01  # pixels of a tile that a cluster must hold for the tile to remember it
_TINY_MASS = 1e-3  # a cluster with less mass than this is empty: it keeps its mean


@dataclass(frozen=True)
class GaussianMixture:
    """pi_i and mu_i; the covariance is the identity in feature space."""

    means: Float  # mu, (k, p)
    proportions: Float  # pi, (k,)

    @property
    def n_clusters(self) -> int:
        """K."""
        return len(self.proportions)

    @cached_property
    def native(self) -> _native.Mixture:
        """What kernels take: log2 of pi is finite."""
        floor = np.finfo(np.float32).tiny
        log2_proportions = np.log2(np.maximum(self.proportions, floor)).astype(np.float32)
        return _native.Mixture(self.means, log2_proportions)


class Strip(NamedTuple):
    """A run of tiles, which is one task, and the clusters that they meet."""

    tiles: _native.Tiles
    places: slice  # of their clusters in Neighbourhood.ids


@dataclass(frozen=True)
class Neighbourhood:
    """Which clusters each tile meets: ids[pointers[t]:pointers[t+1]] for tile t."""

    tiles: Tiling
    pointers: np.ndarray  # (tiles + 1,)
    ids: np.ndarray  # int32
    strips: list[Strip]  # the same, task by task


def _neighbourhood(tiles: Tiling, pointers: np.ndarray, ids: np.ndarray) -> Neighbourhood:
    """Cut the lists into strips."""
    strips = []
    for run in tiles.strips:
        own = pointers[run.start : run.stop + 1]
        places = slice(own[0], own[-1])
        moved = None if tiles.offsets is None else tiles.offsets[run]
        native = _native.Tiles(tiles.boxes[run], own - own[0], ids[places], moved)
        strips.append(Strip(native, places))
    return Neighbourhood(tiles, pointers, ids, strips)


@dataclass(frozen=True)
class EStep:
    """What one E-step leaves for the M-step, summed over pixels."""

    shift: Float  # sum_j gamma_ij (p_j - mu_i), (k, p)
    mass: Float  # sum_j gamma_ij, (k,)
    scatter: Float  # sum_j gamma_ij |p_j - mu_i|^2, (k,)
    log_likelihood: float  # mean over the points, without the constant of the Gaussian
    tile_mass: Float  # mass of each candidate in its tile, as Neighbourhood.ids


@dataclass(frozen=True)
class MixtureFit:
    """A learned mixture and how it was learned."""

    mixture: GaussianMixture
    near: Neighbourhood  # the clusters that matter to each tile
    deviation: float  # delta(k)
    log_likelihoods: tuple[float, ...]  # one an iteration
    converged: bool


def neighbourhood(
    features: Features, mixture: GaussianMixture, reach: float = REACH
) -> Neighbourhood:
    """Find the clusters within reach * h_s of each tile; where there is none, further away."""
    tiles = features.tiles
    positions = np.zeros((mixture.n_clusters, 3), np.float32)
    positions[:, 3 - features.n_dims :] = mixture.means[:, : features.n_dims] * features.h_s

    pointers, ids = _native.find_candidates(
        features.grid, tiles.tile, positions, reach * features.h_s, tiles.offsets
    )
    return _neighbourhood(tiles, pointers, ids)


def prune(near: Neighbourhood, tile_mass: Float, min_mass: float = MIN_MASS) -> Neighbourhood:
    """Keep the clusters that hold more than ``min_mass`` pixels of a tile (all, if none does)."""
    keep = tile_mass > min_mass
    kept = np.concatenate([[0], np.cumsum(keep)])[near.pointers]
    alone = np.diff(kept) == 0
    if alone.any():
        keep |= np.repeat(alone, np.diff(near.pointers))
        kept = np.concatenate([[0], np.cumsum(keep)])[near.pointers]
    return _neighbourhood(near.tiles, kept, near.ids[keep])


def e_step(
    features: Features,
    mixture: GaussianMixture,
    near: Neighbourhood,
    pool: Pool,
    *,
    weight: Float | None = None,
    subsample: int = 1,
    stage: str = "clusters",
) -> EStep:
    """Compute responsibilities (eq. em,gamma) tile by tile and keep their sums.

    ``subsample`` > 1 looks at every subsample-th pixel only (a quincunx for 2).
    """
    shift, tail, likelihood, tile_mass = cluster_sums(
        features, None, mixture, near, pool, weight, subsample, stage
    )
    points = max(features.n_pixels / subsample, 1.0)
    mean_likelihood = likelihood / points * math.log(2.0)
    return EStep(shift, tail[:, 0], tail[:, 1], mean_likelihood, tile_mass)


def cluster_sums(
    features: Features,
    target: Features | None,
    mixture: GaussianMixture,
    near: Neighbourhood,
    pool: Pool,
    weight: Float | None,
    subsample: int,
    stage: str,
) -> tuple[Float, Float, float, Float]:
    """Sum the points of ``target`` (None: the same) over the clusters; see native/mixture.cpp."""
    points, clusters = features.points, mixture.native
    values = None if target is None else target.padded
    point_weight = None if weight is None else np.ascontiguousarray(weight.reshape(-1), np.float32)
    tile_mass = np.zeros(len(near.ids), np.float32)

    def run(strip: Strip) -> tuple[float, Array, Float, Float, Float]:
        return _native.sum_points(points, strip.tiles, clusters, values, point_weight, subsample)

    total_shift = np.zeros((mixture.n_clusters, features.dim), np.float32)
    total_tail = np.zeros((mixture.n_clusters, 2), np.float32)
    likelihood = 0.0
    for strip, (value, met, shift, tail, mass) in pool.map(run, near.strips, stage):
        tile_mass[strip.places] = mass
        _native.add_rows(total_shift, met, shift)
        _native.add_rows(total_tail, met, tail)
        likelihood += value
    return total_shift, total_tail, likelihood, tile_mass


def m_step(mixture: GaussianMixture, step: EStep) -> GaussianMixture:
    """Return the mixture that eq. (em,pi) and eq. (em,mu) give; empty clusters keep their mean."""
    alive = step.mass > _TINY_MASS
    means = step.shift / np.where(alive, step.mass, np.float32(np.inf))[:, None]
    means += mixture.means
    mass = np.maximum(step.mass, np.float32(_TINY_MASS))
    return GaussianMixture(means, mass / mass.sum())


def deviation(step: EStep) -> float:
    """Return delta(k), eq. (deltai) and (deltak), of the clusters that are not empty.

    The trace of the whitened covariance is divided by p, the dimension of the generalised patch;
    the paper prints d, which does not reproduce its own numbers of clusters.
    """
    alive = step.mass > _TINY_MASS
    mass, shift = step.mass[alive], step.shift[alive]
    drift = np.einsum("ij,ij->i", shift, shift) / mass**2
    return float(np.mean(step.scatter[alive] / mass - drift) / step.shift.shape[1])


def initial_mixture(
    features: Features, n_clusters: int, rng: np.random.Generator
) -> GaussianMixture:
    """Pick k generalised patches as means, spread evenly and jittered; pi = 1/k."""
    if n_clusters >= features.n_pixels:
        pixels = np.arange(features.n_pixels)
    else:
        pixels = np.ravel_multi_index(
            tuple(stratified_positions(features.grid, n_clusters, rng).T), features.grid
        )
    k = len(pixels)
    return GaussianMixture(features.at(pixels), np.full(k, 1.0 / k, np.float32))


def stratified_positions(grid: Sequence[int], count: int, rng: np.random.Generator) -> np.ndarray:
    """Return ``count`` positions (count, dims) in raster order, one in each of as many equal cells."""
    size, rest = grid[0], grid[1:]
    if not rest:
        edges = np.arange(count + 1) * size / count
        at = edges[:-1] + rng.random(count) * np.diff(edges)
        return np.minimum(at.astype(np.int64), size - 1)[:, None]
    side = (np.prod(grid, dtype=float) / count) ** (1.0 / sum(g > 1 for g in grid) or 1)
    slabs = int(np.clip(round(size / side), 1, min(size, count)))
    shares = np.diff(np.arange(slabs + 1) * count // slabs)
    if len(rest) == 1:
        return _stratified_lines(size, rest[0], shares, rng)
    parts = []
    for slab, share in enumerate(shares):
        low, high = slab * size / slabs, (slab + 1) * size / slabs
        inner = stratified_positions(rest, int(share), rng)
        outer = np.minimum((low + rng.random(len(inner)) * (high - low)).astype(np.int64), size - 1)
        parts.append(np.concatenate([outer[:, None], inner], axis=1))
    return np.concatenate(parts)


def _stratified_lines(
    height: int, width: int, shares: Array, rng: np.random.Generator
) -> np.ndarray:
    """Return positions (count, 2) in slabs of lines, of which each has its share; slab by slab."""
    slabs, count = len(shares), int(shares.sum())
    slab, share = np.repeat(np.arange(slabs), shares), np.repeat(shares, shares)
    place = np.arange(count) - np.repeat(np.cumsum(shares) - shares, shares)  # in its slab
    drawn = rng.random(2 * count)  # of each slab first those along x, then those along y
    first = 2 * np.arange(count) - place
    x = _within(drawn[first], place, width, share)
    y = _within(drawn[first + share], slab, height, slabs)
    return np.stack([y, x], axis=1)


def _within(drawn: Array, number: Array, size: int, count: Array | int) -> Array:
    """Return positions in cells by their numbers, of which ``count`` make the size; drawn are 0 to 1."""
    low, high = number * size / count, (number + 1) * size / count
    return np.minimum((low + drawn * (high - low)).astype(np.int64), size - 1)


def fit_mixture(
    features: Features,
    start: GaussianMixture,
    pool: Pool,
    *,
    max_iter: int = 20,
    tol: float = 1e-3,
    weight: Float | None = None,
    subsample: int = 1,
    reach: float = REACH,
    min_mass: float = MIN_MASS,
) -> MixtureFit:
    """Run EM (Algorithm 2) until the mean log-likelihood gains less than tol.

    After each step a tile forgets the clusters that hold less than ``min_mass`` of its pixels.
    delta(k) belongs to the responsibilities of the last E-step.  An iteration is one map of the pool.
    """
    mixture, history, delta, converged = start, [], np.inf, False
    near = neighbourhood(features, mixture, reach)
    for iteration in range(max_iter):
        stage = f"clusters, step {iteration + 1} of {max_iter}"
        step = e_step(
            features, mixture, near, pool, weight=weight, subsample=subsample, stage=stage
        )
        delta = deviation(step)
        mixture = m_step(mixture, step)
        near = prune(near, step.tile_mass, min_mass / subsample)
        history.append(step.log_likelihood)
        if len(history) > 1 and history[-1] - history[-2] < tol:
            converged = True
            break
    return MixtureFit(mixture, near, delta, tuple(history), converged)


def responsibilities(
    features: Features, mixture: GaussianMixture, near: Neighbourhood, keep: float = 0.0
) -> scipy.sparse.csr_array:
    """Return gamma (k, n) as a sparse matrix, dropping entries not above ``keep``.

    For study and for tests: the methods never form it.
    """
    numbers = np.arange(features.n_pixels).reshape(features.grid)
    rows, columns, values = [], [], []
    for t, box in enumerate(near.tiles.boxes):
        ids = near.ids[near.pointers[t] : near.pointers[t + 1]]
        z0, z1, y0, y1, x0, x1 = box
        pixels = numbers[z0:z1, y0:y1, x0:x1].ravel()
        moved = None if near.tiles.offsets is None else near.tiles.offsets[t : t + 1]
        tile = _native.Tiles(box[np.newaxis], np.array([0, len(ids)]), ids, moved)
        shares = _native.responsibilities(features.points, tile, mixture.native)
        at, which = np.nonzero(shares > keep)
        rows.append(ids[which])
        columns.append(pixels[at])
        values.append(shares[at, which])
    from scipy.sparse import coo_array

    entries = (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns)))
    shape = (mixture.n_clusters, features.n_pixels)
    return coo_array(entries, shape=shape).tocsr()
