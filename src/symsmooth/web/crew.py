"""Work that waits for its turn and is done in processes: ``runs`` of ``workers``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from .runs import Run, Runs
from .workers import Workers


class Crew:
    """A queue, and as many processes as are served from it at once.

    Parameters
    ----------
    count : int
        How many processes; where there are more, one is kept for other groups of people.
    memory : int
        Bytes that the work of each may take.
    warm : function of ``tasks``
        Called with ``given`` in each process before its first visitor comes.
    """

    def __init__(self, count: int, memory: int, warm: Callable[..., Any], *given: Any) -> None:
        self.runs = Runs(count, max(count - 1, 1))
        self._workers = Workers(count, memory, warm, *given)

    def submit(
        self,
        work: Callable[..., Any],
        *arguments: Any,
        group: str = "",
        seconds: float | None = None,
        on_part: Callable[[Path], object] = lambda page: None,
    ) -> Run:
        """Queue a function of ``tasks``; it may tell of a page about a part of the picture."""

        def do(run: Run) -> Any:
            def on_message(kind: str, *news: Any) -> None:
                if kind == "part":
                    on_part(*news)
                else:  # "progress" or "stage"
                    run.note(*news)

            return self._workers.call(
                work,
                *arguments,
                seconds=seconds,
                on_message=on_message,
                stopping=lambda: run.stopping,
            )

        return self.runs.submit(do, group)

    def close(self) -> None:
        """End all work at once."""
        self._workers.close()
        self.runs.close()
