"""Noise in plain words: its kinds, what was found, or given, and what looks doubtful about it.

Loads nothing at the top, so that the server starts at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .job_warnings import JobWarning

if TYPE_CHECKING:
    from ..noise import Noise

_NOTHING = 2e-4  # of the range: 0.05 grey levels of 255
_LITTLE = 0.5  # of the noise that was found
_DOUBTFUL = 0.5  # confidence
_HALF_SURE = (
    "noise is hard to tell from texture here, so look at what was removed; {region} measures it on flat "
    "ground"
)
_MANY = 0.1  # of the pixels have exactly one value at an end of the range


@dataclass(frozen=True)
class NoiseKind:
    """A kind of noise that can be asked for."""

    name: str  # of the argument ``noise``
    word: str  # what people call it
    about: str  # one or two sentences


NOISE_KINDS = (
    NoiseKind("auto", "automatic", "Found from the picture."),
    NoiseKind(
        "gaussian", "white", "The same everywhere, every pixel by itself. The level may be given."
    ),
    NoiseKind(
        "poisson-gaussian", "photon", "Grows with brightness: few photons, linear sensor data."
    ),
    NoiseKind(
        "correlated", "coarse", "Grains larger than a pixel: JPEG, wide-field, enlarged pictures."
    ),
    NoiseKind(
        "rician", "Rician", "Magnitudes of an MR scanner: dark parts lose their false brightness."
    ),
)


@dataclass(frozen=True)
class NoiseDescription:
    """What noise there is, in words, and as fields for a script."""

    words: str  # "white noise, about 5.2 of 255"
    short: str  # the same without how it follows brightness
    brief: str  # "white, 5.2"
    detail: str  # the model with all its numbers
    fields: Mapping[str, object]

    @property
    def level(self) -> float:
        """Its standard deviation in the image's units; at the median pixel if it depends on them."""
        level = self.fields["level"]
        assert isinstance(level, float)
        return level


def describe(
    model: Noise, pixels: Any, span: float, *, given: bool, assumed: bool
) -> NoiseDescription:
    """Say what a model is, at pixels of an image, or a sample of them, that can be ``span`` apart.

    It was ``given`` by the user, or is ``assumed`` because the method knows of no other noise.
    """
    kind, level, law, more = model.words(pixels)
    fields = {**more, "level": level, "estimated": not given}
    finding = model.finding
    if finding is not None and not given:
        fields |= {"confidence": finding.confidence, "reasons": list(finding.reasons)}
        fields |= {"suspected": finding.suspected} if finding.suspected else {}
    amount = f"{level:.3g} of {span:.6g}" if span else f"{level:.3g}"
    if level == 0.0 and not given:
        return NoiseDescription("no noise found", "no noise found", "none", str(model), fields)
    brief = f"{kind}, {level:.4g}"
    if given:
        words = f"{kind} noise, {amount} (given)"
        return NoiseDescription(words, words, brief, str(model), fields)
    short = f"{'assumed ' if assumed else ''}{kind} noise, about {amount}"
    words = f"{short} ({law})" if law else short
    return NoiseDescription(words, short, brief, str(model), fields)


def find_warnings(
    noise: NoiseDescription, pixels: Any, span: float, removed: float, sigma: float | None
) -> list[JobWarning]:
    """Return questions and warnings for the user, one line each.

    Pixels, or a sample of them, can be ``span`` apart; ``removed`` is the root mean square of the change,
    ``sigma`` what the user gave.
    """
    import numpy as np

    from ..noise.level import units_hint

    if sigma is not None:
        question = units_hint(pixels, sigma)
        return [JobWarning("units", question)] if question else []
    known = pixels if pixels.dtype.kind in "iu" else pixels[np.isfinite(pixels)]
    if not known.size or known.min() == known.max():
        return []
    span = min(span, float(np.subtract(known.max(), known.min(), dtype=np.float64)))
    if removed >= _NOTHING * span or removed > _LITTLE * noise.level > 0.0:
        confidence = noise.fields.get("confidence", 1.0)
        doubtful = isinstance(confidence, float) and confidence < _DOUBTFUL
        return [JobWarning("texture", _HALF_SURE)] if doubtful else []
    found = "no noise was found" if noise.level == 0.0 else f"{noise.words} was found"
    suspected = noise.fields.get("suspected", 0.0)
    remedy = "{region} measures it on flat ground"
    if isinstance(suspected, float) and suspected > _NOTHING * span:
        remedy += ", or {level}"
    text = f"almost nothing was removed: {found}{_why(known)}; if you see noise, {remedy}"
    return [JobWarning("almost-nothing", text, f"{suspected:.2g}")]


def _why(known: Any) -> str:
    """Return why noise may be hidden: many pixels at an end of the range, where there is none."""
    value, share = max(
        ((end, float((known == end).mean())) for end in (known.min(), known.max())),
        key=lambda found: found[1],
    )
    if share < _MANY:
        return ""
    return (
        f", {share:.0%} of the pixels are exactly {value:g} (empty or saturated: no noise is seen "
        "there, so cut such parts away)"
    )


def value_range(pixels: Any) -> float:
    """Return how far apart pixels can be: by dtype in 8 and 16 bits, else between the extremes."""
    import numpy as np

    if pixels.dtype in (np.uint8, np.uint16):
        return float(np.iinfo(pixels.dtype).max)
    finite = pixels[np.isfinite(pixels)].astype(np.float64)
    return float(np.ptp(finite)) if finite.size else 0.0
