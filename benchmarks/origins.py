"""Where figures come from: what ``make check`` asks of everything that a page prints.

A figure of ours has a date and a commit; one that others published has a source, a year and a protocol.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from stored import FOLDER, load_json

DATE = re.compile(r"\d{4}-\d\d(-\d\d)?\b")
COMMIT = re.compile(r"\b[0-9a-f]{7,40}\b")
YEAR = range(1990, 2100)
PLANS = ("real", "train400", "train400-bm3d", "kodak24", "kodak24-bm3d")  # facts of a benchmark
SCRIPTS = ("speed", "large", "front", "raw", "rician", "inverse", "series")  # facts of a script


def missing(folder: Path = FOLDER) -> list[str]:
    """Return a line for each figure that does not say where it comes from."""
    known = {"published", "heldout", "standard", *PLANS, *SCRIPTS}
    unknown = sorted({path.stem for path in folder.glob("*.json")} - known)
    published = load_json("published", folder)
    heldout = load_json("heldout", folder)
    return [
        *(f"{name}.json: benchmarks/origins.py does not know it; add it there" for name in unknown),
        *_of_others("white", published["white"]["rows"]),
        *_of_others("small_models", published["small_models"]),
        *_of_others("real", published["real"]),
        *_of_others("trained_on_sidd", published["trained_on_sidd"]),
        *_of_sets("heldout", heldout["sets"]),
        *_ours("standard", load_json("standard", folder)),
        *(line for column in heldout["measured"] for line in _ours("heldout", column)),
        *(line for name in PLANS for line in _of_facts(name, folder, "Date")),
        *(line for name in SCRIPTS for line in _of_facts(name, folder, "date")),
    ]


def _of_others(table: str, rows: list[dict[str, Any]]) -> Iterator[str]:
    for row in rows:
        name = f"{table}, {row.get('set', '')} {row['method']}".replace(",  ", ", ")
        for field in ("source", "protocol"):
            if not str(row.get(field, "")).strip():
                yield f"published.json: {name} has no {field}"
        if row.get("year") not in YEAR:
            yield f"published.json: {name} has no year"


def _of_sets(file: str, sets: dict[str, dict[str, Any]]) -> Iterator[str]:
    for name, each in sets.items():
        if not each.get("tuned"):
            yield f"{file}.json: {name} does not say what was tuned on what"


def _ours(file: str, column: dict[str, Any]) -> Iterator[str]:
    if not DATE.match(str(column.get("date", ""))):
        yield f"{file}.json: figures without a date"
    if not COMMIT.fullmatch(str(column.get("commit", ""))):
        yield f"{file}.json: figures of {column.get('date')} without a commit"


def _of_facts(name: str, folder: Path, date: str) -> Iterator[str]:
    facts = load_json(name, folder)["facts"]
    if not DATE.match(facts.get(date, "")):
        yield f"{name}.json: figures without a date"
    if not re.search(r"commit [0-9a-f]{7,40}\b", facts.get("symsmooth", "")):
        yield f"{name}.json: figures without a commit"
