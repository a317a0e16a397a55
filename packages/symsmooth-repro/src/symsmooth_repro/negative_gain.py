"""Constant foreground on constant background: column normalisation hurts."""

from __future__ import annotations

from . import gain
from .common import strip_of, strip_plan
from .model import Claim, Experiment, Outcome, Plan, Results, Setting
from .paper import printed
from .tables import Compared, Row, Table


def _plan(setting: Setting) -> Plan:
    pictures = setting.image_set.drawn
    strip = strip_plan(gain.nlm_pair(0.9, 0.9), pictures[2], gain.SIGMA, 0, crop=gain.CROP)
    return gain.spread_cells(setting, pictures) | strip


def _report(setting: Setting, results: Results) -> Outcome:
    paper = printed()["negative-gain"]
    rows: list[Row] = []
    gains = []
    for at, picture in enumerate(setting.image_set.drawn):
        curves = gain.mean_curves(results, picture)
        if curves is None:
            continue
        (original, _), (one_step, _) = gain.best(curves[0]), gain.best(curves[1])
        gains.append(one_step - original)
        values = [original, one_step, gains[-1]]
        columns = [paper[c][at] for c in ("original", "one_step", "gain")]
        names = ("disc", "square", "star", "ring", "edge")
        rows.append(
            [
                f"{paper['images'][at]} ({names[at]})",
                *(Compared(ours, column) for ours, column in zip(values, columns, strict=True)),
            ]
        )
    claims = [
        Claim(
            "On pictures with a constant foreground and a constant background one-step loses.",
            max(gains) < 0 if len(gains) == len(paper["images"]) else None,
            "\u22120.38 to \u22120.80 dB on its five pictures",
            f"{max(gains, default=0):+.2f} to {min(gains, default=0):+.2f} dB on our {len(gains)}",
        )
    ]
    table = Table(
        "PSNR in dB, σ = 20, best h_r for each",
        ["picture", "original", "one-step", "gain"],
        rows,
        note="Printed and measured numbers are of different pictures: only the sign can be compared.",
    )
    return Outcome([table], claims=claims, strips=strip_of(results, "Picture 13, σ = 20"))


EXPERIMENT = Experiment(
    "negative-gain",
    "Figure 3",
    "Where column normalisation hurts",
    "The experiment of Figure 1 on pictures that hold two constants only: most patches are good "
    "friends already.",
    _plan,
    _report,
    differences=(
        "The paper's five pictures are not given. We draw a disc, a square, a star, a ring and "
        "a slanted edge, "
        "grey levels 64 and 191.",
    ),
)
