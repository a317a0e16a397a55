"""The closing remark: removing the patches' means before learning does not help."""

from __future__ import annotations

from .common import SIDE, db, seed_of
from .model import Cell, Claim, Experiment, Outcome, Plan, Results, Setting, Strip
from .tables import Row, Table

VARIANTS = {"kept": "means kept", "removed": "means removed", "updated": "removed, then updated"}
SIGMAS = (40, 80)
QUICK = ("house",)
ROUNDS = 4
SHOWN = 40


def _pictures(setting: Setting) -> list[str]:
    full = setting.classics(*QUICK)
    wanted = ("barbara", "house", "man", "peppers")
    return full if setting.quick else [p for p in full if p in wanted] or full[:2]


def _plan(setting: Setting) -> Plan:
    plan: Plan = {}
    for number, picture in enumerate(_pictures(setting)):
        for s in SIGMAS:
            options = {"side": SIDE, "sigma": s, "seed": seed_of(picture), "rounds": ROUNDS}
            keep = {"keep": True} if (number, s) == (0, SHOWN) else {}
            plan[picture, s] = Cell("centred", picture, options | keep, 16.0 if s == 40 else 6.0)
            if keep:
                setting_options = {"side": SIDE, "sigma": s, "seed": seed_of(picture)}
                plan["seen"] = Cell("observe", picture, setting_options, 0.05)
    return plan


def _report(setting: Setting, results: Results) -> Outcome:
    rows: list[Row] = []
    losses = []
    for (picture, s), result in _pairs(results):
        psnr = [float(result[name]["psnr"]) for name in VARIANTS]
        counts = [int(result[name]["k"]) for name in ("kept", "removed")]
        losses.append([psnr[0] - psnr[1], psnr[0] - psnr[2]])
        rows.append([f"{picture}, σ {s}", *psnr, *counts])
    head = ["", *VARIANTS.values(), "k, kept", "k, removed"]
    worst = min((min(pair) for pair in losses), default=None)
    claims = [
        Claim(
            "Subtracting the mean before learning degrades the result, also when the means are "
            "updated.",
            None if worst is None else worst > 0,
            "“in general the denoising performance is still worse”; no numbers",
            f"worse by {db(worst)} to {db(max(map(max, losses), default=None))} on "
            f"{len(losses)} runs",
        )
    ]
    table = Table("PSNR in dB, 128\u00d7128, first pass, λ = 0", head, rows)
    return Outcome([table], claims=claims, strips=_strip(setting, results))


def _pairs(results: Results) -> list[tuple[tuple[str, int], dict[str, dict[str, float]]]]:
    return [(k, r) for k, r in results.items() if isinstance(k, tuple) and r is not None]


def _strip(setting: Setting, results: Results) -> list[Strip]:
    picture = _pictures(setting)[0]
    seen, found = results.get("seen"), results.get((picture, SHOWN))
    if seen is None or found is None:
        return []
    panels = [("Noisy", db(seen["psnr"]), seen["pictures"]["noisy"], "")]
    for name, label in VARIANTS.items():
        kept = found[name]["pictures"]
        panels.append(
            (label.capitalize(), db(found[name]["psnr"]), kept["denoised"], kept["noise"])
        )
    panels.append(("Clean", "", seen["pictures"]["clean"], ""))
    return [Strip(f"{picture}, 128\u00d7128, σ = {SHOWN}", panels)]


EXPERIMENT = Experiment(
    "mean-subtraction",
    "Closing remark",
    "Removing the mean before learning",
    "A mixture of zero-mean patches could do with fewer clusters, but the means themselves are "
    "never denoised.",
    _plan,
    _report,
    differences=(
        "Dense EM in NumPy for all three, so that they differ in nothing else; k by "
        "cross-validation for each.",
        f"Updated: the mean that is put back is that of the estimate so far, {ROUNDS} times over.",
    ),
)
