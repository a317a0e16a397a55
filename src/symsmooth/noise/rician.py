"""Rician noise: magnitudes of complex pixels, as MR scanners give them.  Estimated, stabilised, and undone.

A pixel is |x + n|, x the clean magnitude and n complex noise of standard deviation sigma in both parts.
Where x is large that is Gaussian noise; where it is small the mean is too high (1.25 sigma where x is
zero) and the spread too small (0.66 sigma).

References
----------
A. Foi, "Noise estimation and removal in MR imaging: the variance-stabilization approach", ISBI 2011,
doi:10.1109/ISBI.2011.5872758.
C. G. Koay, P. J. Basser, "Analytically exact correction scheme for signal extraction from noisy magnitude
MR signals", J. Magnetic Resonance 179 (2006), doi:10.1016/j.jmr.2006.01.016.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache
from typing import NamedTuple

import numpy as np
import scipy.special

from ..core.image import Array, Float, Picture
from ..core.parallel import Pool
from .evidence import CENTRES, SIDE
from .level import FINEST, gradient_energy, patch_variance
from .model import Finding, PixelRange, Words

_END = 25.0  # magnitude, in sigma, up to which there are tables; expansions serve above
_KNOTS = np.array([0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 7.0, 10.0])  # of the slope
_SMOOTH = 1.0  # weight of their roughness: without it variances are nearer 1, but tails are heavy
# The mean of a stabilised pixel grows as the square of a small signal, so that what is left of the noise in
# it would be blown up to a quarter of sigma, and upwards only.  A mean that is above that of zero by less
# than the first of these is called zero; from the second on it is taken as it is.
# These are signals of 0.38 and 0.54 sigma; what is left of air has a spread of 0.03.
_NEAR_ZERO = 0.06, 0.12
_RAYLEIGH = np.sqrt(np.pi / 2)  # mean of pure noise, in sigma
_SIDE = 5  # of squares in which background is looked for
_MOST = 50_000  # of them
_EMPTY = 0.25  # share of the least pixel value from which a square was cut out, or masked
_FEWEST = 0.01  # share of the patches that are needed to call it background
_RARE = 1e-3  # chance of patches of pure noise that are left out
_ROUNDS = 20
_GROUPS, _PATCHES = 12, 1000  # of patches, by brightness; of so many some are flat
_TISSUE = 0.7  # quantile of the patches by brightness: tissue, even where most is air
_AIR = 1 / 5  # of that: what is darker is air; 1/6 does as well, 1/3 takes dark tissue for it
_DISAGREES = 3.0  # times: tiny volumes that are mostly air make 2.3 of it, ghosts 5 to 10


@dataclass(frozen=True)
class Rician:
    """Rician noise: the magnitude of a complex pixel with white Gaussian noise in both parts.

    Parameters
    ----------
    sigma : float
        Standard deviation of the noise in each part, in the image's units.
    zero : float
        The pixel without signal; 0 unless something was added to the magnitudes.

    Examples
    --------
    >>> import numpy as np, symsmooth
    >>> from symsmooth.noise import Rician
    >>> rng = np.random.default_rng(0)
    >>> real, imaginary = rng.normal(0.0, 5.0, (2, 64, 64))
    >>> air = np.hypot(real, imaginary)
    >>> dark = symsmooth.denoise(air, noise=Rician(5.0), quality="fast")
    >>> bool(air.mean() > 6.0), bool(dark.mean() < 0.5)
    (True, True)
    """

    sigma: float
    zero: float = 0.0
    finding: Finding | None = field(default=None, compare=False, repr=False, kw_only=True)
    pixels: PixelRange | None = field(default=None, compare=False, repr=False, kw_only=True)

    kind = "rician"
    n_channels = None
    white_sigma = None
    coarse_share = 0.0

    def __post_init__(self) -> None:
        if not (0.0 < self.sigma < np.inf and np.isfinite(self.zero)):
            raise ValueError(
                f"sigma must be positive and finite, got {self.sigma} (zero {self.zero}); "
                "an image without noise needs no model"
            )

    def __str__(self) -> str:
        return f"Rician noise, sigma {self.sigma:.4g}"

    def fits(self, shape: tuple[int, ...]) -> bool:
        """Whether it can be the noise of (*spatial, channels): always."""
        return True

    def in_units(self, offset: float, scale: float) -> Rician:
        """Return the model for pixels (image - offset) / scale."""
        zero = (self.zero - offset) / scale
        finding = self.finding
        if finding is not None:
            finding = replace(finding, suspected=finding.suspected / scale)
        sigma = self.sigma / scale
        return replace(self, sigma=sigma, zero=zero, finding=finding, pixels=None)

    def bind(self, noisy: Float) -> Rician:
        """Return the model itself."""
        return self

    def whiten(self, noisy: Float) -> Float:
        """Apply a function of each pixel that makes the noise of variance 1 (*spatial, channels)."""
        table = _table()
        m = (noisy.astype(np.float64) - self.zero) / self.sigma
        beyond = np.maximum(m, _END)
        far = beyond - 1 / (4 * beyond) + table.shift
        below = np.minimum(m, 0.0)  # no magnitude, but what was interpolated may lie there
        near = np.interp(m, table.magnitudes, table.stabilised) + below
        return np.where(m < _END, near, far).astype(np.float32)

    def restore(self, denoised: Float) -> Float:
        """Undo it without bias: the signal whose stabilised pixels have this mean."""
        table = _table()
        means = table.means
        above = denoised.astype(np.float64) - means[0]
        low, high = _NEAR_ZERO
        above = np.where(above < high, np.maximum(above - low, 0.0) * high / (high - low), above)
        near = np.interp(above + means[0], means, table.signals)
        # the mean is x + 1/(4x) + shift, up to x^-3
        far = np.maximum(denoised.astype(np.float64) - table.shift, 1.0)
        far = (far + np.sqrt(far**2 - 1)) / 2
        signal = np.where(above + means[0] < means[-1], near, far)
        return (self.zero + self.sigma * signal).astype(np.float32)

    def std_back(self, denoised: Float, std: Float) -> Float:
        """Return the standard deviation of :meth:`restore` from that of stabilised pixels."""
        return np.abs(self.restore(denoised + std) - self.restore(denoised - std)) / 2

    def level_at(self, pixels: Array) -> list[Array]:
        """Return the standard deviation of pixels whose clean magnitude this is."""
        _, spread = moments(np.maximum(pixels - self.zero, 0.0) / self.sigma)
        return [self.sigma * spread]

    def rings(self) -> tuple[Array, list[Array]]:
        """Return frequencies in cycles a pixel, and the relative level there: the same everywhere."""
        return CENTRES / (2 * SIDE), [np.ones(len(CENTRES))]

    def coarse_levels(self) -> None:
        """Return None: it is white."""

    def level_at_end(self) -> float:
        """Return 0: magnitudes are not clipped."""
        return 0.0

    def is_negligible(self, brightest: Array) -> bool:
        """Whether float32 pixels, in units of their spread, are rounded by more than this noise."""
        return not self.sigma >= FINEST

    def words(self, pixels: Array) -> Words:
        """Say in plain words what it is."""
        return Words("Rician", self.sigma, "", {"kind": "rician"})


def moments(signal: Array) -> tuple[Array, Array]:
    """Return mean and standard deviation of Rician pixels of sigma 1."""
    half = np.asarray(signal, np.float64) ** 2 / 4
    bessel = (1 + 2 * half) * scipy.special.ive(0, half) + 2 * half * scipy.special.ive(1, half)
    mean = _RAYLEIGH * bessel
    variance = 2 + 4 * half - mean**2
    far = half > 1e4  # where that is a difference of large numbers
    return mean, np.sqrt(np.where(far, 1 - 1 / (8 * np.maximum(half, 1.0)), variance))


class _Table(NamedTuple):
    """The stabilising function, and the mean it gives, for sigma 1."""

    magnitudes: Array
    stabilised: Array
    signals: Array
    means: Array
    shift: float  # beyond the table f(m) = m - 1/(4 m) + shift


@cache
def _table() -> _Table:
    """Find the function whose values have variance 1 for all signals, as nearly as that can be.

    Its slope at a magnitude is first 1 over the standard deviation of the pixels that have this mean
    (the delta method); factors at a few knots then make the variances 1 in the least squares sense.
    """
    magnitudes = np.linspace(0.0, _END + 8, 3301)
    step = magnitudes[1]
    signals = np.concatenate([np.linspace(0, 1, 41), np.geomspace(1, _END, 160)[1:]])
    x, m = signals[:, np.newaxis], magnitudes
    density = m * np.exp(-((m - x) ** 2) / 2) * scipy.special.ive(0, m * x)
    density /= density.sum(axis=1, keepdims=True)
    means, spread = moments(signals)
    slope = 1 / np.interp(magnitudes, means, spread)
    far = magnitudes > means[-1]
    slope[far] = 1 + 1 / (4 * magnitudes[far] ** 2)

    def function(factors: Array) -> Array:
        change = np.interp(magnitudes, _KNOTS, np.append(factors, 0.0))  # none at the last knot
        bent = slope * np.exp(change)
        return np.concatenate([[0.0], np.cumsum((bent[1:] + bent[:-1]) / 2) * step])

    def excess(factors: Array) -> Array:
        values = function(factors)
        centred = values - (density @ values)[:, np.newaxis]
        variance = (density * centred**2).sum(axis=1)
        rough = np.diff(np.append(factors, 0.0))
        return np.concatenate([variance - 1, _SMOOTH * rough])

    with Pool(1):  # small products: threads of the BLAS would only wait for each other
        from scipy.optimize import least_squares  # takes long to load, and few pictures need it

        best = least_squares(excess, np.zeros(len(_KNOTS) - 1)).x
        stabilised = function(best)
        expected = density @ stabilised
    end = int(np.searchsorted(magnitudes, _END))
    shift = float(stabilised[end] - (_END - 1 / (4 * _END)))
    return _Table(magnitudes, stabilised, signals, expected, shift)


def fit_rician(picture: Picture, samples: list[Array]) -> Rician | None:
    """Estimate sigma from patches of each channel, in the picture's units; None if there is no noise.

    Where there is background, which is pure noise, its mean square is 2 sigma^2.  Elsewhere mean and
    variance together tell sigma (Koay and Basser).  Ghosts in the air, and air that was cut away, make
    background look like more noise than there is: where tissue has much less, that is taken.
    """
    zero = -picture.offset / picture.scale
    _check_magnitudes(picture, zero)
    tissue = _of_tissue(np.concatenate(samples) - zero)
    sigma, share = _background(_blocks(picture) - zero)
    sure, reason = 1.0, f"{share:.0%} of the picture is background, where magnitudes are pure noise"
    if not sigma:
        sigma, sure = tissue, 0.5
        reason = "there is no background of pure noise; mean and variance of the signal were used"
    elif 0.0 < tissue < sigma / _DISAGREES:
        reason = (
            f"background says {sigma / tissue:.1f} times as much as tissue has, as it does with ghosts in "
            "the air or with air that was cut away; that of tissue was taken"
        )
        sigma, sure = tissue, 0.4
    return Rician(sigma, zero, finding=Finding(sure, (reason,))) if sigma > 0.0 else None


def _of_tissue(patches: Array) -> float:
    """Return sigma from mean and variance of groups of patches (m, y, x) by brightness, without air."""
    means = patches.mean(axis=(1, 2))
    bright = means >= _AIR * np.quantile(means, _TISSUE)
    patches, means = patches[bright], means[bright]
    groups = np.array_split(
        np.argsort(means, kind="stable"), min(_GROUPS, 1 + len(means) // _PATCHES)
    )
    with Pool(1):
        energy = gradient_energy(patches)
        levels = [np.sqrt(max(patch_variance(patches[own], energy[own]), 0.0)) for own in groups]
    found = [_sigma_of(means[own].mean(), level) for own, level in zip(groups, levels, strict=True)]
    return float(np.median(found))


def _sigma_of(mean: float, level: float) -> float:
    """Return sigma of Rician pixels of some mean and standard deviation."""
    signals = np.linspace(0, 32, 1001) ** 2
    expected, spread = moments(signals)
    return float(level / np.interp(mean / max(level, 1e-30), expected / spread, spread))


def _check_magnitudes(picture: Picture, zero: float) -> None:
    """Refuse pixels that cannot be magnitudes: a negative one says that something was taken off."""
    observed = picture.noisy if picture.mask is None else picture.noisy[~picture.mask]
    least = float(observed.min()) - zero
    if least < -1e-5 * max(abs(zero), float(np.ptp(observed))):
        raise ValueError(
            f"Rician noise is that of magnitudes, never negative, got {least * picture.scale:.4g}; "
            "give noise='gaussian', or symsmooth.noise.Rician(sigma, zero) if zero lies elsewhere"
        )


def _blocks(picture: Picture) -> Array:
    """Return squares of all slices and channels (m, y, x), but for those that are empty or cut out.

    Pixels at zero are not avoided as they are elsewhere: where noise is rounded, many are.
    """
    height, width = (min(_SIDE, n) for n in picture.spatial[-2:])
    pixels = np.moveaxis(picture.noisy, -1, 0)
    windows = np.lib.stride_tricks.sliding_window_view(pixels, (height, width), axis=(-2, -1))
    blocks = windows[..., ::height, ::width, :, :].reshape(-1, height, width)
    empty = (blocks == picture.noisy.min()).mean(axis=(1, 2)) > _EMPTY
    blocks = blocks[~empty]
    return blocks[:: max(1, len(blocks) // _MOST)].astype(np.float64)


def _background(patches: Array) -> tuple[float, float]:
    """Return sigma and the share of the patches that are pure noise; 0 if these are too few.

    Half the mean square of n pixels of pure noise is sigma^2 times a gamma variable of shape n, over n.
    The darkest patches say what sigma may be, and those that such noise explains say it better.
    """
    n = patches.shape[1] * patches.shape[2]
    energy = (patches**2).mean(axis=(1, 2)) / 2
    if not energy.any():
        return 0.0, 0.0
    low, median, high = scipy.special.gammaincinv(n, [_RARE, 0.5, 1 - _RARE]) / n
    variance = float(np.quantile(energy[energy > 0.0], _FEWEST, method="lower")) / median
    for _ in range(_ROUNDS):
        alike = (energy > low * variance) & (energy < high * variance)
        before, variance = variance, float(np.median(energy[alike])) / median
        if variance == before:
            break
    pixels, share = patches[alike], float(alike.mean())
    ratio = pixels.mean() ** 2 / (pixels**2).mean()  # pi/4 without signal, 1 where it is large
    chance = 0.5 / np.sqrt(pixels.size)  # two standard errors of it
    (mean,), _ = moments(np.ones(1))  # of a signal of sigma: with less, it is background
    is_pure = ratio < mean**2 / 3 + chance
    return (float(np.sqrt(variance)), share) if is_pure and share > _FEWEST else (0.0, 0.0)
