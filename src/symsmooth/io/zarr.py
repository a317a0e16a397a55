"""Zarr (versions 2 and 3) and OME-Zarr: folders of chunks with metadata beside them.

A group of OME's is one image, its largest level, with the smaller ones made again; any other group is
all the arrays in it.  An image goes back into a copy of the store it came from: metadata, labels and
tables as they were, only the chunks of the image are new.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import zarr

from .base import (
    FileError,
    OpenFile,
    Survey,
    amount,
    check_declared_size,
    check_pieces,
    name_inside,
    survey,
)
from .boxes import How, build, how_reduced
from .images import Details, ImageFile, channels_of, guess_channel_axis, native, plain_axes
from .regions import Source
from .unpacking import bound_unpacking

_METADATA = ("zarr.json", ".zarray", ".zattrs", ".zgroup", ".zmetadata")
_NAMES = {"x": "X", "y": "Y", "z": "Z", "t": "T", "c": "C", "time": "T", "channel": "C"}
_NAMES |= {"band": "C", "lon": "X", "lat": "Y", "longitude": "X", "latitude": "Y", "depth": "Z"}
_OLD_OME = "tczyx"  # the axes of OME-Zarr before it named them
_CHUNK = 2**20  # pixels in the chunks of a new array
_SPARE = 2**16  # bytes that a coded chunk may be longer than its pixels


class StoredImage(NamedTuple):
    """An image of a store."""

    names: list[str]  # of its levels, the largest first
    axes: str
    levels: list[Any]  # its arrays


@dataclass(frozen=True)
class Place:
    """Where an image lies in its store, and how its smaller levels were made."""

    store: Path
    levels: list[str]
    pyramid: How
    chunks: tuple[int, ...]  # of the largest level, or its shards


def read(file: OpenFile) -> list[ImageFile]:
    """Read every image of the store."""
    images = []
    for found in find_images(file):
        pixels, axes = native(np.asarray(found.levels[0][...])), found.axes
        details = _details(file, found)
        images.append(ImageFile(pixels, channels_of(axes), None, file.format, details, axes))
    if not images:
        raise FileError("holds no array of two or more dimensions")
    return images


def find_images(file: OpenFile, *, whole: bool = True) -> list[StoredImage]:
    """Return the images of a store, which is gone through once.

    All that the store claims is checked here: what follows may trust it.
    """
    if file.parsed is None:
        files, images = survey(file.path), []
        root = zarr.open(str(file.path), mode="r", use_consolidated=False)
        for names, axes in _walk(file.path, root, ""):
            levels = [open_array(file.path, name, "r") for name in names]
            _check_levels(levels, names, files)
            images.append(StoredImage(names, axes, levels))
        file.parsed = images, amount(files, "")[1]
    found: list[StoredImage]
    found, stored = file.parsed
    check_declared_size(sum(int(i.levels[0].nbytes) for i in found), stored, whole=whole)
    return found


def _walk(path: Path, node: Any, name: str) -> Iterator[tuple[list[str], str]]:
    """Yield what is at a name: an array, an image of OME's, else the arrays and groups in a group."""
    if isinstance(node, zarr.Array):
        if not name or (node.ndim >= 2 and node.dtype.kind in "uif"):
            yield [name], _axes(node, node.attrs, None)
        return
    ome = node.attrs.get("ome", node.attrs)
    scales = ome.get("multiscales") if isinstance(ome, Mapping) else None
    prefix = f"{name}/" if name else ""
    if scales:
        here = path / name
        names = [prefix + name_inside(here, level["path"]) for level in scales[0]["datasets"]]
        if not names or len(set(names)) < len(names):
            raise FileError("names one level twice, or none: damaged")
        largest = open_array(path, names[0], "r")
        yield names, _axes(largest, {}, scales[0].get("axes") or _OLD_OME[-largest.ndim :])
        return
    for below, member in sorted(node.members()):
        if below != "labels" or isinstance(member, zarr.Array):
            yield from _walk(path, member, prefix + below)


def _axes(array: Any, attributes: Mapping[str, Any], named: Any) -> str:
    """Return a letter for each axis, from OME's names, Zarr's or xarray's; else a guess."""
    names = named or getattr(array.metadata, "dimension_names", None)
    names = names or attributes.get("_ARRAY_DIMENSIONS")
    if not names or not any(names):
        return plain_axes(array.ndim, guess_channel_axis(array.shape))
    words = [n.get("name", "") if isinstance(n, Mapping) else str(n or "") for n in names]
    axes = "".join(_NAMES.get(word.lower(), "Q") for word in words)
    if len(axes) != array.ndim:
        raise FileError(f"names {len(axes)} axes of {array.ndim}")
    if "X" in axes and "Y" in axes:
        return axes
    return plain_axes(array.ndim, channels_of(axes))


def open_array(path: Path, name: str, mode: Any) -> Any:
    """Open one array of a store, by its name in it; its chunks unpack to what they claim at most."""
    place = path / name_inside(path, name) if name else path
    array = zarr.open_array(str(place), mode=mode)
    bound_unpacking(array._async_array.codec_pipeline, 2 * _piece(array) + _SPARE)
    return array


def _piece(array: Any) -> int:
    """Return the bytes of a chunk, or of the shard that holds several."""
    return math.prod(map(int, (array.dtype.itemsize, *(array.shards or array.chunks))))


def _check_levels(levels: Sequence[Any], names: Sequence[str], files: Survey) -> None:
    """Refuse levels of an image that are not what they claim."""
    for array, name, large in zip(levels, names, [levels[0], *levels], strict=False):
        _check_array(array, *amount(files, name))
        smaller = all(a <= b for a, b in zip(array.shape, large.shape, strict=False))
        if array.ndim != large.ndim or array.dtype != large.dtype or not smaller:
            raise FileError(f"has a level {name} that is not a smaller copy of the one above it")


def _check_array(array: Any, files: int, stored: int) -> None:
    """Refuse an array that is not what it claims: chunks or sizes no such store can have."""
    if array.dtype.kind not in "uif":
        raise FileError(f"holds {array.dtype} values; save it as integers or floats")
    if 0 in array.shape:
        raise FileError(f"holds no pixel: its shape is {array.shape}")
    coders = getattr(array.metadata, "filters", None) or ()  # of version 2
    if any(getattr(coder, "codec_id", "") == "pickle" for coder in coders):
        raise FileError("is coded with pickle, which can run any code; save it with another filter")
    check_declared_size(int(array.nbytes), stored, piece=_piece(array), whole=False)
    check_pieces(int(array.nchunks), files, stored, sharded=array.shards is not None)


def _details(file: OpenFile, found: StoredImage) -> Details:
    """Return where an image lies, and how its smaller levels were made."""
    how: How = how_reduced(*found.levels[:2]) if len(found.levels) > 1 else "mean"
    largest = found.levels[0]
    chunks = tuple(largest.shards or largest.chunks)
    return Details(own=Place(file.path.resolve(), found.names, how, chunks))


def write(folder: Path, images: Sequence[ImageFile], format: str, note: str) -> None:
    """Write the images into a copy of the store they came from, or one into a store of its own."""
    prepare(folder, *images)
    for image in images:
        open_array(folder, first_level(image.details), "r+")[...] = image.pixels
        complete(folder, image.details, note if image is images[-1] else "")


def prepare(folder: Path, *images: ImageFile) -> None:
    """Make a store for pixels: a copy of the one they come from without its chunks, or a new one."""
    places, first = [image.details.own for image in images], images[0]
    if isinstance(places[0], Place):
        copy_store(places[0].store, folder, [name for place in places for name in place.levels])
        return
    zarr.create_array(
        str(folder),
        shape=first.pixels.shape,
        chunks=chunks_like(first),
        dtype=first.pixels.dtype,
        dimension_names=list(first.axes.replace("S", "C").lower()),
        overwrite=True,
    )


def first_level(details: Details) -> str:
    """Return the name of the array that holds the pixels of an image."""
    return details.own.levels[0] if isinstance(details.own, Place) else ""


def complete(folder: Path, details: Details, note: str) -> None:
    """Make the smaller levels, each from the one above, once all pixels are there; then the note."""
    if isinstance(details.own, Place):
        for large, small in itertools.pairwise(details.own.levels):
            how = details.own.pyramid
            build(open_array(folder, large, "r"), open_array(folder, small, "r+"), how)
    if note:
        add_note(folder, note)


def chunks_like(image: ImageFile) -> tuple[int, ...]:
    """Return what is written in one piece: a chunk, or of a store that has them a shard of several."""
    if isinstance(image.details.own, Place):
        return image.details.own.chunks
    spatial = sum(letter in "ZYX" for letter in image.axes) or 1
    side = max(int(_CHUNK ** (1 / spatial)), 1)
    return tuple(
        min(n, side) if letter in "ZYX" else (n if letter in "CS" else 1)
        for n, letter in zip(image.pixels.shape, image.axes, strict=True)
    )


def copy_store(source: Path, target: Path, levels: Sequence[str]) -> None:
    """Copy a store but for the chunks of some arrays."""
    if not source.is_dir():
        raise FileError(f"the store it came from, {source}, is gone")
    if target.resolve().is_relative_to(source.resolve()):  # it would be copied into itself
        raise FileError(f"lies inside the store it is made from, {source}; write it elsewhere")
    survey(source)  # no link in it leads out, so nothing from outside is copied
    emptied = {os.path.normpath(source / name) for name in levels}
    for at, folders, found in os.walk(source):
        here = target / os.path.relpath(at, source)
        here.mkdir(parents=True, exist_ok=True)
        in_array = os.path.normpath(at) in emptied
        if in_array:
            folders.clear()
        for name in found:
            if not in_array or name in _METADATA:
                shutil.copyfile(os.path.join(at, name), here / name)


def add_note(folder: Path, note: str) -> None:
    """Add what was done to the attribute "symsmooth" of the store."""
    path = folder / "zarr.json"
    if path.exists():
        metadata = json.loads(path.read_text())
        attributes = metadata["attributes"] = metadata.get("attributes") or {}
    else:
        path = folder / ".zattrs"
        metadata = attributes = (json.loads(path.read_text()) if path.exists() else {}) or {}
    said = attributes.get("symsmooth", [])
    attributes["symsmooth"] = [*(said if isinstance(said, list) else [said]), note]
    path.write_text(json.dumps(metadata, indent=2))


def open_source(file: OpenFile) -> Source:
    """Return what reads the one image of a store box by box."""
    found = find_images(file, whole=False)
    if len(found) != 1:
        raise FileError(f"holds {len(found)} images; give one of them, as {file.path}/NAME")
    return Source(file, found[0].levels[0], found[0].axes, _details(file, found[0]))
