"""What the paper lets the data choose: lambda by SURE, k by cross-validation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .image import Array


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
