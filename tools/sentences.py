"""One sentence a line in Markdown: a change of one sentence is then a change of one line.

Usage: python tools/sentences.py [--check] PAGE ...

Code, tables, headings, comments, directives and formulas stay as they are.  With --check nothing is
written; the first line that is wrong in each page is named.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

_ITEM = re.compile(r"^(\s*)([-*]|\d+\.)\s+")
_VERBATIM = re.compile(r"^\s*(#|\||<|>|:|!\[|\{|\$\$|---|%|\.\.|\([\w-]+\)=|\[[^]]+\]:)")
_FENCE = re.compile(r"^\s*(`{3,}|:{3,}|\$\$)")
_SHORT = re.compile(
    r"(?:\b(?:e\.g|i\.e|vs|cf|al|etc|Fig|Eq|No|Trans|Proc|Dr|approx)|\b[A-Z]|^\d+)\.$"
)


def split(text: str) -> list[str]:
    """Return the sentences of a paragraph; what stands in backticks or brackets is not looked into."""
    hidden: list[str] = []

    def hide(found: re.Match[str]) -> str:
        hidden.append(found[0])
        return f"\x00{len(hidden) - 1}\x01"

    bare = re.sub(r"`+[^`]*`+|\([^()]*\)|\$[^$]+\$", hide, text)
    bare = re.sub(r"\[[^][]*\]\x00\d+\x01", hide, bare)  # links
    parts: list[str] = []
    start = 0
    for found in re.finditer(r"(?<=[.!?])[\"'*\])]*\s+(?=[A-Z0-9\x00*\[(\"'])", bare):
        sentence = bare[start : found.end()].strip()
        if not _SHORT.search(sentence.rstrip("\"'*])")):
            parts.append(sentence)
            start = found.end()
    parts.append(bare[start:].strip())
    return [_shown(part, hidden) for part in parts if part]


def _shown(text: str, hidden: list[str]) -> str:
    while "\x00" in text:
        text = re.sub("\x00(\\d+)\x01", lambda found: hidden[int(found[1])], text)
    return text


def tidy(text: str) -> str:
    """Return a page with one sentence a line."""
    return "\n".join(_lines(text.split("\n")))


def _lines(lines: list[str]) -> Iterator[str]:
    fence = ""
    held: list[str] = []  # lines of one paragraph, or of one item of a list
    front = bool(lines) and lines[0] == "---"
    for number, line in enumerate(lines):
        if front:
            yield line
            front = number == 0 or line != "---"
            continue
        opened = _FENCE.match(line)
        if fence or opened:
            yield from _flush(held)
            if fence and _closes(line.strip(), fence):
                fence = ""
            elif opened and not fence and not (opened[1] == "$$" and line.count("$$") == 2):
                fence = opened[1]
            yield line
            if fence.startswith(":"):  # text between colons is text
                fence = ""
            continue
        if not line.strip() or _VERBATIM.match(line):
            yield from _flush(held)
            yield line
            continue
        if _ITEM.match(line):
            yield from _flush(held)
        held.append(line)
    yield from _flush(held)


def _closes(line: str, fence: str) -> bool:
    """Whether a line ends what a fence began; a formula has its label behind it."""
    if fence == "$$":
        return fence in line
    return line.startswith(fence) and line.strip(fence[0]) == ""


def _flush(held: list[str]) -> Iterator[str]:
    """Yield the sentences of what was held, and forget it."""
    if not held:
        return
    item = _ITEM.match(held[0])
    indent = " " * (len(item[1]) + 2) if item and item[2] in "-*" else ""
    if item and item[2] not in "-*":
        indent = " " * len(item[0])
    if not item:
        indent = re.match(r"\s*", held[0])[0]  # type: ignore[index]
    first = item[0] if item else indent
    text = " ".join(line.strip() for line in held)
    body = text[len(item[0].strip()) :].strip() if item else text
    for number, sentence in enumerate(split(body)):
        yield (indent if number else first) + sentence
    held.clear()


def main() -> int:
    """Write the pages, or name those that are not so."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pages", nargs="+", type=Path)
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    wrong = 0
    for path in given.pages:
        text = path.read_text("utf-8")
        new = tidy(text)
        if new == text:
            continue
        wrong += 1
        if given.check:
            pairs = zip(text.split("\n"), new.split("\n"), strict=False)
            number, line = next((n, a) for n, (a, b) in enumerate(pairs, 1) if a != b)
            print(f"{path}:{number}: not one sentence: {line.strip()[:80]}")
        else:
            path.write_text(new, "utf-8")
    return 1 if given.check and wrong else 0


if __name__ == "__main__":
    sys.exit(main())
