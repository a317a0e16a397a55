"""P and its adjoint, and the whitened feature map.

P_j takes the patch centred at pixel j.  Beyond the border the image is mirrored (half a sample
outside), which is part of P; its adjoint folds what falls outside back onto the pixels it came from.
With this reading the paper's Assumption 1 is no approximation: every pixel, at the border too, is
covered exactly patch_size^dims times, sum_j P_j^T P_j = d I.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .. import _native
from .blocks import Tiling, tiling
from .image import Array, Float


def as_volume(values: Array) -> Array:
    """View (*spatial, channels) as (z, y, x, channels); a flat picture is one slice."""
    return values[np.newaxis] if values.ndim == 3 else values


def patch_shape(n_dims: int, patch_size: int) -> tuple[int, int, int]:
    """Return the (z, y, x) extent of a patch."""
    return (patch_size if n_dims == 3 else 1, patch_size, patch_size)


def pad_for_patches(values: Array, patch_size: int) -> Float:
    """Mirror the border of (*spatial, channels) by half a patch; return (z, y, x, channels)."""
    half = patch_size // 2
    widths = [(half, half)] * (values.ndim - 1) + [(0, 0)]
    padded = np.pad(values, widths, mode="symmetric")
    return np.ascontiguousarray(as_volume(padded), dtype=np.float32)


def fold_padding(padded: Array, spatial: tuple[int, ...], patch_size: int) -> Array:
    """Add the padding of (*padded spatial, channels) back onto the pixels it mirrors."""
    half = patch_size // 2
    for axis, size in enumerate(spatial):
        source = np.pad(np.arange(size), half, mode="symmetric")
        moved = np.moveaxis(padded, axis, 0)
        folded = moved[half : half + size].copy()
        for row in (*range(half), *range(half + size, size + 2 * half)):
            folded[source[row]] += moved[row]
        padded = np.moveaxis(folded, 0, axis)
    return padded


def extract_patches(values: Array, patch_size: int) -> Array:
    """Return P_j values for every pixel j: (*spatial, d), d = patch_size^dims * channels."""
    n_dims = values.ndim - 1
    half = patch_size // 2
    padded = np.pad(values, [(half, half)] * n_dims + [(0, 0)], mode="symmetric")
    windows = np.lib.stride_tricks.sliding_window_view(
        padded, (patch_size,) * n_dims, axis=tuple(range(n_dims))
    )
    windows = np.moveaxis(windows, n_dims, -1)  # channels last, behind the patch
    return windows.reshape(*values.shape[:-1], -1)


def aggregate_patches(patches: Array, patch_size: int, channels: int = 1) -> Array:
    """Return sum_j P_j^T patches_j: (*spatial, channels), the adjoint of extract_patches."""
    spatial = patches.shape[:-1]
    n_dims = len(spatial)
    pieces = patches.reshape(*spatial, *(patch_size,) * n_dims, channels)
    padded = np.zeros((*(s + patch_size - 1 for s in spatial), channels), patches.dtype)
    for offset in np.ndindex(*(patch_size,) * n_dims):
        target = tuple(slice(o, o + s) for o, s in zip(offset, spatial, strict=True))
        padded[target] += pieces[(..., *offset, slice(None))]
    return fold_padding(padded, spatial, patch_size)


def patch_means(values: Float, extent: tuple[int, ...]) -> Float:
    """Return the mean of each patch wholly inside (*spatial, channels): (*positions, channels)."""
    positions = tuple(n - side + 1 for n, side in zip(values.shape[:-1], extent, strict=True))
    means = np.empty((*positions, values.shape[-1]), np.float32)
    for c in range(values.shape[-1]):
        sums = np.ascontiguousarray(values[..., c])
        for axis, side in enumerate(extent):
            sums = _sums_along(sums, axis, side)
        means[..., c] = sums / np.float32(np.prod(extent))
    return means


def _sums_along(values: Float, axis: int, side: int) -> Float:
    """Return the sums of so many values that follow each other along an axis."""

    def shifted(array: Float, start: int) -> Float:
        return array[(slice(None),) * axis + (slice(start, start + length),)]

    length = values.shape[axis] - side + 1
    total = shifted(values, 0).copy()
    for step in range(1, side):
        total += shifted(values, step)
    return total


@dataclass(frozen=True)
class Features:
    """The generalised patches p_j = [x_j / h_s, patch_j / h_r, marks_j], whitened: Sigma = I.

    They are never formed as a whole: kernels read them from the padded, scaled image.
    """

    padded: Float  # (z, y, x, channels), divided by h_r
    spatial: tuple[int, ...]
    h_s: float
    h_r: float
    n_dims: int  # two, or three in a volume
    grid: tuple[int, int, int]  # the pixels as (z, y, x)
    n_pixels: int  # n: one generalised patch a pixel
    patch: tuple[int, int, int]  # extent of a patch as (z, y, x)
    dim: int  # p = d + number of spatial dimensions, and of marks
    marks: Float | None  # (n, numbers): what else is known of a patch
    points: _native.Points  # what kernels read p_j from
    tiles: Tiling  # what they walk over; tiles may be moved

    @property
    def patch_size(self) -> int:
        """Side of a patch in the plane."""
        return self.patch[-1]

    @property
    def channels(self) -> int:
        """Number of channels in a patch."""
        return self.padded.shape[-1]

    def at(self, pixels: Array) -> Float:
        """Return p_j for the given flat pixel numbers j: (m, p)."""
        z, y, x = np.unravel_index(pixels, self.grid)
        places: Array = np.stack([z, y, x], axis=1)
        if self.tiles.offsets is not None:
            places = places + self.tiles.offsets[self.tiles.number_of(z, y, x)]
        where = places[:, 3 - self.n_dims :] * np.float32(1.0 / self.h_s)
        windows = np.lib.stride_tricks.sliding_window_view(self.padded, self.patch, axis=(0, 1, 2))
        patches = np.moveaxis(windows[z, y, x], 1, -1).reshape(len(where), -1)
        known = [where, patches] if self.marks is None else [where, patches, self.marks[pixels]]
        return np.concatenate(known, axis=1).astype(np.float32)


def whiten(guide: Float, patch_size: int, h_s: float, h_r: float) -> Features:
    """Return the features of a guide image (*spatial, channels): [x/h_s, patch/h_r]."""
    padded = pad_for_patches(guide, patch_size) / np.float32(h_r)
    return _features(padded, guide.shape[:-1], (patch_size,) * (guide.ndim - 1), h_s, h_r)


def whiten_inside(
    guide: Float,
    extent: int | tuple[int, ...],
    h_s: float,
    h_r: float,
    tiles: Callable[[tuple[int, int, int]], Tiling] = tiling,
    marks: Float | None = None,
) -> Features:
    """Return the features of the patches that lie wholly inside a guide image; sides of any parity.

    ``extent`` is that of a patch along each spatial axis, or along all of them; ``tiles`` cuts the grid of
    their positions.  ``marks`` (*positions, numbers), in units of ``h_r``, are more numbers of each patch.
    """
    extent = (extent,) * (guide.ndim - 1) if isinstance(extent, int) else extent
    spatial = tuple(size - side + 1 for size, side in zip(guide.shape[:-1], extent, strict=True))
    scaled = np.ascontiguousarray(as_volume(guide), dtype=np.float32) / np.float32(h_r)
    if marks is not None:
        marks = np.ascontiguousarray(marks, np.float32).reshape(-1, marks.shape[-1])
    return _features(scaled, spatial, extent, h_s, h_r, tiles, marks)


def _features(
    padded: Float,
    spatial: tuple[int, ...],
    extent: tuple[int, ...],
    h_s: float,
    h_r: float,
    tiles: Callable[[tuple[int, int, int]], Tiling] = tiling,
    marks: Float | None = None,
) -> Features:
    """Work out once what follows from a padded, scaled image and the size of its patches."""
    n_dims = len(spatial)
    z, y, x = (1, *spatial) if n_dims == 2 else spatial
    depth, height, width = (1, *extent) if n_dims == 2 else extent
    patch = depth, height, width
    n_marks = 0 if marks is None else marks.shape[-1]
    return Features(
        padded, spatial, h_s, h_r, n_dims, (z, y, x), z * y * x, patch,
        dim=depth * height * width * padded.shape[-1] + n_dims + n_marks,
        marks=marks,
        points=_native.Points(padded, patch, n_dims, float(np.float32(1.0 / h_s)), marks),
        tiles=tiles((z, y, x)),
    )  # fmt: skip
