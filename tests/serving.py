"""A server in a process of its own, people who speak to it without a browser, and files that hang."""

from __future__ import annotations

import asyncio
import http.client
import io
import json
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
from PIL import Image

from symsmooth.core.user_warnings import UnitsWarning, warn_user
from symsmooth.web import tasks
from symsmooth.web.settings import Settings
from symsmooth.web.worker import Reporter

ROOT = str(Path(__file__).parents[1])  # where workers find this module


def wait_for(what: Callable[[], object], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


# Whoever is asked outside this machine is written down, and does not answer.
UNPLUGGED = """
import os, socket, sys
def near(host): return host in (None, "", "127.0.0.1", "localhost", "::1", b"127.0.0.1")
def note(host):
    with open(os.environ["ASKED"], "a") as out: print(host, file=out)
    raise OSError("the network is unplugged")
def connect(self, address, real=socket.socket.connect):
    if self.family in (socket.AF_INET, socket.AF_INET6) and not near(address[0]): note(address)
    return real(self, address)
def getaddrinfo(host, *rest, real=socket.getaddrinfo, **more):
    if not near(host): note(host)
    return real(host, *rest, **more)
socket.socket.connect, socket.getaddrinfo = connect, getaddrinfo
{prepare}
from symsmooth.cli import main
main()
"""


class Server:
    """``symsmooth serve`` in a process of its own."""

    def __init__(self, folder: Path, prepare: str = "", wait: bool = True) -> None:
        self.folder, self.asked = folder, folder / "asked.txt"
        self.asked.touch()
        (folder / "tmp").mkdir()
        path = os.pathsep.join([ROOT, *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = {**os.environ, "TMPDIR": str(folder / "tmp"), "PYTHONPATH": path}
        environment["ASKED"] = str(self.asked)
        options = ["--port", "0", "--no-browser", "--max-upload", "1"]
        self.process = subprocess.Popen(
            [sys.executable, "-c", UNPLUGGED.replace("{prepare}", prepare), "serve", *options],
            env=environment, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        if wait:
            self.wait()

    def wait(self) -> None:
        """Until its address is known."""
        assert self.process.stderr is not None
        found = re.search(r"http://127\.0\.0\.1:(\d+)/", self.process.stderr.readline())
        assert found, self.process.stderr.read()
        self.address, self.port = found[0], int(found[1])

    def ask(
        self, path: str, method: str = "GET", body: bytes | None = None, **headers: str
    ) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        with suppress(
            BrokenPipeError, ConnectionResetError
        ):  # it may answer before it has read all
            connection.request(method, path, body, headers)
        answer = connection.getresponse()
        found = answer.status, answer.read()
        connection.close()
        return found

    def files(self, pattern: str) -> list[Path]:
        return sorted((self.folder / "tmp").glob(f"symsmooth-serve-*/{pattern}"))

    def processes(self) -> list[int]:
        """The server's and those of its workers."""
        pid = self.process.pid
        children = Path(f"/proc/{pid}/task").glob("*/children")
        return [pid, *(int(child) for path in children for child in path.read_text().split())]

    def seconds_of_work(self) -> float:
        total = 0
        for pid in self.processes():
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            total += int(fields[11]) + int(fields[12])
        return total / os.sysconf("SC_CLK_TCK")

    def memory(self) -> int:
        """Bytes of the server and its workers, shared ones counted once."""
        total = 0
        for pid in self.processes():
            text = Path(f"/proc/{pid}/smaps_rollup").read_text()
            found = re.search(r"^Pss: +(\d+) kB", text, re.MULTILINE)
            total += 1024 * int(found[1]) if found else 0
        return total

    def end(self) -> str:
        self.process.terminate()
        _, output = self.process.communicate(timeout=120)
        return output


class Person:
    """Somebody at the page, without a browser: a cookie and, once a picture is sent, a session."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.cookie = f"symsmooth={secrets.token_urlsafe(32)}"
        self.session = ""
        self._streams: list[socket.socket] = []

    def ask(
        self, path: str, method: str = "GET", body: bytes | None = None, **headers: str
    ) -> tuple[int, bytes]:
        return self.server.ask(path, method, body, **{"Cookie": self.cookie, **headers})

    def post(self, path: str, given: Any = None) -> tuple[int, Any]:
        """Send JSON; return the status and the answer."""
        body = given if isinstance(given, bytes) else json.dumps(given or {}).encode()
        status, text = self.ask(path, "POST", body, **{"Content-Type": "application/json"})
        return status, json.loads(text)

    @property
    def here(self) -> str:
        return f"/api/sessions/{self.session}"

    def upload(self, name: str, content: bytes, **headers: str) -> tuple[int, Any]:
        """Send a file; return the status and the answer."""
        kind = {"Content-Type": "application/octet-stream", "X-File-Name": quote(name)}
        if self.session:
            kind["X-Session"] = self.session
        status, text = self.ask("/api/pictures", "POST", content, **{**kind, **headers})
        answer = json.loads(text)
        if status == 200:
            self.session = answer["session"]
        return status, answer

    def state(self) -> dict[str, Any]:
        status, text = self.ask(f"{self.here}/state")
        assert status == 200, text
        return json.loads(text)

    def picture(self, id: str) -> dict[str, Any]:
        return next(each for each in self.state()["pictures"] if each["id"] == id)

    def wait(self, seconds: float = 60.0) -> dict[str, Any]:
        """Until nothing is done any more."""
        end = time.monotonic() + seconds
        while (state := self.state())["progress"]:
            assert time.monotonic() < end, state
            time.sleep(0.05)
        return state

    def drop(self, name: str, content: bytes) -> dict[str, Any]:
        """Upload a picture and have it looked at; return it."""
        status, answer = self.upload(name, content)
        assert status == 200, answer
        self.wait()
        return self.picture(answer["picture"])

    def start(self, method: str = "gaussian", **settings: Any) -> int:
        """Denoise what was dropped; return the status of the answer."""
        given = {"method": method, "quality": "preview", **settings}
        ids = [each["id"] for each in self.state()["pictures"]]
        return self.post(f"{self.here}/denoise", {"pictures": ids, "settings": given})[0]

    def run(
        self, method: str = "gaussian", seconds: float = 60.0, **settings: Any
    ) -> dict[str, Any]:
        """Denoise what was dropped; return the first picture."""
        assert self.start(method, **settings) == 200
        return self.wait(seconds)["pictures"][0]

    def open_tab(self) -> socket.socket:
        """Open the stream of events; its first bytes have come."""
        opened = socket.create_connection(("127.0.0.1", self.server.port), timeout=120)
        host = f"Host: 127.0.0.1:{self.server.port}"
        request = f"GET {self.here}/events HTTP/1.1\r\n{host}\r\nCookie: {self.cookie}\r\n\r\n"
        opened.sendall(request.encode())
        start = b""
        while b"\r\n\r\n" not in start:
            start += opened.recv(1)
        assert b" 200 " in start.partition(b"\r\n")[0], start
        self._streams.append(opened)
        return opened

    def close_tabs(self) -> None:
        for each in self._streams:
            each.close()

    def leave(self) -> None:
        """End the session."""
        self.close_tabs()
        if self.session:
            self.ask(self.here, "DELETE")


def picture(side: int = 64, seed: int = 0, format: str = "npy") -> bytes:
    """A noisy picture as a file."""
    noisy = np.random.default_rng(seed).normal(100, 20, (side, side))
    pixels = np.clip(noisy, 0, 255).astype(np.uint8)
    held = io.BytesIO()
    if format == "npy":
        np.save(held, pixels)
    else:
        Image.fromarray(pixels).save(held, format)
    return held.getvalue()


# --- work that goes wrong, in a worker --------------------------------------------------------

# A server whose workers take their tasks from here, and which waits less long for them.
HOSTILE = (
    "from symsmooth.web import controller, pool; "
    "pool.TASKS = 'tests.serving:'; controller.SECONDS = 6.0"
)


def __getattr__(name: str) -> Any:
    return getattr(tasks, name)


def inspect_file(path: Path, folder: Path, max_bytes: int, reporter: Reporter) -> Any:
    """Inspect a picture, unless its name says what goes wrong."""
    if "hangs" in path.name:
        hang(reporter)
    if "greedy" in path.name:
        take_memory(reporter)
    if "deadly" in path.name:
        die(reporter)
    return tasks.inspect_file(path, folder, max_bytes, reporter)


def hang(*given: Any) -> None:
    """Never end, whatever is asked; a file is made at the beginning, if one is named."""
    _begin(*given[:-1])
    while True:
        pass


def _begin(*files: str) -> None:
    for file in files:
        Path(file).touch()


def wait_to_be_stopped(*given: Any) -> None:
    """End when asked to; a file is made at the beginning, if one is named."""
    *files, reporter = given
    _begin(*files)
    while True:
        reporter.progress(0.5, "waiting")
        time.sleep(0.01)


def take_memory(reporter: Reporter) -> None:
    held = []
    while True:
        held.append(bytearray(2**26))


def die(reporter: Reporter) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def fail(kind: str, reporter: Reporter) -> None:
    raise {"expected": ValueError, "unexpected": ZeroDivisionError}[kind]("what went wrong")


def warn_twice(reporter: Reporter) -> None:
    warn_user("of units, in whatever words", UnitsWarning)
    warn_user("of something else")


def chatter(reporter: Reporter) -> int:
    os.write(1, b"a library prints")
    print("and so does Python")
    return os.getpid()


def reporter() -> Reporter:
    """Return one that nobody hears."""
    return Reporter(1, lambda *message: None, set())


def asked(**given: Any) -> dict[str, Any]:
    """Return settings as the page sends them, for a quick result."""
    return Settings.of({"quality": "preview", **given}).as_json()


def run_apart(coroutine: Any) -> Any:
    """Run a coroutine in a thread of its own: a browser driven before leaves a loop running in this one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()
