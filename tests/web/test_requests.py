"""The guard: hosts, origins, headers, lengths, kinds of requests; and what is sent to every address."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
from pathlib import Path
from typing import Any

import pytest

from symsmooth.web.guard import Guard, Hosts

from ..serving import Server, picture, run_apart


@pytest.mark.parametrize(
    ("header", "value", "status"),
    [
        ("Host", "[::1", 400), ("Host", "evil@localhost", 400), ("Host", "localhost:x", 400),
        ("Host", "", 400), ("Host", "localhost/..", 400), ("Host", "127.0.0.1, evil.example", 400),
        ("Host", "evil.example", 421), ("Host", "[::2]", 421), ("Host", "localhost.evil", 421),
        ("Host", "LOCALHOST", 200), ("Host", "[::1]:7860", 200),
        ("Origin", "http://[", 400), ("Origin", "http://", 400), ("Origin", "nonsense", 400),
        ("Origin", "http://a@127.0.0.1", 400), ("Origin", "null", 403), ("Origin", "ftp://x", 403),
        ("Origin", "http://127.0.0.1", 403), ("Origin", "http://evil.example", 403),
        ("Sec-Fetch-Site", "cross-site", 403), ("Sec-Fetch-Site", "same-site", 403),
        ("Sec-Fetch-Site", "same-origin", 200), ("Content-Length", "-1", 400),
        ("Content-Length", "5", 400), ("Transfer-Encoding", "chunked", 400),
    ],
)  # fmt: skip
def test_headers_of_others_and_those_that_cannot_be(
    server: Server, header: str, value: str, status: int
) -> None:
    assert server.ask("/api/about", **{header: value})[0] == status


def test_what_is_not_for_this_page_is_not_answered(server: Server) -> None:
    assert server.ask("/")[0] == 200
    assert server.ask("/api/about", Origin=server.address.rstrip("/"))[0] == 200
    assert server.ask("/api/about", Origin=f"http://127.0.0.1:{server.port + 1}")[0] == 403
    kind = {"Content-Type": "application/octet-stream"}
    assert server.ask("/api/pictures", "POST", **kind, **{"Content-Length": str(10**9)})[0] == 413
    assert server.ask("/api/pictures", "POST", **kind, **{"Transfer-Encoding": "chunked"})[0] == 400
    for path in (
        "/docs", "/etc/passwd", "/assets/../server.py", "/assets/%2e%2e/server.py", "/assets/x.js",
        "/assets/page.html", "/session/x/y", "/api/sessions/x/state", "/api/sessions/x/p1/view",
        "/static/page.js",
    ):  # fmt: skip
        assert server.ask(path)[0] == 404, path
    for method in ("PUT", "PATCH", "OPTIONS", "TRACE"):
        assert server.ask("/", method)[0] == 405


def test_what_proxies_say_is_not_believed(come: Any, server: Server) -> None:
    """A visitor could say it too: it changes neither where answers lead nor who asks."""
    forged = {
        "X-Forwarded-Host": "evil.example", "X-Forwarded-For": "10.0.0.1",
        "X-Forwarded-Proto": "https", "Forwarded": "for=10.0.0.1;host=evil.example;proto=https",
    }  # fmt: skip
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    for path in ("/", "/api/about/", "/assets/page.js/"):
        connection.request("GET", path, headers=forged)
        answer = connection.getresponse()
        text = answer.read()
        assert answer.status in (200, 307, 404)
        assert b"evil" not in text
        place = answer.headers.get("location", server.address)
        assert place.startswith(server.address)
    connection.close()
    assert server.ask("/api/about", **{**forged, "Host": "evil.example"})[0] == 421
    assert server.ask("/api/about", **{**forged, "Origin": "https://evil.example"})[0] == 403


def test_a_link_from_elsewhere_opens_the_page(server: Server) -> None:
    from_elsewhere = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert server.ask("/", **from_elsewhere)[0] == 200
    assert server.ask("/session/x", **from_elsewhere)[0] == 200


@pytest.mark.parametrize(
    "body",
    [b"", b"[", b"null", b"[" * 10_000, b"[]", b'"x"', b"\xff", b'{"settings": {"x": 1}}',
     b'{"pictures": "p1", "settings": {}}', b'{"pictures": [["p1"]], "settings": {}}',
     b'{"pictures": ["p1"], "settings": {}, "at": [-1]}', b'{"pictures": [], "settings": {}}',
     b'{"pictures": ["p1"], "settings": {"strength": NaN}}'],
)  # fmt: skip
def test_what_is_no_request_of_the_page_is_refused(come: Any, body: bytes) -> None:
    person = come()
    person.drop("a.npy", picture())
    for name in ("denoise", "compare"):
        status, answer = person.post(f"{person.here}/{name}", body)
        assert status in (400, 422)
        assert answer["error"]
    assert not person.state()["progress"]


def test_forms_and_long_requests_are_refused(come: Any) -> None:
    person = come()
    person.drop("a.npy", picture())
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        status, _ = person.ask(f"{person.here}/cancel", "POST", b"{}", **{"Content-Type": kind})
        assert status == 415
    assert person.post(f"{person.here}/cancel", b" " * 70_000)[0] == 413


@pytest.mark.parametrize(
    "query",
    ["what=x", "what=clean", "what=result&of=99", "what=result&of=x", "what=result&of=1&panel=x",
     "at=x", "at=-1", "channel=x", "box=1.2.x.4", "at=1.2.3.4.5.6.7.8.9", "what=removed&of=" + "9" * 50],
)  # fmt: skip
def test_views_there_are_not(come: Any, query: str) -> None:
    person = come()
    id = person.drop("a.npy", picture())["id"]
    assert person.ask(f"{person.here}/{id}/view?{query}")[0] == 404


@pytest.mark.parametrize("query", ["box=1.2.3", "box=64.64.1.1", "box=0.0.0.0"])
def test_parts_of_pictures_there_are_not(come: Any, query: str) -> None:
    person = come()
    id = person.drop("a.npy", picture())["id"]
    status, answer = person.ask(f"{person.here}/{id}/view?{query}")
    assert status == 422
    assert "no such part" in json.loads(answer)["error"]


def test_the_page_may_ask_its_server_alone(server: Server) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    connection.request("GET", "/")
    answer = connection.getresponse()
    text = answer.read().decode()
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert "<script>" not in text
    assert "style=" not in text
    assert "HttpOnly; SameSite=Strict" in answer.headers["set-cookie"]
    connection.close()


# --- the guard by itself ----------------------------------------------------------------------


LOCAL = Hosts(frozenset({"localhost"}))


def through_guard(scope: dict[str, Any], hosts: Hosts = LOCAL) -> tuple[list[Any], list[Any]]:
    """Return what the page was asked, and what was answered."""
    asked: list[Any] = []
    sent: list[Any] = []

    async def page(scope: Any, receive: Any, send: Any) -> None:
        asked.append(scope)

    async def receive() -> Any:
        return {"type": f"{scope['type']}.connect"}

    async def send(message: Any) -> None:
        sent.append(message)

    run_apart(Guard(page, hosts, 2**20)(scope, receive, send))
    return asked, sent


@pytest.mark.parametrize(("kind", "passes"), [("lifespan", 1), ("websocket", 0), ("other", 0)])
def test_only_requests_and_the_servers_life_pass_the_guard(kind: str, passes: int) -> None:
    scope = {"type": kind, "path": "/", "headers": [(b"host", b"localhost")]}
    asked, sent = through_guard(scope)
    assert len(asked) == passes
    assert [message["type"] for message in sent] == (
        ["websocket.close"] if kind == "websocket" else []
    )


@pytest.mark.parametrize("name", [b"host", b"origin", b"content-length", b"cookie", b"x-session"])
def test_a_header_that_is_given_twice_is_refused(name: bytes) -> None:
    headers = [(b"host", b"localhost"), (name, b"localhost"), (name, b"localhost")]
    scope = {"type": "http", "method": "GET", "path": "/", "headers": headers}
    asked, sent = through_guard(scope)
    assert asked == []
    assert sent[0]["status"] == 400


def test_a_length_of_many_digits_is_refused() -> None:
    headers = [(b"host", b"localhost"), (b"content-length", b"9" * 5000)]
    scope = {"type": "http", "method": "POST", "path": "/api/pictures", "headers": headers}
    asked, sent = through_guard(scope)
    assert asked == []
    assert sent[0]["status"] == 400


@pytest.mark.parametrize("method", ["GET", "POST", "HEAD", "DELETE"])
@pytest.mark.parametrize("coding", [b"chunked", b"gzip, chunked", b"identity", b"", b"xchunked"])
@pytest.mark.parametrize("length", [[], [(b"content-length", b"5")]])
def test_a_request_says_its_length_and_nothing_else(
    method: str, coding: bytes, length: Any
) -> None:
    """Where a proxy goes by one and the server by the other, a second request hides in the first."""
    headers = [(b"host", b"localhost"), (b"transfer-encoding", coding), *length]
    scope = {"type": "http", "method": method, "path": "/api/pictures", "headers": headers}
    asked, sent = through_guard(scope)
    assert asked == []
    assert sent[0]["status"] == 400
    assert (b"connection", b"close") in sent[0]["headers"]


def test_nothing_is_read_behind_a_request_with_two_lengths(server: Server) -> None:
    hidden = b"GET /api/about HTTP/1.1\r\nHost: localhost\r\n\r\n"
    start = f"POST /api/pictures HTTP/1.1\r\nHost: localhost:{server.port}\r\n".encode()
    both = b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.port)) as opened:
        opened.sendall(start + both + hidden)
        answer = b""
        with contextlib.suppress(ConnectionResetError):
            while part := opened.recv(65536):
                answer += part
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.count(b"HTTP/1.1 ") == 1


def test_every_part_of_the_page_is_served(server: Server) -> None:
    folder = Path(__file__).parents[2] / "src/symsmooth/web/static"
    names = {path.name for path in folder.iterdir()} - {"page.html"}
    for name in names:
        assert server.ask(f"/assets/{name}")[1] == (folder / name).read_bytes()
