"""TIFF files are opened here: what they say of themselves is checked before any pixel is decoded."""

from __future__ import annotations

import importlib.util
import lzma
import math
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO
from xml.etree import ElementTree

import tifffile

from .base import FileError, OpenFile
from .ifd import check_directories
from .limits import check_declared_size, check_scans, check_stream
from .segments import count_segments, segment_bytes

JPEG = (6, 7)  # its two compression tags
PLANAR = {1: "contig", 2: "separate"}  # samples of a pixel together, or planes of them
_FEW_PLANES, _PLANES_A_PAGE = 1000, 100
_SPARE = 2**16  # bytes that a segment may be longer than its pixels
_OF_PLANES = ("PlaneCount", "NumPlanes", "IFD", "SamplesPerPixel")
_HAS_CODECS = importlib.util.find_spec("imagecodecs") is not None  # its decoders know a limit
_UNPACKERS: dict[int, Any] = {
    8: zlib.decompressobj, 32946: zlib.decompressobj, 34925: lzma.LZMADecompressor,
}  # fmt: skip


def tiff_of(file: OpenFile) -> tifffile.TiffFile:
    """Return what tifffile makes of an open file; it is made once."""
    if file.parsed is None:
        file.parsed = open_tiff(file.handle)
    parsed: tifffile.TiffFile = file.parsed
    return parsed


def open_tiff(handle: BinaryIO) -> tifffile.TiffFile:
    """Open a file whose directories come to an end, without any other file that it may name."""
    n_pages = check_directories(handle)
    handle.seek(0)
    alone: Any = {"_multifile": False, "is_mmstack": False, "is_ndtiff": False}
    tiff = tifffile.TiffFile(handle, **alone)
    try:
        _check_ome(tiff, n_pages)
    except BaseException:
        tiff.close()
        raise
    return tiff


def _check_ome(tiff: tifffile.TiffFile, n_pages: int) -> None:
    """Refuse OME metadata that speak of other files, or of more planes than there can be."""
    if not tiff.is_ome:
        return
    try:
        elements = list(ElementTree.fromstring(tiff.ome_metadata or "").iter())
    except ElementTree.ParseError:
        return  # nor can tifffile, which takes the pages as they are
    files = {e.attrib["FileName"] for e in elements if "FileName" in e.attrib}
    planes = max((_claimed_planes(element.attrib) for element in elements), default=0)
    if len(files) < 2 and planes > max(_FEW_PLANES, _PLANES_A_PAGE * n_pages):
        raise FileError(f"claims {planes} planes and has {n_pages} pages: damaged")
    if len(files) > 1 or (files and tiff.series[0].kind != "ome"):
        raise FileError("is one of several files of an image; save the image as one file")


def _claimed_planes(attributes: Mapping[str, str]) -> int:
    """Return how many planes an element of OME-XML speaks of."""
    sizes = [int(attributes.get(f"Size{axis}", 1)) for axis in "CZT"]
    named = [int(attributes.get(name, 0)) for name in _OF_PLANES]
    return max(math.prod(sizes), *named)


def checked_series(tiff: tifffile.TiffFile, *, whole: bool = True) -> list[Any]:
    """Return the images of a file, all of whose claims are possible."""
    found = whole_series(tiff)
    levels = [level for series in found for level in series.levels]
    check_levels(levels, tiff.filehandle, whole=whole)
    return found


def check_levels(levels: Sequence[Any], handle: Any, *, whole: bool = True) -> None:
    """Refuse images of a file whose claims are not possible."""
    size = handle.size
    for level in levels:
        if int(level.keyframe.planarconfig) not in PLANAR:
            raise FileError("says nothing known of how its samples are stored: damaged")
        check_declared_size(level.nbytes, size, piece=segment_bytes(level.keyframe), whole=False)
        _check_pages(level, size)
    check_declared_size(sum(level.nbytes for level in levels), size, whole=whole)
    for level in levels:
        _check_segments(level, handle)


def whole_series(tiff: tifffile.TiffFile) -> list[Any]:
    """Return the images, leaving out thumbnails; what is spread over files is an error."""
    whole = [series for series in tiff.series if series.size and not series.keyframe.is_reduced]
    if not whole:
        raise FileError("holds no image")
    for series in whole:
        if any(page is not None and page.parent is not tiff for page in series.pages):
            raise FileError("is one of several files of an image; save the image as one file")
    return whole


def _check_pages(level: Any, file_size: int) -> None:
    """Refuse a file that ends before its pixels do."""
    if level.dataoffset is not None and level.dataoffset + level.nbytes > file_size:
        raise FileError("is truncated: it ends before its pixels do")
    n_segments = count_segments(level.keyframe)
    for page in level.pages:
        if page is None:
            raise FileError("lacks some of its pages")
        if level.dataoffset is None and len(page.dataoffsets) < n_segments:
            raise FileError("lacks some of the places of its pixels: damaged")
        for start, count in zip(page.dataoffsets, page.databytecounts, strict=True):
            if start + count > file_size:
                raise FileError("is truncated: it ends before its pixels do")


def _check_segments(level: Any, handle: Any) -> None:
    """Refuse segments that their decoder would paint over and over, or unpack without end."""
    compression = int(level.keyframe.compression)
    unpacker = None if _HAS_CODECS else _UNPACKERS.get(compression)
    if unpacker is None and compression not in JPEG:
        return
    limit = 2 * segment_bytes(level.keyframe) + _SPARE
    for page in level.pages:
        for start, count in zip(page.dataoffsets, page.databytecounts, strict=True):
            handle.seek(start)
            data = handle.read(count)
            if unpacker is None:
                check_scans(data)
            else:
                check_stream(unpacker, data, limit)
