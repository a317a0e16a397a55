"""What is said: errors, warnings, steps of the work and noise, in plain words that name no control.

Each surface says them with controls of its own.  A remedy for what is doubtful is named by what it does, in
braces: ``{coarse}`` is a flag on the command line and "Coarse noise" on the page.  So nobody has to find
the options of the command line in a sentence.

Nothing else is loaded at the top, so that help, completion and the server start at once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from ..noise import Noise
Code = Literal[
    "almost-nothing", "noise-left", "texture", "units", "unchanged", "clipped", "metadata", "rounding",
    "bilevel", "streams", "frames", "kept",
]  # fmt: skip
Remedy = Literal[
    "level", "coarse", "region", "this-region", "stronger", "floats", "series", "resume"
]  # fmt: skip
# Where there are no controls; {value} is what goes with a remedy: a number, or where to write.
PLAIN: Mapping[Remedy, str] = {
    "level": "give its level, such as {value}",
    "coarse": "coarse noise",
    "region": "a noise region",
    "this-region": "a noise region at {value}",
    "stronger": "a strength of {value}",
    "floats": "write float32{value}",
    "series": "time as a series",
    "resume": "resuming",
}
_REMEDY = re.compile(rf"\{{({'|'.join(PLAIN)})\}}")
_HALF = "half size"
_WORDS = {
    "members": "finding similar patches",
    "clusters": "grouping patches",
    "estimates": "denoising patches",
    "averages": "averaging patches",
    "aggregation": "putting patches together",
    "weights": "comparing pixels",
    "steering": "following edges",
    "threshold": "first filter",
    "wiener": "second filter",
    "eigenvectors": "making the filter",
    "regions": "denoising regions",
    "phases": "second estimate",
    "noise": "finding the noise",
    "survey": "looking at the whole",
}
_NOTHING = 2e-4  # of the range: 0.05 grey levels of 255
_LITTLE = 0.5  # of the noise that was found
_DOUBTFUL = 0.5  # confidence
_HALF_SURE = (
    "noise is hard to tell from texture here, so look at what was removed; {region} measures it on flat "
    "ground"
)
_MANY = 0.1  # of the pixels have exactly one value at an end of the range


class UsageError(ValueError):
    """Something was asked for that does not exist, or cannot be done; the message is one line.

    It names things, not controls ("leave the dtype out"); ``options`` are what it is about, for surfaces
    that name their controls: "dtype".
    """

    def __init__(self, message: str, *options: str) -> None:
        super().__init__(message)
        self.options = options


@dataclass(frozen=True)
class JobWarning:
    """A warning about a result.

    Examples
    --------
    >>> warning = JobWarning("texture", "it may be texture; {coarse} removes all of it")
    >>> str(warning), warning.remedies
    ('it may be texture; coarse noise removes all of it', ('coarse',))
    >>> warning.say({"coarse": "Coarse noise"})
    'it may be texture; Coarse noise removes all of it'
    """

    code: Code  # what it is about; what a program should compare
    message: str  # one line, with remedies in braces
    value: str = ""  # what goes with its remedy: a number, or where to write

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        """What may help, in the order in which it is named."""
        return tuple(_REMEDY.findall(self.message))

    def say(self, words: Mapping[Remedy, str]) -> str:
        """Return the message with remedies in these words."""

        def name(found: re.Match[str]) -> str:
            remedy: Remedy = found[1]  # type: ignore[assignment]
            return words[remedy].replace("{value}", self.value)

        return _REMEDY.sub(name, self.message)

    def __str__(self) -> str:
        return self.say(PLAIN)


def plain_stage(what: str) -> str:
    """Return the name of a step in plain words; what is not known stays as it is.

    Examples
    --------
    >>> plain_stage("a.png: block 2 of 6: half size: half size: clusters, step 1 of 2")
    'a.png: block 2 of 6: quarter size: grouping patches, step 1 of 2'
    """
    parts = what.split(": ")
    step, comma, rest = parts[-1].partition(", ")
    named = [part for part in parts[:-1] if part != _HALF]
    n_halved = len(parts) - 1 - len(named)
    size = {0: [], 1: [_HALF], 2: ["quarter size"]}.get(n_halved, [f"1/{2**n_halved} of the size"])
    return ": ".join(
        [*(_WORDS.get(part, part) for part in named), *size, _WORDS.get(step, step) + comma + rest]
    )


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
