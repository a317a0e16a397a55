"""A hidden folder beside an output, in which one run at a time makes it.

In it are a lock of the operating system, which ends with its process; the pixels that are written so
far; and a log, whose first line says what they are and each of the others that a box is done.  A box is
logged after its pixels are with the operating system: so whatever a killed process leaves, the boxes in
the log are right.  Nobody but us can put anything into the folder.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from .base import FileError, atomic_write
from .boxes import Box

_FAR = 2**30  # Windows locks bytes: one that nobody reads
Key = tuple[tuple[int, int], ...]  # a box as plain numbers


def box_key(box: Box) -> Key:
    """Return a box as plain numbers."""
    return tuple((int(part.start), int(part.stop)) for part in box)


class Workplace:
    """The folder in which an output is made; another process may be given one that it does not hold."""

    def __init__(self, final: Path, about: Mapping[str, Any] | None = None) -> None:
        self._final = final
        self._folder = final.with_name(f".{final.name[:100]}.part")
        self._log = self._folder / "log"
        self.pixels = self._folder / "pixels"  # where they are kept until the output is whole
        self.about = dict(about or {})  # the first line of the log as this run wrote it
        self._handle: int | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return Workplace, (self._final, self.about)

    def lock(self) -> None:
        """Make the folder, or take what a run before has left; FileError if another run holds it."""
        while self._handle is None:
            with suppress(FileExistsError):
                self._folder.mkdir(mode=0o700)
            with suppress(FileNotFoundError):  # another run has just removed it
                about = self._folder.lstat()
                if not stat.S_ISDIR(about.st_mode) or about.st_uid != getattr(os, "geteuid", int)():
                    raise FileError(
                        f"{self._folder.name} beside it is no folder of ours; remove it"
                    )
                place = self._folder / "lock"
                handle = os.open(place, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o600)
                try:
                    if not _try_lock(handle):
                        raise FileError(
                            f"another run is writing it ({_holder(handle)}); wait for it, or give "
                            "another name"
                        )
                    if os.path.samestat(os.fstat(handle), os.lstat(place)):
                        self._handle = handle
                finally:
                    if self._handle is None:
                        os.close(handle)
        os.ftruncate(self._handle, 0)
        os.lseek(self._handle, 0, os.SEEK_SET)
        os.write(self._handle, f"process {os.getpid()} on {socket.gethostname()}\n".encode())

    def begin(self, about: Mapping[str, Any], *, resume: bool) -> bool:
        """Start a log that is this run's; return whether what a run before has left is of no use."""
        lines = self._lines() if resume else []
        afresh = not (lines and about.items() <= lines[0].items() and self.pixels.exists())
        if afresh:
            lines = []
            for left in self._folder.iterdir():
                if left.name != "lock":
                    shutil.rmtree(left) if left.is_dir() else left.unlink()
        self.about = {**about, "run": secrets.token_hex(8)}
        with atomic_write(self._log) as handle:
            for line in [self.about, *lines[1:]]:
                handle.write(json.dumps(line).encode() + b"\n")
        return afresh

    def check(self) -> None:
        """Refuse to go on where another run has begun since: some network disks know no locks."""
        try:
            with open(self._log, "rb") as log:
                ours = json.loads(log.readline()) == self.about
        except (OSError, ValueError):
            ours = False
        if not ours:
            raise FileError("another run has replaced what this one wrote; run it again alone")

    def add(self, box: Box) -> None:
        """Log a box that is done, in one write, which many processes may do at once."""
        handle = os.open(self._log, os.O_WRONLY | os.O_APPEND)
        try:
            os.write(handle, json.dumps({"box": box_key(box)}).encode() + b"\n")
        finally:
            os.close(handle)

    def done(self) -> set[Key]:
        """Return the boxes that are done, those of other processes too."""
        return {tuple(map(tuple, line["box"])) for line in self._lines()[1:]}

    def _lines(self) -> list[Any]:
        """Return the lines of the log; the last may have been cut off."""
        with suppress(OSError, ValueError):
            whole, _, _ = self._log.read_bytes().rpartition(b"\n")
            return [json.loads(line) for line in whole.splitlines()]
        return []

    def release(self, *, remove: bool) -> None:
        """Let others have the folder, with what is in it or without; a second time does nothing."""
        if self._handle is None:
            return
        handle, self._handle = self._handle, None
        if os.name == "nt":
            os.close(handle)  # what is open cannot be removed there
        if remove:
            shutil.rmtree(self._folder, ignore_errors=True)
        if os.name != "nt":
            os.close(handle)


def _try_lock(handle: int) -> bool:
    """Lock an open file, or return that another holds it; some network disks know no locks."""
    try:
        if os.name == "nt":
            import msvcrt

            os.lseek(handle, _FAR, os.SEEK_SET)
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:  # not supported here: whose log it is is looked at all the same
        return True
    return True


def _holder(handle: int) -> str:
    """Return who holds the lock, as it says itself."""
    os.lseek(handle, 0, os.SEEK_SET)
    owner = os.read(handle, 200).decode("utf-8", "replace").strip()
    return owner or "it has just begun"
