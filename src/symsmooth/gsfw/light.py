"""Light that changes from frame to frame: what a frame shows at large, where it has no noise, it keeps.

Clusters gather patches of all frames that differ by less than their noise.  If the light changes by less
than that (a flare, a cloud, an exposure that is set anew), frames are drawn towards each other.  Over some
dozen pixels the noise averages out, and what a frame loses there is seen in what was removed from it: its
low frequencies should be those of noise.  What is more is given back.
"""

from __future__ import annotations

import numpy as np

from ..core.image import Float

# Pixels: deviation of the Gaussian mean.  Its noise is sigma / (2 sqrt(pi) 16), a 57th of a pixel's.
_WIDTH = 16.0
_STEP = 8  # pixels from one mean to the next: half a width; between them lines are drawn
_DEVIATIONS = (
    2.0  # of noise: means below it are no more than noise, and larger ones are less by its share
)


def give_back_light(noisy: Float, denoised: Float, sigma: float) -> Float:
    """Return denoised frames (y, t, x, channels) whose large-scale brightness is that of the noisy ones."""
    height, n_frames, width, n_channels = noisy.shape
    down, back_down = _means(height)
    right, back_right = _means(width)
    noise = np.outer(np.square(down).sum(axis=1), np.square(right).sum(axis=1))
    least = ((_DEVIATIONS * sigma) ** 2 * noise)[:, np.newaxis, :]
    given = denoised
    for c in range(n_channels):
        lines = down @ (noisy[..., c] - denoised[..., c]).reshape(height, -1)
        removed = lines.reshape(-1, n_frames, width) @ right.T
        square = np.square(removed)
        share = np.maximum(square - least, 0.0) / np.maximum(square, least)
        if not share.any():
            continue
        if given is denoised:
            given = denoised.copy(order="K")
        lost = (share * removed).astype(np.float32) @ back_right.T
        given[..., c] += (back_down @ lost.reshape(len(lost), -1)).reshape(height, n_frames, width)
    return given


def _means(size: int) -> tuple[Float, Float]:
    """Return what makes Gaussian means of so many pixels, (means, pixels), and pixels of those again."""
    places, pixels = np.arange(0.5 * _STEP - 0.5, size, _STEP), np.arange(size)
    weights = np.exp(-0.5 * np.square((pixels - places[:, np.newaxis]) / _WIDTH))
    weights /= weights.sum(axis=1, keepdims=True)
    back = [np.interp(pixels, places, unit) for unit in np.eye(len(places))]
    return weights.astype(np.float32), np.stack(back, axis=1).astype(np.float32)
