"""Explain: one file in, one page out that shows what GSF's mixture learned from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..core.parallel import Progress, part_of
from . import jobs
from .compare import describe, open_picture, page_facts, question_sigma
from .page import Page

_DRAWING = 0.7  # fraction at which the page begins, for the progress callback


@dataclass(frozen=True)
class ExplainJob:
    """What GSF's mixture learns from a picture, on a page."""

    source: Path
    sigma: float | None = None
    channel_axis: jobs.ChannelAxis = "auto"
    piece: Sequence[int] | None = None  # which slice of a stack: its number, or one for each axis
    side: int = 384  # pixels: it learns from the busiest part of that size
    workers: int | None = None
    seed: int = 0


def explain(job: ExplainJob, progress: Progress | None = None) -> Page:
    """Learn a mixture from a picture and return the page about it."""
    from ..core.image import open_image
    from ..noise import NoiseEstimator, resolve
    from ..reports.explain import learn
    from ..reports.explain_page import explain_page

    report = progress or jobs.no_progress
    report(0.0, "reading")
    pixels, part = open_picture(job.source, job.channel_axis, job.piece)
    axis = -1 if pixels.ndim == 3 else None
    estimator = NoiseEstimator(lambda: open_image(pixels, axis))
    noise = resolve(estimator, job.sigma, white_only=True)
    learning = part_of(progress, 0.0, _DRAWING)
    learned = learn(
        pixels, noise.sigma, side=job.side, rng=job.seed, workers=job.workers, progress=learning
    )
    level = f"sigma {noise.sigma:.4g} ({'estimated' if job.sigma is None else 'given'})"
    facts = page_facts(describe(job.source, pixels, part), level, job.seed)
    report(_DRAWING, "page")
    text = explain_page(job.source.name, learned, facts)
    report(1.0, "done")
    return Page(text, question_sigma(job.source, pixels, job.sigma))
