"""The number of clusters against the size of the picture, with GSF and BM3D."""

from __future__ import annotations

from .clusters_sigma import judge
from .common import BM3D, GSF, mean, strip_of, strip_plan, value
from .model import Cell, Claim, Experiment, Outcome, Plan, Results, Setting
from .paper import printed
from .plots import Plot, Series
from .tables import Compared, Table


def _sizes(setting: Setting) -> list[int]:
    sizes: list[int] = setting.pick(printed()["clusters-size"]["size"], [50, 100, 150, 200])
    return sizes


def _draws(setting: Setting, size: int) -> range:
    """Return the seeds: the smallest picture, which is judged by itself, is always drawn three times."""
    return range(3 if size == _sizes(setting)[0] else setting.pick(3, 1))


def _plan(setting: Setting) -> Plan:
    paper = printed()["clusters-size"]
    picture, sigma = setting.need(paper["picture"]), paper["sigma"]
    cells: Plan = {}
    for size in _sizes(setting):
        for trial in _draws(setting, size):
            options = {"side": size, "sigma": sigma, "seed": trial}
            cells["k", size, trial] = Cell("clusters", picture, options, 5.5e-5 * size**2 + 0.5)
            cells["bm3d", size, trial] = BM3D.cell(picture, sigma, trial, side=size)
    return cells | strip_plan((GSF, BM3D), picture, sigma, 0, side=200)


def _report(setting: Setting, results: Results) -> Outcome:
    paper, sizes = printed()["clusters-size"], _sizes(setting)
    rows: list[list[object]] = []
    found: list[float | None] = []
    margins: list[float] = []
    for at, size in enumerate(sizes):
        trials = _draws(setting, size)
        cells = [results.get(("k", size, t)) for t in trials]
        k, psnr, one = (mean(value(c, n) for c in cells) for n in ("k", "psnr", "psnr_one"))
        bm3d = mean(value(results.get(("bm3d", size, t))) for t in trials)
        found.append(k)
        if psnr is not None and bm3d is not None:
            margins.append(psnr - bm3d)
        rows.append(
            [
                f"{size}\u00d7{size}",
                Compared(k, paper["k"][at], 0, relative=True),
                Compared(psnr, paper["gsf"][at]),
                Compared(one, None),
                Compared(bm3d, paper["bm3d"][at]),
            ]
        )
    claims = [judge(found, paper["k"][: len(sizes)], falling=False)]
    known, holds = len(margins) == len(sizes), None
    if known:  # whether it gains is judged on all sizes only
        holds = margins[0] > 0 and (sizes != paper["size"] or margins[-1] < margins[0])
    claims.append(
        Claim(
            "BM3D is behind GSF in small pictures and gains on it with size.",
            holds,
            "GSF \u2212 BM3D: +0.40 dB at 50\u00d750, \u22120.23 dB at 400\u00d7400",
            f"{margins[0]:+.2f} dB at {sizes[0]}, {margins[-1]:+.2f} dB at {sizes[-1]}"
            if known
            else "not measured",
        )
    )
    series = [
        Series("ours", sizes, [k or 0 for k in found], "line", 1),
        Series("paper", sizes, paper["k"][: len(sizes)], "paper"),
    ]
    plot = Plot(
        "Clusters against size", "side of the picture, pixels", "clusters k", series, x_ticks=sizes
    )
    caption = f"Man, σ = 40, mean of {setting.pick(3, 1)} noise draws; PSNR in dB"
    head = ["size", "k", "GSF", "GSF, one pass", "BM3D"]
    table = Table(caption, head, rows)
    return Outcome([table], [plot], claims, strip_of(results, "Man, 200\u00d7200, σ = 40"))


EXPERIMENT = Experiment(
    "clusters-size",
    "Table X",
    "The number of clusters against the size",
    "The whole picture resized; a larger one asks for more clusters, though fewer for each pixel.",
    _plan,
    _report,
    differences=(
        "δ(k) is measured on the whole picture, as in the paper. denoise_gsf itself measures it "
        "in windows of 128\u00d7128 "
        "of a larger picture, and then takes up to 1.5 times as many clusters.",
        "GSF runs two passes; the first alone is shown beside it.",
    ),
)
