"""Fifty visitors at once: each is served in turn, memory and disk are given back.

Usage: python benchmarks/load.py [--visitors 50] [--pictures 1] [--side 96].

Starts ``symsmooth serve`` on a free port of this machine, sends every visitor at the same moment, and
prints what they waited and what the server took.  Fails if a visitor is not served, if what they wait is
not their turn, or if anything is left behind.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import secrets
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import numpy as np

_LEFT = 64  # MB that a server may keep after all visitors are gone: caches of its processes
_FAIR = 3.0  # times the median: the longest wait of equal visitors who come at once


class Server:
    """The server, in a process of its own with a folder of its own."""

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)
        start = time.perf_counter()
        code = "from symsmooth.cli import main; main()"
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, "serve", "--port", "0", "--no-browser"],
            env={**os.environ, "TMPDIR": folder}, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self.process.stderr is not None
        found = re.search(r":(\d+)/", self.process.stderr.readline())
        assert found, "the server did not start"
        self.port = int(found[1])
        self.ask("/api/about")
        self.start_seconds = time.perf_counter() - start

    def ask(
        self, path: str, method: str = "GET", body: bytes | None = None, **headers: str
    ) -> tuple[int, bytes]:
        """Return status and body of an answer."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=600)
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        found = answer.status, answer.read()
        connection.close()
        return found

    def megabytes(self) -> float:
        """Return the memory of server and workers, shared pages counted once."""
        pid, total = self.process.pid, 0
        children = Path(f"/proc/{pid}/task").glob("*/children")
        for each in [pid, *(int(c) for path in children for c in path.read_text().split())]:
            text = Path(f"/proc/{each}/smaps_rollup").read_text()
            found = re.search(r"^Pss: +(\d+) kB", text, re.MULTILINE)
            total += int(found[1]) if found else 0
        return total / 1024

    def files(self) -> list[Path]:
        """Return all files that the server has."""
        return [path for path in self.folder.rglob("*") if path.is_file()]


class Visitor:
    """Drops pictures, has them denoised, fetches the results, leaves."""

    def __init__(self, server: Server) -> None:
        self.server, self.visit = server, ""
        self.cookie = f"symsmooth={secrets.token_urlsafe(32)}"

    def ask(self, path: str, method: str = "GET", body: bytes | None = None, **headers: str) -> Any:
        """Return the body of an answer that must be good."""
        status, text = self.server.ask(path, method, body, Cookie=self.cookie, **headers)
        if status != 200:
            raise RuntimeError(f"{method} {path}: {status} {text[:200]!r}")
        return text

    def drop(self, content: bytes) -> None:
        """Send a picture."""
        headers = {"Content-Type": "application/octet-stream", "X-File-Name": "picture.npy"}
        if self.visit:
            headers["X-Visit"] = self.visit
        self.visit = json.loads(self.ask("/api/pictures", "POST", content, **headers))["visit"]

    def wait(self) -> list[dict[str, Any]]:
        """Return the pictures once nothing is done any more."""
        while True:
            state = json.loads(self.ask(f"/api/visits/{self.visit}/state"))
            if not state["progress"]:
                return list(state["pictures"])
            time.sleep(0.1)

    def denoise(self) -> int:
        """Have all pictures denoised and fetch the results; return how many."""
        ids = [each["id"] for each in self.wait()]
        settings = {"method": "denoise", "quality": "preview"}
        body = json.dumps({"pictures": ids, "settings": settings}).encode()
        kind = {"Content-Type": "application/json"}
        self.ask(f"/api/visits/{self.visit}/denoise", "POST", body, **kind)
        done = self.wait()
        for each in done:
            if each["result"] is None:
                raise RuntimeError(f"{each['name']}: {each['ended']}")
            self.ask(f"/api/visits/{self.visit}/{each['id']}/result")
        return len(done)

    def leave(self) -> None:
        """End the visit."""
        self.ask(f"/api/visits/{self.visit}", "DELETE")


def visit(server: Server, content: bytes, pictures: int, together: threading.Barrier) -> float:
    """Be one of many; return the seconds from dropping to the last result."""
    visitor = Visitor(server)
    together.wait(60)
    start = time.perf_counter()
    for _ in range(pictures):
        visitor.drop(content)
    visitor.denoise()
    seconds = time.perf_counter() - start
    visitor.leave()
    return seconds


def picture(side: int) -> bytes:
    noisy = np.random.default_rng(0).normal(128, 20, (side, side))
    held = io.BytesIO()
    np.save(held, np.clip(noisy, 0, 255).astype(np.uint8))
    return held.getvalue()


def main() -> int:
    parser = argparse.ArgumentParser(description="Load test of symsmooth serve.")
    parser.add_argument("--visitors", type=int, default=50)
    parser.add_argument("--pictures", type=int, default=1, help="of each visitor")
    parser.add_argument("--side", type=int, default=96)
    asked = parser.parse_args()
    content = picture(asked.side)
    with tempfile.TemporaryDirectory() as folder:
        server = Server(folder)
        idle = server.megabytes()
        print(f"start {server.start_seconds:.2f} s, idle {idle:.0f} MB")
        visit(server, content, 1, threading.Barrier(1))  # workers are warm
        warm, most = server.megabytes(), 0.0
        together = threading.Barrier(asked.visitors)
        with ThreadPoolExecutor(asked.visitors) as threads:
            start = time.perf_counter()
            waiting = [
                threads.submit(visit, server, content, asked.pictures, together)
                for _ in range(asked.visitors)
            ]
            while not all(each.done() for each in waiting):
                most = max(most, server.megabytes())
                time.sleep(0.2)
        seconds = sorted(each.result() for each in waiting)  # raises what went wrong
        total, median = time.perf_counter() - start, seconds[len(seconds) // 2]
        left, after = server.files(), server.megabytes()
        server.process.terminate()
        server.process.wait(10)
        remains = server.files()
    print(f"{asked.visitors} visitors, {asked.pictures} pictures each: all in {total:.1f} s")
    print(f"waited: first {seconds[0]:.1f}, median {median:.1f}, last {seconds[-1]:.1f} s")
    print(f"memory: warm {warm:.0f}, at most {most:.0f}, after {after:.0f} MB")
    print(f"files: {len(left)} after all left, {len(remains)} after the end")
    fair = seconds[-1] < _FAIR * median + 1.0
    return 0 if fair and not left and not remains and after < warm + _LEFT else 1


if __name__ == "__main__":
    sys.exit(main())
