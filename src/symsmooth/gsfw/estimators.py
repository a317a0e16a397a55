"""What a soft cluster does with its patches: mean, spectral shrinkage, Wiener.

A cluster's members are patches j with weights g_j.  GSF lets it answer with its mean; the others also
use how the members vary.  All are mean + (patch - mean) F for some F, aggregated with weights; F = 0 is
the mean.  Kernels are in ``native/cluster_filters.cpp``, literal twins in ``tests/oracles.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .. import _native
from ..core.image import Array, Float
from ..core.parallel import Pool
from ..mixture.members import Members
from .presets import SPECTRUM_BIAS

_BAND = 1 << 17  # pixels that are spread at a time
_SPARE = 8  # pixels beyond the last that kernels may touch
_MAX_SIDE, _MAX_PIXELS = 8, 64  # of a patch, in kernels
# How far a cluster's mean is moved from the pilot's to the noisy patches' own; 0.8: +.001 dB (fast),
# -.001 to -.008 dB (balanced, best).
_TRUST = 0.75
# A pixel whose patches have less weight together is as in the pilot: it is in no cluster.
_MIN_WEIGHT = 1e-4
# Clusters are estimated in so many tasks, of so many clusters at least: each adds up a part of the picture,
# and those of neighbours overlap by some 28 rows.  64 tasks: 7 % more time for 480 rows of a series.
_MAX_RUNS, _MIN_RUN = 24, 256


Run = tuple[int, int]  # of clusters: the first, and the one after the last
# Adds to total and mass, and to spread if there is room, of the pixels that a run touches (and some more).
Kernel = Callable[[Run, Float], None]
# Sums of estimates times their weights, of the weights, and of variances times them if they are asked for.
Sums = tuple[Float, Float, Float | None]


@dataclass(frozen=True)
class Estimate:
    """An estimated channel and, if it was asked for, the variance that the clusters give it: (*spatial)."""

    image: Float
    variance: Float | None


def spectral(
    noisy: Float,
    members: Members,
    sigma: float,
    pool: Pool,
    *,
    bias: float = SPECTRUM_BIAS,
    has_variance: bool = False,
) -> Estimate:
    """Shrink the spectrum of each cluster's covariance; needs no pilot.

    Notes
    -----
    C = sum g (y - mu)(y - mu)' / sum g = U diag(l) U'; the estimate is mu + U diag(f) U' (y - mu) with
    f the Frobenius-optimal shrinkage at ratio d / n_eff, n_eff = (sum g)^2 / sum g^2 (M. Gavish,
    D. L. Donoho, "Optimal shrinkage of singular values", IEEE Trans. Inf. Theory 63 (2017),
    doi:10.1109/TIT.2017.2653801).
    """

    def filtered(clusters: Run, parts: Float) -> None:
        _native.spectral_filter(native, *clusters, plane, sigma**2, bias, parts)

    plane, native = _flat(noisy, members), members.native
    sums = _aggregate(noisy.shape, members, filtered, pool, has_variance)
    return _divide(sums, otherwise=noisy)


def spectral_of_pairs(
    noisy: Float,
    beside: Array,
    is_first: Array,
    members: Members,
    sigma: float,
    pool: Pool,
    *,
    bias: float = SPECTRUM_BIAS,
    has_variance: bool = False,
) -> Estimate:
    """Do the same in a series (y, t, x) with patches of two frames, which are filtered together.

    ``members`` are the flat patches of a frame; ``beside`` (y, t, x) are the numbers of the pixels that
    stand beside each, in another frame.  What is found of those counts for them.  ``is_first`` (t,) tells
    which frames come first in their pairs: with time running the same way in all of them, those of a thing
    that moves are alike.
    """

    def filtered(clusters: Run, parts: Float) -> None:
        _native.spectral_filter(native, *clusters, plane, sigma**2, bias, parts)

    height, n_frames, width = noisy.shape
    other = noisy.reshape(-1)[beside]
    pairs = np.empty((height, n_frames, 2, width), np.float32)
    own_place = np.where(is_first, 0, 1)
    for t, place in enumerate(own_place):
        pairs[:, t, place], pairs[:, t, 1 - place] = noisy[:, t], other[:, t]
    both = pairs.reshape(height, 2 * n_frames, width)
    paired = members.paired()
    plane, native = _flat(both, paired), paired.native

    def folded(values: Float) -> Float:
        found = values.reshape(pairs.shape)
        own, others = np.empty_like(noisy), np.empty_like(noisy)
        for t, place in enumerate(own_place):
            own[:, t], others[:, t] = found[:, t, place], found[:, t, 1 - place]
        _native.add_at(own.reshape(-1), beside.reshape(-1), others.reshape(-1))
        return own

    def spread_out(corners: Float) -> Float:  # those of pairs, which are in the first of two frames
        flat = np.ascontiguousarray(corners.reshape(both.shape)[:, ::2])
        sums = _box_sum(flat, flat.shape, members.patch)
        others = sums.copy()
        _native.add_at(sums.reshape(-1), beside.reshape(-1), others.reshape(-1))
        return sums

    total, mass, spread = _sum_up(both.size, paired, filtered, pool, has_variance)
    spread = None if spread is None else spread_out(spread)
    return _divide((folded(total), spread_out(mass), spread), otherwise=noisy)


def wiener(
    noisy: Float,
    pilot: Float,
    members: Members,
    sigma: float,
    pool: Pool,
    *,
    strength: float,
    trust: float = _TRUST,
    has_variance: bool = False,
) -> Estimate:
    """Filter each cluster's patches with the pilot's moments, within patches and across them.

    Notes
    -----
    mu = mu_u + trust (mu_y - mu_u), C = strength * sum g (u - mu_u)(u - mu_u)' / sum g,
    F = (C + sigma^2 I)^-1 C, E = (Y - mu) F, then E <- P (P'WP + (d sigma^2 / strength) I)^-1 P'W E
    with P the rows u_j - mu_u and W = diag(n g_j / sum g).  A patch is aggregated with the weight
    g / (trace F / d + sum g^2 / (sum g)^2 + 0.02), that is by its variance in units of sigma^2, which must
    not be 0; of the trace, a bound that costs nothing is taken (native/cluster_filters.cpp).
    """

    def filtered(clusters: Run, parts: Float) -> None:
        _native.wiener_filter(native, *clusters, plane, guide, sigma**2, strength, trust, parts)

    plane, guide, native = _flat(noisy, members), _flat(pilot, members), members.native
    sums = _aggregate(noisy.shape, members, filtered, pool, has_variance)
    return _divide(sums, otherwise=pilot)


def _flat(plane: Float, members: Members) -> Float:
    """Return one channel (*spatial) flat, with a few places to spare.

    What the kernels cannot hold, or would read from beyond the channel, is refused here.
    """
    if max(members.patch) > _MAX_SIDE or np.prod(members.patch) > _MAX_PIXELS:
        raise ValueError(
            f"patches may be {_MAX_SIDE} pixels wide and have {_MAX_PIXELS} pixels at most, "
            f"got {members.patch}; use a smaller patch_size"
        )
    shape = (1,) * (3 - plane.ndim) + plane.shape
    positions = tuple(s - p + 1 for s, p in zip(shape, members.patch, strict=True))
    if positions != members.grid:
        raise ValueError(
            f"members were found for {members.grid} positions, a channel of shape {plane.shape} "
            f"has {positions}"
        )
    flat = np.zeros(plane.size + _SPARE, np.float32)
    flat[: plane.size] = plane.reshape(-1)
    return flat


def _aggregate(
    shape: tuple[int, ...], members: Members, kernel: Kernel, pool: Pool, has_variance: bool
) -> Sums:
    """Run a kernel on all clusters and add up what it says of each pixel: (*spatial)."""
    total, mass, spread = _sum_up(int(np.prod(shape)), members, kernel, pool, has_variance)
    weight = _box_sum(mass, shape, members.patch)
    spread = None if spread is None else _box_sum(spread, shape, members.patch)
    return total.reshape(shape), weight, spread


def _sum_up(
    n_pixels: int, members: Members, kernel: Kernel, pool: Pool, has_variance: bool
) -> Sums:
    """Run a kernel on all clusters; weights and variances are those of corners of patches.

    Runs are added up in their order.  Where frames move, one touches few lines of many: these alone are
    added, and its memory is used again by later ones.
    """
    native = members.native
    runs = _runs(len(members.pointers) - 1)
    lengths = [native.span(*run)[1] for run in runs]
    unused: list[Float] = []
    n_sums = 3 if has_variance else 2

    def parts_of(memory: Float, number: int) -> Float:
        length = lengths[number]
        return memory[: n_sums * length].reshape(n_sums, length)

    def work(number: int) -> Float:
        try:
            memory = unused.pop()
        except IndexError:
            memory = np.zeros(n_sums * max(lengths), np.float32)
        kernel(runs[number], parts_of(memory, number))
        return memory

    total, mass = np.zeros(n_pixels, np.float32), np.zeros(n_pixels, np.float32)
    spread = np.zeros(n_pixels, np.float32) if has_variance else None
    for number, memory in pool.map(work, range(len(runs)), "estimates"):
        parts = parts_of(memory, number)
        _native.move_parts(native, *runs[number], parts, total, mass, spread)
        unused.append(memory)
    return total, mass, spread


def _divide(sums: Sums, otherwise: Float) -> Estimate:
    """Divide sums by their weights; ``otherwise`` where there are none."""
    total, weight, spread = sums
    unknown = weight <= _MIN_WEIGHT
    is_gap = bool(unknown.any())
    if is_gap:
        weight[unknown] = 1.0
    total /= weight
    if is_gap:
        total[unknown] = otherwise[unknown]
    if spread is not None:
        spread /= weight
    return Estimate(total, spread)


def _runs(n_clusters: int) -> list[Run]:
    """Cut clusters into runs, each a task; they depend on the picture alone."""
    length = max(_MIN_RUN, -(-n_clusters // _MAX_RUNS))
    return [(at, min(at + length, n_clusters)) for at in range(0, n_clusters, length)]


def _box_sum(values: Float, shape: tuple[int, ...], patch: tuple[int, int, int]) -> Float:
    """Spread what stands at patch corners over the patches: (*spatial); in bands that stay in a cache."""
    corners, extent = values.reshape(shape), patch[3 - len(shape) :]
    spread, above = np.empty(shape, np.float32), extent[0] - 1
    n_rows = max(_BAND // int(np.prod(shape[1:])), extent[0])
    for start in range(0, shape[0], n_rows):
        first = max(start - above, 0)
        sums = corners[first : start + n_rows]
        for axis, side in enumerate(extent):
            sums = _sum_behind(sums, side, axis)
        spread[start : start + n_rows] = sums[start - first :]
    return spread


def _sum_behind(values: Float, count: int, axis: int) -> Float:
    """Return the sum of each value and those before it, so many in all, by sums of 2, 4, 8 of them."""
    total, length = None, 0
    sums, size = values, 1  # sums of so many
    while True:
        if count & size:
            total = sums if total is None else _add_behind(total, sums, length, axis)
            length += size
        if total is not None and length == count:
            return total
        sums, size = _add_behind(sums, sums, size, axis), 2 * size


def _add_behind(values: Float, others: Float, steps: int, axis: int) -> Float:
    """Return values plus those of others that lie so many steps before them."""
    before, first, ahead = [
        (*[slice(None)] * axis, part)
        for part in (slice(None, -steps), slice(None, steps), slice(steps, None))
    ]
    added = np.empty_like(values)
    added[first] = values[first]
    np.add(values[ahead], others[before], out=added[ahead])
    return added
