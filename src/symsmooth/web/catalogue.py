"""What can be chosen on the page, in plain words; loads nothing, so that the server starts at once.

``tests/web`` hold the lists of methods and of endings against those of the package.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Protocol

from ..app.noise_kinds import NOISE_KINDS

MIN_METHODS, MAX_METHODS = 2, 4  # that are compared
EXAMPLES = {
    "photograph": "Photograph, 8 bit",
    "colour": "Colour photograph, 8 bit",
    "photons": "Few photons, 16 bit",
    "stack": "Stack of a cell, 16 bit",
}
VIDEO_ENDINGS = (".mp4", ".m4v", ".mov", ".mkv", ".webm", ".avi", ".y4m")
ENDINGS = (
    ".png", ".jpg", ".jpeg", ".jfif", ".jpe", ".bmp", ".webp", ".tif", ".tiff", ".fits", ".fit", ".fts",
    ".npy", ".nii", ".nii.gz", ".gz", ".mrc", ".mrcs", ".map",
    ".dng", ".3fr", ".arw", ".cr2", ".cr3", ".dcr", ".erf", ".fff", ".iiq", ".kdc", ".mef", ".mos",
    ".mrw", ".nef", ".nrw", ".orf", ".pef", ".raf", ".raw", ".rw2", ".rwl", ".sr2", ".srf", ".srw",
    ".x3f",
    *VIDEO_ENDINGS,
)  # fmt: skip
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
    quality: bool = False  # whether it has presets
    noise: bool = False  # whether it knows other noise than white
    strength: bool = False  # whether strength is its own; else it assumes more noise
    time: bool = False  # whether frames can help each other


METHODS = (
    MethodEntry(
        "denoise",
        "Automatic",
        "Finds the noise, and removes it by our best method (GSF-W). Start here.",
        True, True, True, True,
    ),
    MethodEntry(
        "gsfw", "GSF-W", "Soft clusters of patches with learned covariances; white noise.", True
    ),
    MethodEntry("gsf", "GSF", "Gaussian mixture of patches as a smoothing filter: the paper's."),
    MethodEntry("bm3d", "BM3D", "Similar blocks, filtered together. A strong classic."),
    MethodEntry("nl_bayes", "NL-Bayes", "A Gaussian for each group of similar patches."),
    MethodEntry("epll", "EPLL", "Patches made likely under a prior of natural images. Slow."),
    MethodEntry("ple", "PLE", "Piecewise linear estimates, learned from the picture."),
    MethodEntry("nlm", "Non-local means", "Averages of pixels whose neighbourhoods look alike."),
    MethodEntry("glide", "GLIDE", "One global filter, approximated in blocks."),
    MethodEntry("lark", "LARK", "Kernels that follow the edges."),
    MethodEntry("bilateral", "Bilateral", "Averages of near pixels of near value. Fast."),
    MethodEntry("gaussian", "Gaussian", "A plain blur, as a yardstick."),
)  # fmt: skip
BY_NAME = {method.name: method for method in METHODS}


class Chosen(Protocol):
    """Settings, as far as they name a method."""

    @property
    def method(self) -> str:
        """Its name."""

    @property
    def quality(self) -> str:
        """Its preset, if it has such."""


def title_of(chosen: Chosen) -> str:
    """Return what a method with its settings is called, beside others."""
    method = BY_NAME[chosen.method]
    return f"{method.title}, {chosen.quality} quality" if method.quality else method.title


def result_of(chosen: Chosen) -> str:
    """Return what a result of these settings is called, beside the noisy picture."""
    if chosen.method == METHODS[0].name:
        return f"Denoised, {chosen.quality} quality"
    return f"Denoised by {title_of(chosen)}"


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
