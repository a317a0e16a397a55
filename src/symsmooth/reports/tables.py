"""A table in HTML."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .markup import Child, Html, element, prose

Value = str | int | float | None
Row = list[Value]


@dataclass(frozen=True)
class Table:
    """Rows of values under a head; the first column names the row."""

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[Any]]
    digits: int = 2
    note: str = ""

    def to_html(self) -> Html:
        """Return the table; wide ones scroll by themselves."""
        texts = [any(_is_text(row[n]) for row in self.rows) for n in range(len(self.head))]
        head = [
            element("th", prose(name), scope="col", class_="text" if text else None)
            for name, text in zip(self.head, texts, strict=True)
        ]
        rows = [
            element(
                "tr",
                element("th", self._text(row[0]), scope="row"),
                [self._cell(value) for value in row[1:]],
            )
            for row in self.rows
        ]
        table = element(
            "table",
            element("caption", prose(self.caption)),
            element("thead", element("tr", head)),
            element("tbody", rows),
        )
        return element(
            "div",
            element(
                "div", table, class_="scroll", tabindex="0", role="region", aria_label=self.caption
            ),
            self._legend(),
            element("p", prose(self.note), class_="note") if self.note else None,
            class_="table",
        )

    def _text(self, value: Any) -> str:
        if isinstance(value, float):
            return f"{value:.{self.digits}f}"
        return "" if value is None else str(value)

    def _cell(self, value: Any) -> Html:
        return element("td", self._text(value), class_=None if _is_text(value) else "number")

    def _legend(self) -> Child:
        return None


def _is_text(value: Any) -> bool:
    """Whether a cell is words; numbers that were made strings, such as 12 %, are none."""
    return isinstance(value, str) and bool(re.search(r"[^\d\s.+%\N{MINUS SIGN}-]", value))
