"""Files as arrays that the page shows: slices in front, channels last; videos and series frame by frame."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..core.image import Array
from ..io import FileError, ImageFile, limit_decoded_size, read_images
from ..io.base import naming_errors
from ..io.formats import module_of, open_file
from ..io.stacks import cut
from . import bridge

_RATE = 25.0  # frames a second where a video does not say so
_AXES = {"Z": "Depth", "T": "Time", "Q": "Slice", "I": "Page", "P": "Position", "R": "Series",
         "C": "Channel", "S": "Sample", "V": "View", "A": "Angle", "H": "Phase"}  # fmt: skip


def kind_in(info: dict[str, Any], sources: Sequence[Path]) -> str:
    """Return what was inspected: "raw", "video", a "series" of pictures, or an "image"."""
    if info["mosaic"]:
        return "raw"
    return "video" if "rate" in info else "series" if len(sources) > 1 else "image"


def write_view(paths: Sequence[Path], kind: str, target: Path, max_bytes: int) -> Array:
    """Write what is shown of files of a kind as one array; return it."""
    if kind == "video":
        return unpack(paths[0], target, max_bytes)[0]
    if kind == "series":
        return join(paths, target, max_bytes)
    with limit_decoded_size(max_bytes):
        if kind == "raw":
            pixels = bridge.developed(read_images(paths[0])[0])
        else:
            pixels, _ = arrange(read_images(paths[0])[0])
    np.save(target, pixels)
    return pixels


def arrange(image: ImageFile) -> tuple[Array, list[dict[str, Any]]]:
    """Return pixels as (*others, height, width, channels), and what the others are.

    There is no last axis if there is but one channel.

    Examples
    --------
    >>> pixels, others = arrange(ImageFile(np.zeros((3, 5, 9, 8)), 0, None, "TIFF", axes="CTYX"))
    >>> pixels.shape, others
    ((5, 9, 8, 3), [{'letter': 'T', 'name': 'Time', 'size': 5}])
    """
    piece = cut(image, "none").pieces[0]
    others = [i for i, part in enumerate(piece) if not isinstance(part, slice)]
    channel = None if image.channel_axis is None else image.channel_axis % image.pixels.ndim
    plane = [i for i, part in enumerate(piece) if isinstance(part, slice) and i != channel]
    pixels = image.pixels.transpose([*others, *plane, *([] if channel is None else [channel])])
    if channel is not None and pixels.shape[-1] == 1:
        pixels = pixels[..., 0]
    named = [
        {"letter": image.axes[i], "name": _AXES.get(image.axes[i], f"Axis {image.axes[i]}"),
         "size": image.pixels.shape[i]}
        for i in others
    ]  # fmt: skip
    return pixels, named


def unpack(path: Path, target: Path, max_bytes: int) -> tuple[Array, dict[str, Any]]:
    """Write all frames of a video, upright, as one array; return it, and how it is to be played."""
    with open_file(path) as file, naming_errors(path):
        video = module_of("VIDEO").Video(file)
        video.survey(decode=False)
        largest, turns, n_frames = video.pixels.largest, video.rotation, len(video.times)
        dtype = np.dtype(np.uint8 if video.pixels.depth == 8 else np.uint16)
        height, width = video.shape[:2]
        _check_size(n_frames, n_frames * int(np.prod(video.shape)) * dtype.itemsize, max_bytes)
        plane = (width, height) if turns % 2 else (height, width)
        shape = (n_frames, *plane, *video.shape[2:])
        view = np.lib.format.open_memmap(target, "w+", dtype, shape)
        for number, frame in enumerate(video.frames()):
            view[number] = np.rot90(np.rint(np.clip(frame.pixels, 0, largest)), turns)
            stored = str(frame.pixels.dtype)  # has room for what lies below black
        rate = video.stream.average_rate or video.stream.guessed_rate or _RATE
    view.flush()
    return view, {"rate": float(rate), "turns": turns, "stored": stored}


def join(paths: Sequence[Path], target: Path, max_bytes: int) -> Array:
    """Write pictures of one kind as one array; return it."""
    view: Array | None = None
    for number, path in enumerate(paths):
        with limit_decoded_size(max_bytes):
            pixels, _ = arrange(read_images(path)[0])
        if view is None:
            _check_size(len(paths), len(paths) * pixels.nbytes, max_bytes)
            shape = (len(paths), *pixels.shape)
            view = np.lib.format.open_memmap(target, "w+", pixels.dtype, shape)
        if pixels.shape != view.shape[1:] or pixels.dtype != view.dtype:
            raise FileError(f"{path}: is not like the frames before it; a series has one size")
        view[number] = pixels
    assert view is not None
    return view


def _check_size(n_frames: int, n_bytes: int, max_bytes: int) -> None:
    """Refuse what would not fit on the disk, or be done within an hour."""
    if n_bytes > max_bytes:
        raise FileError(
            f"has {n_frames} frames, {n_bytes / 2**20:.0f} MB of pixels, and {max_bytes / 2**20:.0f} MB "
            "are allowed here; cut it, or give it to the command line: symsmooth denoise"
        )


def take_slice(path: Path, at: Sequence[int], n_channels: int) -> Array:
    """Return one slice of an array of ours; of what is a single slice, that."""
    pixels = np.load(path, mmap_mode="r", allow_pickle=False)
    dims = 2 + (n_channels > 1)
    if pixels.ndim > dims:
        sizes = pixels.shape[: pixels.ndim - dims]
        if len(at) != len(sizes) or any(i >= n for i, n in zip(at, sizes, strict=True)):
            raise ValueError("There is no such slice.")
        pixels = pixels[tuple(at)]
    return np.asarray(pixels)
