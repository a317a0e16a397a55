"""Denoise the pixels of a layer, in a thread that can be watched and cancelled."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from symsmooth.app import stack
from symsmooth.app.job import DenoiseJob
from symsmooth.app.messages import NOISE_KINDS, NoiseDescription, Remedy, plain_stage
from symsmooth.app.stack import denoise_stack
from symsmooth.core.image import Array
from symsmooth.core.parallel import Progress, stop_when
from symsmooth.gsfw.presets import Quality
from symsmooth.io.images import Third
from symsmooth.io.noise_files import load_noise
from symsmooth.methods import DEFAULT, METHODS
from symsmooth.noise import Noise

from .layers import Region, Source

NoiseChoice = Literal[
    "automatic", "white", "photon", "coarse", "Rician", "from a rectangle", "from a file"
]

_NAMES: dict[str, Any] = {kind.word: kind.name for kind in NOISE_KINDS}
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
    file : str
        A noise model, such as camera.json, for the noise "from a file".
    strength : float
    with_std : bool
        Whether the uncertainty is asked for.
    """

    quality: Quality = "balanced"
    noise: NoiseChoice = "automatic"
    level: float = 0.0
    region: Region | None = None
    file: str = ""
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

    @property
    def callback(self) -> Progress:
        """What a run tells how far it is."""

        def report(fraction: float, what: str) -> None:
            self.fraction, self.what = fraction, plain_stage(what)

        return stop_when(self.cancel, report)


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
    model : Noise
        The noise that was removed, to be saved for other pictures of the same camera.
    warnings : sequence of str
        What is doubtful, in the words of the widget.
    """

    image: Array
    std: Array | None
    noise: NoiseDescription
    model: Noise
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
    job, noise = _job(source, settings), find_noise(source, settings, place)
    pieces = (source if part is None else part).pieces
    found = denoise_stack(job, pieces, watch.callback, noise=noise, with_std=settings.with_std)
    assert found.words is not None
    std = found.std
    if std is not None and source.rgb:
        std = np.sqrt(np.mean(np.square(pieces.colours(std)), axis=-1))
    warnings = [warning.say(_REMEDIES) for warning in found.warnings]
    return Result(found.pixels, std, found.words, noise, warnings)


def find_noise(source: Source, settings: Settings, place: Sequence[int]) -> Noise:
    """Return one noise for all of a layer: as given, measured on the rectangle, or as the pixels say."""
    plane = [
        slice(None) if a in "YXC" else at for a, at in zip(source.axes, (*place, 0), strict=False)
    ]
    found = stack.find_noise(_job(source, settings), source.pieces, tuple(plane))
    assert found is not None
    return found


def _job(source: Source, settings: Settings) -> DenoiseJob:
    """Return what the widget says as the command line would."""
    options: dict[str, Any] = {"quality": settings.quality, "strength": settings.strength}
    if not source.rgb:  # channels that are no colours of a photograph have no tone curve
        options["tone"] = "linear"
    if settings.noise == "from a file":
        options["noise"] = load_noise(settings.file)
    elif settings.sigma is None:
        options["noise"] = _NAMES.get(settings.noise, "auto")
    axis = source.pieces.stack.channel_axis
    third: Third = "time" if "T" in source.axes else "auto"
    return DenoiseJob(
        METHODS[DEFAULT], options, settings.sigma, axis, None, _SEED, third, settings.region
    )
