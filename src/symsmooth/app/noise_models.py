"""Noise models from files: found in pictures that have it in common, or measured on still frames."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..io import FileError, ImageFile
from ..io.formats import open_file
from ..io.images import Third, cut
from ..io.noise_files import check_noise_target
from ..methods import DEFAULT, find_method
from ..noise import Noise, NoiseEstimator, NoiseModel, calibrate_noise, resolve
from .job import ChannelAxis, DenoiseJob, read_file
from .messages import NoiseDescription, UsageError, describe, value_range
from .raw import describe_raw_noise, is_raw, law_of_pixels, raw_noise
from .series import look_at_series
from .stack import Pieces
from .video import look_at_video

MAX_PICTURES = 8  # from which one model is found together


def check_target(target: Path, overwrite: bool) -> None:
    """Refuse a place where a model cannot be written, before any work."""
    try:
        check_noise_target(target)
    except FileError as error:
        raise UsageError(str(error), "save") from error
    if target.exists() and not overwrite:
        raise UsageError(f"{target} exists; replace it, or give another name", "overwrite", "save")


@dataclass(frozen=True)
class Look:
    """What noise an image is found to have; None for black and white ones, which have no level."""

    image: ImageFile
    noise: Noise | None = None
    words: NoiseDescription | None = None
    # Of a picture or stack: others may be looked at with it.
    estimator: NoiseEstimator | None = None
    third: Third = "auto"

    @property
    def span(self) -> float:
        """How far apart pixels can be."""
        raw = self.image.details.raw
        span = self.image.details.span if raw is None else raw.span
        return value_range(self.image.pixels) if span is None else span


def look_at(source: Path, axis: ChannelAxis, frames: Sequence[Path] = ()) -> list[Look]:
    """Find the noise of each image of a file, as `denoise` sees it; ``frames`` are those of a series."""
    how = DenoiseJob(find_method(DEFAULT), {}, None, axis, None, 0, "time")
    if frames:
        image, run = look_at_series(frames, how)
        return [Look(image, run.noise, run.words, third="time")]
    with open_file(source) as file:
        if file.format == "VIDEO":
            image, run = look_at_video(file, how)
            return [Look(image, run.noise, run.words, third="time")]
        if is_raw(file):
            image, model = raw_noise(file)
            return [Look(image, law_of_pixels(model, image), describe_raw_noise(model, image))]
        return [_look(image) for image in read_file(file, axis)]


def _look(image: ImageFile) -> Look:
    if image.is_bilevel:
        return Look(image)
    pieces = Pieces(image, cut(image))
    estimator = pieces.estimator()
    noise, pixels = resolve(estimator), pieces.load(pieces.middle)
    words = describe(noise, pixels, value_range(image.pixels), given=False, assumed=False)
    return Look(image, noise, words, estimator)


class Together:
    """Pictures whose noise is found as one; of many files some are kept, evenly."""

    def __init__(self, sources: Sequence[Path]) -> None:
        self._wanted = set(sources[:: max(-(-len(sources) // MAX_PICTURES), 1)])
        self._estimators: list[NoiseEstimator] = []
        self._kinds: dict[tuple[object, int], Path] = {}
        self._models: list[Noise] = []

    def add(self, source: Path, look: Look) -> None:
        """Add what was found in a file."""
        if look.estimator is not None:
            if source in self._wanted:
                self._check(source, (look.image.pixels.dtype, look.image.n_channels))
                self._estimators.append(look.estimator)
        elif look.noise is not None:  # of a raw file, or of a series
            self._check(source, ("model", 0))
            self._models.append(look.noise)
            if len(self._models) > 1:
                raise UsageError(
                    f"{source}: save the noise of one raw file or one series, or calibrate with frames of "
                    "a still scene",
                    "save",
                    "calibrate",
                )

    def _check(self, source: Path, kind: tuple[object, int]) -> None:
        self._kinds.setdefault(kind, source)
        if len(self._kinds) > 1:
            first = next(iter(self._kinds.values()))
            raise UsageError(
                f"{source} differs from {first} in its pixels; one model is that of one camera in one "
                "mode, so save them apart",
                "save",
            )

    def model(self) -> Noise:
        """Return the noise of all."""
        if self._models:
            return self._models[0]
        if not self._estimators:
            raise UsageError(
                "there is no noise to save; black and white pictures have none", "save"
            )
        first, *others = self._estimators
        if not others:
            return resolve(first)
        return resolve(NoiseEstimator(lambda: first.picture, lambda _: (o.picture for o in others)))


def calibrate_files(
    sources: Sequence[Path], darks: Sequence[Path], channel_axis: ChannelAxis
) -> tuple[NoiseModel, NoiseDescription]:
    """Measure the noise of a camera on files: each picture, and each slice of a stack, is a frame."""
    frames, dark_frames = (_frames(each, channel_axis) for each in (sources, darks))
    model = calibrate_noise(frames, dark_frames, channel_axis=-1)
    about = model.pixels
    assert about is not None
    pixels, dtype = np.linspace(about.low, about.high, 101), np.dtype(about.dtype)
    span = value_range(pixels.astype(dtype) if dtype.kind in "ui" else pixels)
    return model, describe(model, pixels, span, given=False, assumed=False)


def _frames(sources: Sequence[Path], channel_axis: ChannelAxis) -> Iterator[Any]:
    """Yield frames, channels last."""
    for source in sources:
        with open_file(source) as file:
            if is_raw(file):
                raise UsageError(
                    f"{source}: a calibration takes no raw files; save the noise of one of them without "
                    "it, which is measured on its mosaic",
                    "calibrate",
                    "save",
                )
            images = read_file(file, channel_axis)
        for image in images:
            if image.is_bilevel:
                raise UsageError(f"{source}: has one bit a pixel, and no noise to measure")
            stack = cut(image, "none")
            for index in stack.pieces:
                frame, axis = image.pixels[index], stack.channel_axis
                yield frame[..., np.newaxis] if axis is None else np.moveaxis(frame, axis, -1)
