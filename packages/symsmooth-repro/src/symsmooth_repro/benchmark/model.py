"""What is asked of a benchmark, and what it found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .contestants import Contestant
from .folders import PictureSet
from .measuring import Measurement, Result
from .trials import Noise

NAME = "benchmark"  # of the files that are written


@dataclass(frozen=True)
class Benchmark:
    """What is asked for."""

    folder: Path
    out: Path
    contestants: Sequence[Contestant]
    noises: Sequence[Noise]
    modes: Sequence[bool] = (True, False)  # whether the noise is told: known, blind
    grey: bool = False
    every: int = 1  # every so many pictures of a set
    repeats: int = 1
    workers: int = 1
    label: str = ""  # what kind of pictures these are: "development"
    command: str = ""


@dataclass(frozen=True)
class Row:
    """A measurement and its result."""

    measurement: Measurement
    result: Result


@dataclass
class Findings:
    """All that a benchmark found."""

    benchmark: Benchmark
    sets: list[PictureSet]
    rows: list[Row] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    facts: dict[str, str] = field(default_factory=dict)
