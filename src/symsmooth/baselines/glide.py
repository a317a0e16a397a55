"""GLIDE: the eigenvectors of a symmetric filter, and how many of them to keep how strongly.

A pilot by NLM; weights from the pilot; the leading eigenvectors of the symmetric filter by the Nystrom
method; the number of them and the power of their eigenvalues by an estimate of the mean squared error.

Nystrom: arrays are (blocks, pixels, ...).  K_ij = exp(-|f_i - f_j|^2 / 2) is never formed, only its columns
at the sampled pixels A; what they say of K is K_:A K_A^+ K_A: = B B'.

References
----------
C. Fowlkes, S. Belongie, F. Chung, J. Malik, "Spectral grouping using the Nystrom method", IEEE Trans.
Pattern Anal. Mach. Intell. 26 (2004), doi:10.1109/TPAMI.2004.1262185.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..core.channels import decorrelate, mix
from ..core.image import Array, ChannelAxis, Float, Picture, open_image
from ..core.lazy import dask_aware
from ..core.options import check_at_least_one, check_odd
from ..core.parallel import Pool, Progress
from ..core.patches import Features, whiten
from ..core.signatures import described_like
from ..filters import weights
from ..filters.filters import smooth
from ..noise import resolve_sigma

# Chosen on crops of the development set and of Kodak, see docs/paper_map.md.
_PILOT_SPREAD = 0.65  # h_r of the pilot's NLM = this * sigma * sqrt(d)
_SPREAD = 0.6  # h_r of the weights = this * sigma * sqrt(d)
_POWERS = (2.0 ** np.arange(-2.0, 2.25, 0.5)).astype(np.float32)  # k
_BATCH = 32  # blocks computed at once
_PILOT_TIME = 0.02  # of all, for the progress callback
_MIN_EIGENVALUE = 1e-5  # of K_A, as a share of its largest: smaller ones are rounding
_MIN_SUM = np.float32(1e-6)  # a row of B B' may fall below zero where no sample is alike


class _Scale(NamedTuple):
    """Sizes in pixels: they depend on the number of spatial dimensions alone."""

    side: int  # of a block
    step: int  # from a block to the next
    h_s: float
    window: int  # of the pilot's NLM


_SCALES = {2: _Scale(18, 6, 7.0, 21), 3: _Scale(8, 4, 4.0, 9)}


@dask_aware
@described_like()
def denoise_glide(
    image: ArrayLike,
    sigma: float | None = None,
    *,
    patch_size: int | None = None,
    samples: int = 64,
    channel_axis: ChannelAxis = "auto",
    mask: ArrayLike | None = None,
    rng: int | np.random.Generator | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Array:
    """Denoise with GLIDE, the global filter of Talebi and Milanfar, in overlapping blocks.

    Parameters
    ----------
    patch_size : int or None
        Side of a patch, odd; None takes 5, and 3 in a volume.
    samples : int
        Rows of the filter that are computed in each block of 18 x 18 pixels (8 x 8 x 8 in a
        volume): the eigenvectors that can be found.
    rng : int, Generator or None
        Not used: rows are sampled on a grid.

    Returns
    -------
    ndarray
        Same shape and dtype as the image.

    Notes
    -----
    W = V S V' is NLM made doubly stochastic, with weights from a pilot; the estimate is
    V_m S_m^k V_m' y with the (m, k) that minimise

        MSE(m, k) = sum_{i <= m} (1 - s_i^k)^2 b_i^2 + sigma^2 s_i^(2k) + sum_{i > m} b_i^2,

    b = V' z taken from the pilot.  Where we deviate (docs/paper_map.md says why and what it changes):
    the filter is that of a block, not of the picture, with a soft spatial window; blocks overlap and
    are averaged; the pilot is one-step NLM; and what the sampled rows cannot represent is not dropped
    but shrunk by one factor, max(0, 1 - (n - p) sigma^2 / |(I - VV') y|^2).

    References
    ----------
    H. Talebi, P. Milanfar, "Global image denoising", IEEE Trans. Image Processing 23 (2014),
    doi:10.1109/TIP.2013.2293425.

    Examples
    --------
    >>> import numpy as np, symsmooth
    >>> noisy = np.random.default_rng(0).normal(100.0, 20.0, (32, 32))
    >>> bool(symsmooth.denoise_glide(noisy, 20.0).std() < 6.0)
    True
    """
    picture = open_image(image, channel_axis, mask)
    sigma = resolve_sigma(picture, sigma)
    n_dims = len(picture.spatial)
    if patch_size is None:
        patch_size = 5 if n_dims == 2 else 3
    check_odd("patch_size", patch_size)
    check_at_least_one("samples", samples)
    if sigma == 0.0:
        return picture.restore(picture.noisy)
    transform = decorrelate(picture.scene.noisy, sigma)
    spread = sigma * (patch_size**n_dims * len(transform)) ** 0.5
    with Pool(workers, progress) as pool:
        with pool.part(_PILOT_TIME):
            pilot = _pilot(picture, patch_size, _PILOT_SPREAD * spread, pool)
        noisy, pilot = mix(picture.noisy, transform), mix(pilot, transform)
        features = whiten(pilot, patch_size, _SCALES[n_dims].h_s, _SPREAD * spread)
        denoised = _in_blocks(noisy, pilot, features, picture.observed, sigma, samples, pool)
    axes = tuple(range(n_dims))
    denoised = np.clip(denoised, noisy.min(axis=axes), noisy.max(axis=axes))
    return picture.restore(mix(denoised, transform.T))


def _pilot(picture: Picture, patch_size: int, h_r: float, pool: Pool) -> Float:
    """Return the picture filtered by NLM after one step of Sinkhorn-Knopp."""
    window = _SCALES[len(picture.spatial)].window
    return smooth(weights.nlm(picture.noisy, patch_size, window, h_r, pool), picture, 1)


def filter_blocks(
    noisy: Float, pilot: Float, features: Float, observed: Float, sampled: Array, sigma: float
) -> Float:
    """Return GLIDE's estimate of each block, (blocks, n, channels).

    noisy, pilot (blocks, n, channels); features (blocks, n, P); observed (blocks, n) is 0 where a
    pixel is missing; a block with none observed keeps its pilot.  The mean is left out and put back:
    W 1 = 1, so no (m, k) would change it.
    """
    W = decompose(balance_factor(nystrom(features, sampled), observed), observed)
    present = observed[..., np.newaxis]
    n_pixels = np.maximum(present.sum(axis=1, keepdims=True), np.float32(1.0))
    mean = (noisy * present).sum(axis=1, keepdims=True) / n_pixels
    pilot_mean = (pilot * present).sum(axis=1, keepdims=True) / n_pixels
    varies = (noisy - mean) * present
    coefficients = W.analyse(varies)
    chosen = choose(W.values, W.analyse((pilot - pilot_mean) * present), sigma)
    rest = remainder(varies, coefficients, n_pixels - W.rank, sigma)
    estimate = mean + rest * varies + W.synthesise((chosen.gains - rest) * coefficients)
    return np.where(present.any(axis=1, keepdims=True), estimate, pilot)


class Choice(NamedTuple):
    """The (m, k) of least estimated MSE for each block and channel."""

    gains: Float  # s_i^k for i <= m, else 0: (blocks, p, channels)
    kept: Array  # m: (blocks, channels)
    power: Float  # k: (blocks, channels)
    risk: Float  # MSE(m, k), summed over the pixels, within the span of V: (blocks, channels)


def choose(values: Float, signal: Float, sigma: float) -> Choice:
    """Minimise the estimated MSE over m and k.

    values (blocks, p) are the s_i, falling; signal (blocks, p, channels) the b_i.
    """
    gain = values[np.newaxis] ** _POWERS[:, np.newaxis, np.newaxis]
    gain = np.where(values > 0, gain, np.float32(0.0))[..., np.newaxis]  # (powers, blocks, p, 1)
    energy = signal**2
    nothing = energy.sum(axis=1)
    change = (1 - gain) ** 2 * energy + np.float32(sigma**2) * gain**2 - energy
    risks = nothing[:, np.newaxis] + np.cumsum(change, axis=2)  # of the first 1, 2, ..., p
    n_powers, n_blocks, n_vectors, channels = risks.shape
    flat = np.moveaxis(risks, 0, 1).reshape(n_blocks, n_powers * n_vectors, channels)
    best = flat.argmin(axis=1)
    power, last = np.divmod(best, n_vectors)
    risk = np.take_along_axis(flat, best[:, np.newaxis], axis=1)[:, 0]
    first = np.arange(n_vectors)[:, np.newaxis] <= last[:, np.newaxis]
    gains = gain[power.T, np.arange(n_blocks), :, 0].transpose(1, 2, 0)
    return Choice(np.where(first, gains, np.float32(0.0)), last + 1, _POWERS[power], risk)


def remainder(varies: Float, coefficients: Float, dimensions: Float, sigma: float) -> Float:
    """Return the Wiener gain of what no eigenvector represents: (blocks, 1, channels).

    Its energy |(I - VV') y|^2 holds dimensions * sigma^2 of noise.
    """
    energy = (varies**2).sum(axis=1, keepdims=True) - (coefficients**2).sum(axis=1, keepdims=True)
    noise = np.maximum(dimensions, np.float32(0.0)) * np.float32(sigma**2)
    known = energy > noise
    return np.where(known, 1 - noise / np.where(known, energy, 1), 0).astype(np.float32)


def _in_blocks(
    noisy: Float, pilot: Float, features: Features, observed: Float, sigma: float, samples: int, pool: Pool
) -> Float:  # fmt: skip
    """Filter overlapping blocks, a row of blocks at a time, and take the mean of all that hold a pixel."""
    spatial, channels = noisy.shape[:-1], noisy.shape[-1]
    scale = _SCALES[len(spatial)]
    shape = tuple(min(scale.side, size) for size in spatial)
    *outer, across = (starts(size, scale.side, scale.step) for size in spatial)
    sampled = sample_grid(shape, samples)
    inside = np.indices(shape).reshape(len(shape), -1)
    total, count = np.zeros_like(noisy), np.zeros(spatial, np.float32)

    def run(corner: tuple[int, ...]) -> tuple[Float, Float]:
        part = np.zeros((*shape[:-1], spatial[-1], channels), np.float32)
        times = np.zeros(part.shape[:-1], np.float32)
        for first in range(0, len(across), _BATCH):
            columns = across[first : first + _BATCH]
            corners = np.array([(*corner, x) for x in columns]).T
            at = np.ravel_multi_index(
                tuple(corners[..., np.newaxis] + inside[:, np.newaxis]), spatial
            )
            blocks = filter_blocks(
                noisy.reshape(-1, channels)[at], pilot.reshape(-1, channels)[at],
                features.at(at.ravel()).reshape(*at.shape, -1), observed.reshape(-1)[at], sampled, sigma,
            )  # fmt: skip
            for x, block in zip(columns, blocks.reshape(-1, *shape, channels), strict=True):
                part[..., x : x + shape[-1], :] += block
                times[..., x : x + shape[-1]] += 1
        return part, times

    for corner, (part, times) in pool.map(run, list(itertools.product(*outer)), "eigenvectors"):
        reach = tuple(slice(c, c + s) for c, s in zip(corner, shape, strict=False))
        total[reach] += part
        count[reach] += times
    return total / count[..., np.newaxis]


def starts(size: int, side: int, step: int) -> list[int]:
    """Return where blocks begin along an axis: about every ``step``, the last one ends at the border."""
    last = max(size - side, 0)
    return sorted({round(i * last / max(-(-last // step), 1)) for i in range(-(-last // step) + 1)})


def sample_grid(shape: tuple[int, ...], samples: int) -> Array:
    """Return the flat numbers of about ``samples`` pixels of a block, on an even grid, or of all."""
    n = int(np.prod(shape))
    if samples >= n:
        return np.arange(n)
    apart = (n / samples) ** (1.0 / len(shape))
    counts = [max(1, min(size, round(size / apart))) for size in shape]
    axes = [
        ((np.arange(c) + 0.5) * size / c).astype(int) for c, size in zip(counts, shape, strict=True)
    ]
    return np.ravel_multi_index(tuple(np.meshgrid(*axes, indexing="ij")), shape).ravel()


class Spectrum(NamedTuple):
    """The filter W = V diag(values) V', V = factor @ turn.

    W is symmetric, its rows sum to one; values fall from 1 to 0 and are 0 beyond its rank.
    """

    factor: Float  # C, (blocks, n, p): W = C C'
    turn: Float  # (blocks, p, p)
    values: Float  # (blocks, p)

    @property
    def vectors(self) -> Float:
        """V, (blocks, n, p): orthonormal columns (over the observed pixels)."""
        return self.factor @ self.turn

    @property
    def rank(self) -> Array:
        """Number of eigenvalues above 0: (blocks, 1, 1)."""
        return (self.values > 0).sum(axis=1)[:, np.newaxis, np.newaxis]

    def analyse(self, pixels: Float) -> Float:
        """Return V' pixels: (blocks, p, channels)."""
        return _transposed(self.turn) @ (_transposed(self.factor) @ pixels)

    def synthesise(self, coefficients: Float) -> Float:
        """Return V coefficients: (blocks, n, channels)."""
        return self.factor @ (self.turn @ coefficients)


def nystrom(features: Float, sampled: Array) -> Float:
    """Return B (blocks, n, p) with B B' = K_:A K_A^+ K_A:, equal to K if all pixels are sampled."""
    norms = (features**2).sum(axis=-1) / 2
    columns = features @ _transposed(features[:, sampled])
    columns -= norms[:, :, np.newaxis]
    columns -= norms[:, np.newaxis, sampled]
    np.minimum(columns, np.float32(0.0), out=columns)
    np.exp(columns, out=columns)
    values, vectors = np.linalg.eigh(columns[:, sampled])
    large = values > _MIN_EIGENVALUE * values[:, -1:]
    root = np.where(large, 1.0 / np.sqrt(np.where(large, values, 1.0)), 0.0)
    return columns @ (vectors * root[:, np.newaxis]).astype(np.float32)


def balance_factor(factor: Float, observed: Float, rounds: int = 20) -> Float:
    """Return C = diag(s) B, C C' doubly stochastic over the observed pixels: Sinkhorn-Knopp.

    The iteration is that of :func:`symsmooth.filters.sinkhorn.balance`, s <- sqrt(s / K s), for all blocks
    at once.  A pixel that is not observed gives nothing and has its own row sum to one all the same.
    """
    sums = _row_sums(factor, observed)
    s = 1.0 / np.sqrt(sums)
    for _ in range(rounds):
        s = np.sqrt(s / _row_sums(factor, s * observed))
    return s[..., np.newaxis] * factor


def _row_sums(factor: Float, s: Float) -> Float:
    """Return B B' s, kept positive."""
    sums = factor @ (_transposed(factor) @ s[..., np.newaxis])
    return np.maximum(sums[..., 0], _MIN_SUM)


def decompose(factor: Float, observed: Float) -> Spectrum:
    """Return the eigenvalues and orthonormal eigenvectors of W = C C', from the p x p matrix C'C."""
    gram = _transposed(factor) @ (factor * observed[..., np.newaxis])
    values, vectors = np.linalg.eigh(gram)
    values, vectors = values[:, ::-1], vectors[:, :, ::-1]
    large = values > _MIN_EIGENVALUE
    root = np.where(large, 1.0 / np.sqrt(np.where(large, values, 1.0)), 0.0)
    turn = (vectors * root[:, np.newaxis]).astype(np.float32)
    return Spectrum(factor, turn, np.clip(np.where(large, values, 0.0), 0.0, 1.0))


def _transposed(matrices: Float) -> Float:
    return np.swapaxes(matrices, -1, -2)
