"""The mixture of natural patches that the package ships, and how it is kept in a file.

``natural.npz`` was learned by ``benchmarks/train_prior.py``.  A covariance is kept as its eigenvectors
times the roots of their eigenvalues, in grey levels and half precision; directions without variance
are not kept.
"""

from __future__ import annotations

from functools import lru_cache
from importlib import resources
from pathlib import Path

import numpy as np

from .patch_gmm import PatchPrior

NATURAL_SIDE = 8
NATURAL_CONTRAST = 36.0 / 255.0  # standard deviation of a picture that it fits best as it is

_GREY = 255.0


def save_prior(path: Path, prior: PatchPrior) -> None:
    """Write a zero-mean mixture to a file."""
    rows = prior.vectors.transpose(0, 2, 1) * np.sqrt(prior.values)[..., np.newaxis]
    kept = prior.values > 0.0
    np.savez_compressed(
        path,
        weights=prior.weights.astype(np.float32),
        ranks=kept.sum(axis=1).astype(np.uint8),
        factors=(rows[kept] * _GREY).astype(np.float16),
    )


def load_prior(path: Path) -> PatchPrior:
    """Read what :func:`save_prior` wrote."""
    with np.load(path) as file:
        weights, ranks, factors = (file[name] for name in ("weights", "ranks", "factors"))
    k, d = len(weights), factors.shape[1]
    rows = np.zeros((k, d, d))
    rows[np.arange(d) < ranks[:, np.newaxis].astype(int)] = factors.astype(float) / _GREY
    values = (rows**2).sum(axis=2)
    vectors = rows / np.sqrt(np.where(values > 0.0, values, 1.0))[..., np.newaxis]
    weights = weights.astype(float) / weights.sum(dtype=float)
    return PatchPrior(weights, np.zeros((k, d)), values, vectors.transpose(0, 2, 1))


@lru_cache(maxsize=1)
def natural_prior() -> PatchPrior:
    """Return the mixture of zero-mean 8 x 8 patches of natural pictures with values in [0, 1]."""
    with resources.as_file(resources.files(__package__) / "natural.npz") as path:
        return load_prior(path)
