"""Packed bytes that unpack to no more than they may hold: a megabyte of gzip can hold a gigabyte.

Decoders unpack whatever they find, so packed bytes are looked at first: a header that gives the size is
believed only if the decoder believes it too, all else is unpacked here, no further than to the limit.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable
from typing import Any

from .base import FileError

_STEP = 2**22  # bytes that are unpacked at a time
_BLOCK = 2**17  # bytes that a block of Zstandard holds at most
_ZSTD = b"\x28\xb5\x2f\xfd"


def bound_unpacking(codecs: Any, limit: int) -> None:
    """Make codecs of an open Zarr array, those in a shard too, refuse what unpacks to more bytes."""
    for codec in codecs:
        bound_unpacking(getattr(codec, "codecs", ()), limit)
        if hasattr(codec, "compressor"):  # version 2 has one codec for all it does
            name = getattr(codec.compressor, "codec_id", "")
        else:
            name = codec.to_dict().get("name", "")
        kind = str(name).removeprefix("numcodecs.")
        if kind in _SIZES:
            object.__setattr__(codec, "_decode_single", _looking(codec._decode_single, kind, limit))


def _looking(decode: Any, kind: str, limit: int) -> Any:
    """Return what decodes a chunk once it was looked at."""

    async def look_and_decode(chunk: Any, spec: Any) -> Any:
        import asyncio

        await asyncio.to_thread(check_unpacked, kind, chunk.to_bytes(), limit)
        return await decode(chunk, spec)

    return look_and_decode


def check_unpacked(kind: str, data: bytes, limit: int, what: str = "chunk") -> None:
    """Refuse packed bytes that hold more than ``limit``; kinds that cannot grow pass."""
    if kind in _SIZES and _SIZES[kind](data, limit) > limit:
        raise FileError(f"has a {what} that unpacks to more than the {limit} bytes it may hold")


def _stream(start: Callable[[], Any]) -> Callable[[bytes, int], int]:
    """Return a function that unpacks a stream, throws it away, and counts up to a limit."""

    def count(data: bytes, limit: int) -> int:
        total, rest = 0, data
        while rest and total <= limit:  # several streams may follow each other
            unpacker = start()
            while not unpacker.eof and total <= limit:
                piece = unpacker.decompress(rest, _STEP)
                rest = getattr(unpacker, "unconsumed_tail", b"")
                total += len(piece)
                if not piece and not rest:
                    return total  # cut off: the decoder will say so
            rest = unpacker.unused_data
        return total

    return count


def _size_at(start: int) -> Callable[[bytes, int], int]:
    """Return a function that reads the size from a header which the decoder goes by."""
    return lambda data, limit: int.from_bytes(data[start : start + 4], "little")


def _zstd(data: bytes, limit: int) -> int:
    """Return what a Zstandard frame holds: as it says itself, else at most, by its blocks."""
    if data[:4] != _ZSTD or len(data) < 6:
        return 0  # the decoder will say that it is damaged
    descriptor = data[4]
    single = descriptor >> 5 & 1
    at = 5 + (not single) + (0, 1, 2, 4)[descriptor & 3]
    width = (single, 2, 4, 8)[descriptor >> 6]
    if width:
        return int.from_bytes(data[at : at + width], "little") + 256 * (width == 2)
    last, total = False, 0
    while not last and at + 3 <= len(data) and total <= limit + _BLOCK:
        header = int.from_bytes(data[at : at + 3], "little")
        last, kind, size = bool(header & 1), header >> 1 & 3, header >> 3
        total += size if kind < 2 else _BLOCK
        at += 3 + (1 if kind == 1 else size)
    return max(total - _BLOCK, 0)  # the last block is seldom full


_SIZES: dict[str, Callable[[bytes, int], int]] = {
    "gzip": _stream(lambda: zlib.decompressobj(31)),
    "zlib": _stream(zlib.decompressobj),
    "bz2": _stream(bz2.BZ2Decompressor),
    "lzma": _stream(lzma.LZMADecompressor),
    "blosc": _size_at(4),
    "lz4": _size_at(0),
    "zstd": _zstd,
}
