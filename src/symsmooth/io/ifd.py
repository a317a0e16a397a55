"""Directories of TIFF tags, edited in place: in TIFF files and in EXIF blocks, which are the same.

All values are found by their offset from the start.  So a value that grows is written at the end,
and a directory that grows too; nothing else moves, and what cameras hide in their private tags,
with offsets only they know, stays true.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from operator import itemgetter
from typing import BinaryIO, NamedTuple

from .base import FileError

SOFTWARE = 305
_ASCII = 2
_SUB_DIRECTORIES = 330
_SIZES = {3: 2, 4: 4, 5: 8, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8, 17: 8, 18: 8}  # else 1
_INTEGERS = {3: "H", 4: "I", 13: "I", 16: "Q", 18: "Q"}
_PLACES = (4, 13, 16, 18)  # types that hold offsets
_MAX_DIRECTORIES = 250_000
_MAX_KINDS = 250
_MAX_TEXT = 65536
_OF_LAYOUT = (256, 257, 258, 259, 262, 277, 278, 284, 317, 322, 323, 339, 32997, 32998)

Entry = tuple[int, int, int, bytes]  # tag, type, count, value or where it is
Value = tuple[int, int, bytes]  # type, count, bytes in the file's order


class _Layout(NamedTuple):
    """How a file is written, in one of two byte orders and two sizes (TIFF and BigTIFF): formats."""

    order: str  # "<" or ">"
    offset: str  # of an offset or a count
    number: str  # of the number of entries
    entry: str  # tag, type, count, value or where it is
    room: int  # bytes of a value that need no offset
    first: int  # where the first directory is


def _layout(handle: BinaryIO) -> _Layout:
    handle.seek(0)
    start = handle.read(16)
    order = {b"II": "<", b"MM": ">"}[start[:2]]
    if struct.unpack(order + "H", start[2:4])[0] == 43:
        first = struct.unpack(order + "Q", start[8:16])[0]
        return _Layout(order, order + "Q", order + "Q", order + "HHQ8s", 8, first)
    first = struct.unpack(order + "I", start[4:8])[0]
    return _Layout(order, order + "I", order + "H", order + "HHI4s", 4, first)


def integers(values: Sequence[int], order: str, kind: int) -> Value:
    """Return whole numbers as the value of a tag; struct.error if one is too large for the type."""
    return kind, len(values), struct.pack(f"{order}{len(values)}{_INTEGERS[kind]}", *values)


def add_software(handle: BinaryIO, note: str) -> None:
    """Add a note to what the Software tag of the first directory says already, after a semicolon."""
    values = read_values(handle, first_directory(handle), _MAX_TEXT)
    kind, _, text = values.get(SOFTWARE, (_ASCII, 0, b""))
    said = text.split(b"\0")[0].rstrip() if kind == _ASCII else b""
    added = note.encode("ascii", "replace")
    if not said.endswith(added):
        text = (said + b"; " + added if said else added) + b"\0"
        put_value(handle, SOFTWARE, (_ASCII, len(text), text))


def first_directory(handle: BinaryIO) -> int:
    """Return where the first directory of a TIFF is."""
    return _layout(handle).first


def read_values(handle: BinaryIO, at: int, largest: int = 2**24) -> dict[int, Value]:
    """Return the tags of a directory with their values as they are stored; huge ones are left out."""
    layout = _layout(handle)
    found: dict[int, Value] = {}
    for entry in _read_directory(handle, layout, at)[0]:
        tag, kind, count, _ = entry
        size = count * _SIZES.get(kind, 1)
        if size <= largest and len(value := _value(handle, layout, entry)) == size:
            found.setdefault(tag, (kind, count, value))  # of a tag that is there twice the first
    return found


def _value(handle: BinaryIO, layout: _Layout, entry: Entry) -> bytes:
    """Return the value of an entry; it may be cut off."""
    _, kind, count, value = entry
    size = count * _SIZES.get(kind, 1)
    if size > layout.room:
        handle.seek(struct.unpack(layout.offset, value)[0])
        value = handle.read(size)
    return value[:size]


def place_of(handle: BinaryIO, at: int, tag: int) -> int:
    """Return the offset that a directory has for the value of a tag that does not fit into it."""
    layout = _layout(handle)
    entries = _read_directory(handle, layout, at)[0]
    return int(struct.unpack(layout.offset, next(e[3] for e in entries if e[0] == tag))[0])


def replace_values(handle: BinaryIO, at: int, changed: Mapping[int, Value | None]) -> None:
    """Give tags of a directory other values, or take them out of it (None); others stay.

    The directory stays where it is: tags that it does not have are not added.  A value as
    long as the one before takes its place.
    """
    layout = _layout(handle)
    entries, following = _read_directory(handle, layout, at)
    kept = []
    for entry in entries:
        tag, kind, count, place = entry
        new = changed.get(tag, entry)
        if new is not None and len(new) == 3:
            room = count * _SIZES.get(kind, 1)
            if layout.room < len(new[2]) == room:
                handle.seek(struct.unpack(layout.offset, place)[0])
                handle.write(new[2])
            else:
                place = _store(handle, layout, new[2])
            new = tag, new[0], new[1], place
        if new is not None:
            kept.append(new)
    _write_directory(handle, layout, at, kept, following)


def put_value(handle: BinaryIO, tag: int, value: Value) -> None:
    """Give a tag of the first directory a value; a directory that grows for it moves to the end."""
    layout = _layout(handle)
    entries, following = _read_directory(handle, layout, layout.first)
    if any(entry[0] == tag for entry in entries):
        replace_values(handle, layout.first, {tag: value})
        return
    kind, count, stored = value
    entries.append((tag, kind, count, _store(handle, layout, stored)))
    entries.sort(key=itemgetter(0))  # of a tag that is there twice the first one stays the first
    place = _append(handle, layout, b"")
    _write_directory(handle, layout, struct.unpack(layout.offset, place)[0], entries, following)
    handle.seek(layout.room)  # as far from the start as an offset is long
    handle.write(place)


def append_directory(handle: BinaryIO, values: Mapping[int, Value]) -> int:
    """Write a directory at the end and return where it is; nothing refers to it yet."""
    layout = _layout(handle)
    entries = [
        (tag, kind, count, _store(handle, layout, value))
        for tag, (kind, count, value) in sorted(values.items())
    ]
    at = int(struct.unpack(layout.offset, _append(handle, layout, b""))[0])
    _write_directory(handle, layout, at, entries, b"\0" * layout.room)
    return at


def exif_with_software(exif: bytes | None, note: str) -> bytes | None:
    """Return an EXIF block with a note in it; one that makes no sense comes back as it is."""
    if not note:
        return exif
    block = io.BytesIO(exif or b"II*\0\x08\0\0\0\0\0\0\0\0\0")  # else one without entries
    with suppress(Exception):
        add_software(block, note)
        return block.getvalue()
    return exif


def check_directories(handle: BinaryIO) -> int:
    """Follow every directory of a TIFF to the next and to those below it; return how many pages there are.

    Whoever follows a chain that leads back to itself never ends; it is refused here.  One that leads
    nowhere ends there.
    """
    return sum(is_page for _, entries, is_page in _walk(handle) if entries is not None)


def occupied(handle: BinaryIO) -> list[tuple[int, int]] | None:
    """Return where a TIFF holds something other than pixels: (offset, bytes) of header, tags, values.

    None if a chain leads nowhere: once the file grows, something might be there.
    """
    layout = _layout(handle)
    found = [(0, 2 * layout.room)]
    for at, entries, _ in _walk(handle):
        if entries is None:
            return None
        size = struct.calcsize(layout.number) + len(entries) * struct.calcsize(layout.entry)
        found.append((at, size + layout.room))
        for _, kind, count, value in entries:
            if count * _SIZES.get(kind, 1) > layout.room:
                place = struct.unpack(layout.offset, value)[0]
                found.append((place, count * _SIZES.get(kind, 1)))
    return found


def _walk(handle: BinaryIO) -> Iterator[tuple[int, list[Entry] | None, bool]]:
    """Yield each directory: where it is, its entries (None: damaged), whether it is a page or below one."""
    layout = _layout(handle)
    waiting, seen, kinds = [(layout.first, True)], set(), set()
    while waiting:
        at, is_page = waiting.pop()
        if at in seen:
            raise FileError("has a directory that leads back to an earlier one: damaged")
        seen.add(at)
        if len(seen) > _MAX_DIRECTORIES:
            raise FileError(f"has more than {_MAX_DIRECTORIES} pages; split it")
        try:
            entries, following = _read_directory(handle, layout, at)
        except (ValueError, OSError, OverflowError, struct.error):
            yield at, None, is_page  # the chain ends here
            continue
        kinds.add(tuple(entry for entry in entries if entry[0] in _OF_LAYOUT and entry[2] == 1))
        if len(kinds) > _MAX_KINDS:  # each is compared with all the others
            raise FileError(f"holds images of more than {_MAX_KINDS} sizes; split it")
        yield at, entries, is_page
        for entry in entries:
            tag, kind, count, _ = entry
            if tag == _SUB_DIRECTORIES and kind in _PLACES and count <= _MAX_DIRECTORIES:
                stored = _value(handle, layout, entry)
                whole = len(stored) // _SIZES[kind]
                below = struct.unpack_from(f"{layout.order}{whole}{_INTEGERS[kind]}", stored)
                waiting += [(place, False) for place in below if place]
        after = struct.unpack(layout.offset, following)[0]
        if after and is_page:  # those below are listed by the page, whatever they say follows them
            waiting.append((after, True))


def _read_directory(handle: BinaryIO, layout: _Layout, at: int) -> tuple[list[Entry], bytes]:
    """Return the entries of a directory, and the offset of the next one as it is stored."""
    handle.seek(at)
    number = struct.calcsize(layout.number)
    (count,) = struct.unpack(layout.number, handle.read(number))
    size = struct.calcsize(layout.entry)
    stored = handle.read(count * size) if count < 4096 else b""
    if len(stored) != count * size:
        raise ValueError("the directory of tags is damaged")
    entries = [*struct.iter_unpack(layout.entry, stored)]
    return entries, handle.read(layout.room).ljust(layout.room, b"\0")


def _write_directory(
    handle: BinaryIO, layout: _Layout, at: int, entries: list[Entry], following: bytes
) -> None:
    directory = struct.pack(layout.number, len(entries))
    directory += b"".join(struct.pack(layout.entry, *entry) for entry in entries) + following
    handle.seek(at)
    handle.write(directory)


def _store(handle: BinaryIO, layout: _Layout, value: bytes) -> bytes:
    """Return what an entry says of a value: itself if it is short, else where it now is."""
    if len(value) <= layout.room:
        return value.ljust(layout.room, b"\0")
    return _append(handle, layout, value)


def _append(handle: BinaryIO, layout: _Layout, block: bytes) -> bytes:
    """Write a block at the end, on an even offset, and return that offset as it is stored."""
    at = handle.seek(0, 2)
    at += handle.write(b"\0" * (at % 2))
    place = struct.pack(layout.offset, at)  # an error beyond 4 GB: then nothing was written
    handle.write(block)
    return place
