"""Plots drawn once by matplotlib: as SVG in the page's own colours, and as SVG and PNG files.

Matplotlib is asked for colours that nobody uses; in the page each of them is replaced by a variable
of ``style.css``, so plots follow light and dark.  In files they are replaced by the light colours.
"""

from __future__ import annotations

import io
import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from typing import Any, Literal

from ..core.plotting import MissingMatplotlib as MissingMatplotlib
from ..core.plotting import require_matplotlib
from .markup import Html

Style = Literal["line", "points", "paper", "dashed", "steps", "faint"]

# variable of style.css: its stand-in while drawing, its colour in files
_COLOURS = {
    "ink": ("#010101", "#1d2430"),
    "muted": ("#020202", "#667085"),
    "line": ("#030303", "#d5dae1"),
    "paper-mark": ("#040404", "#b54708"),
    "series-1": ("#110101", "#1f5fbf"),
    "series-2": ("#120101", "#0e8a6d"),
    "series-3": ("#130101", "#a03fa8"),
    "series-4": ("#140101", "#b7791f"),
    "series-5": ("#150101", "#c0392b"),
    "series-6": ("#160101", "#4b7f1f"),
    "series-7": ("#170101", "#0b7fa5"),
    "series-8": ("#180101", "#7a5c3e"),
    "series-9": ("#190101", "#6b4fd0"),
    "series-10": ("#1a0101", "#52606d"),
}
N_SERIES = 10
_SETTINGS = threading.Lock()  # matplotlib's are shared by all threads
_LEGEND_WIDTH = 80  # letters, a handle counts for six


@dataclass(frozen=True)
class Series:
    """One line or set of points.

    ``colour`` is the number of a series' colour, from 1; 0 takes the next.  ``style``: "paper" are the
    printed numbers (open diamonds), "faint" is one of many thin lines.
    """

    label: str
    x: Sequence[float]
    y: Sequence[float]
    style: Style = "line"
    colour: int = 0
    right: bool = False  # measured on the right axis


@dataclass(frozen=True)
class Plot:
    """What a plot shows."""

    title: str
    x_label: str
    y_label: str
    series: Sequence[Series]
    right_label: str = ""
    x_log: bool = False
    y_log: bool = False
    x_ticks: Sequence[float] = ()
    across: Sequence[tuple[float, str]] = field(
        default_factory=tuple
    )  # level lines (y, what it is)
    across_right: bool = False
    upright: Sequence[tuple[float, str]] = field(default_factory=tuple)  # (x, what it is)

    @cached_property
    def _drawn(self) -> str:
        """The SVG with stand-ins for colours; the same for the same plot, without a date."""
        require_matplotlib()
        import matplotlib

        out = io.StringIO()
        settings = {"svg.fonttype": "none", "svg.hashsalt": self.title}
        with _SETTINGS, matplotlib.rc_context(settings):
            figure = _draw(self, {name: stand_in for name, (stand_in, _) in _COLOURS.items()})
            metadata = {"Date": None, "Creator": None}
            figure.savefig(out, format="svg", metadata=metadata, transparent=True)
        return out.getvalue()

    def to_svg(self) -> Html:
        """Return the plot for a page, in the page's colours."""
        text = self._drawn[self._drawn.index("<svg") :]
        for name, (stand_in, _) in _COLOURS.items():
            text = text.replace(stand_in, f"var(--{name})")
        text = re.sub(r'width="[\d.]+pt" height="[\d.]+pt" ', "", text, count=1)
        text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
        text = text.replace("<svg ", f'<svg role="img" aria-label="{escape(self.title)}" ', 1)
        return Html(f'<figure class="plot">{text}</figure>')

    def to_figure(self) -> Html:
        """Return the plot for a page, under its title."""
        start = '<figure class="plot">'
        title = f"<figcaption><b>{escape(self.title)}</b></figcaption>"
        return Html(self.to_svg().replace(start, start + title, 1))

    def to_svg_file(self) -> bytes:
        """Return an SVG file in light colours."""
        text = self._drawn.replace("<svg ", '<svg style="background: #ffffff" ', 1)
        for stand_in, colour in _COLOURS.values():
            text = text.replace(stand_in, colour)
        return text.encode("utf-8")

    def to_png_file(self) -> bytes:
        """Return a PNG file in light colours."""
        figure = _draw(self, {name: colour for name, (_, colour) in _COLOURS.items()})
        out = io.BytesIO()
        figure.savefig(out, format="png", dpi=150, facecolor="white")
        return out.getvalue()


def _draw(plot: Plot, colours: dict[str, str]) -> Any:
    """Return a matplotlib figure."""
    require_matplotlib()
    import matplotlib
    from matplotlib.figure import Figure

    ink, muted, grid = colours["ink"], colours["muted"], colours["line"]
    style = {
        "font.family": "sans-serif",
        "font.size": 9.5,
        "text.color": ink,
        "axes.labelcolor": muted,
        "axes.edgecolor": grid,
        "axes.titlesize": 10.5,
        "xtick.color": grid,
        "ytick.color": grid,
        "xtick.labelcolor": muted,
        "ytick.labelcolor": muted,
    }
    with matplotlib.rc_context(style):
        figure = Figure(figsize=(5.2, 3.8), layout="constrained")
        axes = figure.subplots()
        right = axes.twinx() if any(series.right for series in plot.series) else None
        _scales(plot, axes, right, grid)
        number = 0
        for series in plot.series:
            if series.colour == 0 and series.style != "paper":
                number += 1
            colour = colours[f"series-{((series.colour or number) - 1) % N_SERIES + 1}"]
            target = right if series.right and right is not None else axes
            _plot_series(target, series, colour, colours, named=bool(series.colour))
        for level, text in plot.across:
            target = right if plot.across_right and right is not None else axes
            target.axhline(level, color=muted, linewidth=1, linestyle=(0, (4, 3)), label=text)
        for at, text in plot.upright:
            axes.axvline(at, color=colours["paper-mark"], linewidth=1.2, linestyle=":", label=text)
        handles = [h for a in (axes, right) if a for h in a.get_legend_handles_labels()[0]]
        handles = [h for h in handles if not str(h.get_label()).startswith("_")]
        if handles:
            columns = min(len(handles), 5 if len(handles) > 4 else 4)
            longest = max(len(str(handle.get_label())) for handle in handles)
            columns = max(min(columns, _LEGEND_WIDTH // (longest + 6)), 1)
            figure.legend(
                handles=handles,
                loc="outside lower center",
                ncols=columns,
                frameon=False,
                fontsize=8.8,
                columnspacing=1.4,
                handlelength=1.7,
            )
    return figure


def _scales(plot: Plot, axes: Any, right: Any, grid: str) -> None:
    from matplotlib.ticker import NullFormatter, ScalarFormatter

    axes.set_xlabel(plot.x_label)
    axes.set_ylabel(plot.y_label)
    axes.grid(True, color=grid, linewidth=0.6)
    axes.set_axisbelow(True)
    for each in (axes, right):
        if each is not None:
            each.spines[["top"]].set_visible(False)
    axes.spines[["right"]].set_visible(False)
    if right is not None:
        right.set_ylabel(plot.right_label)
    for log, axis, set_scale in (
        (plot.x_log, axes.xaxis, axes.set_xscale),
        (plot.y_log, axes.yaxis, axes.set_yscale),
    ):
        if log:
            set_scale("log")
            axis.set_major_formatter(ScalarFormatter())
            axis.set_minor_formatter(NullFormatter())
    if plot.x_ticks:
        axes.set_xticks(list(plot.x_ticks))
        axes.minorticks_off()


def _plot_series(
    axes: Any, series: Series, colour: str, colours: dict[str, str], *, named: bool
) -> None:
    styles: dict[str, dict[str, Any]] = {
        "line": {"linewidth": 1.8, "marker": "o", "markersize": 3.6},
        "points": {"linestyle": "none", "marker": "o", "markersize": 5.5},
        "dashed": {"linewidth": 1.6, "linestyle": "--"},
        "faint": {"linewidth": 1.1},
        "steps": {"linewidth": 1.0, "linestyle": ":", "marker": "s", "markersize": 4.5},
    }
    if series.style == "paper":
        edge = colour if named else colours["paper-mark"]
        style: dict[str, Any] = {
            "linestyle": "none", "marker": "D", "markersize": 6.5,
            "markerfacecolor": "none", "markeredgecolor": edge, "markeredgewidth": 1.5, "zorder": 5,
        }  # fmt: skip
    else:
        style = {"color": colour, **styles[series.style]}
    axes.plot(list(series.x), list(series.y), label=series.label or "_", **style)
