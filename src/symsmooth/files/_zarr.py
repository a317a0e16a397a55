"""Zarr (versions 2 and 3) and OME-Zarr: folders of chunks with metadata beside them.

A group of OME's is one image, its largest level, with the smaller ones made again; any other group is
all the arrays in it.  An image goes back into a copy of the store it came from: metadata, labels and
tables as they were, only the chunks of the image are new.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import zarr

from ._base import FileError, ImageFile, channels_of, check_claim, native, plain_axes, quietly
from ._npy import guess_channel_axis
from ._pyramid import build, how_reduced

_METADATA = ("zarr.json", ".zarray", ".zattrs", ".zgroup", ".zmetadata")
_NAMES = {"x": "X", "y": "Y", "z": "Z", "t": "T", "c": "C", "time": "T", "channel": "C"}
_NAMES |= {"band": "C", "lon": "X", "lat": "Y", "longitude": "X", "latitude": "Y", "depth": "Z"}
_OLD_OME = "tczyx"  # the axes of OME-Zarr before it named them
_LARGEST_CHUNK = 2**32
_CHUNK = 2**20  # pixels in the chunks of a new array
_TOO_MANY = 10_000  # chunks from which some share of them must be there


def read(path: Path, format: str) -> list[ImageFile]:
    """Read every image of the store."""
    with quietly():
        images = [_read_node(path, *node, format) for node in find_images(path)]
    if not images:
        raise FileError("holds no array of two or more dimensions")
    return images


def find_images(path: Path) -> list[tuple[list[str], str]]:
    """Return the levels (names of arrays, largest first) and the axes of each image."""
    root = zarr.open(str(path), mode="r")
    if isinstance(root, zarr.Array):
        return [([""], _axes(root, root.attrs, None))]
    return list(_walk(root, ""))


def _walk(group: Any, prefix: str) -> Iterator[tuple[list[str], str]]:
    """Go through a group: an image of OME's, else the arrays and groups in it."""
    ome = group.attrs.get("ome", group.attrs)
    scales = ome.get("multiscales") if isinstance(ome, Mapping) else None
    if scales:
        names = [prefix + str(level["path"]) for level in scales[0]["datasets"]]
        largest = group[str(scales[0]["datasets"][0]["path"])]
        yield names, _axes(largest, {}, scales[0].get("axes") or _OLD_OME[-largest.ndim :])
        return
    for name, member in sorted(group.members()):
        if isinstance(member, zarr.Group):
            if name != "labels":
                yield from _walk(member, f"{prefix}{name}/")
        elif member.ndim >= 2 and member.dtype.kind in "uif":
            yield [prefix + name], _axes(member, member.attrs, None)


def _axes(array: Any, attributes: Mapping[str, Any], told: Any) -> str:
    """Return a letter for each axis, from OME's names, Zarr's or xarray's; else a guess."""
    names = told or getattr(array.metadata, "dimension_names", None)
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
    """Open one array of a store, by its name in it."""
    return zarr.open_array(str(path / name) if name else str(path), mode=mode)


def check_array(array: Any, folder: Path) -> None:
    """Refuse an array that is not what it claims: chunks or sizes no such store can have."""
    if array.dtype.kind not in "uif":
        raise FileError(f"holds {array.dtype} values; save it as integers or floats")
    if 0 in array.shape:
        raise FileError(f"holds no pixel: its shape is {array.shape}")
    chunk = array.dtype.itemsize
    for n in array.chunks:
        chunk *= int(n)
    if chunk > _LARGEST_CHUNK:
        raise FileError(f"has chunks of {chunk} bytes; store it in smaller ones")
    files = sum(len(found) for _, _, found in os.walk(folder))
    if array.shards is None and array.nchunks > max(_TOO_MANY, 100 * files):
        raise FileError(f"claims {array.nchunks} chunks and has {files} files: damaged")


def _read_node(path: Path, names: list[str], axes: str, format: str) -> ImageFile:
    """Read one image: its largest level."""
    array = open_array(path, names[0], "r")
    folder = path / names[0]
    check_array(array, folder)
    sizes = (
        os.path.getsize(os.path.join(at, f)) for at, _, found in os.walk(folder) for f in found
    )
    check_claim(array.nbytes, sum(sizes))
    pixels = native(np.asarray(array[...]))
    details: dict[str, Any] = {"store": str(path.resolve()), "levels": names}
    details["pyramid"] = pyramid(path, names)
    return ImageFile(pixels, channels_of(axes), None, format, details, axes)


def pyramid(path: Path, names: Sequence[str]) -> Any:
    """Tell how the smaller levels were made."""
    if len(names) < 2:
        return "mean"
    large, small = (open_array(path, name, "r") for name in names[:2])
    check_array(small, path / names[1])
    return how_reduced(large, small)


def refuse(image: ImageFile, format: str) -> None:
    """Raise FileError if Zarr cannot hold the image."""
    if image.alpha is not None:
        raise FileError("Zarr holds no alpha channel; write to .png, .webp or .tif")


def write(folder: Path, images: Sequence[ImageFile], format: str, note: str) -> None:
    """Write the images into a copy of the store they came from, or one into a store of its own."""
    first = images[0]
    with quietly():
        if first.format != "ZARR":
            array = create(folder, first.pixels.shape, first.pixels.dtype, first.axes)
            array[...] = first.pixels
        else:
            levels = [name for image in images for name in image.details["levels"]]
            copy_store(Path(first.details["store"]), folder, levels)
            for image in images:
                fill(folder, image)
        if note:
            add_note(folder, note)


def fill(folder: Path, image: ImageFile) -> None:
    """Write the pixels of an image, and its smaller levels."""
    names = image.details["levels"]
    open_array(folder, names[0], "r+")[...] = image.pixels
    build_levels(folder, names, image.details["pyramid"])


def build_levels(folder: Path, names: Sequence[str], how: Any) -> None:
    """Make the smaller levels, each from the one above."""
    for large, small in itertools.pairwise(names):
        build(open_array(folder, large, "r"), open_array(folder, small, "r+"), how)


def new_chunks(shape: Sequence[int], axes: str) -> tuple[int, ...]:
    """Return the chunks of an array that is made here."""
    spatial = sum(letter in "ZYX" for letter in axes) or 1
    side = max(int(_CHUNK ** (1 / spatial)), 1)
    return tuple(
        min(n, side) if letter in "ZYX" else (n if letter in "CS" else 1)
        for n, letter in zip(shape, axes, strict=True)
    )


def create(folder: Path, shape: Sequence[int], dtype: Any, axes: str) -> Any:
    """Make an array of zeros with named axes."""
    return zarr.create_array(
        str(folder),
        shape=tuple(shape),
        chunks=new_chunks(shape, axes),
        dtype=dtype,
        dimension_names=list(axes.replace("S", "C").lower()),
        overwrite=True,
    )


def copy_store(source: Path, target: Path, levels: Sequence[str]) -> None:
    """Copy a store but for the chunks of some arrays."""
    if not source.is_dir():
        raise FileError(f"the store it came from, {source}, is gone")
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
        attributes = metadata.setdefault("attributes", {})
    else:
        path = folder / ".zattrs"
        metadata = attributes = json.loads(path.read_text()) if path.exists() else {}
    attributes["symsmooth"] = [*attributes.get("symsmooth", []), note]
    path.write_text(json.dumps(metadata, indent=2))
