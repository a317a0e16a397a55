"""What was measured and kept in ``benchmarks/stored``: one CSV of pictures and one JSON of facts a plan."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any

FOLDER = Path(__file__).parent / "stored"
FIELDS = (
    "set",
    "picture",
    "noise",
    "method",
    "known",
    "psnr",
    "ssim",
    "seconds",
    "kind",
    "noisy_psnr",
)
Row = dict[str, Any]


@dataclass(frozen=True)
class Kept:
    """The results of one plan."""

    rows: list[Row]
    facts: dict[str, str]
    label: str

    @cached_property
    def methods(self) -> list[str]:
        """All methods, in the order of the plan."""
        return list(dict.fromkeys(row["method"] for row in self.rows))

    @property
    def origin(self) -> str:
        """Date and commit, in words."""
        date = self.facts["Date"].split()[0]
        return f"{date}, {self.facts['symsmooth']}"

    def select(self, **wanted: Any) -> list[Row]:
        """Return the rows that have all of these values."""
        return [row for row in self.rows if all(row[k] == v for k, v in wanted.items())]

    def mean(self, field: str, **wanted: Any) -> float:
        """Return the mean of a field over the rows that have all of these values."""
        found = [row[field] for row in self.select(**wanted) if row[field] is not None]
        return fmean(found) if found else float("nan")


def load(name: str, folder: Path = FOLDER) -> Kept:
    """Read what was kept of a plan."""
    with open(folder / f"{name}.csv", newline="", encoding="utf-8") as handle:
        rows = [_typed(row) for row in csv.DictReader(handle)]
    told = json.loads((folder / f"{name}.json").read_text("utf-8"))
    return Kept(rows, told["facts"], told["label"])


def load_json(name: str, folder: Path = FOLDER) -> Any:
    """Read a JSON file of the folder; None if it is not there."""
    path = folder / f"{name}.json"
    return json.loads(path.read_text("utf-8")) if path.exists() else None


def _typed(row: dict[str, str]) -> Row:
    numbers = {
        k: float(row[k]) if row[k] else None for k in ("psnr", "ssim", "seconds", "noisy_psnr")
    }
    return row | numbers | {"known": row["known"] == "True"}


def keep(name: str, found: dict[str, Any], with_times: bool, folder: Path = FOLDER) -> None:
    """Keep what ``symsmooth benchmark`` wrote as JSON; times only if the machine was quiet."""
    folder.mkdir(exist_ok=True)
    with open(folder / f"{name}.csv", "w", newline="", encoding="utf-8") as handle:
        writer = csv.writer(handle, lineterminator="\n")
        writer.writerow(FIELDS)
        for row in found["measurements"]:
            seconds = _rounded(row["seconds"], 4) if with_times else ""
            writer.writerow([
                row["set"], row["picture"], row["noise"], row["method"], row["known"],
                _rounded(row["psnr"], 3), _rounded(row["ssim"], 5), seconds, row["noise_kind"],
                _rounded(row["noisy_psnr"], 3),
            ])  # fmt: skip
    facts = dict(found["facts"])
    if not with_times:
        facts["Time"] = "not kept: the machine was busy with other things"
    told = {"label": found["label"], "facts": facts}
    (folder / f"{name}.json").write_text(json.dumps(told, indent=1) + "\n", "utf-8")


def _rounded(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"
