"""The files of one visitor: in a folder of their own, reachable by nobody else, deleted at the end.

A visit is one tab: the visitor's secret cookie and the tab's session.  Its addresses hold a random
token, and are answered only to who has the cookie too.
"""

from __future__ import annotations

import hmac
import re
import secrets
import shutil
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from .runs import Run

if TYPE_CHECKING:
    from ..cli.noise_report import Noise
    from ..noise import NoiseModel

MOST_VISITS = 200


class VisitError(ValueError):
    """Something a visitor should be told, in one sentence."""


@dataclass(frozen=True)
class Dropped:
    """A picture and what was found in it."""

    path: Path
    sigma: float  # its noise level were it white, in its own units, for methods that know no other
    noise: NoiseModel  # what its noise is
    found: Noise  # the same in words
    reach: float  # how far apart its pixels can be
    told: str  # size and kind, in words
    side: tuple[int, int]  # height and width of what is shown


@dataclass
class Visit:
    """What a tab has dropped and got."""

    folder: Path
    token: str
    owner: str  # the cookie
    picture: Dropped | None = None
    reference: Path | None = None
    run: Run | None = None
    here: bool = True  # until the tab is closed
    asked: int = 0  # how often a run was asked for: only the last one is shown
    cancelled: int = 0  # how often it was to stop
    made: int = 0  # folders made in it
    shown: int = 0  # how often what is shown has changed
    partly: bool = False  # whether just a part of the picture is shown
    files: dict[str, Path] = field(default_factory=dict)  # what its addresses give

    def address(self, name: str) -> str:
        """Return where a file of the visit is fetched."""
        return f"/visit/{self.token}/{name}"

    def show(self, text: str, *, partly: bool = False) -> None:
        """Make a page the one that is shown; it may be about a part of the picture."""
        path = self.folder / "view.html"
        path.write_text(text, "utf-8")
        self.files["view"] = path
        self.partly = partly
        self.shown += 1

    def stop(self) -> None:
        """End its work, if there is any."""
        if self.run is not None:
            self.run.stop()

    def place(self, name: str, kind: str) -> Path:
        """Return where a file of that name is put: a harmless name in a folder of its own."""
        self.made += 1
        place = self.folder / f"{kind}-{self.made}"
        place.mkdir()
        stem, dot, suffix = Path(name).name.rpartition(".")
        plain = re.sub(r"[^\w .+()-]", "_", stem if dot else suffix)[:80].strip(". ") or "picture"
        return place / (plain + (f".{re.sub(r'[^A-Za-z0-9]', '', suffix)[:8]}" if dot else ""))

    def replace(self, name: str, path: Path) -> None:
        """Put a file in the place of what was there before."""
        old = self.files.get(name)
        self.files[name] = path
        if old is not None and old.parent != path.parent:
            shutil.rmtree(old.parent, ignore_errors=True)


class Visits:
    """All visits; their folders are below one that only we may read.

    Examples
    --------
    >>> import tempfile
    >>> visits = Visits(Path(tempfile.mkdtemp()))
    >>> ours = visits.of({"symsmooth": "a" * 43}, "tab")
    >>> visits.find(ours.token, {"symsmooth": "b" * 43}) is None
    True
    >>> visits.close()
    """

    COOKIE = "symsmooth"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._folder.chmod(0o700)
        self._visits: dict[tuple[str, str], Visit] = {}
        self._lock = threading.Lock()

    def of(self, cookies: Mapping[str, str], session: str | None) -> Visit:
        """Return the visit of a tab; a new one at its first request."""
        owner = cookies.get(self.COOKIE, "")
        if len(owner) < 43 or not session:
            raise VisitError("This page needs its cookie: allow cookies for this address, reload.")
        with self._lock:
            visit = self._visits.get((owner, session))
            if visit is None:
                if len(self._visits) >= MOST_VISITS:
                    raise VisitError("Too many people are here; please come back later.")
                token = secrets.token_urlsafe(24)
                folder = self._folder / token
                folder.mkdir(mode=0o700)
                visit = self._visits[owner, session] = Visit(folder, token, owner)
            return visit

    def find(self, token: str, cookies: Mapping[str, str]) -> Visit | None:
        """Return the visit of an address if it is theirs who ask, else None."""
        owner = cookies.get(self.COOKIE, "").encode()
        with self._lock:
            for visit in self._visits.values():
                if hmac.compare_digest(visit.token.encode(), token.encode()):
                    return visit if hmac.compare_digest(visit.owner.encode(), owner) else None
        return None

    def end(self, cookies: Mapping[str, str], session: str | None) -> None:
        """Stop what a tab that was closed had started, and delete its files."""
        with self._lock:
            visit = self._visits.pop((cookies.get(self.COOKIE, ""), session or ""), None)
        if visit is not None:
            visit.here = False
            visit.stop()
            shutil.rmtree(visit.folder, ignore_errors=True)

    def close(self) -> None:
        """End all visits."""
        with self._lock:
            for visit in self._visits.values():
                visit.here = False
                visit.stop()
            self._visits.clear()
        shutil.rmtree(self._folder, ignore_errors=True)
