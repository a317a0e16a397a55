"""GSF on patches without their means: the closing remark of the paper, by the letter.

Dense EM in NumPy: patches whose own mean is removed are not windows of any image, so the tiled EM of
``mixture`` cannot read them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.special

from symsmooth.core.image import Array
from symsmooth.core.patches import aggregate_patches, extract_patches
from symsmooth.mixture.em import stratified_positions
from symsmooth.mixture.selection import cross_validate

_PATCH, _H_S, _STEPS = 5, 10.0, 10


@dataclass(frozen=True)
class Learned:
    """A mixture learned by EM from points (n, p) with identity covariance."""

    responsibilities: Array  # gamma, (n, k)
    means: Array  # mu, (k, p)
    deviation: float  # delta(k)


def learn(points: Array, shape: tuple[int, int], k: int) -> Learned:
    """Run EM (Algorithm 2) from k points spread evenly over the picture."""
    first = stratified_positions(shape, k, np.random.default_rng(0))
    means = points[np.ravel_multi_index(tuple(first.T), shape)]
    log_pi = np.full(k, -np.log(k), np.float32)
    for _ in range(_STEPS):
        logits = points @ means.T - (means**2).sum(axis=1) / 2 + log_pi
        logits -= scipy.special.logsumexp(logits, axis=1, keepdims=True)
        gamma = np.exp(logits)
        mass = np.maximum(gamma.sum(axis=0), 1e-6)
        means = gamma.T @ points / mass[:, None]
        log_pi = np.log(mass / mass.sum())
    scatter = gamma.T @ (points**2).sum(axis=1) / mass - (means**2).sum(axis=1)
    return Learned(gamma, means, float(scatter[mass > 1e-3].mean() / points.shape[1]))


def choose(points: Array, shape: tuple[int, int], guess: int) -> Learned:
    """Learn with the k for which delta(k) = 1 (Algorithm 3)."""
    fits: dict[int, Learned] = {}

    def measure(k: int) -> float:
        fits.clear()  # one is kept: gamma is large
        fits[k] = learn(points, shape, k)
        return fits[k].deviation

    k = cross_validate(measure, guess, 2, len(points) // 8, tol=0.01).n_clusters
    return fits[k] if k in fits else learn(points, shape, k)


def learn_without_means(noisy: Array, sigma: float, rounds: int) -> dict[str, tuple[int, Array]]:
    """Return k and the estimate (lambda = 0) with means kept, removed, and removed but updated.

    Removed: the mixture answers for the patch without its mean, and the noisy mean is put back.
    Updated: so, but the mean put back is that of the estimate so far, ``rounds`` times.
    """
    patches = extract_patches(noisy[..., None].astype(np.float32), _PATCH)
    patches = patches.reshape(noisy.size, -1)
    where = np.indices(noisy.shape).reshape(2, -1).T / np.float32(_H_S)
    own_means = patches.mean(axis=1, keepdims=True)

    def answers(values: Array, guess: int) -> tuple[int, Array]:
        points = np.concatenate([where, values / sigma], axis=1).astype(np.float32)
        learned = choose(points, noisy.shape, guess)
        return len(learned.means), learned.responsibilities @ learned.means[:, 2:] * sigma

    def together(estimates: Array) -> Array:
        summed = aggregate_patches(estimates.reshape(*noisy.shape, -1), _PATCH)
        return summed[..., 0] / _PATCH**2

    guess = max(round(noisy.size * 0.015 * (noisy.var() / sigma**2 - 1.0)), 2)
    k_kept, kept = answers(patches, guess)
    k_removed, removed = answers(patches - own_means, guess // 2)
    updated = together(removed + own_means)
    found = {"kept": (k_kept, together(kept)), "removed": (k_removed, updated)}
    for _ in range(rounds):
        again = extract_patches(updated[..., None].astype(np.float32), _PATCH)
        means = again.reshape(noisy.size, -1).mean(axis=1, keepdims=True)
        updated = together(removed + means)
    return found | {"updated": (k_removed, updated)}
