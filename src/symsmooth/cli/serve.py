"""``symsmooth serve``: what must be installed, and what is printed."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
import threading
import webbrowser
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Annotated

import typer

from ..app.messages import UsageError
from .arguments import Workers, any_number, whole_number
from .console import echo, handling_errors, print_error

Port = Annotated[
    int,
    typer.Option(
        metavar="N", parser=whole_number("--port", 0, 65535), help="Port; 0 takes a free one."
    ),
]

MaxUpload = Annotated[
    float,
    typer.Option(
        metavar="MB",
        parser=any_number("--max-upload", 0.001),
        help="Largest file that may be dropped.",
    ),
]


_NAME = re.compile(r"[a-z0-9_]([a-z0-9_.-]*[a-z0-9])?", re.ASCII | re.IGNORECASE)


def _check(names: Sequence[str]) -> None:
    """Say what to install if it is not there; refuse what cannot be a name in an address."""
    if importlib.util.find_spec("starlette") is None or importlib.util.find_spec("uvicorn") is None:
        raise UsageError("serve needs starlette and uvicorn; pip install 'symsmooth[web]'")
    for name in names:
        if not _NAME.fullmatch(name):
            raise UsageError(
                f"--name must be a name such as images.example.org, without port and path, got {name!r}"
            )


def run(
    host: str,
    port: int,
    max_bytes: int,
    workers: int | None,
    open_browser: bool,
    notify: Callable[[str], None],
    names: Sequence[str] = (),
) -> None:
    """Serve until Ctrl-C, SIGTERM or SIGHUP, which end the process."""
    from ..web.guard import is_loopback
    from ..web.server import serve

    def ready(address: str) -> None:
        notify(f"the page is {address} (Ctrl-C ends it)")
        if not is_loopback(host):
            notify(
                "all who reach this address can use it: there is no password, so put one in front"
            )
        if open_browser:
            threading.Timer(1.0, webbrowser.open, [address]).start()

    try:
        serve(host, port, max_bytes, workers, ready, names)
    except KeyboardInterrupt:
        with suppress(OSError):  # the terminal may be gone
            notify("stopped; all pictures that were dropped are deleted")
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(0)  # all is put away; Python would take seconds to take its libraries down


def serve(
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Address to listen at.")
    ] = "127.0.0.1",
    port: Port = 7860,
    max_upload: MaxUpload = 100.0,
    workers: Workers = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Open no browser.")] = False,
    names: Annotated[
        list[str] | None,
        typer.Option(
            "--name",
            metavar="NAME",
            help="Answer to this name, too, as behind a proxy; may be given again.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Serve a page where pictures are dropped, denoised and compared; Ctrl-C ends it."""
    with handling_errors():
        _check(names or [])
        try:
            run(
                host, port, int(max_upload * 2**20), workers, not no_browser,
                lambda text: echo(f"symsmooth: {text}", err=True), names or [],
            )  # fmt: skip
        except OSError as error:
            why = f"cannot listen at {host}:{port}: {error.strerror or error}; give --port"
            raise typer.Exit(print_error(why, 1)) from error
