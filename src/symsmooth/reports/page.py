"""A page in HTML: elements that are escaped once, where they are made; tables; and the shell.

A page is one file, asks for nothing from the network, is light and dark, and usable by keyboard.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from typing import Any

# Nothing may be fetched from anywhere: the browser itself refuses.
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
_VOID = {"br", "img", "input", "link", "meta"}  # elements without an end
Value = str | int | float | None
Row = list[Value]


class Html(str):
    """Text that is markup already; any other string is escaped when it becomes a child."""

    __slots__ = ()


Child = str | Html | None | Iterable["Child"]


def element(tag: str, *children: Child, **attributes: str | float | bool | None) -> Html:
    """Return <tag attributes>children</tag>.

    A trailing underscore in a name is dropped (``class_``), others become dashes (``aria_label``).
    True stands alone, None and False leave the attribute out.

    Examples
    --------
    >>> element("p", "a < b", element("b", "!"), class_="note", hidden=True)
    '<p class="note" hidden>a &lt; b<b>!</b></p>'
    """
    given = "".join(_attribute(name, value) for name, value in attributes.items())
    if tag in _VOID:
        return Html(f"<{tag}{given}>")
    return Html(f"<{tag}{given}>{join(children)}</{tag}>")


def join(children: Child) -> Html:
    """Return children one after another; plain strings are escaped, None is nothing."""
    if children is None:
        return Html("")
    if isinstance(children, str):
        return children if isinstance(children, Html) else Html(escape(children))
    return Html("".join(join(child) for child in children))


def prose(text: str) -> Html:
    """Return plain text as markup: h_r with a real subscript, -0.3 with a real minus.

    Examples
    --------
    >>> prose("h_r < 2")
    'h<sub>r</sub> &lt; 2'
    """
    marked = re.sub(r"(?<![a-z_])([A-Za-z])_([a-z])(?![a-z])", r"\1<sub>\2</sub>", escape(text))
    return Html(re.sub(r"(?<![\w.;&#])-(?=\d)", "\N{MINUS SIGN}", marked))


def _attribute(name: str, value: str | float | bool | None) -> str:
    if value is None or value is False:
        return ""
    name = name.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escape(str(value))}"'


@dataclass(frozen=True)
class Section:
    """A part of a page that the contents name."""

    id: str
    title: str
    body: Child
    kicker: str = ""  # a few words above the title
    mark: str = ""  # a sign behind the title in the contents


def page(title: str, lead: Child, sections: Sequence[Section], *, foot: Child = None) -> str:
    """Return a whole HTML document.

    Examples
    --------
    >>> text = page("A < B", "lead", [Section("one", "One", element("p", "text"))])
    >>> text.startswith("<!doctype html>") and "A &lt; B" in text
    True
    """
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("title", title),
        element("link", rel="icon", href="data:,"),
        element("style", _asset("style.css")),
    )
    toggle = element("button", "Dark", type="button", class_="theme", hidden=True)
    header = element("header", element("h1", title), toggle, class_="top")
    body = element(
        "body",
        element("a", "Skip to the content", href="#content", class_="skip"),
        header,
        element(
            "div",
            _contents(sections),
            element(
                "main",
                element("div", lead, class_="lead"),
                [_section(section) for section in sections],
                element("footer", foot),
                id="content",
                tabindex="-1",
            ),
            class_="frame",
        ),
        element("script", _asset("viewer.js")),
    )
    return "<!doctype html>\n" + element("html", head, body, lang="en")


def _contents(sections: Sequence[Section]) -> Html:
    entries = [
        element(
            "li",
            element(
                "a",
                element("span", prose(section.title)),
                element("span", section.mark, class_="mark") if section.mark else None,
                href=f"#{section.id}",
            ),
        )
        for section in sections
    ]
    return element(
        "nav",
        element("details", element("summary", "Contents"), element("ol", entries), open=True),
        aria_label="Contents",
    )


def _section(section: Section) -> Html:
    title = element("h2", prose(section.title), id=f"{section.id}-title")
    kicker = element("p", section.kicker, class_="kicker") if section.kicker else None
    return element(
        "section",
        join([kicker, title, section.body]),
        id=section.id,
        aria_labelledby=f"{section.id}-title",
    )


def _asset(name: str) -> Html:
    return Html((files(__package__) / name).read_text("utf-8"))


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
