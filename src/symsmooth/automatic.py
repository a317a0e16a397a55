"""The front door: the best we have, nothing to choose."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from .image import Array, ChannelAxis, Picture, open_image
from .noise import NoiseModel, White, resolve_noise
from .noise.models import NoiseName
from .options import check_strength, make_rng
from .presets import Quality
from .stages import denoise_in_stages
from .tiles import Pool, Progress


def denoise(
    image: ArrayLike,
    sigma: float | ArrayLike | None = None,
    *,
    quality: Quality = "balanced",
    noise: NoiseName | NoiseModel | ArrayLike = "auto",
    strength: float = 1.0,
    channel_axis: ChannelAxis = "auto",
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
    sigma : float, array_like or None
        Standard deviation of Gaussian noise in the units of the image: one number, one for each
        channel, or a map of the spatial shape; None finds out what noise there is.
    quality : {"preview", "fast", "balanced", "best"}
        How much time to spend.
    noise : {"auto", "gaussian", "poisson-gaussian", "correlated"}, model or array_like
        What kind of noise; "auto" decides from the image (:func:`estimate_noise` says what it would
        decide, and its result may be given here).  An array is a sample of pure noise.
    strength : float
        Multiplies the noise level, 0.01 to 100: above 1 for a smoother picture, below 1 for more detail.
    channel_axis : int, None or "auto"
        Axis of the channels; None if there is none; "auto": as a Pillow image or an xarray.DataArray
        says, else none.
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
        Same shape and dtype as the image.  A Pillow image (its alpha is kept as it is), an
        xarray.DataArray, a dask array or a torch tensor comes back as one.

    Notes
    -----
    The noise is made white with variance 1 (a division by its level, the generalised Anscombe transform,
    or a division by its spectrum), GSF-W (:func:`denoise_gsfw`) removes it, and the transform is undone,
    without bias.

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
    picture = open_image(image, channel_axis, mask)
    check_strength(strength)
    model = resolve_noise(picture, sigma, noise)
    generator, pool = make_rng(rng), Pool(workers, progress)
    if isinstance(model, White):
        found = denoise_in_stages(picture, strength * model.sigma, quality, generator, pool)
        return picture.restore(found.image)
    found = denoise_in_stages(_whiten(picture, model), strength, quality, generator, pool)
    return picture.restore(model.restore(found.image))


def _whiten(picture: Picture, model: NoiseModel) -> Picture:
    """Return the picture with white noise of variance 1."""
    whole = None if picture.whole is None else _whiten(picture.whole, model)
    return replace(picture, noisy=model.whiten(picture.noisy), whole=whole)
