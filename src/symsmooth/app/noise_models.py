"""Noise models from files: found in pictures that have it in common, or measured on still frames."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import jobs
from .errors import UsageError
from .noise_report import NoiseDescription, describe, value_range

if TYPE_CHECKING:
    from ..io import ImageFile
    from ..noise import Noise, NoiseEstimator, NoiseModel

MAX_PICTURES = 8  # from which one model is found together


def check_target(target: Path, overwrite: bool) -> None:
    """Refuse a place where a model cannot be written, before any work."""
    from ..io import FileError
    from ..io.noise_files import check_noise_target

    try:
        check_noise_target(target)
    except FileError as error:
        raise UsageError(str(error), "save") from error
    if target.exists() and not overwrite:
        raise UsageError(f"{target} exists; replace it, or give another name", "overwrite", "save")


def spread(sources: Sequence[Path]) -> list[Path]:
    """Return some of many files, evenly, from which a model is found."""
    step = -(-len(sources) // MAX_PICTURES)
    return list(sources[:: max(step, 1)])


class Together:
    """Pictures whose noise is found as one.

    Only what is looked at is kept, of so many pictures as :func:`spread` returns.
    """

    def __init__(self) -> None:
        self._estimators: list[NoiseEstimator] = []
        self._kinds: dict[tuple[object, int], Path] = {}
        self._models: list[Noise] = []

    def add(self, source: Path, image: ImageFile, estimator: NoiseEstimator) -> None:
        """Add a picture."""
        self._check(source, (image.pixels.dtype, image.n_channels))
        self._estimators.append(estimator)

    def add_model(self, source: Path, model: Noise) -> None:
        """Add what was found in a raw file, or in a series."""
        self._check(source, ("model", 0))
        self._models.append(model)
        if len(self._models) > 1:
            raise UsageError(
                f"{source}: save the noise of one raw file or one series, or calibrate with frames of a "
                "still scene",
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
        from ..noise import NoiseEstimator, resolve

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
    sources: Sequence[Path], darks: Sequence[Path], channel_axis: jobs.ChannelAxis
) -> tuple[NoiseModel, NoiseDescription]:
    """Measure the noise of a camera on files: each picture, and each slice of a stack, is a frame."""
    from ..noise import calibrate_noise

    frames, dark_frames = (_frames(each, channel_axis) for each in (sources, darks))
    model = calibrate_noise(frames, dark_frames, channel_axis=-1)
    pixels, span = _range_of(model)
    return model, describe(model, pixels, span, given=False, assumed=False)


def _frames(sources: Sequence[Path], channel_axis: jobs.ChannelAxis) -> Iterator[Any]:
    """Yield frames, channels last."""
    import numpy as np

    from ..io.formats import open_file
    from ..io.stacks import cut
    from .raw import is_raw

    for source in sources:
        with open_file(source) as file:
            if is_raw(file):
                raise UsageError(
                    f"{source}: a calibration takes no raw files; save the noise of one of them without "
                    "it, which is measured on its mosaic",
                    "calibrate",
                    "save",
                )
            images = jobs.read_file(file, channel_axis)
        for image in images:
            if image.is_bilevel:
                raise UsageError(f"{source}: has one bit a pixel, and no noise to measure")
            stack = cut(image, "none")
            for index in stack.pieces:
                frame, axis = image.pixels[index], stack.channel_axis
                yield frame[..., np.newaxis] if axis is None else np.moveaxis(frame, axis, -1)


def _range_of(model: NoiseModel) -> tuple[Any, float]:
    """Return pixels at which a model is described, and how far apart pixels can be."""
    import numpy as np

    about = model.pixels
    assert about is not None
    pixels = np.linspace(about.low, about.high, 101)
    kind = np.dtype(about.dtype)
    return pixels, value_range(pixels.astype(kind) if kind.kind in "ui" else pixels)
