"""``symsmooth denoise`` and ``symsmooth noise``: files, one after the other or several at a time."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..app import batch, jobs
from ..app.errors import UsageError
from ..app.large import BoxOptions
from ..app.noise_report import NoiseDescription, describe, value_range
from ..app.raw import is_raw, raw_noise
from ..app.run import BatchJob, run, run_series
from ..app.series import find_series, look_at_series, plan_series
from ..app.video import look_at_video
from .arguments import (
    AsJson,
    Axis,
    DtypeName,
    Format,
    Frame,
    Inputs,
    Jobs,
    Linear,
    Lossless,
    MethodName,
    NoiseFrom,
    Out,
    Overwrite,
    Quiet,
    Resume,
    Scheduler,
    Seed,
    Sigma,
    Slices,
    Time,
    Verbose,
    Volume,
    Workers,
    check_sigma,
)
from .console import (
    echo,
    echo_lines,
    error_message,
    handling_errors,
    print_error,
    print_warning,
    progress_bar,
)
from .method_options import given_options
from .options import (
    find_method,
    parse_channel_axis,
    parse_options,
    parse_region,
    parse_third_axis,
    split_arguments,
)
from .streams import Streams, opened_inputs, opened_streams

if TYPE_CHECKING:
    from ..app.frames import FrameRun
    from ..io import ImageFile
    from ..io.stacks import Third


def denoise(
    context: typer.Context,
    inputs: Inputs,
    out: Out = "",
    method: MethodName = "",
    sigma: Sigma = None,
    noise_from: NoiseFrom = "",
    channel_axis: Axis = "auto",
    volume: Volume = False,
    slices: Slices = False,
    time: Time = False,
    frame: Frame = None,
    lossless: Lossless = False,
    format: Format = "",
    dtype: DtypeName = "",
    linear: Linear = False,
    n_jobs: Jobs = 1,
    workers: Workers = None,
    seed: Seed = 0,
    as_json: AsJson = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
    overwrite: Overwrite = False,
    resume: Resume = False,
    scheduler: Scheduler = "",
) -> None:
    """Denoise files.  Takes the options of methods too, such as --quality fast.

    IN may be a folder, which stands for the pictures in it, or a pattern in quotes, such as
    'folder/**/*.tif': the folders are kept below OUT.
    A single - reads standard input, and with -o - the result goes to standard output.
    """
    with handling_errors(as_json):
        names, unknown = split_arguments(inputs)
        out = out or ("-" if names == ["-"] else "")
        check_sigma(sigma)
        axis = parse_channel_axis(channel_axis)
        chosen = find_method(method)
        options = parse_options(chosen, given_options(context) | unknown)
        third = parse_third_axis(volume, slices, time, frame)
        region = parse_region(noise_from)
        how = jobs.DenoiseJob(
            chosen,
            options,
            sigma,
            axis,
            workers,
            seed,
            third,
            region,
            linear,
            dtype,
            frame,
            lossless,
        )
        with opened_streams(names, out, format) as streams:
            printing = _Printing(as_json, quiet, verbose, streams)
            shown = sys.stderr.isatty() and not (as_json or quiet)
            if third == "time":
                series = plan_series(
                    streams.names, streams.out, how, overwrite, resume, printing.notify
                )
                if series:
                    _check_one_by_one(n_jobs, scheduler)
                    with progress_bar("", shown) as bar:
                        pause = nullcontext if bar is None else bar.pause
                        _print_in_order(run_series(series, bar), printing, pause)
                    return
            plan = batch.plan_outputs(streams.names, streams.out, overwrite, resume)
            for line in plan.skipped:
                printing.notify(line)
            if plan.done:
                total = len(plan.done) + len(plan.targets)
                printing.notify(f"skipped {len(plan.done)} of {total} files: their output exists")
            boxes = BoxOptions(resume, scheduler, printing.notify)
            with progress_bar("", shown) as bar:
                results = run(BatchJob(plan.targets, how, boxes, n_jobs), bar)
                _print_in_order(results, printing, nullcontext if bar is None else bar.pause)


def _check_one_by_one(n_jobs: int, scheduler: str) -> None:
    """Refuse what would part the frames of a series."""
    if n_jobs > 1:
        raise UsageError("frames of a series follow each other; leave out --jobs")
    if scheduler:
        raise UsageError("a cluster takes pictures and volumes; leave out --time or --scheduler")


@dataclass(frozen=True)
class _Printing:
    """How results are printed; where standard output is the picture's, on standard error."""

    as_json: bool
    quiet: bool = False
    verbose: bool = False
    streams: Streams = field(default_factory=lambda: Streams([], ""))

    def notify(self, text: str) -> None:
        """Print what may be of interest meanwhile."""
        if not self.quiet:
            echo(f"symsmooth: {self.streams.shown(text)}", err=True)

    def result(self, source: Path, result: jobs.Outcome | list[str]) -> None:
        """Print lines, or what was done to a file and what is doubtful about it."""
        if isinstance(result, list):
            echo_lines(result)
            return
        outcome = self.streams.renamed(result)
        for warning in () if self.quiet else outcome.warnings:
            print_warning(f"{self.streams.shown(str(source))}: {warning}")
        if self.as_json:
            echo(json.dumps(outcome.as_json()), err=self.streams.writes)
        elif not self.quiet:
            echo(outcome.as_line(self.verbose), err=self.streams.writes)
            for decision in outcome.decisions() if self.verbose else ():
                echo(f"  {decision}", err=self.streams.writes)

    def failure(self, source: Path, error: Exception) -> str:
        """Return what went wrong; as JSON it is printed in its place among the others."""
        message = self.streams.shown(error_message(error, source))
        if self.as_json:
            print_error(message, 1, True, source)
        return message


def noise(
    inputs: Inputs,
    channel_axis: Axis = "auto",
    time: Time = False,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Say what noise there is and how much, in the image's units and in percent of its range.

    Of a video, and with --time of the pictures of a folder, it is found from several frames.
    """
    with handling_errors(as_json):
        from ..io.formats import open_file

        axis = parse_channel_axis(channel_axis)
        how = jobs.DenoiseJob(find_method(""), {}, None, axis, None, 0, "time")

        def answer(source: Path) -> list[str]:
            shown = Path(streams.shown(str(source)))
            if source in series:
                found = look_at_series(series[source], how)
                return [_frames_text(shown, *found, as_json, verbose)]
            with open_file(source) as file:
                if file.format == "VIDEO":
                    return [_frames_text(shown, *look_at_video(file, how), as_json, verbose)]
                if is_raw(file):
                    return [_noise_text(shown, *raw_noise(file), as_json, verbose)]
                images = jobs.read_file(file, axis)
            return [_noise_line(shown, image, as_json, verbose) for image in images]

        with opened_inputs(inputs) as streams:
            printing = _Printing(as_json, streams=streams)
            joined = find_series(streams.names, tell=printing.notify) if time else []
            series = {paths[0].parent: paths for paths in joined}
            sources = list(series)
            if not series:
                found = [batch.expand(name, tell=printing.notify) for name in streams.names]
                sources = [path for each in found for path, _ in each]
            answers = batch.in_order(sources, answer, 1, threading.Event())
            _print_in_order(answers, printing)


def _noise_line(source: Path, image: ImageFile, as_json: bool, verbose: bool) -> str:
    """Describe the noise of one image, as `denoise` sees it."""
    from ..io.stacks import cut
    from ..noise import resolve

    if image.is_bilevel:
        if as_json:
            facts = {"input": str(source), "noise": None, "percent": 0.0, "range": 1.0}
            return json.dumps(facts | {"shape": list(image.pixels.shape), "dtype": "bool"})
        return f"{source}: {jobs.describe_size(image, cut(image))}, black or white: no noise level"
    stack, span = cut(image), value_range(image.pixels)
    model = resolve(jobs.noise_estimator(image, stack))
    pixels = jobs.middle_slice(image, stack)
    found = describe(model, pixels, span, given=False, assumed=False)
    return _noise_text(source, image, found, as_json, verbose)


def _frames_text(
    source: Path, image: ImageFile, run: FrameRun, as_json: bool, verbose: bool
) -> str:
    """Return the line, or JSON, about the noise that frames have in common."""
    assert run.words is not None
    return _noise_text(source, image, run.words, as_json, verbose, "time")


def _noise_text(
    source: Path,
    image: ImageFile,
    found: NoiseDescription,
    as_json: bool,
    verbose: bool,
    third: Third = "auto",
) -> str:
    """Return the line, or JSON, about one image and its noise."""
    from ..io.stacks import cut

    span = image.details["raw"].span if "raw" in image.details else image.details.get("span")
    span = value_range(image.pixels) if span is None else span
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
    size = jobs.describe_size(image, cut(image, third))
    return f"{source}: {size}, {found.words} ({percent:.3g} %){detail}{why}"


def _print_in_order(
    results: Iterator[tuple[Path, Any]],
    printing: _Printing,
    pause: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> None:
    """Print results as they come; print failures at the end, and exit with 1."""
    failures = []
    for source, result in results:
        with pause():
            if isinstance(result, Exception):
                failures.append(printing.failure(source, result))
            else:
                printing.result(source, result)
    for failure in failures if not printing.as_json else []:
        print_error(failure, 1)
    if failures:
        raise typer.Exit(1)
