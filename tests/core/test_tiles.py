"""Tiles and strips: every position once."""

from __future__ import annotations

import numpy as np
import pytest

from symsmooth.core.tiles import spans, tiling


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
