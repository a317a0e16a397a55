"""What soft clusters answer with in GSF: the means of their patches, put back together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .. import _native
from ..core.image import Float
from ..core.parallel import Pool
from ..core.patches import Features, fold_padding, whiten
from .em import GaussianMixture, MixtureFit, Neighbourhood, Strip, cluster_sums


@dataclass(frozen=True)
class ClusterAverages:
    """What each cluster's members say of the noisy image."""

    cluster_estimates: (
        Float  # [x, mu^(r)]_i = sum_j gamma_ij [x_j, y_j] / sum_j gamma_ij, whitened: (k, p)
    )
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
    cluster_estimates, tail, _, _ = cluster_sums(
        features, target, mixture, near, pool, weight, 1, "averages"
    )
    mass = np.maximum(tail[:, 0], np.float32(1e-20))
    cluster_estimates /= mass[:, None]
    cluster_estimates += mixture.means
    return ClusterAverages(cluster_estimates, float(np.sum(tail[:, 1] / mass, dtype=np.float64)))


def aggregate_means(
    features: Features,
    mixture: GaussianMixture,
    near: Neighbourhood,
    cluster_estimates: Float,
    pool: Pool,
) -> Float:
    """Return u = (1/d) sum_j P_j^T w_j, w_j = sum_i gamma_ij answers_i (eqs. vwj and vu).

    cluster_estimates (k, p) are whitened, as the mixture's means are; u is not.
    """
    points, clusters = features.points, mixture.native
    total = np.zeros(features.padded.size, np.float32)

    def run(strip: Strip) -> tuple[int, Float]:
        return _native.aggregate_means(points, strip.tiles, clusters, cluster_estimates)

    for _, (start, part) in pool.map(run, near.strips, "aggregation"):
        total[start : start + len(part)] += part
    padded = total.reshape(features.padded.shape)
    if features.n_dims == 2:
        padded = padded[0]
    folded = fold_padding(padded, features.spatial, features.patch_size)
    folded *= np.float32(features.h_r / features.patch_size**features.n_dims)
    return folded


def average_members(
    features: Features, fit: MixtureFit, noisy: Float, pool: Pool, *, weight: Float | None = None
) -> tuple[Float, float]:
    """Answer with the cluster's mean: GSF.  Return u (*spatial, channels) and div(u)."""
    own = cluster_averages(features, fit.mixture, fit.near, noisy, pool, weight=weight)
    return aggregate_means(
        features, fit.mixture, fit.near, own.cluster_estimates, pool
    ), own.divergence
