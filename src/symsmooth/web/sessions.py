"""The files of one visitor: in a folder of their own, reachable by nobody else, deleted at the end.

A visit is one tab: the visitor's secret cookie and the tab's session.  Its addresses hold a random
token, and are answered only to who has the cookie too.

A tab costs nothing until it brings a picture: only then is there a visit.  It ends when the tab is
closed, when nothing was asked for an hour, or soon if no tab was ever open (somebody who invents
sessions).  Where there is no room for another visit, those without an open tab make room.
"""

from __future__ import annotations

import hmac
import re
import secrets
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .runs import Run

if TYPE_CHECKING:
    from ..app.noise_report import Noise
    from ..noise import NoiseModel

Tab = tuple[str, str]  # the cookie and the session


class VisitError(ValueError):
    """Something a visitor should be told, in one sentence."""


@dataclass(frozen=True)
class Limits:
    """How many visits there may be, and how long they last."""

    visits: int = 200  # in all
    of_address: int = 64  # many people may share one: behind a router, or on this machine
    of_owner: int = 16  # tabs of one browser
    idle: float = 3600.0  # seconds without a request after which a visit ends
    absent: float = 30.0  # the same while its tab is not open


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
    address: str = ""  # of the network
    picture: Dropped | None = None
    reference: Path | None = None
    run: Run | None = None  # the method at work
    readings: dict[Any, Run] = field(default_factory=dict)  # pictures being looked at
    here: bool = True  # until it ends
    seen: float = 0.0  # when something was last asked for
    asked: int = 0  # how often a run was asked for: only the last one is shown
    cancelled: int = 0  # how often it was to stop
    made: int = 0  # folders made in it
    shown: int = 0  # how often what is shown has changed
    partly: bool = False  # whether just a part of the picture is shown
    files: dict[str, Path] = field(default_factory=dict)  # what its addresses give
    busy: set[Path] = field(default_factory=set)  # folders that work is writing to
    _lock: Any = field(default_factory=threading.Lock, repr=False)  # folders come and go

    def link(self, name: str) -> str:
        """Return the address a file of the visit is fetched at."""
        return f"/visit/{self.token}/{name}"

    def show(self, page: Path, *, partly: bool = False) -> None:
        """Make a page the one that is shown; it may be about a part of the picture."""
        self.files["view"] = page
        self.partly = partly
        self.shown += 1

    @property
    def group(self) -> str:
        """With whom it shares its turns: its address, or itself where all have this machine's."""
        local = self.address.startswith("127.") or self.address in ("", "::1")
        return self.owner if local else self.address

    @property
    def working(self) -> bool:
        """Whether something is done for it."""
        runs = [self.run, *self.readings.values()]
        return any(run is not None and not run.finished for run in runs)

    def stop(self) -> None:
        """End its work, if there is any."""
        if self.run is not None:
            self.run.stop()

    def place(self, name: str, kind: str) -> Path:
        """Return where a file of that name is put: a harmless name in a folder of its own."""
        stem, dot, suffix = Path(name).name.rpartition(".")
        plain = re.sub(r"[^\w .+()-]", "_", stem if dot else suffix)[:80].strip(". ") or "picture"
        ending = f".{re.sub(r'[^A-Za-z0-9]', '', suffix)[:8]}" if dot else ""
        return self.new_folder(kind) / (plain + ending)

    def new_folder(self, kind: str) -> Path:
        """Make a folder that :meth:`tidy` leaves alone until it is told to be free."""
        with self._lock:
            self.made += 1
            place = self.folder / f"{kind}-{self.made}"
            place.mkdir(mode=0o700)
            self.busy.add(place)
        return place

    def tidy(self, *free: Path) -> None:
        """Free some folders, then delete those that hold nothing of use any more."""
        with self._lock, suppress(FileNotFoundError):  # the visit may have ended
            self.busy.difference_update(free)
            kept = [*self.files.values(), *([self.reference] if self.reference else [])]
            if self.picture is not None:
                kept.append(self.picture.path)
            needed = self.busy | {path.parent for path in kept}
            for place in self.folder.iterdir():
                if place not in needed:
                    shutil.rmtree(place, ignore_errors=True)


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

    def __init__(
        self,
        folder: Path,
        limits: Limits | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder = folder
        self._folder.chmod(0o700)
        self._limits = limits or Limits()
        self._clock = clock
        self._visits: dict[Tab, Visit] = {}
        self._tabs: Counter[Tab] = Counter()  # open connections of each tab
        self._lock = threading.Lock()

    @classmethod
    def owner_in(cls, cookies: Mapping[str, str]) -> str:
        """Return the secret of a visitor, or say that there is none."""
        owner = cookies.get(cls.COOKIE, "")
        if not re.fullmatch(r"[\w-]{43,100}", owner, re.ASCII):
            raise VisitError("This page needs its cookie: allow cookies for this address, reload.")
        return owner

    def of(self, cookies: Mapping[str, str], session: str | None, address: str = "") -> Visit:
        """Return the visit of a tab; a new one if it has none yet."""
        owner = self.owner_in(cookies)
        if not session:
            raise VisitError("This page has lost its session; reload it.")
        with self._lock:
            visit = self._visits.get((owner, session))
            if visit is None:
                gone = self._make_room(owner, address)
                token = secrets.token_urlsafe(24)
                folder = self._folder / token
                folder.mkdir(mode=0o700)
                visit = self._visits[owner, session] = Visit(folder, token, owner, address)
            else:
                gone = []
            visit.seen = self._clock()
        _end(gone)
        return visit

    def known(self, cookies: Mapping[str, str], session: str | None) -> Visit | None:
        """Return the visit of a tab, None if it has brought nothing yet."""
        with self._lock:
            visit = self._visits.get((cookies.get(self.COOKIE, ""), session or ""))
            if visit is not None:
                visit.seen = self._clock()
            return visit

    def _make_room(self, owner: str, address: str) -> list[Visit]:
        """Take visits without an open tab out where a limit is reached; or refuse another one."""
        gone: list[Visit] = []
        for most, counts in (
            (self._limits.of_owner, lambda visit: visit.owner == owner),
            (self._limits.of_address, lambda visit: visit.address == address),
            (self._limits.visits, lambda visit: True),
        ):
            counted = {tab: visit for tab, visit in self._visits.items() if counts(visit)}
            if len(counted) < most:
                continue
            absent = [tab for tab in counted if not self._tabs[tab]]
            if not absent:
                _end(gone)
                raise VisitError("Too many people are here; please come back later.")
            gone.append(self._visits.pop(min(absent, key=lambda tab: counted[tab].seen)))
        return gone

    def find(self, token: str, cookies: Mapping[str, str]) -> Visit | None:
        """Return the visit of an address if it is theirs who ask, else None."""
        owner = cookies.get(self.COOKIE, "").encode()
        with self._lock:
            for visit in self._visits.values():
                if hmac.compare_digest(visit.token.encode(), token.encode()):
                    if not hmac.compare_digest(visit.owner.encode(), owner):
                        return None
                    visit.seen = self._clock()
                    return visit
        return None

    @contextmanager
    def tab(self, cookies: Mapping[str, str], session: str) -> Iterator[None]:
        """Last as long as a tab is open; its visit ends with it."""
        tab = cookies.get(self.COOKIE, ""), session
        with self._lock:
            self._tabs[tab] += 1
        try:
            yield
        finally:
            with self._lock:
                self._tabs[tab] -= 1
                closed = not self._tabs[tab]
                if closed:
                    del self._tabs[tab]
            if closed:
                self.end(cookies, session)

    def is_open(self, cookies: Mapping[str, str], session: str | None) -> bool:
        """Whether a tab is open."""
        with self._lock:
            return (cookies.get(self.COOKIE, ""), session or "") in self._tabs

    def end(self, cookies: Mapping[str, str], session: str | None) -> None:
        """Stop what a tab that was closed had started, and delete its files."""
        with self._lock:
            visit = self._visits.pop((cookies.get(self.COOKIE, ""), session or ""), None)
        if visit is not None:
            _end([visit])

    def sweep(self) -> None:
        """End the visits for which nothing was asked for too long."""
        now = self._clock()
        with self._lock:
            old = [
                tab
                for tab, visit in self._visits.items()
                if now - visit.seen
                > (self._limits.idle if tab in self._tabs else self._limits.absent)
                and not (visit.working and tab in self._tabs)
            ]
            gone = [self._visits.pop(tab) for tab in old]
            known = {visit.folder for visit in self._visits.values()}
            left = [place for place in self._folder.iterdir() if place not in known]
        _end(gone)
        for place in left:  # what was still being written when its visit ended
            shutil.rmtree(place, ignore_errors=True)

    def close(self) -> None:
        """End all visits."""
        with self._lock:
            for visit in self._visits.values():
                _leave(visit)
            self._visits.clear()
        shutil.rmtree(self._folder, ignore_errors=True)


def _leave(visit: Visit) -> None:
    visit.here = False
    visit.stop()
    for reading in visit.readings.values():
        reading.stop()


def _end(gone: list[Visit]) -> None:
    for visit in gone:
        _leave(visit)
        shutil.rmtree(visit.folder, ignore_errors=True)
