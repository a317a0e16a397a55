"""The pixels of a TIFF where they are stored: strips and tiles, read and rewritten in place.

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
import struct
import threading
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

import numpy as np
import tifffile

from .base import FileError
from .boxes import Box
from .ifd import occupied
from .images import Array

Skeleton = tuple[int, list[tuple[int, bytes]]]  # size of the file; what is where between pixels

_LOSSLESS = (
    1,
    5,
    8,
    32773,
    32946,
    34925,
    50000,
)  # none, LZW, deflate, PackBits, deflate, LZMA, Zstd
_OFFSETS, _COUNTS = (324, 273), (325, 279)  # tags of tiles, of strips
_FORMATS = {3: "H", 4: "I", 16: "Q"}  # types of tags


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


def ranges(level: Any) -> list[tuple[int, int]]:
    """Return where the pixels of a level are: (offset, bytes), in no order."""
    if level.dataoffset is not None:
        return [(level.dataoffset, level.nbytes)]
    return [
        (offset, count)
        for page in level.pages
        for offset, count in zip(page.dataoffsets, page.databytecounts, strict=True)
        if offset and count
    ]


def gaps(levels: Sequence[Any], handle: BinaryIO, size: int) -> list[tuple[int, int]] | None:
    """Return the parts of a file (start, end) between pixels.

    None if segments overlap each other, or the tags: other pixels would damage these.
    """
    tags = occupied(handle)
    if tags is None:
        return None
    found, at, kept = [], 0, _Spans(tags)
    pixels = sorted(spot for level in levels for spot in ranges(level))
    for start, count in pixels:
        if start < at or kept.touch(start, start + count):
            return None
        if start > at:
            found.append((at, start))
        at = start + count
    if at < size:
        found.append((at, size))
    return found


class _Spans:
    """Parts of a file, to be asked whether another part touches any of them."""

    def __init__(self, spans: Sequence[tuple[int, int]]) -> None:
        ordered = sorted(spans)
        self._starts = [start for start, _ in ordered]
        ends = [start + count for start, count in ordered]
        self._ends = list(itertools.accumulate(ends, max))  # of all that start no later

    def touch(self, start: int, end: int) -> bool:
        before = bisect.bisect_left(self._starts, end)
        return before > 0 and self._ends[before - 1] > start


def take_skeleton(handle: BinaryIO, levels: Sequence[Any], size: int) -> Skeleton | None:
    """Return all of a file but its pixels; None if it cannot be taken apart."""
    between = gaps(levels, handle, size)
    if between is None:
        return None
    pieces = []
    for start, end in between:
        handle.seek(start)
        pieces.append((start, handle.read(end - start)))
    return size, pieces


def put_skeleton(handle: BinaryIO, skeleton: Skeleton) -> None:
    """Write a file without its pixels, as large as it was."""
    size, pieces = skeleton
    handle.truncate(size)
    for start, piece in pieces:
        handle.seek(start)
        handle.write(piece)
    handle.flush()
    handle.seek(0)


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
    """One level of an image in an open TIFF file, read and written by boxes; threads may share it.

    Parameters
    ----------
    level : tifffile.TiffPageSeries
    handle : binary file
        The file itself, open for writing too if it is written to.
    blank : bool
        Whether the file is a skeleton: segments are empty until they are written.
    """

    def __init__(self, level: Any, handle: BinaryIO, *, blank: bool = False) -> None:
        page = level.keyframe
        self.shape: tuple[int, ...] = tuple(level.shape)
        self.dtype = level.dtype.newbyteorder("=")
        self.level, self.page, self.handle, self.blank = level, page, handle, blank
        self.moved: dict[tuple[int, int], tuple[int, int]] = {}  # page, segment: offset, count
        self._lock = threading.RLock()
        self._piece, self._grid = _pieces(page)
        self._lead, self._place = self._match_axes()
        self._jpeg_tables = page.jpegtables  # read here: threads read under the lock alone

    def _match_axes(self) -> tuple[int, list[int | None]]:
        """Return how many axes count pages, and for the others which axis of a page they are.

        An image leaves out some axes of a page that are 1.
        """
        page_shape = self.page.shaped
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

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    def __getitem__(self, box: Box) -> Array:
        """Return the pixels of a box, in native byte order."""
        if self.level.dataoffset is not None:
            with self._lock:
                return np.array(self._mapped("r")[box], dtype=self.dtype)
        wanted = _sizes(box)
        out = np.empty(wanted, self.dtype)
        for page, index, inside, outside in self._overlaps(box, out):
            outside[...] = self._decoded(page, index)[inside]
        return out

    def __setitem__(self, box: Box, pixels: Array) -> None:
        """Write the pixels of a box; a segment that is covered in part is decoded and coded again."""
        if self.level.dataoffset is not None:
            with self._lock:
                mapped = self._mapped("r+")
                mapped[box] = pixels
                mapped.flush()
            return
        pixels = np.ascontiguousarray(pixels, dtype=self.dtype)
        for page, index, inside, outside in self._overlaps(box, pixels):
            with self._lock:
                full = np.zeros(self._full_shape(index), self.dtype)
                valid = self._valid(index)
                if outside.size < np.prod([part.stop for part in valid]):
                    full[valid] = self._decoded(page, index)
                full[inside] = outside
                self._store(page, index, _encoder(self.page)(full))

    def _mapped(self, mode: Any) -> Any:
        """Map pixels that are stored without gaps."""
        stored = self.dtype.newbyteorder(self.page.parent.byteorder)
        return np.memmap(self.handle, stored, mode, self.level.dataoffset, self.shape)

    def _overlaps(self, box: Box, pixels: Array) -> Iterator[tuple[int, int, Box, Array]]:
        """Yield page, segment, the part of the segment, and the part of ``pixels`` it is."""
        lead, inner = box[: self._lead], box[self._lead :]
        page_box = [slice(0, n) for n in self.page.shaped]
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

    def _full_shape(self, index: int) -> tuple[int, ...]:
        """Return the shape a segment is stored in: tiles are whole, the last strip is not."""
        if self.page.is_tiled:
            return self._piece[1:]
        row = np.unravel_index(index, self._grid[:4])[2] * self._piece[2]
        return (1, min(self._piece[2], self.page.shaped[2] - int(row)), *self._piece[3:])

    def _where(self, page: int, index: int) -> tuple[int, int]:
        """Return offset and length of a segment as it is now."""
        if (page, index) in self.moved:
            return self.moved[page, index]
        table = self.level.pages[page]
        return table.dataoffsets[index], table.databytecounts[index]

    def _valid(self, index: int) -> Box:
        """Return the part of a segment that is not padding."""
        cell = np.unravel_index(index, self._grid[:4])[1:]
        starts = [*(int(i) * p for i, p in zip(cell, self._piece[1:4], strict=True)), 0]
        ends = zip(starts, self._piece[1:], self.page.shaped[1:], strict=True)
        return tuple(slice(0, min(p, n - start)) for start, p, n in ends)

    def _decoded(self, page: int, index: int) -> Array:
        """Return a segment without padding; one that was never written is 0."""
        valid = self._valid(index)
        if self.blank and self.page.compression != 1 and (page, index) not in self.moved:
            return np.zeros([part.stop for part in valid], self.dtype)
        with self._lock:
            offset, count = self._where(page, index)
            self.handle.seek(offset)
            data = self.handle.read(count) if offset and count else None
        segment, _, _ = self.page.decode(data, index, jpegtables=self._jpeg_tables)
        if segment is None:
            return np.zeros([part.stop for part in valid], self.dtype)
        return np.asarray(segment[valid])

    def _store(self, page: int, index: int, data: bytes) -> None:
        """Write a coded segment: into its old place once, if it fits, else at the end."""
        offset, count = self._where(page, index)
        if not (offset and len(data) <= count and (page, index) not in self.moved):
            fixed = self.page.compression == 1 and offset and len(data) == count
            offset = offset if fixed else self.handle.seek(0, os.SEEK_END)
        self.handle.seek(offset)
        self.handle.write(data)
        self.moved[page, index] = offset, len(data)

    def finish(self) -> None:
        """Correct the tables of the segments that moved."""
        for page, group in itertools.groupby(sorted(self.moved), key=lambda key: key[0]):
            tags = self.level.pages[page].aspage().tags
            offsets = next(tags[code] for code in _OFFSETS if code in tags)
            counts = next(tags[code] for code in _COUNTS if code in tags)
            for _, index in group:
                for tag, value in zip((offsets, counts), self.moved[page, index], strict=True):
                    self._patch(tag, index, value)
        self.handle.flush()

    def _patch(self, tag: Any, index: int, value: int) -> None:
        """Overwrite one number of a table; struct.error if it is too small for the value."""
        format = self.page.parent.byteorder + _FORMATS[int(tag.dtype)]
        packed = struct.pack(format, value)
        self.handle.seek(tag.valueoffset + index * len(packed))
        self.handle.write(packed)


def _sizes(box: Box) -> tuple[int, ...]:
    """Return the shape of a box."""
    return tuple(part.stop - part.start for part in box)
