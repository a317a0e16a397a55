"""``symsmooth benchmark``: our methods and the peers on a folder of pictures."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from symsmooth.app.messages import UsageError
from symsmooth.cli.arguments import Workers, parse_methods, whole_number
from symsmooth.cli.console import echo, handling_errors, print_error, print_warning

from .reproduce import following

if TYPE_CHECKING:
    from ..benchmark.contestants import Contestant
    from ..benchmark.model import Findings
    from ..benchmark.trials import Noise

_METHODS = "denoise:preview,denoise:fast,denoise:balanced,denoise:best"
_SIGMAS = "15,25,50"
_MODES = {"both": (True, False), "known": (True,), "blind": (False,)}

Every = Annotated[
    int,
    typer.Option(
        metavar="N", parser=whole_number("--every", 1), help="Take every N-th picture only."
    ),
]

Repeats = Annotated[
    int,
    typer.Option(
        metavar="N",
        parser=whole_number("--repeats", 1),
        help="Runs of each; the shortest time counts.",
    ),
]


def benchmark(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Clean pictures, or pairs of noisy and clean.")
    ],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="DIR", help="Folder of the tables.")],
    methods: Annotated[
        str, typer.Option(metavar="A,B,...", help="Such as denoise:fast,nlm:sinkhorn-iters=1,bm3d.")
    ] = _METHODS,
    peers: Annotated[
        str, typer.Option(metavar="A,B,...", help="Peers by name, none, or all that are installed.")
    ] = "all",
    sigmas: Annotated[
        str, typer.Option(metavar="S,...", help=f"White noise of 255 to add.  [default: {_SIGMAS}]")
    ] = "",
    poisson: Annotated[
        str, typer.Option(metavar="N,...", help="Poisson noise to add: photons at white.")
    ] = "",
    cameras: Annotated[
        str, typer.Option(metavar="A,...", help="Simulated cameras whose noise to add.")
    ] = "",
    only: Annotated[
        str,
        typer.Option(metavar="known|blind|both", help="Whether methods are given the noise level."),
    ] = "both",
    grey: Annotated[bool, typer.Option("--grey", help="Take colour pictures as grey.")] = False,
    every: Every = 1,
    repeats: Repeats = 1,
    workers: Workers = None,
    label: Annotated[
        str, typer.Option(metavar="TEXT", help="What the pictures are, such as development.")
    ] = "",
) -> None:
    """Measure PSNR, SSIM and time of methods and peers on a folder of pictures; resumable."""
    with handling_errors():
        if only not in _MODES:
            raise UsageError(f"--only must be known, blind or both, got {only!r}")
        if out.exists() and not out.is_dir():
            raise UsageError(f"--out {out} is a file; give a folder")
        contestants = _parse_contestants(methods, peers)
        noises = _parse_noises(sigmas, poisson, cameras)
        from symsmooth.core.parallel import default_workers

        from ..benchmark.model import Benchmark
        from ..benchmark.run import run_benchmark
        from ..provenance import command_line

        asked = Benchmark(
            folder=folder, out=out, contestants=contestants, noises=noises, modes=_MODES[only], grey=grey,
            every=every, repeats=repeats, workers=workers or default_workers(), label=label,
            command=command_line(sys.argv[1:]),
        )  # fmt: skip
        try:
            with following(
                sys.stderr.isatty(), lambda text: echo(f"symsmooth: {text}", err=True)
            ) as report:
                found = run_benchmark(asked, report)
        except KeyboardInterrupt:
            echo(
                "symsmooth: finished measurements are kept; run the same command to continue",
                err=True,
            )
            raise
        _report(found, bool(sigmas or poisson or cameras))


def _report(found: Findings, noise_asked: bool) -> None:
    """Print the tables, and what a reader must know of them."""
    from ..benchmark.model import NAME
    from ..benchmark.tables import tables

    for table in tables(found):
        typer.echo(table.to_markdown() + "\n")
    for each in found.sets:
        if each.left_out:
            print_warning(
                f"{each.name}: {len(each.left_out)} files left out: the other half of their pair is missing"
            )
    if noise_asked and all(each.is_paired for each in found.sets):
        print_warning("the pictures are pairs; no noise was added")
    for failure in found.failures:
        print_error(failure, 1)
    echo(f"the tables are {found.benchmark.out / NAME}.md, .csv and .json")
    if found.failures:
        raise typer.Exit(1)


def _parse_contestants(methods: str, peers: str) -> list[Contestant]:
    """Return our methods, then the peers."""
    from ..benchmark.contestants import Contestant, peer
    from ..benchmark.peers import PEERS, installed_peers

    ours = [
        Contestant(f"symsmooth {choice.label}", choice.method.name, choice.options)
        for choice in (parse_methods(methods) if methods != "none" else [])
    ]
    names = [] if peers == "none" else installed_peers() if peers == "all" else peers.split(",")
    for name in names:
        if name not in PEERS:
            raise UsageError(f"there is no peer {name!r}; use all, none or {', '.join(PEERS)}")
        if not PEERS[name].is_installed:
            raise UsageError(
                f"{name} is not installed; pip install 'symsmooth-repro[bench]' has most peers"
            )
    return ours + [peer(name) for name in names]


def _parse_noises(sigmas: str, poisson: str, cameras: str) -> list[Noise]:
    """Return the noise to add; white noise if nothing else is asked for."""
    from ..benchmark.trials import Noise
    from ..camera import CAMERAS

    if not (sigmas or poisson or cameras):
        sigmas = _SIGMAS
    noises = [Noise("white", amount) for amount in _parse_amounts("--sigmas", sigmas)]
    noises += [Noise("poisson", amount) for amount in _parse_amounts("--poisson", poisson)]
    for name in filter(None, cameras.split(",")):
        if name not in CAMERAS:
            raise UsageError(f"there is no camera {name!r}; use {', '.join(CAMERAS)}")
        noises.append(Noise("camera", camera=name))
    return noises


def _parse_amounts(option: str, text: str) -> list[float]:
    try:
        amounts = [float(word) for word in text.split(",") if word]
    except ValueError:
        raise UsageError(f"{option} must be numbers such as {_SIGMAS}, got {text!r}") from None
    if any(not 0 < amount < 1e6 for amount in amounts):
        raise UsageError(f"{option} must be above 0, got {text}")
    return amounts
