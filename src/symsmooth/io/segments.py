"""The pixels of a TIFF where they are stored: strips and tiles, read by boxes and written in place.

A TIFF is a skeleton (directories, tags, metadata of any kind) with segments of pixels in it.  To
write an image back is to write other pixels into a copy of the skeleton: all else stays as it was,
whatever it is.  A coded segment that became longer goes to the end of the file, and the two tables
that say where segments are and how long are corrected.
"""

from __future__ import annotations

import bisect
import itertools
import math
import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Any, BinaryIO

import numpy as np
import tifffile

from .base import FileError
from .boxes import Box
from .ifd import Value, integers, occupied, replace_values
from .images import Array

Skeleton = tuple[int, Iterable[tuple[int, bytes]]]  # size of the file; what is where between pixels

# None, LZW, deflate, PackBits, deflate, LZMA, Zstd.
_LOSSLESS = (1, 5, 8, 32773, 32946, 34925, 50000)
_TILES, _STRIPS = (324, 325), (273, 279)  # tags: where segments are, how long
_STEP = 2**24  # bytes that are copied at a time


def can_rewrite(level: Any) -> bool:
    """Whether other pixels can be put into the place of these without any loss."""
    page = level.keyframe
    if level.transform is not None or any(p is None for p in level.pages):
        return False
    if level.dataoffset is not None:
        return True
    whole_bytes = page.bitspersample == 8 * page.dtype.itemsize
    known = page.compression in _LOSSLESS and page.photometric in (0, 1, 2, 3, 5)
    if not (known and whole_bytes and page.fillorder == 1 and not page.is_subsampled):
        return False
    try:
        _encoder(page)(np.zeros((1, 2, 2, page.shaped[4]), page.dtype))
    except (KeyError, ValueError, TypeError):  # a codec that is not installed
        return False
    return True


def _encoder(page: Any) -> Any:
    """Return a function that codes a segment (depth, length, width, samples) as the page's are."""
    compress = tifffile.TIFF.COMPRESSORS[page.compression] if page.compression != 1 else None
    predict = tifffile.TIFF.PREDICTORS[page.predictor] if page.predictor != 1 else None
    stored = page.dtype.newbyteorder(page.parent.byteorder)

    def encode(segment: Array) -> bytes:
        data: Any = np.ascontiguousarray(segment, dtype=stored)
        if predict is not None:
            data = predict(data, axis=-2)
        data = data if isinstance(data, bytes) else np.ascontiguousarray(data).tobytes()
        return data if compress is None else bytes(compress(data))

    return encode


def _places(page: Any) -> list[tuple[int, int]]:
    """Return where the segments of a page are: (offset, bytes)."""
    return [*zip(map(int, page.dataoffsets), map(int, page.databytecounts), strict=True)]


def _gaps(levels: Sequence[Any], handle: BinaryIO, size: int) -> list[tuple[int, int]] | None:
    """Return the parts of a file (start, end) between pixels.

    None if segments overlap each other, or the tags: other pixels would damage these.
    """
    tags = occupied(handle)
    if tags is None:
        return None
    starts = [start for start, _ in sorted(tags)]
    ends = [*itertools.accumulate((sum(spot) for spot in sorted(tags)), max)]
    pixels = []
    for level in levels:
        if level.dataoffset is not None:
            pixels.append((level.dataoffset, level.nbytes))
        else:
            pixels += [spot for page in level.pages for spot in _places(page) if all(spot)]
    found, at = [], 0
    for start, count in sorted(pixels):
        before = bisect.bisect_left(starts, start + count)  # tags that begin before its end
        if start < at or (before and ends[before - 1] > start):
            return None
        if start > at:
            found.append((at, start))
        at = start + count
    return [*found, (at, size)] if at < size else found


def take_skeleton(handle: BinaryIO, levels: Sequence[Any], size: int) -> Skeleton | None:
    """Return all of a file but its pixels, read piece by piece; None if it cannot be taken apart."""
    between = _gaps(levels, handle, size)
    return None if between is None else (size, _read_parts(handle, between))


def _read_parts(handle: BinaryIO, parts: Iterable[tuple[int, int]]) -> Iterator[tuple[int, bytes]]:
    """Yield parts of a file, long ones piece by piece: where they are, and what is there."""
    for start, end in parts:
        for at in range(start, end, _STEP):
            handle.seek(at)
            yield at, handle.read(min(end - at, _STEP))


def put_skeleton(handle: BinaryIO, skeleton: Skeleton) -> None:
    """Write a file without its pixels, as large as it was."""
    size, pieces = skeleton
    handle.truncate(size)
    for start, piece in pieces:
        handle.seek(start)
        handle.write(piece)
    handle.flush()
    handle.seek(0)


def put_segments(handle: BinaryIO, page: Any, coded: Iterable[bytes]) -> dict[int, Value | None]:
    """Write coded segments of a page, each into the place of the old one if it fits, else at the end.

    Return the tags that say where they are now.
    """
    old, places = _places(page), []
    for segment, (place, room) in zip(coded, old, strict=False):
        if not place or len(segment) > room:
            place = handle.seek(0, os.SEEK_END)
            place += handle.write(b"\0" * (place % 2))
        handle.seek(place)
        handle.write(segment)
        places.append((place, len(segment)))
    places += old[len(places) :]
    tiff = page.parent
    offsets, counts = zip(*places, strict=True)
    tags = _TILES if page.keyframe.is_tiled else _STRIPS
    kind = 16 if tiff.is_bigtiff else 4
    return {
        tags[0]: integers(offsets, tiff.byteorder, kind),
        tags[1]: integers(counts, tiff.byteorder, 4),
    }


def write_level(level: Any, handle: BinaryIO, pixels: Array) -> None:
    """Write all pixels of a level into the skeleton; struct.error if the file gets too long for it."""
    page = level.keyframe
    stored = page.dtype.newbyteorder(page.parent.byteorder)
    if level.dataoffset is not None:
        handle.seek(level.dataoffset)
        flat, step = pixels.reshape(-1), _STEP // stored.itemsize
        for at in range(0, flat.size, step):
            handle.write(flat[at : at + step].astype(stored).data)
        return
    encode = _encoder(page)
    for number, parts in itertools.groupby(as_stored(level, pixels), key=itemgetter(0)):
        own = level.pages[number]
        coded = (encode(segment) for _, segment in parts)
        replace_values(handle, own.offset, put_segments(handle, own, coded))


def as_stored(level: Any, pixels: Array) -> Iterator[tuple[int, Array]]:
    """Yield the segments of all pages (page, pixels): tiles are whole, the last strip is not."""
    segments = Segments(level, level.keyframe.parent.filehandle)
    whole = tuple(slice(0, n) for n in level.shape)
    for number, _, _, part in segments.overlaps(whole, pixels):
        lacking = [(0, p - n) for p, n in zip(segments.piece, part.shape, strict=True)]
        yield number, np.pad(part, lacking, mode="edge") if level.keyframe.is_tiled else part


def _pieces(page: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the shape of a page's segments, and how many there are along each axis.

    A page is (planes of samples, depth, length, width, samples).
    """
    if page.is_tiled:
        piece = (1, page.tiledepth, page.tilelength, page.tilewidth, page.shaped[4])
    else:
        piece = (1, 1, min(page.rowsperstrip, page.shaped[2]), *page.shaped[3:])
    if min(piece) < 1:
        raise FileError("has segments without pixels: damaged")
    return piece, tuple(-(-n // p) for n, p in zip(page.shaped, piece, strict=True))


def count_segments(page: Any) -> int:
    """Return the number of segments a page must have."""
    return math.prod(map(int, _pieces(page)[1]))


def segment_bytes(page: Any) -> int:
    """Return the bytes of a segment's pixels, those beyond the border among them."""
    return math.prod(map(int, (page.dtype.itemsize, *_pieces(page)[0])))


class Segments:
    """One level (a TiffPageSeries) of an image in an open file, read by boxes; threads may share it."""

    def __init__(self, level: Any, handle: BinaryIO) -> None:
        page = level.keyframe
        self.shape: tuple[int, ...] = tuple(level.shape)
        self.dtype = level.dtype.newbyteorder("=")
        self._level, self._page, self._handle = level, page, handle
        self._lock = threading.Lock()
        self._piece, self._grid = _pieces(page)
        self.piece = self._piece[1:]  # (depth, length, width, samples)
        self._lead, self._place = self._match_axes()
        self._jpeg_tables = page.jpegtables  # read here: threads read under the lock alone

    def _match_axes(self) -> tuple[int, list[int | None]]:
        """Return how many axes count pages, and for the others which axis of a page they are.

        An image leaves out some axes of a page that are 1.
        """
        page_shape = self._page.shaped
        axes: list[int | None] = []
        left, at = int(np.prod(page_shape)), len(page_shape)
        lead = len(self.shape)
        while left > 1:
            lead -= 1
            n = self.shape[lead]
            axis = None
            if n > 1:
                at = max((i for i in range(at) if page_shape[i] == n), default=-1)
                if at < 0 or left % n:
                    raise FileError("has pages of a layout that is not understood; save it plainly")
                axis, left = at, left // n
            axes.insert(0, axis)
        return lead, axes

    @property
    def chunks(self) -> tuple[int, ...]:
        """Shape of the pieces the image is stored in."""
        inner = [1 if axis is None else self._piece[axis] for axis in self._place]
        return (*([1] * self._lead), *inner)

    def __getitem__(self, box: Box) -> Array:
        """Return the pixels of a box, in native byte order."""
        if self._level.dataoffset is not None:
            stored = self.dtype.newbyteorder(self._page.parent.byteorder)
            with self._lock:
                mapped: Any = np.memmap(
                    self._handle, stored, "r", self._level.dataoffset, self.shape
                )
                return np.array(mapped[box], dtype=self.dtype)
        out = np.empty(_sizes(box), self.dtype)
        for page, index, inside, outside in self.overlaps(box, out):
            outside[...] = self._decoded(page, index)[inside]
        return out

    def overlaps(self, box: Box, pixels: Array) -> Iterator[tuple[int, int, Box, Array]]:
        """Yield page, segment, the part of the segment, and the part of ``pixels`` it is."""
        lead, inner = box[: self._lead], box[self._lead :]
        page_box = [slice(0, n) for n in self._page.shaped]
        for axis, part in zip(self._place, inner, strict=True):
            if axis is not None:
                page_box[axis] = part
        n_pages = int(np.prod(_sizes(lead), dtype=int))
        planes = pixels.reshape(n_pages, *_sizes(tuple(page_box)))
        numbers = np.arange(int(np.prod(self.shape[: self._lead], dtype=int)))
        numbers = numbers.reshape(self.shape[: self._lead])[lead].ravel()
        cells = [
            range(part.start // p, -(-part.stop // p))
            for part, p in zip(page_box, self._piece, strict=True)
        ]
        for (at, page), cell in itertools.product(enumerate(numbers), itertools.product(*cells)):
            index = int(np.ravel_multi_index(cell[:4], self._grid[:4]))
            inside, outside = [], []
            for i, p, part in zip(cell, self._piece, page_box, strict=True):
                low, high = max(i * p, part.start), min((i + 1) * p, part.stop)
                inside.append(slice(low - i * p, high - i * p))
                outside.append(slice(low - part.start, high - part.start))
            yield int(page), index, tuple(inside[1:]), planes[at][tuple(outside)][0]

    def _decoded(self, page: int, index: int) -> Array:
        """Return a segment; one that is nowhere is 0."""
        with self._lock:  # a page may be read now, too
            table = self._level.pages[page]
            offset, count = table.dataoffsets[index], table.databytecounts[index]
            self._handle.seek(offset)
            data = self._handle.read(count) if offset and count else None
        segment, _, _ = self._page.decode(data, index, jpegtables=self._jpeg_tables)
        return np.zeros(self.piece, self.dtype) if segment is None else np.asarray(segment)


def _sizes(box: Box) -> tuple[int, ...]:
    """Return the shape of a box."""
    return tuple(part.stop - part.start for part in box)
