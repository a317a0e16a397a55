"""How kernels walk over an image: tiles of 256 positions, in strips that are one task each.

Tiles and strips depend on the image alone, never on the number of workers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

SQUARE = 16  # pixels a side of a flat tile


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
    """Cut a series (y, t, x) into tiles of 16 x 16 positions of a frame, and move them.

    ``offsets`` (t, squares along y, along x, 3) are those of squares of ``SQUARE`` pixels; beyond the last
    they are as there.
    """
    down, right = (
        np.minimum(np.arange(-(-size // SQUARE)), n - 1)
        for size, n in zip((grid[0], grid[2]), offsets.shape[1:3], strict=True)
    )
    moved = offsets[: grid[1]][:, down][:, :, right].swapaxes(0, 1).reshape(-1, 3)
    return replace(_cut(grid, (SQUARE, 1, SQUARE)), offsets=np.ascontiguousarray(moved, np.float32))


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
