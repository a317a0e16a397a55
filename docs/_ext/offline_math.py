"""Formulas as MathML: browsers draw it themselves, so no script and no network is needed.

LaTeX is turned into MathML by latex2mathml; STIX Two Math (SIL Open Font Licence) comes with ziamath
and is copied to the pages, so that formulas look alike everywhere.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import latex2mathml.converter
import ziamath
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.math import get_node_equation_number

FONT = Path(ziamath.__file__).parent / "fonts" / "STIXTwoMath-Regular.ttf"


def inline(writer: Any, node: nodes.math) -> None:
    """Write a formula in a line of text."""
    writer.body.append(latex2mathml.converter.convert(node.astext()))
    raise nodes.SkipNode


def display(writer: Any, node: nodes.math_block) -> None:
    """Write a formula by itself, with its number if it has a label."""
    writer.body.append(writer.starttag(node, "div", CLASS="formula"))
    writer.body.append(latex2mathml.converter.convert(node.astext(), display="block"))
    if node["number"]:
        number = get_node_equation_number(writer, node)
        writer.body.append(f'<span class="eqno">({number})')
        writer.add_permalink_ref(node, "Link to this equation")
        writer.body.append("</span>")
    writer.body.append("</div>\n")
    raise nodes.SkipNode


def copy_font(app: Sphinx, error: Exception | None) -> None:
    """Put the font beside the pages."""
    if error is None and app.builder.format == "html":
        shutil.copy(FONT, app.outdir / "_static" / FONT.name)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the renderer; ``html_math_renderer = "mathml"`` chooses it."""
    app.add_html_math_renderer("mathml", (inline, None), (display, None))
    app.connect("build-finished", copy_font)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
