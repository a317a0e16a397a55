"""Work that waits for its turn and is done in processes: ``runs`` of ``workers``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .runs import Run, Runs
from .workers import Workers

TASKS = "symsmooth.web.tasks:"  # where work is found


class ProcessQueue:
    """A queue, and as many processes as are served from it at once.

    Parameters
    ----------
    count : int
        How many processes; where there are more, one is kept for other groups of people.
    memory : int
        Bytes that the work of each may take.
    warm : str
        A function of ``tasks``, called with ``given`` in each process before its first work comes.
    """

    def __init__(self, count: int, memory: int, warm: str, *given: Any) -> None:
        self.runs = Runs(count, max(count - 1, 1))
        self._workers = Workers(count, memory, TASKS + warm, *given)

    def submit(
        self,
        work: str,
        *arguments: Any,
        group: str = "",
        seconds: float | None = None,
        on_part: Callable[[dict[str, Any]], object] = lambda part: None,
    ) -> Run:
        """Queue a function of ``tasks``; it may report a part of the picture that is done."""

        def do(run: Run) -> Any:
            def on_message(kind: str, *news: Any) -> None:
                if kind == "part":
                    on_part(*news)
                else:  # "progress"
                    run.note(*news)

            return self._workers.call(
                TASKS + work,
                *arguments,
                seconds=seconds,
                on_message=on_message,
                stopping=lambda: run.stopping,
            )

        return self.runs.submit(do, group)

    def wake(self) -> None:
        """Get ready: somebody is here."""
        self._workers.wake()

    def sweep(self) -> None:
        """Rest if nobody is here."""
        self._workers.sweep()

    def close(self) -> None:
        """End all work at once."""
        self._workers.close()
        self.runs.close()
