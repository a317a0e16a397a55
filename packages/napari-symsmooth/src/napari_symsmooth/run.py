"""Denoise the pixels of a layer, in a thread that can be watched and cancelled."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from symsmooth.app.job_warnings import Remedy
from symsmooth.app.noise_kinds import NOISE_KINDS
from symsmooth.app.noise_left import warn_of_noise_left
from symsmooth.app.noise_report import NoiseDescription, describe, find_warnings, value_range
from symsmooth.app.stages import plain_stage
from symsmooth.core.image import Array, Picture, open_image
from symsmooth.core.parallel import Progress, part_of, stop_when
from symsmooth.gsfw.denoise import DenoiseResult, fit_denoise
from symsmooth.gsfw.presets import Quality
from symsmooth.noise import Noise, NoiseEstimator, resolve
from symsmooth.noise.check import check_result
from symsmooth.noise.specks import without_specks

from .layers import Region, Source

NoiseChoice = Literal["automatic", "white", "photon", "coarse", "Rician", "from a rectangle"]

_NAMES: dict[str, Any] = {kind.word: kind.name for kind in NOISE_KINDS}
_MAX_ESTIMATES = 8  # pieces from which the level of white noise is taken
_SEED = 0  # as the command line has it: the same pixels give the same bits in both
# Remedies for what is doubtful, as choices of the widget; it writes no files, so no dtype.
_REMEDIES: Mapping[Remedy, str] = {
    "level": "choose the noise “white” with a level such as {value}",
    "coarse": "the noise “coarse”",
    "region": "“from a rectangle”",
    "this-region": "“from a rectangle” at {value} (x, y, width, height)",
    "stronger": "strength {value}",
}


@dataclass(frozen=True)
class Settings:
    """What the widget says.

    Attributes
    ----------
    quality : str
    noise : str
    level : float
        Of white noise, in the layer's units; 0 to have it estimated.
    region : Region or None
        The rectangle of flat ground, for the noise "from a rectangle".
    strength : float
    with_std : bool
        Whether the uncertainty is asked for.
    """

    quality: Quality = "balanced"
    noise: NoiseChoice = "automatic"
    level: float = 0.0
    region: Region | None = None
    strength: float = 1.0
    with_std: bool = False

    @property
    def sigma(self) -> float | None:
        """The level that was given, None if it is to be found."""
        return self.level if self.noise == "white" and self.level > 0.0 else None


@dataclass
class Watch:
    """What passes between a run and the widget, from one thread to another."""

    cancel: threading.Event = field(default_factory=threading.Event)
    fraction: float = 0.0
    what: str = "reading the layer"

    def callback(self, part: int, n_parts: int) -> Progress:
        """Return the callback for one of several parts."""

        def report(fraction: float, what: str) -> None:
            self.fraction, self.what = fraction, plain_stage(what)

        prefix = f"{part + 1} of {n_parts}: " if n_parts > 1 else ""
        own = part_of(report, part / n_parts, (part + 1) / n_parts, prefix)
        return stop_when(self.cancel, own)


@dataclass(frozen=True)
class Result:
    """What was made of a layer.

    Attributes
    ----------
    image : ndarray
        In the shape and dtype of the layer.
    std : ndarray or None
        The uncertainty, without an axis of colours; None if it was not asked for.
    noise : NoiseDescription
    warnings : sequence of str
        What is doubtful, in the words of the widget.
    """

    image: Array
    std: Array | None
    noise: NoiseDescription
    warnings: Sequence[str]


def run(
    source: Source,
    settings: Settings,
    watch: Watch,
    place: Sequence[int],
    part: Source | None = None,
) -> Result:
    """Denoise a layer, or a part of it with the noise of the whole.

    Parameters
    ----------
    source : Source
    settings : Settings
    watch : Watch
    place : sequence of int
        Indices of what is looked at: noise is measured on a rectangle of this plane.
    part : Source or None
        None for all of it.

    Raises
    ------
    Cancelled
        If the watch says so.
    """
    watch.what = "finding the noise"
    model = find_noise(source, settings, place)
    return denoise_pieces(source if part is None else part, settings, watch, model)


def find_noise(source: Source, settings: Settings, place: Sequence[int]) -> Noise:
    """Return one noise for all of a layer: as given, measured on the rectangle, or as the pixels say."""
    if settings.noise == "from a rectangle":
        plane, channel_axis = _plane_at(source, place)
        return resolve(open_image(plane, channel_axis), region=settings.region)
    several = len(source.stack) > 1
    estimator = NoiseEstimator(
        lambda: next(_usable(source, _from_the_middle(len(source.stack)))),
        (lambda _: _usable(source, _spread(len(source.stack)))) if several else None,
    )
    return resolve(estimator, settings.sigma, _NAMES[settings.noise])


def _from_the_middle(count: int) -> list[int]:
    return sorted(range(count), key=lambda number: abs(number - count // 2))


def _spread(count: int) -> range:
    step = max(count // _MAX_ESTIMATES, 1)
    return range(step // 2, count, step)


def _usable(source: Source, numbers: Iterable[int]) -> Iterator[Picture]:
    """Open the pieces of these numbers that have pixels."""
    found = False
    for number in numbers:
        pixels = _colours(source, source.load(source.stack.pieces[number]))
        if np.isfinite(pixels).any():
            found = True
            yield without_specks(open_image(pixels, source.stack.channel_axis))
    if not found:
        raise ValueError("the layer has no usable pixel: none is finite")


def _plane_at(source: Source, place: Sequence[int]) -> tuple[Array, int | None]:
    """Return the plane that is looked at and the axis of its channels."""
    kept = "".join(letter for letter in source.axes if letter in "YXC")
    index = [
        slice(None) if letter in kept else place[axis] for axis, letter in enumerate(source.axes)
    ]
    plane = _colours(source, source.load(tuple(index)))
    return plane, kept.index("C") if "C" in kept else None


def _colours(source: Source, pixels: Array) -> Array:
    """Return the pixels without alpha."""
    return pixels[..., : source.n_colours] if source.rgb else pixels


def denoise_pieces(source: Source, settings: Settings, watch: Watch, model: Noise) -> Result:
    """Denoise all pieces of a layer with one noise."""
    stack = source.stack
    dtype = np.dtype(source.pixels.dtype).newbyteorder("=")
    image = np.empty(source.pixels.shape, dtype)
    std = np.zeros(source.pixels.shape, np.float32) if settings.with_std else None
    squares, pixels, denoised = 0.0, None, None
    for number, index in enumerate(stack):
        piece = source.load(index)
        image[index] = piece
        colours = _colours(source, piece)
        if not np.isfinite(colours).any():  # an empty frame stays one
            continue
        progress = watch.callback(number, len(stack))
        found = _denoise(colours, source, settings, model, progress)
        _colours(source, image[index])[...] = found.image
        if std is not None:
            _colours(source, std[index])[...] = found.std
        squares += _squared_change(colours, found.image)
        if pixels is None or number <= len(stack) // 2:
            pixels, denoised = colours, found.image
    if pixels is None or denoised is None:
        raise ValueError("the layer has no usable pixel: none is finite")
    noise, warnings = _judge(
        open_image(pixels, stack.channel_axis),
        denoised,
        settings,
        model,
        (squares / image.size) ** 0.5,
    )
    if std is not None and source.rgb:
        std = np.sqrt(np.mean(np.square(_colours(source, std)), axis=-1))
    return Result(image, std, noise, warnings)


def _denoise(
    pixels: Array, source: Source, settings: Settings, model: Noise, progress: Progress
) -> DenoiseResult:
    """Denoise one piece; three channels that are no colours of a photograph have no tone curve."""
    return fit_denoise(
        pixels,
        noise=model,
        quality=settings.quality,
        strength=settings.strength,
        tone="auto" if source.rgb else "linear",
        channel_axis=source.stack.channel_axis,
        rng=_SEED,
        progress=progress,
    )


def _judge(
    picture: Picture, denoised: Array, settings: Settings, model: Noise, removed: float
) -> tuple[NoiseDescription, list[str]]:
    """Say what noise was removed, and what is doubtful about that."""
    pixels = picture.original
    span = value_range(pixels)
    given = settings.sigma is not None
    noise = describe(model, pixels, span, given=given, assumed=False)
    warnings = find_warnings(noise, pixels, span, removed, settings.sigma)
    if settings.noise in _NAMES and not given:  # it was found, not measured
        axis = None if picture.channel_axis is None else -1

        def denoise(part: Array, other: Noise, strength: float) -> Array:
            found = fit_denoise(
                part, noise=other, strength=strength, quality="fast", channel_axis=axis, rng=_SEED
            )
            return found.image

        check = check_result(picture, denoised, model)
        warnings += warn_of_noise_left(check, picture, model, span, denoise)
    return noise, [warning.say(_REMEDIES) for warning in warnings]


def _squared_change(before: Array, after: Any) -> float:
    """Return the sum of the squared change of finite pixels."""
    known = np.isfinite(before)
    return float(np.square(np.subtract(after[known], before[known], dtype=np.float64)).sum())
