"""The stages of GSF-W, run one after the other on a picture with white noise.

A stage is the paper's EM on the patches of a guide, then an estimator on its soft clusters: spectral
shrinkage for a pilot (the guide is the noisy picture itself), the Wiener filter for the final stage (the
guide is the last pilot).  Between pilots some of the noise is fed back; where there is much noise, low
frequencies are taken from the same method at half size.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import scipy.ndimage

from ..core.blocks import Block, default_halo, overlap_add, plan_blocks
from ..core.channels import decorrelate, mix
from ..core.image import Float, Picture
from ..core.parallel import Pool
from ..core.patches import whiten_inside
from ..mixture.em import GaussianMixture, fit_mixture, initial_mixture
from ..mixture.members import assign_patches
from ..noise import contrast
from . import estimators
from .multiscale import halve, replace_coarse
from .presets import PRESETS, Preset, Quality, Stage, adapt, calibration, widen
from .repetition import share_repeated

_MARGIN = 2  # pixels
_NO_NOISE = (
    3e-7  # of the picture's spread: float32 pixels, in steps of 6e-8, cannot hold less noise
)
_BOUND = 8.0  # sigma: no pixel of any picture has more Gaussian noise than that


@dataclass(frozen=True)
class Stages:
    """What the stages found, (*spatial, channels)."""

    images: tuple[Float, ...]  # pilots, then the final if there is one
    variance: Float  # of the last image
    clusters: tuple[GaussianMixture, ...]
    seconds: Mapping[str, float]
    n_bounded: int = 0  # pixels whose change was held at the bound

    @property
    def image(self) -> Float:
        """The result."""
        return self.images[-1]

    @property
    def pilots(self) -> tuple[Float, ...]:
        """The images before the result."""
        return self.images[:-1]

    @property
    def std(self) -> Float:
        """Standard deviation of the result at each pixel."""
        return np.sqrt(self.variance)


def run_gsfw(
    picture: Picture, sigma: float, quality: Quality, rng: np.random.Generator, pool: Pool
) -> Stages:
    """Remove white noise from a picture; channels are decorrelated for it and mixed again after.

    Observed pixels change by at max_clusters 8 sigma.
    """
    if quality not in PRESETS:
        raise ValueError(f"quality must be one of {', '.join(PRESETS)}, got {quality!r}")
    if sigma < _NO_NOISE:
        return Stages((picture.noisy,), np.zeros_like(picture.noisy), (), {})
    preset, ratio = PRESETS[quality], contrast(picture.scene.noisy, sigma)
    transform = decorrelate(picture.scene.noisy, sigma)
    with pool:
        found = _run_in_blocks(picture, transform, sigma, ratio, preset, rng, pool)
    back, scale = transform.T, np.float32(calibration(preset, ratio) ** 2)
    *pilots, image = (mix(image, back) for image in found.images)
    image, n_bounded = _bounded(image, picture, sigma)
    return replace(
        found,
        images=(*pilots, image),
        variance=scale * mix(found.variance, back**2),
        n_bounded=n_bounded,
    )


def _bounded(image: Float, picture: Picture, sigma: float) -> tuple[Float, int]:
    """Hold observed pixels within 8 sigma of what was observed; return how many it concerned."""
    bound = np.float32(_BOUND * sigma)
    beyond = np.abs(image - picture.noisy) > bound
    if picture.mask is not None:
        beyond &= ~picture.mask[..., np.newaxis]
    if not beyond.any():
        return image, 0
    nearest = np.clip(image, picture.noisy - bound, picture.noisy + bound)
    return np.where(beyond, nearest, image), int(beyond.any(axis=-1).sum())


def _run_in_blocks(
    picture: Picture,
    transform: Float,
    sigma: float,
    ratio: float,
    preset: Preset,
    rng: np.random.Generator,
    pool: Pool,
) -> Stages:
    """Run the stages, block by block if the picture is large; blocks overlap and are blended."""
    observed = None if picture.mask is None else picture.observed
    seconds: dict[str, float] = {}
    clusters: tuple[GaussianMixture, ...] = ()

    def run(block: Block, own_rng: np.random.Generator) -> tuple[Float, ...]:
        nonlocal clusters
        inside = None if observed is None else observed[block.outer]
        part = mix(picture.noisy[block.outer], transform)
        found = _run_padded(part, inside, sigma, ratio, preset, own_rng, pool)
        clusters = found.clusters
        for name, time_taken in found.seconds.items():
            seconds[name] = seconds.get(name, 0.0) + time_taken
        return (*found.images, found.variance)

    grid = plan_blocks(picture, default_halo(len(picture.spatial)))
    *images, variance = overlap_add(grid, run, rng, pool)
    return Stages(tuple(images), variance, clusters, seconds)


def _run_padded(
    noisy: Float,
    observed: Float | None,
    sigma: float,
    ratio: float,
    preset: Preset,
    rng: np.random.Generator,
    pool: Pool,
) -> Stages:
    """Run the stages on decorrelated channels (*spatial, channels), with a mirrored margin.

    The margin lets the border of a flat picture lie in more patches; a tiny picture is given all that
    it needs to hold a few.
    """
    plan = adapt(preset, ratio, noisy.ndim - 1, noisy.shape[-1])
    smallest = max(stage.patch_size for stage in plan.stages) + 4
    margin = _MARGIN if noisy.ndim == 3 else 0
    padding = [(margin, margin + max(0, smallest - size)) for size in noisy.shape[:-1]]
    inside = tuple(slice(margin, margin + size) for size in noisy.shape[:-1])
    noisy = np.pad(noisy, [*padding, (0, 0)], mode="symmetric")
    observed = None if observed is None else np.pad(observed, padding, mode="symmetric")
    coarse = None
    seconds: dict[str, float] = {}
    if plan.coarse > 0.0 and min(noisy.shape[:-1]) >= 2 * smallest:
        with _clock(seconds, "coarse"):
            coarse = _denoise_at_half_size(noisy, observed, sigma, preset, rng, pool)
    found = _run_stages(noisy, observed, sigma, plan, coarse, rng, pool)
    images = tuple(image[inside] for image in found.images)
    return replace(
        found, images=images, variance=found.variance[inside], seconds=seconds | dict(found.seconds)
    )


def _run_stages(
    noisy: Float,
    observed: Float | None,
    sigma: float,
    plan: Preset,
    coarse: Float | None,
    rng: np.random.Generator,
    pool: Pool,
) -> Stages:
    """Run the pilots and the final stage on a picture that holds a few patches at least."""
    images: list[Float] = []
    clusters: list[GaussianMixture] = []
    seconds: dict[str, float] = {}
    repeated = 0.0
    for number, stage in enumerate(plan.pilots):
        with _clock(seconds, f"pilot {number + 1}"):
            target = noisy
            if number > 0:  # noise feedback
                target = images[-1] + np.float32(stage.feedback) * (noisy - images[-1])
            level = stage.feedback * sigma
            wide = widen(stage, repeated)
            image, variance, mixture = _run_stage(target, None, observed, level, wide, rng, pool)
            if number == 0 and coarse is not None:
                image = replace_coarse(image, coarse, plan.coarse)
        images.append(image)
        clusters.append(mixture)
        if number == 0 and len(plan.stages) > 1:
            repeated = share_repeated(image[..., 0], sigma)
    if plan.final is not None:
        with _clock(seconds, "final"):
            wide = widen(plan.final, repeated)
            image, variance, mixture = _run_stage(
                noisy, images[-1], observed, sigma, wide, rng, pool
            )
            if coarse is not None:
                image = replace_coarse(image, coarse, plan.coarse_final)
        images.append(image)
        clusters.append(mixture)
    return Stages(tuple(images), variance, tuple(clusters), seconds)


def _denoise_at_half_size(
    noisy: Float,
    observed: Float | None,
    sigma: float,
    preset: Preset,
    rng: np.random.Generator,
    pool: Pool,
) -> Float:
    """Denoise at half size, where there is less noise."""
    small = halve(noisy)
    share = None if observed is None else halve(observed[..., np.newaxis])[..., 0]
    level = sigma * 0.5 ** ((noisy.ndim - 1) / 2)
    prefix, pool.prefix = pool.prefix, f"{pool.prefix}half size: "
    found = _run_padded(small, share, level, contrast(small, level), preset, rng, pool)
    pool.prefix = prefix
    return found.image


def _run_stage(
    noisy: Float,
    pilot: Float | None,
    observed: Float | None,
    sigma: float,
    stage: Stage,
    rng: np.random.Generator,
    pool: Pool,
) -> tuple[Float, Float, GaussianMixture]:
    """Cluster the guide's patches, estimate each channel; return image, variance, mixture."""
    guide = noisy if pilot is None else pilot
    features = whiten_inside(guide, stage.patch_size, stage.h_s, stage.h_r * sigma)
    weight = None
    if observed is not None:  # the share of each patch that was observed
        share = scipy.ndimage.uniform_filter(observed, stage.patch_size, mode="reflect")
        half = stage.patch_size // 2
        inside = tuple(slice(half, half + size) for size in features.spatial)
        weight = np.ascontiguousarray(share[inside])
    n_clusters = max(1, round(features.n_pixels / stage.pixels_per_cluster))
    start = initial_mixture(features, n_clusters, rng)
    fit = fit_mixture(
        features, start, pool, max_iter=stage.iterations, tol=-np.inf, weight=weight,
        subsample=stage.subsample, reach=stage.reach, min_mass=0.01,
    )  # fmt: skip
    members = assign_patches(
        features,
        fit.mixture,
        fit.near,
        pool,
        max_clusters=stage.max_clusters,
        temperature=stage.temperature,
        weight=weight,
    )
    results = []
    for c in range(noisy.shape[-1]):
        plane = np.ascontiguousarray(noisy[..., c])
        if pilot is None:
            results.append(estimators.spectral(plane, members, sigma, pool))
        else:
            result = estimators.wiener(
                plane, np.ascontiguousarray(pilot[..., c]), members, sigma, pool,
                strength=stage.strength,
            )  # fmt: skip
            results.append(result)
    image = np.stack([r.image for r in results], axis=-1)
    variance = np.stack([r.variance for r in results], axis=-1)
    return image, variance, fit.mixture


@contextmanager
def _clock(seconds: dict[str, float], name: str) -> Iterator[None]:
    """Note how long it took."""
    began = time.perf_counter()
    yield
    seconds[name] = time.perf_counter() - began
