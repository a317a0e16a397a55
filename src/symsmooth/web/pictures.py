"""A visitor's picture: where its files are, what is done to it, what came of it, and all that as JSON."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .noise_files import KEPT
from .runs import Run
from .settings import Settings

VIEW = ".view.npy"  # pixels as they are shown; no file that is dropped can have this name
_SOON = 0.03  # of the work: before, nobody can say how long it will take
_FIRST = 1.0  # second: the same


def denoised_name(path: Path, ending: str | None = None) -> str:
    """Return the name of what comes of a file; with another ending if one is given.

    Examples
    --------
    >>> denoised_name(Path("head.nii.gz")), denoised_name(Path("clip.avi"), ".mkv")
    ('head-denoised.nii.gz', 'clip-denoised.mkv')
    """
    own = ".nii.gz" if path.name.lower().endswith(".nii.gz") else path.suffix
    stem = path.name[: len(path.name) - len(own)]
    return f"{stem}-denoised{own if ending is None else ending}"


@dataclass(frozen=True)
class Result:
    """What came of a run: files in a folder, and what the page shows of it."""

    number: int
    kind: str  # "denoise" or "compare"
    folder: Path
    settings: Settings
    details: dict[str, Any]  # as JSON, with a list of "panels"
    at: tuple[int, ...] | None = None  # the slice that was compared; None: all of them
    files: tuple[Path, ...] = ()  # what can be taken home


@dataclass
class Picture:
    """A file that was dropped."""

    id: str
    name: str  # as its visitor calls it
    folder: Path  # of its own
    path: Path | None = None  # of the file, once it was inspected
    info: dict[str, Any] | None = None  # what was found in it
    frames: tuple[Picture, ...] = ()  # pictures that it was joined from, as one series
    reference: Path | None = None  # folder of the clean picture
    reference_name: str = ""
    reference_error: str = ""
    reading: Run | None = None
    run: Run | None = None
    running: str = ""  # what kind of run it is
    part: dict[str, Any] | None = None  # what is done before the whole ...
    part_folder: Path | None = None  # ... and where it is, which the page does not learn
    result: Result | None = None
    ended: tuple[str, str] = ("", "")  # how the last thing ended: good, plain or bad; in words

    @property
    def sources(self) -> list[Path]:
        """The files that it is made of, once they were inspected."""
        if self.frames:
            return [path for frame in self.frames for path in frame.sources]
        return [] if self.path is None else [self.path]

    @property
    def working(self) -> bool:
        """Whether something is done for it."""
        return any(run is not None and not run.finished for run in (self.reading, self.run))

    def stop(self) -> None:
        """End what is done for it."""
        for run in (self.reading, self.run):
            if run is not None:
                run.stop()

    def as_json(self) -> dict[str, Any]:
        """Return all but how far it is."""
        result = self.result
        return {
            "id": self.id,
            "name": self.name,
            "info": self.info,
            "frames": len(self.frames),
            "reference": [self.reference_name, self.reference_error],
            "ended": self.ended,
            "part": self.part,
            "running": self.running if self.run is not None else "",
            "result": None if result is None else {
                "number": result.number,
                "kind": result.kind,
                "at": result.at,
                "settings": result.settings.as_json(),
                "model": (result.folder / KEPT).is_file(),
                "bytes": sum(path.stat().st_size for path in result.files),
                **result.details,
            },
        }  # fmt: skip


def progress_of(picture: Picture, ahead: Callable[[Run], int]) -> dict[str, Any] | None:
    """Return how far the work on a picture is; None if nothing is done."""
    run = picture.run if picture.run is not None else picture.reading
    if run is None:  # what is finished is kept here until what came of it is, too
        return None
    inspecting = run is picture.reading
    if run.stopping:
        return {"state": "stopping", "what": "stopping"}
    if run.seconds is None:
        return {
            "state": "waiting",
            "what": "waiting",
            "ahead": ahead(run),
            "inspecting": inspecting,
        }
    left = None
    if run.fraction > _SOON and run.seconds > _FIRST:
        left = round(run.seconds * (1 - run.fraction) / run.fraction, 1)
    return {
        "state": "running",
        "what": "inspecting" if inspecting else run.what,
        "fraction": round(run.fraction, 3),
        "seconds": round(run.seconds, 1),
        "left": left,
        "inspecting": inspecting,
    }
