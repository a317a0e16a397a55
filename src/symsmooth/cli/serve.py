"""``symsmooth serve``: what must be installed, and what is printed."""

from __future__ import annotations

import importlib.util
import os
import sys
import threading
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from typing import Annotated

import typer

from ..app.errors import UsageError
from .arguments import Workers
from .commands import any_number, whole_number
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


def check_installed() -> None:
    """Say what to install if it is not there."""
    if importlib.util.find_spec("starlette") is None or importlib.util.find_spec("uvicorn") is None:
        raise UsageError("serve needs starlette and uvicorn; pip install 'symsmooth[web]'")


def run(
    host: str,
    port: int,
    max_bytes: int,
    workers: int | None,
    open_browser: bool,
    notify: Callable[[str], None],
) -> None:
    """Serve until Ctrl-C, SIGTERM or SIGHUP, which end the process."""
    from ..web.server import is_loopback, serve

    def ready(address: str) -> None:
        notify(f"the page is {address} (Ctrl-C ends it)")
        if not is_loopback(host):
            notify("everyone who reaches this address can use it; there is no password")
        if open_browser:
            threading.Timer(1.0, webbrowser.open, [address]).start()

    try:
        serve(host, port, max_bytes, workers, ready)
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
) -> None:
    """Serve a page where pictures are dropped, denoised and compared; Ctrl-C ends it."""
    with handling_errors():
        check_installed()
        try:
            run(
                host, port, int(max_upload * 2**20), workers, not no_browser,
                lambda text: echo(f"symsmooth: {text}", err=True),
            )  # fmt: skip
        except OSError as error:
            why = f"cannot listen at {host}:{port}: {error.strerror or error}; give --port"
            raise typer.Exit(print_error(why, 1)) from error
