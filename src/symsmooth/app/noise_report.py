"""The noise that was found, or given, in plain words, and what looks doubtful about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .job_warnings import JobWarning
from .noise_kinds import WORDS

if TYPE_CHECKING:
    from ..noise import NoiseModel

_NOTHING = 2e-4  # of the range: 0.05 grey levels of 255
_DOUBTFUL = 0.5  # confidence in coarse noise
_HALF_SURE = (
    "what looks like coarse noise may be texture, so only some of it was removed; "
    "{coarse} removes all of it"
)
_MANY = 0.1  # of the pixels have exactly one value at an end of the range


@dataclass(frozen=True)
class NoiseDescription:
    """NoiseDescription in words, and as fields for a script."""

    words: str  # "white noise, about 5.2 of 255"
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
    model: NoiseModel, pixels: Any, span: float, *, given: bool, assumed: bool
) -> NoiseDescription:
    """Say what a model is.

    Parameters
    ----------
    model : NoiseModel
    pixels : ndarray
        Of the image, or a sample of it.
    span : float
        How far apart pixels can be.
    given : bool
        Whether the user said so.
    assumed : bool
        Whether the method knows of no other noise.
    """
    kind, level, more = _kind_and_level(model, pixels)
    fields = {"kind": model.kind, "level": level, "estimated": not given, **more}
    finding = getattr(model, "finding", None)
    if finding is not None and not given:
        fields |= {"confidence": finding.confidence, "reasons": list(finding.reasons)}
        fields |= {"suspected": finding.suspected} if finding.suspected else {}
    amount = f"{level:.3g} of {span:.6g}" if span else f"{level:.3g}"
    if level == 0.0 and not given:
        return NoiseDescription("no noise found", "none", str(model), fields)
    if given:
        return NoiseDescription(
            f"{kind} noise, {amount} (given)", f"{kind}, {level:.4g}", str(model), fields
        )
    words = f"{kind} noise, about {amount}"
    if model.kind == "poisson-gaussian":
        words = f"{kind} noise, {_line(model)}, about {amount} at the median pixel"
    elif model.kind == "uneven":
        words += " (it differs from channel to channel)"
    elif assumed:
        words = f"assumed {words}"
    return NoiseDescription(words, f"{kind}, {level:.4g}", str(model), fields)


def _kind_and_level(model: Any, pixels: Any) -> tuple[str, float, dict[str, object]]:
    """Return a model's kind in plain words, its level and what else it has."""
    import numpy as np

    from ..noise.spectrum import coarseness

    if model.kind == "correlated":
        levels = np.sqrt(model.variances.mean(axis=(1, 2)))
        more = {"levels": levels.tolist(), "coarseness": float(coarseness(model.variances))}
        return f"{WORDS[model.kind]} (correlated)", float(model.sigma), more
    if model.kind == "poisson-gaussian":
        middle = float(np.median(pixels[np.isfinite(pixels)]))
        line = np.array(model.gain) * middle + np.array(model.offset)
        more = {"gain": list(map(float, model.gain)), "offset": list(map(float, model.offset))}
        return f"{WORDS[model.kind]} (Poisson)", float(np.sqrt(np.maximum(line, 0.0).mean())), more
    if model.kind == "uneven":
        level = float(np.sqrt(np.mean(np.square(model.levels, dtype=np.float64))))
        return WORDS["gaussian"], level, {"levels": model.levels.tolist()}
    return WORDS["rician" if model.kind == "rician" else "gaussian"], float(model.sigma), {}


def _line(model: Any) -> str:
    """Return how the variance of photon noise grows, the mean of the channels."""
    gain = sum(model.gain) / len(model.gain)
    offset = sum(model.offset) / len(model.offset)
    return f"variance {gain:.3g} x signal {'-' if offset < 0 else '+'} {abs(offset):.3g}"


def find_warnings(
    noise: NoiseDescription, pixels: Any, span: float, removed: float, sigma: float | None
) -> list[JobWarning]:
    """Return questions and warnings for the user, one line each.

    Parameters
    ----------
    noise : Noise
    pixels : ndarray
        Of the image, or a sample of it.
    span : float
        How far apart pixels can be.
    removed : float
        Root mean square of the change.
    sigma : float or None
        As given by the user.
    """
    import numpy as np

    from ..noise.level import question_units

    if sigma is not None:
        question = question_units(pixels, sigma)
        return [JobWarning("units", question)] if question else []
    known = pixels[np.isfinite(pixels)]
    if not known.size or known.min() == known.max():
        return []
    span = min(span, float(np.subtract(known.max(), known.min(), dtype=np.float64)))
    if removed >= _NOTHING * span:
        confidence = noise.fields.get("confidence", 1.0)
        if noise.fields["kind"] != "correlated" or not isinstance(confidence, float):
            return []
        return [JobWarning("texture", _HALF_SURE)] if confidence < _DOUBTFUL else []
    found = "no noise was found" if noise.level == 0.0 else f"{noise.words} was found"
    remedy = "{level}"
    suspected = noise.fields.get("suspected", 0.0)
    if isinstance(suspected, float) and suspected > _NOTHING * span:
        remedy = (
            f"{{coarse}} takes what looks like texture, about {suspected:.2g}, for noise; "
            "{region} measures it on flat ground"
        )
    text = f"almost nothing was removed: {found}{_why(known)}; if you see noise, {remedy}"
    return [JobWarning("almost-nothing", text, f"{0.02 * span:.2g}")]


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
