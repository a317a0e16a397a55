"""``symsmooth denoise`` and ``symsmooth noise``: files, one after the other or several at a time."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..app import batch, jobs
from ..app.file_noise import estimate_file_noise, middle_slice, value_range
from ..app.large import BoxOptions
from ..app.noise_report import NoiseDescription, describe
from ..app.progress import cancel_on, share_of_cores
from ..app.raw import is_raw, raw_noise
from ..app.run import run
from .arguments import AsJson, Axis, Inputs, Out, Overwrite, Verbose, check_sigma
from .console import echo, error_message, handling_errors, print_error, print_warning, progress_bar
from .options import (
    find_method,
    parse_channel_axis,
    parse_options,
    parse_region,
    parse_third_axis,
    split_arguments,
)

if TYPE_CHECKING:
    from ..io import ImageFile


def denoise(
    inputs: Inputs,
    out: Out,
    method: Annotated[str, typer.Option(help="One of `symsmooth methods`; else the best.")] = "",
    sigma: Annotated[
        float | None, typer.Option(help="Noise level in the image's units; else estimated.")
    ] = None,
    noise_from: Annotated[
        str,
        typer.Option(metavar="X,Y,W,H", help="A rectangle of flat ground: its noise is removed."),
    ] = "",
    channel_axis: Axis = "auto",
    volume: Annotated[
        bool, typer.Option("--volume", help="A stack is a volume: denoise it in 3-D.")
    ] = False,
    slices: Annotated[
        bool, typer.Option("--slices", help="A volume is a stack: denoise it slice by slice.")
    ] = False,
    time: Annotated[
        bool, typer.Option("--time", help="Time is the third dimension of a series.")
    ] = False,
    linear: Annotated[
        bool,
        typer.Option("--linear", help="A raw file developed to TIFF: linear light, not sRGB."),
    ] = False,
    n_jobs: Annotated[int, typer.Option("--jobs", min=1, help="Files at a time.")] = 1,
    workers: Annotated[int | None, typer.Option(min=1, help="Threads; else all cores.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all that is random.")] = 0,
    as_json: AsJson = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Print errors only.")] = False,
    verbose: Verbose = False,
    overwrite: Overwrite = False,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Skip files whose output exists; go on with a large one."),
    ] = False,
    scheduler: Annotated[
        str, typer.Option(metavar="ADDRESS", help="A dask cluster to work on, tcp://HOST:PORT.")
    ] = "",
) -> None:
    """Denoise files.  Takes the method's own options too, such as --n-clusters 300.

    IN may be a pattern in quotes, such as 'folder/**/*.tif': the folders are kept below OUT.
    """
    with handling_errors(as_json):
        names, given = split_arguments(inputs)
        check_sigma(sigma)
        axis = parse_channel_axis(channel_axis)
        chosen = find_method(method)
        options = parse_options(chosen, given)
        third = parse_third_axis(volume, slices, time)
        region = parse_region(noise_from)
        job = jobs.DenoiseJob(chosen, options, sigma, axis, workers, seed, third, region)
        plan = batch.plan_outputs(names, out, overwrite, resume)
        job = replace(job, workers=share_of_cores(workers, min(n_jobs, len(plan.targets))))
        show_bar = sys.stderr.isatty() and not (as_json or quiet) and n_jobs == 1
        stop = threading.Event()

        def notify(text: str) -> None:
            if not quiet:
                echo(f"symsmooth: {text}", err=True)

        def work_on(source: Path) -> list[str]:
            with progress_bar(source.name, show_bar) as progress:
                callback = cancel_on(stop, progress) if n_jobs > 1 else progress
                boxes = BoxOptions(resume, scheduler, notify)
                outcome = run(source, plan.targets[source], job, callback, boxes, linear)
            for warning in () if quiet else outcome.warnings:
                print_warning(f"{source}: {warning}")
            return [json.dumps(outcome.as_json()) if as_json else outcome.as_line(verbose)]

        if plan.done:
            total = len(plan.done) + len(plan.targets)
            notify(f"skipped {len(plan.done)} of {total} files: their output exists")
        _for_each(list(plan.targets), work_on, as_json, quiet and not as_json, n_jobs, stop)


def noise(
    inputs: Inputs, channel_axis: Axis = "auto", as_json: AsJson = False, verbose: Verbose = False
) -> None:
    """Say what noise there is and how much, in the image's units and in percent of its range."""
    with handling_errors(as_json):
        axis = parse_channel_axis(channel_axis)

        def work_on(source: Path) -> list[str]:
            if is_raw(source):
                return [_told_noise(source, *raw_noise(source), as_json, verbose)]
            images = jobs.open_file(source, axis)
            return [_noise_line(source, image, as_json, verbose) for image in images]

        _for_each([path for name in inputs for path, _ in batch.expand(name)], work_on, as_json)


def _noise_line(source: Path, image: ImageFile, as_json: bool, verbose: bool) -> str:
    """Return what is told of the noise of one image: what `denoise` takes it to be."""
    from ..io.stacks import cut

    stack = cut(image)
    model, span = estimate_file_noise(image, stack), value_range(image)
    pixels = middle_slice(image, stack)
    found = describe(model, pixels, span, given=False, assumed=False)
    return _told_noise(source, image, found, as_json, verbose)


def _told_noise(
    source: Path, image: ImageFile, found: NoiseDescription, as_json: bool, verbose: bool
) -> str:
    """Return the line, or JSON, about one image and its noise."""
    from ..io.stacks import cut

    span = image.details["raw"].span if "raw" in image.details else value_range(image)
    percent = 100 * found.level / span if span else 0.0
    if as_json:
        facts = {
            "input": str(source),
            "noise": dict(found.fields),
            "percent": percent,
            "range": span,
        }
        kind = {"shape": list(image.pixels.shape), "dtype": str(image.pixels.dtype)}
        return json.dumps(facts | kind)
    detail = f" [{found.detail}]" if verbose else ""
    reasons = found.fields.get("reasons")
    why = f": {'; '.join(reasons)}" if isinstance(reasons, list) else ""
    size = jobs.describe_size(image, cut(image))
    return f"{source}: {size}, {found.words} ({percent:.3g} %){detail}{why}"


def _for_each(
    sources: Sequence[Path],
    work_on: Callable[[Path], list[str]],
    as_json: bool,
    quiet: bool = False,
    jobs: int = 1,
    stop: threading.Event | None = None,
) -> None:
    """Do the files in order; tell of those that failed at the end, and exit with 1."""
    failures = []
    for source, outcome in batch.run(sources, work_on, jobs, stop or threading.Event()):
        if isinstance(outcome, Exception):
            if as_json:  # in its place among the others
                print_error(error_message(outcome, source), 1, as_json, source)
            failures.append(error_message(outcome, source))
            continue
        for line in outcome if not quiet else []:
            echo(line)
    for failure in failures if not as_json else []:
        print_error(failure, 1)
    if failures:
        raise typer.Exit(1)
