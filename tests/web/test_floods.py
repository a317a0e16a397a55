"""Somebody who asks for too much, or for nothing and stays: others are served all the same."""

from __future__ import annotations

import http.client
import io
import json
import socket
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from symsmooth.web.archive import pack

from ..serving import HOSTILE, Person, Server, picture, wait_for

# A server that is less patient with connections, so that tests are; not with files, on a busy machine.
HASTY = (
    "; import symsmooth.web.connections as connections, symsmooth.web.guard as guard; "
    "connections.SECONDS, connections.OF_ADDRESS, guard._SECONDS = 1.0, 40, 1.0; "
    "controller.SECONDS = 60.0"
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    started = Server(tmp_path_factory.mktemp("server"), HOSTILE + HASTY)
    yield started
    output = started.end()
    assert "Traceback" not in output
    assert started.files("") == []


def connect(server: Server, start: bytes = b"") -> socket.socket:
    opened = socket.create_connection(("127.0.0.1", server.port), timeout=20)
    opened.sendall(start)
    return opened


def head(person: Person, path: str, length: int, *more: str, verb: str = "POST") -> bytes:
    """The first lines of a request that brings JSON, or a file."""
    kind = "octet-stream" if path == "/api/pictures" else "json"
    lines = [
        f"{verb} {path} HTTP/1.1", f"Host: 127.0.0.1:{person.server.port}",
        f"Cookie: {person.cookie}", f"Content-Type: application/{kind}",
        f"Content-Length: {length}", *more,
    ]  # fmt: skip
    return "\r\n".join([*lines, "", ""]).encode()


def answer_on(opened: socket.socket) -> tuple[int, bytes]:
    """What is answered on a connection, which ends here."""
    with opened, http.client.HTTPResponse(opened) as answer:
        answer.begin()
        return answer.status, answer.read()


def is_open(opened: socket.socket) -> bool:
    """Whether the other side has not ended a connection."""
    opened.setblocking(False)
    try:
        return opened.recv(2**16) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


# --- connections ------------------------------------------------------------------------------


@pytest.mark.parametrize("start", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: x\r\nX-A: "])
def test_connections_on_which_nothing_is_asked_are_closed(server: Server, start: bytes) -> None:
    """They lock nobody out for good."""
    held = [connect(server, start) for _ in range(30)]
    assert server.ask("/api/about")[0] == 200
    wait_for(lambda: not any(map(is_open, held)))
    for each in held:
        each.close()


def test_letters_that_come_one_by_one_are_not_waited_for(server: Server) -> None:
    opened = connect(server, b"GET / HTTP/1.1\r\nX-A: ")

    def is_cut_off() -> bool:
        opened.setblocking(True)
        try:
            opened.sendall(b"a")
        except OSError:
            return True
        return not is_open(opened)

    wait_for(is_cut_off)
    opened.close()


def test_no_address_has_all_connections(server: Server) -> None:
    held = [connect(server) for _ in range(60)]
    wait_for(lambda: sum(map(is_open, held)) <= 40)
    wait_for(lambda: not any(map(is_open, held)))
    assert server.ask("/api/about")[0] == 200  # and later there is room again
    for each in held:
        each.close()


def test_who_is_answered_for_long_is_not_cut_off(come: Any) -> None:
    person = come()
    person.drop("a.npy", picture())
    tab = person.open_tab()
    time.sleep(2.5)
    person.post(f"{person.here}/cancel")
    assert is_open(tab)


def test_a_request_whose_body_does_not_come_is_answered(come: Any, server: Server) -> None:
    person = come()
    person.drop("a.npy", picture())
    for path in ("/api/examples", f"{person.here}/denoise", f"{person.here}/compare"):
        assert answer_on(connect(server, head(person, path, 100) + b"{"))[0] == 408


# --- requests ---------------------------------------------------------------------------------


def test_a_picture_that_is_named_often_is_done_once(come: Any, server: Server) -> None:
    person = come()
    id = person.drop("a.npy", picture())["id"]
    worked = server.seconds_of_work()
    given = {"pictures": [id] * 8000, "settings": {"method": "gaussian"}}
    assert person.post(f"{person.here}/denoise", given)[0] == 200
    assert server.ask("/api/about")[0] == 200
    shown = person.wait()["pictures"][0]
    assert server.seconds_of_work() - worked < 10  # of the processor; 8000 runs would be minutes
    assert shown["result"]["number"] < 10
    assert len(server.files("sessions/*/run-*")) == 1


def test_no_answer_says_where_files_are(come: Any, server: Server) -> None:
    person = come()
    id = person.drop("large.npy", picture(1000))["id"]
    given = {"pictures": [id], "settings": {"quality": "fast"}, "visible": [0, 0, 200, 200]}
    assert person.post(f"{person.here}/denoise", given)[0] == 200
    parts = []
    while (state := person.state())["progress"]:
        assert str(server.folder) not in json.dumps(state)
        parts += [each["part"] for each in state["pictures"] if each["part"]]
        time.sleep(0.02)
    assert parts
    assert set(parts[0]) == {"box", "at", "panel", "number"}


def test_ranges_of_a_download_cost_nothing(come: Any, server: Server) -> None:
    person = come()
    id = person.drop("a.npy", picture(300))["id"]
    person.run()
    path, worked = f"{person.here}/{id}/result", server.seconds_of_work()
    for ranges, status in (
        ("bytes=0-10", 206), ("bytes=5-2", 400), ("x=1", 400), ("bytes=" + "0-," * 4000, 200),
        ("bytes=" + ",".join(f"{n}-{n}" for n in range(0, 5000, 2))[:15_000], 200),
    ):  # fmt: skip
        assert person.ask(path, Range=ranges)[0] == status, ranges[:20]
    assert server.seconds_of_work() - worked < 5  # of the processor


# --- files ------------------------------------------------------------------------------------


def test_clean_pictures_of_what_is_not_ready_are_not_kept(come: Any, server: Server) -> None:
    """They would fill the room of all visits."""
    person = come()
    bad = person.drop("notes.txt", b"Dear diary")["id"]
    for _ in range(5):
        status, answer = person.upload("clean.npy", picture(), **{"X-Clean-Of": bad})
        assert (status, answer["error"]) == (422, "This picture is not ready yet.")
    assert server.files("sessions/*/reference-*") == server.files("uploads/*") == []


def test_clean_pictures_count_as_room_of_their_visit(tmp_path: Path) -> None:
    full = "; import symsmooth.web.uploads as u; u.Limits.of_visit = property(lambda self: 50_000)"
    server = Server(tmp_path, HOSTILE + full)
    person = Person(server)
    id = person.drop("a.npy", picture(160))["id"]  # 26 kB, and as much to look at
    status, answer = person.upload("clean.npy", picture(160), **{"X-Clean-Of": id})
    assert (status, answer["error"]) == (
        422,
        "Your pictures take too much room; remove some of them.",
    )
    assert person.start() == 422
    assert person.post("/api/examples", {"visit": person.visit, "example": "x"})[0] == 422
    assert server.files("uploads/*") == []
    server.end()


@pytest.mark.parametrize("clean", [False, True])
def test_a_visit_that_ends_during_an_upload_keeps_nothing(
    come: Any, server: Server, clean: bool
) -> None:
    person = come()
    id = person.drop("a.npy", picture())["id"]
    content = picture(300)
    more = [f"X-Visit: {person.visit}", *([f"X-Clean-Of: {id}"] if clean else [])]
    opened = connect(server, head(person, "/api/pictures", len(content), *more) + content[:1000])
    wait_for(lambda: server.files("uploads/*"))
    assert person.ask(person.here, "DELETE")[0] == 200
    opened.sendall(content[1000:])
    status, answer = answer_on(opened)
    assert status == 422
    assert b"This visit has ended" in answer
    assert server.files("uploads/*") == []


def test_a_picture_that_is_removed_during_an_upload_gets_no_clean_one(
    come: Any, server: Server
) -> None:
    person = come()
    id = person.drop("a.npy", picture())["id"]
    content = picture(300)
    more = [f"X-Visit: {person.visit}", f"X-Clean-Of: {id}"]
    opened = connect(server, head(person, "/api/pictures", len(content), *more) + content[:1000])
    wait_for(lambda: server.files("uploads/*"))
    assert person.ask(f"{person.here}/{id}", "DELETE")[0] == 200
    opened.sendall(content[1000:])
    assert b"This picture is no longer here" in answer_on(opened)[1]
    assert server.files("sessions/*/reference-*") == server.files("uploads/*") == []


def test_archives_that_nobody_reads_take_no_room(come: Any, server: Server) -> None:
    person = come()
    for number in range(3):
        person.drop(f"a{number}.npy", picture(900))
    person.run()
    before = sum(path.stat().st_size for path in server.files("**/*") if path.is_file())
    asked = head(person, f"{person.here}/results.zip", 0, verb="GET")
    held = [connect(server, asked) for _ in range(20)]
    time.sleep(0.5)
    after = sum(path.stat().st_size for path in server.files("**/*") if path.is_file())
    assert after == before
    for each in held:
        each.close()
    status, packed = person.ask(f"{person.here}/results.zip")
    assert status == 200
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        assert archive.testzip() is None
        assert len(archive.namelist()) == 3


def test_files_of_one_name_are_packed_under_names_of_their_own(tmp_path: Path) -> None:
    paths = []
    for number in range(3):
        (tmp_path / str(number)).mkdir()
        paths.append(tmp_path / str(number) / "a.npy")
        paths[-1].write_bytes(bytes([number]) * 700_000 if number else b"")
    pieces = [*pack([*(("", path) for path in paths), ("b", paths[0])])]
    assert max(map(len, pieces)) < 300_000
    with zipfile.ZipFile(io.BytesIO(b"".join(pieces))) as packed:
        names = packed.namelist()
        assert names == ["a.npy", "a-2.npy", "a-3.npy", "b/a.npy"]
        assert [packed.read(name) for name in names[:3]] == [p.read_bytes() for p in paths]


def test_a_run_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    """Others wait for their turns."""
    server = Server(tmp_path, HOSTILE + "; controller._RUN_SECONDS = 0.5")
    person = Person(server)
    person.drop("a.npy", picture(640))
    shown = person.run("epll")
    assert shown["ended"][0] == "bad"
    assert "took more than" in shown["ended"][1]
    assert "faster method" in shown["ended"][1]
    server.end()
