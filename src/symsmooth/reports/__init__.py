"""Building blocks of the HTML pages we write: each page is one file that needs no network.

- ``markup``: elements as escaped strings;
- ``page``: the shell: header, contents, sections, light and dark;
- ``tables``: one table, four forms: HTML, CSV, Markdown, plain rows;
- ``plots``: one plot, three forms: SVG inside the page (in the page's colours), SVG and PNG files;
- ``pictures``: strips of pictures with linked zoom and a divider.

``style.css`` and ``viewer.js`` are put into every page.  Nothing here knows of denoising.
"""

from __future__ import annotations

from .markup import Html, element, join, prose
from .page import Section, page
from .pictures import Panel, png_bytes, png_uri, strip, webp_uri
from .plots import Plot, Series, Style
from .tables import Compared, Row, Table

__all__ = [
    "Compared",
    "Html",
    "Panel",
    "Plot",
    "Row",
    "Section",
    "Series",
    "Style",
    "Table",
    "element",
    "join",
    "page",
    "png_bytes",
    "png_uri",
    "prose",
    "strip",
    "webp_uri",
]
