"""What the controls of the page say, checked: nothing else reaches the work."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from ..methods import DEFAULT
from .catalogue import BY_NAME, NOISES, QUALITIES, THIRDS
from .errors import PageError

Box = tuple[int, ...]  # x, y, width, height
_STRENGTHS = 0.1, 10.0
_CHROMA_STRENGTHS = 0.01, 10.0  # or 0: colour stays as it is
_MAX_NUMBER = 2**31  # of a place in a picture


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
