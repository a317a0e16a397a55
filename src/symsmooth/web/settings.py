"""What can be chosen on the page, in plain words, and what its controls say, checked.

Nothing else reaches the work.
Methods and endings are those of the package.  It loads no NumPy, so that the server starts at once.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from .. import methods as registry
from ..app.messages import NOISE_KINDS
from ..io.formats import endings
from ..methods import DEFAULT, QUALITIES, Method

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
Box = tuple[int, ...]  # x, y, width, height
_STRENGTHS = 0.1, 10.0
_CHROMA_STRENGTHS = 0.01, 10.0  # or 0: colour stays as it is
_MAX_NUMBER = 2**31  # of a place in a picture


class PageError(ValueError):
    """Something to be told in one sentence, with the status of the answer."""

    def __init__(self, text: str, status: int = 422) -> None:
        super().__init__(text)
        self.status = status


def nothing_here() -> PageError:
    """Return what is said of addresses at which there is nothing."""
    return PageError("There is nothing here.", 404)


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
        "qualities": dict(QUALITIES),
        "noises": NOISES,
        "thirds": THIRDS,
    }


@dataclass(frozen=True)
class Settings:
    """What the controls say."""

    method: str = "denoise"
    quality: str = "balanced"
    noise: str = "auto"
    level: float | None = None  # of white noise; None: estimated
    box: Box | None = None  # flat ground, for noise "box"
    strength: float = 1.0
    chroma_strength: float | None = None  # for colour; None: as for luminance
    grain: float = 0.0  # share of the removed luminance noise that is put back
    third: str = "auto"  # as the file says, or one of THIRDS
    channels: str = "auto"  # or "together", "apart"
    model: str | None = None  # that was opened, for noise "file"; in the work, where it is

    @classmethod
    def of(cls, given: object) -> Settings:
        """Return what the page sends as settings, or say what is wrong."""
        if not isinstance(given, Mapping) or given.keys() - {f.name for f in fields(cls)}:
            raise PageError("These settings are not known here; reload the page.")
        read = cls(**given)
        _one_of("method", read.method, BY_NAME)
        _one_of("quality", read.quality, QUALITIES)
        _one_of("noise", read.noise, NOISES)
        _one_of("third", read.third, {"auto", *THIRDS})
        _one_of("channels", read.channels, ("auto", "together", "apart"))
        if read.noise not in ("auto", "white") and not BY_NAME[read.method].noise:
            title = BY_NAME[read.method].title
            raise PageError(f"{title} knows white noise only; choose Auto or White.")
        _check_taste(read)
        if read.level is not None and not (_is_number(read.level) and read.level > 0):
            raise PageError("The noise level must be a number above 0, or left empty.")
        if read.noise == "file" and not isinstance(read.model, str):
            raise PageError("Open a noise model first.")
        if read.model is not None and not re.fullmatch(r"noise-\d{1,9}", str(read.model), re.ASCII):
            raise PageError("There is no such noise model.")
        box = None if read.box is None else whole_numbers(read.box, 4)
        if box is not None and len(box) != 4:
            raise PageError("A box is x, y, width and height, in pixels.")
        if read.noise == "box" and box is None:
            raise PageError("Mark flat ground first: press Mark a part and drag over it.")
        return cls(**{**asdict(read), "box": box})

    def as_json(self) -> dict[str, Any]:
        """Return them as the page sends them."""
        return asdict(self)

    @property
    def title(self) -> str:
        """What the method with its settings is called, beside others."""
        method = BY_NAME[self.method]
        return f"{method.title}, {self.quality} quality" if method.quality else method.title

    @property
    def result(self) -> str:
        """What a result of these settings is called, beside the noisy picture."""
        if self.method == DEFAULT:
            return f"Denoised, {self.quality} quality"
        return f"Denoised by {self.title}"


def _check_taste(read: Settings) -> None:
    """Refuse strengths and shares of grain that cannot be."""
    low, high = _STRENGTHS
    if not _is_number(read.strength) or not low <= read.strength <= high:
        raise PageError(f"Strength must be between {low:g} and {high:g}.")
    colour, (low, high) = read.chroma_strength, _CHROMA_STRENGTHS
    if colour is not None and not (_is_number(colour) and (colour == 0 or low <= colour <= high)):
        raise PageError(f"Colour strength must be 0, or between {low:g} and {high:g}.")
    if not _is_number(read.grain) or not 0 <= read.grain <= 1:
        raise PageError("Grain must be between 0 and 1.")


def whole_numbers(given: object, max_length: int = 8) -> tuple[int, ...]:
    """Return a short list of whole numbers from 0, or say that it is none."""
    if not isinstance(given, (list, tuple)) or len(given) > max_length:
        raise PageError("This place is not in the picture.")
    for each in given:
        if not isinstance(each, int) or isinstance(each, bool) or not 0 <= each < _MAX_NUMBER:
            raise PageError("This place is not in the picture.")
    return tuple(given)


def _one_of(name: str, value: object, known: Any) -> None:
    if not isinstance(value, str) or value not in known:
        raise PageError(f"There is no {name} {str(value)[:40]!r}.")


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return abs(value) < math.inf and (isinstance(value, float) or abs(value) < _MAX_NUMBER)
