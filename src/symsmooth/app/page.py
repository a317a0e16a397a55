"""A report in HTML, and what looks doubtful."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .job_warnings import JobWarning


@dataclass(frozen=True)
class Page:
    """A report in HTML, and what looks doubtful."""

    text: str
    warnings: Sequence[str | JobWarning] = ()

    def save(self, out: Path) -> None:
        """Write the page, and its folder if there is none; it appears whole or not at all."""
        from ..io import atomic_write

        out.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(out) as handle:
            handle.write(self.text.encode("utf-8"))
