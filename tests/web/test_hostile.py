"""Files that go wrong, servers that end: one sentence, nothing left, others are served."""

from __future__ import annotations

import re
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from ..serving import HOSTILE, Person, Server, picture, wait_for


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
        dropping = people.submit(bad.drop, name, picture())
        start = time.monotonic()
        assert good.drop("good.npy", picture())["info"]
        assert good.run()["result"]
        if name == "hangs.npy":
            assert time.monotonic() - start < 6 or not dropping.done()
        kind, text = dropping.result(30)["ended"]
        assert kind == "bad"
        assert re.search(message, text)  # a slow machine may run out of time first
    assert not server.files(f"*/*/{name}")
    assert bad.drop("better.npy", picture())["info"]


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


def test_a_tiff_without_end_stops_nobody(come: Any) -> None:
    bad, good = come(), come()
    with ThreadPoolExecutor(1) as people:
        dropping = people.submit(bad.drop, "loop.tif", cyclic_tiff())
        assert good.drop("good.png", picture(format="png"))["info"]
        assert dropping.result(30)["ended"][0] in ("bad", "good")
    assert bad.drop("better.npy", picture())["info"]


def test_the_clean_picture_does_not_take_the_place_of_the_noisy_one(come: Any) -> None:
    person = come()
    id = person.drop("noisy.npy", picture())["id"]
    for name, content, message in (
        ("small.npy", picture(8), "is 8 x 8, the noisy picture 64 x 64"),
        ("notes.txt", b"Dear diary", "is not PNG, JPEG"),
    ):
        assert person.upload(name, content, **{"X-Clean-Of": id})[0] == 200
        person.wait()
        shown = person.picture(id)
        assert message in shown["reference"][1]
        assert shown["info"]  # still there
        assert shown["ended"][0] == "good"
    assert person.upload("clean.npy", picture(seed=1), **{"X-Clean-Of": id})[0] == 200
    person.wait()
    assert person.picture(id)["reference"] == ["clean.npy", ""]


def test_a_file_of_another_kind_is_one_sentence(come: Any, server: Server) -> None:
    kind, text = come().drop("notes.txt", b"Dear diary")["ended"]
    assert kind == "bad"
    assert text.startswith("notes.txt: is not PNG, JPEG")
    assert str(server.folder) not in text
    assert not server.files("*/*/notes.txt")


def test_what_unpacks_to_too_much_is_refused(come: Any) -> None:
    import io

    import numpy as np
    import tifffile

    held = io.BytesIO()
    tifffile.imwrite(held, np.zeros((2500, 2500), np.uint8), compression="zlib")
    assert len(held.getvalue()) < 1e5
    _, text = come().drop("bomb.tif", held.getvalue())["ended"]
    assert "unpacks to more than" in text


def test_a_result_does_not_stand_under_an_error(come: Any, server: Server) -> None:
    """A run that fails takes the result of the one before it away."""
    person = come()
    person.drop("a.npy", picture())
    assert person.run()["result"]
    shown = person.run("denoise", noise="box", box=[60, 60, 32, 32])
    assert shown["ended"][0] == "bad"
    assert "region" in shown["ended"][1] or "box" in shown["ended"][1]
    assert shown["result"] is None
    wait_for(lambda: not server.files("*/run-*"))


# --- the end ----------------------------------------------------------------------------------


def test_sigterm_ends_the_server_while_it_works(tmp_path: Path) -> None:
    server = Server(tmp_path, HOSTILE)
    person, other = Person(server), Person(server)
    person.drop("a.npy", picture(640))
    person.open_tab()
    assert person.start("epll") == 200
    assert other.upload("hangs.npy", picture())[0] == 200
    wait_for(lambda: len(server.files("*/*")) == 3)  # dropped, run, hanging
    wait_for(lambda: len(server.processes()) >= 4)
    processes = server.processes()
    output = server.end()
    assert output.endswith("stopped; all pictures that were dropped are deleted\n")
    assert "Traceback" not in output
    assert server.process.returncode == 0
    assert server.files("") == []
    for pid in processes:
        assert not Path(f"/proc/{pid}").exists()
    person.close_tabs()


# Where a server that starts is when it is ended: it notes the time, and sends itself the signal.
STAGES = {
    "loading": ("symsmooth.web.controller", None),  # its libraries are being imported
    "its processes": ("symsmooth.web.pool", "Pool.__init__"),
    "its addresses": ("symsmooth.web.handlers", "Handlers.app"),
    "listening": ("uvicorn.server", "Server.startup"),
    "ready": ("uvicorn.server", "Server.main_loop"),
}
END_AT = """
import importlib.abc, importlib.util, os, signal, sys, time
def end():
    with open({noted!r}, "w") as out: out.write(str(time.time()))
    os.kill(os.getpid(), signal.SIGTERM)
class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name != {module!r}: return None
        sys.meta_path.remove(self)
        if {function!r} is None: return end()
        spec = importlib.util.find_spec(name)
        load = spec.loader.exec_module
        def exec_module(module):
            load(module)
            owner, _, name = {function!r}.rpartition(".")
            place = getattr(module, owner) if owner else module
            real = getattr(place, name)
            def ended(*given, **more):
                end()
                return real(*given, **more)
            setattr(place, name, ended)
        spec.loader.exec_module = exec_module
        return spec
sys.meta_path.insert(0, Finder())
"""


@pytest.mark.parametrize("stage", STAGES)
def test_sigterm_while_it_starts_ends_it_and_leaves_nothing(tmp_path: Path, stage: str) -> None:
    module, function = STAGES[stage]
    noted = tmp_path / "noted"
    prepare = END_AT.format(noted=str(noted), module=module, function=function)
    server = Server(tmp_path, prepare, wait=False)
    _, output = server.process.communicate(timeout=120)
    assert noted.exists()
    assert output.endswith("stopped; all pictures that were dropped are deleted\n")
    assert "Traceback" not in output
    assert server.process.returncode == 0
    assert server.files("") == []


@pytest.mark.parametrize("seconds", [0.0, 0.1, 0.3])
def test_sigterm_before_it_has_anything_ends_it_too(tmp_path: Path, seconds: float) -> None:
    server = Server(tmp_path, wait=False)
    time.sleep(seconds)
    assert "Traceback" not in server.end()
    assert server.files("") == []


def test_a_closed_terminal_ends_it_too(tmp_path: Path) -> None:
    server = Server(tmp_path)
    person = Person(server)
    person.drop("a.npy", picture())
    server.process.send_signal(signal.SIGHUP)
    _, output = server.process.communicate(timeout=120)
    assert output.endswith("stopped; all pictures that were dropped are deleted\n")
    assert "Traceback" not in output
    assert server.process.returncode == 0
    assert server.files("") == []


def test_a_server_nobody_uses_is_small(tmp_path: Path) -> None:
    server = Server(tmp_path)
    assert server.ask("/api/about")[0] == 200
    assert len(server.processes()) == 1  # no worker yet
    assert server.memory() < 120e6
    server.end()
