"""HTML elements as strings that are escaped once, where they are made."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

_VOID = {"br", "img", "input", "link", "meta"}  # elements without an end


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
