"""A session: pictures that were dropped on the page, what is done to them and what came of it.

It begins with its first picture and has an address with a random token, answered only to the browser that
began it.  So it survives a reload and the back button, and each tab may have its own.
"""

from __future__ import annotations

import re
import secrets
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .pool import Run
from .settings import PageError, Settings

MAX_PICTURES = 30  # of one session: a table of more is no help
VIEW = ".view.npy"  # pixels as they are shown; no file that is dropped can have this name
NOISE = ".noise.json"  # what was found in a picture, or used for a result; nor this one
ENDED = "This session has ended; reload the page to begin another."
_SOON = 0.03  # of the work: before, nobody can say how long it will take
_FIRST = 1.0  # second: the same


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

    def as_json(self) -> dict[str, Any]:
        """Return what the page shows of it."""
        return {
            "number": self.number,
            "kind": self.kind,
            "at": self.at,
            "settings": self.settings.as_json(),
            "model": (self.folder / NOISE).is_file(),
            "bytes": sum(path.stat().st_size for path in self.files),
            **self.details,
        }


@dataclass
class Picture:
    """A file that was dropped."""

    id: str  # the name of its folder
    name: str  # as its owner calls it
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
    def runs(self) -> list[Run]:
        """What is done for it."""
        return [run for run in (self.reading, self.run) if run is not None]

    def ready(self) -> dict[str, Any]:
        """Return what was found in it, or say that nothing was yet."""
        if self.info is None or self.path is None:
            raise PageError("This picture is not ready yet.")
        return self.info

    def folder_of(self, number: int) -> Path | None:
        """Return the folder of a result, or of a part that is done before it."""
        if self.result is not None and self.result.number == number:
            return self.result.folder
        return self.part_folder if self.part is not None and self.part["number"] == number else None

    def stop(self) -> None:
        """End what is done for it."""
        for run in self.runs:
            run.stop()

    def progress(self) -> dict[str, Any] | None:
        """Return how far the work on it is; None if nothing is done."""
        run = self.run if self.run is not None else self.reading
        if run is None:  # what is finished is kept here until what came of it is, too
            return None
        inspecting = run is self.reading
        if run.stopping:
            return {"state": "stopping", "what": "stopping"}
        if run.seconds is None:
            waiting = {"state": "waiting", "what": "waiting", "ahead": run.ahead}
            return {**waiting, "inspecting": inspecting}
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

    def as_json(self) -> dict[str, Any]:
        """Return all but how far it is."""
        return {
            "id": self.id,
            "name": self.name,
            "info": self.info,
            "frames": len(self.frames),
            "reference": [self.reference_name, self.reference_error],
            "ended": self.ended,
            "part": self.part,
            "running": self.running if self.run is not None else "",
            "result": None if self.result is None else self.result.as_json(),
        }


@dataclass
class Session:
    """What was dropped, and what came of it."""

    folder: Path
    owner: str  # the cookie
    token: str
    pictures: dict[str, Picture] = field(default_factory=dict)
    models: dict[str, tuple[Path, str]] = field(default_factory=dict)  # of noise, and their words
    is_open: bool = True  # until it ends
    last_sign: float = field(default_factory=time.monotonic)  # when a tab last asked for something
    version: int = 0  # counts changes of what the page shows
    made: int = 0  # folders and results made in it

    @classmethod
    def begin(cls, place: Path, owner: str) -> Session:
        """Make a session in a folder of its own, which nobody else may read."""
        token = secrets.token_urlsafe(24)
        folder = place / token
        folder.mkdir(mode=0o700)
        return cls(folder, owner, token)

    def changed(self) -> None:
        """Note that the page shows something else now."""
        self.version += 1

    def number(self) -> int:
        """Return a number that nothing else in this session has."""
        self.made += 1
        return self.made

    def new_folder(self, kind: str) -> Path:
        """Make a folder of its own for something, unless the session has ended meanwhile."""
        if not self.is_open:
            raise PageError(ENDED)
        folder = self.folder / f"{kind}-{self.number()}"
        folder.mkdir(mode=0o700)
        return folder

    def new_picture(self, folder: Path, name: str) -> Picture:
        """Add a picture whose files are in a folder."""
        picture = self.pictures[folder.name] = Picture(folder.name, name, folder)
        return picture

    def check_count(self, more: int) -> None:
        """Refuse more pictures than there may be."""
        if len(self.pictures) + more > MAX_PICTURES:
            text = f"There may be {MAX_PICTURES} pictures at a time; remove some of them."
            raise PageError(text)

    def model(self, id: object) -> Path:
        """Return where a noise model is that was opened."""
        if not isinstance(id, str) or id not in self.models:
            raise PageError(
                "Open a noise model first: a file of Save noise model, or of symsmooth noise."
            )
        return self.models[id][0]

    def state(self) -> dict[str, Any]:
        """Return all that the page shows."""
        return {
            "session": self.token,
            "version": self.version,
            "pictures": [picture.as_json() for picture in self.pictures.values()],
            "models": [
                {"id": id, "name": path.name, "words": words}
                for id, (path, words) in self.models.items()
            ],
            "progress": self.progress(),
        }

    def progress(self) -> dict[str, Any]:
        """Return how far the work on each picture is."""
        found = {id: picture.progress() for id, picture in self.pictures.items()}
        return {id: progress for id, progress in found.items() if progress is not None}


def safe_name(name: str) -> str:
    """Return a name as a file of ours may have it."""
    stem, dot, suffix = name.replace("\\", "/").rpartition("/")[2].rpartition(".")
    plain = re.sub(r"[^\w .+()-]", "_", stem if dot else suffix)[:80].strip(". ") or "picture"
    ending = re.sub(r"[^A-Za-z0-9]", "", suffix)[:8] if dot else ""
    return f"{plain}.{ending}" if ending else plain


def name_with(path: Path, word: str, ending: str | None = None) -> str:
    """Return the name of what comes of a file; with another ending if one is given.

    Examples
    --------
    >>> name_with(Path("head.nii.gz"), "denoised"), name_with(Path("clip.avi"), "denoised", ".mkv")
    ('head-denoised.nii.gz', 'clip-denoised.mkv')
    """
    own = ".nii.gz" if path.name.lower().endswith(".nii.gz") else path.suffix
    stem = path.name[: len(path.name) - len(own)]
    return f"{stem}-{word}{own if ending is None else ending}"
