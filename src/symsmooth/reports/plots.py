"""Plots drawn once by matplotlib, as SVG in the page's own colours.

Matplotlib is asked for colours that nobody uses; in the page each of them is replaced by a variable
of ``style.css``, so plots follow light and dark.
"""

from __future__ import annotations

import io
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Any

from ..core.plotting import MissingMatplotlib as MissingMatplotlib
from ..core.plotting import require_matplotlib
from .page import Html

# Variables of style.css, and their stand-ins while drawing.
STAND_INS: Mapping[str, str] = {
    "ink": "#010101", "muted": "#020202", "line": "#030303", "paper-mark": "#040404",
    **{f"series-{n}": f"#1{n:x}0101" for n in range(1, 11)},
}  # fmt: skip
N_SERIES = 10
_SETTINGS = threading.Lock()  # matplotlib's are shared by all threads
_LEGEND_WIDTH = 80  # letters, a handle counts for six
STYLES: Mapping[str, Mapping[str, Any]] = {
    "line": {"linewidth": 1.8, "marker": "o", "markersize": 3.6},
    "dashed": {"linewidth": 1.6, "linestyle": "--"},
    "faint": {"linewidth": 1.1},  # one of many thin lines
}


@dataclass(frozen=True)
class Series:
    """One line; ``colour`` is the number of a series' colour, from 1; 0 takes the next."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    style: str = "line"
    colour: int = 0


@dataclass(frozen=True)
class Plot:
    """What a plot shows."""

    title: str
    x_label: str
    y_label: str
    series: Sequence[Any]
    across: Sequence[tuple[float, str]] = ()  # level lines (y, what it is)

    @cached_property
    def _drawn(self) -> str:
        """The SVG with stand-ins for colours; the same for the same plot, without a date."""
        require_matplotlib()
        import matplotlib

        out = io.StringIO()
        settings = {"svg.fonttype": "none", "svg.hashsalt": self.title}
        with _SETTINGS, matplotlib.rc_context(settings):
            metadata = {"Date": None, "Creator": None}
            figure = self._draw(STAND_INS)
            figure.savefig(out, format="svg", metadata=metadata, transparent=True)
        return out.getvalue()

    def to_svg(self) -> Html:
        """Return the plot for a page, in the page's colours."""
        text = self._drawn[self._drawn.index("<svg") :]
        for name, stand_in in STAND_INS.items():
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

    def _draw(self, colours: Mapping[str, str]) -> Any:
        """Return a matplotlib figure."""
        require_matplotlib()
        import matplotlib
        from matplotlib.figure import Figure

        ink, muted, grid = colours["ink"], colours["muted"], colours["line"]
        style = {
            "font.family": "sans-serif", "font.size": 9.5, "text.color": ink,
            "axes.labelcolor": muted, "axes.edgecolor": grid, "axes.titlesize": 10.5,
            "xtick.color": grid, "ytick.color": grid,
            "xtick.labelcolor": muted, "ytick.labelcolor": muted,
        }  # fmt: skip
        with matplotlib.rc_context(style):
            figure = Figure(figsize=(5.2, 3.8), layout="constrained")
            axes = figure.subplots()
            axes.set_xlabel(self.x_label)
            axes.set_ylabel(self.y_label)
            axes.grid(True, color=grid, linewidth=0.6)
            axes.set_axisbelow(True)
            axes.spines[["top", "right"]].set_visible(False)
            _add_legend(figure, self._draw_lines(axes, colours))
        return figure

    def _draw_lines(self, axes: Any, colours: Mapping[str, str]) -> list[Any]:
        """Draw what there is; return what the legend names."""
        for number, series in enumerate(self.series, start=1):
            colour = colours[f"series-{((series.colour or number) - 1) % N_SERIES + 1}"]
            style = {"color": colour, **STYLES[series.style]}
            axes.plot(list(series.x), list(series.y), label=series.label or "_", **style)
        for level, text in self.across:
            muted = colours["muted"]
            axes.axhline(level, color=muted, linewidth=1, linestyle=(0, (4, 3)), label=text)
        handles: list[Any] = axes.get_legend_handles_labels()[0]
        return handles


def _add_legend(figure: Any, handles: list[Any]) -> None:
    handles = [h for h in handles if not str(h.get_label()).startswith("_")]
    if not handles:
        return
    columns = min(len(handles), 5 if len(handles) > 4 else 4)
    longest = max(len(str(handle.get_label())) for handle in handles)
    columns = max(min(columns, _LEGEND_WIDTH // (longest + 6)), 1)
    figure.legend(
        handles=handles, loc="outside lower center", ncols=columns, frameon=False, fontsize=8.8,
        columnspacing=1.4, handlelength=1.7,
    )  # fmt: skip
