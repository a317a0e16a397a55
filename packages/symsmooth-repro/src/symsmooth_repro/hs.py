"""The spatial parameter h_s."""

from __future__ import annotations

import itertools
from dataclasses import replace

from .common import GSF, NLM, ONE_STEP, Contender, db, mean, minus, strip_of, strip_plan, value
from .model import Claim, Experiment, Outcome, Plan, Results, Setting
from .paper import printed
from .plots import Plot, Series
from .tables import Compared, Row, Table

THREE = (NLM, ONE_STEP, GSF)


def _with(contender: Contender, h_s: float) -> Contender:
    return replace(contender, options=dict(contender.options) | {"h_s": float(h_s)})


def _plan(setting: Setting) -> Plan:
    paper = printed()["hs"]
    picture = setting.need(paper["picture"])
    cells: Plan = {
        (c.label, h_s, trial): replace(
            _with(c, h_s).cell(picture, paper["sigma"], trial),
            cost=0.6 + (h_s / 60 if c is not GSF else 0.6),
        )
        for c in THREE
        for h_s in paper["h_s"]
        for trial in range(setting.pick(5, 1))
    }
    contenders = [
        replace(_with(c, h_s), label=f"{c.label}, h_s = {h_s}") for h_s in (5, 50) for c in THREE
    ]
    return cells | strip_plan(contenders, picture, paper["sigma"], 0)


def _report(setting: Setting, results: Results) -> Outcome:
    paper = printed()["hs"]
    trials = range(setting.pick(5, 1))
    ours = {
        (c.label, h_s): mean(value(results.get((c.label, h_s, t))) for t in trials)
        for c in THREE
        for h_s in paper["h_s"]
    }
    rows: list[Row] = []
    gains = []
    for at, h_s in enumerate(paper["h_s"]):
        row = [Compared(ours[c.label, h_s], paper[c.printed][at]) for c in THREE]
        pairs = ((ONE_STEP, NLM), (GSF, ONE_STEP))
        margins = [
            Compared(
                minus(ours[a.label, h_s], ours[b.label, h_s]),
                paper[a.printed][at] - paper[b.printed][at],
            )
            for a, b in pairs
        ]
        gains.append(margins[0].ours)
        rows.append([str(h_s), *row, *margins])
    head = ["h_s", *(c.label for c in THREE), "One-step \u2212 NLM", "GSF \u2212 One-step"]
    known = [g for g in gains if g is not None]
    complete = len(known) == len(gains)
    rising = all(b > a - 0.02 for a, b in itertools.pairwise(known))
    claims = [
        Claim(
            "The gain of One-step over NLM grows with h_s.",
            rising if complete else None,
            "+0.26 dB at h_s = 5 to +0.85 dB at h_s = 100",
            f"{db(gains[0], sign=True)} at h_s = 5 to {db(gains[-1], sign=True)} at h_s = 100",
        )
    ]
    series = []
    for number, c in enumerate(THREE, start=1):
        series.append(
            Series(
                c.label, paper["h_s"], [ours[c.label, h] or 0 for h in paper["h_s"]], "line", number
            )
        )
        series.append(Series("_", paper["h_s"], paper[c.printed], "paper", number))
    series.append(Series("paper (diamonds)", [], [], "paper"))
    plot = Plot(
        "PSNR against h_s", "h_s, pixels", "PSNR, dB", series, x_log=True, x_ticks=paper["h_s"]
    )
    table = Table(
        f"Man, 128\u00d7128, σ = 40, PSNR in dB, mean of {len(trials)} noise draws", head, rows
    )
    return Outcome([table], [plot], claims, strip_of(results, "Man, 128\u00d7128, σ = 40"))


EXPERIMENT = Experiment(
    "hs",
    "Table V",
    "The spatial parameter h_s",
    "A small h_s makes W nearly diagonal, and a diagonal matrix has nothing to gain from column "
    "normalisation.",
    _plan,
    _report,
    differences=("Soft windows end at 3 h_s, where the weight is exp(\u22124.5).",),
)
