"""Building blocks of the HTML pages we write: each page is one file that needs no network.

- ``markup``: elements as escaped strings;
- ``page``: the shell: header, contents, sections, light and dark;
- ``tables``: a table in HTML;
- ``plots``: lines as SVG inside the page, in the page's colours;
- ``pictures``: strips of pictures with linked zoom and a divider.

``style.css`` and ``viewer.js`` are put into every page.  Nothing here knows of denoising.
"""

from __future__ import annotations

from .markup import Html, element, join, prose
from .page import Section, page
from .pictures import Panel, strip, webp_uri
from .plots import Plot, Series
from .tables import Row, Table

__all__ = [
    "Html",
    "Panel",
    "Plot",
    "Row",
    "Section",
    "Series",
    "Table",
    "element",
    "join",
    "page",
    "prose",
    "strip",
    "webp_uri",
]
