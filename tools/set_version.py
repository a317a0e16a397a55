"""Write the number of the next release wherever a file must hold it.

Usage: python tools/set_version.py 1.2.3 [DATE].

The version of all three packages is that of the tag (setuptools-scm).  What cannot ask git holds the number
of the release that is being worked on: it is written here and nowhere else by hand, and
``tests/test_packaging.py`` fails where two of them differ.  A date (2026-11-18) closes the first heading of
the changelog; without one it says "unreleased".
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECTS = (
    "pyproject.toml",
    "packages/symsmooth-repro/pyproject.toml",
    "packages/napari-symsmooth/pyproject.toml",
)
# A file, and what stands before and after the number in it.
PLACES = (
    *((name, r'^fallback_version = "', r'\.dev0"$') for name in PROJECTS),
    *((name, r'"symsmooth(?:\[plots\])?~=', r'\.dev0"') for name in PROJECTS[1:]),
    *(
        (f"packaging/conda/{name}/recipe.yaml", r'^  version: "', r'"$')
        for name in ("symsmooth", "symsmooth-repro", "napari-symsmooth")
    ),
    ("Dockerfile", r"^ARG VERSION=", r"\.dev0$"),
    ("CITATION.cff", r"^version: ", r"$"),
    ("CHANGELOG.md", r"^## ", r" \((?:unreleased|\d{4}-\d\d-\d\d)\)$"),
)
NUMBER = r"\d+\.\d+\.\d+"


def numbers(root: Path = ROOT) -> dict[str, str]:
    """Return the number that each place holds."""
    found = {}
    for name, before, after in PLACES:
        pattern = re.compile(rf"{before}({NUMBER}){after}", re.MULTILINE)
        match = pattern.search((root / name).read_text("utf-8"))
        if match is None:
            raise ValueError(f"{name} has no version after {before}")
        found[f"{name} {before}"] = match[1]
    return found


def write(version: str, date: str = "", root: Path = ROOT) -> None:
    """Write a number, and the date of the release, to all places."""
    if not re.fullmatch(NUMBER, version):
        raise ValueError(f"a version is three numbers, as in 1.2.3, got {version!r}")
    if date and not re.fullmatch(r"\d{4}-\d\d-\d\d", date):
        raise ValueError(f"a date is written as in 2026-11-18, got {date!r}")
    for name, before, after in PLACES:
        path = root / name
        pattern = re.compile(rf"({before}){NUMBER}({after})", re.MULTILINE)
        path.write_text(
            pattern.sub(rf"\g<1>{version}\g<2>", path.read_text("utf-8"), count=1), "utf-8"
        )
    changelog = root / "CHANGELOG.md"
    heading = re.compile(r"^## .*$", re.MULTILINE)
    new = f"## {version} ({date or 'unreleased'})"
    changelog.write_text(heading.sub(new, changelog.read_text("utf-8"), count=1), "utf-8")
    citation = root / "CITATION.cff"
    text = re.sub(r"^date-released: .*\n", "", citation.read_text("utf-8"), flags=re.MULTILINE)
    if date:
        text = re.sub(
            r"^(version: .*\n)", rf"\g<1>date-released: {date}\n", text, flags=re.MULTILINE
        )
    citation.write_text(text, "utf-8")


if __name__ == "__main__":
    write(*sys.argv[1:3])
