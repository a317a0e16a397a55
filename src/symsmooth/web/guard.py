"""The guard in front of the page: who may ask for what, how much may be sent, which files are meant.

Knows nothing of what the page is made with but its addresses.  What is not for this page is answered
here; files are taken in here (``uploads``) and open tabs are noted here (``sessions``).
"""

from __future__ import annotations

import asyncio
import json
import re
import secrets
import time
from collections.abc import MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any

from .sessions import SessionError, Sessions
from .uploads import SPARE, RefusedError, Uploads, told_when_here

_API = "/gradio_api/"
_ALLOWED = re.compile(
    r"/|/config/?|/theme\.css|/favicon\.ico|/manifest\.json|/(assets|static)/.*|/session/.*|"
    rf"{_API}(info/?|upload|upload_progress|queue/(join|data)|heartbeat/[^/]+|cancel|reset/?|"
    r"startup-events|app_id/?)"
)
_EVENT = f"{_API}queue/join"
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(:[0-9]{1,5})?", re.ASCII | re.IGNORECASE)
_ONCE = ("host", "origin", "content-length", "content-type", "cookie")
# What the page may know of a request: what a proxy would say of another host is not believed.
_PASSED = frozenset(
    {"host", "origin", "cookie", "content-type", "content-length", "accept", "accept-language",
     "accept-encoding", "user-agent", "referer", "range", "if-none-match", "if-modified-since",
     "cache-control"}
)  # fmt: skip
_HEADERS = {
    "content-security-policy": "default-src 'self'; img-src 'self' data: blob:; "
    "style-src 'self' 'unsafe-inline'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; "
    "font-src 'self' data:; connect-src 'self'; frame-src 'self'; frame-ancestors 'self'; "
    "form-action 'none'; base-uri 'self'; object-src 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
}
_MAX_REQUEST = 2**18  # bytes of a request that brings no file
_NO_EVENT = "This is no event of this page."
_COMING = 1.0  # seconds in which a page says that it is open, if its first event came before that
_DEEPEST = 20  # lists and objects within each other that an event may have

Scope = MutableMapping[str, Any]


class Guard:
    """Answers what is not for this page before the page sees it; gives the cookie; takes files in.

    Parameters
    ----------
    app : ASGI application
    hosts : frozenset of str, or None
        The names this server goes by; None for any.
    uploads, sessions
        Where files and open tabs are noted.
    """

    def __init__(
        self, app: Any, hosts: frozenset[str] | None, uploads: Uploads, sessions: Sessions
    ) -> None:
        self.app, self.hosts, self.uploads, self.sessions = app, hosts, uploads, sessions

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        """Serve one request."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] == "http":
            await self._answer(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        # nothing else is answered

    async def _answer(self, scope: Scope, receive: Any, send: Any) -> None:
        extra = dict(_HEADERS)

        async def answer(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                given = [(name.encode(), value.encode()) for name, value in extra.items()]
                message["headers"] = [*message.get("headers", []), *given]
            await send(message)

        from starlette.responses import JSONResponse, PlainTextResponse

        try:
            headers = self._check(scope)
            cookies = _cookies(headers.get("cookie", ""))
            if scope["path"] == "/" and Sessions.COOKIE not in cookies:
                secret = secrets.token_urlsafe(32)
                extra["set-cookie"] = (
                    f"{Sessions.COOKIE}={secret}; HttpOnly; SameSite=Strict; Path=/"
                )
            await self._pass_on(scope, headers, cookies, receive, answer)
        except RefusedError as refused:
            close = {"connection": "close"} if refused.status in (408, 413) else {}
            response: Any = PlainTextResponse(refused.text, refused.status, close)
            if scope["path"] == _EVENT:  # the page shows what it is told in this way
                response = JSONResponse({"detail": refused.text}, refused.status, close)
            await response(scope, receive, answer)

    def _check(self, scope: Scope) -> dict[str, str]:
        """Return the headers of a request that is for this page, or say why it is not."""
        headers: dict[str, str] = {}
        for raw_name, raw_value in scope["headers"]:
            name = raw_name.decode("latin-1").lower()
            if name in headers and name in _ONCE:
                raise RefusedError(400, f"This request has two headers named {name}.")
            headers[name] = raw_value.decode("latin-1")
        host = headers.get("host", "").lower()
        found = _HOST.fullmatch(host)
        if found is None:
            raise RefusedError(400, "This request names no host, or none there can be.")
        if self.hosts is not None and found[1].strip("[]") not in self.hosts:
            # another name made to point here
            raise RefusedError(421, "This page is for this machine alone.")
        origin = headers.get("origin")
        if origin is not None:
            scheme, _, theirs = origin.lower().partition("://")
            if origin != "null" and not (_HOST.fullmatch(theirs) and scheme.isalpha()):
                raise RefusedError(400, "This request comes from a page that cannot be.")
            if theirs != host or scheme not in ("http", "https"):
                raise RefusedError(403, "Another page may not use this one.")
        if not _ALLOWED.fullmatch(scope["path"]):
            raise RefusedError(404, "There is nothing here.")
        self._check_length(scope, headers.get("content-length"))
        return headers

    def _check_length(self, scope: Scope, length: str | None) -> None:
        if scope["method"] == "POST" and length is None:
            raise RefusedError(411, "Say how much is sent.")
        if length is not None and not (length.isascii() and length.isdigit()):
            raise RefusedError(400, "Say how much is sent as a number.")
        sends_file = scope["path"] == f"{_API}upload"
        most = self.uploads.limits.max_bytes + SPARE if sends_file else _MAX_REQUEST
        if int(length or 0) > most:
            raise RefusedError(413, "The file exceeds the maximum allowed size.")

    async def _pass_on(
        self,
        scope: Scope,
        headers: dict[str, str],
        cookies: dict[str, str],
        receive: Any,
        send: Any,
    ) -> None:
        """Take in a file, note a tab, or let the page answer."""
        from starlette.responses import JSONResponse, StreamingResponse

        scope = {**scope, "headers": [pair for pair in scope["headers"] if _is_passed(pair[0])]}
        path, method = scope["path"], scope["method"]
        if path == f"{_API}upload":
            if method != "POST":
                raise RefusedError(405, "Files are sent by POST.")
            owner = _owner(cookies)
            token = await self.uploads.receive(owner, _address(scope), scope, receive)
            await JSONResponse([token])(scope, receive, send)
        elif path == f"{_API}upload_progress":
            found = re.search(r"(?:^|&)upload_id=([\w.-]{1,100})(?:&|$)", _query(scope))
            events = told_when_here(self.uploads, _owner(cookies), found[1] if found else "")
            await StreamingResponse(events, media_type="text/event-stream")(scope, receive, send)
        elif path == _EVENT and method == "POST":
            body = await self._checked_event(cookies, await _body(receive))
            length = (b"content-length", str(len(body)).encode())
            others = [pair for pair in scope["headers"] if pair[0].lower() != length[0]]
            await self.app({**scope, "headers": [*others, length]}, _said(body, receive), send)
        elif path.startswith(f"{_API}heartbeat/") and method == "GET":
            with self.sessions.tab(cookies, path.rpartition("/")[2]):
                await self.app(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    async def _checked_event(self, cookies: dict[str, str], body: bytes) -> bytes:
        """Return an event of an open tab whose files are those its sender has uploaded, or refuse it.

        It is written anew, so that the page reads what was checked and not what else it might see.
        Sessions that are just made up would cost the page memory: it never hears of them.
        """
        try:
            event = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise RefusedError(400, _NO_EVENT) from error
        tab_id = event.get("session_hash") if isinstance(event, dict) else None
        if not isinstance(tab_id, str):
            raise RefusedError(400, _NO_EVENT)
        event = self._with_own_files(cookies, event, 0)
        end = time.monotonic() + _COMING
        while not self.sessions.is_open(cookies, tab_id):
            if time.monotonic() > end:
                raise RefusedError(409, "This page has lost its connection; reload it.")
            await asyncio.sleep(0.05)
        return json.dumps(event).encode()

    def _with_own_files(self, cookies: dict[str, str], value: Any, depth: int) -> Any:
        if depth > _DEEPEST:
            raise RefusedError(400, _NO_EVENT)
        if isinstance(value, list):
            return [self._with_own_files(cookies, each, depth + 1) for each in value]
        if not isinstance(value, dict):
            return value
        if not {"path", "meta", "_type", "is_stream"} & value.keys():
            return {
                name: self._with_own_files(cookies, each, depth + 1) for name, each in value.items()
            }
        token = value.get("path")
        if not self.uploads.is_of(_owner(cookies), token):
            raise RefusedError(400, "That file was not uploaded here; please drop it again.")
        # A "stream" is what gradio neither looks for nor copies: the file stays ours.
        return {"path": token, "is_stream": True, "meta": {"_type": "gradio.FileData"}}


def _owner(cookies: dict[str, str]) -> str:
    try:
        return Sessions.owner_in(cookies)
    except SessionError as error:
        raise RefusedError(403, str(error)) from error


def _address(scope: Scope) -> str:
    return (scope.get("client") or ("",))[0]


def _is_passed(name: bytes) -> bool:
    text = name.decode("latin-1").lower()
    return text in _PASSED or text.startswith("sec-fetch-")


def _query(scope: Scope) -> str:
    return str(scope.get("query_string", b""), "latin-1")


def _cookies(text: str) -> dict[str, str]:
    try:
        return {name: morsel.value for name, morsel in SimpleCookie(text).items()}
    except CookieError:
        return {}


async def _body(receive: Any) -> bytes:
    """Return all of a request that is small: its length was checked."""
    parts = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise RefusedError(400, "The request was broken off.")
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(parts)


def _said(body: bytes, receive: Any) -> Any:
    """Return what gives a body again, and then what else comes."""
    waiting = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Any:
        return waiting.pop() if waiting else await receive()

    return again
