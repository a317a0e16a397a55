"""What visitors send: streamed to disk within limits, known to its sender alone."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from symsmooth.web import uploads as web_uploads
from symsmooth.web.errors import RefusedError, SessionError
from symsmooth.web.uploads import Uploads

from ..serving import Server, picture, run_apart, wait_for


def make_uploads(folder: Path, clock: Any, **limits: Any) -> Uploads:
    most = limits.pop("max_on_disk", None)
    (folder / "uploads").mkdir(exist_ok=True)
    limits = {"max_bytes": 10_000, **limits}
    return Uploads(folder / "uploads", web_uploads.Limits(**limits), most, clock)


def send(
    uploads: Uploads,
    owner: str = "ours",
    content: bytes = b"xy",
    pause: float = 0.0,
    announced: int | None = None,
) -> str:
    """Send a file, half of it after a pause; or more, or less, than was announced."""

    async def chunks() -> AsyncIterator[bytes]:
        yield content[: len(content) // 2]
        await asyncio.sleep(pause)
        yield content[len(content) // 2 :]

    size = len(content) if announced is None else announced
    return run_apart(uploads.receive(owner, "10.0.0.1", "../a.npy", size, chunks()))


def refusal(what: Callable[[], object]) -> int:
    with pytest.raises(RefusedError) as caught:
        what()
    return caught.value.status


@pytest.fixture
def private(tmp_path: Path) -> Path:
    """A picture that nobody has uploaded."""
    path = tmp_path / "private.npy"
    path.write_bytes(picture(seed=7))
    return path


def test_no_file_of_a_broken_upload_stays_open(tmp_path: Path, clock: Any) -> None:
    uploads = make_uploads(tmp_path, clock, max_bytes=2**23, stall=0.2)
    large = bytes(2**22)
    with pytest.raises(RefusedError) as broken:  # an error keeps what it met alive
        send(uploads, content=large, announced=2**22 + 1)
    with pytest.raises(RefusedError) as late:
        send(uploads, content=large, pause=1.0)
    held = [os.path.realpath(fd) for fd in Path("/proc/self/fd").iterdir()]
    assert (broken.value.status, late.value.status) == (400, 408)
    assert not any(str(tmp_path) in path for path in held)
    assert [*(tmp_path / "uploads").iterdir()] == []
    assert len(uploads) == 0


@pytest.mark.parametrize("swap", ["link", "other", "folder", "gone"])
def test_what_took_the_place_of_an_upload_is_not_taken(
    tmp_path: Path, clock: Any, private: Path, swap: str
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


def test_an_upload_keeps_its_bytes_and_its_name(tmp_path: Path, clock: Any) -> None:
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


def test_uploads_nobody_takes_are_deleted(tmp_path: Path, clock: Any) -> None:
    uploads = make_uploads(tmp_path, clock, kept=60.0)
    send(uploads)
    clock.now += 59
    uploads.sweep()
    assert len(uploads) == 1
    clock.now += 2
    uploads.sweep()
    assert len(uploads) == 0
    assert [*(tmp_path / "uploads").iterdir()] == []


def test_uploads_are_limited_in_number_size_time_and_place(tmp_path: Path, clock: Any) -> None:
    uploads = make_uploads(tmp_path, clock, of_owner=2)
    send(uploads), send(uploads)
    assert refusal(lambda: send(uploads)) == 429
    send(uploads, "theirs")
    assert refusal(lambda: send(uploads, "large", bytes(10_001))) == 413
    assert refusal(lambda: send(uploads, "more", bytes(100), announced=50)) == 400
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


def test_a_visit_that_fills_the_disk_may_do_no_more(tmp_path: Path, clock: Any) -> None:
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


# --- through the server -----------------------------------------------------------------------


def test_uploads_need_the_cookie_and_say_what_they_are(come: Any, server: Server) -> None:
    person = come()
    assert person.upload("a.npy", picture(), Cookie="")[0] == 403
    assert person.upload("a.npy", picture(), Cookie="symsmooth=short")[0] == 403
    assert person.upload("a.npy", bytes(2**20 + 1))[0] == 413
    for kind in ("multipart/form-data; boundary=x", "text/plain", ""):  # what forms can send
        assert person.upload("a.npy", picture(), **{"Content-Type": kind})[0] == 415
    assert person.ask("/api/pictures")[0] == 405
    assert server.files("uploads/*") == server.files("sessions/*") == []
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
    for path in server.files("sessions/*/*/*"):
        assert path.is_file()
        assert not path.is_symlink()
    assert len(server.files("sessions/*/*/.view.npy")) == 6
    for header in ({"X-Visit": "../x"}, {"X-Visit": "x" * 32}, {"X-Clean-Of": "../p1"}):
        assert person.upload("a.npy", picture(), **header)[0] == 404
    assert person.post("/api/examples", {"example": str(private)})[0] == 422


def test_an_upload_is_for_its_sender_alone(come: Any) -> None:
    ours, theirs = come(), come()
    ours.drop("a.npy", picture())
    status, _ = theirs.upload("b.npy", picture(), **{"X-Visit": ours.visit})
    assert status == 404
    assert len(ours.state()["pictures"]) == 1


def test_two_visitors_drop_the_same_file(come: Any) -> None:
    first, second = come(), come()
    assert first.drop("same.npy", picture())["info"]
    assert second.drop("same.npy", picture())["info"]
    assert first.visit != second.visit


def test_uploads_that_are_broken_off_leave_nothing(come: Any, server: Server) -> None:
    person = come()
    sent = (
        f"POST /api/pictures HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nCookie: {person.cookie}\r\n"
        "Content-Type: application/octet-stream\r\nContent-Length: 1000000\r\n\r\n"
    ).encode() + bytes(500_000)
    broken = []
    for _ in range(20):
        broken.append(socket.create_connection(("127.0.0.1", server.port), timeout=20))
        broken[-1].sendall(sent)
    wait_for(lambda: person.upload("a.npy", picture())[0] == 429)  # so many are under way
    for each in broken:
        each.close()
    wait_for(lambda: person.upload("a.npy", picture())[0] == 200)
    wait_for(lambda: server.files("uploads/*") == [])


def test_a_visit_may_have_so_many_pictures(come: Any, server: Server) -> None:
    person = come()
    statuses = {person.upload(f"{n}.npy", picture(8))[0] for n in range(30)}
    assert statuses == {200}
    status, answer = person.upload("more.npy", picture(8))
    assert (status, answer["error"]) == (
        422,
        "There may be 30 pictures at a time; remove some of them.",
    )
    assert server.files("uploads/*") == []
