"""Processes that measure: each takes a task, answers, and takes the next.

A task whose process crashes, or is killed for its memory, costs itself and no other.  Processes are fresh
ones (spawned): threads of BLAS do not survive a fork.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, cast

Function = Callable[[Any], Any]  # of a module, so that another process finds it
Answer = dict[str, Any] | str  # a result, or what went wrong


def measure_all(
    function: Function, tasks: Mapping[str, Any], jobs: int
) -> Iterator[tuple[str, Answer]]:
    """Yield the names of tasks and their answers as they come; tasks are begun in their order.

    Whatever happens, no process is left behind.
    """
    waiting = iter(tasks)
    workers = [Worker(function) for _ in range(min(jobs, len(tasks)))]
    busy: dict[Connection, tuple[Worker, str]] = {}

    def give(worker: Worker) -> None:
        name = next(waiting, None)
        if name is not None:
            busy[worker.send(tasks[name])] = worker, name

    try:
        for worker in workers:
            give(worker)
        while busy:
            for ready in wait(list(busy)):
                worker, name = busy.pop(cast(Connection, ready))
                yield name, worker.receive()
                give(worker)
    finally:
        for worker in workers:
            worker.close()


class Worker:
    """A process that answers one task after the other; started when it is needed, again if it ends."""

    def __init__(self, function: Function) -> None:
        self._function = function
        self._process: BaseProcess | None = None
        self._connection: Connection | None = None

    def send(self, task: Any) -> Connection:
        """Give it a task; return where its answer will come."""
        if self._connection is None:
            context = multiprocessing.get_context("spawn")
            self._connection, theirs = context.Pipe()
            self._process = context.Process(
                target=serve, args=(theirs, self._function), daemon=True
            )
            self._process.start()
            theirs.close()
        with suppress(OSError):  # the process is gone: seen when it should answer
            self._connection.send(task)
        return self._connection

    def receive(self) -> Answer:
        """Return the result, or what went wrong."""
        assert self._connection is not None
        try:
            answer: Answer = self._connection.recv()
        except (EOFError, OSError):  # killed, or out of memory
            assert self._process is not None
            self._process.join()
            answer = f"its process ended with {self._process.exitcode}"
            self._connection.close()
            self._process = self._connection = None
        return answer

    def close(self) -> None:
        """End the process, whatever it is doing."""
        if self._process is not None:
            self._process.kill()
            self._process.join()


def serve(connection: Connection, function: Function) -> None:
    """Answer what is asked until nobody asks: the body of a process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    while True:
        try:
            task = connection.recv()
        except EOFError:
            return
        answer: Answer
        try:
            answer = function(task)
        except Exception as error:
            answer = f"{type(error).__name__}: {' '.join(str(error).split())}"
        try:
            connection.send(answer)
        except OSError:  # the parent was killed
            return
