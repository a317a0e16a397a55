"""The address the page is at: puts guard, page and workers together, and takes all away at the end."""

from __future__ import annotations

import os
import signal
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from ..app.errors import EndedBySignal, ending_on_signals
from .guard import Guard
from .hosts import hosts_of
from .process_queue import ProcessQueue
from .sessions import Sessions
from .uploads import Limits, Uploads

_READERS = 2  # processes that inspect and draw pictures
_CONNECTIONS = 1000  # at once
_SWEEP = 5.0  # seconds between two searches for what is to be forgotten
_LARGE_BYTES = 8  # times what a picture may unpack to: what inspecting it may take


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Give a folder for the files of all sessions; gone at the end."""
    with tempfile.TemporaryDirectory(prefix="symsmooth-serve-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        for each in ("uploads", "sessions", "ready"):
            (folder / each).mkdir()
        yield folder


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
        folder = stack.enter_context(temporary_folder())
        sessions = Sessions(folder / "sessions")
        stack.callback(sessions.close)
        uploads = Uploads(folder / "uploads", Limits(max_bytes))

        import uvicorn

        from .connections import Connection
        from .controller import Controller
        from .handlers import Handlers

        readers, runners = _make_queues(stack, folder, max_bytes, workers)
        controller = Controller(sessions, uploads, readers, runners, workers)
        app = Guard(Handlers(controller).app(), hosts_of(host, names), max_bytes)
        stack.enter_context(_sweeping(sessions, uploads, readers, runners))
        name = f"[{host}]" if ":" in host else host
        # Work ends with its process and pages ask again, so there is little to wait for at the end;
        # and nobody may say from where they come but by coming from there.
        config = uvicorn.Config(
            app, log_level="critical", timeout_graceful_shutdown=0, proxy_headers=False,
            http=Connection, ws="none", limit_concurrency=_CONNECTIONS,
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


def _make_queues(
    stack: ExitStack, folder: Path, max_bytes: int, workers: int | None
) -> tuple[ProcessQueue, ProcessQueue]:
    """Return the queue for inspecting and drawing pictures, and that for methods; close them at the end."""
    from ..core.parallel import default_workers
    from .controller import UNPACKED

    cores = default_workers()
    reader_memory = min(2**30 + _LARGE_BYTES * UNPACKED * max_bytes, _memory() // 2)
    readers = ProcessQueue(_READERS, reader_memory, "warm_up_reader", folder / "ready")
    stack.callback(readers.close)
    at_once = max(cores // (workers or cores), 1)
    runners = ProcessQueue(at_once, _memory() * 3 // 4, "warm_up_runner", workers)
    stack.callback(runners.close)
    return readers, runners


def _memory() -> int:
    """Return the bytes of memory of this machine, or a guess; `io.limits` would load NumPy for it."""
    with suppress(AttributeError, ValueError, OSError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return 16 * 2**30


@contextmanager
def _sweeping(*forgetful: Sessions | Uploads | ProcessQueue) -> Iterator[None]:
    """Look now and then for what is to be forgotten."""
    ended = threading.Event()

    def sweep() -> None:
        while not ended.wait(_SWEEP):
            for each in forgetful:
                each.sweep()

    threading.Thread(target=sweep, daemon=True).start()
    try:
        yield
    finally:
        ended.set()
