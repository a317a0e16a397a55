"""Which noise the images of a file have."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..io import ImageFile
    from ..io.stacks import Stack
    from ..noise import NoiseModel
    from ..noise.models import NoiseName

_MAX_ESTIMATES = 8  # slices from which the noise level of a stack is taken


Region = tuple[int, int, int, int]  # x, y, width, height


def estimate_file_noise(
    image: ImageFile, stack: Stack, asked: NoiseName = "auto", region: Region | None = None
) -> NoiseModel:
    """Return the noise of an image: that of the middle slice, or if it is white the level of several.

    With a region of flat ground, what is measured there.
    """
    import numpy as np

    from ..noise import White, estimate_noise

    piece = middle_slice(image, stack)
    if region is not None:
        return estimate_noise(piece, channel_axis=stack.channel_axis, region=region)
    if np.isfinite(piece).any():
        model = estimate_noise(piece, noise=asked, channel_axis=stack.channel_axis)
        if model.kind != "gaussian" or len(stack) == 1:
            return model
    return White(estimate_level(image, stack))


def middle_slice(image: ImageFile, stack: Stack) -> Any:
    """Return the pixels of the middle slice."""
    return image.pixels[stack.pieces[len(stack.pieces) // 2]]


def estimate_level(image: ImageFile, stack: Stack) -> float:
    """Return the estimated noise level in the image's units: the median over some slices."""
    import numpy as np

    from ..noise import estimate_sigma

    step = max(len(stack) // _MAX_ESTIMATES, 1)
    levels = []
    for index in stack.pieces[step // 2 :: step]:
        piece = image.pixels[index]
        if np.isfinite(piece).any():
            level = estimate_sigma(piece, channel_axis=stack.channel_axis)
            levels.append(float(level))
    if not levels:
        raise ValueError("has no usable pixel: all are masked or not finite")
    return statistics.median(levels)


def value_range(image: ImageFile) -> float:
    """Return how far apart pixels can be: by dtype in 8 and 16 bits, else between the extremes."""
    import numpy as np

    pixels = image.pixels
    if pixels.dtype in (np.uint8, np.uint16):
        return float(np.iinfo(pixels.dtype).max)
    finite = pixels[np.isfinite(pixels)].astype(np.float64)
    return float(np.ptp(finite)) if finite.size else 0.0
