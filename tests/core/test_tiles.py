"""Tiles and strips: every position once."""

from __future__ import annotations

import numpy as np
import pytest

from symsmooth.core.blocks import SQUARE, cut_frames, spans, tiling


@pytest.mark.parametrize("grid", [(1, 1, 1), (1, 40, 33), (5, 17, 9)])
def test_tiles_and_strips_cover_the_grid_once(grid) -> None:
    count = np.zeros(grid, int)
    tiles = tiling(grid)
    for strip in tiles.strips:
        for z0, z1, y0, y1, x0, x1 in tiles.boxes[strip]:
            count[z0:z1, y0:y1, x0:x1] += 1
    assert (count == 1).all()


@pytest.mark.parametrize("shape", [(1, 200, 3), (30, 4, 5), (1, 1, 1)])
def test_spans_cover_the_rows_once(shape) -> None:
    count = np.zeros(shape[:2], int)
    for z0, z1, y0, y1 in spans(shape):
        count[z0:z1, y0:y1] += 1
    assert (count == 1).all()


@pytest.mark.parametrize("grid", [(40, 3, 33), (1, 2, 5), (SQUARE, 1, 2 * SQUARE + 1)])
def test_tiles_of_frames_lie_in_one_frame_and_are_moved_with_their_square(grid) -> None:
    rows, columns = (-(-grid[axis] // SQUARE) for axis in (0, 2))
    last = max(rows - 1, 1), max(columns - 1, 1)  # beyond the last square all is as there
    offsets = np.random.default_rng(0).normal(0, 9, (grid[1] + 1, *last, 3)).astype(np.float32)
    tiles = cut_frames(grid, offsets)
    count = np.zeros(grid, int)
    for number, (y0, y1, t0, t1, x0, x1) in enumerate(tiles.boxes):
        count[y0:y1, t0:t1, x0:x1] += 1
        assert t1 == t0 + 1
        square = min(y0 // SQUARE, last[0] - 1), min(x0 // SQUARE, last[1] - 1)
        np.testing.assert_array_equal(tiles.offsets[number], offsets[t0][square])
        assert tiles.number_of(np.array(y1 - 1), np.array(t0), np.array(x0)) == number
    assert (count == 1).all()
