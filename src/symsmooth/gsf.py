"""GSF, the paper's method: learn a mixture of patches, answer with its means, blend by SURE.

Two passes, as the paper's remark under SURE asks.  Pass 1 learns the mixture from the noisy image
and gives a pilot (lambda = 0).  Pass 2 learns it from the pilot, takes the responsibilities from there
and averages the *noisy* patches; responsibilities then hardly depend on the noise, and SURE is honest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.ndimage
from numpy.typing import ArrayLike

from .image import Array, Float, Picture, open_image
from .mixture import (
    ClusterAverages,
    GaussianMixture,
    MixtureFit,
    average_answers,
    cluster_averages,
    fit_mixture,
    initial_mixture,
)
from .noise import resolve_sigma
from .options import check_at_least_one, check_odd, check_positive, make_rng
from .patches import Features, whiten
from .selection import SecantSearch, Sure, blend, cross_validate
from .tiles import Pool, Progress

# Pass 2.  The more clusters the noisy image asks for, the less its pilot is denoised: so the spread of a
# cluster of pilot patches follows k/n.  Mean of 12 pictures of the development set at sigma 20/40/80:
# factor 1.9: +.00/+.02/+.01 dB, 2.6: -.08/-.07/-.04; exponent 0.4: -.01/+.01/+.01.
_SPREAD, _SPREAD_POWER = 2.2, 1.0 / 3.0
_REFINE = (
    6  # clusters of pass 2 for one of pass 1; 4: -.08/-.07/-.04 dB, 8: +.02 and a third slower
)
_FEWEST_MEMBERS = 3  # pixels for one cluster of pass 2, at least; 5: -.08 dB at sigma 20
# EM steps.  Pass 1 with 15: +.03 dB and twice the time; on a quincunx: -.07 dB.  Pass 2 starts from a
# pilot, where one step, on a quincunx, with clusters within 1.5 h_s, is as good as three with all.
_PILOT_ITERATIONS = 6
_BRIEFLY: dict[str, Any] = {"max_iter": 1, "thin": 2, "reach": 1.5}
_THOROUGHLY: dict[str, Any] = {"max_iter": 15}  # when k of pass 2 is the user's, and may be small
_CHOICE_ITERATIONS = 8  # EM steps for delta(k): within 1 % of its limit
_CHOICE_PIXELS = 128 * 128  # size of a window in which delta(k) is measured
_CHOICE_WINDOWS = 4  # at most: one for each _CHOICE_SHARE windows that the picture holds
_CHOICE_SHARE = 8


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
        The last pass's mixture, in whitened coordinates [x/h_s, patch/h_r] (patches without units).
    log_likelihoods : tuple of float
        Mean log-likelihood after each EM step of the last pass.
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


def denoise_gsf(
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
    channel_axis: int | None = None,
    mask: ArrayLike | None = None,
    rng: int | np.random.Generator | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Array:
    """Denoise with the Gaussian mixture symmetric smoothing filter (GSF).

    Parameters
    ----------
    image : array_like
        2-D or 3-D, plus channels if ``channel_axis`` is given.
    sigma : float or None
        Standard deviation of the noise, in the units of the image; None estimates it.
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
    return fit_gsf(
        image,
        sigma,
        n_clusters=n_clusters,
        fidelity=fidelity,
        patch_size=patch_size,
        h_s=h_s,
        h_r=h_r,
        passes=passes,
        refined_clusters=refined_clusters,
        refined_h_r=refined_h_r,
        channel_axis=channel_axis,
        mask=mask,
        rng=rng,
        workers=workers,
        progress=progress,
    ).image


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
    channel_axis: int | None = None,
    mask: ArrayLike | None = None,
    rng: int | np.random.Generator | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> GSFResult:
    """Denoise as :func:`denoise_gsf` does (same parameters) and return all that was learned."""
    picture = open_image(image, channel_axis, mask)
    noise = resolve_sigma(picture, sigma)
    check_odd("patch_size", patch_size)
    check_positive("h_s", h_s)
    check_positive("h_r", h_r)
    check_positive("refined_h_r", refined_h_r)
    check_at_least_one("n_clusters", n_clusters)
    check_at_least_one("refined_clusters", refined_clusters)
    if passes not in (1, 2):
        raise ValueError(f"passes must be 1 or 2, got {passes}")
    if fidelity is not None and not fidelity >= 0:
        raise ValueError(f"fidelity must be 0 or more, got {fidelity}; use None to minimise SURE")
    generator = make_rng(rng)
    if noise == 0.0:
        return _nothing_to_do(picture, h_s)
    spread = noise if h_r is None else h_r / picture.scale
    learner = _Learner(picture, patch_size, h_s, generator, Pool(workers, progress))
    with learner.pool:
        search = None
        if n_clusters is None:
            search = learner.choose_clusters(noise, spread)
            n_clusters = search.n_clusters
        first = last = learner.pilot(n_clusters, spread)
        final_spread = spread
        if passes == 2:
            n = picture.usable.size
            if refined_h_r is None:
                final_spread = noise * _SPREAD * (n_clusters / n) ** _SPREAD_POWER
            else:
                final_spread = refined_h_r / picture.scale
            if refined_clusters is None:
                many = max(n_clusters, min(_REFINE * n_clusters, n // _FEWEST_MEMBERS))
                last = learner.refine(first.average, many, final_spread, _BRIEFLY)
            else:
                last = learner.refine(first.average, refined_clusters, final_spread, _THOROUGHLY)
        divergence = learner.divergence(last)
    coverage = patch_size ** len(picture.spatial)
    sure = _sure(picture, last.average, divergence, noise, coverage)
    if fidelity is None:
        fidelity = sure.best_fidelity if passes == 2 else 0.0
    unit = picture.scale
    return GSFResult(
        image=picture.restore(blend(last.average, picture.noisy, fidelity, coverage)),
        pilot=picture.in_units(first.average),
        average=picture.in_units(last.average),
        sigma=noise * unit,
        n_clusters=n_clusters,
        refined_clusters=last.fit.mixture.n_clusters,
        h_s=h_s,
        h_r=spread * unit,
        refined_h_r=final_spread * unit,
        fidelity=fidelity,
        sure=Sure(sure.sigma * unit, sure.residual * unit**2, sure.divergence, coverage),
        deviation=first.fit.deviation,
        search=search,
        mixture=last.fit.mixture,
        log_likelihoods=last.fit.log_likelihoods,
    )


@dataclass(frozen=True)
class _Pass:
    """One mixture and what its clusters answer."""

    features: Features
    fit: MixtureFit
    average: Float  # u, (*spatial, channels)
    divergence: float | None  # div(u) of one channel, if it was computed on the way


@dataclass(frozen=True)
class _Learner:
    """What the passes share."""

    picture: Picture
    patch_size: int
    h_s: float
    rng: np.random.Generator
    pool: Pool

    @property
    def weight(self) -> Float | None:
        """Share of each patch that was observed, or None if nothing is missing."""
        if self.picture.valid is None:
            return None
        return scipy.ndimage.uniform_filter(self.picture.usable, self.patch_size, mode="reflect")

    def pilot(self, n_clusters: int, h_r: float) -> _Pass:
        """Learn a mixture of the noisy patches; its means are the answers."""
        features = whiten(self.picture.noisy, self.patch_size, self.h_s, h_r)
        start = initial_mixture(features, n_clusters, self.rng)
        fit = fit_mixture(
            features, start, self.pool, max_iter=_PILOT_ITERATIONS, weight=self.weight
        )
        average = average_answers(features, fit.mixture, fit.near, fit.mixture.means, self.pool)
        return _Pass(features, fit, average, None)

    def refine(self, pilot: Float, n_clusters: int, h_r: float, how: dict[str, Any]) -> _Pass:
        """Learn a mixture of the pilot's patches; averages of the noisy ones are the answers."""
        features = whiten(pilot, self.patch_size, self.h_s, h_r)
        start = initial_mixture(features, n_clusters, self.rng)
        fit = fit_mixture(features, start, self.pool, weight=self.weight, **how)
        own = self._averages(features, fit)
        average = average_answers(features, fit.mixture, fit.near, own.answers, self.pool)
        return _Pass(features, fit, average, own.divergence)

    def divergence(self, step: _Pass) -> float:
        """Return div(u) of a pass."""
        if step.divergence is not None:
            return step.divergence
        return self._averages(step.features, step.fit).divergence

    def _averages(self, features: Features, fit: MixtureFit) -> ClusterAverages:
        return cluster_averages(
            features, fit.mixture, fit.near, self.picture.noisy, self.pool, weight=self.weight
        )

    def choose_clusters(self, sigma: float, h_r: float) -> SecantSearch:
        """Find delta(k) = 1 (Algorithm 3), in a few windows of a large image.

        Clusters are local, so delta depends on their density k/n and a window is as good as the whole.
        """
        n = self.picture.usable.size
        windows = [self.picture.noisy[at] for at in _windows(self.picture.spatial, self.rng)]
        seed = int(self.rng.integers(2**31))  # the same first positions for each k

        def measure(k: int) -> float:
            deviations = []
            for window in windows:
                features = whiten(window, self.patch_size, self.h_s, h_r)
                share = max(1, round(k * features.n_pixels / n))
                start = initial_mixture(features, share, np.random.default_rng(seed))
                fit = fit_mixture(features, start, self.pool, max_iter=_CHOICE_ITERATIONS)
                deviations.append(fit.deviation)
            return float(np.mean(deviations))

        contrast = max(float(np.var(self.picture.noisy)) / sigma**2 - 1.0, 0.01)
        guess = round(n * 0.015 * contrast)  # what natural pictures ask for, within a factor of two
        return cross_validate(measure, guess, min(n, 2), max(n // 4, 1))


def _windows(spatial: Sequence[int], rng: np.random.Generator) -> list[tuple[slice, ...]]:
    """Return one to four windows of some _CHOICE_PIXELS in random places."""
    side = round(_CHOICE_PIXELS ** (1.0 / len(spatial)))
    sides = [min(side, s) for s in spatial]
    held = np.prod(spatial, dtype=float) / _CHOICE_PIXELS
    count = int(np.clip(round(held / _CHOICE_SHARE), 1, _CHOICE_WINDOWS))
    corners = [
        [int(rng.integers(s - w + 1)) for s, w in zip(spatial, sides, strict=True)]
        for _ in range(count)
    ]
    return [
        tuple(slice(c, c + w) for c, w in zip(corner, sides, strict=True)) for corner in corners
    ]


def _sure(picture: Picture, average: Float, divergence: float, sigma: float, coverage: int) -> Sure:
    """Return SURE of u over the observed pixels."""
    observed = picture.usable
    square = ((average - picture.noisy) ** 2).mean(axis=-1)
    count = float(observed.sum(dtype=np.float64))
    residual = float((square * observed).sum(dtype=np.float64)) / count
    return Sure(sigma, residual, divergence / count, coverage)


def _nothing_to_do(picture: Picture, h_s: float) -> GSFResult:
    """Return the image itself: without noise every pixel is its own cluster."""
    same = picture.in_units(picture.noisy)
    empty = GaussianMixture(np.empty((0, 0), np.float32), np.empty(0, np.float32))
    n = picture.usable.size
    return GSFResult(
        image=picture.restore(picture.noisy), pilot=same, average=same, sigma=0.0, n_clusters=n,
        refined_clusters=n, h_s=h_s, h_r=0.0, refined_h_r=0.0, fidelity=0.0,
        sure=Sure(0.0, 0.0, 1.0, 1), deviation=0.0, search=None, mixture=empty, log_likelihoods=(),
    )  # fmt: skip
