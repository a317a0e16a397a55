"""The address the page is at: puts guard, page and processes together, and takes all away at the end."""

from __future__ import annotations

import signal
import socket
import tempfile
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from ..core.parallel import EndedBySignal, default_workers, ending_on_signals
from ..io.base import memory
from .guard import Guard, hosts_of
from .pool import Pool

_READERS = 2  # processes that inspect and draw pictures


def serve(
    host: str,
    port: int,
    max_bytes: int,
    workers: int | None,
    ready: Callable[[str], object],
    names: Sequence[str] = (),
) -> None:
    """Serve the page until Ctrl-C, SIGTERM or SIGHUP; ``ready`` is called with its address.

    ``names`` are those that the server goes by beside its own, as behind a proxy.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with ExitStack() as stack:
        stack.enter_context(ending_on_signals())  # uvicorn raises signals again once it has stopped
        listening = stack.enter_context(socket.create_server((host, port), family=family))
        folder = stack.enter_context(  # that nobody else may read, gone at the end
            tempfile.TemporaryDirectory(prefix="symsmooth-serve-", ignore_cleanup_errors=True)
        )
        import uvicorn

        from .controller import Controller
        from .handlers import Handlers

        cores = default_workers()
        readers = Pool(_READERS, memory() // 2, "warm_up", workers)
        runners = Pool(max(cores // (workers or cores), 1), memory() * 3 // 4, "warm_up", workers)
        controller = Controller(Path(folder), readers, runners, max_bytes, workers)
        app = Guard(Handlers(controller).app(), hosts_of(host, names), max_bytes)
        name = f"[{host}]" if ":" in host else host
        # Work ends with its process and pages ask again, so there is little to wait for at the end.
        config = uvicorn.Config(
            app, log_level="critical", timeout_graceful_shutdown=0, proxy_headers=False,
            loop="asyncio", http="h11", ws="none",  # uvloop knows no process groups
        )  # fmt: skip
        server = uvicorn.Server(config)
        hung_up = _stop_when_hung_up(server)
        ready(f"http://{name}:{listening.getsockname()[1]}/")
        server.run(sockets=[listening])
        if hung_up:
            raise EndedBySignal(hung_up[0])


def _stop_when_hung_up(server: Any) -> list[int]:
    """Let SIGHUP stop the server as uvicorn lets SIGTERM; return a list that then holds its number.

    An exception that a handler raises in the loop may get lost.  The handler before is put back with
    those of :func:`ending_on_signals`.
    """
    received: list[int] = []
    number = getattr(signal, "SIGHUP", None)  # Windows has none
    is_main = threading.current_thread() is threading.main_thread()
    if number is not None and is_main and signal.getsignal(number) is not signal.SIG_IGN:

        def stop(number: int, _: object) -> None:
            received.append(number)
            server.should_exit = True

        signal.signal(number, stop)
    return received
