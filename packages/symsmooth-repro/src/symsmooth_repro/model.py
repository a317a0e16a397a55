"""What an experiment is: cells that are measured, and what is made of them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from symsmooth.reports.page import Html

from .images import ImageSet
from .plots import Plot
from .provenance import Provenance
from .tables import Table

Key = Hashable
Result = dict[str, Any]  # what a measurement returned; pictures are base64 PNGs under "pictures"


class NotRunnable(Exception):
    """An experiment lacks something it cannot do without."""


@dataclass(frozen=True)
class Cell:
    """One measurement: a function of ``measure``, a picture, options that JSON can hold."""

    task: str
    picture: str
    options: Mapping[str, Any]
    cost: float = 1.0  # seconds it takes, roughly: for the time left


Plan = dict[Key, Cell]


@dataclass(frozen=True)
class Setting:
    """What all experiments of a run share."""

    image_set: ImageSet
    quick: bool

    def pick(self, full: Any, quick: Any) -> Any:
        """Return the second in a quick run, else the first."""
        return quick if self.quick else full

    def need(self, name: str) -> str:
        """Return a picture's name if it is there."""
        if name not in self.image_set:
            raise NotRunnable(f"the picture {name} is missing")
        return name

    def classics(self, *quick: str) -> list[str]:
        """Return the paper's pictures that are there; in a quick run only those named."""
        names = [n for n in self.image_set.classics if not self.quick or n in quick]
        if not names:
            raise NotRunnable("none of the paper's pictures is there")
        return names


@dataclass(frozen=True)
class Claim:
    """Something the paper says, and whether it came out."""

    text: str
    holds: bool | None  # None: could not be judged
    printed: str
    ours: str
    own: bool = False  # ours, not the paper's


@dataclass(frozen=True)
class Strip:
    """Pictures to be shown: (label, note, PNG, PNG of the method noise)."""

    title: str
    panels: Sequence[tuple[str, str, str, str]]


@dataclass(frozen=True)
class Outcome:
    """What an experiment found."""

    tables: Sequence[Table] = ()
    plots: Sequence[Plot] = ()
    claims: Sequence[Claim] = ()
    strips: Sequence[Strip] = ()
    words: Html | str = ""


Results = Mapping[Key, Result | None]  # None: failed


@dataclass(frozen=True)
class Experiment:
    """One table or figure."""

    name: str
    item: str  # where it stands in the paper
    title: str
    question: str
    plan: Callable[[Setting], Plan]
    report: Callable[[Setting, Results], Outcome]
    follow: Callable[[Setting, Results], Plan] | None = None  # cells that need the first ones
    differences: Sequence[str] = field(default_factory=tuple)  # what we do differently


@dataclass(frozen=True)
class Entry:
    """An experiment and how it went."""

    experiment: Experiment
    outcome: Outcome = field(default_factory=Outcome)
    why_not: str = ""  # why it did not run
    failures: Sequence[str] = ()
    seconds: float = 0.0  # of all its cells, also those reused


@dataclass(frozen=True)
class Reproduction:
    """All that a run found."""

    entries: Sequence[Entry]
    setting: Setting
    provenance: Provenance
    measured: int  # cells of this run
    reused: int  # cells that were there already

    @property
    def failures(self) -> list[str]:
        """What went wrong, each message once."""
        return sorted({text for entry in self.entries for text in entry.failures})
