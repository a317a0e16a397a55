"""``symsmooth serve`` among people who mean it no good: foreign files, made-up sessions, bad pictures."""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from symsmooth.core.parallel import Cancelled
from symsmooth.web import uploads as web_uploads
from symsmooth.web.guard import Guard
from symsmooth.web.sessions import Limits, SessionError, Sessions
from symsmooth.web.uploads import RefusedError, Uploads
from symsmooth.web.workers import WorkError, Workers

from .. import serving
from ..serving import Person, Server, file_of, form, picture, run_apart, wait_for

OURS, THEIRS = {"symsmooth": "a" * 43}, {"symsmooth": "b" * 43}
# Files whose names say so go wrong while they are looked at, whatever the readers of files do.
HOSTILE = (
    "import tests.serving, symsmooth.web.tasks as tasks; "
    "tasks.look = tests.serving.look; tasks.READING_SECONDS = 6"
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    pytest.importorskip("gradio", reason="gradio is not installed")
    started = Server(tmp_path_factory.mktemp("server"), HOSTILE)
    yield started
    told = started.end()
    assert "Traceback" not in told
    assert started.files("") == []


@pytest.fixture
def come(server: Server) -> Iterator[Callable[..., Person]]:
    people: list[Person] = []

    def session(**options: Any) -> Person:
        people.append(Person(server, **options))
        return people[-1]

    yield session
    for person in people:
        person.leave()
    wait_for(lambda: not server.files("sessions/*"), 20)


@pytest.fixture
def private(tmp_path: Path) -> Path:
    """A picture that nobody has uploaded."""
    path = tmp_path / "private.npy"
    path.write_bytes(picture(seed=7))
    return path


# --- files that were not uploaded -------------------------------------------------------------


@pytest.mark.parametrize("control", ["drop", "clean"])
@pytest.mark.parametrize("more", [{}, {"is_stream": True}, {"url": "http://127.0.0.1:1/a.npy"}])
def test_an_event_names_no_file_of_this_machine(
    come: Any, server: Server, private: Path, control: str, more: dict[str, Any]
) -> None:
    link = private.with_name("link.npy")
    link.symlink_to(private)
    before = private.read_bytes()
    person = come()
    assert "Ready" in person.drop("ours.npy", picture())
    (ours,) = server.files("sessions/*/dropped-*/ours.npy")
    for path in (private, link, private.with_name("missing.npy"), ours, "http://127.0.0.1:1/a.npy"):
        assert person.event(control, [file_of(str(path), **more)]) == 400
    assert person.event(control, [[file_of(str(private), **more)]]) == 400
    assert private.read_bytes() == before
    assert link.is_symlink()
    assert server.files("gradio/*/*") == []


@pytest.mark.parametrize("control", ["start", "example", "method", "start-compare"])
def test_no_other_control_takes_a_file_either(
    come: Any, server: Server, private: Path, control: str
) -> None:
    for given in (file_of(str(private)), {"value": file_of(str(private), is_stream=True)}):
        assert come().event(control, [given] * 6) == 400
    assert private.exists()
    assert server.files("gradio/*/*") == []


def test_the_last_of_two_equal_names_counts_for_guard_and_page(
    come: Any, server: Server, private: Path
) -> None:
    """What is passed on is what was checked, written anew."""
    person = come()
    _, token = person.upload("a.npy", picture())
    named = f'{{"path": {json.dumps(str(private))}, "path": {json.dumps(token)}, "meta": {{}}}}'
    body = f'{{"data": [{named}], "fn_index": 0, "session_hash": "{person.session}"}}'.encode()
    kind = {"Content-Type": "application/json"}
    assert person.ask("/gradio_api/queue/join", "POST", body, **kind)[0] == 200
    assert "Ready" in person.told()
    assert private.exists()


def test_an_upload_is_for_its_sender_alone_and_once(come: Any) -> None:
    ours, theirs = come(), come()
    status, token = ours.upload("a.npy", picture())
    assert status == 200
    for control in ("drop", "clean"):
        assert theirs.event(control, [file_of(token)]) == 400
    assert ours.event("drop", [file_of(token)]) == 200
    assert "Ready" in ours.told()
    assert ours.event("drop", [file_of(token)]) == 400


def test_two_visitors_drop_the_same_file(come: Any) -> None:
    first, second = come(), come()
    tokens = [each.upload("same.npy", picture())[1] for each in (first, second)]
    for person, token in zip((first, second), tokens, strict=True):
        assert person.event("drop", [file_of(token)]) == 200
        assert "Ready" in person.told()


@pytest.mark.parametrize(
    "body",
    [b"", b"[", b"null", b"[" * 10_000, b'{"data": ' + b"[" * 50 + b"]" * 50 + b"}", b"\xff"],
)
def test_what_is_no_event_is_refused(come: Any, body: bytes) -> None:
    kind = {"Content-Type": "application/json"}
    assert come().ask("/gradio_api/queue/join", "POST", body, **kind)[0] in (400, 422)


# --- uploads ----------------------------------------------------------------------------------


def test_uploads_need_the_cookie_and_are_one_file(come: Any, server: Server) -> None:
    person = come()
    assert person.upload("a.npy", picture(), Cookie="")[0] == 403
    assert person.upload("a.npy", picture(), Cookie="symsmooth=short")[0] == 403
    assert person.upload("a.npy", bytes(2**20 + 1))[0] == 413
    two, kind = form(("a.npy", picture()), ("b.npy", picture()))
    for body, headers in (
        (two, {"Content-Type": kind}),
        (b"--x--\r\n", {"Content-Type": kind}),
        (b"nonsense", {"Content-Type": kind}),
        (b"nonsense", {"Content-Type": "multipart/form-data"}),
        (picture(), {"Content-Type": "application/octet-stream"}),
    ):
        assert person.ask("/gradio_api/upload", "POST", body, **headers)[0] == 400
    assert person.ask("/gradio_api/upload")[0] == 405
    assert server.files("uploads/*") == []
    assert person.upload("a.npy", bytes(2**20))[0] == 200  # as large as is allowed


def test_uploads_that_are_broken_off_leave_nothing(come: Any, server: Server) -> None:
    person = come()
    body, kind = form(("a.npy", bytes(2**20 - 1000)))
    sent = (
        f"POST /gradio_api/upload HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
        f"Cookie: {person.cookie}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    ).encode() + body[: len(body) // 2]
    broken = []
    for _ in range(20):
        broken.append(socket.create_connection(("127.0.0.1", server.port), timeout=20))
        broken[-1].sendall(sent)
    wait_for(lambda: person.upload("a.npy", picture())[0] == 429)  # so many are under way
    here = server.files("uploads/*")
    for each in broken:
        each.close()
    wait_for(lambda: person.upload("a.npy", picture())[0] == 200)
    assert len(server.files("uploads/*")) == len(here) + 1


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def make_uploads(folder: Path, clock: Clock, **limits: Any) -> Uploads:
    most = limits.pop("max_on_disk", None)
    (folder / "uploads").mkdir(exist_ok=True)
    limits = {"max_bytes": 10_000, **limits}
    return Uploads(folder / "uploads", web_uploads.Limits(**limits), most, clock)


def send(
    uploads: Uploads, owner: str = "ours", content: bytes = b"x", pause: float = 0.0, end: int = 2
) -> str:
    """Send a file, half of it after a pause; or break off after one half."""
    body, kind = form(("../a.npy", content))
    halves = [body[: len(body) // 2], body[len(body) // 2 :]]

    async def receive() -> dict[str, Any]:
        if len(halves) == 1:
            await asyncio.sleep(pause)
        if len(halves) == 2 - end:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": halves.pop(0), "more_body": bool(halves)}

    length = str(len(body)).encode()
    headers = [(b"content-type", kind.encode()), (b"content-length", length)]
    scope = {"type": "http", "method": "POST", "headers": headers, "query_string": b""}
    return run_apart(uploads.receive(owner, "10.0.0.1", scope, receive))


def test_no_file_of_a_broken_upload_stays_open(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    uploads = make_uploads(tmp_path, clock, max_bytes=2**23, stall=0.2)
    with pytest.raises(RefusedError) as broken:  # an error keeps what it met alive
        send(uploads, content=bytes(2**22), end=1)
    with pytest.raises(RefusedError) as late:
        send(uploads, content=bytes(2**22), pause=1.0)
    held = [os.path.realpath(fd) for fd in Path("/proc/self/fd").iterdir()]
    assert (broken.value.status, late.value.status) == (400, 408)
    assert not any(str(tmp_path) in path for path in held)
    assert [*(tmp_path / "uploads").iterdir()] == []
    assert len(uploads) == 0


@pytest.mark.parametrize("swap", ["link", "other", "folder", "gone"])
def test_what_took_the_place_of_an_upload_is_not_taken(
    tmp_path: Path, clock: Clock, private: Path, swap: str
) -> None:
    uploads = make_uploads(tmp_path, clock)
    token = send(uploads)
    path = tmp_path / "uploads" / token
    path.rename(tmp_path / "away")  # kept, so that its inode is not used again
    if swap == "link":
        path.symlink_to(private)
    elif swap == "other":
        os.link(private, path)
    elif swap == "folder":
        path.mkdir()
    places: list[str] = []
    with pytest.raises(SessionError, match="did not arrive"):
        uploads.take("ours", token, lambda name: places.append(name) or tmp_path / "taken")
    assert places == []
    assert private.exists()
    assert not (tmp_path / "taken").exists()


def test_an_upload_keeps_its_bytes_and_its_name(tmp_path: Path, clock: Clock) -> None:
    uploads = make_uploads(tmp_path, clock)
    token = send(uploads, content=b"all of it")
    assert (tmp_path / "uploads" / token).stat().st_mode & 0o777 == 0o600
    for owner, named in (("theirs", token), ("ours", "../" + token), ("ours", None), ("ours", [1])):
        with pytest.raises(SessionError, match="did not arrive"):
            uploads.take(owner, named, lambda name: tmp_path / "taken")
    names: list[str] = []
    taken = uploads.take("ours", token, lambda name: names.append(name) or tmp_path / "taken")
    assert taken.read_bytes() == b"all of it"
    assert names == ["../a.npy"]
    assert len(uploads) == 0


def test_uploads_nobody_asks_for_are_deleted(tmp_path: Path, clock: Clock) -> None:
    uploads = make_uploads(tmp_path, clock, kept=60.0)
    token = send(uploads)
    clock.now += 59
    uploads.sweep()
    assert uploads.is_of("ours", token)
    clock.now += 2
    uploads.sweep()
    assert not uploads.is_of("ours", token)
    assert [*(tmp_path / "uploads").iterdir()] == []


def refusal(what: Callable[[], object]) -> int:
    with pytest.raises(RefusedError) as caught:
        what()
    return caught.value.status


def test_uploads_are_limited_in_number_size_time_and_place(tmp_path: Path, clock: Clock) -> None:
    uploads = make_uploads(tmp_path, clock, of_owner=2)
    send(uploads), send(uploads)
    assert refusal(lambda: send(uploads)) == 429
    send(uploads, "theirs")
    assert refusal(lambda: send(uploads, "large", bytes(10_001))) == 413
    small = make_uploads(tmp_path, clock, max_on_disk=5_000)
    assert refusal(lambda: send(small, content=bytes(5_000))) == 507
    (tmp_path / "sessions").mkdir()
    (tmp_path / "sessions" / "held").write_bytes(bytes(4_500))
    assert refusal(lambda: send(small, content=bytes(1_000))) == 507  # all files count
    slow = make_uploads(tmp_path, clock, stall=0.1)
    assert refusal(lambda: send(slow, pause=1.0)) == 408
    lasting = make_uploads(tmp_path, clock, stall=0.2, slowest=1e9)
    assert refusal(lambda: send(lasting, pause=0.5)) == 408
    none = make_uploads(tmp_path, clock, at_once=0)
    assert refusal(lambda: send(none)) == 503
    left = {path.name for path in (tmp_path / "uploads").iterdir()}
    assert len(left) == 3  # of those that arrived
    assert len(slow) == len(lasting) == len(small) == 0


def test_a_visit_that_fills_the_disk_may_do_no_more(tmp_path: Path, clock: Clock) -> None:
    uploads = make_uploads(tmp_path, clock, max_on_disk=2**30)
    visiting = tmp_path / "session"
    visiting.mkdir()
    uploads.check_room(visiting)
    with open(visiting / "large", "wb") as held:
        held.truncate(uploads.limits.of_visit + 1)  # takes no room on the test's disk
    with pytest.raises(SessionError, match="too much room"):
        uploads.check_room(visiting)
    with pytest.raises(SessionError, match="no room"):
        make_uploads(tmp_path, clock, max_on_disk=1000).check_room(tmp_path / "uploads")


# --- sessions ---------------------------------------------------------------------------------


def make_visits(tmp_path: Path, clock: Clock, **limits: Any) -> Sessions:
    (tmp_path / "sessions").mkdir()
    return Sessions(tmp_path / "sessions", Limits(**limits), clock)


def test_visits_end_when_nothing_is_asked(tmp_path: Path, clock: Clock) -> None:
    sessions = make_visits(tmp_path, clock, idle=100.0, absent=10.0)
    absent, present = sessions.of(OURS, "absent"), sessions.of(OURS, "present")
    with sessions.tab(OURS, "present"):
        clock.now += 11
        sessions.sweep()
        assert not absent.folder.exists()
        assert not absent.here
        assert sessions.known(OURS, "absent") is None
        assert sessions.known(OURS, "present") is present  # which is to ask for something
        clock.now += 99
        sessions.sweep()
        assert present.folder.exists()
        clock.now += 2
        sessions.sweep()
        assert not present.folder.exists()
        again = sessions.of(OURS, "present")
    assert not again.folder.exists()  # the tab was closed
    assert [*(tmp_path / "sessions").iterdir()] == []


def test_visits_without_a_tab_make_room_and_others_do_not(tmp_path: Path, clock: Clock) -> None:
    sessions = make_visits(tmp_path, clock, sessions=3, of_owner=2, of_address=9)
    with sessions.tab(OURS, "open"):
        kept = sessions.of(OURS, "open")
        first = sessions.of(OURS, "first")
        clock.now += 1
        second = sessions.of(OURS, "second")  # one too many of this owner
        assert not first.folder.exists()
        assert kept.folder.exists()
        theirs = sessions.of(THEIRS, "first")
        with (
            sessions.tab(THEIRS, "first"),
            sessions.tab(OURS, "second"),
            pytest.raises(SessionError, match="Too many"),
        ):
            sessions.of({"symsmooth": "c" * 43}, "tab")
        assert not second.folder.exists()
        assert not theirs.folder.exists()


def test_one_address_cannot_take_all_places(tmp_path: Path, clock: Clock) -> None:
    sessions = make_visits(tmp_path, clock, of_address=2)
    owners = [{"symsmooth": letter * 43} for letter in "abcd"]
    with sessions.tab(owners[0], "t"), sessions.tab(owners[1], "t"):
        for owner in owners[:2]:
            sessions.of(owner, "t", "10.0.0.1")
        with pytest.raises(SessionError, match="Too many"):
            sessions.of(owners[2], "t", "10.0.0.1")
        sessions.of(owners[3], "t", "10.0.0.2")


def test_what_a_visit_does_not_need_is_deleted(tmp_path: Path, clock: Clock) -> None:
    session = make_visits(tmp_path, clock).of(OURS, "tab")
    old, new = session.place("a.png", "reference"), session.place("b.png", "reference")
    for path in (old, new):
        path.write_bytes(b"x")
    session.reference = new
    session.tidy()
    assert old.exists()  # work may still be at it
    session.tidy(old.parent, new.parent)
    assert [*session.folder.iterdir()] == [new.parent]


def test_sessions_cost_nothing_until_they_bring_a_picture(come: Any, server: Server) -> None:
    """Two hundred sessions are invented, and each uses all controls; then somebody comes."""

    def invent(number: int) -> None:
        nobody = Person(server, tab=False)
        assert nobody.event("load", []) == 409
        assert nobody.event("start", ["denoise", "preview", True, 0, 1, ""]) == 409
        assert nobody.event("example", ["Photograph, 8 bit"]) == 409

    with ThreadPoolExecutor(100) as people:
        list(people.map(invent, range(200)))
    assert server.files("sessions/*") == []
    assert "Ready" in come().drop("a.npy", picture())


def test_more_tabs_are_open_than_gradio_has_places(come: Any) -> None:
    for _ in range(45):
        assert come().event("load", []) == 200  # lasts as long as the tab
    person = come()
    assert "Ready" in person.drop("a.npy", picture())
    assert "Done in" in person.run()


# --- requests ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "value", "status"),
    [
        ("Host", "[::1", 400), ("Host", "evil@localhost", 400), ("Host", "localhost:x", 400),
        ("Host", "", 400), ("Host", "localhost/..", 400), ("Host", "127.0.0.1, evil.example", 400),
        ("Host", "evil.example", 421), ("Host", "[::2]", 421), ("Host", "localhost.evil", 421),
        ("Host", "LOCALHOST", 200), ("Host", "[::1]:7860", 200),
        ("Origin", "http://[", 400), ("Origin", "http://", 400), ("Origin", "nonsense", 400),
        ("Origin", "http://a@127.0.0.1", 400), ("Origin", "null", 403), ("Origin", "ftp://x", 403),
        ("Origin", "http://127.0.0.1", 403), ("Content-Length", "-1", 400),
    ],
)  # fmt: skip
def test_headers_that_cannot_be(server: Server, header: str, value: str, status: int) -> None:
    assert server.ask("/config", **{header: value})[0] == status


def test_what_a_proxy_would_say_is_not_believed(server: Server) -> None:
    said = {"X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "https"}
    status, text = server.ask("/config", **said)
    assert status == 200
    assert b"evil.example" not in text
    assert json.loads(text)["root"].startswith("http://127.0.0.1")


def through_guard(tmp_path: Path, scope: dict[str, Any]) -> tuple[list[Any], list[Any]]:
    """Return what the page was asked, and what was answered."""
    asked: list[Any] = []
    sent: list[Any] = []

    async def page(scope: Any, receive: Any, send: Any) -> None:
        asked.append(scope)

    async def receive() -> Any:
        return {"type": f"{scope['type']}.connect"}

    async def send(message: Any) -> None:
        sent.append(message)

    sessions = make_visits(tmp_path, Clock())
    guard = Guard(page, frozenset({"localhost"}), make_uploads(tmp_path, Clock()), sessions)
    run_apart(guard(scope, receive, send))
    return asked, sent


@pytest.mark.parametrize(("kind", "passes"), [("lifespan", 1), ("websocket", 0), ("other", 0)])
def test_only_requests_and_the_servers_life_pass_the_guard(
    tmp_path: Path, kind: str, passes: int
) -> None:
    scope = {"type": kind, "path": "/", "headers": [(b"host", b"localhost")]}
    asked, sent = through_guard(tmp_path, scope)
    assert len(asked) == passes
    assert [message["type"] for message in sent] == (
        ["websocket.close"] if kind == "websocket" else []
    )


@pytest.mark.parametrize("name", [b"host", b"origin", b"content-length", b"cookie"])
def test_a_header_that_is_given_twice_is_refused(tmp_path: Path, name: bytes) -> None:
    headers = [(b"host", b"localhost"), (name, b"localhost"), (name, b"localhost")]
    scope = {"type": "http", "method": "GET", "path": "/", "headers": headers}
    asked, sent = through_guard(tmp_path, scope)
    assert asked == []
    assert sent[0]["status"] == 400


# --- workers ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    started = Workers(1, 2**28)
    yield started
    started.close()


def test_a_worker_answers_and_is_kept(workers: Workers) -> None:
    first = workers.call(serving.chatter)  # what is printed is no answer
    assert first != os.getpid()
    assert workers.call(serving.chatter) == first
    with pytest.raises(WorkError, match=r"^what went wrong$"):
        workers.call(serving.fail, "told")
    with pytest.raises(RuntimeError, match=r"^ZeroDivisionError$"):
        workers.call(serving.fail, "other")
    with pytest.raises(WorkError, match="not enough memory"):
        workers.call(serving.take_memory)
    assert workers.call(serving.chatter) == first


@pytest.mark.parametrize(
    ("work", "message"), [(serving.hang, "took more than 1 s"), (serving.die, "memory")]
)
def test_a_worker_that_hangs_or_dies_is_replaced(workers: Workers, work: Any, message: str) -> None:
    before = workers.call(serving.chatter)
    with pytest.raises(WorkError, match=message):
        workers.call(work, seconds=1.0)
    with pytest.raises(ProcessLookupError):
        os.kill(before, 0)
    assert workers.call(serving.chatter) not in (before, os.getpid())


def test_a_worker_that_dies_between_two_calls_is_not_noticed(workers: Workers) -> None:
    before = workers.call(serving.chatter)
    os.kill(before, 9)
    wait_for(lambda: not any(worker.alive for worker in workers._idle))
    assert workers.call(serving.chatter) != before


@pytest.mark.parametrize(
    ("work", "kept"), [(serving.wait_to_be_stopped, True), (serving.hang, False)]
)
def test_work_stops_when_asked_to(workers: Workers, work: Any, kept: bool) -> None:
    before = workers.call(serving.chatter)
    start = time.monotonic()
    with pytest.raises(Cancelled):
        workers.call(work, stopping=lambda: time.monotonic() > start + 0.2)
    assert time.monotonic() - start < 2
    assert (workers.call(serving.chatter) == before) == kept  # a stop is for one call alone


def test_closing_ends_work_and_who_waits_for_a_worker() -> None:
    closing = Workers(1, 2**28)
    pid = closing.call(serving.chatter)
    with ThreadPoolExecutor(2) as people:
        waiting = [people.submit(closing.call, serving.hang) for _ in range(2)]
        time.sleep(0.3)
        closing.close()
        for each in waiting:
            with pytest.raises((Cancelled, WorkError)):
                each.result(5)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_workers_do_not_outlive_who_started_them() -> None:
    code = (
        "import os, threading; from symsmooth.web.workers import Workers; from tests import serving; "
        "w = Workers(1, 2**28); print(w.call(serving.chatter), flush=True); "
        "threading.Thread(target=w.call, args=(serving.hang,), daemon=True).start(); "
        "import time; time.sleep(0.5); os.kill(os.getpid(), 9)"
    )
    path = os.pathsep.join([serving.ROOT, os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE, text=True, timeout=30,
    )  # fmt: skip
    pid = int(done.stdout)

    def is_gone() -> bool:
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        except FileNotFoundError:
            return True

    wait_for(is_gone)


# --- files that go wrong ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "message"),
    [("hangs.npy", "took more than 6 s"), ("greedy.npy", "not enough memory|took more than 6 s"),
     ("deadly.npy", "damaged")],
)  # fmt: skip
def test_a_file_that_goes_wrong_is_one_sentence_and_others_are_served(
    come: Any, server: Server, name: str, message: str
) -> None:
    bad, good = come(), come()
    with ThreadPoolExecutor(1) as people:
        told = people.submit(bad.drop, name, picture())
        start = time.monotonic()
        assert "Ready" in good.drop("good.npy", picture())
        assert "Done in" in good.run()
        if name == "hangs.npy":
            assert time.monotonic() - start < 6 or not told.done()
        assert re.search(message, told.result(30))  # a slow machine may run out of time first
    assert not server.files(f"sessions/*/*/{name}")
    assert "Ready" in bad.drop("better.npy", picture())


def cyclic_tiff() -> bytes:
    """Two directories, of different heights, each followed by the other."""
    import struct

    def directory(height: int, following: int) -> bytes:
        tags = [(256, 3, 1, 8), (257, 3, 1, height), (258, 3, 1, 8), (259, 3, 1, 1),
                (262, 3, 1, 1), (273, 4, 1, 8), (277, 3, 1, 1), (278, 3, 1, height),
                (279, 4, 1, 8 * height)]  # fmt: skip
        packed = b"".join(struct.pack("<HHII", *tag) for tag in tags)
        return struct.pack("<H", len(tags)) + packed + struct.pack("<I", following)

    first, size = 8 + 64, 2 + 9 * 12 + 4
    return (
        struct.pack("<2sHI", b"II", 42, first) + bytes(range(64))
        + directory(8, first + size) + directory(4, first)
    )  # fmt: skip


def test_a_tiff_without_end_stops_nobody(come: Any, server: Server) -> None:
    bad, good = come(), come()
    with ThreadPoolExecutor(1) as people:
        told = people.submit(bad.drop, "loop.tif", cyclic_tiff())
        wait_for(lambda: server.files("sessions/*/dropped-1/loop.tif") or told.done())
        assert "Ready" in good.drop("good.png", picture(format="png"))
        assert "process_completed" in told.result(30)
    assert "Ready" in bad.drop("better.npy", picture())


def test_another_picture_takes_the_place_of_one_that_hangs(come: Any, server: Server) -> None:
    person = come()
    tokens = [person.upload(name, picture())[1] for name in ("hangs.npy", "good.npy")]
    assert person.event("drop", [file_of(tokens[0])]) == 200
    wait_for(lambda: server.files("sessions/*/dropped-1/hangs.npy"))
    assert person.event("drop", [file_of(tokens[1])]) == 200
    wait_for(lambda: not server.files("sessions/*/dropped-1"), 3)  # given up before its time
    wait_for(lambda: server.files("sessions/*/dropped-2/view.html"))


def test_the_clean_picture_does_not_take_the_place_of_the_noisy_one(
    come: Any, server: Server
) -> None:
    person = come()
    tokens = [person.upload(name, picture())[1] for name in ("hangs.npy", "clean.npy")]
    assert person.event("drop", [file_of(tokens[0])]) == 200
    wait_for(lambda: server.files("sessions/*/dropped-1/hangs.npy"))
    assert person.event("clean", [file_of(tokens[1])]) == 200
    assert "took more than 6 s" in person.told(events=2)  # not killed before its time
    wait_for(lambda: server.files("sessions/*/*") == server.files("sessions/*/reference-2"))


def test_a_file_of_another_kind_is_one_sentence(come: Any, server: Server) -> None:
    for control in ("drop", "clean"):
        person = come()
        told = person.drop("notes.txt", b"Dear diary", control)
        assert "notes.txt: is not PNG, JPEG" in told
        assert str(server.folder) not in told
    assert not server.files("sessions/*/*/notes.txt")


# --- the end ----------------------------------------------------------------------------------


def test_sigterm_ends_the_server_while_it_works(tmp_path: Path) -> None:
    pytest.importorskip("gradio", reason="gradio is not installed")
    server = Server(tmp_path, HOSTILE)
    person, other = Person(server), Person(server)
    assert "Ready" in person.drop("a.npy", picture(640))
    assert person.event("start", ["epll", "preview", True, 0, 1, ""]) == 200
    _, token = other.upload("hangs.npy", picture())
    assert other.event("drop", [file_of(token)]) == 200
    wait_for(lambda: len(server.files("sessions/*/*")) == 3)  # dropped, run, hanging
    time.sleep(0.5)
    processes, start = server.processes(), time.monotonic()
    assert len(processes) >= 4
    told = server.end()
    assert time.monotonic() - start < 2
    assert told.endswith("stopped; all pictures that were dropped are deleted\n")
    assert "Traceback" not in told
    assert server.process.returncode == 0
    assert server.files("") == []
    for pid in processes:
        assert not Path(f"/proc/{pid}").exists()
    for each in (person, other):
        each.leave()


def test_sigterm_before_the_page_is_there_leaves_nothing(tmp_path: Path) -> None:
    pytest.importorskip("gradio", reason="gradio is not installed")
    server = Server(tmp_path, wait=False)
    wait_for(lambda: server.files(""), 30)
    start = time.monotonic()
    told = server.end()
    assert time.monotonic() - start < 5  # imports are under way, which cannot be interrupted
    assert "Traceback" not in told
    assert server.files("") == []


@pytest.mark.slow
def test_fifty_visitors_at_once(come: Any, server: Server) -> None:
    people = [come() for _ in range(50)]
    together = threading.Barrier(50)

    def session(number: int) -> str:
        person = people[number]
        assert person.event("load", []) == 200
        together.wait(60)
        status, token = person.upload("same.npy", picture(seed=number))
        assert status == 200, token
        assert person.event("drop", [file_of(token)]) == 200
        told = person.told(seconds=300)
        assert "Ready" in told
        return person.run("denoise") if number % 2 else person.run()

    with ThreadPoolExecutor(50) as threads:
        told = list(threads.map(session, range(50)))
    assert all("Done in" in text for text in told)
    assert len(server.processes()) == 4  # the server, two readers, one runner
    assert (
        np.unique([path.parent.parent for path in server.files("sessions/*/run-*/*.npy")]).size
        == 50
    )
