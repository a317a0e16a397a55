"""``symsmooth methods``, ``compare`` and ``demo``: what there is to choose from, side by side."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from .. import methods as registry
from ..app.compare import CompareJob, check_target
from ..app.compare import Page as HtmlPage
from ..app.demo import FILES, run_demo
from ..app.messages import UsageError
from ..app.run import run
from . import arguments as given
from .arguments import (
    AsJson,
    check_sigma,
    complete_method,
    find_method,
    parse_channel_axis,
    parse_methods,
    parse_noise_file,
    parse_slice,
)
from .console import echo, handling_errors, print_warning, progress_bar, said

Names = Annotated[
    list[str] | None,
    typer.Argument(metavar="NAME", help="Methods; by default all.", autocompletion=complete_method),
]
DEMO_FOLDER = Path("symsmooth-demo")


def methods(names: Names = None, as_json: AsJson = False) -> None:
    """List the methods, their own options, defaults and choices; of named ones also what options do."""
    with handling_errors(as_json):
        listed = [find_method(name) for name in names or registry.METHODS]
    if as_json:
        for method in listed:
            options = {option.key: option.default for option in method.options.values()}
            row = {
                "name": method.name,
                "summary": method.summary,
                "options": options,
                "choices": {o.key: o.choices for o in method.options.values() if o.choices},
            }
            typer.echo(json.dumps(row, default=str))
        return

    table = Table("method", "what it does", "its own options and defaults", show_lines=True)
    for method in listed:
        lines = []
        for option in method.options.values():
            default = "none" if option.default is None else option.default
            choices = f" (of {', '.join(option.choices)})" if option.choices else ""
            about = f": {option.help}" if names and option.help else ""
            lines.append(f"{option.key}={default}{choices}{about}")
        label = f"{method.name} (default)" if method.name == registry.DEFAULT else method.name
        table.add_row(Text(label), Text(method.summary), Text("\n".join(lines)))
    Console().print(table)


def demo(
    out: Annotated[
        Path, typer.Option("-o", "--out", metavar="DIR", help="Folder of the pictures.")
    ] = DEMO_FOLDER,
    overwrite: given.Overwrite = False,
) -> None:
    """Compare NLM, NLM with column normalisation, GSF and the default method on one picture."""
    with handling_errors():
        present = [name for name in FILES if (out / name).exists()]
        if present and not overwrite and out != DEMO_FOLDER:
            raise UsageError(f"{out / present[0]} exists; give --overwrite or another -o")
        with progress_bar("demo", sys.stderr.isatty()) as bar:
            panels = run_demo(out, bar)
        for panel in panels:
            time_taken = "" if panel.seconds is None else f"{panel.seconds:6.1f} s"
            echo(f"{panel.label:<14}{panel.psnr:6.2f} dB {time_taken}")
        echo(f"the pictures are in {out}; {out / FILES[-1]} shows them side by side")


def compare(
    source: given.OneFile,
    out: given.Page,
    reference: Annotated[
        Path | None, typer.Option(metavar="CLEAN", help="The picture without noise, if known.")
    ] = None,
    methods: Annotated[
        str,
        typer.Option(
            metavar="A,B,...",
            help="Such as denoise:fast,nlm:sinkhorn-iters=1,bm3d.",
            autocompletion=given.complete_methods,
        ),
    ] = "",
    sigma: given.Sigma = None,
    noise: given.NoiseFile = "",
    channel_axis: given.Axis = "auto",
    piece: given.Slice = "",
    time: Annotated[
        bool, typer.Option("--time", help="Of a stack in time: with the frames around it too.")
    ] = False,
    workers: given.Workers = None,
    seed: given.Seed = 0,
    overwrite: given.Overwrite = False,
) -> None:
    """Compare methods on a picture: one HTML file with divider, zoom, method noise and numbers."""
    with writing_a_page(out, sigma, overwrite):
        asked, model = parse_methods(methods), parse_noise_file(noise)
        axis, at = parse_channel_axis(channel_axis), parse_slice(piece)
        with progress_bar(source.name, sys.stderr.isatty()) as bar:
            job = CompareJob(source, asked, reference, sigma, axis, at, workers, seed, model, time)
            page = run(job, bar)
        save_page(page, out)


def save_page(page: HtmlPage, out: Path) -> None:
    """Write a page, after what looks doubtful was said."""
    for warning in page.warnings:
        print_warning(said(warning))
    page.save(out)


@contextmanager
def writing_a_page(out: Path, sigma: float | None, overwrite: bool) -> Iterator[None]:
    """Check what is asked for; errors are one line; print where the page is."""
    with handling_errors():
        check_sigma(sigma)
        check_target(out, overwrite)
        yield
        echo(f"the page is {out}, {out.stat().st_size / 1e6:.1f} MB")
