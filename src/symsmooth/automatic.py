"""The front door: the best we have, nothing to choose."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .gsfw import denoise_gsfw
from .image import Array
from .noise import estimate_sigma
from .options import check_positive
from .presets import Quality
from .tiles import Progress


def denoise(
    image: ArrayLike,
    sigma: float | None = None,
    *,
    quality: Quality = "balanced",
    strength: float = 1.0,
    channel_axis: int | None = None,
    mask: ArrayLike | None = None,
    rng: int | np.random.Generator | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Array:
    """Denoise an image with the best method there is here.

    Parameters
    ----------
    image : array_like
        2-D or 3-D, plus channels if ``channel_axis`` is given; any real dtype but bool.
    sigma : float or None
        Standard deviation of the white noise, in the units of the image; None estimates it.
    quality : {"preview", "fast", "balanced", "best"}
        How much time to spend.
    strength : float
        Multiplies the noise level: above 1 for a smoother picture, below 1 for more detail.
    channel_axis : int or None
        Axis of the channels.
    mask : array_like of bool or None
        True where a pixel is missing; non-finite pixels are missing too.
    rng : int, Generator or None
        Seed; the same seed gives the same bits.
    workers : int or None
        Threads; None takes all cores.
    progress : callable or None
        Called as ``progress(stage, done, total)``.

    Returns
    -------
    ndarray
        Same shape and dtype as the image.

    Notes
    -----
    GSF-W (:func:`denoise_gsfw`) at ``strength`` times the noise level.

    References
    ----------
    S. H. Chan, T. Zickler, Y. M. Lu, "Understanding symmetric smoothing filters: a Gaussian mixture
    model perspective", IEEE Trans. Image Processing 26 (2017), doi:10.1109/TIP.2017.2731208.

    Examples
    --------
    >>> import numpy as np, symsmooth
    >>> noisy = np.random.default_rng(0).normal(100.0, 20.0, (32, 32))
    >>> bool(symsmooth.denoise(noisy).std() < 6.0)
    True
    """
    check_positive("strength", strength)
    if sigma is None:
        sigma = estimate_sigma(image, channel_axis=channel_axis, mask=mask)
    return denoise_gsfw(
        image,
        sigma if strength == 1.0 else strength * sigma,
        quality=quality,
        channel_axis=channel_axis,
        mask=mask,
        rng=rng,
        workers=workers,
        progress=progress,
    )
