"""EPLL with priors learned from the noisy, the denoised and the clean picture, and from others."""

from __future__ import annotations

import numpy as np

from .common import GSF, SIDE, Contender, seed_of, strip_of, strip_plan, value
from .model import Claim, Experiment, Outcome, Plan, Results, Setting
from .paper import printed
from .tables import Compared, Row, Table

PRIORS = (
    Contender("EPLL (noisy)", "epll", {"prior": "noisy"}, printed="noisy"),
    Contender("EPLL (BM3D)", "epll", {"prior": "bm3d"}, printed="bm3d"),
    Contender("EPLL (clean)", "epll", {"prior": "clean"}, printed="clean"),
    Contender("EPLL (external)", "epll", {"prior": "natural"}, printed="external"),
    GSF,
)


def _sigmas(setting: Setting) -> list[int]:
    sigmas: list[int] = setting.pick(printed()["epll"]["sigma"], [20, 60])
    return sigmas


def _plan(setting: Setting) -> Plan:
    paper = printed()["epll"]
    picture = setting.need(paper["picture"])
    cells: Plan = {
        (c.label, s): c.cell(picture, s, seed_of(picture), side=SIDE)
        for c in PRIORS
        for s in _sigmas(setting)
    }
    return cells | strip_plan(PRIORS, picture, 40, seed_of(picture))


def _report(setting: Setting, results: Results) -> Outcome:
    paper = printed()["epll"]
    rows: list[Row] = [
        [
            str(s),
            *(
                Compared(
                    value(results.get((c.label, s))),
                    paper[c.printed][paper["sigma"].index(s)],
                )
                for c in PRIORS
            ),
        ]
        for s in _sigmas(setting)
    ]
    ours = np.array(
        [[_number(value(results.get((c.label, s)))) for c in PRIORS] for s in _sigmas(setting)]
    )
    noisy, bm3d, clean, _, gsf = ours.T
    claims = [
        Claim(
            "EPLL that learns from the noisy picture performs poorly.",
            None if np.isnan(noisy).any() else bool((gsf - noisy).min() > 3.0),
            "7.5 to 10.5 dB below GSF",
            _span(gsf - noisy, "below GSF"),
        ),
        Claim(
            "Learning from BM3D's result is as good as learning from the clean picture.",
            None if np.isnan(bm3d + clean).any() else bool(np.abs(bm3d - clean).max() < 0.5),
            "within 0.14 dB",
            _span(np.abs(bm3d - clean), "apart"),
        ),
    ]
    head = ["σ", *(c.label for c in PRIORS)]
    table = Table("House, 128\u00d7128, PSNR in dB", head, rows)
    return Outcome([table], claims=claims, strips=strip_of(results, "House, σ = 40"))


def _number(found: float | None) -> float:
    return np.nan if found is None else found


def _span(values: np.ndarray, what: str) -> str:
    if np.isnan(values).any():
        return "not measured"
    return f"{values.min():.2f} to {values.max():.2f} dB {what}"


EXPERIMENT = Experiment(
    "epll",
    "Table VIII",
    "EPLL with different priors",
    "A mixture with covariances needs many clean patches; GSF's has none and learns from the "
    "noisy picture itself.",
    _plan,
    _report,
    differences=(
        "EPLL and BM3D are our own implementations; the external prior is the one we ship.",
    ),
)
