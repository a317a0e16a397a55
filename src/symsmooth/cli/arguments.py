"""Arguments that several commands share."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from ..app.errors import UsageError

Inputs = Annotated[list[str], typer.Argument(metavar="IN...", help="Pictures, stacks or arrays.")]
Out = Annotated[str, typer.Option("-o", "--out", metavar="OUT", help="File, or folder (with a /).")]
Axis = Annotated[str, typer.Option(help="Axis of the channels, none, or auto: as the file says.")]
Verbose = Annotated[bool, typer.Option("-v", "--verbose", help="Tell of the noise in detail.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, one object a line.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace files that exist.")]
Page = Annotated[Path, typer.Option("-o", "--out", metavar="PAGE", help="HTML file to write.")]
Sigma = Annotated[
    float | None, typer.Option(help="Noise level in the image's units; else estimated.")
]
Slice = Annotated[int | None, typer.Option("--slice", help="Which of a stack; else the middle.")]
Workers = Annotated[int | None, typer.Option(min=1, help="Threads; else all cores.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of all that is random.")]
OneFile = Annotated[Path, typer.Argument(metavar="IN", help="A picture.")]


def check_sigma(sigma: float | None) -> None:
    """Refuse what is no noise level."""
    if sigma is not None and not (math.isfinite(sigma) and sigma >= 0):
        raise UsageError(f"--sigma must be a number of 0 or more, got {sigma}")
