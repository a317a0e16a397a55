"""Jobs, noise and warnings of the application, in words of the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..app import messages, raw
from ..app.job import DenoiseJob, Outcome
from ..app.messages import JobWarning, NoiseDescription, Remedy, value_range
from ..app.run import FileJob, run
from ..app.series import SeriesJob, look_at_series
from ..app.stack import Pieces, apply, describe_noise
from ..app.video import look_at_video
from ..core.image import Array, open_image
from ..core.parallel import Progress
from ..io import FileError, ImageFile, read_images
from ..io.base import memory
from ..io.formats import open_file
from ..io.images import cut
from ..io.noise_files import load_noise, save_noise
from ..methods import METHODS
from ..noise import Noise, NoiseEstimator, resolve
from ..raw.mosaic import COLOURS
from .settings import NOISE_NAMES, Settings

_WORKING_BYTES = 64  # of memory for a pixel at work
_POINTS = 33  # of the plot of level against brightness
_SEED = 0  # as on the command line
_BAYER = (2, 2)  # patterns of this size have a name, RGGB
# Remedies for what is doubtful, in words of the page; and the kind of noise to choose for each.
_REMEDIES: Mapping[Remedy, str] = {
    "level": "choose White noise and give its level, such as {value}",
    "coarse": "Coarse noise",
    "region": "a box",
    "this-region": "a box at {value} (x, y, width, height)",
    "stronger": "Strength {value}",
    "floats": "the command line can write floats",
    "series": "Time series",
    "resume": "the command line",
}
_CHOICES: Mapping[Remedy, str] = {
    "level": "white",
    "coarse": "coarse",
    "region": "box",
    "this-region": "box",
}

Looked = tuple[ImageFile, Noise, NoiseDescription]  # what a file is like, and its noise


# --- files ------------------------------------------------------------------------------------


def kind_of(path: Path) -> str:
    """Return whether a file is a "raw" mosaic, a "video" or an "image"."""
    with open_file(path) as file:
        return "raw" if raw.is_raw(file) else "video" if file.format == "VIDEO" else "image"


def check_memory(piece: Array) -> None:
    """Refuse what would take more memory at work than there is."""
    needed = _WORKING_BYTES * piece.size
    if needed > memory() / 2:
        raise FileError(f"would need {needed / 2**30:.0f} GB of memory at work; cut it first")


def span_of(image: ImageFile) -> float:
    """Return how far apart its pixels can be; those of a mosaic, above its black."""
    info = image.details.raw
    return value_range(image.pixels) if info is None else float(info.white - info.black.mean())


def mosaic_name(image: ImageFile) -> str:
    """Return what kind of mosaic a raw image is."""
    info = image.details.raw
    if info is None or info.pattern is None:
        return "linear raw"
    letters = "".join(COLOURS[colour] for colour in np.ravel(info.pattern))
    return f"raw mosaic {letters}" if info.pattern.shape == _BAYER else "raw mosaic, X-Trans"


# --- jobs -------------------------------------------------------------------------------------


def make_job(settings: Settings, level: float, workers: int | None) -> DenoiseJob:
    """Return what the controls say as the command line would.

    ``level`` is that of the picture's noise were it white, for methods that know of no strength.
    """
    method = METHODS[settings.method]
    sigma = settings.level if settings.noise == "white" else None
    kind = NOISE_NAMES.get(settings.noise, "auto")
    wanted: dict[str, object] = {"quality": settings.quality}
    if settings.strength != 1.0 and "strength" not in method.options:  # it assumes another noise
        sigma = settings.strength * (level if sigma is None else sigma)
    elif settings.strength != 1.0:
        wanted["strength"] = settings.strength
    if settings.chroma_strength is not None:
        wanted["chroma_strength"] = settings.chroma_strength
    if settings.grain:
        wanted["grain"] = settings.grain
    if settings.channels != "auto":
        wanted["channels"] = settings.channels
    options = {name: value for name, value in wanted.items() if name in method.options}
    if settings.noise == "file" and settings.model is not None:
        options["noise"] = load_noise(settings.model)
    elif sigma is None and kind != "auto" and "noise" in method.accepts:
        options["noise"] = kind
    region: Any = settings.box if settings.noise == "box" else None
    third: Any = settings.third
    return DenoiseJob(method, options, sigma, "auto", workers, _SEED, third, region)


def with_noise_of_box(job: DenoiseJob, box: Array, axis: int | None) -> DenoiseJob:
    """Return a job that is told the noise of a part of one slice."""
    height, width = np.delete(box.shape, [] if axis is None else [axis])
    model = resolve(open_image(box, axis), region=(0, 0, int(width), int(height)))
    options = {**job.options, "noise": model}
    return replace(job, options=options, noise_region=None, was_looked_at=True)


def run_job(
    sources: Sequence[Path], targets: Sequence[Path], job: DenoiseJob, progress: Progress
) -> Outcome:
    """Denoise a file, or pictures that are one series, as the command line does."""
    if len(sources) == 1:
        return run(FileJob(sources[0], targets[0], job), progress)
    return run(SeriesJob(sources, dict(zip(sources, targets, strict=True)), job), progress)


def denoise_pixels(
    job: DenoiseJob, model: Noise, pixels: Array, axis: int | None, progress: Progress
) -> Array:
    """Denoise one picture whose noise is known."""
    return np.asarray(apply(job, pixels, axis, model, progress).pixels)


# --- noise ------------------------------------------------------------------------------------


def noise_of_file(image: ImageFile) -> tuple[Noise, NoiseDescription, float]:
    """Return what noise a file is found to have, in words too, and its level were it white."""
    pieces = Pieces(image, cut(image))
    estimator = pieces.estimator()
    model = resolve(estimator)
    words = words_of(model, pieces.load(pieces.middle), span_of(image))
    return model, words, estimator.sigma


def words_of(model: Noise, pixels: Array, span: float) -> NoiseDescription:
    """Return what noise was found, in words."""
    return messages.describe(model, pixels, span, given=False, assumed=False)


def noise_of_frames(sources: Sequence[Path]) -> Looked:
    """Return what a video, or pictures that are one series, are like, and the noise they have."""
    job = make_job(Settings(third="time"), 0.0, None)
    if len(sources) == 1:
        with open_file(sources[0]) as file:
            image, found = look_at_video(file, job)
    else:
        image, found = look_at_series(sources, job)
    assert found.noise is not None  # the default method removes noise
    assert found.words is not None
    return image, found.noise, found.words


def noise_of_raw(path: Path) -> Looked:
    """Return a raw file, and the noise of its sensor."""
    image = read_images(path)[0]
    check_memory(image.pixels)
    model = raw.find_raw_noise(image)
    return image, model, raw.describe_raw_noise(model, image)


def keep_noise(model: Any, path: Path, image: ImageFile | None = None) -> None:
    """Write a model where it can be taken home, unless it is a map of levels: that of one picture only.

    The law of the light of a mosaic becomes that of its pixels.
    """
    with suppress(ValueError):
        save_noise(model if image is None else raw.law_of_pixels(model, image), path)


def noise_details(
    model: Noise, words: NoiseDescription, span: float, shown: Sequence[float]
) -> dict[str, Any]:
    """Return a model of noise in words, and in numbers to plot from black to white."""
    x = np.linspace(shown[0], shown[1], _POINTS)
    frequencies, spectra = model.rings()
    return {
        "words": words.words,
        "short": words.short,
        "detail": words.detail,
        "kind": words.fields["kind"],
        "level": words.level,
        "percent": 100 * words.level / span if span else 0.0,
        "confidence": words.fields.get("confidence"),
        "reasons": words.fields.get("reasons", []),
        "levels": [x.tolist(), *(each.tolist() for each in model.level_at(x))],
        "spectrum": [frequencies.tolist(), *(np.asarray(each).tolist() for each in spectra)],
    }


def find_doubts(
    job: DenoiseJob, estimator: NoiseEstimator, pixels: Array, removed: float
) -> list[JobWarning]:
    """Return what looks doubtful about a result, as the command line says it."""
    model, span = job.find_noise(estimator), value_range(pixels)
    assert model is not None  # every method of the page removes noise
    words = describe_noise(job, model, pixels, span)
    return messages.find_warnings(words, pixels, span, removed, job.sigma)


# --- what came of it --------------------------------------------------------------------------


def outcome_details(outcome: Outcome) -> dict[str, Any]:
    """Return what the page shows of what was done."""
    plain = (int, float, str, bool)
    return {
        "seconds": outcome.seconds,
        "warnings": warning_details(outcome.warnings),
        "check": None if outcome.check is None else str(outcome.check),
        "parameters": {
            name: value if isinstance(value, plain) else str(value)
            for name, value in outcome.parameters.items()
        },
    }


def warning_details(warnings: Sequence[JobWarning]) -> list[dict[str, Any]]:
    """Return warnings in words of the page, each with the kinds of noise that may help.

    Examples
    --------
    >>> warning_details([JobWarning("texture", "may be texture; {coarse} removes all of it")])
    [{'text': 'May be texture; Coarse noise removes all of it.', 'try': ['coarse']}]
    """
    details = []
    for warning in warnings:
        text = warning.say(_REMEDIES)
        choices = [_CHOICES[remedy] for remedy in warning.remedies if remedy in _CHOICES]
        details.append({"text": f"{text[:1].upper()}{text[1:].rstrip('.')}.", "try": choices})
    return details
