"""An image of many axes as the pictures and volumes that are denoised one by one.

Channels stay together.  Height and width are always there; depth (Z) makes a volume, so do other
axes if asked for.  Time, pages and axes nobody named make stacks: one piece for each place along them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from .base import FileError
from .images import ImageFile

Third = Literal["auto", "none", "volume", "time"]
_UNNAMED = "QI"  # axes of stacks and pages that may be anything


@dataclass(frozen=True)
class Stack:
    """How an image is cut."""

    pieces: list[tuple[int | slice, ...]]  # indices: a number or a whole slice for each axis
    channel_axis: int | None  # of a piece
    third: str  # letter of the third axis of volumes; empty for pictures
    time_axis: int | None = None  # of a piece, if it is a series

    def __len__(self) -> int:
        return len(self.pieces)

    def __iter__(self) -> Iterator[tuple[int | slice, ...]]:
        return iter(self.pieces)


def cut(image: ImageFile, third: Third = "auto") -> Stack:
    """Say which pieces of an image are denoised, each by itself.

    ``third`` is the axis that joins height and width: Z if there is one ("auto"); none; Z or else the only
    other axis ("volume"); time, or else the only other axis if nobody named it.

    Examples
    --------
    >>> import numpy as np
    >>> from symsmooth.io import ImageFile
    >>> stack = cut(ImageFile(np.zeros((5, 9, 8)), None, None, "TIFF", axes="TYX"))
    >>> len(stack), stack.third
    (5, '')
    """
    axes = image.axes
    channel_axis = image.channel_axis
    if channel_axis is not None:
        channel_axis %= image.pixels.ndim
    spatial = _plane(axes, channel_axis)
    depth = _third_axis(image, third, spatial, channel_axis)
    if depth is not None and image.pixels.shape[depth] == 1:
        depth = None  # a volume of one slice is a picture
    kept = {*spatial, channel_axis, depth}
    ranges = [
        [slice(None)] if i in kept else list(range(n)) for i, n in enumerate(image.pixels.shape)
    ]
    before = sum(i not in kept for i in range(channel_axis)) if channel_axis is not None else 0
    return Stack(
        list(itertools.product(*ranges)),
        None if channel_axis is None else channel_axis - before,
        "" if depth is None else axes[depth],
        None if depth is None or third != "time" else sum(i in kept for i in range(depth)),
    )


def _plane(axes: str, channel_axis: int | None) -> set[int]:
    """Return the axes of height and width: by name, else the last two that are no channels."""
    if "Y" in axes and "X" in axes:
        return {axes.index("Y"), axes.index("X")}
    return set([i for i in range(len(axes)) if i != channel_axis][-2:])


def _third_axis(
    image: ImageFile, third: Third, spatial: set[int], channel_axis: int | None
) -> int | None:
    """Return the axis of depth, or None."""
    axes = image.axes
    if third == "none":
        return None
    others = [i for i in range(len(axes)) if i not in {*spatial, channel_axis}]
    longer = [i for i in others if image.pixels.shape[i] > 1]
    if third == "time":
        if "T" in axes:
            return axes.index("T")
        if len(longer) == 1 and axes[longer[0]] in _UNNAMED:
            return longer[0]
        raise FileError(
            f"has no axis of time: its axes are {axes}; denoise it as a volume, or slice by slice",
            "volume",
            "slices",
        )
    if "Z" in axes:
        return axes.index("Z")
    if third == "auto":
        return None
    if len(longer) != 1:
        shape = "x".join(str(n) for n in image.pixels.shape)
        raise FileError(
            f"is no volume: its axes are {axes}, {shape}; denoise it slice by slice", "slices"
        )
    return longer[0]
