"""What is sent to the page: its parts, what happens while it is open, views, files and archives."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from io import RawIOBase
from pathlib import Path
from typing import Any
from urllib.parse import quote
from zipfile import ZIP_STORED, ZipFile, ZipInfo

from starlette.responses import FileResponse, Response, StreamingResponse

from .errors import PageError, nothing_here
from .sessions import VIEW, Picture, Session
from .settings import whole_numbers

ASSETS = {path.name for path in (files(__package__) / "static").iterdir()} - {"page.html"}
PRIVATE = {"cache-control": "no-store"}
_KINDS = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_TICK = 0.1  # seconds between two looks at a session
_PIECE = 2**18  # bytes of an archive that are sent at a time

_NOISE_RANGE = 3.0  # sigmas of what was removed from grey to white


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


def view_request(picture: Picture, query: Mapping[str, str]) -> dict[str, Any]:
    """Return what is to be drawn, or refuse what there is not.

    The query has ``what`` (noisy, clean, result, removed), ``of`` (the number of the run), ``panel``
    (which of its results), ``at`` (the slice, "3.0"), ``channel``, ``box`` ("x.y.width.height") and
    ``blend`` (strength of the result and of its colour, in percent: "70.40").
    """
    info = picture.info
    if info is None:
        raise nothing_here()
    what = query.get("what", "noisy")
    at = numbers_in(query.get("at", ""))
    box = numbers_in(query.get("box", "")) or None
    channel = next(iter(numbers_in(query.get("channel", ""))), None)
    low, high = info["ranges"].get("all" if channel is None else str(channel), (0.0, 1.0))
    tints = info["tints"] if channel is None else []
    limits = [info["ranges"].get(str(n), (low, high)) for n in range(len(tints))]
    first, second, blend = picture.folder / VIEW, None, None
    if what == "clean":
        if picture.reference is None:
            raise nothing_here()
        first = picture.reference / VIEW
    elif what in ("result", "removed"):
        folder = picture.folder_of(_number(query.get("of", "")))
        if folder is None:
            raise nothing_here()
        result = folder / f"result-{_number(query.get('panel', '0'))}.npy"
        shares = strengths_in(query.get("blend", ""))
        blend = None if shares is None else (first, *shares)
        first, second = (result, None) if what == "result" else (first, result)
        if what == "removed":
            span = _NOISE_RANGE * (_level(picture) or 0.02 * info["span"]) or 1.0
            low, high = -span, span
            limits = [(low, high)] * len(tints)
    elif what != "noisy":
        raise nothing_here()
    return {
        "first": first, "second": second, "at": at, "box": box,
        "channel": channel, "channels": info["channels"], "low": low, "high": high,
        "tints": tints, "limits": limits, "blend": blend,
    }  # fmt: skip


def _level(picture: Picture) -> float:
    """Return the level of the noise as it is shown: of a mosaic, in what was developed from it."""
    assert picture.info is not None
    if picture.info["mosaic"] and picture.result is not None:
        return float(picture.result.details["panels"][0]["removed"])
    return float(picture.info["noise"]["level"])


def strengths_in(text: str) -> tuple[float, float] | None:
    """Return the shares of "70.40", of brightness and of colour; None if all of the result is wanted."""
    if not text:
        return None
    percent = numbers_in(text)
    if len(percent) != 2 or max(percent) > 100:
        raise nothing_here()
    return percent[0] / 100, percent[1] / 100


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise nothing_here()
    return int(text)


def numbers_in(text: str) -> tuple[int, ...]:
    """Return the whole numbers of "3.0.12", or refuse what is none."""
    try:
        return whole_numbers([_number(part) for part in text.split(".") if text])
    except PageError as error:
        raise nothing_here() from error


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
