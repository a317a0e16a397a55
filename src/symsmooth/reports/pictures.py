"""Pictures on a screen: one range of brightness, few enough pixels and bytes; and strips of them.

All pictures of a strip zoom and move together; any two can be laid over each other.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.ndimage

from ..core.image import Array
from ..core.parallel import Progress
from ..mixture.figures import flat_view
from .page import Html, element

# (quality of pictures, quality of method noise), tried until all fit; None loses nothing
_QUALITIES: tuple[tuple[int | None, int | None], ...] = (
    (None, None),
    (None, 90),
    (95, 85),
    (88, 70),
)
_MAX_SHOWN = 2**21  # pixels of a picture that is shown whole
_MIN_SIDE = 16  # nothing is made smaller than this
_BUDGET = 13_000_000  # characters of all pictures of a page


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


@dataclass(frozen=True)
class Range:
    """What is black and what is white."""

    low: float
    high: float

    def __call__(self, pixels: Array) -> Array:
        """Return pixels as grey or colour, 0 to 1; what is missing is black."""
        shown = flat_view(np.asarray(pixels, np.float32), -1 if pixels.ndim == 3 else None)
        shown = (shown - np.float32(self.low)) / np.float32((self.high - self.low) or 1.0)
        return np.clip(np.nan_to_num(shown, nan=0.0, posinf=1.0, neginf=0.0), 0.0, 1.0)

    def __str__(self) -> str:
        return f"black is {self.low:.4g}, white is {self.high:.4g}"


def display_range(pixels: Array) -> Range:
    """Return 0 to 255 for 8 bits; else all but the darkest and the brightest thousandth."""
    if pixels.dtype == np.uint8:
        return Range(0.0, 255.0)
    finite = pixels[np.isfinite(pixels)].astype(np.float64)
    if not finite.size:
        return Range(0.0, 1.0)
    low, high = np.quantile(finite[:: max(finite.size // 2**20, 1)], [0.001, 0.999])
    return Range(float(low), float(high))


def reduction(height: int, width: int, most: int = _MAX_SHOWN) -> int:
    """Return by what whole number the sides are divided so that a picture can be shown whole."""
    return int(np.ceil(np.sqrt(height * width / most)))


def reduce(pixels: Array, factor: int) -> Array:
    """Return means over squares of factor x factor pixels; a rest at the border is left out."""
    if factor == 1:
        return pixels
    height, width = (max(size // factor, 1) for size in pixels.shape[:2])
    whole = np.asarray(pixels[: height * factor, : width * factor], np.float32)
    return whole.reshape(height, -1, width, whole.shape[1] // width, *whole.shape[2:]).mean((1, 3))


def busiest(pixels: Array, side: int) -> tuple[slice, slice]:
    """Return the window, at most ``side`` pixels wide and high, where a picture changes most."""
    grey = np.nan_to_num(np.asarray(pixels, np.float32))
    grey = grey.mean(axis=-1) if grey.ndim == 3 else grey
    sides = [min(side, size) for size in grey.shape]
    change = np.abs(scipy.ndimage.gaussian_laplace(grey, 2.0, mode="nearest"))
    change = np.minimum(change, np.quantile(change, 0.98))  # many edges, not one strong one
    mean = scipy.ndimage.uniform_filter(change, sides, mode="constant")
    inner = mean[
        tuple(slice(s // 2, n - s + s // 2 + 1) for s, n in zip(sides, grey.shape, strict=True))
    ]
    corner = np.unravel_index(int(np.argmax(inner)), inner.shape)
    y, x = (slice(int(c), int(c) + s) for c, s in zip(corner, sides, strict=True))
    return y, x


def encode(
    pictures: Sequence[Array],
    noises: Sequence[Array],
    budget: int = _BUDGET,
    progress: Progress | None = None,
) -> tuple[list[str], list[str], str]:
    """Return pictures and method noises (0 to 1) as data URIs within a budget, and what it took.

    First nothing is lost; then the method noise, then the pictures are compressed; at last sides are
    halved.
    """
    made: dict[tuple[int, int | None], str] = {}
    every = [*pictures, *noises]
    done = 0.0
    while True:
        for quality, noise_quality in _QUALITIES:
            keys = [(n, quality) for n in range(len(pictures))]
            keys += [(n, noise_quality) for n in range(len(pictures), len(every))]
            for number, key in enumerate(keys):
                if progress is not None:  # each attempt may be the last: half of what is left
                    progress(done + (1 - done) / 2 * number / len(keys), "pictures")
                if key not in made:
                    made[key] = webp_uri(every[key[0]], key[1])
            done += (1 - done) / 2
            small = max(every[0].shape[:2]) <= _MIN_SIDE
            if small or sum(len(made[key]) for key in keys) <= budget:
                uris = [made[key] for key in keys]
                caption = _caption(quality, noise_quality, every[0].shape, pictures[0].shape)
                return uris[: len(pictures)], uris[len(pictures) :], caption
        every, made = [reduce(pixels, 2) for pixels in every], {}


def _caption(
    quality: int | None, noise: int | None, shape: Sequence[int], given: Sequence[int]
) -> str:
    if quality is not None:
        caption = f"compressed with loss (WebP, quality {quality}; method noise {noise})"
    elif noise is not None:
        caption = f"as they are, the method noise compressed with loss (WebP, quality {noise})"
    else:
        caption = "compressed without loss"
    factor = round(given[0] / shape[0])
    return (
        caption if factor == 1 else f"{caption}, sides divided by {factor} to keep the page small"
    )
