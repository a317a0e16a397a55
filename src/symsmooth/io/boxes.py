"""Boxes of an image: slices with start and stop, one for each axis; and its smaller copies, box by box.

Smaller copies are what viewers of large images want; they are made again as they were made.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np

from .images import Array

Box = tuple[slice, ...]
How = Literal["nearest", "mean"]


def check_box(box: Box, shape: Sequence[int]) -> Box:
    """Return a box if it lies in the image."""
    fits = len(box) == len(shape) and all(
        part.step in (None, 1) and 0 <= part.start < part.stop <= n
        for part, n in zip(box, shape, strict=True)
    )
    if not fits:
        raise ValueError(f"box must lie in the shape {tuple(shape)}, got {box}")
    return box


def how_reduced(full: Any, small: Any, side: int = 64) -> How:
    """Tell whether a smaller copy holds every n-th pixel or means, from one corner of it."""
    corner = tuple(slice(0, min(side, size)) for size in small.shape)
    expected = reduced(full, small.shape, corner, "nearest")
    return "nearest" if np.array_equal(expected, small[corner], equal_nan=True) else "mean"


def build(full: Any, small: Any, how: How) -> None:
    """Fill a smaller copy from the level above it, a piece at a time."""
    for box in boxes(small.shape, getattr(small, "chunks", None) or small.shape):
        small[box] = reduced(full, small.shape, box, how)


def reduced(full: Any, shape: Sequence[int], box: Box, how: How) -> Array:
    """Return one box of the smaller copy; ``full`` is anything that can be indexed by slices."""
    factors = [max(round(a / b), 1) for a, b in zip(full.shape, shape, strict=True)]
    wanted = tuple(
        slice(part.start * f, min(part.stop * f, size))
        for part, f, size in zip(box, factors, full.shape, strict=True)
    )
    pixels = np.asarray(full[wanted])
    if how == "nearest":
        pixels = pixels[tuple(slice(None, None, f) for f in factors)]
    else:
        pixels = means(pixels, factors)
    lacking = [
        (0, part.stop - part.start - size) for part, size in zip(box, pixels.shape, strict=True)
    ]
    return np.pad(pixels, lacking, mode="edge") if np.any(lacking) else pixels


def means(pixels: Array, factors: Sequence[int]) -> Array:
    """Average cells of the given size; cells at the far border may be smaller."""
    sums: Array = pixels.astype(np.float64)
    counts = np.ones(1)
    for axis, f in enumerate(factors):
        starts = np.arange(0, pixels.shape[axis], f)
        sums = np.add.reduceat(sums, starts, axis=axis)
        sizes = np.diff([*starts, pixels.shape[axis]]).astype(float)
        counts = np.multiply.outer(counts, sizes)
    means = sums / counts[0]
    return (np.rint(means) if pixels.dtype.kind in "ui" else means).astype(pixels.dtype)


def boxes(shape: Sequence[int], step: Sequence[int]) -> Iterator[Box]:
    """Yield the pieces of a grid, in order."""
    starts = [range(0, size, n) for size, n in zip(shape, step, strict=True)]
    for place in itertools.product(*starts):
        yield tuple(
            slice(at, min(at + n, size)) for at, n, size in zip(place, step, shape, strict=True)
        )
