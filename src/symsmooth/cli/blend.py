"""``symsmooth blend``: strength after the fact."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from ..app.blend import BlendJob, blend_files
from ..app.errors import UsageError
from .arguments import AsJson, Overwrite, Quiet, any_number
from .console import echo, handling_errors

Strength = Annotated[
    float,
    typer.Option(
        metavar="SHARE",
        parser=any_number("--strength"),
        help="Share of the noise reduction that is kept: 0 (noisy) to 1 (denoised).",
    ),
]
ColourStrength = Annotated[
    float | None,
    typer.Option(
        metavar="SHARE",
        parser=any_number("--colour-strength"),
        help="The same for colour; --strength is for brightness then.",
    ),
]


def blend(
    noisy: Annotated[Path, typer.Argument(metavar="NOISY", help="The picture before.")],
    denoised: Annotated[Path, typer.Argument(metavar="DENOISED", help="The same after.")],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="OUT", help="File to write.")],
    strength: Strength,
    colour_strength: ColourStrength = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    overwrite: Overwrite = False,
) -> None:
    """Blend a denoised picture with the noisy one: less strength, at once, without denoising again."""
    with handling_errors(as_json, noisy):
        job = BlendJob(noisy, denoised, out, strength, colour_strength)
        if out.exists() and not overwrite:
            is_input = any(path.exists() and out.samefile(path) for path in (noisy, denoised))
            what = "is one of the inputs" if is_input else "exists"
            raise UsageError(f"{out} {what}; give another -o, or --overwrite to replace it")
        blend_files(job)
    if as_json:
        facts = {"input": str(noisy), "denoised": str(denoised), "output": str(out)}
        strengths = {"strength": strength, "colour_strength": colour_strength}
        echo(json.dumps(facts | strengths))
    elif not quiet:
        echo(f"{noisy}: {job.words} in {denoised} -> {out}")
