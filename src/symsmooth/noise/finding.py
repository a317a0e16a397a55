"""What speaks for a model of noise that was found, how sure it is, and which pixels it is about."""

from __future__ import annotations

from dataclasses import dataclass

_UNIT = 1.0  # the largest pixel of pictures of 0 to 1
_WHOLE_NUMBERS = 50.0  # pictures with larger pixels are no such ones


@dataclass(frozen=True)
class Finding:
    """Why an estimate is what it is.

    Attributes
    ----------
    confidence : float
        0 to 1: the share of simulated pictures of which as much was said, whose result lies within
        half a decibel of that with the true noise.
    reasons : tuple of str
        What was found, in words.
    suspected : float
        How much more noise there may be, in the image's units: what could be texture as well.
    """

    confidence: float
    reasons: tuple[str, ...]
    suspected: float = 0.0


@dataclass(frozen=True)
class PixelRange:
    """Which pixels a model of noise was found in: a level means nothing without their units.

    Attributes
    ----------
    dtype : str
        That of the image, such as "uint16".
    low, high : float
        The least and the largest pixel that was seen.
    """

    dtype: str
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.dtype} pixels from {self.low:.6g} to {self.high:.6g}"

    def same_units(self, other: PixelRange) -> bool:
        """Whether both can be in the same units: not 8 bits and more, nor 0 to 1 and whole numbers."""
        if self.low == self.high or other.low == other.high:
            return True  # constant pixels say nothing of their units
        of_floats = ["float" in each.dtype for each in (self, other)]
        if not any(of_floats):
            return self.dtype.endswith("int8") == other.dtype.endswith("int8")
        ends = sorted(max(abs(each.low), abs(each.high)) for each in (self, other))
        return all(of_floats) or not ends[0] <= _UNIT < _WHOLE_NUMBERS < ends[1]
