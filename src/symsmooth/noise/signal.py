"""Poisson-Gaussian noise: its variance grows with the signal.  Estimated, stabilised, and undone.

References
----------
A. Foi, M. Trimeche, V. Katkovnik, K. Egiazarian, "Practical Poissonian-Gaussian noise modeling and fitting
for single-image raw-data", IEEE Trans. Image Processing 17 (2008), doi:10.1109/TIP.2008.2001399.
M. Makitalo, A. Foi, "Optimal inversion of the generalized Anscombe transformation for Poisson-Gaussian
noise", IEEE Trans. Image Processing 22 (2013), doi:10.1109/TIP.2012.2202675.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy.special

from ..core.image import Array, Float, Picture
from ..core.parallel import Pool
from .finding import Found
from .level import patch_variance, sample_patches, thinned

_GROUPS = 12  # of patches, by brightness
# What few patches lose of their variance (patch_variance): 1.4 of pure noise, half of that where texture
# adds some.  0: photon noise is taken for 1 to 4 % less on photographs, for up to 25 % less on confocal
# pictures (-.04 to -.11 dB).
_LOST = 0.7
_ROUNDS, _SETTLED = 30, 1e-4  # of the robust fit, unless it moves by less
_TEXTURE = 1.5  # a variance above the line is doubted so much more than one below
_FLATTEST = 0.02  # of the patches
# Times its variance: a group whose flattest patches have more is all structure (the flanks of stars: 20
# to 700), and says nothing of noise.  Photon noise on photographs has 0.3 to 1.7.
_ALL_STRUCTURE = 4.0
_FEWEST = 3  # groups that a line needs
_EVIDENCE = (6.0, 4.0)  # a line needs to miss zero; to miss the darkest pixel, which is less sure
_DARKEST = 1e-4  # quantile of the pixels that is called the darkest
# That it surely grows: variance from dark to bright; log of the growth over the scatter about the line;
# evidence against one level at all brightnesses (white noise on photographs has 0 to 7).
_SURE_TIMES, _SURE_CLARITY, SURE_EVIDENCE = 1.7, 4.5, 5.0
_VETO = 0.5  # of that: a channel that has less speaks against it, whatever the others say
_TABLE_END = 400.0  # counts up to which the inverse is a table; its expansion serves above


@dataclass(frozen=True)
class PoissonGaussian(Found):
    """Noise of variance gain * x + offset, x the clean pixel, in the image's units, each given per channel.

    ``black`` is the pixel without light: y = black + gain * Poisson + Gaussian.  If not given it is 0, or
    where the variance is 0 if that is above.  A sensor with read noise s has offset s^2 - gain * black.
    """

    gain: tuple[float, ...]
    offset: tuple[float, ...]
    black: tuple[float, ...] = ()

    kind = "poisson-gaussian"

    def __post_init__(self) -> None:
        lines = list(zip(self.gain, self.offset, strict=True))
        if not all(0.0 < a < np.inf and np.isfinite(b) for a, b in lines):
            raise ValueError(
                f"gain must be positive and finite, got {self.gain} with offset {self.offset}; "
                "without gain the noise is Gaussian: give sigma"
            )
        black = tuple(
            max(m, -b / a)
            for (a, b), m in zip(lines, self.black or (0.0,) * len(lines), strict=True)
        )
        object.__setattr__(self, "black", black)

    def __str__(self) -> str:
        gains, offsets = (
            ", ".join(f"{v:.4g}" for v in values) for values in (self.gain, self.offset)
        )
        return f"Poisson-Gaussian noise, variance {gains} * signal + {offsets}"

    def fits(self, shape: tuple[int, ...]) -> bool:
        """Whether it can be the noise of (*spatial, channels)."""
        return len(self.gain) == shape[-1]

    def in_units(self, offset: float, scale: float) -> PoissonGaussian:
        """Return the model for pixels (image - offset) / scale."""
        moved = zip(self.gain, self.offset, strict=True)
        return PoissonGaussian(
            tuple(a / scale for a in self.gain),
            tuple((a * offset + b) / scale**2 for a, b in moved),
            tuple((m - offset) / scale for m in self.black),
            finding=self.finding_in(scale),
        )

    def whiten(self, noisy: Float) -> Float:
        """Apply the generalised Anscombe transform: noise of variance 1 (*spatial, channels).

        f(y) = 2 sqrt(y/a + 3/8 + b/a^2), the root cut at zero.
        """
        a, b = np.array(self.gain, np.float32), np.array(self.offset, np.float32)
        root = np.maximum(noisy / a + (np.float32(0.375) + b / a**2), 0)
        return 2 * np.sqrt(root)

    def restore(self, denoised: Float) -> Float:
        """Undo it without bias: the signal whose transform has this mean."""
        planes = np.moveaxis(denoised, -1, 0)
        channels = zip(self.gain, self.offset, self.black, planes, strict=True)
        restored = [
            black + gain * _photons(plane, max(gain * black + offset, 0.0) / gain**2)
            for gain, offset, black, plane in channels
        ]
        return np.stack(restored, axis=-1).astype(np.float32)


def _photons(stabilised: Array, read: float) -> Array:
    """Return E^-1, the photons whose transform has this mean: a table, its expansion beyond.

    ``read`` is the variance of the read noise in photons squared.
    """
    counts, means = _expected_root(float(f"{read:.6g}"))
    table = np.interp(stabilised, means, counts)
    d = np.maximum(stabilised, 1.0)
    root = np.sqrt(1.5)
    expansion = d**2 / 4 + root / (4 * d) - 11 / (8 * d**2) + 5 * root / (8 * d**3) - 0.125 - read
    return np.where(stabilised < means[-1], table, expansion)


@lru_cache(maxsize=16)
def _expected_root(read: float) -> tuple[Array, Array]:
    """Tabulate E[2 sqrt(max(p + n + 3/8 + read, 0))] over counts, p Poisson, n N(0, read)."""
    counts = np.concatenate([[0.0], np.geomspace(1e-3, _TABLE_END, 400)])
    photons = np.arange(int(_TABLE_END + 12 * np.sqrt(_TABLE_END)))
    log_pmf = scipy.special.xlogy(photons, counts[:, None]) - counts[:, None]
    pmf = np.exp(log_pmf - scipy.special.gammaln(photons + 1))
    nodes, weights = np.polynomial.hermite_e.hermegauss(21)
    spread = np.sqrt(read) * nodes[:, None]
    roots = 2 * np.sqrt(np.maximum(photons + spread + 0.375 + read, 0.0))
    return counts, pmf @ (weights @ roots / weights.sum())


@dataclass(frozen=True)
class Growth:
    """Noise that may grow with the signal, and what speaks for it.

    Attributes
    ----------
    model : PoissonGaussian
    times : float
        How many times larger the variance is where the picture is brightest than where it is darkest.
    clarity : float
        The logarithm of that over the scatter of the groups about the line, which texture makes large.
    evidence : float
        Against one level at all brightnesses.
    """

    model: PoissonGaussian
    times: float
    clarity: float
    evidence: float

    def is_sure(self, share: float = 1.0) -> bool:
        """Whether it surely grows: whether there is this share of what is asked for."""
        return (
            self.times > _SURE_TIMES**share
            and self.clarity > share * _SURE_CLARITY
            and self.evidence > share * SURE_EVIDENCE
        )


def fit_signal_dependence(
    picture: Picture, samples: list[Array] | None = None, *, only_sure: bool = False
) -> Growth | None:
    """Estimate gain and offset of each channel, in the picture's units; None if the noise does not grow.

    The channels are asked together: texture in one of three hides growth that the others show, and none
    must speak against it.  ``samples`` are their patches, if they were taken before; with ``only_sure``
    the answer is None if noise does not surely grow.
    """
    zero = -picture.offset / picture.scale
    found: list[Growth] = []
    for channel in range(picture.noisy.shape[-1]):
        patches = samples[channel] if samples else sample_patches(picture, channel)
        darkest = float(np.quantile(thinned(picture.noisy[..., channel]), _DARKEST))
        own = _fit_channel(patches, zero, darkest)
        if own is None or (only_sure and not own.is_sure(_VETO)):
            return None
        found.append(own)
    lines = [(each.model.gain[0], each.model.offset[0]) for each in found]
    gains, offsets = zip(*lines, strict=True)
    together = Growth(
        PoissonGaussian(gains, offsets, (zero,) * len(gains)),
        float(np.exp(np.mean([np.log(each.times) for each in found]))),
        float(np.mean([each.clarity for each in found])),
        float(np.mean([each.evidence for each in found])),
    )
    return None if only_sure and not together.is_sure() else together


def _fit_channel(patches: Array, zero: float, darkest: float) -> Growth | None:
    """Estimate gain and offset from the patches of one channel; None if the noise does not grow.

    Patches are grouped by brightness, each group's variance is estimated as white noise is, and a line
    is fitted robustly.  Groups that have no flat patch are left out.  Texture in the bright parts looks
    like noise that grows.  But it leaves a few patches flat, whose energy is that of the noise; so
    growth is asked of the flattest patches, too.
    """
    means = patches.mean(axis=(1, 2))
    groups = np.array_split(np.argsort(means, kind="stable"), min(_GROUPS, len(means)))
    levels = np.array([means[group].mean() for group in groups])
    with Pool(1):  # many small products: threads of the BLAS would only wait for each other
        variances = np.array([patch_variance(patches[group], _LOST) for group in groups])
    flattest = flattest_energy(patches, groups)
    known = flattest <= _ALL_STRUCTURE * variances
    if known.sum() < min(_FEWEST, len(groups)):
        return None
    levels, variances, flattest = levels[known], variances[known], flattest[known]
    gain, offset = fit_line(levels, variances, zero)
    if gain <= 0.0:
        return None
    offset = max(offset, -gain * float(means.min()))  # no variance is negative
    growth = _growth(gain, offset, means)
    line = np.maximum(gain * levels + offset, 1e-6 * variances.max())
    scatter = 1.4826 * np.median(np.abs(np.log(np.maximum(variances, 1e-6 * line) / line)))
    clarity = float(np.log(growth) / max(scatter, 0.03))
    times = min(growth, _growth(*fit_line(levels, flattest, zero), means))
    evidence = evidence_of_growth(levels, variances, zero)
    # Whether it grows was asked without the law of the darkest pixel, which always grows.
    gain, offset = fit_line(levels, variances, zero, darkest)
    if gain <= 0.0:
        return None
    model = PoissonGaussian((gain,), (max(offset, -gain * float(means.min())),), (zero,))
    return Growth(model, times, clarity, evidence)


def _growth(gain: float, offset: float, means: Array) -> float:
    """Return how many times larger the variance is in bright parts than in dark ones."""
    dark, bright = gain * np.quantile(means, [0.05, 0.95]) + offset
    return max(float(bright / max(dark, 1e-3 * bright, 1e-30)), 1e-3)


def flattest_energy(patches: Array, groups: list[Array]) -> Array:
    """Return, for each group of patches (m, y, x), a low quantile of their variance about a parabola."""
    y, x = (c.ravel() for c in np.indices(patches.shape[1:]))
    surface = np.linalg.qr(np.stack([np.ones(y.size), y, x, y * y, x * y, x * x], axis=1))[0]
    points = patches.reshape(len(patches), -1)
    energy = (points**2).sum(axis=1) - ((points @ surface) ** 2).sum(axis=1)
    freedom = max(y.size - surface.shape[1], 1)
    return np.array([np.quantile(energy[group], _FLATTEST) for group in groups]) / freedom


def fit_line(levels: Array, variances: Array, *zeros: float) -> tuple[float, float]:
    """Fit variance = gain * level + offset, gain >= 0.

    Without read noise the line meets the axis where there is no light: at zero, or at the darkest pixel
    if a pedestal was added (``zeros``).  Such simpler laws are taken unless the groups speak against
    them: the gain of 20 pictures (peaks 5, 20, 100; read noise 1 %) is then off by 3/3/8 % on average,
    instead of 4/7/13 %.
    """
    simple = []
    for zero in zeros:
        (gain,), residuals = _fit_robustly((levels - zero)[:, np.newaxis], variances)
        simple.append((gain, -gain * zero, residuals))
    # How much it grows is asked of the flattest patches too, which have no such groups: one start.
    (gain, offset), residuals = _fit_robustly(_line(levels), variances, len(zeros) > 1)
    spread = min(_spread(residuals), *(_spread(fit[2]) for fit in simple))
    doubts = [_doubt(fit[2], spread) for fit in simple]
    best = int(np.argmin(doubts))
    needed = _EVIDENCE[min(best, 1)]
    if simple[best][0] > 0.0 and doubts[best] - _doubt(residuals, spread) < needed:
        return simple[best][:2]
    if gain <= 0.0:
        return 0.0, float(np.median(variances))
    return gain, offset


def fit_free_line(levels: Array, variances: Array) -> tuple[float, float]:
    """Fit variance = gain * level + offset robustly, with no simpler law in mind."""
    (gain, offset), _ = _fit_robustly(_line(levels), variances)
    return gain, offset


def evidence_of_growth(levels: Array, variances: Array, zero: float) -> float:
    """Return how much likelier a growing variance is than a constant one (twice the log-likelihood)."""
    _, line = _fit_robustly(_line(levels), variances)
    _, proportional = _fit_robustly((levels - zero)[:, np.newaxis], variances)
    _, constant = _fit_robustly(np.ones((len(levels), 1)), variances)
    spread = min(_spread(residuals) for residuals in (line, proportional, constant))
    growing = min(_doubt(line, spread), _doubt(proportional, spread))
    return _doubt(constant, spread) - growing


def _line(levels: Array) -> Array:
    return np.stack([levels, np.ones_like(levels)], axis=1)


def _fit_robustly(
    design: Array, variances: Array, two_starts: bool = False
) -> tuple[list[float], Array]:
    """Fit by reweighting (Cauchy); return the coefficients and the relative residuals.

    It begins by least squares, and with ``two_starts`` once more as the median of the slopes between
    groups: bright groups of a few filaments, whose patches are half dark, have too little variance
    and draw the first line down (confocal pictures of mouse tissue: gain 25 % low, 0.3 dB).
    """
    tiny = 1e-12 + 1e-6 * float(variances.max(initial=0.0))
    starts = [_least_squares(design, variances, 1.0 / np.maximum(variances, tiny) ** 2)]
    if two_starts:
        starts.append(_median_line(design[:, 0], variances))
    fits = [_reweight(design, variances, start, tiny) for start in starts]
    spread = min(_spread(residuals) for _, residuals in fits)
    return min(fits, key=lambda fit: _doubt(fit[1], spread))


def _reweight(
    design: Array, variances: Array, line: Array, tiny: float
) -> tuple[list[float], Array]:
    """Improve a fit by reweighting; return the coefficients and the relative residuals."""
    for _ in range(_ROUNDS):
        predicted = np.maximum(design @ line, tiny)
        residuals = (variances - predicted) / predicted
        weights = 1.0 / (1.0 + _scaled(residuals, _spread(residuals)) ** 2) / predicted**2
        before, line = line, _least_squares(design, variances, weights)
        if np.abs(line - before).max() <= _SETTLED * np.abs(line).max():
            break
    predicted = np.maximum(design @ line, tiny)
    return [float(v) for v in line], (variances - predicted) / predicted


def _median_line(levels: Array, variances: Array) -> Array:
    """Return the median slope between two groups, and the median offset (Theil and Sen)."""
    first, second = np.triu_indices(len(levels), 1)
    run = levels[second] - levels[first]
    apart = np.abs(run) > 1e-12
    rise = variances[second] - variances[first]
    slope = float(np.median(rise[apart] / run[apart])) if apart.any() else 0.0
    return np.array([slope, np.median(variances - slope * levels)])


def _least_squares(design: Array, values: Array, weights: Array) -> Array:
    """Fit values by a multiple of the first column, plus a constant if there is a second one."""
    column, total = design[:, 0], weights.sum()
    if design.shape[1] == 1:
        return np.array([weights @ (column * values) / max(weights @ column**2, 1e-300)])
    centre, mean = weights @ column / total, weights @ values / total
    away = column - centre
    gain = weights @ (away * values) / max(weights @ away**2, 1e-300)
    return np.array([gain, mean - gain * centre])


def _spread(residuals: Array) -> float:
    """Return their robust standard deviation; groups of patches are not surer than 3 %."""
    return max(1.4826 * float(np.median(np.abs(residuals))), 0.03)


def _scaled(residuals: Array, spread: float) -> Array:
    """Return residuals in units of their spread; texture only adds, so those above count for more."""
    return np.where(residuals > 0, _TEXTURE, 1.0) * residuals / spread


def _doubt(residuals: Array, spread: float) -> float:
    """Return -2 log of their Cauchy likelihood, up to a constant."""
    return float(np.log1p(_scaled(residuals, spread) ** 2).sum())
