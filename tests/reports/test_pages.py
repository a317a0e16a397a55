"""Pages: escaped, one file, and in a real browser what they should be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from symsmooth.reports.page import Section, element, page, prose
from symsmooth.reports.pictures import Panel, strip, webp_uri
from symsmooth_repro.plots import Plot, Series
from symsmooth_repro.tables import Compared, Table

from ..conftest import Opened, audit


def test_text_is_escaped_and_markup_is_not() -> None:
    inner = element("b", "x & y")
    assert element("p", "<i>", inner, title='"') == (
        '<p title="&quot;">&lt;i&gt;<b>x &amp; y</b></p>'
    )
    assert element("img", src="a", hidden=None, alt="") == '<img src="a" alt="">'


def test_prose_has_subscripts_and_minus_signs() -> None:
    assert prose("h_r -0.5") == "h<sub>r</sub> \N{MINUS SIGN}0.5"
    assert prose("WD_c") == "WD<sub>c</sub>"
    assert prose("k_windows a-1 x_rs <") == "k_windows a-1 x_rs &lt;"


def test_a_plot_in_three_forms() -> None:
    lines = [Series("ours", [1, 2], [3, 4]), Series("paper", [1, 2], [3, 5], "paper")]
    plot = Plot("A & B", "x", "y", lines)
    inline = plot.to_svg()
    assert "var(--series-1)" in inline
    assert "A &amp; B" in inline
    assert plot.to_svg_file().startswith(b"<?xml")
    assert b"var(--" not in plot.to_svg_file()
    assert plot.to_png_file().startswith(b"\x89PNG")
    assert plot.to_svg() == inline  # no dates, no random names


# --- in a browser -----------------------------------------------------------------------------


@pytest.fixture(scope="session")
def small_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pixels = np.linspace(0, 1, 64 * 64).reshape(64, 64)
    uris = [webp_uri(p) for p in (pixels, pixels.T, 1 - pixels)]
    panels = [Panel(f"P{n}", uri, "20 dB", uris[2]) for n, uri in enumerate(uris)]
    wide = Table(
        "Wide", [f"column {n}" for n in range(20)], [["row", *([Compared(1.3, 1.0)] * 19)]]
    )
    body = [strip("Pictures", panels, other="the other side"), wide.to_html()]
    body.append(Plot("Plot", "x", "y", [Series("a", [1, 2], [1, 2])]).to_svg())
    path = tmp_path_factory.mktemp("page") / "page.html"
    sections = [Section("one", "One", body), Section("two", "Two", element("p", "text"))]
    path.write_text(page("A page", element("p", "lead"), sections), "utf-8")
    return path


def test_pictures_zoom_together_by_keyboard(visit: Any, small_page: Path) -> None:
    page = visit(small_page)
    lenses = page.locator(".panels .lens")
    transforms = (
        "[...document.querySelectorAll('.panels img')].map(i => getComputedStyle(i).transform)"
    )
    lenses.nth(1).focus()
    page.keyboard.press("+")
    zoomed = page.evaluate(transforms)
    assert len(set(zoomed)) == 1
    assert zoomed[0].startswith("matrix(1.6")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.querySelector('.strip').style.getPropertyValue('--x')") > "0.5"
    page.keyboard.press("0")
    assert page.evaluate(transforms)[0] == "matrix(1, 0, 0, 1, 0, 0)"


def test_a_click_zooms_where_it_was_made(visit: Any, small_page: Path) -> None:
    """The pixel under the pointer stays under it."""
    page = visit(small_page)
    lens = page.locator(".panels .lens").first
    box = lens.bounding_box()
    lens.click(position={"x": box["width"] / 4, "y": box["height"] / 4})
    shown = page.locator(".panels img").first.bounding_box()
    assert shown["width"] == pytest.approx(3 * box["width"], rel=0.01)
    assert (box["x"] + box["width"] / 4 - shown["x"]) / shown["width"] == pytest.approx(
        0.25, abs=0.01
    )


def test_pictures_switch_and_two_can_be_laid_over_each_other(visit: Any, small_page: Path) -> None:
    page = visit(small_page)
    first = page.locator(".panels img").first
    before = first.get_attribute("src")
    page.get_by_role("button", name="Show the other side").click()
    assert first.get_attribute("src") != before
    overlay = page.locator(".overlay")
    assert not overlay.is_visible()
    page.get_by_role("button", name="Overlay").click()
    assert overlay.is_visible()
    page.get_by_label("Left").select_option("P2")
    page.get_by_label("Divider").fill("20")
    assert (
        page.locator(".overlay .clip").evaluate("e => e.style.clipPath") == "inset(0px 80% 0px 0px)"
    )
    sizes = page.locator(".overlay img").evaluate_all("all => all.map(i => i.naturalWidth)")
    assert sizes == [64, 64]


def test_light_and_dark_by_preference_and_by_button(visit: Any, small_page: Path) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    light, dark = (visit(small_page, color_scheme=scheme) for scheme in ("light", "dark"))
    assert light.evaluate(ground) != dark.evaluate(ground)
    light.get_by_role("button", name="Dark").click()
    assert light.evaluate(ground) == dark.evaluate(ground)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast(visit: Any, small_page: Path, scheme: str) -> None:
    """WCAG AA: 4.5 for text on what it stands on, the most strongly coloured cells too."""
    page = visit(small_page, color_scheme=scheme)
    pairs = [("ink", "ground"), ("muted", "ground"), ("muted", "sheet"), ("accent", "sheet")]
    pairs += [(name, f"{name}-soft") for name in ("accent", "good", "bad", "wait")]
    colour = """name => { const e = document.createElement('i'); e.style.color = `var(--${name})`;
        document.body.append(e); const c = getComputedStyle(e).color; e.remove();
        return c.match(/[0-9.]+/g).slice(0, 3).map(Number); }"""
    rgb = {name: np.array(page.evaluate(colour, name)) for pair in pairs for name in pair}
    for front, back in pairs:
        assert contrast(rgb[front], rgb[back]) >= 4.5, (front, back)
    for tint, most in (("up", 0.42), ("down", 0.45)):
        cell = most * np.array(page.evaluate(colour, tint)) + (1 - most) * rgb["sheet"]
        assert contrast(rgb["ink"], cell) >= 4.5


def test_marks_beside_the_contents_have_contrast(visit: Any, tmp_path: Path) -> None:
    """Of what holds, and of what was not judged: signs alone are left out of the audit, words are not."""
    path = tmp_path / "page.html"
    sections = [Section("one", "One", element("p", "text"), mark="1 of 2, 1 open")]
    path.write_text(page("A page", element("p", "lead"), sections), "utf-8")
    assert audit(visit(path, viewport={"width": 1280, "height": 800})) == []


def contrast(a: Any, b: Any) -> float:
    def luminance(rgb: Any) -> float:
        part = rgb / 255
        linear = np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


def test_a_wide_table_scrolls_and_the_page_does_not(visit: Any, small_page: Path) -> None:
    page = visit(small_page, viewport={"width": 360, "height": 700})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert page.locator(".scroll").evaluate("e => e.scrollWidth > e.clientWidth")
    assert not page.locator("nav ol").is_visible()  # the contents are folded on a phone


def test_nothing_can_be_fetched_even_if_asked_for(browser: Any, small_page: Path) -> None:
    opened = Opened(browser, small_page)
    refused = "fetch('https://example.com').then(() => 'answered', () => 'refused')"
    assert opened.page.evaluate(refused) == "refused"
    assert any("Content Security Policy" in text for text in opened.complaints)
    opened.context.close()


def test_the_reproduction_report_in_a_browser(
    visit: Any, small_run: Any, small_report: Path
) -> None:
    """No error, every picture loads, every plot is visible, nothing leaves the page."""
    page = visit(small_report, viewport={"width": 1280, "height": 800})
    widths = page.locator("main .panels img").evaluate_all("all => all.map(i => i.naturalWidth)")
    assert len(widths) > 40
    assert min(widths) > 10
    plots = page.locator(".plot svg")
    planned = sum(len(entry.outcome.plots) for entry in small_run.entries)
    assert plots.count() == planned >= 9
    for box in (plots.nth(n).bounding_box() for n in range(planned)):
        assert box["width"] > 300
        assert box["height"] > 150
    strokes = plots.locator("path").evaluate_all("all => all.map(p => getComputedStyle(p).stroke)")
    assert sum(s.startswith("rgb(") for s in strokes) > planned
    assert page.locator("#summary .verdict").count() >= 15
    for link in page.locator("nav a").all():
        assert page.locator(link.get_attribute("href")).count() == 1
    assert audit(page) == []
