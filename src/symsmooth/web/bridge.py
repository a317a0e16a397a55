"""The one place of the page that knows how jobs, noise and progress of the application are called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..app import jobs, noise_report
from ..app.batch import natural_order as natural_order
from ..app.compare import question_unchanged as question_unchanged
from ..app.job import DenoiseJob
from ..app.job_warnings import JobWarning as JobWarning
from ..app.job_warnings import Remedy
from ..app.noise_report import value_range
from ..app.run import FileJob, run
from ..app.series import SeriesJob, look_at_series
from ..app.stack import apply, describe_noise, noise_estimator
from ..app.video import look_at_video
from ..core.image import Array, open_image
from ..core.parallel import Progress
from ..io import FileError, ImageFile
from ..io.formats import open_file
from ..io.limits import memory
from ..io.noise_files import load_noise
from ..io.stacks import Stack, cut
from ..methods import DEFAULT, METHODS
from ..noise import Noise, resolve
from .catalogue import NOISE_NAMES
from .settings import Settings

_WORKING_BYTES = 64  # of memory for a pixel at work
_POINTS = 33  # of the plot of level against brightness
_WARM_UP = 64  # pixels a side of what is denoised before the first visitor comes
_SEED = 0  # as on the command line
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


def read_file(path: Path) -> list[ImageFile]:
    """Return the images of a file."""
    return jobs.open_file(path, "auto")


def check_memory(piece: Array) -> None:
    """Refuse what would take more memory at work than there is."""
    needed = _WORKING_BYTES * piece.size
    if needed > memory() / 2:
        raise FileError(f"would need {needed / 2**30:.0f} GB of memory at work; cut it first")


def describe(image: ImageFile) -> str:
    """Return size and kind of an image in words."""
    return jobs.describe_size(image, cut(image))


def span_of(image: ImageFile) -> float:
    """Return how far apart its pixels can be."""
    return value_range(image.pixels)


def warm_up(workers: int | None) -> None:
    """Load what the default method takes."""
    noise = np.random.default_rng(_SEED).normal(100.0, 20.0, (_WARM_UP, _WARM_UP))
    METHODS[DEFAULT](noise, workers=workers)


def make_job(settings: Settings, level: float, workers: int | None) -> DenoiseJob:
    """Return what the controls say as the command line would.

    Parameters
    ----------
    settings : Settings
    level : float
        The picture's noise were it white: for methods that know of no strength.
    workers : int or None
        Threads.
    """
    method = METHODS[settings.method]
    options: dict[str, object] = {}
    if "quality" in method.options:
        options["quality"] = settings.quality
    sigma = settings.level if settings.noise == "white" else None
    kind = NOISE_NAMES.get(settings.noise, "auto")
    if sigma is None and kind != "auto" and "noise" in method.accepts:
        options["noise"] = kind
    if settings.noise == "file" and settings.model is not None:
        options["noise"] = load_noise(settings.model)
    if settings.strength != 1.0 and "strength" in method.options:
        options["strength"] = settings.strength
    elif settings.strength != 1.0:  # it assumes more, or less, noise
        sigma = settings.strength * (level if sigma is None else sigma)
    if settings.chroma_strength is not None and "chroma_strength" in method.options:
        options["chroma_strength"] = settings.chroma_strength
    if settings.grain and "grain" in method.options:
        options["grain"] = settings.grain
    region = settings.box if settings.noise == "box" else None
    if settings.channels != "auto" and "channels" in method.options:
        options["channels"] = settings.channels
    third: Any = settings.third
    return DenoiseJob(method, options, sigma, "auto", workers, _SEED, third, region)


def find_noise(
    job: DenoiseJob, image: ImageFile, stack: Stack, at: Sequence[int]
) -> tuple[DenoiseJob, Noise]:
    """Return the noise that a job is to remove, and the job that knows it.

    A box was marked on the slice ``at`` of a stack; the command line takes the middle one.
    """
    if job.noise_region is not None and (len(stack) > 1 or stack.third):
        flat = cut(image, "none")
        piece = flat.pieces[slice_number(image, flat, at)]
        marked = open_image(image.pixels[piece], flat.channel_axis)
        model = resolve(marked, region=job.noise_region)
        job = _with_found(job, model)
        return job, model
    found = job.find_noise(noise_estimator(image, stack, None, job.channels, job.specks))
    assert found is not None  # every method of the page removes noise
    if job.method.takes_noise and job.sigma is None and not job.has_model:
        job = _with_found(job, found)
    return job, found


def _with_found(job: DenoiseJob, model: Noise) -> DenoiseJob:
    """Return a job that is told what noise was found for it."""
    options = {**job.options, "noise": model}
    return replace(job, options=options, noise_region=None, was_looked_at=True)


def slice_number(image: ImageFile, flat: Stack, at: Sequence[int]) -> int:
    """Return which piece of a stack of pictures is at a place along its other axes."""
    sizes = [
        n
        for n, part in zip(image.pixels.shape, flat.pieces[0], strict=True)
        if not isinstance(part, slice)
    ]
    if len(at) != len(sizes) or any(i >= n for i, n in zip(at, sizes, strict=True)):
        return len(flat) // 2
    return int(np.ravel_multi_index(tuple(at), tuple(sizes))) if sizes else 0


def noise_of_file(image: ImageFile) -> tuple[Noise, float]:
    """Return what noise a file is found to have, and its level were it white."""
    estimator = noise_estimator(image, cut(image))
    return resolve(estimator), estimator.sigma


def noise_details(
    model: Noise, image: ImageFile, shown: tuple[float, float], *, given: bool, assumed: bool
) -> dict[str, Any]:
    """Return what a model of noise says, in words and numbers to plot."""
    span = value_range(image.pixels)
    pixels = jobs.middle_slice(image, cut(image))
    description = noise_report.describe(model, pixels, span, given=given, assumed=assumed)
    return model_details(model, description, span, shown)


def model_details(
    model: Noise,
    description: noise_report.NoiseDescription,
    span: float,
    shown: tuple[float, float],
) -> dict[str, Any]:
    """Return a model of noise that was described in words, with numbers to plot."""
    x = np.linspace(*shown, _POINTS)
    frequencies, spectra = model.rings()
    return {
        "words": description.words,
        "short": description.short,
        "detail": description.detail,
        "kind": description.fields["kind"],
        "level": description.level,
        "percent": 100 * description.level / span if span else 0.0,
        "confidence": description.fields.get("confidence"),
        "reasons": description.fields.get("reasons", []),
        "levels": [x.tolist(), *(each.tolist() for each in model.level_at(x))],
        "spectrum": [frequencies.tolist(), *(np.asarray(each).tolist() for each in spectra)],
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


def without_steps(progress: Progress | None, name: str = "denoising") -> Progress | None:
    """Return a callback that names the slice a method is at, or else ``name``, but not the method's step.

    Examples
    --------
    >>> without_steps(print)(0.2, "slice 2 of 9: estimates")
    0.2 slice 2 of 9
    >>> without_steps(print, "GSF")(0.3, "estimates")
    0.3 GSF
    """
    if progress is None:
        return None

    def report(fraction: float, what: str) -> None:
        progress(fraction, what.rpartition(": ")[0] or name)

    return report


def denoise_file(
    path: Path, target: Path, job: DenoiseJob, progress: Progress | None
) -> dict[str, Any]:
    """Denoise a file as the command line does; return what the page shows of it."""
    return _told(run(FileJob(path, target, job), without_steps(progress)))


def denoise_frames(
    sources: Sequence[Path], targets: Sequence[Path], job: DenoiseJob, progress: Progress
) -> dict[str, Any]:
    """Denoise a video, or pictures that are one series, as the command line does."""
    if len(sources) == 1:
        return _told(run(FileJob(sources[0], targets[0], job), progress))
    return _told(run(SeriesJob(sources, dict(zip(sources, targets, strict=True)), job), progress))


def noise_of_frames(
    sources: Sequence[Path], job: DenoiseJob
) -> tuple[ImageFile, Noise, noise_report.NoiseDescription]:
    """Return what a video, or pictures that are one series, are like, and the noise they have."""
    if len(sources) == 1:
        with open_file(sources[0]) as file:
            image, found = look_at_video(file, job)
    else:
        image, found = look_at_series(sources, job)
    assert found.noise is not None  # every method of the page removes noise
    assert found.words is not None
    return image, found.noise, found.words


def check_frames(job: DenoiseJob, title: str) -> None:
    """Refuse what cannot be done to frames, in words of the page."""
    if job.third == "volume":
        raise ValueError("Frames of a series are no slices of a volume; choose Slices or Series.")
    if job.third == "time" and not knows_time(job):
        raise ValueError(f"{title} knows of no time; choose the method Automatic, or Slices.")


def knows_time(job: DenoiseJob) -> bool:
    """Whether frames can help each other."""
    return "time_axis" in job.method.accepts


def with_noise_of_box(job: DenoiseJob, frame: Array, axis: int | None) -> tuple[DenoiseJob, Noise]:
    """Return the noise of a part of one frame, and the job that knows it."""
    model = resolve(open_image(frame, axis), region=(0, 0, frame.shape[1], frame.shape[0]))
    return _with_found(job, model), model


def _told(outcome: jobs.Outcome) -> dict[str, Any]:
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


def denoise_pixels(
    job: DenoiseJob,
    model: Noise,
    pixels: Array,
    axis: int | None,
    progress: Progress | None,
) -> Array:
    """Denoise one picture whose noise is known."""
    return np.asarray(apply(job, pixels, axis, model, progress).pixels)


def find_doubts(job: DenoiseJob, model: Noise, file: ImageFile, removed: float) -> list[JobWarning]:
    """Return what looks doubtful about a result, as the command line says it."""
    span = value_range(file.pixels)
    noise = describe_noise(job, model, file.pixels, span)
    return noise_report.find_warnings(noise, file.pixels, span, removed, job.sigma)


def brief_noise(job: DenoiseJob, model: Noise, file: ImageFile) -> str:
    """Return the noise that a job assumes in two words."""
    return describe_noise(job, model, file.pixels, value_range(file.pixels)).brief
