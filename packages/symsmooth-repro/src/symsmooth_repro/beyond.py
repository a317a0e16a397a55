"""Beyond the paper: our denoise in its tables, and every method on other pictures."""

from __future__ import annotations

from .common import EIGHT, OURS, Contender, grid, mean, minus, strip_of, strip_plan, value
from .main_table import QUICK, means, noise_levels
from .model import Claim, Experiment, Outcome, Plan, Results, Setting
from .paper import main_mean
from .plots import Plot, Series
from .tables import Compared, Row, Table

TUNED_NLM = Contender("NLM, tuned h_r", "nlm")
OTHERS = (
    Contender("Gaussian", "gaussian"),
    Contender("Bilateral", "bilateral"),
    Contender("LARK", "lark"),
    TUNED_NLM,
    Contender("NLM, tuned, one-step", "nlm", {"sinkhorn_iters": 1}),
)
BEST = Contender("denoise, best", "denoise", {"quality": "best"})
ALL = (*OTHERS, *EIGHT[2:], OURS, BEST)
SIGMAS = (15, 25, 50)
CROP = 160


def _development(setting: Setting) -> list[str]:
    return setting.image_set.development[: setting.pick(8, 1)]


def _plan(setting: Setting) -> Plan:
    pictures = setting.classics(*QUICK)
    cells = grid((*EIGHT, OURS), pictures, noise_levels(setting))
    for c in ALL:
        for number, picture in enumerate(_development(setting)):
            for s in setting.pick(SIGMAS, SIGMAS[1:2]):
                cells["dev", c.label, picture, s] = c.cell(picture, s, number, crop=CROP)
    shown = (TUNED_NLM, *EIGHT[2:], OURS)
    return cells | strip_plan(shown, _development(setting)[0], 25, 0, crop=CROP)


def _report(setting: Setting, results: Results) -> Outcome:
    sigmas, pictures = noise_levels(setting), setting.classics(*QUICK)
    contenders = (*EIGHT, OURS)
    ours = means(setting, results, contenders)
    rows: list[Row] = [
        [
            f"σ {s}",
            *(Compared(ours[c.label, s], _printed(c, pictures, s)) for c in contenders),
        ]
        for s in sigmas
    ]
    caption = f"The paper's table with our method: mean PSNR in dB of {len(pictures)} pictures"
    tables = [
        Table(caption, ["", *(c.label for c in contenders)], rows),
        *_development_tables(setting, results),
    ]
    claims = _claims(setting, ours, pictures)
    return Outcome(tables, [_front(setting, results)], claims, strip_of(results, _title(setting)))


def _claims(
    setting: Setting, ours: dict[tuple[str, int], float | None], pictures: list[str]
) -> list[Claim]:
    """Return what we claim, not the paper."""
    sigmas = noise_levels(setting)

    def above(best: dict[int, float]) -> list[float]:
        margins = (minus(ours[OURS.label, s], best[s]) for s in sigmas)
        return [m for m in margins if m is not None]

    here = above({s: max(ours[c.label, s] or 0.0 for c in EIGHT) for s in sigmas})
    there = above({s: max(main_mean(c.printed, pictures, s) or 0.0 for c in EIGHT) for s in sigmas})
    complete = len(here) == len(sigmas)
    margins_text = [
        "above by " + ", ".join(f"{m:+.2f}" for m in m_) + " dB" for m_ in (here, there)
    ]
    return [
        Claim(
            "Our denoise is above every method of the main table, as we measure them.",
            min(here) > 0 if complete else None,
            "not in the paper",
            margins_text[0] if complete else "not measured",
            own=True,
        ),
        Claim(
            "Our denoise is above the best of the eight printed means at every noise level.",
            min(there) > 0 if complete else None,
            "not in the paper",
            margins_text[1] if complete else "not measured",
            own=True,
        ),
    ]


def _printed(c: Contender, pictures: list[str], sigma: int) -> float | None:
    return main_mean(c.printed, pictures, sigma) if c.printed else None


def _title(setting: Setting) -> str:
    return f"{_development(setting)[0].removeprefix('dev-')}, middle {CROP}\u00d7{CROP}, σ = 25"


def _average(
    setting: Setting, results: Results, c: Contender, sigma: int, name: str
) -> float | None:
    cells = (results.get(("dev", c.label, p, sigma)) for p in _development(setting))
    return mean(value(cell, name) for cell in cells)


def _development_tables(setting: Setting, results: Results) -> list[Table]:
    sigmas = setting.pick(SIGMAS, SIGMAS[1:2])
    columns = (("psnr", "PSNR", 2), ("ssim", "SSIM", 3), ("seconds", "seconds", 2))
    rows: list[Row] = []
    for c in ALL:
        cells = [
            Compared(_average(setting, results, c, s, name), None, digits)
            for s in sigmas
            for name, _, digits in columns
        ]
        rows.append([c.label, *cells])
    head = ["method", *(f"σ {s} {title}" for s in sigmas for _, title, _ in columns)]
    caption = (
        f"{len(_development(setting))} other pictures, middle {CROP}\u00d7{CROP}: "
        "PSNR in dB, SSIM, seconds on one thread"
    )
    return [Table(caption, head, rows)]


def _front(setting: Setting, results: Results) -> Plot:
    series = []
    for number, c in enumerate(ALL):
        seconds = _average(setting, results, c, 25, "seconds")
        psnr = _average(setting, results, c, 25, "psnr")
        if seconds and psnr:
            series.append(Series(c.label, [seconds], [psnr], "points", number % 10 + 1))
    label = f"seconds for {CROP}\u00d7{CROP}, one thread"
    return Plot("PSNR against time, σ = 25", label, "mean PSNR, dB", series, x_log=True)


EXPERIMENT = Experiment(
    "beyond",
    "Not in the paper",
    "Beyond the paper",
    "Our denoise (GSF whose clusters learn covariances) in the paper's table, and every method "
    "on pictures the paper "
    "does not know.",
    _plan,
    _report,
    differences=(
        "Times are of one thread while as many processes run as --jobs says; they show "
        "proportions, not of records.",
    ),
)
