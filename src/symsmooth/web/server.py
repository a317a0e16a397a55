"""The address the page is at: who may ask for what, how much may be sent, and whose files are whose.

Gradio keeps what is uploaded in one folder and gives it to whoever knows its name; here no address
of gradio's that reads files is answered.  Files of a visit have addresses of our own.
"""

from __future__ import annotations

import os
import re
import secrets
import signal
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from http.cookies import SimpleCookie
from importlib.resources import files
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from .visits import Visits

# Before gradio is imported: it would tell its makers, and ask the network for fonts and versions.
QUIET = {
    "GRADIO_ANALYTICS_ENABLED": "False",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_OFFLINE": "1",
    "GRADIO_RUN_HISTORY": "False",
    "GRADIO_SSR_MODE": "False",
}
_ALLOWED = re.compile(
    r"/|/config/?|/theme\.css|/favicon\.ico|/manifest\.json|/(assets|static)/.*|/visit/.*|"
    r"/gradio_api/(info/?|upload|upload_progress|queue/(join|data)|heartbeat/[^/]+|cancel|reset/?|"
    r"startup-events|app_id/?)"
)
_HEADERS = {
    "content-security-policy": "default-src 'self'; img-src 'self' data: blob:; "
    "style-src 'self' 'unsafe-inline'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; "
    "font-src 'self' data:; connect-src 'self'; frame-src 'self'; frame-ancestors 'self'; "
    "form-action 'none'; base-uri 'self'; object-src 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
}
_SPARE = 2**20  # bytes a request may have beyond the file in it

Scope = MutableMapping[str, Any]


class Guard:
    """Answers what is not for this page, or too large, before gradio sees it; gives the cookie."""

    def __init__(self, app: Any, hosts: frozenset[str] | None, most_bytes: int) -> None:
        self.app, self.hosts, self.most_bytes = app, hosts, most_bytes

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        refusal = self._refusal(scope["method"], scope["path"], headers)
        extra = dict(_HEADERS)
        if scope["path"] == "/" and Visits.COOKIE not in _cookies(headers.get("cookie", "")):
            secret = secrets.token_urlsafe(32)
            extra["set-cookie"] = f"{Visits.COOKIE}={secret}; HttpOnly; SameSite=Strict; Path=/"

        async def answer(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                given = [(name.encode(), value.encode()) for name, value in extra.items()]
                message["headers"] = [*message.get("headers", []), *given]
            await send(message)

        if refusal is None:
            await self.app(scope, receive, answer)
        else:
            from starlette.responses import PlainTextResponse

            status, text = refusal
            await PlainTextResponse(text, status)(scope, receive, answer)

    def _refusal(self, method: str, path: str, headers: dict[str, str]) -> tuple[int, str] | None:
        """Return why a request is not answered, or None."""
        host = headers.get("host", "")
        if self.hosts is not None and _name_of(host) not in self.hosts:
            return 421, "This page is for this machine alone."  # another name made to point here
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != host:
            return 403, "Another page may not use this one."
        if not _ALLOWED.fullmatch(path):
            return 404, "There is nothing here."
        if method == "POST" and "content-length" not in headers:
            return 411, "Say how much is sent."
        if int(headers.get("content-length") or 0) > self.most_bytes + _SPARE:
            return 413, "The file exceeds the maximum allowed size."
        return None


def _name_of(host: str) -> str:
    return urlsplit(f"//{host}").hostname or ""


def _cookies(text: str) -> dict[str, str]:
    return {name: morsel.value for name, morsel in SimpleCookie(text).items()}


def make_app(visits: Visits, blocks: Any, look: dict[str, Any], most_bytes: int) -> Any:
    """Return the page and the files of visits as one ASGI application."""
    import gradio
    from fastapi import FastAPI
    from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse

    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    framed = f"<script>{(files(__package__) / 'framed.js').read_text('utf-8')}</script>"

    def of_a_visit(request: Any) -> Any:
        name = request.path_params["name"]
        visit = visits.find(request.path_params["token"], request.cookies)
        path = None if visit is None else visit.files.get(name)
        if path is None or not path.is_file():
            return PlainTextResponse("There is nothing here.", 404)
        no_copy = {"cache-control": "no-store"}
        if name == "view":
            text = path.read_text("utf-8").replace("<script>", framed + "<script>", 1)
            return HTMLResponse(text, headers=no_copy)
        return FileResponse(
            path, filename=path.name, media_type="application/octet-stream", headers=no_copy
        )

    app.add_route("/visit/{token}/{name}", of_a_visit)
    return gradio.mount_gradio_app(
        app, blocks, "/", max_file_size=most_bytes, footer_links=[], run_history=False,
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
    """Give a folder for the files of all visits, gradio's uploads among them; gone at the end."""
    os.environ.update(QUIET)
    with tempfile.TemporaryDirectory(prefix="symsmooth-serve-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        os.environ["GRADIO_TEMP_DIR"] = str(folder / "uploads")
        (folder / "uploads").mkdir()
        (folder / "visits").mkdir()
        yield folder


def serve(
    host: str, port: int, most_bytes: int, workers: int | None, ready: Callable[[str], object]
) -> None:
    """Serve the page until Ctrl-C; ``ready`` is told its address."""
    from ..tiles import default_workers
    from .runs import Runs

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family) as listening, a_folder() as folder:
        import uvicorn

        from .app import make_page
        from .tasks import warm_up

        cores = default_workers()
        runs, visits = Runs(max(cores // (workers or cores), 1)), Visits(folder / "visits")
        try:
            page, look = make_page(visits, runs, workers, most_bytes)
            hosts = (
                frozenset({"127.0.0.1", "localhost", "::1", host}) if is_loopback(host) else None
            )
            app = Guard(make_app(visits, page, look, most_bytes), hosts, most_bytes)
            number = listening.getsockname()[1]
            name = f"[{host}]" if ":" in host else host
            server = uvicorn.Server(
                uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=1)
            )
            ready(f"http://{name}:{number}/")
            threading.Thread(target=warm_up, args=(workers,), daemon=True).start()
            with _ending_on_signals():
                server.run(sockets=[listening])
        finally:
            runs.close()
            visits.close()


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
