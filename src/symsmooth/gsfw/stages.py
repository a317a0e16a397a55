"""The stages of GSF-W, run one after the other on a picture with white noise.

A stage is the paper's EM on the patches of a guide, then an estimator on its soft clusters: spectral
shrinkage for a pilot (the guide is the noisy picture itself), the Wiener filter for the final stage (the
guide is the last pilot).  Between pilots some of the noise is fed back; where there is much noise, low
frequencies are taken from the same method at half size.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ..core.blocks import Block, Grid, default_halo, overlap_add, plan_blocks
from ..core.channels import Groups, mix
from ..core.image import Float
from ..core.multiscale import replace_coarse
from ..core.parallel import Pool
from ..core.patches import Features, patch_means, whiten_inside
from ..mixture.em import GaussianMixture, MixtureFit, fit_mixture, initial_mixture
from ..mixture.members import Members, assign_patches
from ..noise.level import FINEST
from .estimators import spectral, spectral_of_pairs, wiener
from .light import give_back_light
from .motion import is_earlier
from .observation import Observation, with_beside
from .presets import PAIR, Preset, Stage, adapt, calibration, widen
from .repetition import share_repeated
from .still import LEAST, MIN_SHARE, still_share

# Mirrored pixels around a flat picture (a volume has none), so that its border lies in more patches:
# +0.01 dB on 180 x 180 pixels, +0.2 to +0.4 dB on tiny pictures.
_MARGIN = 2
# More pixels along each axis than the largest patch has: a few positions to make clusters of.
_MIN_POSITIONS = 4
# Shares of the time that is left, for the progress callback alone: measured on 256 x 256 pixels.
_COARSE_TIME, _CLUSTERS_TIME, _MEMBERS_TIME = 0.17, 0.25, 0.3
# Pixels a side of a patch, from which on its rim is left out where colours are filtered, whose details are
# larger than those of luminance: -.01 to -.02 dB for a sixth to a quarter of the time.
_WITHOUT_RIM = 5
_BOUND = 8.0  # sigma: no pixel of any picture has more Gaussian noise than that


@dataclass(frozen=True)
class Stages:
    """What the stages found, (*spatial, channels)."""

    images: tuple[Float, ...]  # pilots, then the final if there is one
    variance: Float | None  # of the last image, if it was asked for
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
        assert self.variance is not None
        return np.sqrt(self.variance)


class Wanted(NamedTuple):
    """What is asked for beside the result: it takes time or memory."""

    pilots: bool = False
    variance: bool = False


IMAGE_ALONE = Wanted()


def run_gsfw(
    observation: Observation,
    preset: Preset,
    rng: np.random.Generator,
    pool: Pool,
    *,
    wanted: Wanted = IMAGE_ALONE,
) -> Stages:
    """Remove white noise: from channels that show the same things together, from others apart.

    Observed pixels change by at most 8 sigma.
    """
    if observation.sigma < FINEST:
        return Stages((observation.pixels,), np.zeros_like(observation.pixels), (), {})
    groups = observation.scene.groups
    if len(groups) == 1:
        return _run_together(observation, preset, rng, pool, wanted)
    found = []
    with pool:
        for number, group in enumerate(groups):
            with pool.part(1 / (len(groups) - number)):
                part = observation.only(group)
                found.append(_run_together(part, preset, rng, pool, wanted))
    return _side_by_side(found, groups)


def _side_by_side(found: list[Stages], groups: Groups) -> Stages:
    """Return what was found of groups of channels in the order of the channels."""
    order = np.argsort([c for group in groups for c in group])

    def joined(parts: list[Float]) -> Float:
        return np.ascontiguousarray(np.concatenate(parts, axis=-1)[..., order])

    seconds: dict[str, float] = {}
    for each in found:
        for name, time_taken in each.seconds.items():
            seconds[name] = seconds.get(name, 0.0) + time_taken
    return Stages(
        tuple(
            joined(list(images)) for images in zip(*(each.images for each in found), strict=True)
        ),
        _if_all([each.variance for each in found], joined),
        tuple(mixture for each in found for mixture in each.clusters),
        seconds,
        sum(each.n_bounded for each in found),
    )


def _if_all(parts: list[Float | None], joined: Callable[[list[Float]], Float]) -> Float | None:
    """Return parts joined, or None if they are none."""
    some = [part for part in parts if part is not None]
    return joined(some) if some else None


def _run_together(
    observation: Observation,
    preset: Preset,
    rng: np.random.Generator,
    pool: Pool,
    wanted: Wanted = IMAGE_ALONE,
) -> Stages:
    """Remove white noise; channels are decorrelated for it and mixed again after."""
    transform = observation.scene.decorrelating(observation.sigma)
    grid = _plan(observation)
    with pool:
        found = _run_in_blocks(grid, observation, transform, preset, rng, pool, wanted)
    back, scale = transform.T, np.float32(calibration(preset, observation.contrast) ** 2)
    *pilots, image = (mix(image, back) for image in found.images)
    variance = None if found.variance is None else scale * mix(found.variance, back**2)
    if variance is not None and observation.is_series and len(image) >= LEAST:
        image, variance = _with_still_parts(observation, image, variance, preset, rng, pool)
    image, n_bounded = _bounded(image, observation)
    return replace(found, images=(*pilots, image), variance=variance, n_bounded=n_bounded)


def _plan(observation: Observation) -> Grid:
    """Return how it is cut into blocks; a series was cut where its frames were read."""
    spatial = observation.spatial
    if observation.is_series:
        return Grid(tuple((0, size) for size in spatial), (0,) * len(spatial))
    return plan_blocks(spatial, default_halo(len(spatial)), is_piece=observation.is_piece)


def _with_still_parts(
    observation: Observation,
    image: Float,
    variance: Float,
    preset: Preset,
    rng: np.random.Generator,
    pool: Pool,
) -> tuple[Float, Float]:
    """Let all frames be the mean of them, denoised, where nothing moves; each keeps its light."""
    pixels, sigma = observation.pixels, observation.sigma
    still = still_share(pixels, image, variance, sigma)
    if observation.observed is not None:
        still[(observation.observed == 0.0).any(axis=0)] = 0.0
    if still.mean() < MIN_SHARE:
        return image, variance
    mean = Observation.of(pixels.mean(axis=0), sigma / len(image) ** 0.5)
    found = _run_together(mean, preset, rng, pool, Wanted(variance=True))
    assert found.variance is not None
    share = still[..., np.newaxis]
    image = image + share * (found.image - image)
    lit = give_back_light(pixels.swapaxes(0, 1), image.swapaxes(0, 1), sigma).swapaxes(0, 1)
    return np.ascontiguousarray(lit), variance + share * (found.variance - variance)


def _bounded(image: Float, observation: Observation) -> tuple[Float, int]:
    """Hold observed pixels within 8 sigma of what was observed; return how many it concerned."""
    pixels, bound = observation.pixels, np.float32(_BOUND * observation.sigma)
    beyond = np.abs(image - pixels) > bound
    if observation.observed is not None:
        beyond &= observation.observed[..., np.newaxis] > 0.0
    if not beyond.any():
        return image, 0
    nearest = np.clip(image, pixels - bound, pixels + bound)
    return np.where(beyond, nearest, image), int(beyond.any(axis=-1).sum())


def _run_in_blocks(
    grid: Grid,
    observation: Observation,
    transform: Float,
    preset: Preset,
    rng: np.random.Generator,
    pool: Pool,
    wanted: Wanted,
) -> Stages:
    """Run the stages on each block with its channels transformed; times add up, clusters are the last's."""
    seconds: dict[str, float] = {}
    clusters: tuple[GaussianMixture, ...] = ()
    has_variance = wanted.variance or observation.is_series  # in which it tells what is still

    def run(block: Block, own_rng: np.random.Generator) -> tuple[Float, ...]:
        nonlocal clusters
        part = observation.part(block.outer).mixed(transform)
        found = _run_padded(part, preset, own_rng, pool, has_variance)
        clusters = found.clusters
        for name, time_taken in found.seconds.items():
            seconds[name] = seconds.get(name, 0.0) + time_taken
        images = found.images if wanted.pilots else found.images[-1:]
        return images if found.variance is None else (*images, found.variance)

    images = list(overlap_add(grid, run, rng, pool))
    variance = images.pop() if has_variance else None
    return Stages(tuple(images), variance, clusters, seconds)


def _run_padded(
    observation: Observation,
    preset: Preset,
    rng: np.random.Generator,
    pool: Pool,
    has_variance: bool = False,
) -> Stages:
    """Fit the preset to what is observed and run its stages, with a mirrored margin.

    A tiny picture is given all that it needs to hold a few patches.
    """
    *spatial, n_channels = observation.pixels.shape
    is_series = observation.is_series
    plan = adapt(preset, observation.contrast, len(spatial), n_channels, is_series=is_series)
    min_side = max(stage.patch_size for stage in plan.stages) + _MIN_POSITIONS
    margin = _MARGIN if len(spatial) == 2 or is_series else 0
    widths = [(margin, margin + max(0, min_side - size)) for size in spatial]
    if is_series:
        widths[0] = (0, max(0, 2 - spatial[0]))
    padded = observation.padded(widths)
    coarse = None
    seconds: dict[str, float] = {}
    if plan.coarse > 0.0 and min(padded.pixels.shape[:-1]) >= 2 * min_side:
        with _clock(seconds, "coarse"), pool.part(_COARSE_TIME, "half size"):
            coarse = _run_padded(padded.halved(), preset, rng, pool).image  # less noise is there
    if is_series:
        found = _run_series(padded, preset, plan, rng, pool)
    else:
        found = _run_stages(padded, plan, coarse, rng, pool, has_variance)
    inside = tuple(
        slice(before, before + size) for (before, _), size in zip(widths, spatial, strict=True)
    )
    return replace(
        found,
        images=tuple(image[inside] for image in found.images),
        variance=None if found.variance is None else found.variance[inside],
        seconds=seconds | dict(found.seconds),
    )


def _run_series(
    observation: Observation, preset: Preset, plan: Preset, rng: np.random.Generator, pool: Pool
) -> Stages:
    """Run the stages on the frames of a series, whose squares are followed as they move.

    What other frames do not show, after a cut or in a flash, is denoised without them.
    """
    followed = observation.followed()
    found = _run_stages(followed, plan, None, rng, pool, has_variance=True)
    assert found.variance is not None
    *pilots, image, variance = (each.swapaxes(0, 1) for each in (*found.images, found.variance))
    assert followed.motion is not None
    for t in followed.motion.frames_alone:
        share = followed.motion.share_alone(t, *image.shape[1:3])[..., np.newaxis]
        alone = _run_padded(observation.frame(t), preset, rng, pool, has_variance=True)
        assert alone.variance is not None
        image[t] += share * (alone.image - image[t])
        variance[t] += share * (alone.variance - variance[t])
    return replace(found, images=(*pilots, image), variance=variance)


def _run_stages(
    observation: Observation,
    plan: Preset,
    coarse: Float | None,
    rng: np.random.Generator,
    pool: Pool,
    has_variance: bool,
) -> Stages:
    """Run the pilots and the final stage on a picture that holds a few patches at least."""
    images: list[Float] = []
    clusters: list[GaussianMixture] = []
    seconds: dict[str, float] = {}
    stages = list(plan.stages)
    for number in range(len(stages)):
        stage = stages[number]
        is_final = plan.final is not None and number == len(stages) - 1
        name = "final" if is_final else f"pilot {number + 1}"
        with _clock(seconds, name), pool.part(1 / (len(stages) - number)):
            target, pilot = observation, images[-1] if is_final else None
            if number > 0 and not is_final:
                target = observation.fed_back(images[-1], stage.feedback)
            image, variance, mixture = _run_stage(
                target, pilot, stage, rng, pool, has_variance and number == len(stages) - 1
            )
            if stage.n_frames > 0:
                image = give_back_light(target.pixels, image, target.sigma)
            if coarse is not None and (number == 0 or is_final):
                share = plan.coarse_final if is_final else plan.coarse
                image = replace_coarse(image, coarse, share)
        images.append(image)
        clusters.append(mixture)
        if number == 0 and len(stages) > 1:
            repeated = share_repeated(image[..., 0], observation.sigma)
            stages[1:] = [widen(later, repeated) for later in stages[1:]]
    return Stages(tuple(images), variance, tuple(clusters), seconds)


def _by_channel(shape: tuple[int, ...]) -> Float:
    """Return (*spatial, channels) to be filled, of which each channel lies together in memory."""
    return np.moveaxis(np.empty((shape[-1], *shape[:-1]), np.float32), 0, -1)


def _run_stage(
    observation: Observation,
    pilot: Float | None,
    stage: Stage,
    rng: np.random.Generator,
    pool: Pool,
    has_variance: bool,
) -> tuple[Float, Float | None, GaussianMixture]:
    """Cluster the patches of the guide, and estimate each channel and its variance from the clusters.

    The guide is the pilot if there is one; without it clusters answer by spectral shrinkage.
    """
    if stage.n_frames == PAIR and pilot is None:
        return _run_paired(observation, stage, rng, pool, has_variance)
    guide = observation.pixels if pilot is None else pilot
    colours = _colours(guide, stage)
    shown = guide if colours is None else np.ascontiguousarray(guide[..., :1])
    fit, members = _cluster(shown, observation, stage, rng, pool, colours)
    image, n_channels = _by_channel(observation.pixels.shape), observation.n_channels
    variance = _by_channel(image.shape) if has_variance else None
    pool.expect(n_channels)
    for c in range(n_channels):
        if c == 1 and members.patch[-1] >= _WITHOUT_RIM:
            members = members.without_rim()
        noisy = np.ascontiguousarray(observation.pixels[..., c])
        if pilot is None:
            found = spectral(
                noisy, members, observation.sigma, pool, bias=stage.bias, has_variance=has_variance
            )
        else:
            own_pilot = np.ascontiguousarray(pilot[..., c])
            found = wiener(
                noisy, own_pilot, members, observation.sigma, pool, strength=stage.strength,
                has_variance=has_variance,
            )  # fmt: skip
        image[..., c] = found.image
        if variance is not None and found.variance is not None:
            variance[..., c] = found.variance
    return image, variance, fit.mixture


def _run_paired(
    observation: Observation,
    stage: Stage,
    rng: np.random.Generator,
    pool: Pool,
    has_variance: bool,
) -> tuple[Float, Float | None, GaussianMixture]:
    """Cluster patches of two frames of a series, and estimate each channel by spectral shrinkage.

    The first channel is filtered in both frames together; others, which have less detail, in one.
    """
    pixels = observation.pixels
    assert observation.motion is not None
    beside = observation.motion.beside(pixels.shape[0], pixels.shape[2])
    pairs = observation.paired(beside)
    colours = _colours(pixels, stage)
    if colours is not None:
        colours = with_beside(
            colours, observation.motion.beside(colours.shape[0], colours.shape[2])
        )
    fit, members = _cluster(pairs.pixels, pairs, stage, rng, pool, colours)
    image = _by_channel(pixels.shape)
    variance = _by_channel(pixels.shape) if has_variance else None
    pool.expect(pixels.shape[-1])
    for c in range(pixels.shape[-1]):
        noisy = np.ascontiguousarray(pixels[..., c])
        if c == 0:
            is_first = is_earlier(noisy.shape[1])
            found = spectral_of_pairs(
                noisy, beside, is_first, members, observation.sigma, pool,
                bias=stage.bias, has_variance=has_variance,
            )  # fmt: skip
        else:
            found = spectral(
                noisy, members, observation.sigma, pool, bias=stage.bias, has_variance=has_variance
            )
        image[..., c] = found.image
        if variance is not None and found.variance is not None:
            variance[..., c] = found.variance
    return image, variance, fit.mixture


def _colours(guide: Float, stage: Stage) -> Float | None:
    """Return the mean of each channel but the first in each patch; None in grey, and in a volume.

    Colours have less detail than luminance: patches of them tell no more than their means, which have less
    noise (pilots +.01 dB on cameras, final stages -.001), and take three times as long to compare.
    """
    is_volume = guide.ndim == 4 and stage.n_frames == 0
    if guide.shape[-1] == 1 or is_volume:
        return None
    return patch_means(guide[..., 1:], stage.extent(guide.ndim - 1))


def _cluster(
    guide: Float,
    observation: Observation,
    stage: Stage,
    rng: np.random.Generator,
    pool: Pool,
    means: Float | None = None,
) -> tuple[MixtureFit, Members]:
    """Learn the stage's mixture of the guide's patches, and which of them belong to each cluster.

    ``means`` of patches in other channels count as much as patches that are constant there.
    """
    extent = stage.extent(guide.ndim - 1)
    h_r = stage.h_r * observation.sigma
    marks = None if means is None else means * np.float32(np.prod(extent) ** 0.5 / h_r)
    features = whiten_inside(guide, extent, stage.h_s, h_r, observation.tiles, marks)
    return cluster_patches(features, stage, rng, pool, observation.patch_weights(extent))


def cluster_patches(
    features: Features,
    stage: Stage,
    rng: np.random.Generator,
    pool: Pool,
    weight: Float | None = None,
) -> tuple[MixtureFit, Members]:
    """Learn a stage's mixture of patches, and which of them belong to each cluster."""
    n_clusters = max(1, round(features.n_pixels / stage.pixels_per_cluster))
    with pool.part(_CLUSTERS_TIME, n_maps=stage.iterations):
        fit = fit_mixture(
            features,
            initial_mixture(features, n_clusters, rng),
            pool,
            max_iter=stage.iterations,
            tol=-np.inf,  # all iterations are run: they are few
            weight=weight,
            subsample=stage.subsample,
            reach=stage.reach,
        )
    with pool.part(_MEMBERS_TIME):
        members = assign_patches(
            features,
            fit.mixture,
            fit.near,
            pool,
            max_clusters=stage.max_clusters,
            temperature=stage.temperature,
            weight=weight,
        )
    return fit, members


@contextmanager
def _clock(seconds: dict[str, float], name: str) -> Iterator[None]:
    """Note how long it took."""
    began = time.perf_counter()
    yield
    seconds[name] = time.perf_counter() - began
