"""The paper's printed numbers (``paper.toml``)."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

TITLE = "Understanding Symmetric Smoothing Filters: A Gaussian Mixture Model Perspective"
DOI = "10.1109/TIP.2017.2731208"


@cache
def printed() -> dict[str, Any]:
    """Return all of paper.toml."""
    loaded: dict[str, Any] = tomllib.loads((files(__package__) / "paper.toml").read_text("utf-8"))
    return loaded


def main_mean(method: str, pictures: Sequence[str], sigma: int) -> float | None:
    """Return the mean over some pictures of what the main table prints; None if it prints nothing."""
    table = printed()["main"]
    if sigma not in table["sigma"] or method not in table[pictures[0]]:
        return None
    at = table["sigma"].index(sigma)
    return float(sum(table[name][method][at] for name in pictures) / len(pictures))
