"""Blocks: every pixel once, cross-faded."""

from __future__ import annotations

import numpy as np
import pytest

from symsmooth.core.blocks import cover


@pytest.mark.parametrize(
    ("spatial", "most", "halo"), [((100, 37), 400, 3), ((30, 20, 25), 1000, 2), ((9, 9), 100, 4)]
)
def test_blocks_cover_the_picture_once_and_their_ramps_sum_to_one(spatial, most, halo) -> None:
    inner, ramps = np.zeros(spatial, int), np.zeros(spatial)
    blocks = cover(spatial, most, halo)
    for block in blocks:
        inner[block.inner] += 1
        ramps[block.outer] += block.ramp
        for a, b in zip(block.inner, block.outer, strict=True):
            assert b.start <= a.start < a.stop <= b.stop
    assert (inner == 1).all()
    assert np.allclose(ramps, 1, atol=1e-6)
    assert (len(blocks) == 1) == (np.prod(spatial) <= most)
