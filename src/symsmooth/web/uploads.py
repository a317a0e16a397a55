"""What visitors send: written to disk as it comes, known by a random token, given to its sender alone.

A file is what this server has written itself, on the same disk and inode; a name opens nothing.  What
does not arrive whole is deleted, so is what is not taken soon.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import stat
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from .errors import RefusedError, SessionError

_WRITTEN = 2**20  # bytes that are written at a time
_LOST = "The upload did not arrive; please drop the picture again."
_FULL = "There is no room for more pictures now; please come back later."


@dataclass(frozen=True)
class Limits:
    """How much may be sent."""

    max_bytes: int  # of a file
    at_once: int = 128  # uploads under way, in all
    of_address: int = 64  # the same from one address
    of_owner: int = 4  # files of one visitor that are under way
    stall: float = 20.0  # seconds without a byte after which an upload is given up
    slowest: float = 20_000.0  # bytes a second below which it is, too
    kept: float = 60.0  # seconds a file waits to be taken

    @property
    def of_visit(self) -> int:
        """Bytes on disk of one visit: pictures, results, and both unpacked."""
        return 20 * self.max_bytes + 2**26

    @property
    def in_all(self) -> int:
        """Bytes on disk of all visits."""
        return 8 * self.of_visit


@dataclass
class _Upload:
    """A file under way, or here."""

    owner: str
    address: str
    size: int  # as announced
    name: str = ""
    path: Path | None = None  # once it is whole
    identity: tuple[int, int] = (0, 0)  # device and inode
    since: float = 0.0  # when it was whole


class Uploads:
    """The files that were sent and not taken yet.

    Parameters
    ----------
    folder : path
        Where they are kept.
    limits : Limits
    max_on_disk : int
        Bytes that all files below the folder's parent may take.
    clock : function
        Returns seconds.
    """

    def __init__(
        self,
        folder: Path,
        limits: Limits,
        max_on_disk: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.limits = limits
        self._folder, self._clock = folder, clock
        self._folder.chmod(0o700)
        free = shutil.disk_usage(folder).free
        self._max_on_disk = min(limits.in_all, free // 2) if max_on_disk is None else max_on_disk
        self._uploads: dict[str, _Upload] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._uploads)

    # --- receiving ------------------------------------------------------------------------

    async def receive(
        self, owner: str, address: str, name: str, size: int, chunks: AsyncIterator[bytes]
    ) -> str:
        """Write what is sent to disk as it comes; return its token, or raise RefusedError."""
        if size > self.limits.max_bytes:
            limit = f"{self.limits.max_bytes / 2**20:.4g} MB"
            raise RefusedError(413, f"The file is larger than the {limit} allowed here.")
        on_disk = await asyncio.to_thread(bytes_in, self._folder.parent)
        with self._under_way(owner, address, size, on_disk) as (token, upload):
            path = self._folder / token
            try:
                with open(path, "xb", opener=_for_us_alone) as target:
                    await self._write(target, chunks, size)
                    found = os.fstat(target.fileno())
            except BaseException:
                path.unlink(missing_ok=True)
                raise
            with self._lock:
                upload.name, upload.identity = name, (found.st_dev, found.st_ino)
                upload.path, upload.since = path, self._clock()
            return token

    async def _write(self, target: BinaryIO, chunks: AsyncIterator[bytes], size: int) -> None:
        """Write all of a request, unless it stalls or is not what it said."""
        held, so_far = bytearray(), 0
        async for chunk in self._in_time(chunks, size):
            held += chunk
            so_far += len(chunk)
            if so_far > size:
                raise RefusedError(400, "More was sent than was announced.")
            if len(held) >= _WRITTEN:
                await asyncio.to_thread(target.write, bytes(held))
                held.clear()
        if so_far < size:
            raise RefusedError(400, "The upload was interrupted; send the file again.")
        await asyncio.to_thread(target.write, bytes(held))

    async def _in_time(self, chunks: AsyncIterator[bytes], size: int) -> AsyncIterator[bytes]:
        """Yield what is sent, unless it stalls."""
        loop = asyncio.get_running_loop()
        end = loop.time() + self.limits.stall + size / self.limits.slowest
        while True:
            left = min(self.limits.stall, end - loop.time())
            try:
                chunk = await asyncio.wait_for(anext(chunks), left)
            except StopAsyncIteration:
                return
            except TimeoutError as error:
                raise RefusedError(408, "The upload took too long.") from error
            yield chunk

    @contextmanager
    def _under_way(
        self, owner: str, address: str, size: int, on_disk: int
    ) -> Iterator[tuple[str, _Upload]]:
        """Count an upload while it lasts, and forget it unless it arrives; or refuse it."""
        limits = self.limits
        with self._lock:
            others = [*self._uploads.values()]
            coming = [other for other in others if other.path is None]
            if sum(other.owner == owner for other in others) >= limits.of_owner:
                raise RefusedError(429, "Your last pictures are still on their way; wait a moment.")
            if (
                len(coming) >= limits.at_once
                or sum(other.address == address for other in coming) >= limits.of_address
            ):
                raise RefusedError(503, "Too many pictures arrive at the moment; try again soon.")
            reserved = sum(other.size for other in coming)
            if on_disk + reserved + size > self._max_on_disk:
                raise RefusedError(507, _FULL)
            token = secrets.token_urlsafe(24)
            upload = self._uploads[token] = _Upload(owner, address, size)
        try:
            yield token, upload
        except BaseException:
            self._forget(token)
            raise

    # --- giving ---------------------------------------------------------------------------

    def take(self, owner: str, token: object, place: Callable[[str], Path]) -> Path:
        """Move a file of its sender to a place made of its name; return the place."""
        with self._lock:
            upload = self._uploads.get(token) if isinstance(token, str) else None
            if upload is None or upload.path is None or upload.owner != owner:
                raise SessionError(_LOST)
            del self._uploads[str(token)]
        path = upload.path
        try:
            found = path.lstat()
            same = (found.st_dev, found.st_ino) == upload.identity
            if not stat.S_ISREG(found.st_mode) or not same:
                raise SessionError(_LOST)
            target = place(upload.name)
            os.replace(path, target)
        except OSError as error:
            raise SessionError(_LOST) from error
        finally:
            with suppress(OSError):
                path.unlink(missing_ok=True)
        return target

    def check_room(self, visiting: Path) -> None:
        """Refuse more work for a visit whose files, or all files, take too much of the disk."""
        if bytes_in(visiting) > self.limits.of_visit:
            raise SessionError("Your pictures take too much room; remove some of them.")
        if bytes_in(self._folder.parent) > self._max_on_disk:
            raise SessionError(_FULL)

    def drop(self, token: str) -> None:
        """Delete a file that cannot be taken."""
        self._forget(token)

    def _forget(self, token: str) -> None:
        with self._lock:
            upload = self._uploads.pop(token, None)
        if upload is not None and upload.path is not None:
            upload.path.unlink(missing_ok=True)

    def sweep(self) -> None:
        """Delete what nobody has taken."""
        now = self._clock()
        with self._lock:
            old = [
                token
                for token, upload in self._uploads.items()
                if upload.path is not None and now - upload.since > self.limits.kept
            ]
        for token in old:
            self._forget(token)


def _for_us_alone(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o600)


def bytes_in(folder: Path) -> int:
    """Return the bytes of all files below a folder."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += os.lstat(os.path.join(place, name)).st_size
    return total
