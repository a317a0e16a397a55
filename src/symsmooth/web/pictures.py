"""Pictures as the page shows them: files as arrays, arrays drawn as PNG files, and examples.

Slices are in front, channels last; videos and series are arrays of frames.
"""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..app.raw import develop
from ..app.samples import sample
from ..core.blend import blend
from ..core.image import Array
from ..io import FileError, ImageFile, limit_decoded_size, read_images, write_image
from ..io.base import naming_errors
from ..io.formats import module_of, open_file
from ..io.images import cut
from ..reports.pictures import Range, display_range, reduce, reduction
from .sessions import VIEW

_RATE = 25.0  # frames a second where a video does not say so
_AXES = {"Z": "Depth", "T": "Time", "Q": "Slice", "I": "Page", "P": "Position", "R": "Series",
         "C": "Channel", "S": "Sample", "V": "View", "A": "Angle", "H": "Phase"}  # fmt: skip
MAX_SHOWN = 2**22  # pixels of what is shown at a time
_BINS = 128
_TINTS = {
    "green": (0.0, 1.0, 0.0), "magenta": (1.0, 0.0, 1.0), "cyan": (0.0, 1.0, 1.0),
    "yellow": (1.0, 1.0, 0.0), "red": (1.0, 0.0, 0.0), "blue": (0.0, 0.0, 1.0),
}  # fmt: skip
_SLICES = 9  # from which black and white of a stack are taken
_SAMPLED = 2**20  # pixels that a histogram counts
_SEED = 0
_SPOTS = 60  # of the stack: like vesicles in a cell


# --- files as arrays --------------------------------------------------------------------------


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
            pixels = developed(read_images(paths[0])[0])
        else:
            pixels, _ = arrange(read_images(paths[0])[0])
    np.save(target, pixels)
    return pixels


def developed(image: ImageFile) -> Array:
    """Return a raw image developed, 8 bits a colour."""
    return (develop(image).pixels >> 8).astype(np.uint8)


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


# --- what is shown of them --------------------------------------------------------------------


def middle_of(pixels: Array, n_others: int) -> Array:
    """Return the middle slice."""
    return np.asarray(pixels[tuple(n // 2 for n in pixels.shape[:n_others])])


def ranges_of(pixels: Array, n_others: int) -> dict[str, tuple[float, float]]:
    """Return what is black and what is white in all slices, for all channels together and for each."""
    slices = pixels.reshape(-1, *pixels.shape[n_others:])
    some = slices[:: -(-len(slices) // _SLICES)]
    found = {"all": display_range(some)}
    if some.ndim == 4:
        found |= {str(c): display_range(some[..., c]) for c in range(some.shape[-1])}
    return {name: (each.low, each.high) for name, each in found.items()}


def histogram(middle: Array, shown: tuple[float, float]) -> list[int]:
    """Return how many pixels there are between black and white, in bins; outside counts at the ends."""
    values = middle[np.isfinite(middle)]
    values = values[:: max(values.size // _SAMPLED, 1)].astype(np.float64)
    low, high = shown
    place = np.clip((values - low) / ((high - low) or 1.0) * _BINS, 0, _BINS - 1).astype(int)
    return np.bincount(place, minlength=_BINS).tolist()


def tints_of(image: ImageFile) -> list[str]:
    """Return the colours in which channels are shown together: of those that show different things.

    Colours of a pixel (red, green, blue; inks) are shown as what they are.

    Examples
    --------
    >>> tints_of(ImageFile(np.zeros((2, 9, 8)), 0, None, "TIFF", axes="CYX"))
    ['green', 'magenta']
    """
    axis, n = image.channel_axis, image.n_channels
    if (
        axis is None
        or image.axes[axis] != "C"
        or not (n == 2 or (n > 3 and image.format == "TIFF"))
    ):
        return []
    return list(_TINTS)[:n] if n <= len(_TINTS) else []


def draw_view(wanted: dict[str, Any]) -> bytes:
    """Draw what ``handlers.view_request`` says; return a PNG file."""
    pixels = np.asarray(_part(wanted["first"], wanted), np.float32)
    if wanted["second"] is not None:
        pixels = pixels - np.asarray(_part(wanted["second"], wanted), np.float32)
    if wanted["tints"] and pixels.ndim == 3:
        shown = _tinted(pixels, wanted)
    else:
        shown = Range(wanted["low"], wanted["high"])(pixels)
    from PIL import Image

    out = io.BytesIO()  # hardly compressed: it is not sent far, and somebody waits
    Image.fromarray(np.rint(shown * 255).astype(np.uint8)).save(out, "PNG", compress_level=1)
    return out.getvalue()


def _tinted(pixels: Array, wanted: dict[str, Any]) -> Array:
    """Return channels in colours of their own, each from its black to its white, added up.

    What was removed is around grey, so there the mean of the colours is.
    """
    channels = [
        Range(*limits)(pixels[..., n])[..., np.newaxis] * np.array(_TINTS[tint], np.float32)
        for n, (tint, limits) in enumerate(zip(wanted["tints"], wanted["limits"], strict=True))
    ]
    total = np.sum(channels, axis=0)
    if wanted["second"] is not None:
        total = total / np.sum([_TINTS[tint] for tint in wanted["tints"]], axis=0)
    return np.clip(total, 0.0, 1.0)


def _part(path: Path, wanted: dict[str, Any]) -> Array:
    """Return what is shown of a file: a slice, a box of it, one channel, few enough pixels."""
    pixels = _box(path, wanted)
    if wanted["blend"] is not None and path.name != VIEW:  # what is noisy has nothing to blend
        noisy, strength, colour = wanted["blend"]
        axis = -1 if pixels.ndim == 3 else None
        pixels = blend(_box(noisy, wanted), pixels, strength, colour if axis else None, axis)
    if wanted["channel"] is not None and pixels.ndim == 3:
        if wanted["channel"] >= pixels.shape[-1]:
            raise ValueError("There is no such channel.")
        pixels = pixels[..., wanted["channel"]]
    if not pixels.size:
        raise ValueError("There is no such part.")
    height, width = pixels.shape[:2]
    return reduce(pixels, reduction(height, width, MAX_SHOWN))


def _box(path: Path, wanted: dict[str, Any]) -> Array:
    """Return a slice of a file, or a box of it."""
    pixels = take_slice(path, wanted["at"], wanted["channels"])
    if wanted["box"] is None:
        return pixels
    if len(wanted["box"]) != 4:
        raise ValueError("There is no such part.")
    x, y, width, height = wanted["box"]
    return pixels[y : y + height, x : x + width]


def removed(before: Array, after: Array) -> float:
    """Return the standard deviation of what was removed; of a stack, of its middle slice."""
    lines = before.ndim - 2
    middle = tuple(n // 2 for n in before.shape[:lines]) if before.ndim > 3 else ()
    change = np.asarray(before[middle], np.float32) - np.asarray(after[middle], np.float32)
    return float(np.std(change[np.isfinite(change)])) if np.isfinite(change).any() else 0.0


def finite(value: Any) -> Any:
    """Return numbers that JSON knows: None for those that are not finite."""
    if isinstance(value, dict):
        return {name: finite(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(each) for each in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


# --- examples ---------------------------------------------------------------------------------


def write_example(name: str, folder: Path, clean_folder: Path) -> tuple[Path, Path]:
    """Write an example of ``settings.EXAMPLES``; return the noisy picture and the clean one."""
    stem, clean, noisy = _make(name)
    ending = ".png" if noisy.dtype == np.uint8 else ".tif"
    paths = folder / f"{stem}{ending}", clean_folder / f"{stem}-clean{ending}"
    for path, pixels in zip(paths, (noisy, clean), strict=True):
        if name == "stack":
            import tifffile

            tifffile.imwrite(path, pixels, imagej=True, metadata={"axes": "ZYX"})
        else:
            write_image(path, pixels)
    return paths


def _make(name: str) -> tuple[str, Array, Array]:
    """Return a name for the file, the clean and the noisy pixels."""
    rng = np.random.default_rng(_SEED)
    if name == "photograph":
        clean = sample("camera")[:256]
        return "camera", clean, _rounded(clean + rng.normal(0, 25, clean.shape), np.uint8)
    if name == "colour":
        clean = sample("astronaut")
        return "astronaut", clean, _rounded(clean + rng.normal(0, 20, clean.shape), np.uint8)
    if name == "photons":
        return "galaxies", *_counted(40.0 * sample("galaxies") / 255.0, rng)
    if name == "stack":
        return "cell", *_counted(_cell(rng), rng)
    raise ValueError(f"there is no example {name!r}")


def _cell(rng: np.random.Generator) -> Array:
    """Return photons of bright spots in a round cell, (depth, height, width)."""
    z, y, x = np.ogrid[:12, :192, :192]
    round_cell = np.exp(-((((z - 6) / 6) ** 2 + ((y - 96) / 70) ** 2 + ((x - 96) / 80) ** 2) ** 2))
    photons = 3.0 + 12.0 * round_cell
    for _ in range(_SPOTS):
        at = rng.normal((6, 96, 96), (2, 26, 30))
        wide = rng.uniform(1.5, 5.0)
        distance = ((z - at[0]) * 3) ** 2 + (y - at[1]) ** 2 + (x - at[2]) ** 2
        photons = photons + rng.uniform(10, 60) * np.exp(-distance / (2 * wide**2))
    return np.asarray(photons)


def _counted(photons: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return what a camera sees of photons, without and with noise, in 16 bits."""
    gain, offset = 60.0, 400.0
    counted = rng.poisson(photons) * gain + offset + rng.normal(0, 30.0, photons.shape)
    return _rounded(photons * gain + offset, np.uint16), _rounded(counted, np.uint16)


def _rounded(pixels: Array, dtype: type[np.unsignedinteger]) -> Array:
    return np.clip(np.rint(pixels), 0, np.iinfo(dtype).max).astype(dtype)
