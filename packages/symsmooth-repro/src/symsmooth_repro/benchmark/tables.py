"""What a benchmark found, as Markdown for people, CSV and JSON for programs."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Sequence
from statistics import fmean
from typing import Any

from ..tables import Row as Cells
from ..tables import Table
from .measuring import Result
from .model import Findings, Row

_HOW = """
PSNR in dB and SSIM are means over the pictures.
White noise is clean + sigma N(0, 1), `default_rng(1000 sigma + number of the picture)`, neither clipped
nor rounded, 255 is white; results for real pictures are clipped and rounded as their files are.
"Known" is told the noise: its standard deviation, or, where it is not white, `denoise` its true model or,
for real pictures, the noise itself, of which it takes the spectrum.
"Blind" is told nothing, and the time holds the estimate; peers, which have none, are given the level of
`estimate_sigma`.
The worst picture is the one that gains least on the noisy one.
"""
_FIELDS = (
    "set", "picture", "noise", "seed", "method", "known", "psnr", "ssim", "seconds", "noise_found",
    "noise_kind", "noisy_psnr", "noisy_ssim", "shape",
)  # fmt: skip


def to_markdown(findings: Findings) -> str:
    """Return a page: what was measured and how, then a table for each set and noise."""
    lines = [f"# Benchmark: {findings.benchmark.folder.resolve().name}", ""]
    lines += [f"- {name}: {text}" for name, text in findings.facts.items()]
    lines += [_HOW]
    for table in tables(findings):
        lines += [table.to_markdown(), ""]
    for found in findings.sets:
        if found.left_out:
            names = ", ".join(found.left_out[:5]) + (", ..." if len(found.left_out) > 5 else "")
            lines += [
                f"{found.name}: {len(found.left_out)} files without their other half: {names}",
                "",
            ]
    lines += [f"- failed: {text}" for text in findings.failures]
    return "\n".join(lines).rstrip() + "\n"


def tables(findings: Findings) -> list[Table]:
    """Return a table for each set and noise, in the order of the plan."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in findings.rows:
        trial = row.measurement.trial
        groups.setdefault((trial.group, str(trial.noise)), []).append(row)
    label = f", {findings.benchmark.label}" if findings.benchmark.label else ""
    return [
        _table(f"{group}{label}, {noise} noise", rows, findings.benchmark.modes)
        for (group, noise), rows in groups.items()
    ]


def _table(caption: str, rows: list[Row], modes: Sequence[bool]) -> Table:
    head = ["method"]
    for known in modes:
        mode = "known" if known else "blind"
        head += [f"PSNR, {mode}", f"SSIM, {mode}", f"seconds, {mode}"]
    head += ["worst picture (gain)"] + ["noise found, blind"] * (False in modes)
    by_label: dict[str, dict[bool, list[Row]]] = {}
    for row in rows:
        label, known = row.measurement.contestant.label, row.measurement.known
        by_label.setdefault(label, {}).setdefault(known, []).append(row)
    pictures = {row.measurement.trial.source.name: row.result for row in rows}
    before = _mean([result["noisy_psnr"] for result in pictures.values()], 2)
    ssim = _mean([result["noisy_ssim"] for result in pictures.values()], 4)
    lines: list[Cells] = [
        ["noisy", *[before, ssim, ""] * len(modes), *[""] * (len(head) - 1 - 3 * len(modes))]
    ]
    for label, by_mode in by_label.items():
        is_ours = not next(iter(by_mode.values()))[0].measurement.contestant.peer
        line: Cells = [f"**{label}**" if is_ours else label]
        for known in modes:
            line += _scores([row.result for row in by_mode.get(known, [])])
        line.append(_worst(by_mode.get(modes[-1], [])))
        if False in modes:
            line.append(_kinds(by_mode.get(False, [])))
        lines.append(line)
    note = "" if len(pictures) == 1 else f"{len(pictures)} pictures."
    return Table(caption, head, lines, note=note)


def _scores(results: list[Result]) -> list[str]:
    return [
        _mean([result["psnr"] for result in results], 2),
        _mean([result["ssim"] for result in results], 4),
        _mean([result["seconds"] for result in results], 3),
    ]


def _mean(values: list[float | None], digits: int) -> str:
    known = [value for value in values if value is not None]
    return f"{fmean(known):.{digits}f}" if known else "-"


def _worst(rows: list[Row]) -> str:
    """Return the picture that gained least."""
    if not rows:
        return "-"
    row = min(rows, key=lambda each: each.result["psnr"] - each.result["noisy_psnr"])
    gain = row.result["psnr"] - row.result["noisy_psnr"]
    return f"{row.measurement.trial.source.name} ({gain:+.2f})"


def _kinds(rows: list[Row]) -> str:
    """Return how often each kind of noise was found."""
    counts = Counter(row.result["kind"] for row in rows if row.result["kind"])
    return ", ".join(f"{kind} {n}" for kind, n in counts.most_common()) or "-"


def records(findings: Findings) -> list[dict[str, Any]]:
    """Return the measurements, flat, one for each picture, contestant and mode."""
    return [_record(row) for row in findings.rows]


def _record(row: Row) -> dict[str, Any]:
    trial, result = row.measurement.trial, row.result
    values = (
        trial.group, trial.source.name, str(trial.noise), trial.seed, row.measurement.contestant.label,
        row.measurement.known, result["psnr"], result["ssim"], result["seconds"], result["noise"],
        result["kind"], result["noisy_psnr"], result["noisy_ssim"], "x".join(map(str, result["shape"])),
    )  # fmt: skip
    return dict(zip(_FIELDS, values, strict=True))


def to_csv(findings: Findings) -> str:
    """Return the measurements as CSV."""
    out = io.StringIO()
    writer = csv.DictWriter(out, _FIELDS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(records(findings))
    return out.getvalue()


def to_json(findings: Findings) -> str:
    """Return facts, tables and measurements as JSON; an exact result has PSNR null."""
    means = [
        {"caption": table.caption, "rows": [dict(zip(table.head, row, strict=True)) for row in table.rows]}
        for table in tables(findings)
    ]  # fmt: skip
    rows = [{k: None if v == float("inf") else v for k, v in r.items()} for r in records(findings)]
    found = {
        "facts": findings.facts, "label": findings.benchmark.label, "tables": means,
        "measurements": rows, "failures": findings.failures,
        "left_out": {each.name: list(each.left_out) for each in findings.sets if each.left_out},
    }  # fmt: skip
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"
