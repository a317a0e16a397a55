"""Requests in, answers out: every address of the page, and what is sent there."""

from __future__ import annotations

import asyncio
import json
import logging
import shutil
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import cache
from importlib.resources import files
from io import RawIOBase
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote
from zipfile import ZIP_STORED, ZipFile, ZipInfo

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from .. import __version__
from .controller import Controller
from .guard import COOKIE, UPLOAD, owner_in
from .sessions import ENDED, MAX_PICTURES, NOISE, VIEW, Picture, Session, safe_name
from .settings import PageError, Settings, about, nothing_here, whole_numbers

ASSETS = {path.name for path in (files(__package__) / "static").iterdir()} - {"page.html"}
PRIVATE = {"cache-control": "no-store"}
_KINDS = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_TICK = 0.1  # seconds between two looks at a session
_PIECE = 2**18  # bytes of an archive that are sent at a time

_NOISE_RANGE = 3.0  # sigmas of what was removed from grey to white
_LOG = logging.getLogger(__name__)

Handler = Callable[[Request], Awaitable[Response]]


class Handlers:
    """What is answered at each address."""

    def __init__(self, controller: Controller) -> None:
        self.controller = controller

    def app(self) -> Starlette:
        """Return all addresses as one ASGI application."""
        session = "/api/sessions/{token}"
        one = session + "/{picture}"
        routes = [
            ("/", self.page, "GET"),
            ("/session/{token}", self.page, "GET"),
            ("/assets/{name}", self.asset, "GET"),
            ("/api/about", self.about, "GET"),
            (UPLOAD, self.upload, "POST"),
            ("/api/examples", self.example, "POST"),
            (session, self._doing(self.controller.end), "DELETE"),
            (f"{session}/state", self.state, "GET"),
            (f"{session}/events", self.events, "GET"),
            (f"{session}/denoise", self.denoise, "POST"),
            (f"{session}/compare", self.compare, "POST"),
            (f"{session}/join", self.join, "POST"),
            (f"{session}/cancel", self._doing(self.controller.cancel), "POST"),
            (f"{session}/results.zip", self.all_results, "GET"),
            (one, self._doing(self.controller.remove), "DELETE"),
            (f"{one}/split", self._doing(self.controller.split), "POST"),
            (f"{one}/view", self.view, "GET"),
            (f"{one}/result", self.result, "GET"),
            (f"{one}/noise", self.noise, "GET"),
            (f"{one}/report", self.report, "GET"),
        ]

        @asynccontextmanager
        async def lifespan(_: Starlette) -> AsyncIterator[None]:
            yield
            await self.controller.close()

        return Starlette(
            lifespan=lifespan,
            routes=[
                Route(path, _answering(handler), methods=[verb]) for path, handler, verb in routes
            ],
        )

    def _doing(self, act: Callable[..., None]) -> Handler:
        """Return what does something to the session, or the picture, that an address names."""

        async def handle(request: Request) -> Response:
            is_picture = "picture" in request.path_params
            act(*(self._picture(request) if is_picture else (self._session(request),)))
            return JSONResponse({})

        return handle

    # --- the page -------------------------------------------------------------------------

    async def page(self, request: Request) -> Response:
        """Return the page; the processes get ready meanwhile."""
        self.controller.wake()
        return asset("page.html")

    async def asset(self, request: Request) -> Response:
        """Return a part of the page."""
        name = request.path_params["name"]
        if name not in ASSETS:
            raise nothing_here()
        return asset(name)

    async def about(self, request: Request) -> Response:
        """Return what can be chosen."""
        return JSONResponse(about(self.controller.max_bytes, MAX_PICTURES, __version__))

    # --- pictures -------------------------------------------------------------------------

    async def upload(self, request: Request) -> Response:
        """Take a file in, as the whole body of a request, and have it inspected."""
        name = unquote(request.headers.get("x-file-name", ""))[:300] or "picture"
        token, id = request.headers.get("x-session", ""), request.headers.get("x-clean-of", "")
        with self._session_for(token, request) as session:
            if id and id not in session.pictures:
                raise PageError(ENDED, 404)
            kind = "reference" if id else "noise" if "x-noise" in request.headers else "picture"
            if id:
                session.pictures[id].ready()
            elif kind == "picture":
                session.check_count(1)
            path = session.new_folder(kind) / safe_name(name)
            size = int(request.headers["content-length"])
            try:
                await self.controller.receive(path, size, _chunks(request))
                return await self._take(session, kind, path, id)
            except BaseException:
                shutil.rmtree(path.parent, ignore_errors=True)
                raise

    async def _take(self, session: Session, kind: str, path: Path, id: str) -> Response:
        """Take a file that has arrived for what it is."""
        if not session.is_open:
            raise PageError(ENDED)
        if kind == "noise":
            model = await self.controller.add_noise(session, path)
            return JSONResponse({"session": session.token, "model": model})
        if kind == "picture":
            return _accepted(session, self.controller.add(session, path))
        picture = session.pictures.get(id)
        if picture is None:
            raise PageError("This picture is no longer here.")
        self.controller.add_reference(session, picture, path)
        return _accepted(session, picture)

    @contextmanager
    def _session_for(self, token: object, request: Request) -> Iterator[Session]:
        """Give a session, a new one if none is named; that ends if nothing can be done in it."""
        if token:
            session = self.controller.find(str(token), request.cookies.get(COOKIE, ""))
            if session is None:
                raise PageError(ENDED, 404)
            yield session
            return
        begun = self.controller.begin(owner_in(request.cookies))
        try:
            yield begun
        except BaseException:
            self.controller.end(begun)
            raise

    async def example(self, request: Request) -> Response:
        """Take an example as if it had been dropped."""
        given = await _json(request)
        with self._session_for(given.get("session"), request) as session:
            return _accepted(session, self.controller.example(session, str(given.get("example"))))

    async def join(self, request: Request) -> Response:
        """Make one series of pictures."""
        session, given = self._session(request), await _json(request)
        return _accepted(session, self.controller.join(session, _chosen(session, given)))

    # --- state and runs -------------------------------------------------------------------

    async def state(self, request: Request) -> Response:
        """Return all that the page shows; for a tab in the background it is a sign of life."""
        return JSONResponse(self._session(request).state(), headers=PRIVATE)

    async def events(self, request: Request) -> Response:
        """Tell what happens for as long as the tab is open."""
        stream = events(self._session(request))
        return StreamingResponse(stream, media_type="text/event-stream", headers=PRIVATE)

    async def denoise(self, request: Request) -> Response:
        """Run a method on one picture or several."""
        session, given = self._session(request), await _json(request)
        settings, at = Settings.of(given.get("settings")), whole_numbers(given.get("at") or [])
        visible = given.get("visible")
        box = None if visible is None else whole_numbers(visible, 4)
        for picture in _chosen(session, given):
            self.controller.denoise(session, picture, settings, at, box)
        return JSONResponse({})

    async def compare(self, request: Request) -> Response:
        """Put methods side by side."""
        session, given = self._session(request), await _json(request)
        (picture,) = _chosen(session, {"pictures": [given.get("picture")]})
        settings, names = Settings.of(given.get("settings")), given.get("methods")
        if not isinstance(names, list):
            raise PageError("Choose methods.")
        at = whole_numbers(given.get("at") or [])
        self.controller.compare(session, picture, list(map(str, names)), settings, at)
        return JSONResponse({})

    # --- what is shown and taken home -----------------------------------------------------

    async def view(self, request: Request) -> Response:
        """Return a slice, or a part of one, as a PNG."""
        session, picture = self._picture(request)
        drawn = await self.controller.draw(
            session, "draw", view_request(picture, request.query_params)
        )
        # Never changes: the numbers of picture and result are in the address.
        kept = {"cache-control": "private, max-age=3600"}
        return Response(drawn, media_type="image/png", headers=kept)

    async def result(self, request: Request) -> Response:
        """Return the denoised file, or less of it (``blend``); of a raw file also what was developed.

        Several files, those of a series, come as one archive.
        """
        session, picture = self._picture(request)
        query = request.query_params
        shares = strengths_in(query.get("blend", ""))
        files = await self.controller.results(session, picture, shares)
        if not files or picture.info is None:
            raise nothing_here()
        if picture.info["mosaic"] and "developed" in query:
            files = [await self.controller.draw(session, "develop", files[0])]
        if len(files) == 1:
            return download(files[0])
        return archive([("", path) for path in files], f"{picture.name}-denoised.zip")

    async def noise(self, request: Request) -> Response:
        """Return the noise model of a result."""
        _, picture = self._picture(request)
        path = None if picture.result is None else picture.result.folder / NOISE
        if path is None or not path.is_file():
            raise nothing_here()
        return download(path, f"{Path(picture.name).stem}-noise.json")

    async def report(self, request: Request) -> Response:
        """Return what is shown as one page that needs no server."""
        session, picture = self._picture(request)
        result = picture.result
        if result is None or picture.info is None:
            raise nothing_here()
        at = result.at or numbers_in(request.query_params.get("at", ""))
        given = {"name": picture.name, "info": picture.info, "details": result.details, "at": at}
        folders = picture.folder, result.folder, picture.reference
        path = await self.controller.draw(session, "report", given, *folders, result.kind)
        return download(path)

    async def all_results(self, request: Request) -> Response:
        """Return all denoised files as one archive; the query may say how much of each: "p1=70.40"."""
        session = self._session(request)
        found: list[tuple[str, Path]] = []
        for id, picture in [*session.pictures.items()]:
            shares = strengths_in(request.query_params.get(id, ""))
            files = await self.controller.results(session, picture, shares)
            folder = picture.name if len(files) > 1 else ""
            found += [(folder, path) for path in files]
        if not found:
            raise nothing_here()
        return archive(found, "denoised.zip")

    # --- whose they are -------------------------------------------------------------------

    def _session(self, request: Request) -> Session:
        owner = request.cookies.get(COOKIE, "")
        session = self.controller.find(request.path_params["token"], owner)
        if session is None:
            raise nothing_here()
        return session

    def _picture(self, request: Request) -> tuple[Session, Picture]:
        session = self._session(request)
        picture = session.pictures.get(request.path_params["picture"])
        if picture is None:
            raise nothing_here()
        return session, picture


def _answering(handler: Handler) -> Handler:
    """Return a handler whose refusals are answers."""

    async def answer(request: Request) -> Response:
        try:
            return await handler(request)
        except PageError as error:
            return JSONResponse({"error": str(error)}, error.status)
        except ClientDisconnect:
            return Response(status_code=400)
        except Exception:
            _LOG.exception("a request failed")
            return JSONResponse({"error": "Something went wrong on the server; try again."}, 500)

    return answer


def _chosen(session: Session, given: dict[str, Any]) -> list[Picture]:
    """Return the pictures that a request names, each once, however often it is named."""
    names = given.get("pictures")
    if not isinstance(names, list) or not names or set(map(str, names)) - set(session.pictures):
        raise PageError("Drop a picture first, or take an example.")
    return [session.pictures[name] for name in dict.fromkeys(map(str, names))]


def _accepted(session: Session, picture: Picture) -> Response:
    return JSONResponse({"session": session.token, "picture": picture.id})


async def _chunks(request: Request) -> AsyncIterator[bytes]:
    """Yield what is sent."""
    try:
        async for chunk in request.stream():
            yield chunk
    except ClientDisconnect as error:
        raise PageError("The upload was interrupted; send the file again.", 400) from error


async def _json(request: Request) -> dict[str, Any]:
    """Return what a request says; its length was checked."""
    try:
        given = json.loads(await request.body())
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        raise PageError("This request is malformed; reload the page.", 400)
    return given


# --- what is sent -----------------------------------------------------------------------------


@cache
def _content(name: str) -> bytes:
    return (files(__package__) / "static" / name).read_bytes()


def asset(name: str) -> Response:
    """Return a part of the page."""
    kind = _KINDS[name.rpartition(".")[2]]
    return Response(_content(name), media_type=kind, headers={"cache-control": "no-cache"})


async def events(session: Session) -> AsyncIterator[str]:
    """Yield what happens as server-sent events: the state when that changes, progress while something runs.

    Until the tab is closed or the session ends.
    """
    version, sent = -1, ""
    while session.is_open:
        session.last_sign = time.monotonic()
        if session.version != version:
            version, sent = session.version, ""
            yield _event("state", json.dumps(session.state()))
        elif (progress := json.dumps(session.progress())) != sent:
            sent = progress
            yield _event("progress", progress)
        await asyncio.sleep(_TICK)
    yield _event("gone", "{}")


def _event(kind: str, data: str) -> str:
    return f"event: {kind}\ndata: {data}\n\n"


def view_request(picture: Picture, query: Mapping[str, str]) -> dict[str, Any]:
    """Return what is to be drawn, or refuse what there is not.

    The query has ``what`` (noisy, clean, result, removed), ``of`` (the number of the run), ``panel``
    (which of its results), ``at`` (the slice, "3.0"), ``channel``, ``box`` ("x.y.width.height") and
    ``blend`` (strength of the result and of its colour, in percent: "70.40").
    """
    info = picture.info
    if info is None:
        raise nothing_here()
    what = query.get("what", "noisy")
    at = numbers_in(query.get("at", ""))
    box = numbers_in(query.get("box", "")) or None
    channel = next(iter(numbers_in(query.get("channel", ""))), None)
    low, high = info["ranges"].get("all" if channel is None else str(channel), (0.0, 1.0))
    tints = info["tints"] if channel is None else []
    limits = [info["ranges"].get(str(n), (low, high)) for n in range(len(tints))]
    first, second, blend = picture.folder / VIEW, None, None
    if what == "clean":
        if picture.reference is None:
            raise nothing_here()
        first = picture.reference / VIEW
    elif what in ("result", "removed"):
        folder = picture.folder_of(_number(query.get("of", "")))
        if folder is None:
            raise nothing_here()
        result = folder / f"result-{_number(query.get('panel', '0'))}.npy"
        shares = strengths_in(query.get("blend", ""))
        blend = None if shares is None else (first, *shares)
        first, second = (result, None) if what == "result" else (first, result)
        if what == "removed":
            span = _NOISE_RANGE * (_level(picture) or 0.02 * info["span"]) or 1.0
            low, high = -span, span
            limits = [(low, high)] * len(tints)
    elif what != "noisy":
        raise nothing_here()
    return {
        "first": first, "second": second, "at": at, "box": box,
        "channel": channel, "channels": info["channels"], "low": low, "high": high,
        "tints": tints, "limits": limits, "blend": blend,
    }  # fmt: skip


def _level(picture: Picture) -> float:
    """Return the level of the noise as it is shown: of a mosaic, in what was developed from it."""
    assert picture.info is not None
    if picture.info["mosaic"] and picture.result is not None:
        return float(picture.result.details["panels"][0]["removed"])
    return float(picture.info["noise"]["level"])


def strengths_in(text: str) -> tuple[float, float] | None:
    """Return the shares of "70.40", of brightness and of colour; None if all of the result is wanted."""
    if not text:
        return None
    percent = numbers_in(text)
    if len(percent) != 2 or max(percent) > 100:
        raise nothing_here()
    return percent[0] / 100, percent[1] / 100


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise nothing_here()
    return int(text)


def numbers_in(text: str) -> tuple[int, ...]:
    """Return the whole numbers of "3.0.12", or refuse what is none."""
    try:
        return whole_numbers([_number(part) for part in text.split(".") if text])
    except PageError as error:
        raise nothing_here() from error


def download(path: Path, name: str = "") -> Response:
    """Return a file to be taken home."""
    kind = "application/octet-stream"
    return FileResponse(path, filename=name or path.name, media_type=kind, headers=PRIVATE)


def archive(paths: Sequence[tuple[str, Path]], name: str) -> Response:
    """Return files as one archive, packed while it is sent: it takes no room on disk or in memory."""
    headers = {**PRIVATE, "content-disposition": f"attachment; filename*=utf-8''{quote(name)}"}
    return StreamingResponse(pack(paths), media_type="application/zip", headers=headers)


def pack(paths: Sequence[tuple[str, Path]]) -> Iterator[bytes]:
    """Yield an archive of files, each in its folder ("" is none) and under a name of its own, by pieces."""
    names: set[str] = set()
    written = _Written()
    with ZipFile(written, "w", ZIP_STORED) as packed:
        for folder, path in paths:
            within = f"{folder}/" if folder else ""
            name, number = f"{within}{path.name}", 1
            while name in names:
                number += 1
                name = f"{within}{path.stem}-{number}{path.suffix}"
            names.add(name)
            about = ZipInfo.from_file(path, name)
            with open(path, "rb") as source, packed.open(about, "w") as target:
                while piece := source.read(_PIECE):
                    target.write(piece)
                    yield written.take()
    yield written.take()


class _Written(RawIOBase):
    """What was written and not taken yet; nobody goes back in it."""

    def __init__(self) -> None:
        self._held = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._held += data
        return len(data)

    def take(self) -> bytes:
        """Return what was written, and forget it."""
        taken = bytes(self._held)
        self._held.clear()
        return taken
