"""Progress of a job: callbacks that name its part, cancel it, or say that kernels are compiled first."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Progress = Callable[[str, int, int], object]


@contextmanager
def announce_compilation(notify: Callable[[str], object]) -> Iterator[None]:
    """Say so, once, if kernels must be compiled: a first run takes seconds longer."""
    from numba.core import event

    class Listener(event.Listener):
        announced = False

        def on_start(self, event: Any) -> None:
            if not self.announced:
                Listener.announced = True
                notify("compiling for this machine, once; later runs start at once")

        def on_end(self, event: Any) -> None:
            """Nothing to do."""

    with event.install_listener("numba:compile", Listener()):
        yield


def share_of_cores(workers: int | None, jobs: int) -> int | None:
    """Return the threads of each file when several are done at a time."""
    if workers is not None or jobs < 2:
        return workers
    from ..core.parallel import default_workers

    return max(default_workers() // jobs, 1)


def cancel_on(event: threading.Event, progress: Progress | None) -> Progress:
    """Return a callback that ends the work of a thread after Ctrl-C."""
    from ..core.parallel import stop_when

    return stop_when(event, progress)


def with_prefix(part: str, progress: Progress) -> Progress:
    """Return a callback that says of what a stage is a part."""
    return lambda stage, done, total: progress(part + stage, done, total)
