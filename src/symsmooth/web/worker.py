"""The body of a process of ``pool``: does what it is asked to, within its memory, until nobody asks.

It hears ("call", number, work, arguments) and ("stop", number) on its standard input, and answers
(number, kind, ...), after its length, on its standard output: "done" and "failed" at the end, before that
whatever the work reports.  When its input ends, so does it: it never outlives the server.
"""

from __future__ import annotations

import importlib
import os
import pickle
import queue
import signal
import sys
import threading
import time
import traceback
import warnings
from contextlib import suppress
from typing import Any, BinaryIO

from ..core.parallel import Cancelled
from ..core.user_warnings import UnitsWarning

_INTERVAL = 0.05  # seconds between two messages about progress


class Reporter:
    """How work reports how far it is, and learns that it is to stop."""

    def __init__(self, number: int, send: Any, stopped: set[int]) -> None:
        self._number, self._send, self._stopped = number, send, stopped
        self._start = time.perf_counter()
        self._last = 0.0
        self._what = ""

    @property
    def seconds(self) -> float:
        """How long the work has been going on."""
        return time.perf_counter() - self._start

    def progress(self, fraction: float, what: str) -> None:
        """Report how far all of the work is, 0 to 1; end it, with Cancelled, if it is to stop."""
        if self._number in self._stopped:
            raise Cancelled(f"stopped during {what}")
        now = time.perf_counter()
        if what != self._what or now - self._last > _INTERVAL:
            self._what, self._last = what, now
            self.send("progress", fraction, what)

    def send(self, kind: str, *message: Any) -> None:
        """Send another kind of message."""
        self._send(self._number, kind, *message)


def find_work(name: str) -> Any:
    """Return the function that "module:name" stands for."""
    module, _, function = name.partition(":")
    return getattr(importlib.import_module(module), function)


def main(memory: int) -> None:
    """Work until nobody asks."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server decides when it ends
    warnings.simplefilter("ignore", UnitsWarning)  # the page says so itself
    incoming = sys.stdin.buffer
    outgoing: BinaryIO = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no answer
    calls: queue.SimpleQueue[tuple[int, str, tuple[Any, ...]]] = queue.SimpleQueue()
    stopped: set[int] = set()
    lock = threading.Lock()

    def listen() -> None:
        while True:
            try:
                word, number, *rest = pickle.load(incoming)
            except BaseException:  # the server has ended
                os._exit(0)
            if word == "stop":
                stopped.add(number)
            else:
                calls.put((number, *rest))

    def send(*message: Any) -> None:
        said = pickle.dumps(message)
        with lock:
            outgoing.write(len(said).to_bytes(8) + said)
            outgoing.flush()

    threading.Thread(target=listen, daemon=True).start()
    while True:
        number, work, arguments = calls.get()
        try:
            function = find_work(work)
            limit_memory(memory)  # libraries that are loaded for it do not count
            send(number, "done", function(*arguments, Reporter(number, send, stopped)))
        except Cancelled as error:
            send(number, "failed", "cancelled", str(error), "")
        except (ValueError, TypeError, OSError, MemoryError) as error:
            text = str(error) or "There is not enough memory for this."
            send(number, "failed", "expected", text, "")
        except Exception as error:
            send(number, "failed", "unexpected", type(error).__name__, traceback.format_exc())


def limit_memory(more: int) -> None:
    """Let this process take so many bytes more than it has now, where the system can see to it."""
    try:
        import resource
    except ModuleNotFoundError:  # Windows
        return
    with suppress(OSError, ValueError):
        pages = int(open("/proc/self/statm").read().split()[0])  # noqa: SIM115
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        limit = pages * resource.getpagesize() + more
        if hard != resource.RLIM_INFINITY:
            limit = min(limit, hard)
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
