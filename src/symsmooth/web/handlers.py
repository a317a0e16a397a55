"""Requests in, answers out: every address of the page."""

from __future__ import annotations

import asyncio
import json
import logging
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from .. import __version__
from . import events
from .archive import pack
from .catalogue import about
from .controller import Controller
from .errors import RefusedError, SessionError
from .guard import UPLOAD
from .noise_files import KEPT
from .pictures import Picture
from .sessions import ENDED, Session, Sessions, safe_name
from .settings import Settings, whole_numbers
from .views import numbers_in, strengths_in, view_request

_KINDS = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_ASSETS = frozenset(
    {"page.css", "icon.svg"}
    | {
        f"{name}.js"
        for name in ("page", "api", "viewer", "controls", "details", "slices", "charts", "dom")
    }
)
_PRIVATE = {"cache-control": "no-store"}
_LOG = logging.getLogger(__name__)

Handler = Callable[[Request], Awaitable[Response]]


class Handlers:
    """What is answered at each address."""

    def __init__(self, controller: Controller) -> None:
        self.controller, self.sessions = controller, controller.sessions

    def app(self) -> Starlette:
        """Return all addresses as one ASGI application."""
        visit = "/api/visits/{token}"
        one = visit + "/{picture}"
        routes = [
            ("/", self.page, "GET"),
            ("/visit/{token}", self.page, "GET"),
            ("/assets/{name}", self.asset, "GET"),
            ("/favicon.ico", self.icon, "GET"),
            ("/api/about", self.about, "GET"),
            (UPLOAD, self.upload, "POST"),
            ("/api/examples", self.example, "POST"),
            (visit, self.end, "DELETE"),
            (f"{visit}/state", self.state, "GET"),
            (f"{visit}/events", self.events, "GET"),
            (f"{visit}/alive", self.alive, "POST"),
            (f"{visit}/denoise", self.denoise, "POST"),
            (f"{visit}/compare", self.compare, "POST"),
            (f"{visit}/join", self.join, "POST"),
            (f"{visit}/cancel", self.cancel, "POST"),
            (f"{visit}/results.zip", self.all_results, "GET"),
            (one, self.remove, "DELETE"),
            (f"{one}/split", self.split, "POST"),
            (f"{one}/view", self.view, "GET"),
            (f"{one}/result", self.result, "GET"),
            (f"{one}/noise", self.noise, "GET"),
            (f"{one}/report", self.report, "GET"),
        ]
        return Starlette(
            routes=[
                Route(path, _with_refusals(handler), methods=[verb])
                for path, handler, verb in routes
            ]
        )

    # --- the page -------------------------------------------------------------------------

    async def page(self, request: Request) -> Response:
        """Return the page; the processes get ready meanwhile."""
        self.controller.wake()
        return _asset("page.html", {"cache-control": "no-cache"})

    async def asset(self, request: Request) -> Response:
        """Return a part of the page."""
        name = request.path_params["name"]
        if name not in _ASSETS:
            raise RefusedError(404, "There is nothing here.")
        return _asset(name, {"cache-control": "no-cache"})

    async def icon(self, request: Request) -> Response:
        """Return the icon to those who ask for it by its old name."""
        return _asset("icon.svg", {})

    async def about(self, request: Request) -> Response:
        """Return what can be chosen."""
        limits = self.sessions.limits, self.controller.uploads.limits
        return JSONResponse(about(limits[1].max_bytes, limits[0].pictures, __version__))

    # --- pictures -------------------------------------------------------------------------

    async def upload(self, request: Request) -> Response:
        """Take a file in, as the whole body of a request, and have it inspected."""
        owner, address = self._owner(request), _address(request)
        name = unquote(request.headers.get("x-file-name", ""))[:300] or "picture"
        session, picture = self._receiver(request)
        await self.controller.check_room(session)
        size = int(request.headers["content-length"])
        uploads = self.controller.uploads
        token = await uploads.receive(owner, address, name, size, _chunks(request))
        try:
            if session is not None and picture is not None:
                self._take_reference(session, picture, owner, token)
                return _accepted(session, picture)
            if session is not None and "x-noise" in request.headers:
                return await self._take_noise(session, owner, token)
            with self._visit(session, owner, address) as session:
                taken = self.controller.make_picture(session, name)
            path = uploads.take(owner, token, lambda name: taken.folder / safe_name(name))
        finally:
            uploads.drop(token)  # if it could not be taken
        self.controller.inspect_file(session, taken, path)
        return _accepted(session, taken)

    def _take_reference(self, session: Session, picture: Picture, owner: str, token: str) -> None:
        """Take a file as what a picture was without noise."""
        if picture.id not in session.pictures:
            raise SessionError("This picture is no longer here.")
        folder = session.new_folder("reference")
        path = self.controller.uploads.take(owner, token, lambda name: folder / safe_name(name))
        self.controller.inspect_reference(session, picture, path)

    async def _take_noise(self, session: Session, owner: str, token: str) -> Response:
        """Take a file as a noise model."""
        folder = session.new_folder("noise")
        try:
            uploads = self.controller.uploads
            path = uploads.take(owner, token, lambda name: folder / safe_name(name))
            opened = await self.controller.open_noise(session, path)
        except BaseException:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
            raise
        return JSONResponse({"visit": session.token, "model": opened.id})

    @contextmanager
    def _visit(self, session: Session | None, owner: str, address: str) -> Iterator[Session]:
        """Give a visit, a new one if there is none; that ends if nothing can be done in it."""
        if session is not None:
            yield session
            return
        begun = self.sessions.begin(owner, address)
        try:
            yield begun
        except BaseException:
            self.sessions.end(begun)
            raise

    def _receiver(self, request: Request) -> tuple[Session | None, Picture | None]:
        """Return the visit that a file is for, and the picture it is the clean one of, if any."""
        token, id = request.headers.get("x-visit", ""), request.headers.get("x-clean-of", "")
        if not token:
            return None, None
        session = self.sessions.find(token, request.cookies)
        if session is None or (id and id not in session.pictures):
            raise RefusedError(404, ENDED)
        picture = session.pictures[id] if id else None
        if picture is not None:
            self.controller.check_ready(picture)
        return session, picture

    async def example(self, request: Request) -> Response:
        """Take an example as if it had been dropped."""
        given = await _json(request)
        owner, token = self._owner(request), given.get("visit")
        session = self.sessions.find(str(token), request.cookies) if token else None
        await self.controller.check_room(session)
        with self._visit(session, owner, _address(request)) as session:
            return _accepted(session, self.controller.example(session, str(given.get("example"))))

    async def remove(self, request: Request) -> Response:
        """Forget a picture."""
        session, picture = self._picture(request)
        self.controller.remove(session, picture)
        return JSONResponse({})

    async def end(self, request: Request) -> Response:
        """End a visit: all its files are deleted."""
        session = self._session(request)
        await asyncio.to_thread(self.sessions.end, session)
        return JSONResponse({})

    async def join(self, request: Request) -> Response:
        """Make one series of pictures."""
        session, given = self._session(request), await _json(request)
        pictures = _chosen(session, given)
        await self.controller.check_room(session)
        return _accepted(session, self.controller.join(session, pictures))

    async def split(self, request: Request) -> Response:
        """Take a series apart."""
        session, picture = self._picture(request)
        self.controller.split(session, picture)
        return JSONResponse({})

    # --- state and events -----------------------------------------------------------------

    async def state(self, request: Request) -> Response:
        """Return all that the page shows."""
        self.controller.wake()
        state = events.state_of(self.controller, self._session(request))
        return JSONResponse(state, headers=_PRIVATE)

    async def events(self, request: Request) -> Response:
        """Tell what happens for as long as the tab is open."""
        session = self._session(request, asks=False)
        if session.tabs >= self.sessions.limits.tabs:
            raise RefusedError(429, "This visit is open in too many tabs; close some of them.")
        stream = events.stream(self.controller, session)
        return StreamingResponse(stream, media_type="text/event-stream", headers=_PRIVATE)

    async def alive(self, request: Request) -> Response:
        """Hear that a tab in the background is still there."""
        self._session(request, asks=False)
        return JSONResponse({})

    # --- runs -----------------------------------------------------------------------------

    async def denoise(self, request: Request) -> Response:
        """Run a method on one picture or several."""
        session, given = self._session(request), await _json(request)
        settings = Settings.of(given.get("settings"))
        at = whole_numbers(given.get("at") or [])
        visible = given.get("visible")
        box = None if visible is None else whole_numbers(visible, 4)
        pictures = _chosen(session, given)
        await self.controller.check_room(session)
        for picture in pictures:
            self.controller.denoise(session, picture, settings, at, box)
        return JSONResponse({})

    async def compare(self, request: Request) -> Response:
        """Put methods side by side."""
        session, given = self._session(request), await _json(request)
        picture = session.pictures.get(str(given.get("picture")))
        if picture is None:
            raise SessionError("Drop a picture first, or take an example.")
        settings, names = Settings.of(given.get("settings")), given.get("methods")
        if not isinstance(names, list):
            raise SessionError("Choose methods.")
        at = whole_numbers(given.get("at") or [])
        await self.controller.check_room(session)
        self.controller.compare(session, picture, list(map(str, names)), settings, at)
        return JSONResponse({})

    async def cancel(self, request: Request) -> Response:
        """Stop what runs."""
        self.controller.cancel(self._session(request))
        return JSONResponse({})

    # --- what is shown and taken home -----------------------------------------------------

    async def view(self, request: Request) -> Response:
        """Return a slice, or a part of one, as a PNG."""
        session, picture = self._picture(request)
        wanted = view_request(self.controller, picture, request.query_params)
        drawn = await self.controller.draw(session, "draw", wanted)
        # Never changes: the numbers of picture and result are in the address.
        kept = {"cache-control": "private, max-age=3600"}
        return Response(drawn, media_type="image/png", headers=kept)

    async def result(self, request: Request) -> Response:
        """Return the denoised file, or less of it (``blend``); of a raw file also what was developed.

        Several files, those of a series, come as one archive.
        """
        session, picture = self._picture(request)
        query = request.query_params
        files = await self.controller.results(
            session, picture, strengths_in(query.get("blend", ""))
        )
        if not files or picture.info is None:
            raise RefusedError(404, "There is nothing here.")
        if picture.info["mosaic"] and "developed" in query:
            files = [await self.controller.draw(session, "develop", files[0])]
        if len(files) == 1:
            return _download(files[0])
        return _archive([("", path) for path in files], f"{picture.name}-denoised.zip")

    async def noise(self, request: Request) -> Response:
        """Return the noise model of a result."""
        _, picture = self._picture(request)
        path = None if picture.result is None else picture.result.folder / KEPT
        if path is None or not path.is_file():
            raise RefusedError(404, "There is nothing here.")
        return _download(path, f"{Path(picture.name).stem}-noise.json")

    async def report(self, request: Request) -> Response:
        """Return what is shown as one page that needs no server."""
        session, picture = self._picture(request)
        result = picture.result
        if result is None or picture.info is None:
            raise RefusedError(404, "There is nothing here.")
        at = result.at or numbers_in(request.query_params.get("at", ""))
        given = {"name": picture.name, "info": picture.info, "details": result.details, "at": at}
        folders = picture.folder, result.folder, picture.reference
        path = await self.controller.draw(session, "report", given, *folders, result.kind)
        return _download(path)

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
            raise RefusedError(404, "There is nothing here.")
        return _archive(found, "denoised.zip")

    # --- whose they are -------------------------------------------------------------------

    def _owner(self, request: Request) -> str:
        try:
            return Sessions.owner_in(request.cookies)
        except SessionError as error:
            raise RefusedError(403, str(error)) from error

    def _session(self, request: Request, *, asks: bool = True) -> Session:
        token = request.path_params["token"]
        session = self.sessions.find(token, request.cookies, asks=asks)
        if session is None:
            raise RefusedError(404, "There is nothing here.")
        return session

    def _picture(self, request: Request) -> tuple[Session, Picture]:
        session = self._session(request)
        picture = session.pictures.get(request.path_params["picture"])
        if picture is None:
            raise RefusedError(404, "There is nothing here.")
        return session, picture


def _with_refusals(handler: Handler) -> Handler:
    """Return a handler whose refusals are answers."""

    async def answer(request: Request) -> Response:
        try:
            return await handler(request)
        except RefusedError as refused:
            close = {"connection": "close"} if refused.status in (408, 413) else {}
            return JSONResponse({"error": refused.text}, refused.status, close)
        except SessionError as error:
            return JSONResponse({"error": str(error)}, 422)
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
        raise SessionError("Drop a picture first, or take an example.")
    return [session.pictures[name] for name in dict.fromkeys(map(str, names))]


def _accepted(session: Session, picture: Picture) -> Response:
    return JSONResponse({"visit": session.token, "picture": picture.id})


def _address(request: Request) -> str:
    return request.client.host if request.client else ""


async def _chunks(request: Request) -> AsyncIterator[bytes]:
    """Yield what is sent."""
    try:
        async for chunk in request.stream():
            yield chunk
    except ClientDisconnect as error:
        raise RefusedError(400, "The upload was interrupted; send the file again.") from error


async def _json(request: Request) -> dict[str, Any]:
    """Return what a request says; its length was checked."""
    try:
        given = json.loads(await request.body())
    except (ValueError, RecursionError) as error:
        raise RefusedError(400, "This request is malformed; reload the page.") from error
    if not isinstance(given, dict):
        raise RefusedError(400, "This request is malformed; reload the page.")
    return given


@cache
def _content(name: str) -> bytes:
    return (files(__package__) / "static" / name).read_bytes()


def _asset(name: str, headers: dict[str, str]) -> Response:
    return Response(_content(name), media_type=_KINDS[name.rpartition(".")[2]], headers=headers)


def _archive(files: Sequence[tuple[str, Path]], name: str) -> Response:
    headers = {**_PRIVATE, "content-disposition": f"attachment; filename*=utf-8''{quote(name)}"}
    return StreamingResponse(pack(files), media_type="application/zip", headers=headers)


def _download(path: Path, name: str = "") -> Response:
    return FileResponse(
        path, filename=name or path.name, media_type="application/octet-stream", headers=_PRIVATE
    )
