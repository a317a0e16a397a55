"""Denoise a raw mosaic before it is developed: there noise is white, and its law is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..core.image import Array, Float, Picture, open_image
from ..core.options import check_one_of, check_share, check_strength, make_rng
from ..core.parallel import Pool, Progress
from ..core.signatures import described_like, parameters_of
from ..gsfw.observation import Observation
from ..gsfw.presets import PRESETS, Quality
from ..gsfw.stages import run_gsfw
from ..noise import NoiseModel
from ..noise.levels import Photons
from .colour import find_colour
from .defects import fill_from_neighbours, find_defects, find_highlights
from .mosaic import parse_pattern, sites
from .noise import fit_sensor_noise, in_other_units, stabilise, undo_stabilise
from .phases import denoise_by_phase

_COLOUR_TIME = 0.25  # of all, for the progress callback
_SAMPLE = 50_000  # pixels from which the spread of the light is taken
_SMALLEST = 32  # pixels a side of a mosaic that is looked at in two ways


@dataclass(frozen=True)
class RawResult:
    """What :func:`denoise_raw` found.

    Attributes
    ----------
    image : ndarray
        The denoised mosaic, with the input's dtype.
    noise : NoiseModel
        The noise that was removed, for red, green and blue: variance gain * light + offset
        (``noise.photons``), light being what a pixel is above its black.
    n_defects : int
        Hot and dead pixels that were replaced.
    n_highlights : int
        Clipped pixels that were left as they are.
    """

    image: Array
    noise: NoiseModel
    n_defects: int
    n_highlights: int


def fit_denoise_raw(
    mosaic: ArrayLike,
    pattern: str | ArrayLike,
    black: float | ArrayLike = 0.0,
    white: float | None = None,
    *,
    quality: Quality = "balanced",
    noise: NoiseModel | None = None,
    strength: float = 1.0,
    grain: float = 0.0,
    mask: ArrayLike | None = None,
    rng: int | np.random.Generator | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> RawResult:
    """Denoise as :func:`denoise_raw` does and return all that was found.

    Returns
    -------
    RawResult
    """
    check_strength(strength)
    check_share("grain", grain)
    check_one_of("quality", quality, tuple(PRESETS))
    exposure = _expose(mosaic, pattern, black, white, mask)
    generator = make_rng(rng)
    given = None if noise is None else _for_colours(noise)
    found = exposure.estimate() if given is None else in_other_units(given, 1.0 / exposure.unit)
    stabilised = stabilise(exposure.light, exposure.tile, found)
    defects = find_defects(stabilised, exposure.tile)
    missing = exposure.picture.mask
    holes = defects if missing is None else defects | missing
    stabilised = fill_from_neighbours(stabilised, holes, exposure.tile)
    with Pool(workers, progress) as pool:
        denoised = _remove_noise(stabilised, exposure, strength, quality, generator, pool)
    light = undo_stabilise(denoised, exposure.tile, found)
    del denoised, stabilised
    if grain > 0.0:
        light += np.float32(grain) * np.where(holes, np.float32(0), exposure.light - light)
    image = exposure.restore(light, defects)
    law = given or in_other_units(found, exposure.unit)
    return RawResult(image, NoiseModel(law), int(defects.sum()), int(exposure.highlights.sum()))


@parameters_of(fit_denoise_raw)
def denoise_raw(*args: Any, **options: Any) -> Array:
    """Denoise a raw mosaic, one colour a pixel, as it comes from a sensor.

    Parameters
    ----------
    mosaic : array_like
        2-D, any real dtype but bool, linear in light.
    pattern : str or array_like
        Which colour each pixel sees: "RGGB", "BGGR", "GRBG", "GBRG", "X-Trans", or the tile that repeats,
        in rows of letters ("RG/GB") or of 0, 1, 2 for red, green, blue.
    black : float or array_like
        The pixel without light; an array (rows, columns) is a tile that repeats.
    white : float or None
        Where pixels clip; None: at the largest of the dtype, floats nowhere.
    quality : {"preview", "fast", "balanced", "best"}
        How much time to spend.
    noise : NoiseModel or None
        Variance gain * light + offset, light being what a pixel is above its black, of red, green, blue
        or of all (one channel); None estimates it (:func:`estimate_raw_noise`).
    strength : float
        Multiplies the noise level, 0.01 to 100: above 1 for a smoother picture, below 1 for more detail.
    grain : float
        Share of the removed noise that is put back, 0 to 1; that of hot and dead pixels is not.

    Returns
    -------
    ndarray
        Same shape and dtype as the mosaic.

    Notes
    -----
    Noise is made white with variance 1 (generalised Anscombe transform, for each colour), what colour adds
    to each pixel is taken off, GSF-W (:func:`denoise_gsfw`) removes the noise of the grey picture that is
    left, and all is undone, without bias.  A Bayer mosaic is also denoised by patches of the mosaic itself
    ("balanced" and "best"), and the mean of both is taken.  Hot and dead pixels are missing pixels;
    highlights that are clipped are known to be white, and stay so.

    Examples
    --------
    >>> import numpy as np, symsmooth
    >>> noisy = np.random.default_rng(0).poisson(100.0, (64, 64)).astype(np.uint16)
    >>> bool(symsmooth.denoise_raw(noisy, "RGGB").std() < 4.0)
    True
    """
    return fit_denoise_raw(*args, **options).image


@described_like(denoise_raw)
def estimate_raw_noise(
    mosaic: ArrayLike,
    pattern: str | ArrayLike,
    black: float | ArrayLike = 0.0,
    white: float | None = None,
    *,
    mask: ArrayLike | None = None,
) -> NoiseModel:
    """Estimate the noise of a raw mosaic.

    Returns
    -------
    NoiseModel
        Variance gain * light + offset of red, green and blue (``model.photons``), light being what a
        pixel is above its black.

    Examples
    --------
    >>> import numpy as np, symsmooth
    >>> noisy = np.random.default_rng(0).poisson(np.linspace(10, 200, 256), (256, 256))
    >>> gain = symsmooth.estimate_raw_noise(noisy, "RGGB").photons.gain[0]
    >>> bool(0.9 < gain < 1.1)
    True
    """
    exposure = _expose(mosaic, pattern, black, white, mask)
    return NoiseModel(in_other_units(exposure.estimate(), exposure.unit))


@dataclass(frozen=True)
class _Exposure:
    """A mosaic: its pattern, its light (pixels above black, in a unit of their size), where it clips."""

    picture: Picture
    tile: Array
    light: Float
    unit: float
    clipped: Array
    highlights: Array

    def estimate(self) -> Photons:
        """Return the noise of the light."""
        excluded = self.clipped if self.picture.mask is None else self.clipped | self.picture.mask
        return fit_sensor_noise(self.light, self.tile, excluded)

    def restore(self, light: Float, defects: Array) -> Array:
        """Return denoised light as a mosaic of the dtype that came; what clips stays as it is."""
        picture = self.picture
        light -= self.light
        light[self.highlights & ~defects] = 0.0
        light /= np.float32(picture.scale / self.unit)
        return picture.restore(picture.noisy + light[..., np.newaxis])


def _expose(
    mosaic: ArrayLike,
    pattern: str | ArrayLike,
    black: float | ArrayLike,
    white: float | None,
    mask: ArrayLike | None,
) -> _Exposure:
    """Check a mosaic and what is said of it; take its black off."""
    tile = parse_pattern(pattern)
    picture = open_image(mosaic, None, mask)
    if len(picture.spatial) != 2:
        raise ValueError(
            f"mosaic must be 2-D, got shape {picture.spatial}; pass each mosaic separately"
        )
    raw = picture.original[..., 0]
    light, unit = _in_light(picture, black)
    clipped = np.zeros(raw.shape, bool)
    if white is None and raw.dtype.kind in "ui":
        white = float(np.iinfo(raw.dtype).max)
    if white is not None:
        if not float(white) > float(np.max(black)):
            raise ValueError(f"white must be above black, got white {white} and black {black!r}")
        clipped = raw >= white
    return _Exposure(picture, tile, light, unit, clipped, find_highlights(clipped, tile))


def _in_light(picture: Picture, black: float | ArrayLike) -> tuple[Float, float]:
    """Return pixels less their black in units of their spread, float32, and that unit.

    So nothing depends on the units of the mosaic; where all pixels are alike, the unit is what they are
    above black.
    """
    level = np.atleast_2d(np.asarray(black, np.float64))
    if level.ndim != 2 or level.size == 0 or not np.isfinite(level).all():
        raise ValueError(f"black must be a number or a tile (rows, columns) of them, got {black!r}")
    places = list(sites(np.zeros(level.shape, int)))
    exact = [_above(picture, site, float(level.flat[i])) for i, (_, site) in enumerate(places)]
    unit = _spread(np.concatenate([part[:: max(1, part.size // _SAMPLE)] for part in exact]))
    light = np.empty(picture.spatial, np.float32)
    for (_, site), part in zip(places, exact, strict=True):
        light[site] = (part / unit).reshape(light[site].shape)
    return light, unit


def _above(picture: Picture, site: tuple[slice, slice], black: float) -> Array:
    """Return the pixels of a site less their black, in a row, not rounded; missing ones are filled."""
    pixels = picture.original[..., 0][site].astype(np.float64)
    if picture.mask is not None:
        filled = picture.noisy[..., 0][site] * picture.scale + picture.offset
        pixels = np.where(picture.mask[site], filled, pixels)
    return (pixels - black).reshape(-1)


def _spread(values: Array) -> float:
    """Return how far values spread, without a few; if all are alike how large they are, which is not 0."""
    low, high = np.quantile(values, [0.01, 0.99])
    return float(high - low or np.ptp(values) or np.abs(values).max() or 1.0)


def _remove_noise(
    stabilised: Float,
    exposure: _Exposure,
    strength: float,
    quality: Quality,
    rng: np.random.Generator,
    pool: Pool,
) -> Float:
    """Remove noise of variance 1 from a mosaic without holes."""
    thorough = len(PRESETS[quality].pilots) > 1  # "balanced" and what takes longer
    pilot: Quality = "fast" if thorough else "preview"
    # A second opinion: of a whole Bayer mosaic, large enough to hold patches.
    second = thorough and exposure.tile.shape == (2, 2) and exposure.picture.mask is None
    second = second and min(exposure.light.shape) >= _SMALLEST
    with pool.part(_COLOUR_TIME, "colour"):
        colour = find_colour(stabilised, exposure.tile, strength, pilot, rng, pool)
    grey = (stabilised - colour)[..., np.newaxis]
    observation = Observation.of(grey, strength, exposure.picture.mask)
    with pool.part(0.5 if second else 1.0):
        denoised = run_gsfw(observation, PRESETS[quality], rng, pool).image[..., 0]
    denoised += colour
    if second:
        with pool.part(1.0, "phases"):
            denoised += denoise_by_phase(stabilised, strength, rng, pool)
        denoised *= np.float32(0.5)
    return denoised


def _for_colours(noise: NoiseModel) -> Photons:
    """Return a given law for red, green and blue."""
    if not hasattr(noise, "photons"):
        raise TypeError(
            f"noise must be a PoissonGaussian or None, got {type(noise).__name__}; "
            "estimate_raw_noise returns one"
        )
    law = noise.photons
    if len(law.gain) == 1:
        return Photons(law.gain * 3, law.offset * 3)
    if len(law.gain) != 3:
        raise ValueError(f"noise must have one channel or three, got {len(law.gain)}")
    return law
