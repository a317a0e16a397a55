"""Which colour each pixel of a mosaic sees, and the planes and neighbours of one colour.

A pattern is the tile that repeats: an array (rows, columns) of 0 (red), 1 (green) and 2 (blue).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..core.image import Array

COLOURS = "RGB"
XTRANS = "GBGGRG/RGRBGB/GBGGRG/GRGGBG/BGBRGR/GRGGBG"
_NAMES = MappingProxyType(
    {
        "RGGB": "RG/GB",
        "BGGR": "BG/GR",
        "GRBG": "GR/BG",
        "GBRG": "GB/RG",
        "XTRANS": XTRANS,
        "X-TRANS": XTRANS,
    }
)
_LARGEST = 8  # pixels a side of a pattern


def parse_pattern(pattern: str | ArrayLike) -> Array:
    """Return a pattern (a name, rows of letters such as "RG/GB") as an array, or say why it is none.

    Examples
    --------
    >>> parse_pattern("GRBG").tolist()
    [[1, 0], [2, 1]]
    """
    if isinstance(pattern, str):
        rows = _NAMES.get(pattern.upper(), pattern.upper()).split("/")
        known = all(letter in COLOURS for row in rows for letter in row)
        if not known or len({len(row) for row in rows}) != 1:
            raise ValueError(
                f"pattern must be one of {', '.join(_NAMES)} or rows such as RG/GB, got {pattern!r}"
            )
        pattern = [[COLOURS.index(letter) for letter in row] for row in rows]
    tile = np.asarray(pattern)
    if (
        tile.ndim != 2
        or tile.dtype.kind not in "ui"
        or not 2 <= min(tile.shape) <= max(tile.shape) <= _LARGEST
    ):
        raise ValueError(
            f"pattern must be a name such as RGGB or rows of 0, 1, 2 for red, green, blue, 2 to "
            f"{_LARGEST} a side; got {pattern!r}"
        )
    if sorted(np.unique(tile)) != [0, 1, 2]:
        raise ValueError(
            "pattern must have red (0), green (1) and blue (2), each at least once; "
            "for a picture of one colour use denoise"
        )
    return tile.astype(np.int64)


def sites(pattern: Array) -> Iterator[tuple[int, tuple[slice, slice]]]:
    """Yield the colour of each place of the pattern, and where a mosaic has it."""
    height, width = pattern.shape
    for y, x in np.ndindex(height, width):
        yield int(pattern[y, x]), (slice(y, None, height), slice(x, None, width))


def tiled(tile: ArrayLike, shape: tuple[int, ...]) -> Array:
    """Repeat a tile over a shape.

    Examples
    --------
    >>> tiled([[1, 2]], (1, 3)).tolist()
    [[1, 2, 1]]
    """
    values = np.asarray(tile)
    times = [-(-n // t) for n, t in zip(shape, values.shape, strict=True)]
    return np.tile(values, times)[tuple(slice(n) for n in shape)]


def lattice(pattern: Array, colour: int) -> Array:
    """Return the two shortest steps (2, 2) that lead from any pixel of a colour to another of it.

    Examples
    --------
    >>> lattice(parse_pattern("RGGB"), 1).tolist()
    [[1, -1], [1, 1]]
    """
    shape = np.array(pattern.shape)
    places = np.argwhere(pattern == colour)
    reach = range(-int(shape.max()), int(shape.max()) + 1)
    steps = [s for s in itertools.product(reach, reach) if s > (0, 0)]
    found: list[tuple[int, int]] = []
    for step in sorted(steps, key=lambda s: (s[0] ** 2 + s[1] ** 2, s)):
        parallel = found and found[0][0] * step[1] == found[0][1] * step[0]
        if not parallel and (pattern[tuple(((places + step) % shape).T)] == colour).all():
            found.append(step)
        if len(found) == 2:
            break
    return np.array(found)


def neighbour_steps(pattern: Array, colour: int) -> Array:
    """Return the steps (8, 2) to the nearest pixels around one of a colour, all of that colour."""
    ring = [at for at in itertools.product((-1, 0, 1), repeat=2) if at != (0, 0)]
    return np.array(ring) @ lattice(pattern, colour)


def over_neighbours(values: Array, pattern: Array, combine: Any, outside: Any) -> Array:
    """Combine the eight nearest neighbours of the same colour by a ufunc; beyond borders is ``outside``."""
    steps = {colour: neighbour_steps(pattern, colour) for colour in range(3)}
    reach = max(int(np.abs(each).max()) for each in steps.values())
    padded = np.pad(values, reach, constant_values=outside)
    out = np.empty_like(values)
    height, width = values.shape
    for (y, x), (colour, site) in zip(np.ndindex(*pattern.shape), sites(pattern), strict=True):
        around = None
        for dy, dx in steps[colour]:
            rows = slice(reach + y + dy, reach + height + dy, pattern.shape[0])
            columns = slice(reach + x + dx, reach + width + dx, pattern.shape[1])
            part = padded[rows, columns]
            around = part.copy() if around is None else combine(around, part, out=around)
        out[site] = around
    return out
