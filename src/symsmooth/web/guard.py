"""The guard in front of the page: who may ask, from where, and how much may be sent.

Every request passes here first.  What another page, another name of this machine, or something that is
no browser's request asks for is answered here; only ``http`` and ``lifespan`` go on to the page.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any

from .errors import RefusedError, SessionError
from .hosts import Hosts
from .sessions import Sessions

UPLOAD = "/api/pictures"  # the one address that takes files
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(:[0-9]{1,5})?", re.ASCII | re.IGNORECASE)
_ONCE = ("host", "origin", "content-length", "content-type", "cookie", "x-visit", "x-file-name")
_METHODS = ("GET", "HEAD", "POST", "DELETE")
_KINDS = {UPLOAD: "application/octet-stream"}  # what is sent there; everywhere else JSON
_MAX_REQUEST = 2**16  # bytes of a request that brings no file ...
_SECONDS = 10.0  # ... in which all of them must come
_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' blob:; connect-src 'self'; frame-ancestors 'none'; form-action 'none'; "
    "base-uri 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}

Scope = MutableMapping[str, Any]


class Guard:
    """Answers what is not for this page before the page sees it; gives the cookie.

    Parameters
    ----------
    app : ASGI application
    hosts : Hosts
        The names this server goes by.
    max_bytes : int
        Of a file.
    """

    def __init__(self, app: Any, hosts: Hosts, max_bytes: int) -> None:
        self.app, self.hosts, self.max_bytes = app, hosts, max_bytes

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

        try:
            headers = self._check(scope)
        except RefusedError as refused:
            from starlette.responses import JSONResponse

            # After what is malformed, or not read to its end, nobody can tell where the next begins.
            close = {"connection": "close"} if refused.status in (400, 413) else {}
            response = JSONResponse({"error": refused.text}, refused.status, close)
            await response(scope, receive, answer)
            return
        is_page = not scope["path"].startswith(("/api/", "/assets/"))
        if is_page and not _has_owner(headers.get("cookie", "")):
            secret = secrets.token_urlsafe(32)
            extra["set-cookie"] = f"{Sessions.COOKIE}={secret}; HttpOnly; SameSite=Strict; Path=/"
        if (
            scope["method"] == "POST" and scope["path"] != UPLOAD
        ):  # uploads have limits of their own
            receive = _in_time(receive)
        await self.app(scope, receive, answer)

    def _check(self, scope: Scope) -> dict[str, str]:
        """Return the headers of a request that is for this page, or say why it is not."""
        headers: dict[str, str] = {}
        for raw_name, raw_value in scope["headers"]:
            name = raw_name.decode("latin-1").lower()
            if name in headers and name in _ONCE:
                raise RefusedError(400, f"This request has two headers named {name}.")
            headers[name] = raw_value.decode("latin-1")
        if "transfer-encoding" in headers:  # a proxy may count the bytes of the body otherwise
            raise RefusedError(
                400, "Send a request with its Content-Length, and no Transfer-Encoding."
            )
        if scope["method"] not in _METHODS:
            raise RefusedError(405, "This HTTP method is not allowed here.")
        self._check_origin(scope, headers)
        self._check_body(scope, headers)
        return headers

    def _check_origin(self, scope: Scope, headers: dict[str, str]) -> None:
        """Refuse what is meant for another host, or comes from another page."""
        host = headers.get("host", "").lower()
        found = _HOST.fullmatch(host)
        if found is None:
            raise RefusedError(400, "The Host header is missing or malformed.")
        name = found[1].strip("[]")
        if not self.hosts.know(name):  # another name made to point here
            raise RefusedError(421, self.hosts.why_not(name))
        origin = headers.get("origin")
        if origin is not None:
            scheme, _, theirs = origin.lower().partition("://")
            if origin != "null" and not (_HOST.fullmatch(theirs) and scheme.isalpha()):
                raise RefusedError(400, "The Origin header is malformed.")
            if theirs != host or scheme not in ("http", "https"):
                raise RefusedError(403, "Requests from other pages are refused.")
        site = headers.get("sec-fetch-site", "none")
        follows_link = scope["method"] == "GET" and headers.get("sec-fetch-mode") == "navigate"
        if site not in ("none", "same-origin") and not follows_link:
            raise RefusedError(403, "Requests from other pages are refused.")

    def _check_body(self, scope: Scope, headers: dict[str, str]) -> None:
        """Refuse what is too large, or does not say what it is: no form of another page can."""
        length = headers.get("content-length")
        if length is not None and not (length.isascii() and length.isdigit() and len(length) < 20):
            raise RefusedError(400, "Content-Length must be a number.")
        limit = self.max_bytes if scope["path"] == UPLOAD else _MAX_REQUEST
        if int(length or 0) > limit:
            raise RefusedError(413, f"The file is larger than the {limit / 2**20:.4g} MB allowed.")
        if scope["method"] != "POST":
            if length not in (None, "0"):
                raise RefusedError(400, "This request must not have a body.")
            return
        if length is None:
            raise RefusedError(411, "This request needs a Content-Length.")
        kind = _KINDS.get(scope["path"], "application/json")
        if headers.get("content-type", "").partition(";")[0].strip().lower() != kind:
            raise RefusedError(415, f"Send {kind} here.")


def _in_time(receive: Any) -> Any:
    """Return a way to receive a short request that does not wait for one that never comes."""
    end = asyncio.get_running_loop().time() + _SECONDS
    is_whole = False

    async def soon() -> Any:
        nonlocal is_whole
        if is_whole:  # what comes now is the end of the connection, whenever that is
            return await receive()
        try:
            left = end - asyncio.get_running_loop().time()
            message = await asyncio.wait_for(receive(), left)
        except TimeoutError as error:
            raise RefusedError(408, "This request took too long.") from error
        is_whole = not message.get("more_body", False)
        return message

    return soon


def _has_owner(cookie: str) -> bool:
    try:
        Sessions.owner_in({name: morsel.value for name, morsel in SimpleCookie(cookie).items()})
    except (CookieError, SessionError):
        return False
    return True
