"""A server in a process of its own, visitors who speak to it without a browser, and files that hang."""

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
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from symsmooth.web import tasks
from symsmooth.web.worker import Reporter

ROOT = str(Path(__file__).parents[1])  # where workers find this module


def wait_for(what: Callable[[], object], seconds: float = 10.0) -> None:
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
        self._numbers: dict[str, int] = {}
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

    def ask(self, path: str, method: str = "GET", **headers: str) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        found = answer.status, answer.read()
        connection.close()
        return found

    def number_of(self, control: str) -> int:
        """Return the number of what a control does."""
        if not self._numbers:
            config = json.loads(self.ask("/config")[1])
            names = {c["id"]: c["props"].get("elem_id") for c in config["components"]}
            for event in config["dependencies"]:
                target = event["targets"][0] if event["targets"] else [None, ""]
                name = names.get(target[0]) or target[1]
                self._numbers.setdefault(name, event["id"])
        return self._numbers[control]

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

    def end(self) -> str:
        self.process.terminate()
        _, told = self.process.communicate(timeout=20)
        return told


class Person:
    """Somebody at the page, without a browser: a cookie, a session, and an open tab."""

    def __init__(self, server: Server, *, tab: bool = True) -> None:
        self.server, self.session = server, secrets.token_hex(6)
        self.cookie = f"symsmooth={secrets.token_urlsafe(32)}"
        self._streams: list[socket.socket] = []
        if tab:
            self._streams.append(self.stream(f"/gradio_api/heartbeat/{self.session}"))

    def ask(
        self, path: str, method: str = "GET", body: bytes | None = None, **headers: str
    ) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=120)
        connection.request(method, path, body, {"Cookie": self.cookie, **headers})
        answer = connection.getresponse()
        found = answer.status, answer.read()
        connection.close()
        return found

    def stream(self, path: str) -> socket.socket:
        """Open a connection that lasts; its first bytes have come."""
        opened = socket.create_connection(("127.0.0.1", self.server.port), timeout=120)
        host = f"Host: 127.0.0.1:{self.server.port}"
        opened.sendall(f"GET {path} HTTP/1.1\r\n{host}\r\nCookie: {self.cookie}\r\n\r\n".encode())
        start = b""
        while b"\r\n\r\n" not in start:
            start += opened.recv(1)
        assert b" 200 " in start.partition(b"\r\n")[0], start
        return opened

    def upload(self, name: str, content: bytes, **headers: str) -> tuple[int, Any]:
        """Send a file; return the status and what it is called."""
        body, kind = form((name, content))
        headers = {"Content-Type": kind, **headers}
        status, text = self.ask("/gradio_api/upload", "POST", body, **headers)
        return status, json.loads(text)[0] if status == 200 else text.decode()

    def event(self, control: str, data: list[Any]) -> int:
        """Use a control; return the status of the answer."""
        event = {
            "data": data, "fn_index": self.server.number_of(control), "session_hash": self.session,
            "event_data": None, "trigger_id": None,
        }  # fmt: skip
        return self.ask(
            "/gradio_api/queue/join", "POST", json.dumps(event).encode(),
            **{"Content-Type": "application/json"},
        )[0]  # fmt: skip

    def told(self, events: int = 1, seconds: float = 60.0) -> str:
        """Return all that is told until so many events have ended, as text."""
        opened = self.stream(f"/gradio_api/queue/data?session_hash={self.session}")
        opened.settimeout(1.0)
        text, end = b"", time.monotonic() + seconds
        try:
            while text.count(b"process_completed") < events or not text.endswith(b"\n\r\n"):
                assert time.monotonic() < end, f"nothing came: {text[-2000:]!r}"
                try:
                    more = opened.recv(2**16)
                except TimeoutError:
                    continue
                if not more:
                    break
                text += more
        finally:
            opened.close()
        return text.decode("utf-8", "replace").encode().decode("unicode_escape", "replace")

    def drop(self, name: str, content: bytes, control: str = "drop") -> str:
        """Upload a picture and have it looked at; return what is told."""
        status, token = self.upload(name, content)
        assert status == 200, token
        assert self.event(control, [file_of(token)]) == 200
        return self.told()

    def run(self, method: str = "gaussian") -> str:
        """Denoise what was dropped; return what is told."""
        assert self.event("start", [method, "preview", True, 0, 1, ""]) == 200
        return self.told()

    def leave(self) -> None:
        """Close the tab."""
        for each in self._streams:
            each.close()


def file_of(path: str, **more: Any) -> dict[str, Any]:
    """A file as an event names it."""
    return {"path": path, "meta": {"_type": "gradio.FileData"}, **more}


def form(*files: tuple[str, bytes]) -> tuple[bytes, str]:
    """Return files as the body of a request, and its kind."""
    parts = [
        f'--x\r\nContent-Disposition: form-data; name="files"; filename="{name}"\r\n'
        "Content-Type: application/octet-stream\r\n\r\n".encode()
        + content
        + b"\r\n"
        for name, content in files
    ]
    return b"".join(parts) + b"--x--\r\n", "multipart/form-data; boundary=x"


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


def look(path: Path, max_bytes: int, reporter: Reporter) -> Any:
    """Look at a picture, unless its name says what goes wrong."""
    if "hangs" in path.name:
        hang(reporter)
    if "greedy" in path.name:
        take_memory(reporter)
    if "deadly" in path.name:
        die(reporter)
    return _look(path, max_bytes, reporter)


_look = tasks.look


def hang(reporter: Reporter) -> None:
    while True:
        pass


def wait_to_be_stopped(reporter: Reporter) -> None:
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
    raise {"told": ValueError, "other": ZeroDivisionError}[kind]("what went wrong")


def chatter(reporter: Reporter) -> int:
    os.write(1, b"a library prints")
    print("and so does Python")
    return os.getpid()


def run_apart(coroutine: Any) -> Any:
    """Run a coroutine in a thread of its own: a browser driven before leaves a loop running in this one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()
