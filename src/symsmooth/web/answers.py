"""What is sent to the page: its parts, what happens while it is open, files and archives."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from functools import cache
from importlib.resources import files
from io import RawIOBase
from pathlib import Path
from typing import Any
from urllib.parse import quote
from zipfile import ZIP_STORED, ZipFile, ZipInfo

from starlette.responses import FileResponse, Response, StreamingResponse

from .sessions import Session

ASSETS = frozenset(
    {"page.css", "icon.svg"}
    | {
        f"{name}.js"
        for name in ("page", "api", "viewer", "controls", "details", "slices", "charts", "dom")
    }
)
PRIVATE = {"cache-control": "no-store"}
_KINDS = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_TICK = 0.1  # seconds between two looks at a session
_PIECE = 2**18  # bytes of an archive that are sent at a time


@cache
def _content(name: str) -> bytes:
    return (files(__package__) / "static" / name).read_bytes()


def asset(name: str) -> Response:
    """Return a part of the page."""
    kind = _KINDS[name.rpartition(".")[2]]
    return Response(_content(name), media_type=kind, headers={"cache-control": "no-cache"})


async def events(session: Session) -> AsyncIterator[str]:
    """Yield what happens as server-sent events: the state when that changes, progress while something runs.

    Until the tab is closed or the session ends.
    """
    version, sent = -1, ""
    while session.is_open:
        session.last_sign = time.monotonic()
        if session.version != version:
            version, sent = session.version, ""
            yield _event("state", json.dumps(session.state()))
        elif (progress := json.dumps(session.progress())) != sent:
            sent = progress
            yield _event("progress", progress)
        await asyncio.sleep(_TICK)
    yield _event("gone", "{}")


def _event(kind: str, data: str) -> str:
    return f"event: {kind}\ndata: {data}\n\n"


def download(path: Path, name: str = "") -> Response:
    """Return a file to be taken home."""
    kind = "application/octet-stream"
    return FileResponse(path, filename=name or path.name, media_type=kind, headers=PRIVATE)


def archive(paths: Sequence[tuple[str, Path]], name: str) -> Response:
    """Return files as one archive, packed while it is sent: it takes no room on disk or in memory."""
    headers = {**PRIVATE, "content-disposition": f"attachment; filename*=utf-8''{quote(name)}"}
    return StreamingResponse(pack(paths), media_type="application/zip", headers=headers)


def pack(paths: Sequence[tuple[str, Path]]) -> Iterator[bytes]:
    """Yield an archive of files, each in its folder ("" is none) and under a name of its own, by pieces."""
    names: set[str] = set()
    written = _Written()
    with ZipFile(written, "w", ZIP_STORED) as packed:
        for folder, path in paths:
            within = f"{folder}/" if folder else ""
            name, number = f"{within}{path.name}", 1
            while name in names:
                number += 1
                name = f"{within}{path.stem}-{number}{path.suffix}"
            names.add(name)
            about = ZipInfo.from_file(path, name)
            with open(path, "rb") as source, packed.open(about, "w") as target:
                while piece := source.read(_PIECE):
                    target.write(piece)
                    yield written.take()
    yield written.take()


class _Written(RawIOBase):
    """What was written and not taken yet; nobody goes back in it."""

    def __init__(self) -> None:
        self._held = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._held += data
        return len(data)

    def take(self) -> bytes:
        """Return what was written, and forget it."""
        taken = bytes(self._held)
        self._held.clear()
        return taken
