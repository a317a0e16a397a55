"""TIFF, by tifffile: pages and stacks, ImageJ's and OME's, any integer or float depth.

What a file says of itself is checked before any pixel is decoded.  Channels are what the file itself calls
so: samples of a pixel (axis "S") or an axis "C".  An image goes back into the skeleton of the file it came
from (``segments``), so that every tag stays as it was; only what that cannot be done for (palettes, bits,
JPEG inside, other formats) is written anew.
"""

from __future__ import annotations

import importlib.util
import logging
import math
import os
import struct
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, BinaryIO
from xml.etree import ElementTree

import numpy as np
import tifffile

from .base import FileError, OpenFile, check_declared_size, check_scans
from .boxes import How, build, how_reduced
from .ifd import add_software, check_directories
from .images import Array, Details, ImageFile, channels_of, find_ramp, native
from .regions import Source, reserve
from .segments import (
    Segments,
    Skeleton,
    can_rewrite,
    count_segments,
    put_skeleton,
    segment_bytes,
    take_skeleton,
    write_level,
)
from .unpacking import check_unpacked

logging.getLogger("tifffile").addHandler(logging.NullHandler())  # its complaints become errors

_UNASSOCIATED = 2  # ExtraSamples: alpha that colour was not multiplied with
_ALPHA = (1, _UNASSOCIATED)
_PHOTOMETRIC = {0: "miniswhite", 1: "minisblack", 2: "rgb", 3: "palette", 5: "separated", 6: "rgb"}
# Tags that are plain text, kept when a file is written anew.
_TEXTS = (269, 271, 272, 285, 306, 315, 316, 33432)
_INCH, _CENTIMETRE = 2, 3
_LARGE = 2**28  # bytes of pixels from which a new file is tiled
_JPEG = (6, 7)  # its two compression tags
_PLANAR = {1: "contig", 2: "separate"}  # samples of a pixel together, or planes of them
_FEW_PLANES, _PLANES_A_PAGE = 1000, 100
_SPARE = 2**16  # bytes that a segment may be longer than its pixels
_OF_PLANES = ("PlaneCount", "NumPlanes", "IFD", "SamplesPerPixel")
_HAS_CODECS = importlib.util.find_spec("imagecodecs") is not None  # its decoders know a limit
_PACKED = {8: "zlib", 32946: "zlib", 34925: "lzma"}


@dataclass(frozen=True)
class Layout:
    """How the samples of an image are stored."""

    axes: str
    photometric: str
    planarconfig: str | None = None  # "contig" or "separate" where pixels have samples
    extrasamples: tuple[int, ...] = ()
    inverted: bool = False  # white was 0
    pyramid: How = "mean"  # how the smaller copies were made
    texts: Mapping[int, str] = field(default_factory=dict)  # by their tags
    # Of the first image: all of the file but pixels, if that can be; or what takes it from the open file.
    skeleton: Skeleton | Callable[[], Skeleton | None] | None = None


def read(file: OpenFile) -> list[ImageFile]:
    """Read the images and stacks in the file."""
    found = checked_series(tiff_of(file))
    first, *others = [_read_series(series, file) for series in found]
    details = [image.details for image in (first, *others)]
    if not any(each.bilevel or each.from_palette for each in details):  # pixels are as stored
        skeleton = _skeleton(file.handle, found, file.size)
        if skeleton is not None:
            size, pieces = skeleton
            own = replace(first.details.own, skeleton=(size, [*pieces]))
            first = replace(first, details=replace(first.details, own=own))
    return [first, *others]


def _read_series(series: Any, file: OpenFile) -> ImageFile:
    """Read one image or stack."""
    page = series.keyframe
    photometric = _photometric(page)
    pixels, axes = _decode(series, file), series.axes
    bilevel = pixels.dtype == bool
    ramp, from_palette = None, photometric == "palette"
    if from_palette:
        colours = _palette(pixels, page)
        ramp = find_ramp(pixels, colours)
        if ramp is None:
            pixels, axes, photometric = colours[pixels], axes + "S", "rgb"
    if bilevel and pixels.dtype == bool:
        pixels = pixels.astype(np.uint8) * np.uint8(255)
    inverted = photometric == "miniswhite" and pixels.dtype.kind == "u"
    if inverted:
        pixels, photometric = ~pixels, "minisblack"  # max - value: white is high everywhere
    details = _details(series, Layout(axes, photometric, inverted=inverted))
    numbers = from_palette and ramp is None
    details = replace(details, bilevel=bilevel, ramp=ramp, from_palette=numbers)
    return _split(native(pixels), details, file.format)


def _details(series: Any, layout: Layout) -> Details:
    """Return what is known of an image beside its pixels, with all of its layout."""
    page, how = series.keyframe, layout.pyramid
    if len(series.levels) > 1:
        full, small = (Segments(level, page.parent.filehandle) for level in series.levels[:2])
        how = how_reduced(full, small)
    return Details(
        icc=bytes(page.iccprofile) if page.iccprofile else None,
        xmp=_tag(page, 700, bytes),
        dpi=_resolution(page),
        inks=layout.photometric == "separated",
        own=replace(
            layout,
            planarconfig=_PLANAR[int(page.planarconfig)] if "S" in layout.axes else None,
            extrasamples=tuple(int(kind) for kind in page.extrasamples),
            pyramid=how,
            texts=_texts(page),
        ),
    )


def _tag(page: Any, code: int, kind: type) -> Any:
    """Return the value of a tag if it is of a kind, else None."""
    value = page.tags[code].value if code in page.tags else None
    return value if isinstance(value, kind) else None


def _resolution(page: Any) -> tuple[float, float] | None:
    """Return the resolution in dots per inch, if it is said."""
    unit = {_INCH: 1.0, _CENTIMETRE: 2.54}.get(int(page.resolutionunit or 0))
    with suppress(Exception):
        if unit and 282 in page.tags:
            across, down = (page.tags[tag].value for tag in (282, 283))
            return unit * across[0] / across[1], unit * down[0] / down[1]
    return None


def _texts(page: Any) -> dict[int, str]:
    """Return texts by their tags."""
    found = {code: text for code in _TEXTS if (text := _tag(page, code, str)) is not None}
    if page.description and not (page.is_shaped or page.is_imagej or page.is_ome):
        found[270] = page.description  # the others would speak of the old layout
    return found


def _name_of(value: Any) -> str:
    """Return the name of what a tag says, or its number if it has none."""
    return str(getattr(value, "name", value))


def _photometric(page: Any) -> str:
    """Return what the pixels mean; a JPEG inside is decoded to RGB from whatever it was."""
    stored = int(page.photometric)
    if stored not in _PHOTOMETRIC or (stored == 6 and int(page.compression) not in _JPEG):
        raise FileError(f"has {_name_of(page.photometric)} pixels; save it as grey or RGB")
    if stored == 2 and page.samplesperpixel > 4:
        raise FileError(f"has RGB and {page.samplesperpixel - 3} more samples a pixel; save 3 or 4")
    return _PHOTOMETRIC[stored]


def _decode(series: Any, file: OpenFile) -> Array:
    """Return the pixels; what tifffile has no decoder for, Pillow may have."""
    try:
        return np.asarray(series.asarray())
    except ValueError as error:
        if "imagecodecs" not in str(error):
            raise
        pixels = _decode_with_pillow(series, file)
        if pixels is None:
            name = _name_of(series.keyframe.compression)
            raise FileError(
                f"is compressed with {name}; pip install imagecodecs, or save it uncompressed"
            ) from error
        return pixels


def _decode_with_pillow(series: Any, file: OpenFile) -> Array | None:
    """Read LZW, JPEG and the like where Pillow keeps every bit, else return None."""
    from PIL import Image, ImageSequence, UnidentifiedImageError

    page = series.keyframe
    as_stored = page.photometric in (1, 2, 3, 6) and 1 not in page.extrasamples
    file.handle.seek(0)
    try:
        with Image.open(file.handle, formats=["TIFF"]) as opened:
            if not as_stored or getattr(opened, "n_frames", 1) != len(series.pages):
                return None
            frames = [np.array(frame) for frame in ImageSequence.Iterator(opened)]
    except UnidentifiedImageError:  # pixels of a kind it does not know
        return None
    if any(frame.shape != page.shape or frame.dtype != page.dtype for frame in frames):
        return None
    return np.stack(frames).reshape(series.shape)


def _palette(numbers: Array, page: Any) -> Array:
    """Return the colours (n, 3), 8-bit, that numbers stand for."""
    if page.colormap is None or int(numbers.max()) >= page.colormap.shape[1]:
        raise FileError("lacks the palette its pixels refer to")
    return np.ascontiguousarray((page.colormap >> 8).astype(np.uint8).T)  # 16-bit in the file


def _split(pixels: Array, details: Details, format: str) -> ImageFile:
    """Find the channel axis and take alpha off."""
    axes, extra = details.own.axes, details.own.extrasamples
    if "S" not in axes:
        return ImageFile(pixels, channels_of(axes), None, format, details, axes)
    axis = axes.index("S")
    n_samples = pixels.shape[axis]
    is_rgb = details.own.photometric == "rgb"
    if not (is_rgb and n_samples == 4) and not (len(extra) == 1 and extra[0] in _ALPHA):
        return ImageFile(pixels, axis, None, format, details, axes)
    alpha = np.take(pixels, -1, axis)
    colour = np.take(pixels, range(n_samples - 1), axis)
    if n_samples == 2:
        grey = axes.replace("S", "")
        return ImageFile(colour.squeeze(axis), channels_of(grey), alpha, format, details, grey)
    return ImageFile(colour, axis, alpha, format, details, axes)


def write(handle: BinaryIO, images: Sequence[ImageFile], format: str, note: str) -> None:
    """Write the images into the skeleton of their file, or else anew; then the note."""
    if not _rewrite(handle, images):
        handle.seek(0)
        handle.truncate(0)
        large = sum(image.pixels.nbytes for image in images) > 2**32 - 2**25
        with tifffile.TiffWriter(handle, bigtiff=large, ome=False, imagej=False) as writer:
            for image in images:
                _write_anew(writer, image)
    if note:
        with suppress(struct.error):  # a file of 4 GB has no room for it
            add_software(handle, note)


def _rewrite(handle: BinaryIO, images: Sequence[ImageFile]) -> bool:
    """Put pixels into the skeleton of the file they came from; return whether that could be done."""
    layouts = [image.details.own for image in images]
    skeleton = layouts[0].skeleton if isinstance(layouts[0], Layout) else None
    skeleton = skeleton() if callable(skeleton) else skeleton
    if skeleton is None:
        return False
    put_skeleton(handle, skeleton)
    with open_tiff(handle) as tiff:
        found = whole_series(tiff)
        whole = [_with_alpha(image) for image in images]
        now = [(series.shape, series.dtype.newbyteorder("=")) for series in found]
        if now != [(pixels.shape, pixels.dtype) for pixels in whole]:
            return False
        for series, image, layout, pixels in zip(found, images, layouts, whole, strict=True):
            if image.ramp is not None:
                pixels = image.ramp.hold(pixels)
            if layout.inverted:
                pixels = ~pixels
            for level in series.levels:
                if level is not series:
                    smaller = _array_beside(handle, level.shape, pixels.dtype)
                    build(pixels, smaller, layout.pyramid)
                    pixels = smaller
                try:
                    write_level(level, handle, pixels)
                except struct.error:  # beyond 4 GB
                    return False
    return True


def _array_beside(handle: BinaryIO, shape: Sequence[int], dtype: np.dtype[Any]) -> Any:
    """Return an array on disk, in a file without a name beside that of the handle."""
    with tempfile.TemporaryFile(dir=os.path.dirname(handle.name)) as file:
        file.truncate(math.prod(shape) * dtype.itemsize)
        reserve(file)
        return np.memmap(file, dtype, "r+", shape=tuple(shape))


def _with_alpha(image: ImageFile) -> Array:
    """Return the samples of a TIFF image, alpha among them."""
    if image.alpha is None:
        return image.pixels
    axes = _layout(image).axes
    axis = axes.index("S")
    colour = image.pixels
    if colour.ndim < len(axes):
        colour = np.expand_dims(colour, axis)
    return np.concatenate([colour, np.expand_dims(image.alpha, axis)], axis)


def _write_anew(writer: tifffile.TiffWriter, image: ImageFile) -> None:
    """Write one image in the layout it came in or else a plain one."""
    layout, details, ramp = _layout(image), image.details, image.ramp
    texts = layout.texts
    more = [(code, 2, len(text) + 1, text, True) for code, text in texts.items()]
    pixels, colours = np.ascontiguousarray(_with_alpha(image)), None
    # Its palette as a TIFF has it: 16-bit, a colour for each number there can be.
    if ramp is not None:
        pixels = ramp.hold(pixels)
        missing = 2 ** (8 * pixels.dtype.itemsize) - len(ramp.colours)
        colours = np.pad(
            ramp.colours.astype(np.uint16) * 257, ((0, missing), (0, 0)), mode="edge"
        ).T
    as_bits = image.is_bilevel and image.alpha is None and pixels.dtype == np.uint8
    options: dict[str, Any] = {
        "photometric": layout.photometric if ramp is None else "palette", "colormap": colours,
        "planarconfig": layout.planarconfig, "extrasamples": layout.extrasamples or None,
        "compression": "zlib" if as_bits else None,
        "tile": (256, 256) if pixels.nbytes > _LARGE else None,
        "metadata": {"axes": layout.axes} if 270 not in texts else None,
        "description": texts.get(270), "datetime": texts.get(306), "software": False,
        "iccprofile": details.icc, "extratags": [tag for tag in more if tag[0] not in (270, 306)],
    }  # fmt: skip
    if details.xmp:
        options["extratags"].append((700, 1, len(details.xmp), details.xmp, True))
    if details.dpi:
        options |= {"resolution": details.dpi, "resolutionunit": _INCH}
    writer.write(pixels > 127 if as_bits else pixels, **options)


def _layout(image: ImageFile) -> Layout:
    """Return how samples are stored: as they came from a TIFF, else plainly.

    RGB (or a JPEG's CMYK) at the end are samples of a pixel; other channels are an axis "C".
    """
    if isinstance(image.details.own, Layout):
        return image.details.own
    axes, photometric = image.axes.replace("S", "C"), "minisblack"
    if axes.endswith("C") and (image.n_channels == 3 or image.is_cmyk):
        photometric = "separated" if image.is_cmyk else "rgb"
        axes = axes[:-1] + "S"
    if image.alpha is not None and "S" not in axes:
        axes = axes.replace("C", "") + "S"
    extra = () if image.alpha is None else (_UNASSOCIATED,)
    return Layout(axes, photometric, "contig" if "S" in axes else None, extra)


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
    planes = 0
    for said in (element.attrib for element in elements):
        product = math.prod(int(said.get(f"Size{axis}", 1)) for axis in "CZT")
        planes = max(planes, product, *(int(said.get(name, 0)) for name in _OF_PLANES))
    if len(files) < 2 and planes > max(_FEW_PLANES, _PLANES_A_PAGE * n_pages):
        raise FileError(f"claims {planes} planes and has {n_pages} pages: damaged")
    if len(files) > 1 or (files and tiff.series[0].kind != "ome"):
        raise FileError("is one of several files of an image; save the image as one file")


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
        if int(level.keyframe.planarconfig) not in _PLANAR:
            raise FileError("says nothing known of how its samples are stored: damaged")
        check_declared_size(level.nbytes, size, piece=segment_bytes(level.keyframe), whole=False)
        _check_pages(level, size)
    check_declared_size(sum(level.nbytes for level in levels), size, whole=whole)
    for level in levels:
        _check_segments(level, handle)


def whole_series(tiff: tifffile.TiffFile) -> list[Any]:
    """Return the images, leaving out thumbnails."""
    whole = [series for series in tiff.series if series.size and not series.keyframe.is_reduced]
    if not whole:
        raise FileError("holds no image")
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
    kind = "" if _HAS_CODECS else _PACKED.get(compression, "")
    if not kind and compression not in _JPEG:
        return
    limit = 2 * segment_bytes(level.keyframe) + _SPARE
    for page in level.pages:
        for start, count in zip(page.dataoffsets, page.databytecounts, strict=True):
            handle.seek(start)
            data = handle.read(count)
            if kind:
                check_unpacked(kind, data, limit, "segment")
            else:
                check_scans(data)


def open_source(file: OpenFile) -> Source:
    """Return what reads the one image of a file box by box."""
    found = checked_series(tiff_of(file), whole=False)
    if len(found) > 1:
        raise FileError(f"holds {len(found)} images; save each as a file of its own")
    series, page = found[0], found[0].keyframe
    if page.photometric not in (1, 2, 5) or page.dtype.kind not in "uif":
        raise FileError(f"has {_name_of(page.photometric)} pixels; save it as grey or RGB")
    skeleton = partial(_skeleton, file.handle, found, file.size)
    details = _details(series, Layout(series.axes, _photometric(page), skeleton=skeleton))
    extra = details.own.extrasamples
    has_alpha = "S" in series.axes and len(extra) == 1 and extra[0] in _ALPHA
    return Source(file, Segments(series, file.handle), series.axes, details, has_alpha)


def _skeleton(handle: BinaryIO, found: Sequence[Any], size: int) -> Skeleton | None:
    """Return all of a file but its pixels; None if other pixels cannot be put into it."""
    levels = [level for series in found for level in series.levels]
    return take_skeleton(handle, levels, size) if all(map(can_rewrite, levels)) else None
