"""The front door: the best we have, nothing to choose."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..core.channels import Channels, Groups
from ..core.image import (
    Array,
    ChannelAxis,
    Float,
    Input,
    Picture,
    add_change,
    check_image,
    open_image,
)
from ..core.lazy import dask_aware
from ..core.options import check_one_of, check_share, make_rng, split_strength
from ..core.parallel import Pool, Progress
from ..core.signatures import described_like, parameters_of
from ..noise import Noise, resolve
from ..noise.resolve import NoiseName
from ..noise.specks import Specks, count_specks, without_specks
from .bias import Tone
from .pieces import SURVEY_TIME, Survey, denoise_in_pieces, is_large, survey_picture
from .presets import PRESETS, Quality
from .removal import How, remove_noise
from .series import Blocks, denoise_in_blocks, n_blocks


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
        found = self._find_std()
        object.__setattr__(self, "_find_std", lambda: found)  # what it was found from may go
        return found


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
    time_axis: int | None = None,
) -> DenoiseResult:
    """Denoise as :func:`denoise` does and return all that was found.

    Returns
    -------
    DenoiseResult
    """
    check_one_of("channels", channels, ("auto", "together", "apart"))
    check_one_of("specks", specks, ("auto", "keep", "remove"))
    check_share("grain", grain)
    check_one_of("tone", tone, ("auto", "srgb", "linear"))
    check_one_of("quality", quality, tuple(PRESETS))
    how = How(quality, *split_strength(strength, chroma_strength), grain, tone)
    given = check_image(image, channel_axis, mask, time_axis)
    if given.time_axis is not None:
        _check_for_series(tone, sigma)
        return _fit_series(
            given.open(channels), sigma, noise, how, specks, make_rng(rng), Pool(workers, progress)
        )
    if is_large(given):
        with Pool(workers, progress) as pool:
            with pool.part(SURVEY_TIME, "survey"):
                survey = survey_picture(given, sigma, noise, how, specks, channels, pool)
            if survey is not None:
                return _fit_large(given, survey, how, make_rng(rng), pool)
    with Pool(workers, progress) as pool:
        opened = given.open(channels)
        picture = without_specks(opened, specks)
        # Asked once: it holds for pixels as they came.
        picture = replace(picture, channels=picture.groups)
        found_noise = resolve(picture, sigma, noise)
        found = remove_noise(picture, found_noise, how, make_rng(rng), pool)
    return DenoiseResult(
        picture.restore(found.image), found_noise, found.bias.tone, found.n_bounded, picture.groups,
        count_specks(opened, picture), found.find_std,
    )  # fmt: skip


@dask_aware
@parameters_of(fit_denoise)
def denoise(*args: Any, **options: Any) -> Array:
    """Denoise an image with the best method there is here.

    Parameters
    ----------
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
    channels : {"auto", "together", "apart"}
        Which channels are denoised together.  Colours of a photograph show the same things, and help each
        other; stains of a microscope show different things, and outlines of one must not appear in the
        other.  "auto": those whose structures go together.
    specks : {"auto", "keep", "remove"}
        Whether single pixels that no noise explains (salt and pepper, dead and hot pixels, cosmic rays) are
        replaced.  "auto": if they are many and nothing else can have made them; "remove": wherever they
        are, but stars that light one pixel alone are taken for some.
    time_axis : int or None
        Which axis is time: then the image is a series of flat pictures, and frames help each other,
        wherever things have moved to.  :func:`denoise_frames` takes frames one by one.

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
    return fit_denoise(*args, **options).image


def _fit_large(
    image: Input, survey: Survey, how: How, rng: np.random.Generator, pool: Pool
) -> DenoiseResult:
    """Denoise a large picture in pieces."""
    found = denoise_in_pieces(image, survey, how, rng, pool)
    tone = getattr(survey.sample.decided, "tone", 0.0)
    return DenoiseResult(
        found.image, survey.noise, tone, found.n_bounded, survey.groups, found.n_specks, found.find_std
    )  # fmt: skip


def _check_for_series(tone: Tone, sigma: float | ArrayLike | None) -> None:
    """Refuse what cannot be honoured for a series."""
    if tone == "srgb":
        raise ValueError(
            "tone='srgb' is for single pictures, whose shadows it corrects one by one, and a series would "
            "flicker; leave it out"
        )
    if sigma is not None and np.ndim(sigma) > 1:
        raise ValueError(
            "sigma of a series is a number, or one for each channel, not a map; give a model of noise"
        )


def _fit_series(
    series: Picture,
    sigma: float | ArrayLike | None,
    noise: NoiseName | Noise | ArrayLike,
    how: How,
    specks: Specks,
    rng: np.random.Generator,
    pool: Pool,
) -> DenoiseResult:
    """Denoise an opened series of frames together."""
    blocks = Blocks(sigma, noise, how, specks, series.channels, rng, pool)
    masks = [None] * len(series.original) if series.mask is None else list(series.mask)
    blocks.n_expected = n_blocks(len(masks))
    with pool:
        frames = list(denoise_in_blocks(zip(series.original, masks, strict=True), blocks))
    image = np.stack([add_change(frame.pixels, frame.change) for frame in frames])
    std = np.stack([frame.std for frame in frames])
    assert blocks.noise is not None
    return DenoiseResult(
        series.finish(image), blocks.noise, 0.0, blocks.n_bounded, blocks.groups, blocks.n_specks,
        lambda: series.finish_plain(std),
    )  # fmt: skip


@described_like(denoise)
def denoise_frames(
    frames: Iterable[ArrayLike],
    sigma: float | ArrayLike | None = None,
    *,
    quality: Quality = "balanced",
    noise: NoiseName | Noise = "auto",
    strength: float | tuple[float, float] = 1.0,
    chroma_strength: float | None = None,
    grain: float = 0.0,
    channel_axis: ChannelAxis = "auto",
    channels: Channels = "auto",
    specks: Specks = "auto",
    rng: int | np.random.Generator | None = None,
    workers: int | None = None,
) -> Iterator[Array]:
    """Denoise frames that come one by one, from a camera, a video or a folder, and yield them one by one.

    Parameters
    ----------
    frames : iterable of array_like
        Flat pictures of one shape and dtype, with channels if ``channel_axis`` is given.  They are read as
        far ahead as is needed: up to 27 frames.
    sigma : float, array_like or None
        Standard deviation of Gaussian noise: one number, or one for each channel; None finds out what noise
        the first frames have.
    channel_axis : int, None or "auto"
        Axis of the channels of a frame.

    Yields
    ------
    ndarray
        Each frame denoised, with its shape and dtype.  The bits are those of
        ``denoise(np.stack(frames), time_axis=0)``.

    Examples
    --------
    >>> import numpy as np, symsmooth
    >>> rng = np.random.default_rng(0)
    >>> camera = (rng.normal(100.0, 20.0, (32, 32)) for _ in range(5))
    >>> [bool(frame.std() < 6.0) for frame in symsmooth.denoise_frames(camera, 20.0, quality="fast")]
    [True, True, True, True, True]
    """
    blocks = series_blocks(
        sigma, make_rng(rng), workers, quality=quality, noise=noise, strength=strength,
        chroma_strength=chroma_strength, grain=grain, channels=channels, specks=specks,
    )  # fmt: skip
    return _each_frame(frames, blocks, channel_axis)


def series_blocks(
    sigma: float | ArrayLike | None,
    rng: np.random.Generator,
    workers: int | None,
    *,
    quality: Quality = "balanced",
    noise: NoiseName | Noise | ArrayLike = "auto",
    strength: float | tuple[float, float] = 1.0,
    chroma_strength: float | None = None,
    grain: float = 0.0,
    tone: Tone = "auto",
    channels: Channels = "auto",
    specks: Specks = "auto",
) -> Blocks:
    """Return what denoises the blocks of a series with the options of :func:`denoise`."""
    check_one_of("channels", channels, ("auto", "together", "apart"))
    check_one_of("specks", specks, ("auto", "keep", "remove"))
    check_share("grain", grain)
    check_one_of("quality", quality, tuple(PRESETS))
    _check_for_series(tone, sigma)
    how = How(quality, *split_strength(strength, chroma_strength), grain, "linear")
    return Blocks(sigma, noise, how, specks, channels, rng, Pool(workers), with_std=False)


def _each_frame(
    frames: Iterable[ArrayLike], blocks: Blocks, channel_axis: ChannelAxis
) -> Iterator[Array]:
    """Yield frames denoised; each is opened as it comes."""
    waiting: deque[Picture] = deque()

    def opened() -> Iterator[tuple[Array, Array | None]]:
        for number, frame in enumerate(frames):
            picture = open_image(frame, channel_axis)
            if len(picture.spatial) != 2:
                raise ValueError(
                    f"frame {number} is not a 2-D picture: its shape is {np.shape(frame)}"
                )
            if waiting and picture.original.shape != waiting[0].original.shape:
                raise ValueError(
                    f"frame {number} has shape {picture.original.shape}, frames before it "
                    f"{waiting[0].original.shape}; a series has one shape"
                )
            if waiting and picture.original.dtype != waiting[0].original.dtype:
                raise ValueError(
                    f"frame {number} has dtype {picture.original.dtype}, frames before it "
                    f"{waiting[0].original.dtype}; a series has one dtype"
                )
            waiting.append(picture)
            yield picture.original, picture.mask

    for found in denoise_in_blocks(opened(), blocks):
        yield waiting.popleft().finish(add_change(found.pixels, found.change))
