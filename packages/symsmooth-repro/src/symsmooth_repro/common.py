"""What several experiments share: contenders, strips, means."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .images import CLASSICS
from .model import Cell, Key, Plan, Result, Results, Strip

SIDE = 128  # the paper's tables
# Seconds of a method on 128x128 with one thread, roughly: for the time left, nothing else.
COST = {
    "gsf": 0.4, "gsfw": 0.3, "denoise": 0.3, "bm3d": 0.3, "nl_bayes": 0.2, "epll": 1.0, "ple": 0.4,
    "glide": 0.6,
}  # fmt: skip


@dataclass(frozen=True)
class Contender:
    """A method with the options it runs with; those in ``spread`` are multiples of sigma."""

    label: str
    method: str
    options: Mapping[str, Any] = field(default_factory=dict)
    spread: Mapping[str, float] = field(default_factory=dict)
    printed: str = ""  # its column in the paper's main table

    def cell(self, picture: str, sigma: float, seed: int, **more: Any) -> Cell:
        """Return the cell that runs it (128x128 unless given otherwise)."""
        options = dict(self.options) | {
            name: factor * sigma / 255 for name, factor in self.spread.items()
        }
        shape = {} if {"side", "crop"} & set(more) else {"side": SIDE}
        given_options = {"sigma": sigma, "seed": seed, "method": self.method, "options": options}
        size = (more.get("side") or more.get("crop") or SIDE) / SIDE
        return Cell(
            "denoise", picture, given_options | shape | more, COST.get(self.method, 0.15) * size**2
        )


NLM = Contender("NLM", "nlm", {"h_s": 10.0}, {"h_r": 5.0}, "nlm")
ONE_STEP = Contender(
    "One-step", "nlm", {"h_s": 10.0, "sinkhorn_iters": 1}, {"h_r": 5.0}, "one_step"
)
GSF = Contender("GSF", "gsf", printed="gsf")
GSF_ONE_PASS = Contender("GSF, one pass", "gsf", {"passes": 1})
GLIDE = Contender("GLIDE", "glide", printed="glide")
BM3D = Contender("BM3D", "bm3d", printed="bm3d")
OURS = Contender("denoise (ours)", "denoise")
EIGHT = (
    NLM,
    ONE_STEP,
    GSF,
    GLIDE,
    Contender("NL-Bayes", "nl_bayes", printed="nl_bayes"),
    Contender("PLE", "ple", printed="ple"),
    BM3D,
    Contender("EPLL", "epll", printed="epll"),
)  # the columns of the main table, in its order


def seed_of(picture: str) -> int:
    """Return the noise seed of one of the ten: 0 to 9 in the order of their names."""
    return CLASSICS.index(picture)


def grid(contenders: Iterable[Contender], pictures: Sequence[str], sigmas: Sequence[int]) -> Plan:
    """Return the cells (contender, picture, sigma) of a table over the ten pictures."""
    return {
        (contender.label, picture, sigma): contender.cell(picture, sigma, seed_of(picture))
        for contender in contenders
        for picture in pictures
        for sigma in sigmas
    }


def value(result: Result | None, name: str = "psnr") -> float | None:
    """Return a number of a result, or None if it is not there."""
    return None if result is None else float(result[name])


def mean(numbers: Iterable[float | None]) -> float | None:
    """Return the mean, or None if any number is missing or there is none."""
    known = list(numbers)
    if not known or any(n is None for n in known):
        return None
    return float(np.mean(np.asarray(known, np.float64)))


def minus(a: float | None, b: float | None) -> float | None:
    """Return a - b, or None if either is missing."""
    return None if a is None or b is None else a - b


def db(number: float | None, *, sign: bool = False) -> str:
    """Return a number of dB in words."""
    if number is None:
        return "not measured"
    return f"{number:+.2f} dB" if sign else f"{number:.2f} dB"


def strip_plan(
    contenders: Iterable[Contender], picture: str, sigma: float, seed: int, **more: Any
) -> Plan:
    """Return the cells of a strip: the noisy picture, each contender, the clean picture."""
    shape = more or {"side": SIDE}
    seen = Cell("observe", picture, {"sigma": sigma, "seed": seed, **shape}, 0.05)
    cells: Plan = {("strip", ""): seen}
    for contender in contenders:
        key = ("strip", contender.label)
        cells[key] = contender.cell(picture, sigma, seed, keep=True, **shape)
    return cells


def strip_of(results: Results, title: str) -> list[Strip]:
    """Return the strip that ``strip_plan`` planned, or none if it failed."""
    seen = results.get(("strip", ""))
    if seen is None:
        return []
    pictures = seen["pictures"]
    panels = [("Noisy", db(value(seen)), pictures["noisy"], "")]
    for key, result in results.items():
        label = _label(key)
        if label and result is not None:
            kept = result["pictures"]
            panels.append((label, db(value(result)), kept["denoised"], kept["noise"]))
    panels.append(("Clean", "", pictures["clean"], ""))
    return [Strip(title, panels)]


def _label(key: Key) -> str:
    is_strip = isinstance(key, tuple) and len(key) == 2 and key[0] == "strip"
    return str(key[1]) if is_strip else ""  # type: ignore[index]
