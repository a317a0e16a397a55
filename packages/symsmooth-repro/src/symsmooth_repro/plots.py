"""Plots of the paper's figures: points, printed numbers, two axes, logarithms; and files of them."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from symsmooth.reports import plots
from symsmooth.reports.plots import N_SERIES, STAND_INS

Style = Literal["line", "points", "paper", "dashed", "steps", "faint"]

# What colours of a page are in files: the light ones.
_COLOURS = {
    "ink": "#1d2430", "muted": "#667085", "line": "#d5dae1", "paper-mark": "#b54708",
    "series-1": "#1f5fbf", "series-2": "#0e8a6d", "series-3": "#a03fa8", "series-4": "#b7791f",
    "series-5": "#c0392b", "series-6": "#4b7f1f", "series-7": "#0b7fa5", "series-8": "#7a5c3e",
    "series-9": "#6b4fd0", "series-10": "#52606d",
}  # fmt: skip
_STYLES = {
    **plots.STYLES,
    "points": {"linestyle": "none", "marker": "o", "markersize": 5.5},
    "steps": {"linewidth": 1.0, "linestyle": ":", "marker": "s", "markersize": 4.5},
    "paper": {  # the printed numbers: open diamonds
        "linestyle": "none", "marker": "D", "markersize": 6.5, "markerfacecolor": "none",
        "markeredgewidth": 1.5, "zorder": 5,
    },
}  # fmt: skip


@dataclass(frozen=True)
class Series(plots.Series):
    """One line or set of points."""

    style: Style = "line"
    right: bool = False  # measured on the right axis


@dataclass(frozen=True)
class Plot(plots.Plot):
    """What a plot shows."""

    right_label: str = ""
    x_log: bool = False
    y_log: bool = False
    x_ticks: Sequence[float] = ()
    across_right: bool = False
    upright: Sequence[tuple[float, str]] = ()  # (x, what it is)

    def to_svg_file(self) -> bytes:
        """Return an SVG file in light colours."""
        text = self._drawn.replace("<svg ", '<svg style="background: #ffffff" ', 1)
        for name, stand_in in STAND_INS.items():
            text = text.replace(stand_in, _COLOURS[name])
        return text.encode("utf-8")

    def to_png_file(self) -> bytes:
        """Return a PNG file in light colours."""
        out = io.BytesIO()
        self._draw(_COLOURS).savefig(out, format="png", dpi=150, facecolor="white")
        return out.getvalue()

    def _draw_lines(self, axes: Any, colours: Mapping[str, str]) -> list[Any]:
        right = axes
        if any(series.right for series in self.series):
            right = axes.twinx()
            right.spines[["top"]].set_visible(False)
            right.set_ylabel(self.right_label)
        self._set_scales(axes)
        number = 0
        for series in self.series:
            number += series.colour == 0 and series.style != "paper"
            colour = colours[f"series-{((series.colour or number) - 1) % N_SERIES + 1}"]
            style = {"color": colour}
            if series.style == "paper":
                style = {"markeredgecolor": colour if series.colour else colours["paper-mark"]}
            place = right if series.right else axes
            drawn = {"label": series.label or "_", **style, **_STYLES[series.style]}
            place.plot(list(series.x), list(series.y), **drawn)
        for level, text in self.across:
            dashes: Any = {"color": colours["muted"], "linewidth": 1, "linestyle": (0, (4, 3))}
            (right if self.across_right else axes).axhline(level, label=text, **dashes)
        for at, text in self.upright:
            axes.axvline(at, color=colours["paper-mark"], linewidth=1.2, linestyle=":", label=text)
        both = [axes] if right is axes else [axes, right]
        return [handle for each in both for handle in each.get_legend_handles_labels()[0]]

    def _set_scales(self, axes: Any) -> None:
        from matplotlib.ticker import NullFormatter, ScalarFormatter

        for log, axis, set_scale in (
            (self.x_log, axes.xaxis, axes.set_xscale),
            (self.y_log, axes.yaxis, axes.set_yscale),
        ):
            if log:
                set_scale("log")
                axis.set_major_formatter(ScalarFormatter())
                axis.set_minor_formatter(NullFormatter())
        if self.x_ticks:
            axes.set_xticks(list(self.x_ticks))
            axes.minorticks_off()
