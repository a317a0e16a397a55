"""``-``: a picture or video from standard input, or to standard output, through files nobody else sees."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from ..app.errors import UsageError

if TYPE_CHECKING:
    from ..app.jobs import Outcome

STREAM = "-"


@dataclass(frozen=True)
class Streams:
    """Names of files in the place of ``-``."""

    names: list[str]
    out: str
    hidden: tuple[str, ...] = ()  # names that mean nothing to a user

    def shown(self, text: str) -> str:
        """Return a message that says ``-`` for files that nobody sees."""
        for name in self.hidden:
            text = text.replace(name, STREAM)
        return text

    def renamed(self, outcome: Outcome) -> Outcome:
        """Return an outcome that says so."""
        source, target = (Path(self.shown(str(p))) for p in (outcome.source, outcome.target))
        return replace(outcome, source=source, target=target)

    @property
    def writes(self) -> bool:
        """Whether the result goes to standard output."""
        return self.out in self.hidden


@contextmanager
def opened_streams(names: list[str], out: str | None = None, format: str = "") -> Iterator[Streams]:
    """Put files in the place of ``-``; what was written to the last of them goes to standard output.

    None for ``out`` where only reading is asked for.
    """
    if out is not None:
        _check_output(out, format)
    if STREAM in (*names, out) and len(names) > 1:
        raise UsageError("- stands for one picture; give no other input beside it")
    if STREAM not in (*names, out):
        yield Streams(names, out or "")
        return
    with TemporaryDirectory(prefix="symsmooth-") as folder:
        reads = names == [STREAM]
        source = _read_stdin(Path(folder)) if reads else Path(names[0])
        hidden = [str(source)] if reads else []
        target = out or ""
        if out == STREAM:
            target = str(Path(folder) / f"out{_ending(source, format, names[0])}")
            hidden.append(target)
        yield Streams([str(source)], target, tuple(hidden))
        if out == STREAM and Path(target).exists():
            with open(target, "rb") as handle:
                shutil.copyfileobj(handle, sys.stdout.buffer)
            sys.stdout.buffer.flush()


def _check_output(out: str, format: str) -> None:
    if not out:
        raise UsageError(
            "-o is missing: give a file, a folder (ending in /), or - for standard output"
        )
    if out == STREAM and sys.stdout is None:
        raise UsageError("standard output is closed; give a file with -o")
    if format and out != STREAM:
        raise UsageError(
            "--format is for standard output (-o -); the ending of -o says a file's format"
        )


def _read_stdin(folder: Path) -> Path:
    """Write standard input to a file."""
    if sys.stdin is None:
        raise UsageError("standard input is closed; give the name of a file")
    if sys.stdin.buffer.isatty():
        raise UsageError(
            "standard input is a terminal; send a picture to it: symsmooth denoise - < noisy.png"
        )
    path = folder / "in"
    with open(path, "wb") as handle:
        shutil.copyfileobj(sys.stdin.buffer, handle)
    return path


def _ending(source: Path, format: str, name: str) -> str:
    """Return the ending that means a format: the one asked for, else that of the input."""
    from ..io import FileError, format_of
    from ..io.formats import detect_format, ending_of, is_video_name, video_ending

    try:
        if format:
            ending = f".{format.lower().lstrip('.')}"
            if is_video_name(f"x{ending}"):
                return ending
            found = format_of(f"x{ending}")
            if found == "ZARR":
                raise UsageError("a Zarr is a folder; it cannot go to standard output")
            return ending_of(found)
        found = detect_format(source)
        return video_ending(source) if found == "VIDEO" else ending_of(found)
    except FileNotFoundError:
        raise UsageError(f"{name}: no such file") from None
    except FileError as error:
        raise UsageError(f"{'--format' if format else name}: {error}") from error
