"""Literal, dense, float64 transcriptions of the equations: what kernels are compared with."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from symsmooth.core.patches import extract_patches


def coordinates(spatial: tuple[int, ...]) -> np.ndarray:
    """x_j for every pixel j: (n, dims)."""
    return np.stack(np.indices(spatial), axis=-1).reshape(-1, len(spatial)).astype(float)


def generalised_patches(image: np.ndarray, patch_size: int, h_s: float, h_r: float) -> np.ndarray:
    """p_j = [x_j / h_s, patch_j / h_r]: (n, p), for an image (*spatial, channels)."""
    patches = extract_patches(np.asarray(image, float), patch_size)
    n = int(np.prod(image.shape[:-1]))
    return np.concatenate(
        [coordinates(image.shape[:-1]) / h_s, patches.reshape(n, -1) / h_r], axis=1
    )


def squared_distances(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """|a_i - b_j|^2: (len(a), len(b))."""
    return ((a[:, None, :] - b[None, :, :]) ** 2).sum(axis=-1)


def table_one(features: np.ndarray, inside: np.ndarray) -> np.ndarray:
    """W_ij = exp(-|f_i - f_j|^2 / 2) where the window lets pixel i see pixel j: (n, n)."""
    return np.exp(-squared_distances(features, features) / 2) * inside


def responsibilities(
    features: np.ndarray, means: np.ndarray, proportions: np.ndarray
) -> np.ndarray:
    """gamma_ij of eq. (em,gamma): (k, n)."""
    logs = np.log(proportions)[:, None] - squared_distances(means, features) / 2
    logs -= logs.max(axis=0)
    weights = np.exp(logs)
    return weights / weights.sum(axis=0)


def log_likelihood(features: np.ndarray, means: np.ndarray, proportions: np.ndarray) -> float:
    """Mean log f(p_j), without the constant of the Gaussian."""
    logs = np.log(proportions)[:, None] - squared_distances(means, features) / 2
    top = logs.max(axis=0)
    return float(np.mean(top + np.log(np.exp(logs - top).sum(axis=0))))


def m_step(features: np.ndarray, gamma: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """mu_i and pi_i of eqs. (em,mu) and (em,pi)."""
    mass = gamma.sum(axis=1)
    return gamma @ features / mass[:, None], mass / gamma.shape[1]


def deviation(features: np.ndarray, gamma: np.ndarray) -> float:
    """delta(k) of eqs. (deltai), (deltak), divided by p."""
    means, _ = m_step(features, gamma)
    scatter = (gamma * squared_distances(means, features)).sum(axis=1) / gamma.sum(axis=1)
    return float(scatter.mean() / features.shape[1])


def extraction_matrix(spatial: tuple[int, ...], patch_size: int) -> np.ndarray:
    """P_j for every j, stacked: (n, d, n), for one channel."""
    n = int(np.prod(spatial))
    columns = [
        extract_patches(unit.reshape(*spatial, 1), patch_size).reshape(n, -1) for unit in np.eye(n)
    ]
    return np.stack(columns, axis=-1)


def weighted_moments(patches: np.ndarray, g: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of patches (n, d) with weights g."""
    mean = g @ patches / g.sum()
    centred = patches - mean
    return mean, (g[:, None] * centred).T @ centred / g.sum()


def spectral(
    noisy: np.ndarray, g: np.ndarray, sigma: float, bias: float
) -> tuple[np.ndarray, float]:
    """mu + U diag(f) U' (y - mu) with Gavish and Donoho's factors, (n, d), and its variance in sigma^2."""
    mean, covariance = weighted_moments(noisy, g)
    freedom = g.sum() ** 2 / (g**2).sum() - 1
    values, vectors = np.linalg.eigh(covariance)
    factors = np.zeros(len(values))
    if freedom > 0.1:
        for i, value in enumerate(values):
            x, b = value / (bias * sigma**2), len(values) / freedom
            if b > 1:
                x, b = x / b, 1 / b
            if x > (1 + np.sqrt(b)) ** 2:
                factors[i] = np.sqrt((x - b - 1) ** 2 - 4 * b) / x
    estimate = mean + (noisy - mean) @ (vectors * factors) @ vectors.T
    return estimate, float(factors.mean() + (g**2).sum() / g.sum() ** 2)


def wiener_variance(pilot: np.ndarray, g: np.ndarray, sigma: float, strength: float) -> float:
    """The Wiener estimate's variance in sigma^2: trace F / d + 1 / n_eff.

    Of the trace a bound from above is taken, sum_i 1 - a / D_i, where D are the pivots of S + a I = L D L'.
    Here S = U'U or UU', the smaller of them, with U the rows sqrt(n g / sum g) (u - mu_u).
    """
    n, d = pilot.shape
    rows = np.sqrt(n * g / g.sum())[:, None] * (pilot - g @ pilot / g.sum())
    gram = rows @ rows.T if n < d else rows.T @ rows
    a = n * sigma**2 / strength
    pivots = np.diag(np.linalg.cholesky(gram + a * np.eye(len(gram)))) ** 2
    return float(np.sum(1 - a / pivots) / d + (g**2).sum() / g.sum() ** 2)


def wiener(
    noisy: np.ndarray, pilot: np.ndarray, g: np.ndarray, sigma: float,
    strength: float, trust: float,
) -> np.ndarray:  # fmt: skip
    """The Wiener estimate of each patch, filtered within patches and across them: (n, d)."""
    d = noisy.shape[1]
    pilot_mean, covariance = weighted_moments(pilot, g)
    covariance = strength * covariance
    mean = pilot_mean + trust * (g @ noisy / g.sum() - pilot_mean)
    inside = np.linalg.solve(covariance + sigma**2 * np.eye(d), covariance)
    estimate = (noisy - mean) @ inside
    rows = pilot - pilot_mean
    weighted = rows.T * g * len(g) / g.sum()
    gram = weighted @ rows + d * sigma**2 / strength * np.eye(d)
    estimate = rows @ np.linalg.solve(gram, weighted @ estimate)
    return mean + estimate


def corner_patches(planes: np.ndarray, patch: tuple[int, int, int]) -> np.ndarray:
    """All patches of planes (channels, z, y, x) by their corners: (z, y, x, channels, *patch)."""
    windows = np.lib.stride_tricks.sliding_window_view(planes, patch, axis=(1, 2, 3))
    return np.moveaxis(np.asarray(windows, float), 0, 3)


def block_matching(
    guide: np.ndarray, reference: tuple[int, int, int], patch: tuple[int, int, int],
    radius: tuple[int, int, int], max_count: int, min_count: int, limit: float,
    whole: np.ndarray | None = None,
) -> list[tuple[int, int, int]]:  # fmt: skip
    """Corners of a reference's group, nearest first (mean squared differences)."""
    patches = corner_patches(guide, patch)
    found = []
    for at in np.ndindex(patches.shape[:3]):
        near = all(abs(a - r) <= s for a, r, s in zip(at, reference, radius, strict=True))
        if at == reference or (near and (whole is None or whole[at])):
            distance = np.mean((patches[at] - patches[reference]) ** 2)
            found.append((-1.0 if at == reference else distance, at))
    found = sorted(found)[:max_count]
    return [
        at for rank, (distance, at) in enumerate(found) if rank < min_count or distance <= limit
    ]


def haar_matrix(n: int) -> np.ndarray:
    """The orthonormal Haar transform of n = 2^k values."""
    if n == 1:
        return np.ones((1, 1))
    low = np.kron(haar_matrix(n // 2), [1.0, 1.0])
    high = np.kron(np.eye(n // 2), [1.0, -1.0])
    return np.concatenate([low, high]) / np.sqrt(2.0)


def transform_group(group: np.ndarray, across: np.ndarray, along: np.ndarray) -> np.ndarray:
    """Apply one matrix across the patches of a group (n, side, ..., side), another along their axes."""
    for axis in range(group.ndim):
        matrix = across if axis == 0 else along
        group = np.moveaxis(np.tensordot(matrix, group, axes=(1, axis)), 0, axis)
    return group


def collaborative(
    group: np.ndarray, pilot: np.ndarray | None, forward: np.ndarray, level: float
) -> tuple[np.ndarray, float]:
    """BM3D's estimate of a group and its weight: a threshold, or with a pilot the Wiener filter."""
    haar = haar_matrix(len(group))
    spectrum = transform_group(group, haar, forward)
    if pilot is None:
        gain = (np.abs(spectrum) > level).astype(float)
    else:
        energy = transform_group(pilot, haar, forward) ** 2
        gain = energy / (energy + level)
    gain[(0,) * gain.ndim] = 1.0
    estimate = transform_group(gain * spectrum, haar.T, np.linalg.inv(forward))
    return estimate, 1.0 / (gain**2).sum()


def nl_bayes(
    group: np.ndarray, pilot: np.ndarray | None, channels: int, flat: float, bias: float
) -> np.ndarray:
    """NL-Bayes' estimate of a group (n, d), sigma = 1; d counts channel by channel."""
    n = len(group)
    planes = group.reshape(n, channels, -1)
    if np.mean([planes[:, c].var(ddof=1) for c in range(channels)]) < 1 + flat * np.sqrt(
        2 / group.size
    ):
        return np.broadcast_to(planes.mean(axis=(0, 2), keepdims=True), planes.shape).reshape(n, -1)
    mean = group.mean(axis=0)
    if pilot is None:
        values, vectors = np.linalg.eigh(np.cov(group, rowvar=False))
        factors = np.maximum(values - bias, 0.0) / np.maximum(values, 1e-9)
        return mean + (group - mean) @ (vectors * factors) @ vectors.T
    covariance = np.cov(pilot, rowvar=False)
    return mean + (group - mean) @ np.linalg.solve(covariance + np.eye(len(mean)), covariance)


def aggregate_groups(
    planes: np.ndarray, groups: list[list[tuple[int, int, int]]], window: np.ndarray, estimate: Any
) -> np.ndarray:
    """Weighted overlap-add of ``estimate(corners, channel) -> (patches, weight)``, window (*patch)."""
    total, mass = np.zeros(planes.shape), np.zeros(planes.shape)
    for corners in groups:
        for channel in range(len(planes)):
            patches, weight = estimate(corners, channel)
            for corner, patch in zip(corners, patches, strict=True):
                at = tuple(slice(c, c + s) for c, s in zip(corner, window.shape, strict=True))
                total[channel][at] += weight * window * patch.reshape(window.shape)
                mass[channel][at] += weight * window
    return total / mass


def add_squares(projections: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Sums of squares over the rows of each component: (k, m)."""
    pairs = itertools.pairwise(starts)
    return np.array([(projections[a:b] ** 2).sum(axis=0) for a, b in pairs])


def log_densities(
    noisy: np.ndarray, weights: np.ndarray, means: np.ndarray, covariances: np.ndarray, noise: float
) -> np.ndarray:
    """log w_k + log N(y; mu_k, S_k + v I), dense: (k, m)."""
    rows = []
    for weight, mean, covariance in zip(weights, means, covariances, strict=True):
        total = covariance + noise * np.eye(len(mean))
        centred = noisy - mean
        distance = np.einsum("id,id->i", centred, np.linalg.solve(total, centred.T).T)
        determinant = np.linalg.slogdet(2 * np.pi * total)[1]
        rows.append(np.log(weight) - 0.5 * (distance + determinant))
    return np.array(rows)


def mixed_channels(pixels, transform, is_planar):
    """Planes (channels, n) of mixed channels."""
    planes = pixels if is_planar else pixels.T
    return transform.T.astype(np.float64) @ planes


def scaled_by_root(
    transform: np.ndarray, rows: np.ndarray, columns: np.ndarray, least: float, is_divided: bool
) -> np.ndarray:
    """A transform times the root of a spectrum, or divided by it."""
    root = np.sqrt(np.maximum(rows.astype(float) @ columns.astype(float), least))
    return transform / root if is_divided else transform * root


def halved(image: np.ndarray) -> np.ndarray:
    """Means over blocks of two by two pixels of (z, y, x, channels), the last doubled if odd."""
    y, x = (-(-size // 2) * 2 for size in image.shape[1:3])
    whole = image[:, np.minimum(np.arange(y), image.shape[1] - 1)]
    whole = whole[:, :, np.minimum(np.arange(x), image.shape[2] - 1)]
    return sum(whole[:, i::2, j::2] for i in (0, 1) for j in (0, 1)) / 4


def enlarged(image: np.ndarray, factor: int) -> np.ndarray:
    """(z, y, x, channels) twice the size, linearly between the centres of pixels; factor 4: done twice."""
    for axis in (1, 2):
        n = image.shape[axis]
        at = np.clip((np.arange(2 * n) - 0.5) / 2, 0, n - 1)
        low = np.minimum(at.astype(int), max(n - 2, 0))
        part = (at - low)[:, None] if axis == 2 else (at - low)[:, None, None]
        before, after = image.take(low, axis), image.take(np.minimum(low + 1, n - 1), axis)
        image = (1 - part) * before + part * after
    return image if factor == 2 else enlarged(image, factor // 2)


def corrected_tone(
    pixels: np.ndarray,
    level: np.ndarray,
    table: np.ndarray,
    most: float,
    scale: float,
    offset: float,
    share: float,
) -> np.ndarray:
    """Pixels with a share of what a table over mean (to 1) and level (to most) has, not beyond 0 or 1."""
    shown, spread = scale * pixels + offset, scale * level
    row = np.clip(shown, 0, 1) * (len(table) - 1)
    column = np.clip(spread / most, 0, 1) * (table.shape[1] - 1)
    added = 0.0
    for i in range(2):
        for j in range(2):
            top = np.minimum(row.astype(int), len(table) - 2)
            left = np.minimum(column.astype(int), table.shape[1] - 2)
            weight = (1 - np.abs(row - top - i)) * (1 - np.abs(column - left - j))
            added = added + weight * table[top + i, left + j]
    wanted = np.clip(shown + share * added, np.minimum(shown, 0), np.maximum(shown, 1))
    is_near = (shown > -spread) & (shown < 1 + spread)
    return pixels + np.where(is_near, wanted - shown, 0.0) / scale
