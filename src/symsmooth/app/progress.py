"""Progress of a job: callbacks that name its part or cancel it."""

from __future__ import annotations

import threading
from collections.abc import Callable

Progress = Callable[[str, int, int], object]


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
