"""Tables of numbers beside those that the paper prints: in HTML, as CSV, in Markdown."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from symsmooth.reports import page
from symsmooth.reports.page import Child, Html, element

# |difference| from which a cell is coloured more strongly
_STEPS = (0.05, 0.15, 0.3, 0.6)


@dataclass(frozen=True)
class Compared:
    """A number of ours beside a printed one; either may be missing."""

    ours: float | None
    printed: float | None
    digits: int = 2
    relative: bool = False  # the difference is shown, and coloured, in percent of the printed one

    @property
    def difference(self) -> float | None:
        """Ours - printed, or None."""
        if self.ours is None or self.printed is None:
            return None
        return round(self.ours, self.digits) - round(self.printed, self.digits)

    @property
    def share(self) -> float | None:
        """The difference in parts of the printed number, or None."""
        if self.difference is None or not self.printed:
            return None
        return self.difference / self.printed

    @property
    def difference_text(self) -> str:
        """The difference in words."""
        if self.relative:
            return "" if self.share is None else f"{_sign(100 * self.share, 0)} %"
        return "" if self.difference is None else _sign(self.difference, self.digits)

    @property
    def level(self) -> int:
        """How far apart, from -4 (ours is far below) to 4."""
        apart = self.share if self.relative else self.difference
        if apart is None:
            return 0
        step = sum(abs(apart) >= limit - 1e-9 for limit in _STEPS)
        return step if apart > 0 else -step


Value = str | int | float | None | Compared
Row = list[Value]


class Table(page.Table):
    """Rows of values under a head, some of them beside printed ones; differences are coloured by size."""

    def to_csv(self) -> str:
        """Return the table as CSV; a compared value is three columns: ours, printed, difference."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        split = [
            any(isinstance(row[n], Compared) for row in self.rows) for n in range(len(self.head))
        ]
        writer.writerow(
            name
            for title, wide in zip(self.head, split, strict=True)
            for name in ([title, f"{title} (paper)", f"{title} (difference)"] if wide else [title])
        )
        for row in self.rows:
            cells: list[object] = []
            for value, wide in zip(row, split, strict=True):
                if isinstance(value, Compared):
                    cells += [_rounded(n) for n in (value.ours, value.printed, value.difference)]
                else:
                    cells += [_rounded(value), *(["", ""] if wide else [])]
            writer.writerow(cells)
        return out.getvalue()

    def to_markdown(self) -> str:
        """Return the table as Markdown; printed numbers stand in brackets."""
        lines = [f"**{self.caption}**", "", _line(self.head), _line(["---"] * len(self.head))]
        lines += [_line([self._text(value) for value in row]) for row in self.rows]
        if self.note:
            lines += ["", self.note]
        return "\n".join(lines)

    def _text(self, value: Any) -> str:
        if not isinstance(value, Compared):
            return super()._text(value)
        printed = "" if value.printed is None else f" ({value.printed:.{value.digits}f})"
        ours = "-" if value.ours is None else f"{value.ours:.{value.digits}f}"
        return ours + printed

    def _cell(self, value: Any) -> Html:
        if not isinstance(value, Compared):
            return super()._cell(value)
        if value.ours is None:
            ours: Child = element("span", "-", class_="absent")
        else:
            ours = element("span", f"{value.ours:.{value.digits}f}", class_="ours")
        below = [
            element("span", f"{value.printed:.{value.digits}f}", class_="printed")
            if value.printed is not None
            else None,
            element("span", value.difference_text, class_="apart")
            if value.difference_text
            else None,
        ]
        level = value.level
        shade = f"level-{'down' if level < 0 else 'up'}-{abs(level)}" if level else ""
        inner = element("div", *below, class_="below") if any(below) else None
        return element("td", ours, inner, class_=f"number compared {shade}".strip())

    def _legend(self) -> Child:
        values = (value for row in self.rows for value in row)
        if not any(isinstance(value, Compared) and value.difference_text for value in values):
            return None
        names = ["below", "down-4", "down-3", "down-2", "down-1", "up-1", "up-2", "up-3", "up-4"]
        swatches = [element("i", class_=f"level-{name}") for name in names[1:]]
        return element(
            "p",
            "Large: ours. Small: the paper's, and the difference. Below the paper ",
            element("span", swatches, class_="swatches", aria_hidden="true"),
            " above it",
            class_="legend",
        )


def _sign(number: float, digits: int) -> str:
    """Return a number with its sign, and with a real minus."""
    text = f"{number:+.{digits}f}"
    if not float(text):
        return f"{0:.{digits}f}"
    return text.replace("-", "\N{MINUS SIGN}")


def _rounded(value: object) -> object:
    if isinstance(value, float):
        return round(value, 4)
    return "" if value is None else value


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"
