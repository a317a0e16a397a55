"""``symsmooth denoise`` and ``symsmooth noise``: files, one after the other or several at a time."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from ..app import batch, jobs
from ..app.large import BoxOptions
from ..app.noise_report import describe, value_range
from ..app.run import BatchJob, run
from .arguments import AsJson, Axis, Inputs, Out, Overwrite, Verbose, check_sigma
from .console import (
    echo,
    echo_lines,
    error_message,
    handling_errors,
    print_error,
    print_warning,
    progress_bar,
)
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

Result = TypeVar("Result")


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
        how = jobs.DenoiseJob(chosen, options, sigma, axis, workers, seed, third, region)
        plan = batch.plan_outputs(names, out, overwrite, resume)

        def notify(text: str) -> None:
            if not quiet:
                echo(f"symsmooth: {text}", err=True)

        if plan.done:
            total = len(plan.done) + len(plan.targets)
            notify(f"skipped {len(plan.done)} of {total} files: their output exists")
        job = BatchJob(plan.targets, how, BoxOptions(resume, scheduler, notify), n_jobs)
        show_bar = sys.stderr.isatty() and not (as_json or quiet)
        printing = _Printing(as_json, quiet, verbose)
        with progress_bar("", show_bar) as bar:
            pause = nullcontext if bar is None else bar.pause
            _print_in_order(run(job, bar), printing.outcome, as_json, pause)


@dataclass(frozen=True)
class _Printing:
    """How outcomes are printed."""

    as_json: bool
    quiet: bool
    verbose: bool

    def outcome(self, source: Path, outcome: jobs.Outcome) -> None:
        """Print what was done to a file, and what is doubtful about it."""
        for warning in () if self.quiet else outcome.warnings:
            print_warning(f"{source}: {warning}")
        if self.as_json:
            echo(json.dumps(outcome.as_json()))
        elif not self.quiet:
            echo(outcome.as_line(self.verbose))


def noise(
    inputs: Inputs, channel_axis: Axis = "auto", as_json: AsJson = False, verbose: Verbose = False
) -> None:
    """Say what noise there is and how much, in the image's units and in percent of its range."""
    with handling_errors(as_json):
        axis = parse_channel_axis(channel_axis)

        def answer(source: Path) -> list[str]:
            images = jobs.open_file(source, axis)
            return [_noise_line(source, image, as_json, verbose) for image in images]

        sources = [path for name in inputs for path, _ in batch.expand(name)]
        answers = batch.in_order(sources, answer, 1, threading.Event())
        _print_in_order(answers, lambda _, lines: echo_lines(lines), as_json)


def _noise_line(source: Path, image: ImageFile, as_json: bool, verbose: bool) -> str:
    """Return what is told of the noise of one image: what `denoise` takes it to be."""
    from ..io.stacks import cut
    from ..noise import resolve

    stack, span = cut(image), value_range(image.pixels)
    model = resolve(jobs.noise_estimator(image, stack))
    pixels = jobs.middle_slice(image, stack)
    found = describe(model, pixels, span, given=False, assumed=False)
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
    size = jobs.describe_size(image, stack)
    return f"{source}: {size}, {found.words} ({percent:.3g} %){detail}{why}"


def _print_in_order(
    results: Iterator[tuple[Path, Result | Exception]],
    print_result: Callable[[Path, Result], object],
    as_json: bool,
    pause: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> None:
    """Print results as they come; tell of those that failed at the end, and exit with 1."""
    failures = []
    for source, result in results:
        with pause():
            if not isinstance(result, Exception):
                print_result(source, result)
                continue
            failures.append(error_message(result, source))
            if as_json:  # in its place among the others
                print_error(failures[-1], 1, as_json, source)
    for failure in failures if not as_json else []:
        print_error(failure, 1)
    if failures:
        raise typer.Exit(1)
