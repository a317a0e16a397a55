"""The process that measures: one picture after another, and nothing beside it.

A denoiser that crashes, or is killed for its memory, costs its own measurement and no other.
"""

from __future__ import annotations

import multiprocessing
import signal
from dataclasses import dataclass
from functools import lru_cache
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from . import contestants
from .contestants import Contestant
from .trials import Scene, Trial, load

Result = dict[str, Any]


@dataclass(frozen=True)
class Measurement:
    """What is measured once."""

    trial: Trial
    contestant: Contestant
    known: bool  # whether the noise is told
    workers: int
    repeats: int


class Worker:
    """A fresh process that answers measurements; started again if it ends."""

    def __init__(self) -> None:
        self._process: BaseProcess | None = None
        self._connection: Connection | None = None

    def measure(self, measurement: Measurement) -> Result | str:
        """Return the result, or what went wrong."""
        connection = self._connection or self._start()
        try:
            connection.send(measurement)
            answer: Result | str = connection.recv()
        except (EOFError, OSError):  # killed, or out of memory
            assert self._process is not None
            self._process.join()
            answer = f"its process ended with {self._process.exitcode}"
            self._process = self._connection = None
        return answer

    def _start(self) -> Connection:
        context = multiprocessing.get_context("spawn")  # threads do not survive a fork
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()
        return self._connection

    def close(self) -> None:
        """End the process, whatever it is doing."""
        if self._process is not None:
            self._process.kill()
            self._process.join()


def serve(connection: Connection) -> None:
    """Measure what is asked for until nobody asks: the body of the process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    while True:
        try:
            measurement = connection.recv()
        except EOFError:
            return
        answer: Result | str
        try:
            answer = measure(measurement)
        except Exception as error:
            answer = f"{type(error).__name__}: {' '.join(str(error).split())}"
        try:
            connection.send(answer)
        except OSError:  # the parent was killed
            return


def measure(measurement: Measurement) -> Result:
    """Measure here and now."""
    from .peers import limit_threads

    scene = _load(measurement.trial)
    asked = measurement.contestant
    kind = (asked.label, scene.noisy.ndim, scene.noisy.dtype.str)
    if kind not in _warm:
        limit_threads(measurement.workers)
        contestants.warm_up(asked, scene, measurement.workers)
        _warm.add(kind)
    found = contestants.run(
        asked, scene, measurement.known, measurement.workers, measurement.repeats
    )
    psnr, ssim = scene.score(found.image)
    before, ssim_before = scene.scores
    return {
        "psnr": psnr, "ssim": ssim, "seconds": found.seconds, "noise": found.noise,
        "kind": found.kind, "noisy_psnr": before, "noisy_ssim": ssim_before,
        "shape": list(scene.noisy.shape),
    }  # fmt: skip


_warm: set[tuple[str, int, str]] = set()  # contestants that have run here, on which kind of pixels


@lru_cache(maxsize=1)
def _load(trial: Trial) -> Scene:
    return load(trial)
