"""Finished cells on disk: one file each, there whole or not at all."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path

from symsmooth import _native
from symsmooth.io import atomic_write

from .images import ImageSet
from .model import Cell, Result
from .provenance import ROOT

_SHELLS = ("reports", "app", "cli", "web")  # what does not change a measurement
_MEASURING = ("measure.py", "centred.py")  # of this package
_KINDS = ("*.py", "*.npz")  # code, and the priors it comes with
_LIBRARIES = ("numpy", "scipy")


@dataclass(frozen=True)
class Store:
    """A folder of results; a file's name is made of all that its result depends on."""

    folder: Path

    def path(self, key: str) -> Path:
        """Return where a result is, or will be."""
        return self.folder / f"{key}.json"

    def load(self, key: str) -> Result | None:
        """Return a finished result, or None; a damaged file is as good as none."""
        try:
            found: Result = json.loads(self.path(key).read_text("utf-8"))
        except (OSError, ValueError):
            return None
        return found

    def save(self, key: str, result: Result) -> None:
        """Write a result."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with atomic_write(self.path(key)) as handle:
            handle.write(json.dumps(result).encode("utf-8"))


def key_of(cell: Cell, image_set: ImageSet) -> str:
    """Return the name of a cell's result: task, picture's content, options, and what measures it."""
    depends_on = [cell.task, image_set.digests[cell.picture], dict(cell.options), code_digest()]
    text = json.dumps(depends_on, sort_keys=True)
    return f"{cell.task}-{hashlib.sha256(text.encode()).hexdigest()[:20]}"


@cache
def code_digest() -> str:
    """Return a short name of what measures: our code, its data, and the libraries that compute.

    Results of others are not reused.
    """
    digest = hashlib.sha256()
    for name in _LIBRARIES:
        digest.update(f"{name} {version(name)}\n".encode())
    digest.update(f"{_native.instruction_set()}\n".encode() + Path(_native.__file__).read_bytes())
    measured = sorted(path for kind in _KINDS for path in ROOT.rglob(kind))
    files = [path for path in measured if path.relative_to(ROOT).parts[0] not in _SHELLS]
    files += [Path(__file__).with_name(name) for name in _MEASURING]
    for path in files:
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        digest.update(f"{path.parent.name}/{path.name} {content}\n".encode())
    return digest.hexdigest()[:16]
