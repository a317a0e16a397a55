"""SURE finds lambda: the figure on Baboon."""

from __future__ import annotations

import numpy as np

from .common import SIDE, Contender, strip_of, strip_plan
from .model import Cell, Claim, Experiment, Outcome, Plan, Results, Setting
from .paper import printed
from .plots import Plot, Series
from .tables import Compared, Row, Table

FIDELITIES = tuple(float(t) for t in np.round(np.arange(0.0, 30.01, 0.1), 2))


def _plan(setting: Setting) -> Plan:
    paper = printed()["sure"]
    picture, sigma = setting.need(paper["picture"]), paper["sigma"]
    shared = {"side": SIDE, "sigma": sigma, "k": paper["k"], "fidelities": list(FIDELITIES)}
    cells: Plan = {
        trial: Cell("sure", picture, shared | {"seed": trial}, 0.8)
        for trial in range(setting.pick(10, 3))
    }
    options = {"n_clusters": paper["k"], "refined_clusters": paper["k"]}
    both = {"h_r": 1.0, "refined_h_r": 1.0}
    contenders = [
        Contender("λ = 0", "gsf", options | {"fidelity": 0.0}, both),
        Contender("λ by SURE", "gsf", options, both),
        Contender("λ = 30", "gsf", options | {"fidelity": 30.0}, both),
    ]
    return cells | strip_plan(contenders, picture, sigma, 0)


def _report(setting: Setting, results: Results) -> Outcome:
    paper = printed()["sure"]
    trials = [r for key, r in results.items() if isinstance(key, int) and r is not None]
    if not trials:
        return Outcome()
    curves = np.array([r["psnr"] for r in trials])
    best_at = curves.argmax(axis=1)
    best_psnr = curves.max(axis=1)
    chosen = np.array([[r["sure_lambda"], r["sure_psnr"]] for r in trials])
    loss = best_psnr - chosen[:, 1]
    rows: list[Row] = [
        [
            "least true error",
            Compared(float(np.mean([FIDELITIES[n] for n in best_at])), paper["best_lambda"]),
            Compared(float(best_psnr.mean()), paper["best_psnr"]),
        ],
        [
            "least SURE",
            Compared(float(chosen[:, 0].mean()), paper["sure_lambda"]),
            Compared(float(chosen[:, 1].mean()), paper["sure_psnr"]),
        ],
    ]
    first = trials[0]
    scale = 255.0**2
    shown = slice(None, None, 5)
    true = (10 ** (-np.array(first["psnr"]) / 10) * scale)[shown]
    lambdas = FIDELITIES[shown]
    plot = Plot(
        "SURE and the true mean squared error against λ",
        "λ", "mean squared error, grey levels²",
        [
            Series("true error", lambdas, list(true), "dashed", 1),
            Series("SURE", lambdas, list(np.array(first["sure"])[shown] * scale), "faint", 2),
        ],
        upright=[(paper["best_lambda"], "paper: best λ = 8.01")],
    )  # fmt: skip
    claims = [
        Claim(
            "The λ that minimises SURE is as good as the best one.",
            bool(loss.max() <= 0.05),
            "24.5141 dB against 24.5143 dB at best",
            f"{loss.mean():.3f} dB below the best on average, {loss.max():.3f} dB at worst "
            f"({len(trials)} noise draws)",
        )
    ]
    caption = f"Baboon, σ = 30, k = 50, mean of {len(trials)} noise draws"
    table = Table(caption, ["criterion", "λ", "PSNR, dB"], rows)
    return Outcome([table], [plot], claims, strip_of(results, "Baboon, σ = 30, k = 50"))


EXPERIMENT = Experiment(
    "sure",
    "Figure 5, Example 3",
    "SURE against the true error",
    "How much of the noisy picture to blend in again? SURE estimates the error for each λ "
    "without the clean picture.",
    _plan,
    _report,
    differences=(
        "Two passes, as the paper's remark under SURE asks: the second learns its clusters from "
        "the first's "
        "result and averages noisy patches. Both with k = 50 and h_r = σ.",
        "The plot is of the first noise draw, the table of all.",
    ),
)
