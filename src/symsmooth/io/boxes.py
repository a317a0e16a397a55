"""A box: slices with start and stop, one for each axis of an image."""

from __future__ import annotations

from collections.abc import Sequence

Box = tuple[slice, ...]


def check_box(box: Box, shape: Sequence[int]) -> Box:
    """Return a box if it lies in the image."""
    fits = len(box) == len(shape) and all(
        part.step in (None, 1) and 0 <= part.start < part.stop <= n
        for part, n in zip(box, shape, strict=True)
    )
    if not fits:
        raise ValueError(f"box must lie in the shape {tuple(shape)}, got {box}")
    return box
