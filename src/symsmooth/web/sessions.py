"""The files of one visitor: in a folder of their own, reachable by nobody else, deleted at the end.

A session is one tab: the visitor's secret cookie and the tab's identifier.  Its addresses hold a random
token, and are answered only to who has the cookie too.

A tab costs nothing until it brings a picture: only then is there a session.  It ends when the tab is
closed, when nothing was asked for an hour, or soon if no tab was ever open (somebody who invents
sessions).  Where there is no room for another session, those without an open tab make room.
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
    from ..app.noise_report import NoiseDescription
    from ..noise import NoiseModel

Tab = tuple[str, str]  # the cookie and the tab's identifier


class SessionError(ValueError):
    """Something a visitor should be told, in one sentence."""


@dataclass(frozen=True)
class Limits:
    """How many sessions there may be, and how long they last."""

    sessions: int = 200  # in all
    of_address: int = 64  # many people may share one: behind a router, or on this machine
    of_owner: int = 16  # tabs of one browser
    idle: float = 3600.0  # seconds without a request after which a session ends
    absent: float = 30.0  # the same while its tab is not open


@dataclass(frozen=True)
class Upload:
    """A picture and what was found in it."""

    path: Path
    sigma: float  # its noise level were it white, in its own units, for methods that know no other
    noise: NoiseModel  # what its noise is
    found: NoiseDescription  # the same in words
    reach: float  # how far apart its pixels can be
    description: str  # size and kind, in words
    side: tuple[int, int]  # height and width of what is shown


@dataclass
class Session:
    """What a tab has dropped and got."""

    folder: Path
    token: str
    owner: str  # the cookie
    address: str = ""  # of the network
    picture: Upload | None = None
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
        """Return the address a file of the session is fetched at."""
        return f"/session/{self.token}/{name}"

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
        with self._lock, suppress(FileNotFoundError):  # the session may have ended
            self.busy.difference_update(free)
            kept = [*self.files.values(), *([self.reference] if self.reference else [])]
            if self.picture is not None:
                kept.append(self.picture.path)
            needed = self.busy | {path.parent for path in kept}
            for place in self.folder.iterdir():
                if place not in needed:
                    shutil.rmtree(place, ignore_errors=True)


class Sessions:
    """All sessions; their folders are below one that only we may read.

    Examples
    --------
    >>> import tempfile
    >>> sessions = Sessions(Path(tempfile.mkdtemp()))
    >>> ours = sessions.of({"symsmooth": "a" * 43}, "tab")
    >>> sessions.find(ours.token, {"symsmooth": "b" * 43}) is None
    True
    >>> sessions.close()
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
        self._sessions: dict[Tab, Session] = {}
        self._tabs: Counter[Tab] = Counter()  # open connections of each tab
        self._lock = threading.Lock()

    @classmethod
    def owner_in(cls, cookies: Mapping[str, str]) -> str:
        """Return the secret of a visitor, or say that there is none."""
        owner = cookies.get(cls.COOKIE, "")
        if not re.fullmatch(r"[\w-]{43,100}", owner, re.ASCII):
            raise SessionError(
                "This page needs its cookie: allow cookies for this address, reload."
            )
        return owner

    def of(self, cookies: Mapping[str, str], tab_id: str | None, address: str = "") -> Session:
        """Return the session of a tab; a new one if it has none yet."""
        owner = self.owner_in(cookies)
        if not tab_id:
            raise SessionError("This page has lost its session; reload it.")
        with self._lock:
            session = self._sessions.get((owner, tab_id))
            if session is None:
                gone = self._make_room(owner, address)
                token = secrets.token_urlsafe(24)
                folder = self._folder / token
                folder.mkdir(mode=0o700)
                session = self._sessions[owner, tab_id] = Session(folder, token, owner, address)
            else:
                gone = []
            session.seen = self._clock()
        _end(gone)
        return session

    def known(self, cookies: Mapping[str, str], tab_id: str | None) -> Session | None:
        """Return the session of a tab, None if it has brought nothing yet."""
        with self._lock:
            session = self._sessions.get((cookies.get(self.COOKIE, ""), tab_id or ""))
            if session is not None:
                session.seen = self._clock()
            return session

    def _make_room(self, owner: str, address: str) -> list[Session]:
        """Take sessions without an open tab out where a limit is reached; or refuse another one."""
        gone: list[Session] = []
        for most, counts in (
            (self._limits.of_owner, lambda session: session.owner == owner),
            (self._limits.of_address, lambda session: session.address == address),
            (self._limits.sessions, lambda session: True),
        ):
            counted = {tab: session for tab, session in self._sessions.items() if counts(session)}
            if len(counted) < most:
                continue
            absent = [tab for tab in counted if not self._tabs[tab]]
            if not absent:
                _end(gone)
                raise SessionError("Too many people are here; please come back later.")
            gone.append(self._sessions.pop(min(absent, key=lambda tab: counted[tab].seen)))
        return gone

    def find(self, token: str, cookies: Mapping[str, str]) -> Session | None:
        """Return the session of an address if it is theirs who ask, else None."""
        owner = cookies.get(self.COOKIE, "").encode()
        with self._lock:
            for session in self._sessions.values():
                if hmac.compare_digest(session.token.encode(), token.encode()):
                    if not hmac.compare_digest(session.owner.encode(), owner):
                        return None
                    session.seen = self._clock()
                    return session
        return None

    @contextmanager
    def tab(self, cookies: Mapping[str, str], tab_id: str) -> Iterator[None]:
        """Last as long as a tab is open; its session ends with it."""
        tab = cookies.get(self.COOKIE, ""), tab_id
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
                self.end(cookies, tab_id)

    def is_open(self, cookies: Mapping[str, str], tab_id: str | None) -> bool:
        """Whether a tab is open."""
        with self._lock:
            return (cookies.get(self.COOKIE, ""), tab_id or "") in self._tabs

    def end(self, cookies: Mapping[str, str], tab_id: str | None) -> None:
        """Stop what a tab that was closed had started, and delete its files."""
        with self._lock:
            session = self._sessions.pop((cookies.get(self.COOKIE, ""), tab_id or ""), None)
        if session is not None:
            _end([session])

    def sweep(self) -> None:
        """End the sessions for which nothing was asked for too long."""
        now = self._clock()
        with self._lock:
            old = [
                tab
                for tab, session in self._sessions.items()
                if now - session.seen
                > (self._limits.idle if tab in self._tabs else self._limits.absent)
                and not (session.working and tab in self._tabs)
            ]
            gone = [self._sessions.pop(tab) for tab in old]
            known = {session.folder for session in self._sessions.values()}
            left = [place for place in self._folder.iterdir() if place not in known]
        _end(gone)
        for place in left:  # what was still being written when its session ended
            shutil.rmtree(place, ignore_errors=True)

    def close(self) -> None:
        """End all sessions."""
        with self._lock:
            for session in self._sessions.values():
                _leave(session)
            self._sessions.clear()
        shutil.rmtree(self._folder, ignore_errors=True)


def _leave(session: Session) -> None:
    session.here = False
    session.stop()
    for reading in session.readings.values():
        reading.stop()


def _end(gone: list[Session]) -> None:
    for session in gone:
        _leave(session)
        shutil.rmtree(session.folder, ignore_errors=True)
