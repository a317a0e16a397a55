"""Noise models as files: opened by visitors for other pictures of their camera, and taken home."""

from __future__ import annotations

import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import SessionError

KEPT = (
    ".noise.json"  # what was found in a picture, or used for a result; no upload can have this name
)


@dataclass(frozen=True)
class NoiseFile:
    """A model that a visitor has opened."""

    id: str
    path: Path
    words: str  # what it says

    def as_json(self) -> dict[str, str]:
        """Return what the page shows of it."""
        return {"id": self.id, "name": self.path.name, "words": self.words}


def inspect_noise(path: Path, reporter: Any) -> str:
    """Return what a noise model says, or refuse what is none."""
    from ..io.noise_files import load_noise

    return str(load_noise(path))


def keep(model: Any, folder: Path) -> None:
    """Keep a model where it can be taken home; one that is a map of levels is that of one picture only."""
    from ..io.noise_files import save_noise

    with suppress(ValueError):
        save_noise(model, folder / KEPT)


def keep_file(path: Path, folder: Path) -> None:
    """Keep a model that is a file already."""
    if path.is_file():
        shutil.copyfile(path, folder / KEPT)


def path_of(models: dict[str, NoiseFile], id: object) -> Path:
    """Return where a model is that was opened."""
    if not isinstance(id, str) or id not in models:
        raise SessionError(
            "Open a noise model first: a file of Save noise model, or of symsmooth noise."
        )
    return models[id].path
