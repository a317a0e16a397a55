"""The gain as a function of h_r: it turns from negative to positive."""

from __future__ import annotations

import numpy as np

from symsmooth.core.image import Array

from . import gain
from .common import strip_of, strip_plan
from .model import Claim, Experiment, Outcome, Plan, Results, Setting
from .paper import printed
from .plots import Plot, Series
from .tables import Compared, Row, Table

LOW, HIGH = 0.5, 0.8  # where the sign must change, in sigma


def crossing(curve: Array) -> float | None:
    """Return the h_r at which a gain curve becomes positive for good, by interpolation."""
    below = np.flatnonzero(curve <= 0)
    if below.size == 0 or below[-1] + 1 == len(curve):
        return None
    at = int(below[-1])
    a, b = float(curve[at]), float(curve[at + 1])
    return SPREADS[at] + (SPREADS[at + 1] - SPREADS[at]) * (-a / (b - a))


SPREADS = gain.SPREADS


def _plan(setting: Setting) -> Plan:
    pictures = setting.classics(*gain.QUICK)
    pairs = gain.nlm_pair(0.5, 0.5) + gain.nlm_pair(1.0, 1.0)
    strip = strip_plan(pairs, pictures[1 % len(pictures)], gain.SIGMA, 0, crop=gain.CROP)
    return gain.spread_cells(setting, pictures) | strip


def _report(setting: Setting, results: Results) -> Outcome:
    threshold = printed()["gain-vs-hr"]["threshold"]
    rows: list[Row] = []
    series, found = [], []
    pictures = setting.classics(*gain.QUICK)
    for number, picture in enumerate(pictures):
        curves = gain.mean_curves(results, picture)
        if curves is None:
            continue
        gains = curves[1] - curves[0]
        found.append(crossing(gains))
        series.append(Series(picture, SPREADS, list(gains), "faint", number % 10 + 1))
        at = [float(gains[SPREADS.index(s)]) for s in (0.4, 0.5, 0.6, 0.7, 0.8, 1.0, 1.2)]
        rows.append([picture, Compared(found[-1], threshold), *at])
    inside = [c for c in found if c is not None and LOW <= c <= HIGH]
    where = f"between {min(inside):.2f}σ and {max(inside):.2f}σ" if inside else "nowhere"
    claims = [
        Claim(
            "The gain is negative for small h_r and positive for large; the sign changes near "
            "0.65σ.",
            len(inside) == len(found) if found else None,
            "around 0.65σ, consistently for all 10 pictures",
            f"{where}, for {len(inside)} of {len(found)} pictures",
        )
    ]
    plot = Plot(
        "Gain of one-step over the original filter against h_r",
        "h_r / σ", "gain, dB", series, across=[(0.0, "_")], upright=[(threshold, "paper: 0.65σ")],
    )  # fmt: skip
    head = ["picture", "sign change, h_r/σ", "0.4", "0.5", "0.6", "0.7", "0.8", "1.0", "1.2"]
    table = Table("Gain in dB at h_r/σ, and where it changes sign", head, rows)
    title = f"{pictures[1 % len(pictures)]}, middle 100\u00d7100, σ = 20"
    return Outcome([table], [plot], claims, strip_of(results, title))


EXPERIMENT = Experiment(
    "gain-vs-hr",
    "Figure 4",
    "The gain against h_r",
    "Small h_r: patches find few friends, balancing them out cannot help. Large h_r: many weak "
    "friends to balance.",
    _plan,
    _report,
    differences=("The paper's curves are only drawn; the place of the sign change is compared.",),
)
