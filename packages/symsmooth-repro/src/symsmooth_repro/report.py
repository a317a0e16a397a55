"""Write a reproduction: one HTML file, one Markdown file, CSV, SVG and PNG of each item."""

from __future__ import annotations

import base64
import io
import json
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

from symsmooth.io import atomic_write
from symsmooth.reports.page import Child, Html, Section, element, page, prose
from symsmooth.reports.pictures import Panel, strip

from .model import Claim, Entry, Reproduction, Strip
from .paper import DOI, TITLE
from .provenance import duration

REPORT, MARKDOWN = "report.html", "reproduction.md"
_VERDICTS = {
    True: ("holds", "\u2713 holds"),
    False: ("fails", "\u2717 does not hold"),
    None: ("open", "\u2013 open"),
}
_SIGNS = {True: "\u2713", False: "\u2717", None: "\u2013"}


def write(found: Reproduction, out: Path) -> None:
    """Write everything into a folder; each file appears whole or not at all."""
    _save(out / REPORT, to_html(found).encode("utf-8"))
    _save(out / MARKDOWN, to_markdown(found).encode("utf-8"))
    facts = json.dumps(found.provenance.facts(), indent=2, ensure_ascii=False)
    _save(out / "run.json", facts.encode("utf-8"))
    items = out / "items"
    items.mkdir(exist_ok=True)
    for entry in found.entries:
        for name, content in _items(entry):
            _save(items / name, content)


def to_html(found: Reproduction) -> str:
    """Return the report as one page."""
    claims = [claim for entry in found.entries for claim in entry.outcome.claims]
    sections = [
        Section("summary", "What holds", _summary(found), mark=_count(claims)),
        *(_section(entry, found) for entry in found.entries),
        Section("run", "How it was run", _facts(found)),
    ]
    return page(
        "Symmetric smoothing filters, reproduced", _lead(found, claims), sections, foot=_foot()
    )


def to_markdown(found: Reproduction) -> str:
    """Return the tables and claims as Markdown."""
    facts = found.provenance.facts()
    lines = ["# The paper, reproduced", ""]
    lines += [f"{TITLE} (doi:{DOI}). In brackets what the paper prints.", ""]
    lines += [
        f"- {name}: {f'`{text}`' if name == 'Command' else text}" for name, text in facts.items()
    ]
    lines += ["", *(f"> {text}" for text in _warnings(found)), ""]
    lines += ["## What holds", "", "| | claim | the paper | ours |", "|---|---|---|---|"]
    for entry in found.entries:
        for claim in entry.outcome.claims:
            verdict = _VERDICTS[claim.holds][1]
            cells = (verdict, claim.text, claim.printed, claim.ours)
            lines.append(f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |")
    for entry in found.entries:
        experiment = entry.experiment
        lines += [
            "",
            f"## {experiment.title} (`{experiment.name}`, {experiment.item})",
            "",
            experiment.question,
        ]
        lines += ["", f"Not run: {entry.why_not}."] if entry.why_not else []
        for table in entry.outcome.tables:
            lines += ["", table.to_markdown()]
        lines += ["", *(f"- {text}" for text in experiment.differences)]
        lines += [f"- failed: {text}" for text in entry.failures]
    return "\n".join(lines) + "\n"


def _lead(found: Reproduction, claims: list[Claim]) -> Child:
    claims = [claim for claim in claims if not claim.own]
    held = sum(claim.holds is True for claim in claims)
    opened = sum(claim.holds is None for claim in claims)
    judged = len(claims) - opened
    later = f" {opened} cannot be judged yet." if opened else ""
    headline = f"{held} of {judged} of the paper's claims hold.{later}"
    if not found.setting.image_set.is_papers:
        headline = "A rehearsal: the paper's claims on other pictures than its own."
    mode = " This is a quick run: fewer pictures and trials." if found.setting.quick else ""
    return [
        element("p", headline, class_="headline"),
        element(
            "p",
            "Every table and figure of ",
            element("cite", TITLE),
            f" (Chan, Zickler, Lu, IEEE Trans. Image Processing 2017, doi:{DOI}), measured "
            f"again with symsmooth: "
            f"what the paper prints, what we find, the difference, and what we did "
            f"differently.{mode}",
        ),
        [element("div", element("p", text), class_="callout") for text in _warnings(found)],
    ]


def _warnings(found: Reproduction) -> Iterator[str]:
    image_set = found.setting.image_set
    if not image_set.is_papers:
        names = ", ".join(f"{ours} for {name}" for name, ours in image_set.stand_ins.items())
        yield (
            "The paper's pictures were not given (--images DIR), so scikit-image's own stand in "
            f"for them ({names}). What the paper prints was measured on other pictures: compare "
            "directions, not numbers. A claim that does not hold here may well hold there."
        )
    if image_set.missing:
        yield f"Missing among the paper's ten pictures: {', '.join(image_set.missing)}."
    if found.failures:
        yield f"{len(found.failures)} measurements failed; they are named where they belong."


def _summary(found: Reproduction) -> Child:
    items = []
    for entry in found.entries:
        experiment = entry.experiment
        link = element("a", f"{experiment.item}: {experiment.name}", href=f"#{experiment.name}")
        items += [_claim(claim, link) for claim in entry.outcome.claims]
        if entry.why_not:
            items.append(
                _claim(Claim(experiment.title, None, "-", f"not run: {entry.why_not}"), link)
            )
    return element("ul", items, class_="claims")


def _claim(claim: Claim, link: Child = None) -> Html:
    kind, text = _VERDICTS[claim.holds]
    numbers = [
        element("b", "Paper "), prose(claim.printed), element("br"),
        element("b", "Ours "), prose(claim.ours),
        [element("br"), link] if link else None,
    ]  # fmt: skip
    return element(
        "li",
        element("div", element("span", text, class_=f"verdict {kind}")),
        element("div", element("p", prose(claim.text)), element("p", numbers, class_="numbers")),
    )


def _count(claims: list[Claim]) -> str:
    return " ".join(_SIGNS[claim.holds] for claim in claims) if len(claims) < 4 else ""


def _section(entry: Entry, found: Reproduction) -> Section:
    experiment, outcome = entry.experiment, entry.outcome
    body: list[Child] = [element("p", prose(experiment.question))]
    if entry.why_not:
        body.append(element("div", element("p", f"Not run: {entry.why_not}."), class_="callout"))
    if outcome.claims:
        body.append(element("ul", [_claim(claim) for claim in outcome.claims], class_="claims"))
    plots = [plot.to_svg() for plot in outcome.plots]
    if plots:
        body.append(element("div", plots, class_="plots"))
    body += [table.to_html() for table in outcome.tables]
    body += [_strip(each) for each in outcome.strips]
    if experiment.differences:
        notes = [element("li", prose(text)) for text in experiment.differences]
        body += [
            element("h3", "What we did differently"),
            element("ul", notes, class_="differences"),
        ]
    if entry.failures:
        failed = [element("li", text) for text in entry.failures]
        body.append(
            element(
                "details",
                element("summary", f"{len(failed)} measurements failed"),
                element("ul", failed),
                class_="more",
            )
        )
    body.append(_downloads(entry))
    return Section(
        experiment.name, experiment.title, body, experiment.item, _count(list(outcome.claims))
    )


def _strip(pictures: Strip) -> Html:
    panels = [
        Panel(label, _uri(png), note, _uri(other) if other else "")
        for label, note, png, other in pictures.panels
    ]
    return strip(pictures.title, panels, other="the method noise")


def _uri(png: str) -> str:
    return f"data:image/png;base64,{png}"


def _downloads(entry: Entry) -> Child:
    links: list[Child] = []
    for name, content in _tables(entry):
        uri = "data:text/csv;charset=utf-8," + urllib.parse.quote(content)
        links += [element("a", name, href=uri, download=name), " "]
    if not links:
        return None
    return element(
        "p",
        "Data: ",
        links,
        f"\u00b7 measured in {duration(entry.seconds)} of one core",
        class_="downloads",
    )


def _facts(found: Reproduction) -> Child:
    facts = found.provenance.facts() | {
        "Pictures": found.setting.image_set.source,
        "Measurements": f"{found.measured} made in this run, {found.reused} there already",
    }
    items = [
        [element("dt", name), element("dd", element("code", text) if name == "Command" else text)]
        for name, text in facts.items()
    ]
    return element("dl", items, class_="facts")


def _foot() -> Child:
    return element(
        "p",
        "Pictures: click or press + to zoom, drag or use the arrows to move, 0 to reset; all "
        "pictures of a strip "
        "move together. Method noise is noisy minus denoised; black and white are 3σ.",
    )


def _items(entry: Entry) -> Iterator[tuple[str, bytes]]:
    """Yield the files of an experiment: its tables, plots and pictures."""
    name = entry.experiment.name
    yield from _tables(entry)
    for number, plot in enumerate(entry.outcome.plots, start=1):
        stem = f"{name}{f'-{number}' if number > 1 else ''}"
        yield f"{stem}.svg", plot.to_svg_file()
        yield f"{stem}.png", plot.to_png_file()
    for pictures in entry.outcome.strips:
        yield f"{name}-pictures.png", _side_by_side(pictures)


def _tables(entry: Entry) -> Iterator[tuple[str, bytes]]:
    for number, table in enumerate(entry.outcome.tables, start=1):
        stem = f"{entry.experiment.name}{f'-{number}' if number > 1 else ''}"
        yield f"{stem}.csv", table.to_csv().encode("utf-8")


def _side_by_side(pictures: Strip) -> bytes:
    """Return the pictures of a strip in one PNG, labels below."""
    from PIL import Image, ImageDraw

    opened = [
        (label, note, Image.open(io.BytesIO(base64.b64decode(png))))
        for label, note, png, _ in pictures.panels
    ]
    width, height = (
        max(150, *(image.width for *_, image in opened)),
        max(image.height for *_, image in opened),
    )
    sheet = Image.new("L", ((width + 6) * len(opened) - 6, height + 32), 255)
    pen = ImageDraw.Draw(sheet)
    for place, (label, note, image) in enumerate(opened):
        left = place * (width + 6)
        sheet.paste(image, (left, 0))
        pen.text((left + 2, height + 3), label.replace("\u03c3", "s"), fill=0)
        pen.text((left + 2, height + 16), note, fill=0)
    out = io.BytesIO()
    sheet.save(out, "PNG")
    return out.getvalue()


def _save(path: Path, content: bytes) -> None:
    with atomic_write(path) as handle:
        handle.write(content)
