"""The number of clusters against the noise level."""

from __future__ import annotations

import itertools

from .common import SIDE, Contender, mean, strip_of, strip_plan, value
from .model import Cell, Claim, Experiment, Outcome, Plan, Results, Setting
from .paper import printed
from .plots import Plot, Series
from .tables import Compared, Row, Table

WITHIN = 0.25


def _plan(setting: Setting) -> Plan:
    paper = printed()["clusters-sigma"]
    picture = setting.need(paper["picture"])
    cells: Plan = {
        (s, trial): Cell("clusters", picture, {"side": SIDE, "sigma": s, "seed": trial}, 1.2)
        for s in paper["sigma"]
        for trial in range(setting.pick(8, 1))
    }
    contenders = [Contender(f"GSF, k = {k}", "gsf", {"n_clusters": k}) for k in (36, 372, 1500)]
    return cells | strip_plan(contenders, picture, 40, 0)


def judge(found: list[float | None], paper: list[int], *, falling: bool) -> Claim:
    """Return the claim that k goes one way, within 25 % of the printed numbers."""
    known = [(f, p) for f, p in zip(found, paper, strict=True) if f is not None]
    order = [f for f, _ in known]
    one_way = all(a > b if falling else a < b for a, b in itertools.pairwise(order))
    worst = max((abs(f / p - 1.0) for f, p in known), default=1.0)
    word = "falls as the noise grows" if falling else "grows with the picture"
    return Claim(
        f"The number of clusters {word}, as printed within 25 %.",
        one_way and worst <= WITHIN if len(known) == len(found) else None,
        f"{paper[0]} to {paper[-1]}",
        f"{order[0]:.0f} to {order[-1]:.0f}; at most {100 * worst:.0f} % from the printed number"
        + ("" if one_way else "; not always in this direction")
        if order
        else "not measured",
    )


def _report(setting: Setting, results: Results) -> Outcome:
    paper = printed()["clusters-sigma"]
    trials = range(setting.pick(8, 1))
    found = [mean(value(results.get((s, t)), "k") for t in trials) for s in paper["sigma"]]
    rows: list[Row] = [
        [str(s), Compared(k, p, 0, relative=True)]
        for s, k, p in zip(paper["sigma"], found, paper["k"], strict=True)
    ]
    series = [
        Series("ours", paper["sigma"], [k or 0 for k in found], "line", 1),
        Series("paper", paper["sigma"], paper["k"], "paper"),
    ]
    plot = Plot(
        "Clusters against σ",
        "σ, grey levels",
        "clusters k",
        series,
        y_log=True,
        x_ticks=paper["sigma"],
    )
    caption = f"Man, 128\u00d7128, k with δ(k) = 1, mean of {len(trials)} noise draws"
    claims = [judge(found, paper["k"], falling=True)]
    strips = strip_of(results, "Man, 128\u00d7128, σ = 40")
    return Outcome([Table(caption, ["σ", "k"], rows)], [plot], claims, strips)


EXPERIMENT = Experiment(
    "clusters-sigma",
    "Table IX",
    "The number of clusters against the noise",
    "The less noise, the more clusters: without any, every patch would be its own.",
    _plan,
    _report,
    differences=("δ(k) divides by p = d + 2, see cross-validation.",),
)
