"""The command line: a thin shell over METHODS, estimate_sigma and files.

At the top nothing but typer and the standard library is imported (``options`` and ``work`` keep to
that too), so that ``--help`` is instant.
"""

from __future__ import annotations

import inspect
import json
import math
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import batch, pieces, seeing, work
from .noise_report import describe
from .options import UsageError, own_options, parse_options, split_arguments
from .telling import complain, handling_errors, message, progress_bar, say, stopped, warn

if TYPE_CHECKING:
    from ..files import ImageFile

DEFAULT_METHOD = "denoise"
DEMO_FOLDER = Path("symsmooth-demo")
_TYPER_ERROR: type[BaseException] = typer.BadParameter.__mro__[1]  # UsageError, wherever it lives

app = typer.Typer(
    help="Denoise images without training.",
    add_completion=False,
    pretty_exceptions_enable=False,
)

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


def main() -> None:
    """Run the command line; every error is one line, never a traceback."""
    try:
        code = app(standalone_mode=False) or 0
    except (KeyboardInterrupt, typer.Abort):
        code = stopped()
    except _TYPER_ERROR as error:
        code = complain(getattr(error, "format_message", error.__str__)(), 2)
    except BrokenPipeError:  # as in `symsmooth methods | head -1`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    except Exception as error:
        code = complain(message(error), 1)
    sys.exit(code)


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="With --version: also what it computes with.")
    ] = False,
) -> None:
    if version:
        from .. import __version__

        typer.echo(f"symsmooth {__version__}")
        if verbose:
            from .. import _native

            others = ", ".join(_native.instruction_sets())
            typer.echo(f"kernels for {_native.instruction_set()} (here: {others})")
        raise typer.Exit()
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(2)


@app.command(context_settings={"ignore_unknown_options": True})
def denoise(
    inputs: Inputs,
    out: Out,
    method: Annotated[str, typer.Option(help="One of `symsmooth methods`; else the best.")] = "",
    sigma: Annotated[
        float | None, typer.Option(help="Noise level in the image's units; else estimated.")
    ] = None,
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
    jobs: Annotated[int, typer.Option(min=1, help="Files at a time.")] = 1,
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
        if sigma is not None and not (math.isfinite(sigma) and sigma >= 0):
            raise UsageError(f"--sigma must be a number of 0 or more, got {sigma}")
        axis = work.parse_channel_axis(channel_axis)
        method, function = _find_method(method)
        options = parse_options(method, function, given)
        third = work.parse_third_axis(volume, slices, time)
        job = work.Job(method, function, options, sigma, axis, workers, seed, third)
        plan = batch.plan_outputs(names, out, overwrite, resume)
        job = replace(job, workers=work.share_of_cores(workers, min(jobs, len(plan.targets))))
        show_bar = sys.stderr.isatty() and not (as_json or quiet) and jobs == 1
        stop = threading.Event()

        def tell(text: str) -> None:
            if not quiet:
                say(f"symsmooth: {text}", err=True)

        def work_on(source: Path) -> list[str]:
            with progress_bar(source.name, show_bar) as progress:
                heeding = work.stopping(stop, progress) if jobs > 1 else progress
                how = pieces.How(resume, scheduler, tell)
                with pieces.opened(source, plan.targets[source], scheduler) as large:
                    if large is None:
                        report = work.denoise_file(source, plan.targets[source], job, heeding)
                    else:
                        report = pieces.denoise(large, plan.targets[source], job, heeding, how)
            for doubt in () if quiet else report.doubts:
                warn(f"{source}: {doubt}")
            return [json.dumps(report.as_json()) if as_json else report.as_line(verbose)]

        if plan.done:
            total = len(plan.done) + len(plan.targets)
            tell(f"skipped {len(plan.done)} of {total} files: their output exists")
        _for_each(list(plan.targets), work_on, as_json, quiet and not as_json, jobs, stop)


@app.command()
def noise(
    inputs: Inputs, channel_axis: Axis = "auto", as_json: AsJson = False, verbose: Verbose = False
) -> None:
    """Say what noise there is and how much, in the image's units and in percent of its range."""
    with handling_errors(as_json):
        axis = work.parse_channel_axis(channel_axis)

        def work_on(source: Path) -> list[str]:
            images = work.open_file(source, axis)
            return [_noise_line(source, image, as_json, verbose) for image in images]

        _for_each([path for name in inputs for path, _ in batch.expand(name)], work_on, as_json)


def _noise_line(source: Path, image: ImageFile, as_json: bool, verbose: bool) -> str:
    """Return what is told of the noise of one image: what `denoise` takes it to be."""
    from ..files.stacks import cut

    stack = cut(image)
    model, span = work.estimated_noise(image, stack), work.range_of(image)
    pixels = work.middle_of(image, stack)
    found = describe(model, pixels, span, given=False, assumed=False)
    percent = 100 * found.level / span if span else 0.0
    if as_json:
        told = {
            "input": str(source),
            "noise": dict(found.fields),
            "percent": percent,
            "range": span,
        }
        kind = {"shape": list(image.pixels.shape), "dtype": str(image.pixels.dtype)}
        return json.dumps(told | kind)
    detail = f" [{found.detail}]" if verbose else ""
    return f"{source}: {work.size_of(image, stack)}, {found.words} ({percent:.3g} %){detail}"


@app.command()
def methods(as_json: AsJson = False) -> None:
    """List the methods and their own options."""
    from .. import METHODS

    rows = []
    for name, function in METHODS.items():
        summary = (inspect.getdoc(function) or "").partition("\n")[0]
        options = {flag: option.default for flag, option in own_options(function).items()}
        rows.append((name, summary, options))
    if as_json:
        for name, summary, options in rows:
            row = {"name": name, "summary": summary, "options": options}
            typer.echo(json.dumps(row, default=str))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table("method", "what it does", "its own options and defaults", show_lines=True)
    for name, summary, options in rows:
        lines = [f"{flag} {'none' if value is None else value}" for flag, value in options.items()]
        label = f"{name} (default)" if name == DEFAULT_METHOD else name
        table.add_row(Text(label), Text(summary), Text("\n".join(lines)))
    Console().print(table)


@app.command()
def demo(
    out: Annotated[
        Path, typer.Option("-o", "--out", metavar="DIR", help="Folder of the pictures.")
    ] = DEMO_FOLDER,
    overwrite: Overwrite = False,
) -> None:
    """Compare NLM, NLM with column normalisation, GSF and the default method on one picture."""
    from .. import METHODS
    from .comparison import FILES, run_demo

    with handling_errors():
        present = [name for name in FILES if (out / name).exists()]
        if present and not overwrite and out != DEMO_FOLDER:
            raise UsageError(f"{out / present[0]} exists; give --overwrite or another -o")
        try:
            with progress_bar("demo", sys.stderr.isatty()) as progress:
                panels = run_demo(out, METHODS, progress)
        except Exception as error:
            raise typer.Exit(complain(message(error), 1)) from error
        for panel in panels:
            time_taken = "" if panel.seconds is None else f"{panel.seconds:6.1f} s"
            say(f"{panel.label:<14}{panel.psnr:6.2f} dB {time_taken}")
        say(f"the pictures are in {out}; {out / FILES[-1]} shows them side by side")


@app.command()
def compare(
    source: OneFile,
    out: Page,
    reference: Annotated[
        Path | None, typer.Option(metavar="CLEAN", help="The picture without noise, if known.")
    ] = None,
    methods: Annotated[
        str, typer.Option(metavar="A,B,...", help="Such as denoise:fast,nlm:sinkhorn-iters=1,bm3d.")
    ] = "",
    sigma: Sigma = None,
    channel_axis: Axis = "auto",
    piece: Slice = None,
    workers: Workers = None,
    seed: Seed = 0,
    overwrite: Overwrite = False,
) -> None:
    """Compare methods on a picture: one HTML file with divider, zoom, method noise and numbers."""
    from .. import METHODS

    with _writing_a_page(out, sigma, overwrite):
        asked = seeing.parse_methods(methods, _find_method, METHODS)
        axis = work.parse_channel_axis(channel_axis)
        with progress_bar(source.name, sys.stderr.isatty()) as progress:
            text = seeing.compare(
                source, reference, asked, sigma=sigma, channel_axis=axis, piece=piece,
                workers=workers, seed=seed, progress=progress, warn=warn,
            )  # fmt: skip
        seeing.save(out, text)


@app.command()
def explain(
    source: OneFile,
    out: Page,
    sigma: Sigma = None,
    side: Annotated[
        int,
        typer.Option(
            min=16, max=1024, help="Learn from the busiest part of so many pixels a side."
        ),
    ] = 384,
    channel_axis: Axis = "auto",
    piece: Slice = None,
    workers: Workers = None,
    seed: Seed = 0,
    overwrite: Overwrite = False,
) -> None:
    """Show what the paper's mixture learns from a picture: clusters, friends, k and lambda."""
    from ..figures import require_matplotlib

    with _writing_a_page(out, sigma, overwrite):
        require_matplotlib()
        axis = work.parse_channel_axis(channel_axis)
        with progress_bar(source.name, sys.stderr.isatty()) as progress:
            text = seeing.explain(
                source, sigma=sigma, channel_axis=axis, piece=piece, side=side,
                workers=workers, seed=seed, progress=progress, warn=warn,
            )  # fmt: skip
        seeing.save(out, text)


@contextmanager
def _writing_a_page(out: Path, sigma: float | None, overwrite: bool) -> Iterator[None]:
    """Check what is asked for; whatever goes wrong is one line; tell where the page is."""
    with handling_errors():
        if sigma is not None and not (math.isfinite(sigma) and sigma >= 0):
            raise UsageError(f"--sigma must be a number of 0 or more, got {sigma}")
        seeing.check_target(out, overwrite)
        try:
            yield
        except UsageError:
            raise
        except (ValueError, TypeError, OSError, MemoryError) as error:
            raise typer.Exit(complain(message(error), 1)) from error
        say(f"the page is {out}, {out.stat().st_size / 1e6:.1f} MB")


@app.command()
def serve(
    host: Annotated[str, typer.Option(help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 7860,
    max_upload: Annotated[
        float, typer.Option(metavar="MB", min=0.001, help="Largest file that may be dropped.")
    ] = 100.0,
    workers: Annotated[int | None, typer.Option(min=1, help="Threads of a run; else all.")] = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Open no browser.")] = False,
) -> None:
    """Serve a page where pictures are dropped, denoised and compared; Ctrl-C ends it."""
    from . import serving

    with handling_errors():
        serving.check()
        try:
            serving.run(
                host, port, int(max_upload * 2**20), workers, not no_browser,
                lambda text: say(f"symsmooth: {text}", err=True),
            )  # fmt: skip
        except OSError as error:
            why = f"cannot listen at {host}:{port}: {error.strerror or error}; give --port"
            raise typer.Exit(complain(why, 1)) from error


@app.command()
def reproduce(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME...]", help="Experiments; else all.")
    ] = None,
    images: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The paper's pictures; else stand-ins.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="DIR", help="Folder of the report.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer pictures and trials.")] = False,
    jobs: Annotated[int | None, typer.Option(min=1, help="Processes; else all cores.")] = None,
    list_them: Annotated[bool, typer.Option("--list", help="Name the experiments.")] = False,
) -> None:
    """Measure every table and figure of the paper again and write a report."""
    from . import reproduction

    with handling_errors():
        if list_them:
            for line in reproduction.listing():
                say(line)
            return
        folder = reproduction.check(names or [], jobs, out)
        from ..experiments.provenance import command_line
        from ..experiments.reproduction import reproduce as run

        command = command_line(sys.argv[1:])
        try:
            with reproduction.telling(
                sys.stderr.isatty(), lambda text: say(f"symsmooth: {text}", err=True)
            ) as tell:
                found = run(
                    names or [],
                    images=images,
                    out=folder,
                    quick=quick,
                    jobs=jobs,
                    command=command,
                    tell=tell,
                )
        except KeyboardInterrupt:
            say("symsmooth: finished cells are kept; the same command goes on from here", err=True)
            raise
        except (ValueError, OSError) as error:
            raise typer.Exit(complain(message(error), 1)) from error
        for failure in found.failures:
            complain(failure, 1)
        say(f"the report is {folder / 'report.html'}; tables in {folder / 'reproduction.md'}")
        if found.failures:
            raise typer.Exit(1)


def _find_method(name: str) -> tuple[str, Callable[..., Any]]:
    """Return a method by name; the default one for an empty name."""
    from .. import METHODS
    from ..methods import UNLISTED

    name = name or DEFAULT_METHOD
    if name in UNLISTED:
        return name, UNLISTED[name]
    if name not in METHODS:
        raise UsageError(f"there is no method {name!r}; use one of {', '.join(METHODS)}")
    return name, METHODS[name]


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
                complain(message(outcome, source), 1, as_json, source)
            failures.append(message(outcome, source))
            continue
        for line in outcome if not quiet else []:
            say(line)
    for failure in failures if not as_json else []:
        complain(failure, 1)
    if failures:
        raise typer.Exit(1)
