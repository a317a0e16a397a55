"""Explain: one file in, one page out that shows what GSF's mixture learned from it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from . import jobs
from .compare import describe, open_picture, question_sigma
from .progress import Progress


def explain(
    source: Path,
    *,
    sigma: float | None,
    channel_axis: jobs.ChannelAxis,
    piece: int | None,
    side: int,
    workers: int | None,
    seed: int,
    progress: Progress | None,
    warn: Callable[[str], object] = str,
) -> str:
    """Learn a mixture from a picture and return the page about it."""
    from .. import __version__
    from ..core.image import open_image
    from ..noise import NoiseEstimator, White, resolve
    from ..reports.explain import learn
    from ..reports.explain_page import explain_page

    pixels, part = open_picture(source, channel_axis, piece)
    axis = -1 if pixels.ndim == 3 else None
    estimator = NoiseEstimator(lambda: open_image(pixels, axis))
    noise = resolve(estimator, sigma, white_only=True)
    assert isinstance(noise, White)
    question_sigma(source, pixels, sigma, warn)
    learned = learn(pixels, noise.sigma, side=side, rng=seed, workers=workers, progress=progress)
    facts = {
        "Picture": describe(source, pixels, part),
        "Noise": f"sigma {noise.sigma:.4g} ({'estimated' if sigma is None else 'given'})",
        "Version": f"symsmooth {__version__}",
        "Seed": str(seed),
    }
    return explain_page(source.name, learned, facts)
