"""Make the tables of README and docs from what is kept in ``benchmarks/stored``.

Usage: python benchmarks/pages.py [--check].

A page marks where a table goes by two comments, ``<!-- table: NAME -->`` and ``<!-- end -->``; what stands
between them is replaced.  With --check nothing is written; pages that differ from what is kept are named,
and so are figures that do not say where they come from.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

import origins
import tables

ROOT = Path(__file__).parents[1]
MARKED = re.compile(r"(<!-- table: ([\w-]+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def pages() -> list[Path]:
    """Return the pages that have marks."""
    found = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    built = {"_build", "gallery", "generated"}
    return [
        path
        for path in found
        if not built & set(path.relative_to(ROOT).parts) and MARKED.search(path.read_text("utf-8"))
    ]


def made(text: str) -> str:
    """Return the text of a page with all its tables as they should be."""

    def replace(found: re.Match[str]) -> str:
        name = found[2]
        if name not in tables.TABLES:
            raise KeyError(f"there is no table {name}; use {', '.join(tables.TABLES)}")
        return f"{found[1]}{tables.TABLES[name]().rstrip()}\n{found[4]}"

    return MARKED.sub(replace, text)


def main() -> int:
    """Write the pages, or say which are not as they should be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    nameless = origins.missing()
    print("".join(f"{line}\n" for line in nameless), end="")
    if nameless:
        return 1  # no page is made of such figures
    wrong = 0
    for path in pages():
        text = path.read_text("utf-8")
        new = made(text)
        if new == text:
            continue
        wrong += 1
        name = path.relative_to(ROOT)
        print(f"{name}: {'differs from benchmarks/stored' if check else 'made again'}")
        if not check:
            path.write_text(new, "utf-8")
    if not check:
        tables.draw_front(ROOT / "docs" / "images" / "front.svg")
    return 1 if check and wrong else 0


if __name__ == "__main__":
    sys.exit(main())
