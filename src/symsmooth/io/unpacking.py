"""Chunks of a Zarr that unpack to no more than a chunk holds: a megabyte of gzip can hold a gigabyte.

Zarr's codecs unpack whatever they find.  Those of an array that was opened are replaced by ones that
look first: a header that gives the size is believed only if the decoder believes it too, all else is
unpacked here, no further than to the limit.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from zarr.abc.codec import BytesBytesCodec
from zarr.codecs import ShardingCodec

from .base import FileError

_STEP = 2**22  # bytes that are unpacked at a time
_BLOCK = 2**17  # bytes that a block of Zstandard holds at most
_ZSTD = b"\x28\xb5\x2f\xfd"


def bound_unpacking(array: Any, limit: int) -> None:
    """Make an open array refuse chunks that unpack to more bytes than ``limit``."""
    inner = array._async_array
    pipeline = inner.codec_pipeline
    codecs = [_bounded(codec, limit) for codec in pipeline]
    object.__setattr__(inner, "codec_pipeline", type(pipeline).from_codecs(codecs))


def _bounded(codec: Any, limit: int) -> Any:
    """Return a codec that does the same, up to a limit."""
    if isinstance(codec, ShardingCodec):
        return ShardingCodec(
            chunk_shape=codec.chunk_shape,
            codecs=[_bounded(part, limit) for part in codec.codecs],
            index_codecs=codec.index_codecs,
            index_location=codec.index_location,
        )
    if hasattr(codec, "compressor"):  # version 2 has one codec for all it does
        return codec if codec.compressor is None else _bounded_v2(codec, limit)
    if isinstance(codec, BytesBytesCodec):
        return _Bounded(codec, _kind(codec.to_dict()["name"]), limit)
    return codec


def _kind(name: Any) -> str:
    """Return the name of a method of compression, without the library's."""
    return str(name).removeprefix("numcodecs.")


def _bounded_v2(codec: Any, limit: int) -> Any:
    """Return the codec of an array of version 2, which calls its compressor itself."""
    from numcodecs.abc import Codec

    compressor = codec.compressor
    kind = _kind(compressor.codec_id)

    class Bounded(Codec):
        codec_id = compressor.codec_id

        def encode(self, buf: Any) -> Any:
            return compressor.encode(buf)

        def decode(self, buf: Any, out: Any = None) -> Any:
            check_unpacked(kind, memoryview(buf).cast("B"), limit)
            return compressor.decode(buf, out)

        def get_config(self) -> Any:
            return compressor.get_config()

    return replace(codec, compressor=Bounded())


@dataclass(frozen=True)
class _Bounded(BytesBytesCodec):
    """A codec of version 3 that looks before it unpacks."""

    codec: Any
    kind: str
    limit: int
    is_fixed_size = False

    async def _decode_single(self, chunk_bytes: Any, chunk_spec: Any) -> Any:
        import asyncio

        data = memoryview(chunk_bytes.to_bytes())
        await asyncio.to_thread(check_unpacked, self.kind, data, self.limit)
        return await self.codec._decode_single(chunk_bytes, chunk_spec)

    async def _encode_single(self, chunk_bytes: Any, chunk_spec: Any) -> Any:
        return await self.codec._encode_single(chunk_bytes, chunk_spec)

    def evolve_from_array_spec(self, array_spec: Any) -> _Bounded:
        """Return the codec as it is for chunks of this kind."""
        return replace(self, codec=self.codec.evolve_from_array_spec(array_spec))

    def compute_encoded_size(self, input_byte_length: int, chunk_spec: Any) -> int:
        """Return the bytes that so many bytes become."""
        size: int = self.codec.compute_encoded_size(input_byte_length, chunk_spec)
        return size


def check_unpacked(kind: str, data: memoryview, limit: int) -> None:
    """Refuse packed bytes that hold more than ``limit``; kinds that cannot grow pass."""
    check = _CHECKS.get(kind)
    if check is not None and check(data, limit) > limit:
        raise FileError(f"has a chunk that unpacks to more than the {limit} bytes it may hold")


def _stream(start: Callable[[], Any]) -> Callable[[memoryview, int], int]:
    """Return a function that unpacks a stream, throws it away, and counts up to a limit."""

    def count(data: memoryview, limit: int) -> int:
        total, rest = 0, bytes(data)
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


def _size_at(start: int) -> Callable[[memoryview, int], int]:
    """Return a function that reads the size from a header which the decoder goes by."""
    return lambda data, limit: int.from_bytes(data[start : start + 4], "little")


def _zstd(data: memoryview, limit: int) -> int:
    """Return what a Zstandard frame holds: as it says itself, else at most, by its blocks."""
    if bytes(data[:4]) != _ZSTD or len(data) < 6:
        return 0  # the decoder will say that it is damaged
    descriptor = data[4]
    single = descriptor >> 5 & 1
    at = 5 + (not single) + (0, 1, 2, 4)[descriptor & 3]
    width = (single, 2, 4, 8)[descriptor >> 6]
    if width:
        return int.from_bytes(data[at : at + width], "little") + 256 * (width == 2)
    full, last, total = limit, False, 0
    while not last and at + 3 <= len(data) and total <= full + _BLOCK:
        header = int.from_bytes(data[at : at + 3], "little")
        last, kind, size = bool(header & 1), header >> 1 & 3, header >> 3
        total += size if kind < 2 else _BLOCK
        at += 3 + (1 if kind == 1 else size)
    return max(total - _BLOCK, 0)  # the last block is seldom full


_CHECKS: dict[str, Callable[[memoryview, int], int]] = {
    "gzip": _stream(lambda: zlib.decompressobj(31)),
    "zlib": _stream(zlib.decompressobj),
    "bz2": _stream(bz2.BZ2Decompressor),
    "lzma": _stream(lzma.LZMADecompressor),
    "blosc": _size_at(4),
    "lz4": _size_at(0),
    "zstd": _zstd,
}
