"""Many files: which, in which order, where to, what was done already.  Loads nothing at the top."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import UsageError

_BECOME_MKV = (".webm", ".avi", ".y4m")  # videos that are only read, or very large
_DIGITS = re.compile(r"(\d+)")
_MAX_LISTED = 6  # names in one line


@dataclass(frozen=True)
class OutputPlan:
    """Where inputs go, in their order, the outputs that were there already, and what is left out."""

    targets: dict[Path, Path]
    done: list[Path]
    skipped: list[str]  # a line for each folder that holds more than pictures


def plan_outputs(
    names: Sequence[str], out: str, overwrite: bool, resume: bool = False
) -> OutputPlan:
    """Say where each input goes; refuse, before any work, what would destroy a file.

    Files that a pattern finds keep their folders below its fixed part: ``in/**/*.tif`` with
    ``-o out/`` sends ``in/a/b.tif`` to ``out/a/b.tif``.  A folder stands for the pictures in it, and
    so does ``out`` then, with or without a slash.
    """
    if not names:
        raise UsageError("no input file is given")
    plan = OutputPlan({}, [], [])
    found = [pair for name in names for pair in expand(name, Path(out), plan.skipped.append)]
    is_new = not Path(out).suffix and not Path(out).exists()
    is_folder = is_folder_name(out) or (is_new and any(map(is_plain_folder, names)))
    if len(found) > 1 and not is_folder:
        raise UsageError(f"-o {out} must be a folder for several files; end it with /: -o {out}/")
    if not is_folder and is_new:
        raise UsageError(f"-o {out} has no ending, such as .png; end a folder with /: -o {out}/")
    taken: set[Path] = set()
    for source, below in found:
        target = Path(out) / output_name(below) if is_folder else Path(out)
        if source in plan.targets:
            continue
        if target in taken:
            raise UsageError(f"two inputs would be written to {target}; use two folders")
        taken.add(target)
        if target.exists() and not overwrite:
            is_input = source.exists() and target.samefile(source)
            if resume and not is_input:
                plan.done.append(target)
                continue
            what = "is the input itself" if is_input else "exists"
            raise UsageError(
                f"{target} {what}; give another name, replace it, or skip it",
                "out",
                "overwrite",
                "resume",
            )
        plan.targets[source] = target
    if is_folder:
        try:
            Path(out).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"{out} cannot be made: {error.strerror}", "out") from error
    return plan


def output_name(name: Path) -> Path:
    """Return the name of an output: that of the input, unless its format is only read.

    Only cameras write their raw formats; videos of other containers become .mkv, which holds all streams.
    """
    from ..io.formats import is_raw_name

    if name.suffix.lower() in _BECOME_MKV:
        return name.with_suffix(".mkv")
    return name.with_suffix(".dng") if is_raw_name(name) else name


def is_folder_name(out: str) -> bool:
    """Whether outputs go into a folder of this name; a Zarr is a folder but also a file."""
    if out.endswith(("/", os.sep)):
        return True
    return Path(out).is_dir() and Path(out).suffix.lower() != ".zarr"


def is_plain_folder(name: str) -> bool:
    """Whether a name is that of a folder that stands for the pictures in it; a Zarr is one picture."""
    from ..io.formats import is_zarr

    path = Path(name)
    return os.path.isdir(name) and path.suffix.lower() != ".zarr" and not is_zarr(path)


def expand(
    name: str, out: Path | None = None, tell: Callable[[str], None] | None = None
) -> Iterator[tuple[Path, Path]]:
    """Yield the files a name, folder or pattern stands for, each with its place below the output folder.

    What is inside a Zarr is no file of its own; what is in the output folder is no input.  ``tell`` is
    given a line about what a folder holds beside pictures.
    """
    if is_plain_folder(name):
        pictures, others = pictures_in(Path(name))
        if not pictures:
            hint = f"for those in its folders write '{Path(name)}/**/*.tif' with the quotes"
            raise UsageError(f"{name}: holds no picture that can be read; {hint}")
        if others and tell is not None:
            tell(f"{name}: skipped what is no picture: {_listed(others)}")
        yield from ((path, Path(path.name)) for path in pictures)
        return
    if os.path.lexists(name) or not glob.has_magic(name):
        yield Path(name), Path(Path(name).name)
        return
    parts = Path(name).parts
    fixed = next(i for i, part in enumerate(parts) if glob.has_magic(part))
    root = Path(*parts[:fixed])
    kept = 0
    for path in map(Path, sorted(glob.glob(name, recursive=True))):
        below = path.relative_to(root)
        in_zarr = any(parent.suffix.lower() == ".zarr" for parent in below.parents)
        is_file = path.is_file() or path.suffix.lower() == ".zarr"
        if is_file and not in_zarr and not _inside(path, out):
            kept += 1
            yield path, below
    if not kept:
        raise UsageError(f"no file matches {name}")


def pictures_in(folder: Path) -> tuple[list[Path], list[str]]:
    """Return the pictures of a folder, by name, and what else is in it; hidden files are nobody's.

    The content says what is a picture.  A file that is named like one and is none is kept among them, so
    that its error is told.
    """
    from ..io import FileError
    from ..io.formats import detect_format, has_known_ending, is_zarr

    pictures: list[Path] = []
    others: list[str] = []
    try:
        inside = sorted(folder.iterdir())
    except OSError as error:
        raise UsageError(f"{folder}: cannot be read: {error.strerror}") from error
    for path in inside:
        if path.name.startswith("."):
            continue
        if path.is_dir() and not is_zarr(path):
            others.append(f"{path.name}/")
            continue
        try:
            if detect_format(path) == "VIDEO":  # it takes hours: it must be asked for by its name
                others.append(path.name)
                continue
        except (FileError, OSError):
            if not has_known_ending(path):
                others.append(path.name)
                continue
        pictures.append(path)
    return pictures, others


def _listed(names: Sequence[str]) -> str:
    """Return names on one line, the first few of many."""
    more = len(names) - _MAX_LISTED
    return ", ".join(names[:_MAX_LISTED]) + (f" and {more} more" if more > 0 else "")


def _inside(path: Path, folder: Path | None) -> bool:
    """Whether a file lies in the output folder."""
    return folder is not None and folder.is_dir() and folder.resolve() in path.resolve().parents


def natural_order(path: Path) -> tuple[Any, ...]:
    """Return a key by which frame 2 comes before frame 10.

    Examples
    --------
    >>> [p.name for p in sorted(map(Path, ["f10.png", "f2.png", "F1.png"]), key=natural_order)]
    ['F1.png', 'f2.png', 'f10.png']
    """
    parts = _DIGITS.split(path.name.lower())
    return tuple(int(part) if i % 2 else part for i, part in enumerate(parts)), path.name
