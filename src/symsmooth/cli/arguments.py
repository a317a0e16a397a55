"""Arguments that several commands share."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from ..app.dtypes import DTYPES
from ..app.errors import UsageError
from .method_options import complete_method

Inputs = Annotated[list[str], typer.Argument(metavar="IN...", help="Pictures, stacks or arrays.")]
Out = Annotated[
    str,
    typer.Option(
        "-o", "--out", metavar="OUT", help="File, folder (with a /), or -: standard output."
    ),
]
Format = Annotated[
    str, typer.Option(metavar="ENDING", help="With -o -: png, tif, ...; else that of the input.")
]
MethodName = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="One of `symsmooth methods`; else the best.",
        autocompletion=complete_method,
    ),
]
NoiseFrom = Annotated[
    str, typer.Option(metavar="X,Y,W,H", help="A rectangle of flat ground: its noise is removed.")
]
Volume = Annotated[bool, typer.Option("--volume", help="A stack is a volume: denoise it in 3-D.")]
Slices = Annotated[
    bool, typer.Option("--slices", help="A volume is a stack: denoise it slice by slice.")
]
Time = Annotated[bool, typer.Option("--time", help="Time is the third dimension of a series.")]
Linear = Annotated[
    bool, typer.Option("--linear", help="A raw file developed to TIFF: linear light, not sRGB.")
]
DtypeName = Annotated[
    str,
    typer.Option(
        "--dtype",
        metavar="DTYPE",
        help="Of the output: float32 is not rounded; uint16, uint8, ...; else that of the input.",
        autocompletion=lambda incomplete: [d for d in DTYPES if d.startswith(incomplete)],
    ),
]
Jobs = Annotated[int, typer.Option("--jobs", min=1, help="Files at a time.")]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Print errors only.")]
Resume = Annotated[
    bool, typer.Option("--resume", help="Skip files whose output exists; go on with a large one.")
]
Scheduler = Annotated[
    str, typer.Option(metavar="ADDRESS", help="A dask cluster to work on, tcp://HOST:PORT.")
]
Axis = Annotated[str, typer.Option(help="Axis of the channels, none, or auto: as the file says.")]
Verbose = Annotated[bool, typer.Option("-v", "--verbose", help="Tell what was decided, and why.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, one object a line.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace files that exist.")]
Page = Annotated[Path, typer.Option("-o", "--out", metavar="PAGE", help="Page to write, .html.")]
Sigma = Annotated[
    float | None, typer.Option(help="Noise level in the image's units; else estimated.")
]
Slice = Annotated[
    str,
    typer.Option(
        "--slice",
        metavar="N|T,Z",
        help="Which of a stack, from 0: 7, or 2,5 for one of each axis; else the middle.",
    ),
]
Workers = Annotated[int | None, typer.Option(min=1, help="Threads; else all cores.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of all that is random.")]
OneFile = Annotated[Path, typer.Argument(metavar="IN", help="A picture.")]


def check_sigma(sigma: float | None) -> None:
    """Refuse what is no noise level."""
    if sigma is not None and not (math.isfinite(sigma) and sigma >= 0):
        raise UsageError(f"--sigma must be a number of 0 or more, got {sigma}")
