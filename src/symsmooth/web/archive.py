"""All results as one archive, packed while it is sent: it takes no room on disk or in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from io import RawIOBase
from pathlib import Path
from typing import Any
from zipfile import ZIP_STORED, ZipFile, ZipInfo

_PIECE = 2**18  # bytes that are sent at a time


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
