"""What the page shows of arrays: slices drawn as PNG files, black and white, histograms."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import Any

import numpy as np

from ..core.blend import blend
from ..core.image import Array
from ..io import ImageFile
from ..reports.display import Range, display_range, reduce
from .arrays import take_slice
from .sessions import VIEW

_MAX_SHOWN = 2**22  # pixels of what is shown at a time
_BINS = 128
_TINTS = {
    "green": (0.0, 1.0, 0.0), "magenta": (1.0, 0.0, 1.0), "cyan": (0.0, 1.0, 1.0),
    "yellow": (1.0, 1.0, 0.0), "red": (1.0, 0.0, 0.0), "blue": (0.0, 0.0, 1.0),
}  # fmt: skip
_SLICES = 9  # from which black and white of a stack are taken
_SAMPLED = 2**20  # pixels that a histogram counts


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
    """Draw what ``views.view_request`` says; return a PNG file."""
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
    return reduce(pixels, reduction(*pixels.shape[:2]))


def _box(path: Path, wanted: dict[str, Any]) -> Array:
    """Return a slice of a file, or a box of it."""
    pixels = take_slice(path, wanted["at"], wanted["channels"])
    if wanted["box"] is None:
        return pixels
    if len(wanted["box"]) != 4:
        raise ValueError("There is no such part.")
    x, y, width, height = wanted["box"]
    return pixels[y : y + height, x : x + width]


def reduction(height: int, width: int) -> int:
    """Return by what whole number the sides are divided so that all of it can be shown."""
    return int(np.ceil(np.sqrt(height * width / _MAX_SHOWN)))


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
