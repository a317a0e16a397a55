"""Tables of the pages, as Markdown, from what is kept; one function a table, by name in ``TABLES``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from math import isnan
from pathlib import Path
from statistics import fmean
from typing import Any

from stored import Kept, load, load_json

PRESETS = ("best", "balanced", "fast", "preview")
BM3D = "bm3d (non-commercial licence)"
NOTES = {"balanced": " (default)"}
OURS = "symsmooth denoise:"


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def number(value: float | None, digits: int = 2) -> str:
    """Return a number, or nothing where it was not measured."""
    return "" if value is None or isnan(value) else f"{value:.{digits}f}"


def name_of(method: str) -> str:
    """Return the name of a method in a table; ours are bold."""
    if not method.startswith("symsmooth"):
        return method.removesuffix(" (non-commercial licence)")
    preset = method.removeprefix(OURS)
    return f"**symsmooth, {preset}**{NOTES.get(preset, '')}"


# --- white noise ---------------------------------------------------------------------------------


def white() -> str:
    """White noise on the standard sets, beside what others published."""
    ours, others = load_json("standard"), load_json("published")["white"]
    sigmas = [f"{sigma}" for sigma in ours["sigmas"]]
    head = ["sigma", f"Set12: {sigmas[0]}", *sigmas[1:], f"BSD68: {sigmas[0]}", *sigmas[1:]]
    rows = []
    for method, sets in ours["psnr"].items():
        if method == "bm3d":
            continue
        preset = method.removeprefix("symsmooth ")
        name = f"**symsmooth, {preset}**{NOTES.get(preset, '')}"
        rows.append([name, *_in_sets(sets, "{}")])
    for row in others["rows"]:
        method, cells = row["method"], _in_sets(row["psnr"], "*{}*")
        name = f"*{method}*"
        if method == "BM3D":
            cells[:3] = _in_sets(ours["psnr"]["bm3d"], "{}")[:3]
            name = "BM3D (`bm3d`; *BSD68*)"
        rows.append([name, *cells])
    intro = (
        f"White noise, {ours['noise']}, mean PSNR in dB on two sets that no constant was chosen on "
        f"(measured {ours['date']} at commit {ours['commit']}; in italics what others published):\n\n"
    )
    said: dict[str, list[str]] = {}
    for row in others["rows"]:
        said.setdefault(_source(row), []).append(row["method"].removesuffix(" (trained)"))
    sources = "; ".join(f"{', '.join(methods)}: {source}" for source, methods in said.items())
    return intro + markdown(head, rows) + f"\nSources: {sources}.\n"


def _in_sets(sets: dict[str, list[float]], form: str) -> list[str]:
    cells = []
    for each in ("Set12", "BSD68"):
        values = sets.get(each)
        cells += [form.format(f"{value:.2f}") for value in values] if values else [""] * 3
    return cells


def small_models() -> str:
    """Small learned models at one level, as published."""
    return _published(load_json("published")["small_models"])


def _published(rows: list[dict[str, Any]]) -> str:
    head = ["set", "method", "PSNR, dB", "protocol", "source"]
    cells = []
    for at, row in enumerate(rows):
        first = not at or rows[at - 1]["set"] != row["set"]
        cells.append([
            row["set"] if first else "", row["method"], number(row["psnr"]), row["protocol"], _source(row),
        ])  # fmt: skip
    return markdown(head, cells)


def _source(row: dict[str, Any]) -> str:
    year = str(row["year"])
    return row["source"] if year in row["source"] else f"{row['source']} ({year})"


def development(plan: str) -> Callable[[], str]:
    """White noise on pictures that constants were chosen on: PSNR, SSIM, time, known and blind."""

    def table() -> str:
        kept = load(plan)
        modes = [mode for mode in (True, False) if kept.select(known=mode)]
        timed = not isnan(kept.mean("seconds"))
        head = ["noise", "method"]
        for mode in modes:
            told = "known" if mode else "blind"
            head += [f"PSNR, {told}", f"SSIM, {told}", *[f"seconds, {told}"] * timed]
        head += ["least gain on a picture"]
        rows = [
            _cells(kept, noise, method, modes, timed)
            for noise in dict.fromkeys(row["noise"] for row in kept.rows)
            for method in kept.methods
        ]
        return _origin(kept) + markdown(head, rows)

    return table


def _cells(kept: Kept, noise: str, method: str, modes: list[bool], timed: bool) -> list[str]:
    cells = [noise, name_of(method)]
    for mode in modes:
        wanted = {"noise": noise, "method": method, "known": mode}
        cells += [number(kept.mean("psnr", **wanted)), number(kept.mean("ssim", **wanted), 4)]
        cells += [number(kept.mean("seconds", **wanted), 3)] * timed
    return [*cells, _least(kept.select(noise=noise, method=method, known=modes[-1]))]


def _least(rows: list[dict[str, Any]]) -> str:
    row = min(rows, key=lambda each: each["psnr"] - each["noisy_psnr"])
    return f"{row['psnr'] - row['noisy_psnr']:+.2f} ({row['picture'].replace('_', chr(92) + '_')})"


def _origin(kept: Kept) -> str:
    pictures = len({(row["set"], row["picture"]) for row in kept.rows})
    return (
        f"*{kept.label.capitalize()}*: constants were chosen on these pictures.\n"
        f"{pictures} of them, measured {kept.origin} (`{kept.facts['Command']}`).\n\n"
    )


def gains() -> str:
    """Mean gain over bm3d by sigma, in brackets that of the worst picture."""
    kept = load("train400-bm3d")
    head = ["sigma", "bm3d", *reversed(PRESETS)]
    rows = []
    for noise in dict.fromkeys(row["noise"] for row in kept.rows):
        theirs = {r["picture"]: r["psnr"] for r in kept.select(noise=noise, method=BM3D)}
        cells = [noise.rpartition(" ")[2], number(sum(theirs.values()) / len(theirs))]
        for preset in reversed(PRESETS):
            ours = kept.select(noise=noise, method=OURS + preset)
            more = [row["psnr"] - theirs[row["picture"]] for row in ours]
            cells.append(f"{sum(more) / len(more):+.3f} ({min(more):+.2f})")
        rows.append(cells)
    return _origin(kept) + markdown(head, rows)


# --- real noise ----------------------------------------------------------------------------------

REAL = (  # name, rows of the plan
    ("PolyU, camera JPEGs", lambda row: row["set"] == "real/polyu"),
    ("SIDD, phones in poor light", lambda row: row["set"] == "real/sidd"),
    ("FMD, wide-field microscope", lambda row: row["picture"].startswith("Wide")),
    ("FMD, confocal", lambda row: row["picture"].startswith("Confocal")),
    ("FMD, two-photon", lambda row: row["picture"].startswith("Two")),
)
FEW = 2  # published figures beside ours on the front page: the best


def heldout() -> str:
    """Real noise on pictures that nothing was tuned on, the last column that was measured."""
    kept, published = load_json("heldout"), load_json("published")["real"]
    last = kept["measured"][-1]
    rows = []
    for key, each in kept["sets"].items():
        psnr = last["psnr"][key]
        rows.append([
            f"{each['title']} ({each['pictures']})", each["tuned"], number(each["noisy"]),
            number(psnr.get("fast")), f"**{number(psnr['balanced'])}**", _best(published, each["beside"]),
        ])  # fmt: skip
    head = ["held-out pictures", "tuned on", "as they came", "fast", "balanced", "best of others*"]
    intro = (
        f"Real noise, {kept['noise']}, on pictures that were kept back: no constant was chosen on them "
        f"(measured {last['date']} at commit {last['commit']}).\n"
        f"Known failures at that commit: {last['failures']}.\n\n"
    )
    note = "\n\\* Published for the whole sets, by methods that were not tuned on these pictures.\n"
    return intro + markdown(head, rows) + note


def _best(published: list[dict[str, Any]], name: str) -> str:
    """Return the best published figures of a set that were not tuned on its pictures."""
    fair = [
        row
        for row in published
        if row["set"] == name
        and "tuned" not in row["protocol"]
        and "chosen on" not in row["protocol"]
    ]
    best = sorted(fair, key=lambda row: row["psnr"])[-FEW:]
    return ", ".join(f"{row['method']} {row['psnr']:.2f}" for row in best)


def heldout_history() -> str:
    """All that was measured on held-out pictures, a column for each commit."""
    kept = load_json("heldout")
    columns = [(run, preset) for run in kept["measured"] for preset in ("fast", "balanced")]
    head = ["pictures", "as they came", *(f"{run['commit']}, {preset}" for run, preset in columns)]
    rows = []
    for key, each in kept["sets"].items():
        found = [number(run["psnr"].get(key, {}).get(preset)) for run, preset in columns]
        rows.append([each["title"], number(each["noisy"]), *found])
    said = []
    for run in kept["measured"]:
        said.append(f"- {run['commit']}, {run['date']}: {run['failures']}.")
        for name, cost in run.get("rounding_costs", {}).items():
            exact = run["psnr"][name]["balanced"] + cost
            said.append(
                f"  Rounding to 8 bits costs {cost:.3f} dB on {name}: unrounded, as others print it, "
                f"`balanced` has {exact:.3f}."
            )
    return markdown(head, rows) + "\n" + "\n".join(said) + "\n"


def real() -> str:
    """Real noise, nothing given, on the halves of the sets that constants were chosen on."""
    kept = load("real")
    rows = []
    for name, belongs in REAL:
        own = [row for row in kept.select(method=OURS + "balanced") if belongs(row)]
        noisy, ours = number(_mean(own, "noisy_psnr")), number(_mean(own, "psnr"))
        rows.append([f"{name} ({len(own)})", noisy, f"**{ours}**"])
    intro = (
        "Nothing given, 8-bit results, mean PSNR in dB.\nThese are the halves of the sets that constants "
        f'were chosen on ("development"), measured {kept.origin}:\n\n'
    )
    return intro + markdown(["pictures", "as they came", "symsmooth, balanced"], rows)


def real_all() -> str:
    """Real noise, all presets: gain, least gain, time, what was found."""
    kept = load("real")
    timed = not isnan(kept.mean("seconds"))
    head = [
        "pictures",
        "method",
        "PSNR",
        "SSIM",
        *["seconds"] * timed,
        "least gain on a picture",
        "noise found",
    ]
    rows = []
    for name, belongs in REAL:
        for method in kept.methods:
            own = [row for row in kept.select(method=method) if belongs(row)]
            kinds = Counter(row["kind"] for row in own if row["kind"])
            rows.append([
                name, name_of(method), number(_mean(own, "psnr")), number(_mean(own, "ssim"), 4),
                *[number(_mean(own, "seconds"), 2)] * timed, _least(own),
                ", ".join(f"{kind} {n}" for kind, n in kinds.most_common()),
            ])  # fmt: skip
    return _origin(kept) + markdown(head, rows)


def anchors() -> str:
    """Real noise, as others published it: each figure with its protocol and source."""
    return _published(load_json("published")["real"])


def trained() -> str:
    """Networks that were trained on SIDD, on other collections, beside ours on the same ones."""
    rows, kept = load_json("published")["trained_on_sidd"], load_json("heldout")
    names = list(rows[0]["psnr"])
    head = ["method", *names, "protocol", "source"]
    cells = [
        [
            row["method"],
            *(number(row["psnr"][name]) for name in names),
            row["protocol"],
            _source(row),
        ]
        for row in rows
    ]
    last = kept["measured"][-1]
    ours = {each["beside"]: (key, each) for key, each in kept["sets"].items()}
    own = []
    for name in names:
        key, each = ours[name]
        part = "" if name == key else f" ({each['pictures'].split()[0]} held out)"
        own.append(f"**{number(last['psnr'][key]['balanced'])}**{part}")
    cells.append([
        "**symsmooth, balanced**", *own, "one picture, nothing given, 8-bit results",
        f"measured {last['date']}, commit {last['commit']}",
    ])  # fmt: skip
    return markdown(head, cells)


def _mean(rows: list[dict[str, Any]], field: str) -> float:
    values = [row[field] for row in rows if row[field] is not None]
    return sum(values) / len(values) if values else float("nan")


# --- time ----------------------------------------------------------------------------------------

SAME = ("symsmooth GSF, k given", "symsmooth NLM balanced")  # on top of others


def speed() -> str:
    """All methods on one photograph."""
    kept = load_json("speed")
    head = ["method", "seconds", "blind", "ratio to bm3d", "PSNR, dB", "peak memory, MB"]
    rows = []
    for name, row in kept["methods"].items():
        if name in SAME:
            continue
        preset = name.removeprefix("symsmooth ")
        label = (
            f"**symsmooth, {preset}**{NOTES.get(preset, '')}"
            if preset in PRESETS
            else f"**{name}**"
        )
        ours = name.startswith("symsmooth")
        rows.append([
            label if ours else name, number(row["seconds"], 3), number(row["seconds_blind"], 3),
            number(row["ratio"], 3), number(row["psnr"]), number(row["peak_megabytes"], 0),
        ])  # fmt: skip
    return f"{_when(kept)}\n\n" + markdown(head, rows)


def large() -> str:
    """Time and memory of whole photographs, from file to file."""
    kept = load_json("large")
    sizes = list(dict.fromkeys(row["megapixels"] for row in kept["rows"]))
    by_method = {(row["method"], row["megapixels"]): row for row in kept["rows"]}
    head = ["program", *[_size(size) for size in sizes]]
    rows = []
    for method in dict.fromkeys(row["method"] for row in kept["rows"]):
        found = [by_method.get((method, size)) for size in sizes]
        cells = ["" if row is None else _time_and_memory(row) for row in found]
        preset = method.removeprefix("symsmooth ")
        ours = f"**symsmooth, {preset}**{NOTES.get(preset, '')}"
        rows.append([ours if preset != method else name_of(method), *cells])
    facts = kept["facts"]
    return (
        "A photograph in colour as JPEG, from file to file, start of the program included, noise not given "
        f"(to the others its level is), {facts['threads']} threads: seconds and peak memory of the "
        f"process, {_told(kept)}, {facts['versions']}.\n\n" + markdown(head, rows)
    )


def large_sentence() -> str:
    """One sentence: how long a large photograph takes."""
    kept = load_json("large")
    largest = max(row["megapixels"] for row in kept["rows"])
    own = [row for row in kept["rows"] if row["megapixels"] == largest]
    said = [
        f"`{row['method'].removeprefix('symsmooth ')}` {row['seconds']:.0f} s"
        for row in own
        if row["method"].startswith("symsmooth")
    ]
    peak = max(row["peak_gigabytes"] for row in own if row["method"].startswith("symsmooth"))
    return (
        f"A photograph of {largest:g} megapixels, JPEG to JPEG on {kept['facts']['threads']} threads, takes"
        f" {', '.join(said)}, and {peak:.1f} GB of memory.\n"
    )


def _size(megapixels: float) -> str:
    return "512 x 512" if megapixels < 1 else f"{megapixels:g} megapixels"


def _time_and_memory(row: dict[str, Any]) -> str:
    return f"{row['seconds']:.1f} s, {row['peak_gigabytes']:.2f} GB"


def front() -> str:
    """Return the front of time against PSNR around the presets."""
    kept = load_json("front")
    rows = []
    for row in kept["rows"]:
        cells = [
            f"{point['change']} ({point['gain']:+.3f} dB, x {point['time']:.2f})"
            for point in row["front"]
        ]
        name = f"{row['set']} ({row['pictures']})"
        rows.append([name, row["quality"], str(row["tried"]), "; ".join(cells)])
    head = ["pictures", "preset", "changes tried", "the front, from quick to slow"]
    return (
        f"Measured {_told(kept)}, `python benchmarks/front.py`: middles of {kept['side']} x {kept['side']} "
        "pixels, each number of a plan moved by a step; change of PSNR, and CPU time over the preset's.\n\n"
        + markdown(head, rows)
    )


def ratios() -> str:
    """One sentence: how long the presets take beside bm3d."""
    kept = load_json("speed")
    parts = [
        f"`{preset}` {'takes ' * (not number)}{100 * kept['methods'][f'symsmooth {preset}']['ratio']:.1f} %"
        + " of the time of `bm3d`" * (not number)
        for number, preset in enumerate(reversed(PRESETS))
    ]
    said = f"\n{kept['note']}." if kept.get("note") else ""
    return f"For a 512 x 512 photograph {', '.join(parts)}.{said}\n"


def presets() -> str:
    """Time and gain of the presets."""
    times, kept = load_json("speed"), load("train400-bm3d")
    rows = []
    for preset in reversed(PRESETS):
        row = times["methods"][f"symsmooth {preset}"]
        gain = []
        for sigma in (5, 25, 100):
            wanted = {"noise": f"white, sigma {sigma}"}
            own = kept.mean("psnr", method=OURS + preset, **wanted)
            gain.append(f"{own - kept.mean('psnr', method=BM3D, **wanted):+.2f}")
        rows.append([
            f'`quality="{preset}"`{NOTES.get(preset, "")}', number(row["seconds"]),
            number(row["seconds_blind"]), f"{100 * row['ratio']:.0f} %", " / ".join(gain),
        ])  # fmt: skip
    head = ["", "seconds", "blind", "of bm3d's time", "dB over bm3d at sigma 5 / 25 / 100"]
    return markdown(head, rows)


def _when(kept: dict[str, Any]) -> str:
    facts = kept["facts"]
    note = f"\n{kept['note']}." if kept.get("note") else ""
    return (
        "512x512 photograph (`skimage.data.camera`), sigma 25, noise seed 0, "
        f"{facts['threads']} threads, best of {facts['repeats']} interleaved runs (`make bench`), "
        f"{facts['date']}, {facts['symsmooth']}.{note}"
    )


def draw_front(path: Path) -> None:
    """Draw PSNR against time."""
    from run import plot

    plot(load_json("speed")["methods"], path)


# --- raw and Rician ------------------------------------------------------------------------------


def raw() -> str:
    """Raw mosaics, before and after development."""
    kept = load_json("raw")
    head = ["pattern, electrons at white", "noisy", "`denoise` after development", "bm3d on the planes",
            "`denoise_raw`", "over bm3d", "gain off by (mean, worst)"]  # fmt: skip
    rows = []
    for group in kept["groups"]:
        psnr = group["psnr"]
        theirs = psnr.get("bm3d, planes")
        rows.append([
            f"{group['kind']} ({group['pictures']} pictures), {group['peak']}", number(psnr["noisy"]),
            number(psnr["denoise, developed"]), number(theirs), f"**{number(psnr['denoise_raw'])}**",
            f"{psnr['denoise_raw'] - theirs:+.2f}" if theirs else "",
            _percent(group["gain_error"], group["worst_gain_error"]),
        ])  # fmt: skip
    return f"Measured {_told(kept)}, `{kept['facts']['command']}`.\n\n" + markdown(head, rows)


def _percent(*shares: float | None) -> str:
    return ", ".join(f"{100 * share:.0f} %" for share in shares if share is not None)


def rician() -> str:
    """Rician noise in a head phantom, beside dipy."""
    kept = load_json("rician")
    timed = kept["rows"][0].get("seconds") is not None
    head = [
        "sigma",
        "method",
        "PSNR, dB",
        "inside the head, dB",
        "bias in air, of sigma",
        *["seconds"] * timed,
    ]
    rows = [
        [
            f"{row['sigma']:g}", f"**{row['method']}**" if row["ours"] else row["method"],
            number(row["psnr"]), number(row["inside"]), f"{row['air_bias']:+.3f}",
            *[number(row["seconds"])] * timed,
        ]
        for row in kept["rows"]
    ]  # fmt: skip
    return f"Measured {_told(kept)}, `{kept['facts']['command']}`.\n\n" + markdown(head, rows)


def series() -> str:
    """Sequences as a series against frame by frame, a still scene, and photons of moving cells."""
    kept = load_json("series")
    part = kept["sequences"]
    timed = part["rows"][0]["times"] is not None
    head = [
        "sequence",
        "noise",
        "preset",
        "frame by frame",
        "series",
        "gain",
        "blind",
        *["time"] * timed,
    ]
    each = dict.fromkeys((row["quality"], row["sigma"]) for row in part["rows"])
    rows = []
    for quality, sigma in each:
        own = [r for r in part["rows"] if (r["quality"], r["sigma"]) == (quality, sigma)]
        fields = ["alone", "series", "blind", *["times"] * timed]
        mean = {"sequence": "**mean**"} | {key: fmean(r[key] for r in own) for key in fields}
        rows += [
            [
                row["sequence"], f"sigma {sigma:g}", quality, number(row["alone"]), number(row["series"]),
                f"{row['series'] - row['alone']:+.2f}", f"{row['blind'] - row['series']:+.2f}",
                *[f"x {row['times']:.2f}" for _ in range(timed)],
            ]
            for row in [*own, mean]
        ]  # fmt: skip
    others = [
        *(("still, nine frames", f"sigma {row['sigma']:g}", row) for row in kept["still"]["rows"]),
        *(("moving cells", f"{row['photons']} photons", row) for row in kept["cells"]["rows"]),
    ]
    rows += [
        [
            name, noise, row["quality"], number(row["alone"]), number(row["series"]),
            f"{row['series'] - row['alone']:+.2f}", "", *[""] * timed,
        ]
        for name, noise, row in others
    ]  # fmt: skip
    means = ", ".join(number(row["mean"]) for row in kept["still"]["rows"])
    return (
        f"Measured {_told(part)}, `{kept['facts']['command']}`: {part['frames']} frames, the middle "
        f"{part['side']} x {part['side']} pixels, PSNR in dB; the still scene {_told(kept['still'])}, the "
        f"cells {_told(kept['cells'])}.\n"
        f"Of the still scene, the mean of its nine "
        f"frames denoised alone has {means}; photons are those of the brightest pixel.\n\n"
        + markdown(head, rows)
    )


def series_peers() -> str:
    """Video denoisers of others, beside ours."""
    kept = load_json("series")
    part = kept["peers"]
    head = ["sigma", "method", "PSNR, dB", "CPU seconds a frame", "strength"]
    rows = [
        [
            f"{row['sigma']:g}", f"**{row['method']}**" if row.get("ours") else row["method"],
            number(row["psnr"]), number(row.get("seconds")), number(row.get("strength")),
        ]
        for row in part["rows"]
    ]  # fmt: skip
    return (
        f"Measured {_told(part)}, `{kept['facts']['command']} peers`: six sequences, {part['frames']} "
        f"frames of 8 bits, the middle {part['side']} x {part['side']} pixels, one thread; "
        "seconds compare within this table only.\n\n" + markdown(head, rows)
    )


def _told(kept: dict[str, Any]) -> str:
    return f"{kept['facts']['date']}, {kept['facts']['symsmooth']}"


def inverse() -> str:
    """Return a denoiser as a prior: PSNR by iteration, and time, beside bm3d in the same loop."""
    kept = load_json("inverse")
    rows, task = [], ""
    for row in kept["rows"]:
        theirs = next(
            each
            for each in kept["rows"]
            if each["task"] == row["task"] and each["method"] == "bm3d"
        )
        steps = row["psnr"]
        name = row["method"] if row is theirs else f"**symsmooth, {row['method']}**"
        rows.append([
            row["task"] if row["task"] != task else "", name, number(row["start"]), number(steps[0]),
            number(steps[len(steps) // 2 - 1]), f"{number(steps[-1])} ({len(steps)})",
            "" if row is theirs else f"{steps[-1] - theirs['psnr'][-1]:+.2f}",
            "" if row is theirs else f"{100 * row['cpu_seconds'] / theirs['cpu_seconds']:.1f} %",
        ])  # fmt: skip
        task = row["task"]
    head = ["problem", "prior", "start", "after 1 iteration", "half-way", "end (iterations)", "over bm3d",
            "of bm3d's processor time"]  # fmt: skip
    return f"Measured {_told(kept)}, `{kept['facts']['command']}`.\n\n" + markdown(head, rows)


def paper() -> str:
    """NLM, One-step and GSF on the paper's pictures, from the report of ``symsmooth reproduce``."""
    text = (Path(__file__).parents[1] / "docs" / "reproduction.md").read_text("utf-8")
    section = text[text.index("(`sigma`, Table IV)") :]
    lines = [line.strip("| ").split(" | ")[:4] for line in section.splitlines() if line[:2] == "| "]
    rows = [line for line in lines[:8] if line[0].isdigit()]
    assert len(rows) == 5, "the report has another form"
    return markdown(["sigma", "NLM", "One-step", "GSF"], rows)


TABLES: dict[str, Callable[[], str]] = {
    "white": white,
    "small-models": small_models,
    "heldout": heldout,
    "heldout-history": heldout_history,
    "real": real,
    "real-all": real_all,
    "anchors": anchors,
    "trained": trained,
    "train400": development("train400"),
    "kodak24": development("kodak24"),
    "kodak24-bm3d": development("kodak24-bm3d"),
    "gains": gains,
    "speed": speed,
    "large": large,
    "large-sentence": large_sentence,
    "front": front,
    "ratios": ratios,
    "presets": presets,
    "paper": paper,
    "raw": raw,
    "rician": rician,
    "series": series,
    "series-peers": series_peers,
    "inverse": inverse,
}
