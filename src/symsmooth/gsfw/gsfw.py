"""GSF-W, our flagship for white noise: GSF whose soft clusters have learned covariances.

Three stages, each the paper's EM followed by an estimator on the clusters:

1. a pilot from the noisy image, by spectral shrinkage (no pilot is needed for that);
2. a second pilot from the first with some of the noise fed back;
3. the two-sided Wiener filter on the noisy image, clusters and moments from the pilot.

Channels are decorrelated first; clusters are shared by all, each is filtered by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..core.image import Array, ChannelAxis, Float, open_image
from ..core.lazy import dask_aware
from ..core.options import check_one_of, make_rng
from ..core.parallel import Pool, Progress
from ..core.signatures import parameters_of
from ..mixture.em import GaussianMixture
from ..noise import resolve_sigma
from .observation import Observation
from .presets import PRESETS, Quality
from .stages import Wanted, run_gsfw


@dataclass(frozen=True)
class GSFWResult:
    """What GSF-W found.  Images are in the units and axes of the input.

    Attributes
    ----------
    image : ndarray
        The denoised image, with the input's dtype.
    pilots : tuple of float32 ndarray
        The pilots, first to last.
    std : float32 ndarray
        Posterior standard deviation of the estimate at each pixel.
    sigma : float
        The noise level used, in the image's units.
    quality : str
        The preset.
    clusters : tuple of GaussianMixture
        The mixture of each stage, whitened (of the last block in a very large picture).
    seconds : mapping
        Time of each stage.
    n_bounded : int
        Pixels that would have changed by more than 8 sigma and were held there: Gaussian noise is never
        that large.  More than a few say that sigma is too small.
    """

    image: Array
    pilots: tuple[Float, ...]
    std: Float
    sigma: float
    quality: str
    clusters: tuple[GaussianMixture, ...]
    seconds: Mapping[str, float]
    n_bounded: int


def fit_gsfw(
    image: ArrayLike,
    sigma: float | None = None,
    *,
    quality: Quality = "balanced",
    channel_axis: ChannelAxis = "auto",
    mask: ArrayLike | None = None,
    rng: int | np.random.Generator | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> GSFWResult:
    """Denoise as :func:`denoise_gsfw` does and return all that was found.

    Returns
    -------
    GSFWResult
    """
    check_one_of("quality", quality, tuple(PRESETS))
    picture = open_image(image, channel_axis, mask)
    sigma = resolve_sigma(picture, sigma)
    observation, pool = Observation.of_picture(picture, sigma), Pool(workers, progress)
    found = run_gsfw(
        observation,
        PRESETS[quality],
        make_rng(rng),
        pool,
        wanted=Wanted(pilots=True, variance=True),
    )
    return GSFWResult(
        image=picture.restore(found.image),
        pilots=tuple(picture.in_units(pilot) for pilot in found.pilots),
        std=picture.deviations(found.std),
        sigma=sigma * picture.scale,
        quality=quality,
        clusters=found.clusters,
        seconds=found.seconds,
        n_bounded=found.n_bounded,
    )


@dask_aware
@parameters_of(fit_gsfw)
def denoise_gsfw(*args: Any, **options: Any) -> Array:
    """Denoise with GSF-W: soft clusters of patches with learned covariances.

    Parameters
    ----------
    quality : {"preview", "fast", "balanced", "best"}
        How much time to spend.

    Returns
    -------
    ndarray
        Same shape and dtype as the image.

    Notes
    -----
    The clusters are the paper's (EM with identity covariance on whitened generalised patches); what
    is new is what a cluster answers: see :mod:`symsmooth.gsfw.estimators`.

    References
    ----------
    S. H. Chan, T. Zickler, Y. M. Lu, "Understanding symmetric smoothing filters: a Gaussian mixture
    model perspective", IEEE Trans. Image Processing 26 (2017), doi:10.1109/TIP.2017.2731208.

    Examples
    --------
    >>> import numpy as np, symsmooth
    >>> noisy = np.random.default_rng(0).normal(100.0, 20.0, (32, 32))
    >>> bool(symsmooth.denoise_gsfw(noisy, 20.0).std() < 6.0)
    True
    """
    return fit_gsfw(*args, **options).image
