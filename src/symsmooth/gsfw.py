"""GSF-W, our flagship for white noise: GSF whose soft clusters have learned covariances.

Three stages, each the paper's EM followed by an estimator on the clusters:

1. a pilot from the noisy image, by spectral shrinkage (no pilot is needed for that);
2. a second pilot from the first with some of the noise fed back;
3. the two-sided Wiener filter on the noisy image, clusters and moments from the pilot.

Channels are decorrelated first; clusters are shared by all, each is filtered by itself.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

import numpy as np
import scipy.ndimage
from numpy.typing import ArrayLike

from . import estimators
from .channels import decorrelate, mix
from .image import Array, Float, Picture, open_image
from .mixture import GaussianMixture, fit_mixture, initial_mixture
from .noise import contrast, resolve_sigma
from .options import make_rng
from .patches import whiten_inside
from .tiles import Pool, Progress, cover

Quality = Literal["preview", "fast", "balanced", "best"]


@dataclass(frozen=True)
class Stage:
    """One clustering and what its clusters do."""

    patch_size: int
    pixels_per_cluster: int
    h_s: float  # pixels
    h_r: float  # in units of the stage's sigma
    iterations: int
    thin: int  # EM looks at every thin-th position
    reach: float  # in h_s
    most: int  # clusters a patch may belong to
    temper: float
    both_sides: bool = False  # of the Wiener filter


@dataclass(frozen=True)
class Preset:
    """Pilots and final stage; without a final stage the last pilot is the result."""

    pilots: tuple[Stage, ...]
    final: Stage | None

    @property
    def stages(self) -> tuple[Stage, ...]:
        """All stages in their order."""
        return self.pilots if self.final is None else (*self.pilots, self.final)


_PILOT = Stage(5, 30, 10.0, 1.0, 4, 1, 2.5, 10, 0.4)
_FINAL = Stage(8, 20, 8.0, 0.5, 1, 4, 2.5, 8, 0.5, both_sides=True)
_QUICK = replace(_PILOT, pixels_per_cluster=40, iterations=2, thin=2, most=8)
_HASTY = replace(_PILOT, patch_size=4, pixels_per_cluster=60, iterations=1, thin=2, most=6)

PRESETS: Mapping[str, Preset] = MappingProxyType(
    {
        "best": Preset((_PILOT, replace(_PILOT, patch_size=4)), _FINAL),
        "balanced": Preset(
            (_QUICK, replace(_QUICK, patch_size=4)),
            replace(_FINAL, patch_size=7, pixels_per_cluster=30, reach=1.5, most=6),
        ),
        "fast": Preset(
            (_HASTY,), replace(_FINAL, patch_size=6, pixels_per_cluster=40, reach=1.5, most=6)
        ),
        "preview": Preset(
            (replace(_HASTY, pixels_per_cluster=120, h_s=8.0, reach=2.0, thin=4, most=2),), None
        ),
    }
)
_STRENGTH = {True: 3.0, False: 1.0}  # of the pilot's covariance, two-sided and one-sided
_BLOCK_PIXELS = 2048 * 2048
_HALO = 48


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
    """

    image: Array
    pilots: tuple[Float, ...]
    std: Float
    sigma: float
    quality: str
    clusters: tuple[GaussianMixture, ...]
    seconds: Mapping[str, float]


def denoise_gsfw(
    image: ArrayLike,
    sigma: float | None = None,
    *,
    quality: Quality = "balanced",
    channel_axis: int | None = None,
    mask: ArrayLike | None = None,
    rng: int | np.random.Generator | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Array:
    """Denoise with GSF-W: soft clusters of patches with learned covariances.

    Parameters
    ----------
    image : array_like
        2-D or 3-D, plus channels if ``channel_axis`` is given.
    sigma : float or None
        Standard deviation of the white noise, in the units of the image; None estimates it.
    quality : {"preview", "fast", "balanced", "best"}
        How much time to spend.
    channel_axis : int or None
        Axis of the channels.
    mask : array_like of bool or None
        True where a pixel is missing; non-finite pixels are missing too.
    rng : int, Generator or None
        Seed of the clusters' first positions; the same seed gives the same bits.
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
    The clusters are the paper's (EM with identity covariance on whitened generalised patches); what
    is new is what a cluster answers: see :mod:`symsmooth.estimators`.

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
    picture, found, transform, *_ = _solve(
        image, sigma, quality, channel_axis, mask, rng, workers, progress
    )
    return picture.restore(mix(found.images[-1], transform.T))


def fit_gsfw(
    image: ArrayLike,
    sigma: float | None = None,
    *,
    quality: Quality = "balanced",
    channel_axis: int | None = None,
    mask: ArrayLike | None = None,
    rng: int | np.random.Generator | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> GSFWResult:
    """Denoise as :func:`denoise_gsfw` does (same parameters) and return all that was found."""
    picture, found, transform, preset, noise, ratio = _solve(
        image, sigma, quality, channel_axis, mask, rng, workers, progress
    )
    back = transform.T
    spread = np.sqrt(mix(found.variance, back**2))
    spread *= np.float32(picture.scale * _calibration(preset, ratio))
    return GSFWResult(
        image=picture.restore(mix(found.images[-1], back)),
        pilots=tuple(picture.in_units(mix(pilot, back)) for pilot in found.images[:-1]),
        std=picture.in_axes(spread),
        sigma=noise * picture.scale,
        quality=quality,
        clusters=found.clusters,
        seconds=found.seconds,
    )


def _solve(
    image: ArrayLike,
    sigma: float | None,
    quality: Quality,
    channel_axis: int | None,
    mask: ArrayLike | None,
    rng: int | np.random.Generator | None,
    workers: int | None,
    progress: Progress | None,
) -> tuple[Picture, _Found, Float, Preset, float, float]:
    """Open the image, run the stages; return picture, what was found, transform, preset, sigma, ratio."""
    picture = open_image(image, channel_axis, mask)
    noise = resolve_sigma(picture, sigma)
    if quality not in PRESETS:
        raise ValueError(f"quality must be one of {', '.join(PRESETS)}, got {quality!r}")
    generator = make_rng(rng)
    preset = PRESETS[quality]
    if noise == 0.0:
        same = _Found((picture.noisy,), np.zeros_like(picture.noisy), (), {})
        return picture, same, np.eye(picture.noisy.shape[-1], dtype=np.float32), preset, 0.0, 1.0
    transform = decorrelate(picture.noisy, noise)
    ratio = contrast(picture.noisy, noise)
    preset = adapt(preset, ratio, len(picture.spatial))
    with Pool(workers, progress) as pool:
        found = _run_in_blocks(picture, transform, noise, ratio, preset, generator, pool)
    return picture, found, transform, preset, noise, ratio


def adapt(preset: Preset, ratio: float, n_dims: int) -> Preset:
    """Widen clusters and the first pilot's patches where there is much noise (small ratio).

    In a volume patches are cubes of 3 and 4 voxels a side, and clusters span fewer slices.
    """
    if n_dims == 3:
        pilots_3d = tuple(replace(p, patch_size=3, h_s=4.0) for p in preset.pilots)
        final_3d = preset.final and replace(preset.final, patch_size=4, h_s=3.5)
        return Preset(pilots_3d, final_3d)
    much = float(
        np.clip((56.0 / ratio - 15.0) / 10.0, 0.0, 1.0)
    )  # 0 below 15 grey levels, 1 above 25
    very = 56.0 / ratio >= 40.0
    pilots = [replace(p, h_s=p.h_s * (0.8 + 0.2 * much)) for p in preset.pilots]
    if very and pilots[0].patch_size == 5:
        pilots[0] = replace(pilots[0], patch_size=6)
    final = preset.final
    if final is not None:
        final = replace(final, h_s=final.h_s * (0.81 + 0.19 * much))
    return Preset(tuple(pilots), final)


def _calibration(preset: Preset, ratio: float) -> float:
    """Return what the clusters' own standard deviation is multiplied with.

    Seven pictures at sigma 5 to 75: Wiener stages claim 0.85 to 1.3 of the true error, 1.06 on average;
    the spectral pilot, which does not know its bias, from 0.9 at little noise to 0.5 at much.
    """
    return 1.0 + 0.8 / ratio if preset.final is None else 1.0 / 1.06


def feedback(ratio: float) -> float:
    """Return the share of the noise that the second pilot is given again."""
    return 0.6 - 0.1 * float(np.clip((56.0 / ratio - 30.0) / 20.0, 0.0, 1.0))


@dataclass(frozen=True)
class _Found:
    """All stages' results in decorrelated channels."""

    images: tuple[Float, ...]  # pilots, then the final, (*spatial, channels)
    variance: Float
    clusters: tuple[GaussianMixture, ...]
    seconds: Mapping[str, float]


def _run_in_blocks(
    picture: Picture,
    transform: Float,
    sigma: float,
    ratio: float,
    preset: Preset,
    rng: np.random.Generator,
    pool: Pool,
) -> _Found:
    """Run the stages, block by block if the picture is large; blocks overlap and are blended."""
    blocks = cover(picture.spatial, _BLOCK_PIXELS, _HALO)
    if len(blocks) == 1:
        noisy = mix(picture.noisy, transform)
        return _run(noisy, _weight(picture), sigma, ratio, preset, rng, pool)
    usable = _weight(picture)
    images = [np.zeros_like(picture.noisy) for _ in preset.stages]
    variance = np.zeros_like(picture.noisy)
    seconds: dict[str, float] = {}
    for number, (block, own_rng) in enumerate(zip(blocks, rng.spawn(len(blocks)), strict=True)):
        pool.part = f"block {number + 1} of {len(blocks)}: "
        own_weight = None if usable is None else usable[block.outer]
        part = mix(picture.noisy[block.outer], transform)
        found = _run(part, own_weight, sigma, ratio, preset, own_rng, pool)
        ramp = block.ramp[..., np.newaxis]
        for image, own in zip(images, found.images, strict=True):
            image[block.outer] += ramp * own
        variance[block.outer] += ramp * found.variance
        seconds = {name: seconds.get(name, 0.0) + t for name, t in found.seconds.items()}
    return _Found(tuple(images), variance, found.clusters, seconds)


def _weight(picture: Picture) -> Float | None:
    """Return 1 where a pixel was observed and 0 where it is missing, or None if none is."""
    return None if picture.valid is None else picture.usable


def _run(
    noisy: Float,
    usable: Float | None,
    sigma: float,
    ratio: float,
    preset: Preset,
    rng: np.random.Generator,
    pool: Pool,
) -> _Found:
    """Run the stages on decorrelated channels (*spatial, channels)."""
    smallest = max(stage.patch_size for stage in preset.stages) + 4
    padding = [(0, max(0, smallest - size)) for size in noisy.shape[:-1]]
    if any(after for _, after in padding):
        crop = tuple(slice(0, size) for size in noisy.shape[:-1])
        noisy = np.pad(noisy, [*padding, (0, 0)], mode="symmetric")
        usable = None if usable is None else np.pad(usable, padding, mode="symmetric")
        found = _run(noisy, usable, sigma, ratio, preset, rng, pool)
        cropped = tuple(image[crop] for image in found.images)
        return replace(found, images=cropped, variance=found.variance[crop])
    images: list[Float] = []
    clusters: list[GaussianMixture] = []
    seconds: dict[str, float] = {}
    share = feedback(ratio)
    target, level = noisy, sigma
    for number, stage in enumerate(preset.pilots):
        began = time.perf_counter()
        if number > 0:  # noise feedback
            target = images[-1] + np.float32(share) * (noisy - images[-1])
            level = share * sigma
        pilot, variance, mixture = _stage(target, target, usable, level, stage, True, rng, pool)
        images.append(pilot)
        clusters.append(mixture)
        seconds[f"pilot {number + 1}"] = time.perf_counter() - began
    if preset.final is not None:
        began = time.perf_counter()
        final, variance, mixture = _stage(
            noisy, images[-1], usable, sigma, preset.final, False, rng, pool
        )
        images.append(final)
        clusters.append(mixture)
        seconds["final"] = time.perf_counter() - began
    return _Found(tuple(images), variance, tuple(clusters), seconds)


def _stage(
    noisy: Float,
    guide: Float,
    usable: Float | None,
    sigma: float,
    stage: Stage,
    is_pilot: bool,
    rng: np.random.Generator,
    pool: Pool,
) -> tuple[Float, Float, GaussianMixture]:
    """Cluster the guide's patches, estimate each channel of noisy; return image, variance, mixture."""
    features = whiten_inside(guide, stage.patch_size, stage.h_s, stage.h_r * sigma)
    weight = None
    if usable is not None:  # the share of each patch that was observed
        share = scipy.ndimage.uniform_filter(usable, stage.patch_size, mode="reflect")
        half = stage.patch_size // 2
        inside = tuple(slice(half, half + size) for size in features.spatial)
        weight = np.ascontiguousarray(share[inside])
    n_clusters = max(1, round(features.n_pixels / stage.pixels_per_cluster))
    start = initial_mixture(features, n_clusters, rng)
    fit = fit_mixture(
        features, start, pool, max_iter=stage.iterations, tol=-np.inf, weight=weight,
        thin=stage.thin, reach=stage.reach, least_mass=0.01,
    )  # fmt: skip
    members = estimators.find_members(
        features, fit.mixture, fit.near, pool, most=stage.most, temper=stage.temper, weight=weight
    )
    results = []
    for c in range(noisy.shape[-1]):
        plane = np.ascontiguousarray(noisy[..., c])
        if is_pilot:
            results.append(estimators.spectral(plane, members, sigma, pool))
            continue
        pilot = np.ascontiguousarray(guide[..., c])
        results.append(
            estimators.wiener(
                plane, pilot, members, sigma, pool,
                both_sides=stage.both_sides, strength=_STRENGTH[stage.both_sides],
            )
        )  # fmt: skip
    image = np.stack([r.image for r in results], axis=-1)
    variance = np.stack([r.variance for r in results], axis=-1)
    return image, variance, fit.mixture
