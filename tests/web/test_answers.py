"""What is answered: no places of files, parts of downloads, archives; and no more than was asked for."""

from __future__ import annotations

import io
import json
import socket
import time
import zipfile
from pathlib import Path
from typing import Any

from symsmooth.web.handlers import pack

from ..serving import HOSTILE, Person, Server, picture


def test_a_picture_that_is_named_often_is_done_once(come: Any, server: Server) -> None:
    person = come()
    id = person.drop("a.npy", picture())["id"]
    worked = server.seconds_of_work()
    given = {"pictures": [id] * 4000, "settings": {"method": "gaussian"}}
    assert person.post(f"{person.here}/denoise", given)[0] == 200
    assert server.ask("/api/about")[0] == 200
    shown = person.wait()["pictures"][0]
    assert server.seconds_of_work() - worked < 10  # of the processor; 4000 runs would be minutes
    assert shown["result"]["number"] < 10
    assert len(server.files("*/run-*")) == 1


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


def test_archives_that_nobody_reads_take_no_room(come: Any, server: Server) -> None:
    person = come()
    for number in range(3):
        person.drop(f"a{number}.npy", picture(900))
    person.run()
    before = sum(path.stat().st_size for path in server.files("**/*") if path.is_file())
    lines = [
        f"GET {person.here}/results.zip HTTP/1.1", f"Host: 127.0.0.1:{server.port}",
        f"Cookie: {person.cookie}",
    ]  # fmt: skip
    held = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(20)]
    for each in held:
        each.sendall("\r\n".join([*lines, "", ""]).encode())
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
    server = Server(tmp_path, HOSTILE + "; controller._RUN_SECONDS = 0.5")
    person = Person(server)
    person.drop("a.npy", picture(640))
    shown = person.run("epll")
    assert shown["ended"][0] == "bad"
    assert "took more than" in shown["ended"][1]
    assert "faster method" in shown["ended"][1]
    server.end()
