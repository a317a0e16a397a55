"""``symsmooth serve``: what must be there, and what is told."""

from __future__ import annotations

import importlib.util
import os
import sys
import threading
import webbrowser
from collections.abc import Callable

from .options import UsageError


def check() -> None:
    """Say what to install if it is not there."""
    if importlib.util.find_spec("gradio") is None:
        raise UsageError("serve needs gradio; pip install 'symsmooth[web]'")


def run(
    host: str,
    port: int,
    most_bytes: int,
    workers: int | None,
    open_browser: bool,
    tell: Callable[[str], None],
) -> None:
    """Serve until Ctrl-C or SIGTERM, which end the process."""
    from ..web.server import is_loopback, serve

    def ready(address: str) -> None:
        tell(f"the page is {address} (Ctrl-C ends it)")
        if not is_loopback(host):
            tell("everyone who reaches this address can use it; there is no password")
        if open_browser:
            threading.Timer(1.0, webbrowser.open, [address]).start()

    try:
        serve(host, port, most_bytes, workers, ready)
    except KeyboardInterrupt:
        tell("stopped; all pictures that were dropped are deleted")
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)  # all is put away; Python would take seconds to take its libraries down
