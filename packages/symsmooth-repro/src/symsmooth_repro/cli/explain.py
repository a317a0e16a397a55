"""``symsmooth explain``: one file in, one page out that shows what GSF's mixture learned from it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from symsmooth.app.compare import Page, describe, open_picture, page_facts, question_sigma
from symsmooth.app.job import ChannelAxis
from symsmooth.cli import arguments
from symsmooth.cli.arguments import parse_channel_axis, parse_slice, whole_number
from symsmooth.cli.console import progress_bar
from symsmooth.cli.methods import save_page, writing_a_page
from symsmooth.core.parallel import Progress, part_of
from symsmooth.core.plotting import require_matplotlib

_DRAWING = 0.7  # fraction at which the page begins, for the progress callback

Side = Annotated[
    int,
    typer.Option(
        metavar="PIXELS",
        parser=whole_number("--side", 16, 1024),
        help="Learn from the busiest square of this many pixels a side, 16 to 1024.",
    ),
]


def explain(
    source: arguments.OneFile,
    out: arguments.Page,
    sigma: arguments.Sigma = None,
    side: Side = 384,
    channel_axis: arguments.Axis = "auto",
    piece: arguments.Slice = "",
    workers: arguments.Workers = None,
    seed: arguments.Seed = 0,
    overwrite: arguments.Overwrite = False,
) -> None:
    """Show what the paper's mixture learns from a picture: clusters, neighbours, k and lambda."""
    with writing_a_page(out, sigma, overwrite):
        require_matplotlib()
        axis, at = parse_channel_axis(channel_axis), parse_slice(piece)
        with progress_bar(source.name, sys.stderr.isatty()) as bar:
            page = explain_file(source, sigma, axis, at, side, workers, seed, bar)
        save_page(page, out)


def explain_file(
    source: Path,
    sigma: float | None = None,
    channel_axis: ChannelAxis = "auto",
    piece: Sequence[int] | None = None,
    side: int = 384,
    workers: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Page:
    """Learn a mixture from a picture, or a slice of a stack, and return the page about it."""
    from symsmooth.core.image import open_image
    from symsmooth.noise import NoiseEstimator, resolve

    from ..explain.learning import learn
    from ..explain.page import explain_page

    pixels, part = open_picture(source, channel_axis, piece)
    axis = -1 if pixels.ndim == 3 else None
    estimator = NoiseEstimator(lambda: open_image(pixels, axis))
    noise = resolve(estimator, sigma, white_only=True)
    learning = part_of(progress, 0.0, _DRAWING)
    learned = learn(pixels, noise.sigma, side=side, rng=seed, workers=workers, progress=learning)
    level = f"sigma {noise.sigma:.4g} ({'estimated' if sigma is None else 'given'})"
    facts = page_facts(describe(source, pixels, part), level, seed)
    if progress is not None:
        progress(_DRAWING, "page")
    text = explain_page(source.name, learned, facts)
    if progress is not None:
        progress(1.0, "done")
    return Page(text, question_sigma(source, pixels, sigma))
