"""The front door: the best we have, nothing to choose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from ..core.alike import Channels, Groups
from ..core.channels import luminance
from ..core.image import Array, ChannelAxis, Float, Picture, open_image
from ..core.lazy import dask_aware
from ..core.options import check_one_of, check_share, make_rng, split_strength
from ..core.parallel import Pool, Progress
from ..noise import Noise, White, resolve
from ..noise.clipping import correct_clipping
from ..noise.resolve import NoiseName
from ..noise.specks import Specks, without_specks
from ..noise.tone import correct_tone
from .blotches import remove_blotches
from .presets import PRESETS, Quality, for_noise
from .stages import run_gsfw

Tone = Literal["auto", "srgb", "linear"]

_BEFORE_BLOTCHES = 0.9  # of the time, for the progress callback


@dataclass(frozen=True)
class DenoiseResult:
    """What :func:`denoise` found.

    Attributes
    ----------
    image : ndarray
        The denoised image, with the input's dtype.
    noise : NoiseModel
        The noise that was removed, in the image's units; ``str`` says what it is.
    tone : float
        How much of the correction of tone bias was used, 0 to 1.
    n_bounded : int
        Pixels that would have changed by more than 8 times the noise, and were held there.
    groups : tuple of tuple of int
        The channels that were denoised together.
    n_specks : int
        Pixels that were replaced because no noise explains them.
    std : float32 ndarray
        Posterior standard deviation of the estimate at each pixel, in the image's units, at the strength
        for luminance and without grain.  Where noise is coarse the errors of neighbouring pixels are tied
        together, and it is an approximation.
    """

    image: Array
    noise: Noise
    tone: float
    n_bounded: int
    groups: Groups
    n_specks: int
    _find_std: Callable[[], Float] = field(repr=False)

    @cached_property
    def std(self) -> Float:
        """Posterior standard deviation of the estimate; computed when it is asked for."""
        return self._find_std()


@dask_aware
def denoise(
    image: ArrayLike,
    sigma: float | ArrayLike | None = None,
    *,
    quality: Quality = "balanced",
    noise: NoiseName | Noise | ArrayLike = "auto",
    strength: float | tuple[float, float] = 1.0,
    chroma_strength: float | None = None,
    grain: float = 0.0,
    tone: Tone = "auto",
    channel_axis: ChannelAxis = "auto",
    channels: Channels = "auto",
    specks: Specks = "auto",
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
    noise : {"auto", "gaussian", "poisson-gaussian", "correlated", "rician"}, model or array_like
        What kind of noise; "auto" decides from the image (:func:`estimate_noise` says what it would
        decide, and its result may be given here), "rician" is that of magnitudes of an MR scanner.
        An array is a sample of pure noise.
    strength : float or (float, float)
        Multiplies the noise level, 0.01 to 100: above 1 for a smoother picture, below 1 for more detail.
        A pair is for luminance and for colour; 0 leaves one of them as it is.
    chroma_strength : float or None
        Strength for colour, if not that for luminance: the second of a pair.  With channels only; two
        strengths other than 0 take twice the time.
    grain : float
        Share of the removed luminance noise that is put back, 0 to 1.
    tone : {"auto", "srgb", "linear"}
        Whether shadows that noise has darkened are brightened again.  Noise that was added before a tone
        curve makes the mean of noisy pixels too dark.  "srgb": pixels are gamma-encoded, and where what
        was removed is skewed as the curve makes it, that bias is removed too; "linear": never; "auto":
        "srgb" for 8-bit colour, else "linear".
    channel_axis : int, None or "auto"
        Axis of the channels; None if there is none; "auto": as a Pillow image or an xarray.DataArray
        says, else none.
    channels : {"auto", "together", "apart"}
        Which channels are denoised together.  Colours of a photograph show the same things, and help each
        other; stains of a microscope show different things, and outlines of one must not appear in the
        other.  "auto": those whose structures go together.
    specks : {"auto", "keep", "remove"}
        Whether single pixels that no noise explains (salt and pepper, dead and hot pixels, cosmic rays) are
        replaced.  "auto": if they are many and nothing else can have made them; "remove": wherever they
        are, but stars that light one pixel alone are taken for some.
    mask : array_like of bool or None
        True where a pixel is missing; non-finite pixels are missing too.
    rng : int, Generator or None
        Seed; the same seed gives the same bits.
    workers : int or None
        Threads; None takes all cores.
    progress : callable or None
        Called as ``progress(fraction, what)``: how much is done of all, 0 to 1, and what is being done.

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

    Luminance is the mean of the channels, in the values of the image; colour is how far each channel lies
    from it.  For two strengths the image is denoised with each, and the luminance of the first result goes
    with the colour of the second.

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
    return fit_denoise(
        image,
        sigma,
        quality=quality,
        noise=noise,
        strength=strength,
        chroma_strength=chroma_strength,
        grain=grain,
        tone=tone,
        channel_axis=channel_axis,
        channels=channels,
        specks=specks,
        mask=mask,
        rng=rng,
        workers=workers,
        progress=progress,
    ).image


def fit_denoise(
    image: ArrayLike,
    sigma: float | ArrayLike | None = None,
    *,
    quality: Quality = "balanced",
    noise: NoiseName | Noise | ArrayLike = "auto",
    strength: float | tuple[float, float] = 1.0,
    chroma_strength: float | None = None,
    grain: float = 0.0,
    tone: Tone = "auto",
    channel_axis: ChannelAxis = "auto",
    channels: Channels = "auto",
    specks: Specks = "auto",
    mask: ArrayLike | None = None,
    rng: int | np.random.Generator | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> DenoiseResult:
    """Denoise as :func:`denoise` does (same parameters) and return what was found."""
    check_one_of("channels", channels, ("auto", "together", "apart"))
    check_one_of("specks", specks, ("auto", "keep", "remove"))
    opened = open_image(image, channel_axis, mask, channels)
    picture = without_specks(opened, specks)
    n_specks = 0 if picture is opened else _n_missing(picture) - _n_missing(opened)
    picture = replace(picture, channels=picture.groups)  # once: it holds for pixels as they came
    luma, chroma = split_strength(strength, chroma_strength)
    check_share("grain", grain)
    check_one_of("tone", tone, ("auto", "srgb", "linear"))
    check_one_of("quality", quality, tuple(PRESETS))
    found_noise = resolve(picture, sigma, noise)
    model = _if_any(found_noise.in_units(picture.offset, picture.scale), picture)
    task = _Task(picture, model, quality, tone, make_rng(rng))
    if picture.noisy.shape[-1] == 1:
        chroma = luma  # grey pictures have no colour
    with Pool(workers, progress) as pool:
        with pool.part(1.0 if luma == chroma else 0.5):
            found = task.run(luma, pool)
        other = found if luma == chroma else task.run(chroma, pool)
    denoised = found.image
    if luma != chroma:
        denoised = other.image + luminance(found.image - other.image)
    if picture.constant is not None:  # there is no noise there
        denoised = np.where(picture.constant[..., np.newaxis], picture.noisy, denoised)
    if grain > 0.0:
        denoised = denoised + np.float32(grain) * _removed_luminance(picture, denoised)
    find_std = partial(_std_in_units, picture, model, found.white, found.white_variance)
    n_bounded = max(found.n_bounded, other.n_bounded)
    return DenoiseResult(
        picture.restore(denoised), found_noise, found.tone, n_bounded, picture.groups, n_specks,
        find_std,
    )  # fmt: skip


def _n_missing(picture: Picture) -> int:
    return 0 if picture.mask is None else int(picture.mask.sum())


@dataclass(frozen=True)
class _Estimate:
    """What one strength gave: the image, the share of the tone correction, the result in white noise."""

    image: Float
    tone: float
    white: Float
    white_variance: Float
    n_bounded: int


@dataclass(frozen=True)
class _Task:
    """A picture and its noise, to be removed at some strength."""

    picture: Picture
    model: Noise
    quality: Quality
    tone: Tone
    rng: np.random.Generator

    def run(self, strength: float, pool: Pool) -> _Estimate:
        """Remove the noise."""
        picture, sigma = self.picture, self.model.white_sigma
        if strength == 0.0:
            return _Estimate(picture.noisy, 0.0, picture.noisy, np.zeros_like(picture.noisy), 0)
        preset = for_noise(PRESETS[self.quality], self.model.coarse_share)
        if sigma is not None:
            own = self.model
            found = run_gsfw(picture, strength * sigma, preset, self.rng, pool)
            denoised = white = found.image
        else:
            own = self.model.bind(picture.noisy)
            with pool.part(_BEFORE_BLOTCHES):
                found = run_gsfw(_whiten(picture, own), strength, preset, self.rng, pool)
            white = found.image
            denoised = own.restore(white)
            if denoised.shape[-1] == 3 and len(picture.groups) == 1:
                denoised = remove_blotches(
                    picture, denoised, self.model, strength, preset, self.rng, pool
                )
        denoised, used = _without_tone_bias(picture, denoised, self.tone)
        level_at_end = own.level_at_end()
        if used == 0.0 and level_at_end > 0.0 and picture.whole is None:
            denoised = correct_clipping(picture.noisy, denoised, level_at_end)
        return _Estimate(denoised, used, white, found.variance, found.n_bounded)


def _removed_luminance(picture: Picture, denoised: Float) -> Float:
    """Return the luminance noise that was removed, (*spatial, 1); missing pixels had none."""
    removed = luminance(picture.noisy - denoised)
    return removed if picture.mask is None else removed * picture.observed[..., np.newaxis]


def _std_in_units(picture: Picture, model: Noise, white: Float, variance: Float) -> Float:
    """Return the standard deviation of the estimate as the image is given."""
    std = np.sqrt(variance)
    if model.white_sigma is None:
        std = model.bind(picture.noisy).std_back(white, std)
    return picture.in_axes(std * np.float32(picture.scale))


def _without_tone_bias(picture: Picture, denoised: Float, tone: Tone) -> tuple[Float, float]:
    """Remove tone bias from a flat picture of gamma-encoded pixels, and say how much of that was used.

    Not in a piece of a larger image: whether noise is skewed must be asked of the whole.
    """
    white = _white_of(picture, tone)
    if white is None or picture.whole is not None or len(picture.spatial) != 2:
        return denoised, 0.0
    scale, offset = np.float32(picture.scale / white), np.float32(picture.offset / white)
    noisy, shown = picture.noisy * scale + offset, denoised * scale + offset
    corrected, used = correct_tone(noisy, shown)
    return (denoised + (corrected - shown) / scale, used) if used > 0.0 else (denoised, 0.0)


def _white_of(picture: Picture, tone: Tone) -> float | None:
    """Return the pixel value of white if pixels are gamma-encoded, else None."""
    if tone == "linear":
        return None
    dtype = picture.original.dtype
    low, high = picture.original.min(), picture.original.max()
    if dtype == np.uint8:
        eight_bit, white = True, 255.0
    elif dtype.kind == "f":  # 8 bits that became floats
        step = picture.step * picture.scale
        unit = max(float(round(step)), 1.0) if step >= 0.5 else 1 / 255
        eight_bit = bool(abs(step / unit - 1) < 0.01 and low >= 0 and high <= 255.5 * unit)
        white = 255 * unit if eight_bit else 1.0
    else:
        eight_bit, white = False, float(np.iinfo(dtype).max)
    if tone == "srgb":
        return white
    return white if eight_bit and picture.noisy.shape[-1] == 3 else None


def _if_any(model: Noise, picture: Picture) -> Noise:
    """Return a model, or no noise where float32 pixels are rounded by more."""
    n_channels = picture.noisy.shape[-1]
    brightest = picture.noisy.reshape(-1, n_channels).max(axis=0)
    return White(0.0) if model.is_negligible(brightest) else model


def _whiten(picture: Picture, model: Noise) -> Picture:
    """Return the picture that a model is bound to with white noise of variance 1, its whole likewise."""
    whole = picture.whole
    if whole is not None:
        whole = replace(whole, channels=whole.groups)
        whole = _whiten(whole, model.bind(whole.noisy))
    return replace(picture, noisy=model.whiten(picture.noisy), whole=whole)
