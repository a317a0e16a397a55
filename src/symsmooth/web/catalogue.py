"""What can be chosen on the page, in plain words; loads nothing, so that the server starts at once.

Methods and endings are those of the package.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from .. import methods as registry
from ..app.noise_report import NOISE_KINDS
from ..io.formats import endings
from ..methods import Method

MIN_METHODS, MAX_METHODS = 2, 4  # that are compared
EXAMPLES = {
    "photograph": "Photograph, 8 bit",
    "colour": "Colour photograph, 8 bit",
    "photons": "Few photons, 16 bit",
    "stack": "Stack of a cell, 16 bit",
}
VIDEO_ENDINGS = (".mp4", ".m4v", ".mov", ".mkv", ".webm", ".avi", ".y4m")
ENDINGS = (
    *(ending for ending in endings() if ending != ".zarr"),  # a folder cannot be dropped
    ".gz",  # some systems look at the last part of .nii.gz alone
    *VIDEO_ENDINGS,
)
QUALITIES = {
    "preview": "A first look",
    "fast": "Seconds for a photograph",
    "balanced": "Best for its time",
    "best": "Last tenths of a decibel; slow",
}
NOISE_NAMES = {  # on the page: in ``denoise``
    "auto" if kind.name == "auto" else kind.word.lower(): kind.name for kind in NOISE_KINDS
}
NOISES = {
    name: (name.capitalize(), kind.about)
    for name, kind in zip(NOISE_NAMES, NOISE_KINDS, strict=True)
} | {
    "box": ("Measured", "On a part without structure, which you mark in the picture."),
    "file": ("Saved", "A noise model of the same camera, from a file."),
}
THIRDS = {
    "none": ("Slices", "Each slice by itself."),
    "volume": ("Volume", "Depth is a third dimension: neighbouring slices help each other."),
    "time": (
        "Series",
        "Slices are frames in time: they help each other, wherever things have moved to.",
    ),
}


@dataclass(frozen=True)
class MethodEntry:
    """A method as the page offers it."""

    name: str
    title: str
    about: str
    quality: bool  # whether it has presets
    noise: bool  # whether it knows other noise than white
    strength: bool  # whether strength is its own; else it assumes more noise
    time: bool  # whether frames can help each other


def _entry(method: Method) -> MethodEntry:
    own = (name in method.offers for name in ("quality", "noise", "strength", "time"))
    return MethodEntry(method.name, method.title, method.about, *own)


_PLAIN = ("nlm", "glide", "lark", "bilateral", "gaussian")  # come last, the plainest at the end
_STRONG = [name for name in ("denoise", "gsfw", *registry.METHODS) if name not in _PLAIN]
METHODS = tuple(_entry(registry.METHODS[name]) for name in dict.fromkeys([*_STRONG, *_PLAIN]))
BY_NAME = {method.name: method for method in METHODS}


def about(max_bytes: int, max_pictures: int, version: str) -> dict[str, Any]:
    """Return all that the page offers, as JSON."""
    return {
        "version": version,
        "max_bytes": max_bytes,
        "max_pictures": max_pictures,
        "endings": ENDINGS,
        "examples": EXAMPLES,
        "methods": [asdict(method) for method in METHODS],
        "compare": [MIN_METHODS, MAX_METHODS],
        "qualities": QUALITIES,
        "noises": NOISES,
        "thirds": THIRDS,
    }
