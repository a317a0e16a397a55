"""``symsmooth denoise``, ``noise`` and ``blend``: files, one after the other or several at a time.

``-`` is a picture or video from standard input, or to standard output, through files nobody else sees.
"""

from __future__ import annotations

import json
import shutil
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from .. import _native
from ..app import noise_models
from ..app.blend import BlendJob, blend_files
from ..app.job import (
    BoxOptions,
    ChannelAxis,
    DenoiseJob,
    Outcome,
    describe_size,
    expand,
    plan_outputs,
)
from ..app.messages import JobWarning, UsageError
from ..app.run import BatchJob, FileJob, in_order, run
from ..app.series import SeriesJob, find_series, plan_series
from ..io import FileError, format_of
from ..io.formats import detect_format, ending_of, is_video_name, video_ending
from ..io.images import cut
from ..io.noise_files import save_noise
from . import arguments as given
from .arguments import AsJson, Overwrite, Quiet, any_number, parse_channel_axis, parse_job
from .console import (
    echo,
    error_message,
    handling_errors,
    print_error,
    print_warning,
    progress_bar,
    said,
)

_STREAM = "-"
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


@dataclass(frozen=True)
class Streams:
    """Names of files in the place of ``-``."""

    names: list[str]
    out: str
    hidden: tuple[str, ...] = ()  # names that mean nothing to a user

    def shown(self, text: str) -> str:
        """Return a message that says ``-`` for files that nobody sees."""
        for name in self.hidden:
            text = text.replace(name, _STREAM)
        return text

    def renamed(self, outcome: Outcome) -> Outcome:
        """Return an outcome that says so."""
        source, target = (Path(self.shown(str(p))) for p in (outcome.source, outcome.target))
        return replace(outcome, source=source, target=target)

    @property
    def writes(self) -> bool:
        """Whether the result goes to standard output."""
        return self.out in self.hidden


def denoise(
    context: typer.Context,
    inputs: given.Inputs,
    out: given.Out = "",
    method: given.MethodName = "",
    sigma: given.Sigma = None,
    noise_from: given.NoiseFrom = "",
    channel_axis: given.Axis = "auto",
    volume: given.Volume = False,
    slices: given.Slices = False,
    time: given.Time = False,
    frame: given.Frame = None,
    lossless: given.Lossless = False,
    format: given.Format = "",
    dtype: given.DtypeName = "",
    linear: given.Linear = False,
    n_jobs: given.Jobs = 1,
    workers: given.Workers = None,
    seed: given.Seed = 0,
    as_json: given.AsJson = False,
    quiet: given.Quiet = False,
    verbose: given.Verbose = False,
    overwrite: given.Overwrite = False,
    resume: given.Resume = False,
    scheduler: given.Scheduler = "",
    quality: given.Quality = None,
    noise: given.NoiseKind = None,
    strength: given.Strength = None,
    chroma_strength: given.ChromaStrength = None,
    grain: given.Grain = None,
    tone: given.Tone = None,
    channels: given.Channels = None,
    specks: given.Specks = None,
) -> None:
    """Denoise files.

    IN may be a folder, which stands for the pictures in it, or a pattern in quotes, such as
    'folder/**/*.tif': the folders are kept below OUT.
    A single - reads standard input, and with -o - the result goes to standard output.
    """
    # Pages that are asked for anew, again and again, are a twentieth of the time of a large picture.
    _native.keep_freed_memory()
    with handling_errors(as_json):
        out = out or ("-" if inputs == ["-"] else "")
        how = parse_job(context.params)
        with _opened_streams(inputs, out, format) as streams:
            printing = _Printing(as_json, quiet, verbose, streams)
            shown = sys.stderr.isatty() and not (as_json or quiet)
            boxes = BoxOptions(resume, scheduler, printing.notify)
            asked = _plan(streams, how, boxes, overwrite, printing.notify)
            if n_jobs > 1 and any(isinstance(job, SeriesJob) for job in asked):
                raise UsageError("frames of a series follow each other; leave out --jobs")
            with progress_bar("", shown) as bar:
                results = run(BatchJob(asked, n_jobs), bar)
                _print_in_order(results, printing, nullcontext if bar is None else bar.pause)


def _plan(
    streams: Streams,
    how: DenoiseJob,
    boxes: BoxOptions,
    overwrite: bool,
    notify: Callable[[str], None],
) -> Sequence[FileJob | SeriesJob]:
    """Return what is to be done: to pictures that are series, or to each file."""
    if how.third == "time":
        series = plan_series(streams.names, streams.out, how, overwrite, boxes.resume, notify)
        if series and boxes.scheduler:
            raise UsageError(
                "a cluster takes pictures and volumes; leave out --time or --scheduler"
            )
        if series:
            return [job for job in series if job.targets]  # else all is there
    plan = plan_outputs(streams.names, streams.out, overwrite, boxes.resume)
    for line in plan.skipped:
        notify(line)
    if plan.done:
        total = len(plan.done) + len(plan.targets)
        notify(f"skipped {len(plan.done)} of {total} files: their output exists")
    return [FileJob(source, target, how, boxes) for source, target in plan.targets.items()]


@dataclass(frozen=True)
class _Printing:
    """How results are printed; where standard output is the picture's, on standard error."""

    as_json: bool
    quiet: bool = False
    verbose: bool = False
    streams: Streams = field(default_factory=lambda: Streams([], ""))

    def notify(self, message: str | JobWarning) -> None:
        """Print what may be of interest meanwhile."""
        if not self.quiet:
            echo(f"symsmooth: {self.streams.shown(said(message))}", err=True)

    def result(self, source: Path, result: Outcome | list[str]) -> None:
        """Print lines, or what was done to a file and what is doubtful about it."""
        if isinstance(result, list):
            for line in result:
                echo(line)
            return
        outcome = self.streams.renamed(result) if self.streams.hidden else result
        for warning in () if self.quiet else outcome.warnings:
            print_warning(f"{self.streams.shown(str(source))}: {said(warning)}")
        if self.as_json:
            told = {**outcome.as_json(), "warnings": list(map(said, outcome.warnings))}
            echo(json.dumps(told), err=self.streams.writes)
        elif not self.quiet:
            echo(outcome.as_line(self.verbose), err=self.streams.writes)
            if outcome.note is not None:
                self.notify(replace(outcome.note, message=f"{source}: {outcome.note.message}"))
            for decision in outcome.decisions() if self.verbose else ():
                echo(f"  {decision}", err=self.streams.writes)

    def failure(self, source: Path, error: Exception) -> str:
        """Return what went wrong; as JSON it is printed in its place among the others."""
        message = self.streams.shown(error_message(error, source))
        if self.as_json:
            print_error(message, 1, True, source)
        return message


def noise(
    inputs: given.Inputs,
    save: given.SaveNoise = "",
    calibrate: given.Calibrate = False,
    darks: given.Darks = "",
    channel_axis: given.Axis = "auto",
    time: given.Time = False,
    as_json: given.AsJson = False,
    verbose: given.Verbose = False,
    overwrite: given.Overwrite = False,
) -> None:
    """Say what noise there is and how much, in the image's units and in percent of its range.

    Of a video, and with --time of the pictures of a folder, it is found from several frames.
    With --save it is kept, to be given to other pictures of the same camera: --noise FILE.json.
    """
    with handling_errors(as_json):
        axis, target = parse_channel_axis(channel_axis), Path(save) if save else None
        if target is not None:
            noise_models.check_target(target, overwrite)
        if darks and not calibrate:
            raise UsageError("--darks goes with --calibrate; give both or none")
        if time and calibrate:
            raise UsageError("frames for --calibrate are of one still scene; leave out --time")
        with _opened_streams(inputs) as streams:
            printing = _Printing(as_json, streams=streams)
            joined = find_series(streams.names, tell=printing.notify) if time else []
            series = {paths[0].parent: paths for paths in joined}
            sources = list(series) or _expanded(streams.names, printing)
            if calibrate:
                _calibrate(
                    sources, _expanded([darks], printing) if darks else [], axis, target, printing
                )
                return
            together = noise_models.Together(sources) if target is not None else None

            def look(source: Path) -> list[str]:
                looks = noise_models.look_at(source, axis, series.get(source, ()))
                if together is not None:
                    for each in looks:
                        together.add(source, each)
                shown = streams.shown(str(source))
                return [_noise_text(shown, each, as_json, verbose) for each in looks]

            _print_in_order(in_order(sources, look, 1, threading.Event()), printing)
            if target is not None and together is not None:
                with _failing_in_one_line(printing):
                    model = together.model()
                    save_noise(model, target)
                printing.notify(f"saved {target}: {model}")


def _expanded(names: list[str], printing: _Printing) -> list[Path]:
    """Return the files that names, folders and patterns stand for."""
    found = [expand(name, tell=printing.notify) for name in names]
    return [path for each in found for path, _ in each]


def _calibrate(
    sources: list[Path],
    darks: list[Path],
    axis: ChannelAxis,
    target: Path | None,
    printing: _Printing,
) -> None:
    """Measure the noise on frames, keep it, and say what it is."""
    with _failing_in_one_line(printing):
        model, words = noise_models.calibrate_files(sources, darks, axis)
        if target is not None:
            save_noise(model, target)
    if printing.as_json:
        saved = None if target is None else str(target)
        echo(json.dumps({"saved": saved, "frames": len(sources), "noise": dict(words.fields)}))
        return
    name = "calibration" if target is None else str(target)
    reasons = "" if model.finding is None else f": {'; '.join(model.finding.reasons)}"
    echo(f"{name}: {words.words} [{words.detail}]{reasons}")


@contextmanager
def _failing_in_one_line(printing: _Printing) -> Iterator[None]:
    """Say what goes wrong with files as all failures are said, and exit with 1."""
    try:
        yield
    except UsageError:
        raise
    except (ValueError, OSError, MemoryError) as error:
        message = printing.streams.shown(error_message(error))
        raise typer.Exit(print_error(message, 1, printing.as_json)) from error


def _noise_text(source: str, look: noise_models.Look, as_json: bool, verbose: bool) -> str:
    """Return the line, or JSON, about one image and its noise."""
    image, found = look.image, look.words
    percent = 100 * found.level / look.span if found is not None and look.span else 0.0
    if as_json:
        facts = {
            "input": source,
            "noise": None if found is None else dict(found.fields),
            "percent": percent,
            "range": 1.0 if found is None else look.span,
            "shape": list(image.pixels.shape),
            "dtype": str(image.pixels.dtype) if found is not None else "bool",
        }
        return json.dumps(facts)
    size = describe_size(image, cut(image, look.third))
    if found is None:
        return f"{source}: {size}, black or white: no noise level"
    detail = f" [{found.detail}]" if verbose else ""
    reasons = found.fields.get("reasons")
    why = f": {'; '.join(reasons)}" if isinstance(reasons, list) else ""
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


@contextmanager
def _opened_streams(
    names: list[str], out: str | None = None, format: str = ""
) -> Iterator[Streams]:
    """Put files in the place of ``-``; what was written to the last of them goes to standard output.

    None for ``out`` where only reading is asked for.
    """
    if out is not None:
        _check_output(out, format)
    if _STREAM in (*names, out) and len(names) > 1:
        raise UsageError("- stands for one picture; give no other input beside it")
    if _STREAM not in (*names, out):
        yield Streams(names, out or "")
        return
    with TemporaryDirectory(prefix="symsmooth-") as folder:
        reads = names == [_STREAM]
        source = _read_stdin(Path(folder)) if reads else Path(names[0])
        hidden = [str(source)] if reads else []
        target = out or ""
        if out == _STREAM:
            target = str(Path(folder) / f"out{_ending(source, format, names[0])}")
            hidden.append(target)
        yield Streams([str(source)], target, tuple(hidden))
        if out == _STREAM and Path(target).exists():
            with open(target, "rb") as handle:
                shutil.copyfileobj(handle, sys.stdout.buffer)
            sys.stdout.buffer.flush()


def _check_output(out: str, format: str) -> None:
    if not out:
        raise UsageError(
            "-o is missing: give a file, a folder (ending in /), or - for standard output"
        )
    if out == _STREAM and sys.stdout is None:
        raise UsageError("standard output is closed; give a file with -o")
    if format and out != _STREAM:
        raise UsageError(
            "--format is for standard output (-o -); the ending of -o says a file's format"
        )


def _read_stdin(folder: Path) -> Path:
    """Write standard input to a file."""
    if sys.stdin is None:
        raise UsageError("standard input is closed; give the name of a file")
    if sys.stdin.buffer.isatty():
        raise UsageError(
            "standard input is a terminal; send a picture to it: symsmooth denoise - < noisy.png"
        )
    path = folder / "in"
    with open(path, "wb") as handle:
        shutil.copyfileobj(sys.stdin.buffer, handle)
    return path


def _ending(source: Path, format: str, name: str) -> str:
    """Return the ending that means a format: the one asked for, else that of the input."""
    try:
        if format:
            ending = f".{format.lower().lstrip('.')}"
            if is_video_name(f"x{ending}"):
                return ending
            found = format_of(f"x{ending}")
            if found == "ZARR":
                raise UsageError("a Zarr is a folder; it cannot go to standard output")
            return ending_of(found)
        found = detect_format(source)
        return video_ending(source) if found == "VIDEO" else ending_of(found)
    except FileNotFoundError:
        raise UsageError(f"{name}: no such file") from None
    except FileError as error:
        raise UsageError(f"{'--format' if format else name}: {error}") from error


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
