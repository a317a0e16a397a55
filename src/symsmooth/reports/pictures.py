"""Strips of pictures: all zoom and move together; any two can be laid over each other."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..core.image import Array
from .markup import Html, element


@dataclass(frozen=True)
class Panel:
    """One picture of a strip, as a data URI; ``other`` is what it can be switched to."""

    label: str
    uri: str
    note: str = ""
    other: str = ""


def webp_uri(pixels: Array, quality: int | None = None) -> str:
    """Return grey or colour pixels, 0 to 1 (clipped), as a WebP data URI; None loses nothing."""
    from PIL import Image

    levels = np.rint(np.clip(np.asarray(pixels, np.float32), 0.0, 1.0) * 255).astype(np.uint8)
    image = Image.fromarray(levels).convert("RGB")
    out = io.BytesIO()
    if quality is None:
        image.save(out, "WEBP", lossless=True, quality=20, method=1)  # 4 times as fast, 4 % more
    else:
        image.save(out, "WEBP", quality=quality, method=3)
    return "data:image/webp;base64," + base64.b64encode(out.getvalue()).decode("ascii")


def strip(
    title: str,
    panels: Sequence[Panel],
    *,
    other: str = "",
    below: Sequence[Panel] = (),
    below_title: str = "",
    ratio: float = 1.0,
    large: bool = False,
) -> Html:
    """Return a strip of panels of one size, under a title that is also said to those who cannot see it.

    ``other`` is what panels can be switched to; panels ``below`` are a row of their own and zoom with the
    others; ``ratio`` is width over height; ``large`` pictures are what the page is about: two of them are
    laid over each other at once.
    """
    every = [*panels, *below]
    switchable = bool(other) and any(panel.other for panel in panels)
    buttons = [
        _button("zoom-in", "+", "Zoom in"),
        _button("zoom-out", "\N{MINUS SIGN}", "Zoom out"),
        _button("reset", "Fit", "Show the whole pictures"),
        _button("swap", f"Show {other}", None, aria_pressed="false") if switchable else None,
        _button("overlay", "Overlay", None, aria_expanded="false") if len(every) > 1 else None,
    ]
    overlay = (
        _overlay(every, (0, 1) if large else (min(1, len(panels) - 1), len(panels) - 1))
        if len(every) > 1
        else None
    )
    return element(
        "div",
        element(
            "div",
            element("p", title, class_="strip-title"),
            element(
                "div", buttons, class_="tools", role="toolbar", aria_label="Pictures", hidden=True
            ),
            class_="strip-head",
        ),
        overlay if large else None,
        element("div", [_figure(panel) for panel in panels], class_="panels"),
        element("p", below_title, class_="strip-title") if below_title else None,
        element("div", [_figure(panel) for panel in below], class_="panels") if below else None,
        None if large else overlay,
        class_="strip large" if large else "strip",
        style=None if ratio == 1.0 else f"--ratio: {ratio:.4f}",
        data_viewer=True,
        data_open=large,
    )


def _figure(panel: Panel) -> Html:
    image = element(
        "img",
        src=panel.uri,
        alt=f"{panel.label} {panel.note}".strip(),
        data_other=panel.other or None,
        decoding="async",
        draggable="false",
    )
    caption = element(
        "figcaption",
        element("b", panel.label),
        " ",
        element("span", panel.note) if panel.note else "",
    )
    frame = element(
        "div",
        image,
        class_="lens",
        tabindex="0",
        role="group",
        aria_label=f"{panel.label}; plus and minus zoom, arrows move, 0 resets",
    )
    return element("figure", frame, caption)


def _overlay(panels: Sequence[Panel], sides: tuple[int, int]) -> Html:
    def choose(name: str, chosen: int) -> Html:
        options = [
            element("option", panel.label, value=n, selected=n == chosen)
            for n, panel in enumerate(panels)
        ]
        return element("label", f"{name} ", element("select", options, data_side=name.lower()))

    return element(
        "div",
        element("div", choose("Left", sides[0]), choose("Right", sides[1]), class_="sides"),
        element(
            "div",
            element("img", alt="left picture", data_layer="left", draggable="false"),
            element("img", alt="right picture", data_layer="right", draggable="false"),
            element("i", class_="divider", title="Drag, or use the slider below"),
            class_="lens large",
            tabindex="0",
            role="group",
            aria_label="Two pictures, one over the other; plus and minus zoom, arrows move, 0 resets",
        ),
        element(
            "input", type="range", min="0", max="100", value="50", step="0.5", aria_label="Divider"
        ),
        class_="overlay",
        hidden=True,
    )


def _button(action: str, text: str, label: str | None, **attributes: str) -> Html:
    return element(
        "button", text, type="button", data_do=action, aria_label=label, title=label, **attributes
    )
