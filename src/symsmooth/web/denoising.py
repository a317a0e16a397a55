"""Denoising a file: the part on the screen first, then all of it, with the bits of the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..core.parallel import part_of
from ..io import limit_decoded_size
from ..io.stacks import cut
from . import bridge, drawing, first_look, mosaics, noise_files, series
from .catalogue import result_of
from .pictures import denoised_name
from .settings import Settings
from .worker import Reporter


def denoise(
    path: Path, given: dict[str, Any], folder: Path, asked: dict[str, Any],
    workers: int | None, max_bytes: int, reporter: Reporter,
) -> dict[str, Any]:  # fmt: skip
    """Denoise the part on the screen and show it, then the whole file, into a folder."""
    settings = Settings(**asked)
    if mosaics.is_mosaic(path):
        return mosaics.denoise(path, given, folder, settings, workers, max_bytes, reporter)
    if given.get("frames") or series.is_video(path):
        return series.denoise(path, given, folder, settings, workers, max_bytes, reporter)
    reporter.progress(0.0, "reading")
    with limit_decoded_size(max_bytes):
        image = bridge.read_file(path)[0]
    stack = cut(image, settings.third)  # type: ignore[arg-type]
    job = bridge.make_job(settings, given["sigma"], workers)
    reporter.progress(0.02, "finding the noise")
    job_with_noise, model = bridge.find_noise(job, image, stack, given["at"])
    if not stack.third or stack.time_axis is not None:  # of a series one frame, by itself
        flat = cut(image, "none")
        piece = image.pixels[flat.pieces[bridge.slice_number(image, flat, given["at"])]]
        first_look.show(
            piece, flat.channel_axis, job_with_noise, model, given, folder, reporter,
            of_series=bool(stack.third),
        )  # fmt: skip
    target = folder / denoised_name(path)
    with limit_decoded_size(max_bytes):
        outcome = bridge.denoise_file(
            path, target, job_with_noise, part_of(reporter.progress, 0.1, 0.95)
        )
    reporter.progress(0.96, "drawing")
    del image
    with limit_decoded_size(2 * max_bytes):
        noisy, denoised = bridge.read_file(path)[0], bridge.read_file(target)[0]
    shown, others = drawing.arrange(denoised)
    before = drawing.arrange(noisy)[0]
    np.save(folder / "result-0.npy", shown)
    ranges = drawing.ranges_of(before, len(others))
    noise = bridge.noise_details(
        model, noisy, ranges["all"],
        given=job.noise_is_given,
        assumed=not job.method.takes_noise,
    )  # fmt: skip
    noise_files.keep(job.options["noise"] if job.has_model else model, folder)
    reporter.progress(0.99, "drawing")
    return drawing.finite({
        "files": [target.name],
        "panels": [{"label": result_of(settings), "removed": drawing.removed(before, shown)}],
        **outcome,
        "noise": noise,
        "histogram": drawing.histogram(drawing.middle_of(shown, len(others)), ranges["all"]),
    })  # fmt: skip
