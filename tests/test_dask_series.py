"""A lazy series is cut in time, and has the bits of one in memory."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import symsmooth
from symsmooth.gsfw.series import BLOCK, Change, block_edges, denoise_in_blocks

da = pytest.importorskip("dask.array", reason="dask is not installed")

Array = np.ndarray[Any, Any]
OPTIONS: dict[str, Any] = {"quality": "preview", "rng": 3}
SIDE = 40


def series(n_frames: int, *more: int, seed: int = 0) -> Array:
    """Return a bar that moves over a slope, with noise: (t, y, x, ...)."""
    y, x = np.mgrid[:SIDE, :SIDE]
    clean = np.stack([2.0 * y + 90 * (abs(x - 5 - t) < 4) for t in range(n_frames)])
    clean = np.broadcast_to(clean.reshape(*clean.shape, *(1 for _ in more)), (*clean.shape, *more))
    return (clean + np.random.default_rng(seed).normal(0, 12, clean.shape)).astype(np.float32)


def lazily(pixels: Array, chunks: Any = (5, 23, 17), **options: Any) -> Array:
    result = symsmooth.denoise(da.from_array(pixels, chunks=chunks), **OPTIONS, **options)
    assert result.chunks == da.from_array(pixels, chunks=chunks).chunks
    assert result.dtype == pixels.dtype
    return np.asarray(result.compute(scheduler="threads", num_workers=2))


@pytest.mark.parametrize("n_frames", [1, 11, 23, 24, 40])
def test_blocks_are_those_of_frames_that_come_one_by_one(n_frames: int) -> None:
    seen = []

    def work(frames: Any, number: int) -> Any:
        seen.append((number, frames[0], frames[-1] + 1))
        return [Change(np.zeros(1), np.zeros(1), np.zeros(1)) for _ in frames]

    assert len(list(denoise_in_blocks(range(n_frames), work))) == n_frames
    edges = block_edges(n_frames)
    expected = [
        (number, max(first - 3, 0), min(last + 3, n_frames))
        for number, (first, last) in enumerate(itertools.pairwise(edges))
    ]
    assert seen == expected


def test_the_bits_of_a_series_in_memory() -> None:
    """Two blocks, the noise of each found in it; sigma given is the same with less to do."""
    pixels = series(2 * BLOCK + 2)
    np.testing.assert_array_equal(
        lazily(pixels, time_axis=0), symsmooth.denoise(pixels, time_axis=0, **OPTIONS)
    )


@pytest.mark.parametrize(("time", "channels"), [(0, 3), (2, 0), (3, 1)])
def test_axes_may_be_anywhere_and_channels_stay_together(time: int, channels: int) -> None:
    pixels = np.moveaxis(series(2 * BLOCK, 2), (0, 3), (time, channels))
    pixels = np.round(np.clip(pixels, 0, 255)).astype(np.uint8)
    options = {"time_axis": time, "channel_axis": channels, "sigma": 12.0}
    np.testing.assert_array_equal(
        lazily(pixels, "auto", **options), symsmooth.denoise(pixels, **OPTIONS, **options)
    )


def test_missing_pixels_and_empty_blocks() -> None:
    pixels = series(2 * BLOCK)
    pixels[3, 5:9, 5:9] = np.nan
    mask = np.zeros(pixels.shape, bool)
    mask[15, 20:30, 20:24] = True
    np.testing.assert_array_equal(
        lazily(pixels, sigma=12.0, time_axis=0, mask=mask),
        symsmooth.denoise(pixels, 12.0, time_axis=0, mask=mask, **OPTIONS),
    )
    nothing = np.full((BLOCK, SIDE, SIDE), np.nan, np.float32)
    np.testing.assert_array_equal(lazily(nothing, sigma=12.0, time_axis=0), nothing)


def test_constant_frames_stay_in_a_block_of_their_own() -> None:
    pixels = series(2 * BLOCK)
    pixels[BLOCK - 3 :] = 7
    found = lazily(pixels, sigma=12.0, time_axis=0)
    np.testing.assert_array_equal(found[BLOCK + 3 :], 7)
    np.testing.assert_array_equal(found, symsmooth.denoise(pixels, 12.0, time_axis=0, **OPTIONS))


def test_large_frames_are_cut_in_space_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("symsmooth.core.blocks.SERIES_PIXELS", 12 * 30 * 30)
    pixels = series(BLOCK)
    np.testing.assert_array_equal(
        lazily(pixels, sigma=12.0, time_axis=0),
        symsmooth.denoise(pixels, 12.0, time_axis=0, **OPTIONS),
    )


def test_nothing_is_computed_before_it_is_asked_for_and_only_what_is_needed() -> None:
    read: list[int] = []

    def frame(block: Array, block_info: Any) -> Array:
        read.append(block_info[0]["array-location"][0][0])
        return block

    array = da.from_array(series(4 * BLOCK), chunks=(1, SIDE, SIDE))
    lazy = symsmooth.denoise(
        array.map_blocks(frame, dtype=np.float32), 12.0, time_axis=0, **OPTIONS
    )
    assert not [t for t in read if t >= BLOCK]  # dask tries the function once
    read.clear()
    lazy[:2].compute(scheduler="synchronous")
    assert max(read) < 2 * BLOCK  # its own block, and the one that its halo lies in


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"time_axis": 3}, "time_axis must lie between -3 and 2"),
        ({"time_axis": 0, "tone": "srgb"}, "is for single pictures"),
        ({"time_axis": 0, "quality": "worst"}, "quality must be one of"),
        ({"time_axis": 0, "progress": print}, "progress is dask's"),
    ],
)
def test_what_cannot_be_honoured_is_refused_before_the_graph_is_made(
    options: dict[str, Any], message: str
) -> None:
    lazy = da.zeros((4, 16, 16), chunks=8)
    with pytest.raises((ValueError, TypeError), match=message):
        symsmooth.denoise(lazy, **options)


def test_only_methods_that_know_time_take_a_series() -> None:
    lazy = da.zeros((4, 16, 16), chunks=8)
    with pytest.raises(ValueError, match="nlm knows of no time; use denoise"):
        symsmooth.denoise_blocks(lazy, "nlm", time_axis=0)
    with pytest.raises(ValueError, match="the halo of a series is 3 frames"):
        symsmooth.denoise_blocks(lazy, time_axis=0, halo=8)
