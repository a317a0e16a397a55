"""What the paper lets the data choose: lambda by SURE, k by cross-validation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..core.image import Array, Float
from ..core.parallel import Pool
from ..core.patches import whiten
from .em import fit_mixture, initial_mixture

_FURTHEST = 1e18  # times the noise: the square, summed over a patch, is a float32
_CHOICE_ITERATIONS = 8  # EM steps for delta(k): within 1 % of its limit
_CHOICE_PIXELS = 128 * 128  # size of a window in which delta(k) is measured
_CHOICE_WINDOWS = 4  # at most: one for each _CHOICE_SHARE windows that the picture holds
_CHOICE_SHARE = 8
_CHOICES = 4  # of k, about as many as are tried; for the progress callback


@dataclass(frozen=True)
class Sure:
    """SURE as a function of lambda (eq. sure main), per pixel."""

    sigma: float
    residual: float  # sigmahat^2 = mean (u - y)^2
    divergence: float  # div(u) / n
    coverage: int  # d: patches that cover a pixel (patch_size^dims, in colour too)

    def __call__(self, fidelity: float) -> float:
        """Return the estimated mean squared error at this lambda."""
        d = self.coverage
        a = d / (d + fidelity)
        free = (self.divergence * d + fidelity) / (d + fidelity)
        return -(self.sigma**2) + self.residual * a**2 + 2.0 * self.sigma**2 * free

    @property
    def best_fidelity(self) -> float:
        """lambda*, the minimiser over lambda >= 0 (the paper's corollary)."""
        if self.divergence >= 1.0:
            return np.inf
        ratio = self.residual / (self.sigma**2 * (1.0 - self.divergence))
        return self.coverage * max(ratio - 1.0, 0.0)


def blend(average: Array, noisy: Array, fidelity: float, coverage: int) -> Array:
    """Return zhat(lambda) = (d u + lambda y) / (d + lambda), eq. (zhat lambda)."""
    if np.isinf(fidelity):
        return noisy
    a = np.float32(coverage / (coverage + fidelity))
    return a * average + (np.float32(1.0) - a) * noisy


_STRIDE = 6.0  # steps in log k for one of delta: slopes of natural pictures are -0.1 to -0.4


@dataclass(frozen=True)
class SecantSearch:
    """The root of delta(k) = 1 and the way there."""

    n_clusters: int
    steps: tuple[tuple[int, float], ...]  # (k, delta(k)), in the order tried


def cross_validate(
    deviation: Callable[[int], float],
    guess: int,
    low: int,
    high: int,
    *,
    tol: float = 0.005,
    max_steps: int = 8,
) -> SecantSearch:
    """Find k with delta(k) = 1 by the secant method (Algorithm 3), within [low, high].

    Notes
    -----
    delta falls with k, close to linearly in log k; so the secant of eq. (k m+1) is drawn over log k
    (the root is the same, and it is met in three or four steps).  The two first points are found by
    going from ``guess``, a little further than a usual slope asks for, until delta(k) - 1 changes
    sign.  The search ends when
    |delta - 1| < tol, the bracket is within 3 %, or after ``max_steps`` secants.
    """
    steps: list[tuple[int, float]] = []

    def measure(k: int) -> tuple[int, float]:
        steps.append((k, deviation(k)))
        return steps[-1]

    def best() -> SecantSearch:
        k = min(steps, key=lambda step: abs(step[1] - 1.0))[0]
        return SecantSearch(k, tuple(steps))

    few: tuple[int, float] | None = None  # delta > 1: too few clusters
    many: tuple[int, float] | None = None  # delta < 1: too many
    k = int(np.clip(guess, low, high))
    while few is None or many is None:
        point = measure(k)
        if abs(point[1] - 1.0) < tol:
            return best()
        stride = np.exp(min(_STRIDE * abs(point[1] - 1.0) + 0.1, 1.4))
        if point[1] > 1.0:
            few, further = point, min(int(k * stride) + 1, high)
        else:
            many, further = point, max(int(k / stride), low)
        if further == k:
            return SecantSearch(k, tuple(steps))  # the bound is reached: no root inside
        k = further
    for _ in range(max_steps):
        k = min(max(_secant(few, many), few[0] + 1), many[0] - 1)
        if many[0] <= 1.03 * few[0] or k <= few[0]:
            break
        point = measure(k)
        if abs(point[1] - 1.0) < tol:
            break
        few, many = (point, many) if point[1] > 1.0 else (few, point)
    return best()


def _secant(few: tuple[int, float], many: tuple[int, float]) -> int:
    """Return where the line through the two points meets delta = 1, over log k (eq. k m+1)."""
    (ka, da), (kb, db) = few, many
    log_k = (np.log(ka) * (db - 1.0) - np.log(kb) * (da - 1.0)) / (db - da)
    return round(float(np.exp(log_k)))


def check_reach(noisy: Float, sigma: float) -> None:
    """Refuse pixels so far from the others that float32 cannot hold the square of it."""
    furthest = float(np.abs(noisy).max()) / sigma
    if not furthest <= _FURTHEST:
        raise ValueError(
            f"image has a pixel that is {furthest:.0e} times the noise from the others, too far for the "
            "mixture; clip such pixels, or pass a mask in which they are missing"
        )


def choose_clusters(
    noisy: Float, sigma: float, patch_size: int, h_s: float, h_r: float,
    rng: np.random.Generator, pool: Pool,
) -> SecantSearch:  # fmt: skip
    """Find delta(k) = 1 (Algorithm 3), in a few windows of a large image.

    Clusters are local, so delta depends on their density k/n and a window is as good as the whole.
    """
    n = int(np.prod(noisy.shape[:-1]))
    windows = [whiten(noisy[at], patch_size, h_s, h_r) for at in _windows(noisy.shape[:-1], rng)]
    seed = int(rng.integers(2**31))  # the same first positions for each k

    def measure(k: int) -> float:
        deviations = []
        with pool.part(1 / _CHOICES):
            for features in pool.parts(windows, n_maps=_CHOICE_ITERATIONS):
                share = max(1, round(k * features.n_pixels / n))
                start = initial_mixture(features, share, np.random.default_rng(seed))
                fit = fit_mixture(features, start, pool, max_iter=_CHOICE_ITERATIONS)
                deviations.append(fit.deviation)
        return float(np.mean(deviations))

    contrast = max(float(np.var(noisy)) / sigma**2 - 1.0, 0.01)
    guess = round(n * 0.015 * contrast)  # what natural pictures ask for, within a factor of two
    return cross_validate(measure, guess, min(n, 2), max(n // 4, 1))


def _windows(spatial: Sequence[int], rng: np.random.Generator) -> list[tuple[slice, ...]]:
    """Return one to four windows of some _CHOICE_PIXELS in random places."""
    side = round(_CHOICE_PIXELS ** (1.0 / len(spatial)))
    sides = [min(side, s) for s in spatial]
    held = np.prod(spatial, dtype=float) / _CHOICE_PIXELS
    count = int(np.clip(round(held / _CHOICE_SHARE), 1, _CHOICE_WINDOWS))
    corners = [
        [int(rng.integers(s - w + 1)) for s, w in zip(spatial, sides, strict=True)]
        for _ in range(count)
    ]
    return [
        tuple(slice(c, c + w) for c, w in zip(corner, sides, strict=True)) for corner in corners
    ]
