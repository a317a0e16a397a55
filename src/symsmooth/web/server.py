"""The address the page is at: puts guard, page and workers together, and takes all away at the end.

No address of gradio's that reads or takes files is answered: ``guard`` takes them in, and files of a
session have addresses of our own.
"""

from __future__ import annotations

import os
import signal
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib.resources import files
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from .crew import Crew
from .guard import Guard
from .sessions import Sessions
from .uploads import Limits, Uploads

# Before gradio is imported: it would tell its makers, and ask the network for fonts and versions.
QUIET = {
    "GRADIO_ANALYTICS_ENABLED": "False",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_OFFLINE": "1",
    "GRADIO_RUN_HISTORY": "False",
    "GRADIO_SSR_MODE": "False",
}
_READERS = 2  # processes that look at pictures
_SWEEP = 5.0  # seconds between two looks for what is to be forgotten
_LARGE_BYTES = 8  # times what a picture may unpack to: what looking at it may take


def make_app(sessions: Sessions, blocks: Any, look: dict[str, Any], max_bytes: int) -> Any:
    """Return the page and the files of sessions as one ASGI application."""
    import gradio
    from fastapi import FastAPI
    from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse

    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    framed = f"<script>{(files(__package__) / 'framed.js').read_text('utf-8')}</script>"

    def of_a_session(request: Any) -> Any:
        name = request.path_params["name"]
        session = sessions.find(request.path_params["token"], request.cookies)
        path = None if session is None else session.files.get(name)
        if path is None or not path.is_file():
            return PlainTextResponse("There is nothing here.", 404)
        no_copy = {"cache-control": "no-store"}
        if name == "view":
            text = path.read_text("utf-8").replace("<script>", framed + "<script>", 1)
            return HTMLResponse(text, headers=no_copy)
        return FileResponse(
            path, filename=path.name, media_type="application/octet-stream", headers=no_copy
        )

    app.add_route("/session/{token}/{name}", of_a_session)
    return gradio.mount_gradio_app(
        app, blocks, "/", max_file_size=max_bytes, footer_links=[], run_history=False,
        ssr_mode=False, show_error=False, enable_monitoring=False, pwa=False, mcp_server=False, **look,
    )  # fmt: skip


def is_loopback(host: str) -> bool:
    """Whether an address can be reached from this machine alone."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@contextmanager
def a_folder() -> Iterator[Path]:
    """Give a folder for the files of all sessions; gone at the end."""
    os.environ.update(QUIET)
    with tempfile.TemporaryDirectory(prefix="symsmooth-serve-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        os.environ["GRADIO_TEMP_DIR"] = str(folder / "gradio")
        for each in ("gradio", "uploads", "sessions", "ready"):
            (folder / each).mkdir()
        yield folder


def serve(
    host: str, port: int, max_bytes: int, workers: int | None, ready: Callable[[str], object]
) -> None:
    """Serve the page until Ctrl-C or SIGTERM; ``ready`` is told its address."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with ExitStack() as stack:
        stack.enter_context(_ending_on_signals())
        listening = stack.enter_context(socket.create_server((host, port), family=family))
        folder = stack.enter_context(a_folder())
        sessions = Sessions(folder / "sessions")
        stack.callback(sessions.close)
        uploads = Uploads(folder / "uploads", Limits(max_bytes))

        import uvicorn

        from .app import make_page
        from .handlers import Handlers

        readers, runners = _crews(stack, folder, max_bytes, workers)  # they start meanwhile
        handlers = Handlers(sessions, uploads, readers, runners, workers)
        page, look = make_page(handlers, max_bytes)
        hosts = frozenset({"127.0.0.1", "localhost", "::1", host}) if is_loopback(host) else None
        app = Guard(make_app(sessions, page, look, max_bytes), hosts, uploads, sessions)
        stack.enter_context(_sweeping(sessions, uploads))
        name = f"[{host}]" if ":" in host else host
        # Work ends with its process and pages ask again, so there is little to wait for at the end;
        # and nobody may say from where they come but by coming from there.
        config = uvicorn.Config(
            app, log_level="critical", timeout_graceful_shutdown=0, proxy_headers=False
        )
        ready(f"http://{name}:{listening.getsockname()[1]}/")
        uvicorn.Server(config).run(sockets=[listening])


def _crews(
    stack: ExitStack, folder: Path, max_bytes: int, workers: int | None
) -> tuple[Crew, Crew]:
    """Start the processes that look at pictures, and those that run methods; end them at the end."""
    from ..core.parallel import default_workers
    from ..io.limits import memory
    from . import tasks

    cores = default_workers()
    looking = min(2**30 + _LARGE_BYTES * tasks.UNPACKED * max_bytes, memory() // 2)
    readers = Crew(_READERS, looking, tasks.get_ready_to_look, folder / "ready")
    stack.callback(readers.close)
    at_once = max(cores // (workers or cores), 1)
    runners = Crew(at_once, memory() * 3 // 4, tasks.get_ready_to_run, workers)
    stack.callback(runners.close)
    return readers, runners


@contextmanager
def _sweeping(*forgetful: Sessions | Uploads) -> Iterator[None]:
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


@contextmanager
def _ending_on_signals() -> Iterator[None]:
    """Make SIGTERM end things as Ctrl-C does: uvicorn raises signals again once it has stopped."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
