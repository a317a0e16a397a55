"""Visits: the pictures of one visitor, reachable by nobody else, deleted at the end.

A visit begins with its first picture and has an address with a random token, answered only to who has
the visitor's secret cookie too.  So it survives a reload and the back button.  It ends when its visitor
says so, some minutes after its last tab was closed, or when nothing was asked for an hour.  Where there
is no room for another visit, those without an open tab make room.
"""

from __future__ import annotations

import hmac
import re
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .errors import SessionError
from .noise_files import NoiseFile
from .pictures import Picture

ENDED = "This visit has ended; reload the page to begin another."


@dataclass(frozen=True)
class Limits:
    """How many visits there may be, and how long they last."""

    sessions: int = 200  # in all
    of_address: int = 64  # many people may share one: behind a router, or on this machine
    of_owner: int = 16  # tabs of one browser
    tabs: int = 8  # open streams of one visit
    pictures: int = 30  # of one visit
    idle: float = 3600.0  # seconds without a request after which a visit ends
    absent: float = 900.0  # the same while no tab of it shows a sign of life


@dataclass
class Session:
    """What a visitor has dropped and got."""

    folder: Path
    token: str
    owner: str  # the cookie
    address: str = ""  # of the network
    pictures: dict[str, Picture] = field(default_factory=dict)
    models: dict[str, NoiseFile] = field(default_factory=dict)  # of noise, that were opened
    is_open: bool = True  # until it ends
    last_request: float = 0.0  # when something was last asked for
    last_sign: float = 0.0  # when a tab last gave a sign of life
    tabs: int = 0  # open streams
    version: int = 0  # counts changes of what the page shows
    made: int = 0  # folders and pictures made in it
    _lock: Any = field(default_factory=threading.Lock, repr=False)

    @property
    def group(self) -> str:
        """With whom it shares its turns: its address, or itself where all have this machine's."""
        local = self.address.startswith("127.") or self.address in ("", "::1")
        return self.owner if local else self.address

    @property
    def working(self) -> bool:
        """Whether something is done for it."""
        return any(picture.working for picture in [*self.pictures.values()])

    def stop(self) -> None:
        """End its work, if there is any."""
        for picture in [*self.pictures.values()]:
            picture.stop()

    def changed(self) -> None:
        """Note that the page shows something else now."""
        self.version += 1

    def number(self) -> int:
        """Return a number that nothing else in this visit has."""
        with self._lock:
            self.made += 1
            return self.made

    def new_folder(self, kind: str) -> Path:
        """Make a folder of its own for something, unless the visit has ended meanwhile."""
        place = self.folder / f"{kind}-{self.number()}"
        try:
            place.mkdir(mode=0o700)
        except FileNotFoundError as error:
            raise SessionError(ENDED) from error
        return place


def safe_name(name: str) -> str:
    """Return a name as a file of ours may have it.

    Examples
    --------
    >>> safe_name("../../a<b>.tif")
    'a_b_.tif'
    """
    stem, dot, suffix = name.replace("\\", "/").rpartition("/")[2].rpartition(".")
    plain = re.sub(r"[^\w .+()-]", "_", stem if dot else suffix)[:80].strip(". ") or "picture"
    ending = re.sub(r"[^A-Za-z0-9]", "", suffix)[:8] if dot else ""
    return f"{plain}.{ending}" if ending else plain


class Sessions:
    """All visits; their folders are below one that only we may read.

    Examples
    --------
    >>> import tempfile
    >>> sessions = Sessions(Path(tempfile.mkdtemp()))
    >>> ours = sessions.begin("a" * 43)
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
        self.limits = limits or Limits()
        self._clock = clock
        self._sessions: dict[str, Session] = {}
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

    def begin(self, owner: str, address: str = "") -> Session:
        """Begin a visit, or say that there is no room for one."""
        with self._lock:
            gone = self._make_room(owner, address)
            token = secrets.token_urlsafe(24)
            folder = self._folder / token
            folder.mkdir(mode=0o700)
            session = self._sessions[token] = Session(folder, token, owner, address)
            session.last_request = session.last_sign = self._clock()
        _end(gone)
        return session

    def _make_room(self, owner: str, address: str) -> list[Session]:
        """Take visits without an open tab out where a limit is reached; or refuse another one."""
        gone: list[Session] = []
        for limit, counts in (
            (self.limits.of_owner, lambda session: session.owner == owner),
            (self.limits.of_address, lambda session: session.address == address),
            (self.limits.sessions, lambda session: True),
        ):
            counted = [session for session in self._sessions.values() if counts(session)]
            if len(counted) < limit:
                continue
            absent = [session for session in counted if not session.tabs]
            if not absent:
                _end(gone)
                raise SessionError("Too many people are here; please come back later.")
            gone.append(self._sessions.pop(min(absent, key=lambda each: each.last_sign).token))
        return gone

    def find(self, token: str, cookies: Mapping[str, str], *, asks: bool = True) -> Session | None:
        """Return the visit of an address if it is theirs who ask, else None."""
        owner = cookies.get(self.COOKIE, "").encode()
        with self._lock:
            session = self._sessions.get(token)
            if session is None or not hmac.compare_digest(session.owner.encode(), owner):
                return None
            session.last_sign = self._clock()
            if asks:
                session.last_request = session.last_sign
            return session

    @contextmanager
    def tab(self, session: Session) -> Iterator[None]:
        """Last as long as a tab is open."""
        with self._lock:
            if session.tabs >= self.limits.tabs:
                raise SessionError("This visit is open in too many tabs; close some of them.")
            session.tabs += 1
        try:
            yield
        finally:
            with self._lock:
                session.tabs -= 1
                session.last_sign = self._clock()

    def end(self, session: Session) -> None:
        """Stop what a visit had started, and delete its files."""
        with self._lock:
            self._sessions.pop(session.token, None)
        _end([session])

    def sweep(self) -> None:
        """End the visits for which nothing was asked for too long."""
        now = self._clock()
        with self._lock:
            gone = [session for session in self._sessions.values() if self._is_over(session, now)]
            for session in gone:
                del self._sessions[session.token]
            known = {session.folder for session in self._sessions.values()}
            left = [place for place in self._folder.iterdir() if place not in known]
        _end(gone)
        for place in left:  # what was still being written when its visit ended
            shutil.rmtree(place, ignore_errors=True)

    def _is_over(self, session: Session, now: float) -> bool:
        if not session.tabs and now - session.last_sign > self.limits.absent:
            return True
        return now - session.last_request > self.limits.idle and not session.working

    def close(self) -> None:
        """End all visits."""
        with self._lock:
            for session in self._sessions.values():
                _leave(session)
            self._sessions.clear()
        shutil.rmtree(self._folder, ignore_errors=True)


def _leave(session: Session) -> None:
    session.is_open = False
    session.stop()


def _end(gone: list[Session]) -> None:
    for session in gone:
        _leave(session)
        shutil.rmtree(session.folder, ignore_errors=True)
