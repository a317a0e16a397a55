"""GSF, the paper's method: learn a mixture of patches, answer with its means, blend by SURE.

Two passes, as the paper's remark under SURE asks.  Pass 1 learns the mixture from the noisy image
and gives a pilot (lambda = 0).  Pass 2 learns it from the pilot, takes the responsibilities from there
and averages the *noisy* patches; responsibilities then hardly depend on the noise, and SURE is honest.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.ndimage
from numpy.typing import ArrayLike

from ..core.blocks import Block, overlap_add, plan_blocks
from ..core.image import Array, ChannelAxis, Float, Picture, open_image
from ..core.lazy import dask_aware
from ..core.options import check_at_least_one, check_odd, check_positive, make_rng
from ..core.parallel import Pool, Progress
from ..core.patches import whiten
from ..core.signatures import parameters_of
from ..noise import resolve_sigma
from .averages import aggregate_means, average_members, cluster_averages
from .em import REACH, GaussianMixture, MixtureFit, fit_mixture, initial_mixture
from .figures import flat_view, gsf_figure
from .selection import SecantSearch, Sure, blend, check_reach, choose_clusters

# Pass 2.  The more clusters the noisy image asks for, the less its pilot is denoised: so the spread of a
# cluster of pilot patches follows k/n.  Mean of 12 development pictures at sigma 20/40/80: factor 1.9:
# +.02/+.04/+.03 dB, 2.6: -.09/-.09/-.06; 2.8 with exponent 0.4: -.03/+.01/+.02.
_SPREAD, _SPREAD_POWER = 2.2, 1.0 / 3.0
_REFINE = 6  # clusters of pass 2 for one of pass 1; 4: -.08/-.13/-.06 dB, 8: +.04/+.05/+.04
_MIN_MEMBERS = 3  # pixels for one cluster of pass 2, at least; 5: -.10 dB at sigma 20
# EM steps of pass 1: few where clusters are many and steps costly.  Always 6: -.02/-.06/-.11 dB against
# always 15.  Pass 2 starts from a pilot: one step does (_ONE_STEP).
_MIN_STEPS, _MAX_STEPS, _STEPS_PER_DENSITY = 6, 15, 0.15
# Halo of blocks in h_s, by the number of dimensions.  What is 3 h_s away has the weight exp(-4.5); in a
# volume, where such halos would have more than twice the voxels of their block, half of that must do.
_HALO = {2: 3.0, 3: 1.5}
_CHOOSING, _FIRST_PASS, _CLUSTERING, _REFINING = 0.3, 0.5, 0.8, 0.5  # shares of time, for progress


@dataclass(frozen=True)
class GSFResult:
    """What GSF learned.  Images are in the units and axes of the input.

    Attributes
    ----------
    image : ndarray
        The denoised image, with the input's dtype.
    pilot, average : float32 ndarray
        Pass 1's result; u of the last pass, before the noisy image is blended in.
    sigma : float
        The noise level used, in the image's units.
    n_clusters, refined_clusters : int
        k of the first and of the last pass.
    h_s, h_r, refined_h_r : float
        Spatial (pixels) and range (image units) spread of a cluster, first and last pass.
    fidelity : float
        lambda.
    sure : Sure
        SURE as a function of lambda, in the image's units squared.
    deviation : float
        delta(k) of the first pass.
    search : SecantSearch or None
        How k was found; None if it was given.
    mixture : GaussianMixture
        The last pass's mixture, in whitened coordinates [x/h_s, patch/h_r] (patches without units);
        of the last block if the picture is so large that it is done in blocks.
    log_likelihoods : tuple of float
        Mean log-likelihood after each EM step of the last pass.
    channel_axis : int or None
        Axis of the channels, as it was given.
    """

    image: Array
    pilot: Float
    average: Float
    sigma: float
    n_clusters: int
    refined_clusters: int
    h_s: float
    h_r: float
    refined_h_r: float
    fidelity: float
    sure: Sure
    deviation: float
    search: SecantSearch | None
    mixture: GaussianMixture
    log_likelihoods: tuple[float, ...]
    channel_axis: int | None = None

    def plot(self) -> Any:
        """Return a matplotlib figure: delta(k), SURE against lambda, pilot, average and result.

        Needs the extra ``plots``.  A volume shows its middle slice, more than three channels their mean.

        Examples
        --------
        >>> import numpy as np, symsmooth
        >>> noisy = np.random.default_rng(0).normal(100.0, 20.0, (32, 32))
        >>> figure = symsmooth.fit_gsf(noisy, 20.0).plot()
        """
        pictures = {"pilot (pass 1)": self.pilot, "average u": self.average, "result": self.image}
        flat = {label: flat_view(pixels, self.channel_axis) for label, pixels in pictures.items()}
        known = (self.n_clusters, self.deviation)
        return gsf_figure(self.search, known, self.sure, self.fidelity, flat)


def fit_gsf(
    image: ArrayLike,
    sigma: float | None = None,
    *,
    n_clusters: int | None = None,
    fidelity: float | None = None,
    patch_size: int = 5,
    h_s: float = 10.0,
    h_r: float | None = None,
    passes: int = 2,
    refined_clusters: int | None = None,
    refined_h_r: float | None = None,
    channel_axis: ChannelAxis = "auto",
    mask: ArrayLike | None = None,
    rng: int | np.random.Generator | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> GSFResult:
    """Denoise as :func:`denoise_gsf` does and return all that was learned.

    Returns
    -------
    GSFResult
    """
    picture = open_image(image, channel_axis, mask)
    noise = resolve_sigma(picture, sigma)
    asked = _Options(
        n_clusters=n_clusters, fidelity=fidelity, patch_size=patch_size, h_s=h_s, h_r=h_r, passes=passes,
        refined_clusters=refined_clusters, refined_h_r=refined_h_r,
    )  # fmt: skip
    generator = make_rng(rng)
    if noise == 0.0:
        return _nothing_to_do(picture, h_s)
    check_reach(picture.noisy, noise)
    with Pool(workers, progress) as pool:
        plan = _make_plan(picture, noise, asked, generator, pool)
        learned = _learn_in_blocks(picture, plan, generator, pool)
    return _result(picture, noise, asked, plan, learned)


@dask_aware
@parameters_of(fit_gsf)
def denoise_gsf(*args: Any, **options: Any) -> Array:
    """Denoise with the Gaussian mixture symmetric smoothing filter (GSF).

    Parameters
    ----------
    n_clusters : int or None
        k of the first pass; None finds delta(k) = 1 by cross-validation.
    fidelity : float or None
        lambda, the weight of the noisy image; None minimises SURE.
    patch_size : int
        Side of a patch, odd.
    h_s : float
        Spatial spread of a cluster, in pixels.
    h_r : float or None
        Range spread of a cluster in the first pass, in the units of the image; None takes sigma.
    passes : {1, 2}
        1 stops at the pilot.
    refined_clusters, refined_h_r : int, float or None
        k and h_r of the second pass; None derives them from the first.

    Returns
    -------
    ndarray
        Same shape and dtype as the image.

    Notes
    -----
    Solves (P1): minimise lambda |z - y|^2 + sum_ij gamma_ij |P_j z - mu_i|^2, whose closed form is
    eq. (zhat lambda).  h_r and k of the second pass are ours: 2.2 sigma (k/n)^(1/3) and 6 k.

    References
    ----------
    S. H. Chan, T. Zickler, Y. M. Lu, "Understanding symmetric smoothing filters: a Gaussian mixture
    model perspective", IEEE Trans. Image Processing 26 (2017), doi:10.1109/TIP.2017.2731208.

    Examples
    --------
    >>> import numpy as np, symsmooth
    >>> noisy = np.random.default_rng(0).normal(100.0, 20.0, (32, 32))
    >>> bool(symsmooth.denoise_gsf(noisy, 20.0).std() < 5.0)
    True
    """
    return fit_gsf(*args, **options).image


@dataclass(frozen=True)
class _Options:
    """What a user may choose, in the image's units; None is chosen from the data."""

    n_clusters: int | None
    fidelity: float | None
    patch_size: int
    h_s: float
    h_r: float | None
    passes: int
    refined_clusters: int | None
    refined_h_r: float | None

    def __post_init__(self) -> None:
        check_odd("patch_size", self.patch_size)
        check_positive("h_s", self.h_s)
        check_positive("h_r", self.h_r)
        check_positive("refined_h_r", self.refined_h_r)
        check_at_least_one("n_clusters", self.n_clusters)
        check_at_least_one("refined_clusters", self.refined_clusters)
        if self.passes not in (1, 2):
            raise ValueError(f"passes must be 1 or 2, got {self.passes}")
        if self.fidelity is not None and not self.fidelity >= 0:
            raise ValueError(
                f"fidelity must be 0 or more, got {self.fidelity}; use None to minimise SURE"
            )


class _Steps(NamedTuple):
    """How EM is run."""

    max_iter: int
    subsample: int = 1
    reach: float = REACH


_ONE_STEP = _Steps(1, subsample=2, reach=1.5)  # on a quincunx, with clusters within 1.5 h_s


@dataclass(frozen=True)
class _Plan:
    """What the passes do, without units; clusters as a density, which holds for any part of the picture."""

    patch_size: int
    h_s: float
    h_r: float
    n_clusters: int  # k of pass 1 for the whole picture
    density: float  # k/n of pass 1
    search: SecantSearch | None  # how k was found, None if it was given
    refined_density: float | None = None  # k/n of pass 2, None if there is none
    refined_h_r: float = 0.0
    refining: _Steps = _ONE_STEP


def _make_plan(
    picture: Picture, sigma: float, asked: _Options, rng: np.random.Generator, pool: Pool
) -> _Plan:
    """Choose what was not asked for: k by cross-validation, pass 2 from pass 1."""
    n = picture.observed.size
    h_r = sigma if asked.h_r is None else asked.h_r / picture.scale
    n_clusters, search = asked.n_clusters, None
    if n_clusters is None:
        with pool.part(_CHOOSING):
            search = choose_clusters(
                picture.noisy, sigma, asked.patch_size, asked.h_s, h_r, rng, pool
            )
        n_clusters = search.n_clusters
    plan = _Plan(asked.patch_size, asked.h_s, h_r, n_clusters, n_clusters / n, search)
    if asked.passes == 1:
        return plan
    if asked.refined_h_r is None:
        refined_h_r = sigma * _SPREAD * plan.density**_SPREAD_POWER
    else:
        refined_h_r = asked.refined_h_r / picture.scale
    if asked.refined_clusters is None:
        density = max(plan.density, min(_REFINE * plan.density, 1.0 / _MIN_MEMBERS))
        return replace(plan, refined_density=density, refined_h_r=refined_h_r)
    steps = _Steps(_MAX_STEPS)  # clusters that the user counts may be few
    density = asked.refined_clusters / n
    return replace(plan, refined_density=density, refined_h_r=refined_h_r, refining=steps)


def _result(
    picture: Picture, sigma: float, asked: _Options, plan: _Plan, learned: _Learned
) -> GSFResult:
    """Blend the noisy image in, and return everything in its units."""
    coverage = plan.patch_size ** len(picture.spatial)
    sure = _sure(picture, learned, sigma, coverage)
    fidelity = asked.fidelity
    if fidelity is None:
        fidelity = sure.best_fidelity if asked.passes == 2 else 0.0
    unit = picture.scale
    return GSFResult(
        image=picture.restore(blend(learned.average, picture.noisy, fidelity, coverage)),
        pilot=picture.in_units(learned.pilot),
        average=picture.in_units(learned.average),
        sigma=sigma * unit,
        n_clusters=plan.n_clusters,
        refined_clusters=round((plan.refined_density or plan.density) * picture.observed.size),
        h_s=plan.h_s,
        h_r=plan.h_r * unit,
        refined_h_r=plan.refined_h_r * unit,
        fidelity=fidelity,
        sure=Sure(sure.sigma * unit, sure.residual * unit * unit, sure.divergence, coverage),
        deviation=learned.first.deviation,
        search=plan.search,
        mixture=learned.last.mixture,
        log_likelihoods=learned.last.log_likelihoods,
        channel_axis=picture.channel_axis,
    )


@dataclass(frozen=True)
class _Learned:
    """What the passes found in a picture or a part of it."""

    pilot: Float  # (*spatial, channels)
    average: Float  # u of the last pass
    divergence: float  # div(u) / n of one channel
    first: MixtureFit
    last: MixtureFit


def _learn(
    noisy: Float, weight: Float | None, plan: _Plan, rng: np.random.Generator, pool: Pool
) -> _Learned:
    """Run the passes on (*spatial, channels)."""
    features = whiten(noisy, plan.patch_size, plan.h_s, plan.h_r)
    n = features.n_pixels
    start = initial_mixture(features, max(1, round(plan.density * n)), rng)
    steps = int(np.clip(round(_STEPS_PER_DENSITY / plan.density), _MIN_STEPS, _MAX_STEPS))
    with pool.part(_FIRST_PASS):
        with pool.part(_CLUSTERING, n_maps=steps):
            first = fit_mixture(features, start, pool, max_iter=steps, weight=weight)
        pilot = aggregate_means(features, first.mixture, first.near, first.mixture.means, pool)
    if plan.refined_density is None:
        own = cluster_averages(features, first.mixture, first.near, noisy, pool, weight=weight)
        return _Learned(pilot, pilot, own.divergence / n, first, first)
    features = whiten(pilot, plan.patch_size, plan.h_s, plan.refined_h_r)
    start = initial_mixture(features, max(1, round(plan.refined_density * n)), rng)
    with pool.part(_REFINING, n_maps=plan.refining.max_iter):
        last = fit_mixture(features, start, pool, weight=weight, **plan.refining._asdict())
    pool.expect(2)
    average, divergence = average_members(features, last, noisy, pool, weight=weight)
    return _Learned(pilot, average, divergence / n, first, last)


def _learn_in_blocks(
    picture: Picture, plan: _Plan, rng: np.random.Generator, pool: Pool
) -> _Learned:
    """Run the passes block by block if the picture is large; blocks overlap and are blended."""
    weight = None
    if picture.mask is not None:  # the share of each patch that was observed
        weight = scipy.ndimage.uniform_filter(picture.observed, plan.patch_size, mode="reflect")
    last: _Learned | None = None
    divergence = 0.0

    def run(block: Block, own_rng: np.random.Generator) -> tuple[Float, Float]:
        nonlocal last, divergence
        own_weight = None if weight is None else weight[block.outer]
        last = _learn(picture.noisy[block.outer], own_weight, plan, own_rng, pool)
        share = float(block.ramp.sum(dtype=np.float64)) / picture.observed.size
        divergence += last.divergence * share
        return last.pilot, last.average

    halo = block_halo(len(picture.spatial), h_s=plan.h_s, patch_size=plan.patch_size)
    pilot, average = overlap_add(
        plan_blocks(picture.spatial, halo, is_piece=picture.whole is not None), run, rng, pool
    )
    assert last is not None
    return replace(last, pilot=pilot, average=average, divergence=divergence)


def block_halo(n_dims: int, *, h_s: float = 10.0, patch_size: int = 5, **_: object) -> int:
    """Return the pixels around a block that it is denoised with."""
    check_odd("patch_size", patch_size)
    check_positive("h_s", h_s)
    return int(np.ceil(_HALO[n_dims] * h_s)) + patch_size


def _sure(picture: Picture, learned: _Learned, sigma: float, coverage: int) -> Sure:
    """Return SURE of u over the observed pixels."""
    observed = picture.observed
    square = ((learned.average - picture.noisy) ** 2).mean(axis=-1)
    square *= observed
    residual = float(square.sum(dtype=np.float64) / observed.sum(dtype=np.float64))
    return Sure(sigma, residual, learned.divergence, coverage)


def _nothing_to_do(picture: Picture, h_s: float) -> GSFResult:
    """Return the image itself: without noise every pixel is its own cluster."""
    same = picture.in_units(picture.noisy)
    empty = GaussianMixture(np.empty((0, 0), np.float32), np.empty(0, np.float32))
    n = picture.observed.size
    return GSFResult(
        image=picture.restore(picture.noisy), pilot=same, average=same, sigma=0.0, n_clusters=n,
        refined_clusters=n, h_s=h_s, h_r=0.0, refined_h_r=0.0, fidelity=0.0,
        sure=Sure(0.0, 0.0, 1.0, 1), deviation=0.0, search=None, mixture=empty, log_likelihoods=(),
        channel_axis=picture.channel_axis,
    )  # fmt: skip
