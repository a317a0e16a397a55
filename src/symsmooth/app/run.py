"""One file, from name to name: read whole if it is small, else box by box."""

from __future__ import annotations

from pathlib import Path

from .jobs import DenoiseJob, Outcome, denoise_file
from .large import BoxOptions, denoise_boxes, open_large
from .progress import Progress
from .raw import denoise_raw_file, is_raw


def run(
    source: Path,
    target: Path,
    job: DenoiseJob,
    progress: Progress | None,
    boxes: BoxOptions,
    linear: bool = False,
) -> Outcome:
    """Denoise a file and write the result; say what was done.

    ``linear``: a raw file that is developed gets no tone curve.
    """
    if is_raw(source):
        return denoise_raw_file(source, target, job, progress, linear)
    with open_large(source, target, boxes.scheduler) as opened:
        if opened is None:
            return denoise_file(source, target, job, progress)
        return denoise_boxes(opened, target, job, progress, boxes)
