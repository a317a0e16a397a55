"""How an array that is too large is cut into blocks, put together again, and looked at in a few windows."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .image import Array, add_change

Index = tuple[int, ...]
Box = tuple[slice, ...]

_HALO = {2: 48, 3: 16}  # pixels, in pictures and in volumes
_SIDE = {2: 2048, 3: 160}  # of a block with its halo, at most (unless a chunk is larger)
_WINDOW = {2: (256, 256), 3: (16, 64, 64)}  # sixteen are looked at
_WHOLE = 2**20  # pixels up to which all are


@dataclass(frozen=True)
class Block:
    """A part of a picture, with what it needs around it and how it is blended with the others."""

    inner: tuple[slice, ...]  # blocks' inner parts cover the picture once
    outer: tuple[slice, ...]  # the inner part and the halo
    ramp: NDArray[np.float32]  # weight of each outer pixel; over all blocks they sum to 1

    def add_to(self, total: Array, result: Array) -> None:
        """Add what this block became, (*outer, channels), to the whole, cross-faded with the others."""
        total[self.outer] += self.ramp[..., np.newaxis] * result


def cover(spatial: Sequence[int], max_pixels: int, halo: int) -> list[Block]:
    """Cut a picture into blocks of at most ``max_pixels`` (without halo) that overlap by 2 * halo."""
    side = max(int(max_pixels ** (1.0 / len(spatial))), 1)
    whole = np.prod(spatial, dtype=float) <= max_pixels
    axes = [_cuts(size, size if whole else side, halo) for size in spatial]
    blocks = []
    for parts in itertools.product(*axes):
        inner, outer, ramps = zip(*parts, strict=True)
        blocks.append(Block(inner, outer, functools.reduce(np.multiply.outer, ramps)))
    return blocks


def _cuts(size: int, side: int, halo: int) -> list[tuple[slice, slice, NDArray[np.float32]]]:
    """Cut one axis evenly into (inner, outer, ramp)."""
    count = -(-size // side)
    return cuts_at([round(i * size / count) for i in range(count + 1)], halo)


def cuts_at(edges: Sequence[int], halo: int) -> list[tuple[slice, slice, NDArray[np.float32]]]:
    """Cut one axis at the edges into (inner, outer, ramp).

    Ramps cross over in the inner half of the overlaps.  What is nearer to the end of a halo has no
    weight: there the border is felt, which the whole picture does not have.
    """
    size, fade = edges[-1], max(halo, 1)
    cuts = []
    for low, high in itertools.pairwise(edges):
        outer = slice(max(low - halo, 0), min(high + halo, size))
        at = np.arange(outer.start, outer.stop) + 0.5
        rise = np.clip((at - low) / fade + 0.5, 0, 1) if low > 0 else np.ones(len(at))
        fall = np.clip((high - at) / fade + 0.5, 0, 1) if high < size else np.ones(len(at))
        cuts.append((slice(low, high), outer, (rise * fall).astype(np.float32)))
    return cuts


@dataclass(frozen=True)
class Grid:
    """How an array is cut; axes that are not cut have one part.

    Attributes
    ----------
    edges : for each axis, where parts begin, and the end of the last
    halo : for each axis, pixels around a part
    """

    edges: tuple[tuple[int, ...], ...]
    halo: tuple[int, ...]

    @cached_property
    def _cuts(self) -> list[list[tuple[slice, slice, Array]]]:
        return [cuts_at(edges, halo) for edges, halo in zip(self.edges, self.halo, strict=True)]

    @property
    def indices(self) -> list[Index]:
        """The blocks, in raster order."""
        return list(itertools.product(*(range(len(cuts)) for cuts in self._cuts)))

    def inner(self, index: Index) -> Box:
        """Return the block itself: blocks cover the array once."""
        return tuple(cuts[i][0] for cuts, i in zip(self._cuts, index, strict=True))

    def outer(self, index: Index) -> Box:
        """Return the block with its halo."""
        return tuple(cuts[i][1] for cuts, i in zip(self._cuts, index, strict=True))

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
            _, outer, ramp = cuts[i]
            low, high = max(outer.start, part.start), min(outer.stop, part.stop)
            here.append(slice(low - part.start, high - part.start))
            there.append(slice(low - outer.start, high - outer.start))
            weight = np.multiply.outer(weight, ramp[there[-1]])
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


def make_grid(
    shape: Sequence[int], chunks: Sequence[int], spatial: Sequence[int],
    joint: Sequence[int] = (), halo: int | None = None,
) -> Grid:  # fmt: skip
    """Cut spatial axes into multiples of the chunks; ``joint`` axes stay whole, others have parts of 1."""
    reach = _HALO[len(spatial)] if halo is None else halo
    edges, halos = [], []
    for axis, (size, chunk) in enumerate(zip(shape, chunks, strict=True)):
        if axis in joint:
            at = [0, size]
        elif axis not in spatial:
            at = list(range(size + 1))
        else:
            fitting = (_SIDE[len(spatial)] - 2 * reach) // chunk
            side = max(fitting, -(-2 * reach // chunk), 1) * chunk
            at = [*range(0, size, side), size]
            if len(at) > 2 and at[-1] - at[-2] < 2 * reach:
                del at[-2]  # a block is at least as wide as the cross-fade
        edges.append(tuple(at))
        halos.append(reach if axis in spatial and len(at) > 2 else 0)
    return Grid(tuple(edges), tuple(halos))


def windows(shape: Sequence[int], spatial: Sequence[int], plain: Sequence[int] = ()) -> list[Box]:
    """Return what is looked at for choices about the whole: everything, or sixteen windows.

    Windows are spread evenly over height and width, the last of ``spatial``, and over depth and the
    ``plain`` axes, of which each window has one place; channels are whole.
    """
    if not plain and np.prod([shape[axis] for axis in spatial], dtype=float) <= _WHOLE:
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
