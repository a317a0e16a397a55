"""The shell of a page: one file, no network, light and dark, usable by keyboard."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

from .markup import Child, Html, element, join, prose

# Nothing may be fetched from anywhere: the browser itself refuses.
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


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
