"""A mixture of full-covariance Gaussians on patches: what EPLL and PLE share.

The clean patch is x ~ sum_k w_k N(mu_k, S_k), the noisy one y = x + N(0, v I).  Given y, the most
likely component is argmax_k log w_k + log N(y; mu_k, S_k + v I), and given the component the most
likely x is the Wiener estimate mu_k + S_k (S_k + v I)^-1 (y - mu_k).  Both are matrix products on
strips of patches.  Directions in which a component has less variance than half the noise are left out
of the distances; that is faster, and in EPLL, whose patches have less noise than it says, better.

Patches are all that overlap in a plane, strip by strip: P, a function of patches, and P's adjoint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from .. import _native
from ..core.image import Array, Float
from ..core.parallel import Pool

_BLOCK = 1024  # patches that are compared with the components at a time
_ROWS = 512  # projections computed at a time: with 1024 patches they are 2 MB
_SMALL = 0.5  # of the noise variance: directions with less are left out of the distances
_TASK = 8192  # patches in one piece of an EM step
_MIN_SHARE = 1e-4  # responsibilities below this do not reach the M-step
_SEED_SAMPLE = 16384  # patches that the first components are made of
_PATCHES = 16384  # in a strip, about


@dataclass(frozen=True)
class PatchPrior:
    """A mixture of k Gaussians in d dimensions.

    Attributes
    ----------
    weights : ndarray (k,)
        Probability of each component.
    means : ndarray (k, d)
    values : ndarray (k, d)
        Eigenvalues of the covariances, falling.
    vectors : ndarray (k, d, d)
        Eigenvectors in the columns.
    """

    weights: Array
    means: Array
    values: Array
    vectors: Array

    @property
    def covariances(self) -> Array:
        """S_k, (k, d, d)."""
        return (self.vectors * self.values[:, np.newaxis]) @ self.vectors.transpose(0, 2, 1)

    def scaled(self, factor: float) -> PatchPrior:
        """Return the mixture of patches that are so many times as large."""
        return replace(self, means=self.means * factor, values=self.values * factor**2)


def from_moments(weights: Array, means: Array, covariances: Array, noise: float) -> PatchPrior:
    """Return the mixture that, with noise of this variance added, fits the moments best.

    The eigenvalues of S_k are those of the covariance less the noise, or zero: of all S_k >= 0 this
    one has the largest likelihood.
    """
    values, vectors = np.linalg.eigh(covariances)
    falling = np.maximum(values[:, ::-1] - noise, 0.0)
    return PatchPrior(weights, means, falling, np.ascontiguousarray(vectors[:, :, ::-1]))


@dataclass(frozen=True)
class NoisyPrior:
    """A mixture and the variance v of the noise: what is most likely given a noisy patch.

    Directions with variance below ``min_ratio`` * v are left out of the distances; 0 leaves out none.
    """

    prior: PatchPrior
    noise: float
    min_ratio: float = _SMALL

    def scores(self, noisy: Float) -> Float:
        """Return log w_k + log N(y; mu_k, S_k + v I) for noisy patches (m, d): (k, m).

        The part that is the same for all components, :meth:`common`, is not in it.
        """
        out = np.empty((len(self.prior.weights), len(noisy)), np.float32)
        for first, scores in self._score_groups(noisy):
            out[first : first + len(scores)] = scores
        return out

    def common(self, noisy: Float) -> Array:
        """Return the part of the log-density that all components have: -|y|^2/2v - d/2 log 2 pi v."""
        energy = np.einsum("id,id->i", noisy, noisy, dtype=np.float64)
        return -0.5 * (energy / self.noise + noisy.shape[1] * np.log(2 * np.pi * self.noise))

    def most_likely(self, noisy: Float) -> Array:
        """Return the most likely component of each noisy patch (m, d): (m,)."""
        labels = np.zeros(len(noisy), np.int32)
        for at in range(0, len(noisy), _BLOCK):
            block = noisy[at : at + _BLOCK]
            best = np.full(len(block), -np.inf, np.float32)
            for first, scores in self._score_groups(block):
                _native.keep_largest(scores, first, best, labels[at : at + _BLOCK])
        return labels

    def map_estimate(self, noisy: Float, labels: Array) -> Float:
        """Return mu_k + S_k (S_k + v I)^-1 (y - mu_k) for patches (m, d) of components (m,)."""
        order = np.argsort(labels, kind="stable")
        present, starts = np.unique(labels[order], return_index=True)
        denoised = np.empty_like(noisy)
        for k, members in zip(present, np.split(order, starts[1:]), strict=True):
            denoised[members] = noisy[members] @ self._filters[k] + self._offsets[k]
        return denoised

    def posterior_covariance(self, component: int) -> Array:
        """Return S - S (S + v I)^-1 S, what a noisy patch leaves unknown: (d, d)."""
        values, vectors = self.prior.values[component], self.prior.vectors[component]
        return (vectors * (values * self.noise / (values + self.noise))) @ vectors.T

    @cached_property
    def _filters(self) -> Float:
        """S_k (S_k + v I)^-1, (k, d, d), symmetric."""
        prior = self.prior
        gains = prior.values / (prior.values + self.noise)
        filters = (prior.vectors * gains[:, np.newaxis]) @ prior.vectors.transpose(0, 2, 1)
        return filters.astype(np.float32)

    @cached_property
    def _offsets(self) -> Float:
        """The mean less what the filter leaves of it, (k, d)."""
        means = self.prior.means
        return (means - np.einsum("kd,kde->ke", means, self._filters)).astype(np.float32)

    @cached_property
    def _kept(self) -> Array:
        """The directions (k, d) that distances look at; determinants look at all."""
        return self.prior.values > self.min_ratio * self.noise

    @cached_property
    def _projection(self) -> tuple[Float, Float, Array]:
        """Rows (r, d) to project on, what to subtract (r, 1), the first row of each component (k + 1,).

        Rows are eigenvectors times sqrt(1/v - 1/(l + v)): |y - mu|^2 / v less the squares of the
        projections is the Mahalanobis distance.
        """
        prior, kept = self.prior, self._kept
        gains = np.sqrt(prior.values / (self.noise * (prior.values + self.noise)))
        rows = (prior.vectors.transpose(0, 2, 1) * gains[..., np.newaxis])[kept]
        shifts = np.einsum("rd,rd->r", rows, np.repeat(prior.means, kept.sum(axis=1), axis=0))
        starts = np.concatenate([[0], np.cumsum(kept.sum(axis=1))])
        return rows.astype(np.float32), shifts.astype(np.float32)[:, None], starts.astype(np.int64)

    @cached_property
    def _constants(self) -> Float:
        """Return log w_k - 1/2 log det(I + S_k / v) - |mu_k|^2 / 2v, (k, 1)."""
        prior = self.prior
        with np.errstate(divide="ignore"):
            constants = np.log(prior.weights)
        constants -= 0.5 * np.log1p(prior.values / self.noise).sum(axis=1)
        constants -= 0.5 * (prior.means**2).sum(axis=1) / self.noise
        return constants.astype(np.float32)[:, np.newaxis]

    @cached_property
    def _groups(self) -> list[slice]:
        """Runs of components whose projections together fit the cache."""
        starts, cuts = self._projection[2], [0]
        for k in range(1, len(starts) - 1):
            if starts[k + 1] - starts[cuts[-1]] > _ROWS:
                cuts.append(k)
        return [slice(a, b) for a, b in zip(cuts, [*cuts[1:], len(starts) - 1], strict=True)]

    def _score_groups(self, noisy: Float) -> Iterator[tuple[int, Float]]:
        """Yield (first component, scores (components, m)) group by group."""
        rows, shifts, starts = self._projection
        centred = not self.prior.means.any()
        for group in self._groups:
            own = starts[group.start : group.stop + 1]
            projections = rows[own[0] : own[-1]] @ noisy.T
            if not centred:
                projections -= shifts[own[0] : own[-1]]
            scores = _native.add_squares(projections, own - own[0])
            scores *= np.float32(0.5)
            scores += self._constants[group]
            if not centred:
                scores += (self.prior.means[group] / self.noise).astype(np.float32) @ noisy.T
            yield group.start, scores


def em_step(
    patches: Float, prior: PatchPrior, noise: float, pool: Pool
) -> tuple[PatchPrior, float]:
    """Return the mixture after one step of EM on patches (m, d), and the mean log-likelihood before it.

    The means stay zero.  The components plus noise of variance ``noise`` are what is fitted; for
    clean patches the noise is the floor of the eigenvalues.
    """
    model = NoisyPrior(prior, noise, min_ratio=0.05)

    def expect(at: int) -> tuple[Array, Array, float]:
        return _expectations(model, patches[at : at + _TASK])

    d = patches.shape[1]
    masses, scatters, total = (
        np.zeros(len(prior.weights)),
        np.zeros((len(prior.weights), d, d)),
        0.0,
    )
    for _, (mass, scatter, likelihood) in pool.map(
        expect, range(0, len(patches), _TASK), "learning"
    ):
        masses += mass
        scatters += scatter
        total += likelihood
    alive = masses > 1.0
    covariances = scatters[alive] / masses[alive, np.newaxis, np.newaxis]
    weights = masses[alive] / masses[alive].sum()
    return from_moments(weights, np.zeros((len(weights), d)), covariances, noise), total / len(
        patches
    )


def _expectations(model: NoisyPrior, patches: Float) -> tuple[Array, Array, float]:
    """Return masses (k,), scatters (k, d, d) and the sum of the log-likelihood of some patches."""
    k, d = len(model.prior.weights), patches.shape[1]
    shares = np.empty((k, len(patches)), np.float32)
    likelihood = float(model.common(patches).sum())
    for at in range(0, len(patches), _BLOCK):
        scores = model.scores(patches[at : at + _BLOCK])
        top = scores.max(axis=0)
        np.exp(scores - top, out=scores)
        total = scores.sum(axis=0)
        shares[:, at : at + _BLOCK] = scores / total
        likelihood += float((np.log(total) + top).sum(dtype=np.float64))
    scatters = np.zeros((k, d, d), np.float32)
    for c, share in enumerate(shares):
        members = np.flatnonzero(share > _MIN_SHARE)
        if members.size:
            scaled = patches[members] * np.sqrt(share[members])[:, np.newaxis]
            scatters[c] = scaled.T @ scaled
    return shares.sum(axis=1, dtype=np.float64), scatters, likelihood


def first_prior(
    patches: Float, n_components: int, noise: float, rng: np.random.Generator
) -> PatchPrior:
    """Return a mixture to start from: each component is made of the patches most like a random one.

    Alike means parallel, with either sign, and of similar energy.
    """
    sample = patches[rng.choice(len(patches), min(_SEED_SAMPLE, len(patches)), replace=False)]
    n_components = min(n_components, len(sample))
    size = min(len(sample), max(patches.shape[1], 2 * len(sample) // n_components))
    energy = np.maximum((sample**2).sum(axis=1), np.float32(noise))
    covariances = np.empty((n_components, patches.shape[1], patches.shape[1]))
    for k, seed in enumerate(rng.choice(len(sample), n_components, replace=False)):
        alike = (sample @ sample[seed]) ** 2 / np.maximum(energy, energy[seed]) ** 2
        members = sample[np.argpartition(-alike, size - 1)[:size]]
        covariances[k] = members.T @ members / size
    weights = np.full(n_components, 1.0 / n_components)
    return from_moments(weights, np.zeros((n_components, patches.shape[1])), covariances, noise)


def filter_patches(
    plane: Float, side: int, function: Callable[[Float], Float], pool: Pool, stage: str
) -> Float:
    """Return sum_j P_j^T f(P_j plane), over the patches that lie wholly inside a plane (y, x).

    ``function`` takes patches (m, side^2) and returns as many.
    """
    height, width = (size - side + 1 for size in plane.shape)
    rows = max(1, _PATCHES // width)

    def strip(top: int) -> Float:
        count = min(rows, height - top)
        band = plane[top : top + count + side - 1]
        return put_patches(function(take_patches(band, side)), band.shape, side)

    out = np.zeros_like(plane)
    for top, total in pool.map(strip, range(0, height, rows), stage):
        out[top : top + len(total)] += total
    return out


def take_patches(plane: Float, side: int) -> Float:
    """Return all patches inside a plane (y, x) in raster order, (m, side^2)."""
    windows = np.lib.stride_tricks.sliding_window_view(plane, (side, side))
    return windows.reshape(-1, side * side)


def put_patches(patches: Float, shape: tuple[int, ...], side: int) -> Float:
    """Return sum_j P_j^T patches_j, the adjoint of :func:`take_patches`: (y, x)."""
    height, width = (size - side + 1 for size in shape)
    pieces = patches.reshape(height, width, side, side)
    total = np.zeros(shape, patches.dtype)
    for y, x in np.ndindex(side, side):
        total[y : y + height, x : x + width] += pieces[:, :, y, x]
    return total


def coverage(shape: tuple[int, ...], side: int) -> Float:
    """Return how many patches cover each pixel of a plane: sum_j P_j^T 1."""
    counts = [
        np.convolve(np.ones(size - side + 1, np.float32), np.ones(side, np.float32))
        for size in shape
    ]
    return np.multiply.outer(*counts)


def mirror(plane: Float, side: int) -> Float:
    """Return the plane mirrored at its ends by a quarter of a patch, or until it is as large as one."""
    widths = [max(side // 4, (side - size + 1) // 2) for size in plane.shape]
    return np.pad(plane, [(width, width) for width in widths], mode="symmetric")


def unmirror(plane: Float, shape: tuple[int, ...]) -> Float:
    """Return the plane of this shape without what :func:`mirror` added."""
    starts = [(padded - size) // 2 for padded, size in zip(plane.shape, shape, strict=True)]
    return plane[tuple(slice(at, at + size) for at, size in zip(starts, shape, strict=True))]
