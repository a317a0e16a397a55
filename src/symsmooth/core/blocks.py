"""How an image is cut: into blocks that are put together again, and into tiles that kernels walk over.

Every block is computed with a halo around it, as wide as its method declares (``Method.halo``), and
neighbours are cross-faded over the inner half of their halos, so there are no seams.  A picture in memory
is cut by :func:`plan_blocks` and put together by :func:`overlap_add`; what is lazy or lies in a file is
cut along its chunks (:func:`cut_along_chunks`) and put together block by block (:meth:`Grid.blend`).

Kernels walk over an image in tiles of 256 positions, in strips that are one task each.  Blocks, tiles and
strips depend on the image alone, never on the number of workers.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.fft
from numpy.typing import NDArray

from .image import Array, Float, add_change
from .parallel import Pool

Index = tuple[int, ...]
Box = tuple[slice, ...]

# Pixels of a block without its halo, about.  They bound memory: GSF-W (balanced) takes 1125 MB for 4096 x
# 4096 pixels.  Smaller blocks compute more halo: 10 % more pixels in that picture, 15 % with 1024 x 1024.
BLOCK_PIXELS = 1536 * 1536
# Of all frames of a block.  Twenty frames of 1920 x 1080 in colour take 2.8 GB, all of the process.
SERIES_PIXELS = 3 * BLOCK_PIXELS
_SERIES_HALO = 32  # clusters of a series reach less far than those of a picture
# A piece of a larger image is cut again only if it has so many times the pixels of a block with its halo:
# a file whose chunks are huge, and must be written whole, makes such pieces.
_OVERSIZED = 2.0
_WINDOW = {2: (256, 256), 3: (16, 64, 64)}  # sixteen are looked at
WHOLE = 2**20  # pixels up to which all are
SQUARE = 16  # pixels a side of a flat tile, and of squares that are followed
_FRAME_TILE = 8  # of a tile of a frame


def default_halo(n_dims: int, **_: object) -> int:
    """Return the halo of methods whose estimates reach as far as GSF-W's, in pixels.

    A cluster of GSF-W reaches 2.5 h_s and a patch: 48 pixels at most in a picture, 14 in a volume.  Half a
    halo is cross-faded, the other half keeps the block's end, which the whole does not have, that far away.
    """
    return {2: 48, 3: 16}[n_dims]


def block_side(n_dims: int) -> int:
    """Return the side of a block without its halo, in pixels."""
    return int(BLOCK_PIXELS ** (1.0 / n_dims) + 1e-6)


class Cut(NamedTuple):
    """A part of one axis."""

    inner: slice  # parts cover the axis once
    outer: slice  # the part and its halo
    ramp: Float  # weight of each outer pixel; over all parts they sum to 1


@dataclass(frozen=True)
class Block:
    """A part of an image: one cut along each axis."""

    cuts: tuple[Cut, ...]

    @property
    def inner(self) -> Box:
        """The block itself: blocks cover the image once."""
        return tuple(cut.inner for cut in self.cuts)

    @property
    def outer(self) -> Box:
        """The block with its halo."""
        return tuple(cut.outer for cut in self.cuts)

    @property
    def ramp(self) -> Float:
        """Weight of each outer pixel; over all blocks they sum to 1."""
        return functools.reduce(np.multiply.outer, [cut.ramp for cut in self.cuts])

    def fade(self, part: Array) -> None:
        """Weigh what this block became, (*outer, channels), in place, where its weight is not 1."""
        for axis, cut in enumerate(self.cuts):
            (faded,) = np.nonzero(cut.ramp != 1.0)
            weights = cut.ramp[faded].reshape(-1, *(1,) * (part.ndim - 1))
            part.swapaxes(0, axis)[faded] *= weights

    def add_to(self, total: Array, part: Array) -> None:
        """Add what this block became, (*outer, channels), to the whole, cross-faded with the others."""
        total[self.outer] += self.ramp[..., np.newaxis] * part


def _of_fast_length(part: slice, size: int) -> slice:
    """Return a part of an axis, longer by a few pixels if a Fourier transform is faster then."""
    length = part.stop - part.start
    longer = min(int(scipy.fft.next_fast_len(length, real=True)), size) - length
    after = min(longer, size - part.stop)
    return slice(part.start - (longer - after), part.stop + after)


def cuts_at(edges: Sequence[int], halo: int, *, fast: bool = False) -> list[Cut]:
    """Cut one axis at the edges; parts with halo are of a ``fast`` length if that is asked for.

    Ramps cross over in the inner half of the overlaps.  What is nearer to the end of a halo has no
    weight: there the border is felt, which the whole picture does not have.
    """
    size, fade = edges[-1], max(halo, 1)
    cuts = []
    for low, high in itertools.pairwise(edges):
        outer = slice(max(low - halo, 0), min(high + halo, size))
        if fast:
            outer = _of_fast_length(outer, size)
        at = np.arange(outer.start, outer.stop) + 0.5
        rise = np.clip((at - low) / fade + 0.5, 0, 1) if low > 0 else np.ones(len(at))
        fall = np.clip((high - at) / fade + 0.5, 0, 1) if high < size else np.ones(len(at))
        cuts.append(Cut(slice(low, high), outer, (rise * fall).astype(np.float32)))
    return cuts


@dataclass(frozen=True)
class Grid:
    """How an array is cut; axes that are not cut have one part.

    Attributes
    ----------
    edges : for each axis, where parts begin, and the end of the last
    halo : for each axis, pixels around a part
    fast : whether parts with halo are of lengths whose Fourier transforms are fast
    """

    edges: tuple[tuple[int, ...], ...]
    halo: tuple[int, ...]
    fast: bool = False

    @cached_property
    def _cuts(self) -> list[list[Cut]]:
        return [
            cuts_at(edges, halo, fast=self.fast)
            for edges, halo in zip(self.edges, self.halo, strict=True)
        ]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array."""
        return tuple(edges[-1] for edges in self.edges)

    @property
    def overhead(self) -> float:
        """Pixels that are computed for each pixel of the array: 1 if there is one block."""
        lengths = [sum(cut.outer.stop - cut.outer.start for cut in cuts) for cuts in self._cuts]
        return float(np.prod(np.divide(lengths, self.shape)))

    @property
    def blocks(self) -> list[Block]:
        """The blocks, in raster order."""
        return [Block(cuts) for cuts in itertools.product(*self._cuts)]

    @property
    def indices(self) -> list[Index]:
        """The blocks, in raster order."""
        return list(itertools.product(*(range(len(cuts)) for cuts in self._cuts)))

    def inner(self, index: Index) -> Box:
        """Return the block itself: blocks cover the array once."""
        return tuple(cuts[i].inner for cuts, i in zip(self._cuts, index, strict=True))

    def outer(self, index: Index) -> Box:
        """Return the block with its halo."""
        return tuple(cuts[i].outer for cuts, i in zip(self._cuts, index, strict=True))

    def neighbours(self, index: Index) -> list[Index]:
        """Return the blocks whose halo reaches into a block, itself among them."""
        reach = [
            range(max(i - 1, 0), min(i + 2, len(cuts))) if halo else (i,)
            for i, cuts, halo in zip(index, self._cuts, self.halo, strict=True)
        ]
        return list(itertools.product(*reach))

    def prepare(self, pixels: Array) -> Array:
        """Return pixels as floats if they are to be blended: integers are rounded once, at the end.

        Not those of 64 bits, which no float can hold.
        """
        if _is_long(pixels.dtype) or not any(self.halo):
            return pixels
        return pixels.astype(_working(pixels.dtype))

    def blend(self, index: Index, parts: Sequence[Array], dtype: np.dtype[Any]) -> Array:
        """Return a block from the denoised outer blocks of its neighbours, in their order.

        Over half the halo on both sides of a border, weights go linearly from 0 to 1 and sum to 1.
        Differences from the block itself are what is weighted: pixels on which all agree keep their bits.
        """
        if not any(self.halo):
            return parts[0]
        around = self.neighbours(index)
        inner, outer = self.inner(index), self.outer(index)
        inside = [
            slice(i.start - o.start, i.stop - o.start) for i, o in zip(inner, outer, strict=True)
        ]
        own = parts[around.index(index)][tuple(inside)]
        total = np.zeros(own.shape) if _is_long(dtype) else own.copy()
        for other, pixels in zip(around, parts, strict=True):
            here, there, weight = self._overlap(other, inner)
            if other != index and weight.any():
                change = weight * _difference(pixels[there], own[here])
                total[here] += np.where(np.isfinite(change), change, 0)  # not what neither knows
        if _is_long(dtype):
            return add_change(own, total)
        if dtype.kind in "ui":
            limits = np.iinfo(dtype)
            total = np.clip(np.rint(total), limits.min, limits.max)
        return total.astype(dtype)

    def _overlap(self, other: Index, inner: Box) -> tuple[Box, Box, Array]:
        """Return where an outer block meets an inner one, in either, and its weight there."""
        here, there, weight = [], [], np.ones((), np.float32)
        for cuts, i, part in zip(self._cuts, other, inner, strict=True):
            outer = cuts[i].outer
            low, high = max(outer.start, part.start), min(outer.stop, part.stop)
            here.append(slice(low - part.start, high - part.start))
            there.append(slice(low - outer.start, high - outer.start))
            weight = np.multiply.outer(weight, cuts[i].ramp[there[-1]])
        return tuple(here), tuple(there), weight


def _is_long(dtype: np.dtype[Any]) -> bool:
    """Whether pixels are integers that float64 cannot hold."""
    return dtype.kind in "ui" and dtype.itemsize == 8


def _difference(a: Array, b: Array) -> Array:
    """Return a - b as floats; that of long integers is taken before they lose digits."""
    if not _is_long(a.dtype):
        return a - b
    more, less = np.maximum(a, b).astype(np.uint64), np.minimum(a, b).astype(np.uint64)
    return np.where(a > b, 1.0, -1.0) * (more - less)


def _working(dtype: np.dtype[Any]) -> Any:
    return np.float32 if dtype.itemsize <= 2 or dtype == np.float32 else np.float64


def cut_evenly(spatial: Sequence[int], halo: int, max_pixels: int) -> Grid:
    """Cut an image evenly into blocks of about ``max_pixels`` without halo; a smaller one is one block."""
    side = max(int(max_pixels ** (1.0 / len(spatial)) + 1e-6), 1)
    whole = np.prod(spatial, dtype=float) <= max_pixels
    edges = []
    for size in spatial:
        count = 1 if whole else -(-size // side)
        edges.append(tuple(round(i * size / count) for i in range(count + 1)))
    return Grid(tuple(edges), (halo,) * len(spatial))


def plan_blocks(spatial: Sequence[int], halo: int, *, is_piece: bool = False) -> Grid:
    """Return how a picture in memory is cut; a piece of a larger image was cut already and stays whole."""
    n_dims = len(spatial)
    max_pixels = BLOCK_PIXELS
    if is_piece:
        oversized = int(_OVERSIZED * (block_side(n_dims) + 2 * halo) ** n_dims)
        if np.prod(spatial, dtype=float) <= oversized:
            max_pixels = oversized
    return cut_evenly(spatial, halo, max_pixels)


def cut_series(n_frames: int, plane: Sequence[int]) -> Grid:
    """Return how so many frames (y, x) are cut: not in time, and in space so that memory is bounded."""
    grid = cut_evenly(plane, _SERIES_HALO, max(SERIES_PIXELS // n_frames, 1))
    return Grid(((0, n_frames), *grid.edges), (0, *grid.halo))


def cut_along_chunks(
    shape: Sequence[int], chunks: Sequence[int], spatial: Sequence[int], halo: int,
    joint: Sequence[int] = (),
) -> Grid:  # fmt: skip
    """Cut spatial axes into multiples of the chunks; ``joint`` axes stay whole, others have parts of 1.

    Blocks have the usual size, or that of a chunk if it is larger.
    """
    edges, halos = [], []
    for axis, (size, chunk) in enumerate(zip(shape, chunks, strict=True)):
        if axis in joint:
            at = [0, size]
        elif axis not in spatial:
            at = list(range(size + 1))
        else:
            fitting = block_side(len(spatial)) // chunk
            side = max(fitting, -(-2 * halo // chunk), 1) * chunk
            at = [*range(0, size, side), size]
            if len(at) > 2 and at[-1] - at[-2] < 2 * halo:
                del at[-2]  # a block is at least as wide as the cross-fade
        edges.append(tuple(at))
        halos.append(halo if axis in spatial and len(at) > 2 else 0)
    return Grid(tuple(edges), tuple(halos))


def overlap_add(
    grid: Grid,
    work: Callable[[Block, np.random.Generator], Sequence[Float]],
    rng: np.random.Generator,
    pool: Pool,
) -> tuple[Float, ...]:
    """Do ``work`` on each block and put together the arrays (*outer, channels) that it returns.

    Each block has random numbers of its own, so what becomes of it does not depend on the others.  What is
    one block is returned as it is.
    """
    blocks = grid.blocks
    if len(blocks) == 1:
        return tuple(work(blocks[0], rng))
    totals: tuple[Float, ...] = ()
    for block, own_rng in pool.parts(zip(blocks, rng.spawn(len(blocks)), strict=True), "block"):
        parts = work(block, own_rng)
        if not totals:
            totals = tuple(np.zeros((*grid.shape, part.shape[-1]), np.float32) for part in parts)
        for total, part in zip(totals, parts, strict=True):
            block.add_to(total, part)
    return totals


def windows(shape: Sequence[int], spatial: Sequence[int], plain: Sequence[int] = ()) -> list[Box]:
    """Return what is looked at for choices about the whole: everything, or sixteen windows.

    Windows are spread evenly over height and width, the last of ``spatial``, and over depth and the
    ``plain`` axes, of which each window has one place; channels are whole.
    """
    if not plain and np.prod([shape[axis] for axis in spatial], dtype=float) <= WHOLE:
        return [tuple(slice(0, n) for n in shape)]
    sides = dict(zip(spatial, _WINDOW[len(spatial)], strict=True)) | dict.fromkeys(plain, 1)
    found = []
    for number in range(16):
        box = [slice(0, n) for n in shape]
        for axis, side in sides.items():
            place = (5 * number % 16 + 0.5) / 16  # 5: rows and depths are not alike
            if axis in spatial[-2:]:
                step = number % 4 if axis == spatial[-1] else number // 4
                place = (step + 0.5) / 4
            width = min(side, shape[axis])
            low = min(max(round(place * shape[axis] - width / 2), 0), shape[axis] - width)
            box[axis] = slice(low, low + width)
        found.append(tuple(box))
    return found


def mosaic(parts: Sequence[Array], plane: tuple[int, int]) -> Array:
    """Join sixteen windows four by four along the axes of height and width."""
    if len(parts) == 1:
        return parts[0]
    y, x = plane
    return np.concatenate([np.concatenate(parts[i : i + 4], axis=x) for i in range(0, 16, 4)], y)


def sample_of(pixels: Array, channel_axis: int | None = None) -> Array:
    """Return what is looked at of a large picture: sixteen windows, four by four, its axes as they are."""
    plane = [
        axis
        for axis in range(pixels.ndim)
        if channel_axis is None or axis != channel_axis % pixels.ndim
    ]
    boxes = windows(pixels.shape, plane)
    return mosaic([pixels[box] for box in boxes], (plane[0], plane[1]))


@dataclass(frozen=True)
class Tiling:
    """A grid of positions cut into tiles, and the tiles into strips (a strip is one task)."""

    grid: tuple[int, int, int]  # z, y, x
    tile: tuple[int, int, int]
    boxes: NDArray[np.int64]  # tiles as (z0, z1, y0, y1, x0, x1), in raster order
    strips: list[slice]  # runs of tiles that share their rows
    offsets: NDArray[np.float32] | None = None  # (tiles, 3): what is added to a tile's positions

    def number_of(
        self, z: NDArray[np.int64], y: NDArray[np.int64], x: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Return the number of the tile that a position lies in."""
        _, rows, columns = (-(-g // t) for g, t in zip(self.grid, self.tile, strict=True))
        deep, high, wide = self.tile
        return (z // deep * rows + y // high) * columns + x // wide


def tiling(grid: tuple[int, int, int]) -> Tiling:
    """Cut a grid into tiles of 256 positions: 16 x 16, or 4 x 8 x 8 in a volume."""
    return _cut(grid, (1, 16, 16) if grid[0] == 1 else (4, 8, 8))


def cut_frames(grid: tuple[int, int, int], offsets: NDArray[np.float32]) -> Tiling:
    """Cut a series (y, t, x) into tiles of 8 x 8 positions of a frame, and move them.

    Clusters are near in a series, so small tiles meet fewer that are not.

    ``offsets`` (t, squares along y, along x, 3) are those of squares of ``SQUARE`` pixels; beyond the last
    they are as there.
    """
    down, right = (
        np.minimum(np.arange(-(-size // _FRAME_TILE)) * _FRAME_TILE // SQUARE, n - 1)
        for size, n in zip((grid[0], grid[2]), offsets.shape[1:3], strict=True)
    )
    moved = offsets[: grid[1]][:, down][:, :, right].swapaxes(0, 1).reshape(-1, 3)
    return replace(
        _cut(grid, (_FRAME_TILE, 1, _FRAME_TILE)), offsets=np.ascontiguousarray(moved, np.float32)
    )


def _cut(grid: tuple[int, int, int], tile: tuple[int, int, int]) -> Tiling:
    """Cut a grid into tiles, and those into strips."""
    starts = np.meshgrid(
        *(np.arange(0, g, t) for g, t in zip(grid, tile, strict=True)), indexing="ij"
    )
    ends = [np.minimum(s + t, g) for s, t, g in zip(starts, tile, grid, strict=True)]
    pairs = [a.ravel() for both in zip(starts, ends, strict=True) for a in both]
    boxes = np.ascontiguousarray(np.stack(pairs, axis=1).astype(np.int64))
    columns = starts[0].shape[-1]
    strips = [slice(at, at + columns) for at in range(0, len(boxes), columns)]
    return Tiling(grid, tile, boxes, strips)


def spans(
    shape: tuple[int, int, int], rows: int = 64, slices: int = 8
) -> list[tuple[int, int, int, int]]:
    """Cut an image into strips (z0, z1, y0, y1): bands of rows, or of slices in a volume."""
    depth, height, _ = shape
    if depth == 1:
        return [(0, 1, y, min(y + rows, height)) for y in range(0, height, rows)]
    return [(z, min(z + slices, depth), 0, height) for z in range(0, depth, slices)]
