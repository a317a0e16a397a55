"""Files that are sent: streamed to disk within limits, and nothing is left of those that do not arrive."""

from __future__ import annotations

import http.client
import socket
from pathlib import Path
from typing import Any

import pytest

from ..serving import HOSTILE, Person, Server, picture, wait_for


@pytest.fixture
def private(tmp_path: Path) -> Path:
    """A picture that nobody has uploaded."""
    path = tmp_path / "private.npy"
    path.write_bytes(picture(seed=7))
    return path


def begin(person: Person, content: bytes, *more: str) -> socket.socket:
    """Send the first half of a file."""
    lines = [
        "POST /api/pictures HTTP/1.1", f"Host: 127.0.0.1:{person.server.port}",
        f"Cookie: {person.cookie}", "Content-Type: application/octet-stream",
        f"Content-Length: {len(content)}", *more,
    ]  # fmt: skip
    opened = socket.create_connection(("127.0.0.1", person.server.port), timeout=20)
    opened.sendall("\r\n".join([*lines, "", ""]).encode() + content[: len(content) // 2])
    return opened


def finish(opened: socket.socket, content: bytes) -> tuple[int, bytes]:
    """Send the rest, and return what is answered."""
    opened.sendall(content[len(content) // 2 :])
    with opened, http.client.HTTPResponse(opened) as answer:
        answer.begin()
        return answer.status, answer.read()


def test_uploads_need_the_cookie_and_say_what_they_are(come: Any, server: Server) -> None:
    person = come()
    assert person.upload("a.npy", picture(), Cookie="")[0] == 403
    assert person.upload("a.npy", picture(), Cookie="symsmooth=short")[0] == 403
    assert person.upload("a.npy", bytes(2**20 + 1))[0] == 413
    for kind in ("multipart/form-data; boundary=x", "text/plain", ""):  # what forms can send
        assert person.upload("a.npy", picture(), **{"Content-Type": kind})[0] == 415
    assert person.ask("/api/pictures")[0] == 405
    assert server.files("*") == []
    assert person.upload("a.npy", bytes(2**20))[0] == 200  # as large as is allowed


def test_no_header_of_an_upload_names_a_file_of_this_machine(
    come: Any, server: Server, private: Path
) -> None:
    person = come()
    before = private.read_bytes()
    for name in (str(private), f"../../../..{private}", "..", "", "a\0b.npy", "%2e%2e%2fa.npy"):
        status, answer = person.upload(name, picture())
        assert status == 200, answer
        person.wait()
    assert private.read_bytes() == before
    for path in server.files("*/*/*"):
        assert path.is_file()
        assert not path.is_symlink()
    assert len(server.files("*/*/.view.npy")) == 6
    for header in ({"X-Session": "../x"}, {"X-Session": "x" * 32}, {"X-Clean-Of": "../p1"}):
        assert person.upload("a.npy", picture(), **header)[0] == 404
    assert person.post("/api/examples", {"example": str(private)})[0] == 422


def test_only_we_may_read_what_was_sent(come: Any, server: Server) -> None:
    come().drop("a.npy", picture())
    (folder,) = server.files("")
    for place in (folder, *server.files("*"), *server.files("*/*")):
        assert place.stat().st_mode & 0o077 == 0, place


def test_uploads_that_are_broken_off_leave_nothing(come: Any, server: Server) -> None:
    person = come()
    content = bytes(1_000_000)
    broken = [begin(person, content) for _ in range(20)]
    wait_for(lambda: len(server.files("*/*/*")) == 20)
    assert person.drop("a.npy", picture())["info"]  # meanwhile others arrive
    for each in broken:
        each.close()
    wait_for(lambda: len(server.files("*")) == 1)
    assert person.state()["pictures"]


def test_clean_pictures_of_what_is_not_ready_are_not_kept(come: Any, server: Server) -> None:
    person = come()
    bad = person.drop("notes.txt", b"Dear diary")["id"]
    status, answer = person.upload("clean.npy", picture(), **{"X-Clean-Of": bad})
    assert (status, answer["error"]) == (422, "This picture is not ready yet.")
    assert server.files("*/reference-*") == []


@pytest.mark.parametrize("clean", [False, True])
def test_a_session_that_ends_during_an_upload_keeps_nothing(
    come: Any, server: Server, clean: bool
) -> None:
    person = come()
    id, content = person.drop("a.npy", picture())["id"], picture(300)
    more = [f"X-Session: {person.session}", *([f"X-Clean-Of: {id}"] if clean else [])]
    before = len(server.files("*/*"))
    opened = begin(person, content, *more)
    wait_for(lambda: len(server.files("*/*")) > before)
    assert person.ask(person.here, "DELETE")[0] == 200
    wait_for(lambda: not server.files("*"))
    status, answer = finish(opened, content)
    assert status == 422
    assert b"This session has ended" in answer
    assert server.files("*") == []


def test_a_picture_that_is_removed_during_an_upload_gets_no_clean_one(
    come: Any, server: Server
) -> None:
    person = come()
    id, content = person.drop("a.npy", picture())["id"], picture(300)
    opened = begin(person, content, f"X-Session: {person.session}", f"X-Clean-Of: {id}")
    wait_for(lambda: server.files("*/reference-*"))
    assert person.ask(f"{person.here}/{id}", "DELETE")[0] == 200
    assert b"This picture is no longer here" in finish(opened, content)[1]
    assert server.files("*/reference-*") == []


def test_a_disk_that_is_nearly_full_takes_no_more(tmp_path: Path) -> None:
    full = (
        "; import types; usage = types.SimpleNamespace(free=2**40); "
        "controller.shutil = types.SimpleNamespace(rmtree=controller.shutil.rmtree, "
        f"disk_usage=lambda _: usage if not os.path.exists({str(tmp_path / 'full')!r}) "
        "else types.SimpleNamespace(free=2**20))"
    )
    server = Server(tmp_path, HOSTILE + full)
    person = Person(server)
    person.drop("a.npy", picture())
    (tmp_path / "full").touch()
    status, answer = person.upload("b.npy", picture())
    assert (status, answer["error"]) == (507, "There is no room on the disk; remove some pictures.")
    assert person.start() == 507
    assert len(server.files("*/*")) == 1
    server.end()
