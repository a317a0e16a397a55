"""Docstrings are written to be read as they are: |x| is a norm and ``*`` a star, not markup.

What means something else in reStructuredText is escaped on the way to the page, outside of literals; the
full stop of "eq." would end the summary.
"""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

_LITERAL = re.compile(r"(``.+?``|:\w+:`.+?`)")


def escape(line: str) -> str:
    r"""Escape bars and stars outside of literals.

    Examples
    --------
    >>> escape("|x| of ``(*a)``, (*b)")
    '\\|x\\| of ``(*a)``, (\\*b)'
    """
    if line.lstrip().startswith((">>>", "...")):
        return line
    parts = _LITERAL.split(line)
    parts[::2] = [re.sub(r"[|*]", r"\\\g<0>", part) for part in parts[::2]]
    return "".join(parts)


def tidy(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Escape a docstring in place, before numpydoc reads it."""
    lines[:] = [escape(line).replace("eq. (", "equation (") for line in lines]


def setup(app: Sphinx) -> dict[str, Any]:
    """Go before numpydoc, whose priority is 500."""
    app.connect("autodoc-process-docstring", tidy, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
