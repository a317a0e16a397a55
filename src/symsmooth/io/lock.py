"""One run at a time writes a file: a lock of the operating system, which ends with its process.

The lock is on a small file that says who holds it.  The file alone means nothing: one that a killed
run left behind is not locked any more.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from pathlib import Path

from .base import FileError, open_own

_FAR = 2**30  # Windows locks bytes: one that nobody reads


class Lock:
    """A lock on the name of an output, held until it is released or the process ends.

    Parameters
    ----------
    path : Path
        The file that is locked; it is made and removed here.

    Raises
    ------
    FileError
        If another run, or another thread of this one, holds it; or if it is a link.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle: int | None = None
        while self._handle is None:
            handle = open_own(path, os.O_RDWR | os.O_CREAT)
            try:
                if not _try_lock(handle):
                    raise FileError(
                        f"another run is writing it ({_holder(handle)}); wait for it, or give "
                        "another name"
                    )
                if _is_at(handle, path):  # else it was released, and removed, just before
                    _say_who(handle)
                    self._handle = handle
            finally:
                if self._handle is None:
                    os.close(handle)

    def release(self) -> None:
        """Let others have it; a second time does nothing."""
        if self._handle is None:
            return
        if os.name != "nt":
            self._path.unlink(missing_ok=True)  # while it is held: nobody else's can be removed
        os.close(self._handle)
        self._handle = None
        if os.name == "nt":
            with suppress(OSError):  # another has it open already
                self._path.unlink()


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
    except OSError:  # not supported here: the identity of the file is checked all the same
        return True
    return True


def _is_at(handle: int, path: Path) -> bool:
    """Whether an open file is the one of that name."""
    try:
        return os.path.samestat(os.fstat(handle), os.lstat(path))
    except FileNotFoundError:
        return False


def _say_who(handle: int) -> None:
    os.ftruncate(handle, 0)
    os.lseek(handle, 0, os.SEEK_SET)
    os.write(handle, f"process {os.getpid()} on {socket.gethostname()}\n".encode())


def _holder(handle: int) -> str:
    """Return who holds the lock, as it says itself."""
    os.lseek(handle, 0, os.SEEK_SET)
    owner = os.read(handle, 200).decode("utf-8", "replace").strip()
    return owner or "it has just begun"
