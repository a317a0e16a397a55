"""Arguments that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..app.dtypes import DTYPES
from .commands import any_number, whole_number
from .options import complete_method

Inputs = Annotated[
    list[str],
    typer.Argument(
        metavar="IN",
        help="Pictures, stacks, arrays, folders of them, or videos; - is standard input.",
    ),
]
Out = Annotated[
    str,
    typer.Option(
        "-o", "--out", metavar="OUT", help="File, folder (ending in /), or - for standard output."
    ),
]
Format = Annotated[
    str,
    typer.Option(metavar="ENDING", help="With -o -: png, tif, ...; by default that of the input."),
]
MethodName = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="One of `symsmooth methods`; by default the best.",
        autocompletion=complete_method,
    ),
]
NoiseFrom = Annotated[
    str, typer.Option(metavar="X,Y,W,H", help="Measure the noise in this flat rectangle.")
]
NoiseFile = Annotated[
    str,
    typer.Option(
        "--noise",
        metavar="FILE.json",
        help="A noise model of `symsmooth noise --save`, for methods that know more than white noise.",
    ),
]
SaveNoise = Annotated[
    str,
    typer.Option(
        "--save",
        metavar="FILE.json",
        help="Keep the noise of all files as one model, for --noise FILE.json.",
    ),
]
Calibrate = Annotated[
    bool,
    typer.Option(
        "--calibrate",
        help="Files are frames of still scenes, such as flats: measure the camera on their differences.",
    ),
]
Darks = Annotated[
    str,
    typer.Option(
        metavar="IN",
        help="With --calibrate: frames without light, a stack, folder or pattern in quotes.",
    ),
]
Volume = Annotated[bool, typer.Option("--volume", help="Denoise a stack as a volume, in 3-D.")]
Slices = Annotated[
    bool,
    typer.Option("--slices", help="Denoise a volume slice by slice, a video frame by frame."),
]
Time = Annotated[
    bool,
    typer.Option(
        "--time",
        help="Denoise a time series (a stack, the pictures of a folder) as one: frames help each other, "
        "wherever things move.",
    ),
]
Frame = Annotated[
    int | None,
    typer.Option(
        "--frame",
        metavar="N",
        parser=whole_number("--frame", 0),
        help="Write one frame of a series, from 0: the best of a burst.",
    ),
]
Linear = Annotated[
    bool, typer.Option("--linear", help="Develop a raw file to linear light instead of sRGB.")
]
Lossless = Annotated[
    bool, typer.Option("--lossless", help="Write a video without loss: FFV1 in .mkv.")
]
DtypeName = Annotated[
    str,
    typer.Option(
        "--dtype",
        metavar="DTYPE",
        help="Type of the output: float32 (not rounded), uint16, uint8, ...; by default that of the input.",
        autocompletion=lambda incomplete: [d for d in DTYPES if d.startswith(incomplete)],
    ),
]
Jobs = Annotated[
    int,
    typer.Option(
        "--jobs",
        metavar="N",
        parser=whole_number("--jobs", 1),
        help="Number of files to process at a time.",
    ),
]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Print errors only.")]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume",
        help="Skip files whose output exists; continue a large one that was interrupted.",
    ),
]
Scheduler = Annotated[
    str, typer.Option(metavar="ADDRESS", help="Run on this dask cluster: tcp://HOST:PORT.")
]
Axis = Annotated[
    str,
    typer.Option(metavar="AXIS", help="Axis of the channels, none, or auto: as the file says."),
]
Verbose = Annotated[bool, typer.Option("-v", "--verbose", help="Print what was decided, and why.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, one object per line.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace files that exist.")]
Page = Annotated[Path, typer.Option("-o", "--out", metavar="PAGE", help="Page to write, .html.")]
Sigma = Annotated[
    float | None,
    typer.Option(
        metavar="LEVEL",
        parser=any_number("--sigma"),
        help="Noise level in the image's units; by default estimated.",
    ),
]
Slice = Annotated[
    str,
    typer.Option(
        "--slice",
        metavar="N|T,Z",
        help="Which slice of a stack, from 0: 7, or 2,5 for one per axis; by default the middle.",
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        parser=whole_number("--workers", 1),
        help="Number of threads; by default one per core.",
    ),
]
Seed = Annotated[
    int, typer.Option(metavar="N", parser=whole_number("--seed", 0), help="Random seed.")
]
OneFile = Annotated[Path, typer.Argument(metavar="IN", help="A picture.")]
