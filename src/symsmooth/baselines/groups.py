"""Groups of similar patches: found by block matching, filtered together, put back with weights.

What BM3D and NL-Bayes share.  Pictures are planes (channels, z, y, x); in a volume patches are cubes, and
all loops are the same.  References lie on a grid; the grid is cut into tiles, each filtered on its
own crop of the picture, so that memory is bounded and no tile waits for another.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from .. import _native
from ..core.image import Array, Float, Picture
from ..core.parallel import Pool
from ..core.patches import as_volume

_TILE = {2: 64, 3: 24}  # pixels along each axis of a tile, by the number of dimensions


@dataclass(frozen=True)
class Search:
    """Which patches make a group.

    Attributes
    ----------
    side : int
        Side of a patch, pixels.
    step : int
        References are this far apart.
    radius : int
        Candidates lie at most this far from the reference along each axis.
    max_count, min_count : int
        The ``max_count`` nearest patches are taken, but those farther than ``limit`` only if they are among
        the ``min_count`` nearest.
    limit : float
        Largest mean squared difference of two patches.
    boost : bool
        Whether a patch that was in an earlier group of its tile is skipped as a reference.
    """

    side: int
    step: int
    radius: int
    max_count: int
    min_count: int = 1
    limit: float = np.inf
    boost: bool = False


@dataclass(frozen=True)
class Tile:
    """References that are filtered together, and the part of the picture their groups may touch."""

    crop: tuple[slice, ...]  # z, y, x
    references: tuple[Array, Array, Array]  # coordinates along z, y, x, in the crop


Filter = Callable[..., tuple[Float, Float]]  # (groups, crops of the images): see filter_groups


def to_planes(values: Float, min_side: int) -> Float:
    """Return (*spatial, channels) as planes (channels, z, y, x), mirrored to ``min_side`` or more."""
    lacking = [(0, max(0, min_side - size)) for size in values.shape[:-1]]
    if any(after for _, after in lacking):
        values = np.pad(values, [*lacking, (0, 0)], mode="symmetric")
    return np.ascontiguousarray(np.moveaxis(as_volume(values), -1, 0))


def from_planes(planes: Float, spatial: tuple[int, ...]) -> Float:
    """Undo :func:`to_planes`: (*spatial, channels)."""
    values = np.moveaxis(planes, 0, -1)
    if len(spatial) == 2:
        values = values[0]
    return np.ascontiguousarray(values[tuple(slice(0, size) for size in spatial)])


def whole_patches(picture: Picture, side: int, min_side: int) -> Array:
    """Return 1 for corners of patches without a missing pixel, else 0, as planes are; empty if all are."""
    if picture.mask is None:
        return np.empty((0, 0, 0), np.uint8)
    whole = to_planes(picture.observed[..., np.newaxis], min_side)[0]
    for axis in range(3):
        if axis == 0 and len(picture.spatial) == 2:
            continue
        windows = np.lib.stride_tricks.sliding_window_view(whole, side, axis=axis)
        after = [(0, side - 1 if a == axis else 0) for a in range(3)]
        whole = np.pad(windows.min(axis=-1), after)
    return np.ascontiguousarray(whole.astype(np.uint8))


def filter_groups(
    images: Sequence[Float],
    guide: Float,
    whole: Array,
    search: Search,
    kernel: Filter,
    window: Float,
    pool: Pool,
    stage: str,
) -> Float:
    """Match patches in ``guide``, filter each group, and average what overlaps: planes.

    Parameters
    ----------
    images : planes (channels, z, y, x), as many as the kernel reads; the first has the result's shape
    guide : planes
    whole : uint8 (z, y, x) or empty
        See :func:`whole_patches`.
    search : Search
    kernel : callable
        Filters the groups of a tile, given a crop of each image: returns the sums of estimates at the
        pixels, and of weights at the corners.
    window : float32 (side,)
        Weight of a patch's pixels along each axis, already in what the kernel adds.
    pool, stage
        Threads, and the name for the progress callback.
    """
    shape = images[0].shape
    patch, radius = _extents(shape, search.side), _extents(shape, search.radius, 0)
    limit = min(float(search.limit * guide.shape[0] * np.prod(patch)), 1e29)
    total, mass = np.zeros(shape, np.float32), np.zeros(shape, np.float32)

    def run(tile: Tile) -> tuple[Float, Float]:
        at = (slice(None), *tile.crop)
        groups = _native.match_patches(
            np.ascontiguousarray(guide[at]),
            np.ascontiguousarray(whole[tile.crop]) if whole.size else None,
            *tile.references, patch, radius, search.min_count, search.max_count, limit, search.boost,
        )  # fmt: skip
        return kernel(groups, *(np.ascontiguousarray(image[at]) for image in images))

    for tile, (own_total, own_mass) in pool.map(run, _tiles(shape[1:], patch, search), stage):
        total[:, *tile.crop] += own_total
        mass[:, *tile.crop] += own_mass
    return total / _spread(mass, patch, window)


def _extents(shape: tuple[int, ...], length: int, flat: int = 1) -> tuple[int, int, int]:
    """Return a length along (z, y, x); ``flat`` along z if there is one slice only."""
    return (flat if shape[1] == 1 else length, length, length)


def _tiles(grid: tuple[int, ...], patch: tuple[int, ...], search: Search) -> list[Tile]:
    """Cut the grid of references into tiles."""
    edge = _TILE[2 if grid[0] == 1 else 3]
    axes = []
    for size, side in zip(grid, patch, strict=True):
        last = size - side
        places = np.unique(np.append(np.arange(0, last + 1, search.step), last))
        cuts = []
        for start in range(0, last + 1, edge):
            own = places[(places >= start) & (places < start + edge)]
            if own.size > 0:
                low = max(int(own[0]) - search.radius, 0)
                high = min(int(own[-1]) + search.radius, last) + side
                cuts.append((slice(low, high), (own - low).astype(np.int64)))
        axes.append(cuts)
    return [Tile((z[0], y[0], x[0]), (z[1], y[1], x[1])) for z, y, x in itertools.product(*axes)]


def _spread(mass: Float, patch: tuple[int, ...], window: Float) -> Float:
    """Spread weights at corners over the patches, times the window along each axis."""
    for axis, side in enumerate(patch, start=1):
        if side == 1:
            continue
        sums = mass * window[0]
        for step in range(1, side):
            ahead = [slice(None)] * 4
            behind = list(ahead)
            ahead[axis], behind[axis] = slice(step, None), slice(None, -step)
            sums[tuple(ahead)] += window[step] * mass[tuple(behind)]
        mass = sums
    return mass
