"""Table I: image -> W, as an operator that never stores it.

All but LARK are exp(-|f_i - f_j|^2 / 2) for a feature map f (coordinates / h_s, intensities or patches
/ h_r) inside a search window; they are symmetric.  ``W @ v``, ``W.T @ v``, ``W.row_sums()`` and
``W.to_sparse()`` are for people who study W; :mod:`symsmooth.filters` only applies it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import scipy.ndimage
import scipy.sparse
from scipy.sparse.linalg import LinearOperator

from .. import _native
from ..core.blocks import spans
from ..core.image import Array, Float
from ..core.parallel import Pool
from ..core.patches import as_volume, pad_for_patches, patch_shape

_LOG2E = 1.0 / math.log(2.0)
_STEERED = 2**16  # pixels whose kernels are steered in one piece
Span = tuple[int, int, int, int]  # z0, z1, y0, y1 of a strip
SOFT_REACH = 3.0  # a soft window ends at this many h_s, where its weight is exp(-4.5)


class WindowFilter(LinearOperator):
    """A smoothing filter W (n, n) that looks at the pixels in a window around each pixel."""

    def __init__(self, spatial: tuple[int, ...], offsets: Array, pool: Pool | None) -> None:
        n = int(np.prod(spatial))
        super().__init__(np.float32, (n, n))
        self.spatial = spatial
        self.offsets = offsets  # (m, 3): z, y, x
        self.pool = Pool() if pool is None else pool

    @property
    def grid(self) -> tuple[int, int, int]:
        """The pixels as (z, y, x)."""
        z, y, x = (1, *self.spatial) if len(self.spatial) == 2 else self.spatial
        return z, y, x

    def apply(self, values: Array) -> Array:
        """Return W values for columns laid out as images, (m, z, y, x), float32 or float64."""
        raise NotImplementedError

    def _add_strips(self, strip: Callable[[Span], tuple[int, int, Array]], total: Array) -> None:
        """Add what each strip of the image gives: its first slice and row, and columns from there on."""
        with self.pool as pool:
            for _, (z, y, part) in pool.map(strip, spans(self.grid), "weights"):
                total[:, z : z + part.shape[1], y : y + part.shape[2]] += part

    def row_sums(self) -> Array:
        """Return W 1."""
        return self @ np.ones(self.shape[1], np.float32)

    def diagonal(self) -> Array:
        """Return W_ii, which is 1 for all of Table I."""
        return np.ones(self.shape[0], np.float32)

    def _matmat(self, columns: Array) -> Array:
        dtype = np.float32 if columns.dtype == np.float32 else np.float64
        values = np.ascontiguousarray(columns.T, dtype=dtype).reshape(-1, *self.grid)
        return self.apply(values).reshape(len(values), -1).T

    def _matvec(self, column: Array) -> Array:
        return self._matmat(column.reshape(-1, 1))[:, 0]

    def _sparse(self, weights: Float, offsets: Array) -> scipy.sparse.coo_array:
        """Place weights (m, z, y, x) of pixel pairs (i, i + offset) in a matrix."""
        numbers = np.arange(self.shape[0]).reshape(self.grid)
        rows, columns, values = [], [], []
        for offset, weight in zip(offsets, weights, strict=True):
            if (np.abs(offset) >= self.grid).any():
                continue
            here = tuple(
                slice(max(0, -o), g - max(0, o)) for o, g in zip(offset, self.grid, strict=True)
            )
            there = tuple(slice(s.start + o, s.stop + o) for s, o in zip(here, offset, strict=True))
            rows.append(numbers[here].ravel())
            columns.append(numbers[there].ravel())
            values.append(weight[here].ravel())
        entries = (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns)))
        return scipy.sparse.coo_array(entries, shape=self.shape)


class SymmetricFilter(WindowFilter):
    """W_ij = exp(-|x_i - x_j|^2 / 2 h_s^2 - |patch_i - patch_j|^2 / 2 h_r^2) inside the window."""

    def __init__(
        self, noisy: Float, patch_size: int, h_r: float, offsets: Array, spatial: Float, pool: Pool | None
    ) -> None:  # fmt: skip
        super().__init__(noisy.shape[:-1], offsets, pool)
        padded = np.ascontiguousarray(np.moveaxis(pad_for_patches(noisy, patch_size), -1, 0))
        patch = patch_shape(noisy.ndim - 1, patch_size)
        coefficient = _LOG2E / (2.0 * h_r**2)
        self._window = _native.SymmetricWindow(padded, patch, offsets, spatial, coefficient)

    def apply(self, values: Array) -> Array:
        """Return W values; each pair of pixels is weighed once."""
        total = values.copy()  # W_ii = 1
        self._add_strips(lambda span: self._window.apply(span, values), total)
        return total

    def to_sparse(self) -> scipy.sparse.csr_array:
        """Return W as a sparse matrix: n times the window's size entries."""
        half = self._sparse(self._window.weights(), self.offsets)
        return (half + half.T + scipy.sparse.eye_array(self.shape[0], dtype=np.float32)).tocsr()

    def _transpose(self) -> SymmetricFilter:
        return self

    _adjoint = _transpose


class SteeredFilter(WindowFilter):
    """W_ij = exp(-(x_j - x_i)^T Sigma_i^-1 (x_j - x_i) / 2): LARK.  Not symmetric."""

    def __init__(
        self, precision: Float, offsets: Array, pool: Pool | None, transposed: bool = False
    ) -> None:
        n_dims = precision.ndim - 2
        super().__init__(precision.shape[:n_dims], offsets, pool)
        self._precision = precision
        self._transposed = transposed
        full = np.zeros((*self.grid, 3, 3), np.float32)
        full[..., 3 - n_dims :, 3 - n_dims :] = (
            as_volume(precision) if n_dims == 3 else precision[None]
        )
        pairs = ((0, 0, 1), (1, 1, 1), (2, 2, 1), (0, 1, 2), (0, 2, 2), (1, 2, 2))
        half = _LOG2E / 2
        steering = np.stack([full[..., a, b] * np.float32(f * half) for a, b, f in pairs])
        self._window = _native.SteeredWindow(steering, offsets)

    def apply(self, values: Array) -> Array:
        """Return W values, or W^T values for the transpose."""
        total = np.zeros_like(values)
        self._add_strips(lambda span: self._window.apply(span, values, self._transposed), total)
        return total

    def to_sparse(self) -> scipy.sparse.csr_array:
        """Return W as a sparse matrix: n times the window's size entries."""
        matrix = self._sparse(self._window.weights(), self.offsets).tocsr()
        return matrix.T.tocsr() if self._transposed else matrix

    def _transpose(self) -> SteeredFilter:
        return SteeredFilter(self._precision, self.offsets, self.pool, not self._transposed)

    _adjoint = _transpose


def gaussian(noisy: Float, h_s: float, pool: Pool | None = None) -> SymmetricFilter:
    """Return the Gaussian filter of Table I: it does not look at the pixels at all."""
    return SymmetricFilter(noisy, 1, np.inf, *soft_window(noisy.ndim - 1, h_s), pool)


def bilateral(noisy: Float, h_s: float, h_r: float, pool: Pool | None = None) -> SymmetricFilter:
    """Return the bilateral filter of Table I: regulated NLM with patches of one pixel."""
    return regulated_nlm(noisy, 1, h_s, h_r, pool)


def nlm(
    noisy: Float, patch_size: int, window: int, h_r: float, pool: Pool | None = None
) -> SymmetricFilter:
    """Return NLM with a hard search window of ``window`` pixels a side (eq. nlm indicator)."""
    offsets = half_space(noisy.ndim - 1, window // 2)
    return SymmetricFilter(
        noisy, patch_size, h_r, offsets, np.zeros(len(offsets), np.float32), pool
    )


def regulated_nlm(
    noisy: Float, patch_size: int, h_s: float, h_r: float, pool: Pool | None = None
) -> SymmetricFilter:
    """Return spatially regulated NLM (eq. nlm s); the soft window ends at 3 h_s."""
    return SymmetricFilter(noisy, patch_size, h_r, *soft_window(noisy.ndim - 1, h_s), pool)


def lark(precision: Float, window: int, pool: Pool | None = None) -> SteeredFilter:
    """Return LARK for given Sigma_i^-1 (*spatial, dims, dims), see steering_precision."""
    half = half_space(precision.ndim - 2, window // 2)
    offsets = np.concatenate([-half[::-1], np.zeros((1, 3), half.dtype), half])
    return SteeredFilter(precision, offsets, pool)


def half_space(n_dims: int, radius: int) -> Array:
    """Return one of each pair of opposite offsets in a box, as (m, 3), in raster order."""
    axes = [range(0, 1)] * (3 - n_dims) + [range(-radius, radius + 1)] * n_dims
    ahead = [offset for offset in itertools.product(*axes) if offset > (0, 0, 0)]
    return np.array(ahead, np.int64).reshape(-1, 3)


def soft_window(n_dims: int, h_s: float) -> tuple[Array, Float]:
    """Return the half space of a ball of 3 h_s, and |offset|^2 / 2 h_s^2 in powers of two."""
    reach = SOFT_REACH * h_s
    offsets = half_space(n_dims, int(reach))
    square = (offsets**2).sum(axis=1)
    inside = square <= reach**2
    exponents = square[inside] * (_LOG2E / (2.0 * h_s**2))
    return offsets[inside], exponents.astype(np.float32)


def steering_precision(
    noisy: Float,
    sigma: float,
    h_s: float,
    sharpness: float,
    pool: Pool | None = None,
    smooth: float = 1.0,
) -> Float:
    """Return Sigma_i^-1 (*spatial, dims, dims) of LARK from the local gradients.

    Notes
    -----
    Takeda, Farsiu, Milanfar (2007), eqs. 36-40, in units of the noise: the gradient covariance of a
    neighbourhood (all channels together) has eigenvalues s_a; the kernel is elongated by
    (s_a + 1) / geometric mean, and shrinks where there is structure: gamma = (geometric mean of
    s_a + 0.01)^(sharpness/2).  Dividing gradients by sigma makes it independent of units.
    """
    n_dims = noisy.ndim - 1
    axes = range(n_dims)
    gradients = [
        np.stack(
            [
                scipy.ndimage.gaussian_filter1d(
                    scipy.ndimage.gaussian_filter(noisy[..., c], smooth, mode="mirror"),
                    1.0, axis=axis, order=1, mode="mirror",
                )
                for axis in axes
            ],
            axis=-1,
        )
        for c in range(noisy.shape[-1])
    ]  # fmt: skip
    tensor = sum(g[..., :, None] * g[..., None, :] for g in gradients) / (sigma**2 * len(gradients))
    tensor = scipy.ndimage.gaussian_filter(tensor, [2.0] * n_dims + [0.0, 0.0], mode="mirror")
    precision = np.empty(tensor.shape, np.float32)
    rows = max(_STEERED // (tensor[0].size // n_dims**2), 1)
    strips = [slice(at, at + rows) for at in range(0, len(tensor), rows)]
    with pool or Pool(1) as threads:
        for strip, found in threads.map(
            lambda strip: _steer(tensor[strip], h_s, sharpness), strips, "steering"
        ):
            precision[strip] = found
    return precision


def _steer(tensor: Float, h_s: float, sharpness: float) -> Array:
    """Return the precision of kernels along the eigenvectors of gradient covariances."""
    s, vectors = np.linalg.eigh(tensor.astype(np.float64))
    s = np.maximum(s, 0.0)
    elongation = (s + 1.0) / np.exp(np.log(s + 1.0).mean(axis=-1, keepdims=True))
    gamma = np.exp(np.log(s + 0.01).mean(axis=-1, keepdims=True)) ** (sharpness / 2.0)
    values = elongation * gamma / h_s**2
    return (vectors * values[..., None, :]) @ np.swapaxes(vectors, -1, -2)
