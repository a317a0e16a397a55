"""What speaks for a model of noise that was found, and how sure it is."""

from __future__ import annotations

from dataclasses import dataclass


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
