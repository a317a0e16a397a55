"""Blocks: every pixel once, cross-faded, no more of them computed than needed, none cut again."""

from __future__ import annotations

import numpy as np
import pytest

from symsmooth import METHODS
from symsmooth.core import blocks
from symsmooth.core.blocks import Grid, cut_along_chunks, cut_evenly, overlap_add, plan_blocks
from symsmooth.core.image import Piece, open_image
from symsmooth.core.parallel import Pool

GRIDS = [((100, 37), 400, 3), ((30, 20, 25), 1000, 2), ((9, 9), 100, 4)]


@pytest.mark.parametrize(("spatial", "most", "halo"), GRIDS)
def test_blocks_cover_the_picture_once_and_their_ramps_sum_to_one(spatial, most, halo) -> None:
    inner, outer, ramps = np.zeros(spatial, int), np.zeros(spatial, int), np.zeros(spatial)
    grid = cut_evenly(spatial, halo, most)
    for block in grid.blocks:
        inner[block.inner] += 1
        outer[block.outer] += 1
        ramps[block.outer] += block.ramp
        for a, b in zip(block.inner, block.outer, strict=True):
            assert b.start <= a.start < a.stop <= b.stop
    assert (inner == 1).all()
    assert np.allclose(ramps, 1, atol=1e-6)
    assert (len(grid.blocks) == 1) == (np.prod(spatial) <= most)
    assert grid.overhead == pytest.approx(outer.sum() / outer.size)
    assert grid.shape == spatial


@pytest.mark.parametrize(("spatial", "most", "halo"), GRIDS)
def test_what_blocks_keep_is_kept(spatial, most, halo) -> None:
    """Pixels and their places come back, from one block bit for bit."""
    image = np.random.default_rng(0).random((*spatial, 2), np.float32)
    grid = cut_evenly(spatial, halo, most)

    def keep(block: blocks.Block, rng: np.random.Generator) -> list[np.ndarray]:
        return [image[block.outer], -image[block.outer][..., :1]]

    first, second = overlap_add(grid, keep, np.random.default_rng(0), Pool(1))
    assert np.abs(first - image).max() < 1e-6
    assert np.abs(second + image[..., :1]).max() < 1e-6
    if len(grid.blocks) == 1:
        assert np.array_equal(first, image)


@pytest.mark.parametrize(("spatial", "most", "halo"), GRIDS)
def test_fading_in_place_is_weighing(spatial, most, halo) -> None:
    part_of = np.random.default_rng(0).random((*spatial, 2), np.float32)
    for block in cut_evenly(spatial, halo, most).blocks:
        expected, part = block.ramp[..., None] * part_of[block.outer], part_of[block.outer].copy()
        block.fade(part)
        assert np.allclose(part, expected, rtol=1e-6)


def test_a_block_has_its_own_random_numbers_and_name() -> None:
    """What becomes of a block does not depend on how many numbers another one drew."""
    grid, names = Grid(((0, 5, 10), (0, 4)), (1, 1)), []
    pool = Pool(1, lambda fraction, what: names.append(what))

    def draw(count: int, block: blocks.Block, rng: np.random.Generator) -> list[np.ndarray]:
        list(pool.map(abs, [1], "drawing"))
        if block.inner[0].start == 0:
            rng.random(count)
        return [rng.random((*(part.stop - part.start for part in block.outer), 1))]

    results = [
        overlap_add(grid, lambda *own, n=count: draw(n, *own), np.random.default_rng(7), pool)[0]
        for count in (1, 5)
    ]
    assert np.array_equal(results[0][6:], results[1][6:])
    assert not np.array_equal(results[0][:4], results[1][:4])
    assert names[:2] == ["block 1 of 2: drawing", "block 2 of 2: drawing"]


@pytest.mark.parametrize(
    ("name", "shape", "most"),
    [
        ("denoise", (96, 512, 512), 1.6),
        ("gsf", (96, 512, 512), 1.6),
        ("nlm", (96, 512, 512), 1.7),
        ("denoise", (64, 512, 512), 1.6),
        ("denoise", (200, 200, 200), 1.6),
        ("denoise", (400, 400, 400), 1.95),
        ("denoise", (8000, 8000), 1.15),
        ("gsf", (8000, 8000), 1.15),
    ],
)
def test_few_pixels_are_computed_twice(name, shape, most) -> None:
    """In memory, and in dask arrays and files with the usual chunks."""
    halo = METHODS[name].halo(len(shape))
    spatial = range(len(shape))
    assert 1.0 < plan_blocks(shape, halo).overhead <= most
    chunks = [64 if len(shape) == 3 else 512] * len(shape)
    assert 1.0 < cut_along_chunks(shape, chunks, spatial, halo).overhead <= most + 0.05


@pytest.mark.parametrize(
    ("shape", "chunk"),
    [
        ((5000, 7000), 1),
        ((5000, 7000), 600),
        ((5000, 7000), 2048),
        ((96, 512, 512), 1),
        ((96, 512, 512), 100),
        ((300, 512, 512), 128),
    ],
)
@pytest.mark.parametrize("name", METHODS)
def test_a_block_is_never_cut_again(name, shape, chunk) -> None:
    halo = METHODS[name].halo(len(shape))
    grid = cut_along_chunks(shape, [chunk] * len(shape), range(len(shape)), halo)
    for index in grid.indices:
        outer = tuple(part.stop - part.start for part in grid.outer(index))
        assert len(plan_blocks(outer, halo, is_piece=True).blocks) == 1


def test_a_huge_chunk_that_must_stay_whole_is_still_done_in_blocks() -> None:
    huge = (9000, 9000)
    assert len(plan_blocks(huge, 48, is_piece=True).blocks) == len(plan_blocks(huge, 48).blocks)


def test_pieces_are_pictures_of_a_whole() -> None:
    sample = open_image(np.random.default_rng(0).random((20, 20)))
    assert open_image(Piece(np.ones((9, 9)), sample)).whole is sample


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("n_dims", [2, 3])
def test_every_method_declares_a_halo_for_pictures_and_for_volumes(name, n_dims) -> None:
    halo = METHODS[name].halo(n_dims)
    assert isinstance(halo, int)
    assert 8 <= halo <= 48
    assert METHODS[name].halo(3) < METHODS[name].halo(2)


def test_a_wider_window_asks_for_a_wider_halo() -> None:
    assert METHODS["nlm"].halo(2, h_s=20.0) >= 2 * (60 + 2)
    assert METHODS["nlm"].halo(2, window=101, patch_size=7) >= 2 * (50 + 3)
    assert METHODS["gaussian"].halo(2, h_s=12.0) >= 2 * 36
    assert METHODS["bilateral"].halo(3, h_s=4.0) >= 2 * 12
    assert METHODS["lark"].halo(2, window=61) >= 2 * 30
    assert METHODS["gsf"].halo(2, h_s=20.0) > METHODS["gsf"].halo(2)
