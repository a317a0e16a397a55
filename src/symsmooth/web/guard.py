"""The guard in front of the page: which requests are for it.

Every request passes here first.  What another page, another name of this machine, or something that is
no browser's request asks for is answered here; only ``http`` and ``lifespan`` go on to the page.

A page of somebody else can make its own name point at this machine (DNS rebinding), and a browser then lets
it ask here.  Numbers of addresses cannot be made to point elsewhere; names must be known.
"""

from __future__ import annotations

import re
import secrets
import socket
from collections.abc import Iterable, Mapping, MutableMapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from ipaddress import ip_address
from typing import Any

from .settings import PageError

UPLOAD = "/api/pictures"  # the one address that takes files
COOKIE = "symsmooth"
_OWN = frozenset({"127.0.0.1", "localhost", "::1"})
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(:[0-9]{1,5})?", re.ASCII | re.IGNORECASE)
_ONCE = ("host", "origin", "content-length", "content-type", "cookie", "x-session", "x-file-name")
_KINDS = {UPLOAD: "application/octet-stream"}  # what is sent there; everywhere else JSON
_MAX_REQUEST = 2**16  # bytes of a request that brings no file
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


@dataclass(frozen=True)
class Hosts:
    """What may stand in the Host header, without its port."""

    names: frozenset[str]  # in small letters; addresses of IPv6 without brackets
    any_address: bool = False  # whether every number of an address will do, too

    def know(self, name: str) -> bool:
        """Whether this server is meant."""
        return name in self.names or (self.any_address and is_address(name))

    def why_not(self, name: str) -> str:
        """Return what to tell who asked for another name."""
        if not self.any_address:
            return "This page is for this machine alone."
        return (
            f"This server does not go by the name {name}. Open it by the number of its address, or start "
            f"it with --name {name}."
        )


def hosts_of(host: str, names: Iterable[str] = ()) -> Hosts:
    """Return what a server that listens at an address answers to, ``names`` being those it was given.

    At a loopback address, this machine alone; at others every number of an address, and the names that
    the machine gives itself.  No other machine is asked for a name.
    """
    given = frozenset(name.lower() for name in (host, *names))
    if is_loopback(host):
        return Hosts(_OWN | given)
    own = socket.gethostname().lower()
    short = own.partition(".")[0]
    return Hosts(_OWN | given | {own, short, f"{short}.local"}, any_address=True)


def is_loopback(host: str) -> bool:
    """Whether an address can be reached from this machine alone."""
    return ip_address(host).is_loopback if is_address(host) else host == "localhost"


def is_address(name: str) -> bool:
    """Whether a host is written as a number, 192.0.2.1 or 2001:db8::1."""
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


class Guard:
    """Answers what is not for this page, an ASGI application, before that sees it; gives the cookie."""

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
        except PageError as error:
            from starlette.responses import JSONResponse

            # After what is malformed, or not read to its end, nobody can tell where the next begins.
            close = {"connection": "close"} if error.status in (400, 413) else {}
            response = JSONResponse({"error": str(error)}, error.status, close)
            await response(scope, receive, answer)
            return
        is_page = not scope["path"].startswith(("/api/", "/assets/"))
        if is_page and not _has_cookie(headers.get("cookie", "")):
            secret = secrets.token_urlsafe(32)
            extra["set-cookie"] = f"{COOKIE}={secret}; HttpOnly; SameSite=Strict; Path=/"
        await self.app(scope, receive, answer)

    def _check(self, scope: Scope) -> dict[str, str]:
        """Return the headers of a request that is for this page, or say why it is not."""
        headers: dict[str, str] = {}
        for raw_name, raw_value in scope["headers"]:
            name = raw_name.decode("latin-1").lower()
            if name in headers and name in _ONCE:
                raise PageError(f"This request has two headers named {name}.", 400)
            headers[name] = raw_value.decode("latin-1")
        if "transfer-encoding" in headers:  # a proxy may count the bytes of the body otherwise
            text = "Send a request with its Content-Length, and no Transfer-Encoding."
            raise PageError(text, 400)
        self._check_origin(scope, headers)
        self._check_body(scope, headers)
        return headers

    def _check_origin(self, scope: Scope, headers: dict[str, str]) -> None:
        """Refuse what is meant for another host, or comes from another page."""
        host = headers.get("host", "").lower()
        found = _HOST.fullmatch(host)
        if found is None:
            raise PageError("The Host header is missing or malformed.", 400)
        name = found[1].strip("[]")
        if not self.hosts.know(name):  # another name made to point here
            raise PageError(self.hosts.why_not(name), 421)
        origin = headers.get("origin")
        if origin is not None:
            scheme, _, theirs = origin.lower().partition("://")
            if origin != "null" and not (_HOST.fullmatch(theirs) and scheme.isalpha()):
                raise PageError("The Origin header is malformed.", 400)
            if theirs != host or scheme not in ("http", "https"):
                raise PageError("Requests from other pages are refused.", 403)
        site = headers.get("sec-fetch-site", "none")
        follows_link = scope["method"] == "GET" and headers.get("sec-fetch-mode") == "navigate"
        if site not in ("none", "same-origin") and not follows_link:
            raise PageError("Requests from other pages are refused.", 403)

    def _check_body(self, scope: Scope, headers: dict[str, str]) -> None:
        """Refuse what is too large, or does not say what it is: no form of another page can."""
        length = headers.get("content-length")
        if length is not None and not (length.isascii() and length.isdigit() and len(length) < 20):
            raise PageError("Content-Length must be a number.", 400)
        limit = self.max_bytes if scope["path"] == UPLOAD else _MAX_REQUEST
        if int(length or 0) > limit:
            raise PageError(f"The file is larger than the {limit / 2**20:.4g} MB allowed.", 413)
        if scope["method"] != "POST":
            if length not in (None, "0"):
                raise PageError("This request must not have a body.", 400)
            return
        if length is None:
            raise PageError("This request needs a Content-Length.", 411)
        kind = _KINDS.get(scope["path"], "application/json")
        if headers.get("content-type", "").partition(";")[0].strip().lower() != kind:
            raise PageError(f"Send {kind} here.", 415)


def owner_in(cookies: Mapping[str, str]) -> str:
    """Return the secret of a browser, or say that there is none."""
    owner = cookies.get(COOKIE, "")
    if not re.fullmatch(r"[\w-]{43,100}", owner, re.ASCII):
        text = "This page needs its cookie: allow cookies for this address, reload."
        raise PageError(text, 403)
    return owner


def _has_cookie(cookie: str) -> bool:
    try:
        owner_in({name: morsel.value for name, morsel in SimpleCookie(cookie).items()})
    except (CookieError, PageError):
        return False
    return True
