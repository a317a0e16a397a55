"""A model of noise as text: JSON that people can read, exact to the last bit, and not trusted when read.

``docs/noise.md`` says what each field means.  Numbers are in the units of the pixels that the model was
found in; ``about`` is for people alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..core.image import Array
from .evidence import SIDE
from .levels import Constant, Curve, Level, Photons, PlaceCurve
from .model import Finding, Noise, NoiseModel, PixelRange
from .rician import Rician

FORMAT, VERSION = "symsmooth noise", 1
MAX_CHARACTERS = 2**24  # of the text: a model of hundreds of mixed channels has a tenth of that
_LARGEST = 1e100  # squares of larger numbers, or of smaller ones than 1 over it, are no numbers
_ORTHONORMAL = 1e-4  # how far the columns of a mix may be from that
_FIELDS = {"format", "version", "about", "pixels", "level", "mix", "spectrum", "margin", "finding"}
# Laws of the level, and of each the fields that it is kept in, with what they are called in its class.
_LAWS: dict[str, tuple[type, dict[str, str]]] = {
    "constant": (Constant, {"sigma": "values"}),
    "photons": (Photons, {"gain": "gain", "offset": "offset", "black": "black"}),
    "curve": (Curve, {"brightness": "brightness", "sigma": "level", "span": "span"}),
    "place curve": (PlaceCurve, {"brightness": "brightness", "sigma": "level"}),
    "rician": (Rician, {"sigma": "sigma", "zero": "zero"}),
}


def to_json(model: Noise) -> str:
    """Return a model as text that :func:`from_json` reads.

    Examples
    --------
    >>> from symsmooth.noise import White
    >>> from_json(to_json(White(5.0))) == White(5.0)
    True
    """
    stored: dict[str, Any] = {"format": FORMAT, "version": VERSION, "about": str(model)}
    about, finding = model.pixels, model.finding
    stored["pixels"] = None if about is None else dict(vars(about))
    if isinstance(model, Rician):
        stored["level"] = _level_fields(model)
    elif isinstance(model, NoiseModel):
        stored["level"] = _level_fields(model.level)
        parts = {"mix": model.transform, "spectrum": model.spectrum, "margin": model.margin}
        stored |= {name: None if part is None else part.tolist() for name, part in parts.items()}
    else:
        raise TypeError(f"this is not a noise model but {type(model).__name__}")
    if finding is not None:
        stored["finding"] = {**vars(finding), "reasons": list(finding.reasons)}
    text = _written(stored, 0) + "\n"
    from_json(text)  # what cannot be read is not written
    return text


def _level_fields(level: Level | Rician) -> dict[str, Any]:
    """Return a level as fields of JSON; what is no end of a span is null."""
    if isinstance(level, Constant) and level.values.ndim > 1:
        raise ValueError(
            "a map of noise levels is that of one picture: keep it as an array and give it as sigma"
        )
    law, names = next((law, names) for law, (own, names) in _LAWS.items() if type(level) is own)
    fields: dict[str, Any] = {"law": law}
    for name, own in names.items():
        values = np.asarray(getattr(level, own), float)
        fields[name] = np.where(np.isfinite(values), values.astype(object), np.array(None)).tolist()
    return fields


def _written(value: Any, depth: int) -> str:
    """Return JSON with a line for each field and for each row of numbers."""
    before, end = "  " * (depth + 1), "\n" + "  " * depth
    if isinstance(value, dict):
        parts = [f"{before}{json.dumps(k)}: {_written(v, depth + 1)}" for k, v in value.items()]
        return "{\n" + ",\n".join(parts) + end + "}"
    if isinstance(value, list) and any(isinstance(each, list | str) for each in value):
        parts = [before + _written(each, depth + 1) for each in value]
        return "[\n" + ",\n".join(parts) + end + "]"
    return json.dumps(value, allow_nan=False)


def from_json(text: str) -> Noise:
    """Return the model that :func:`to_json` wrote.

    Raises
    ------
    ValueError
        If it is none, or was changed to what cannot be one; the message is one line.
    """
    if len(text) > MAX_CHARACTERS:
        raise ValueError(f"is no noise model: it has more than {MAX_CHARACTERS} characters")
    try:
        stored = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"is no noise model: {_first_line(error)}") from error
    if not isinstance(stored, dict) or stored.get("format") != FORMAT:
        raise ValueError(f'is no noise model: it does not say "format": "{FORMAT}"')
    version = stored.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise ValueError("is a damaged noise model: version must be a whole number from 1")
    if version > VERSION:
        raise ValueError(
            f"is a noise model of version {version}, and this symsmooth knows {VERSION}; update it"
        )
    try:
        return _model(stored)
    except ValueError as error:
        raise ValueError(f"is a damaged noise model: {_first_line(error)}") from error


def _refuse_constant(word: str) -> None:
    raise ValueError(f"{word} is not a number that a noise model may hold")


def _first_line(error: BaseException) -> str:
    if isinstance(error, RecursionError):
        return "its lists are nested too deep"
    return " ".join(str(error).split())[:200]


def _model(stored: Mapping[str, Any]) -> Noise:
    """Check all fields and return the model they make."""
    unknown = sorted(stored.keys() - _FIELDS)
    if unknown:
        raise ValueError(f"it has an unknown field {unknown[0]!r:.40}")
    level = _mapping("level", stored.get("level"))
    law = level.get("law")
    if not isinstance(law, str) or law not in _LAWS:
        raise ValueError(f"level has no law that is one of {', '.join(_LAWS)}")
    names = _LAWS[law][1]
    if level.keys() != {"law", *names}:
        raise ValueError(f"a level of the law {law} has the fields {', '.join(names)}")
    extra: dict[str, Any] = {
        "finding": _finding(stored.get("finding")),
        "pixels": _pixels(stored.get("pixels")),
    }
    if law == "rician":
        numbers = {name: float(_numbers(name, level[name], 0)) for name in names}
        if any(stored.get(name) is not None for name in ("mix", "spectrum", "margin")):
            raise ValueError("Rician noise has no mix, spectrum or margin")
        return Rician(_positive("sigma", numbers["sigma"]), numbers["zero"], **extra)
    mix, spectrum, margin = (stored.get(name) for name in ("mix", "spectrum", "margin"))
    model = NoiseModel(
        _level(law, level),
        None if mix is None else _mix(mix),
        None if spectrum is None else _spectrum(spectrum),
        None if margin is None else _positive("margin", _numbers("margin", margin, 1)),
        **extra,
    )
    _check_together(model)
    return model


def _level(law: str, fields: Mapping[str, Any]) -> Level:
    """Return the level of a law from its fields."""
    if law == "constant":
        sigma = fields["sigma"]
        if isinstance(sigma, list):
            return Constant(_positive("sigma", _numbers("sigma", sigma, 1)))
        level = _numbers("sigma", sigma, 0)
        return Constant(level if level == 0.0 else _positive("sigma", level))
    if law == "photons":
        lines = [_numbers(name, fields[name], 1) for name in ("gain", "offset", "black")]
        if len(set(map(len, lines))) != 1:
            raise ValueError("gain, offset and black must have one number for each channel")
        _positive("gain", lines[0])
        return Photons(*(tuple(line.tolist()) for line in lines))
    ndim = 2 if law == "curve" else 1
    x = _numbers("brightness", fields["brightness"], ndim)
    sigma = _positive("sigma", _numbers("sigma", fields["sigma"], ndim))
    if x.shape != sigma.shape or x.shape[-1] < 2 or not (np.diff(x) > 0).all():
        raise ValueError("brightness must grow, with a sigma for each")
    if law == "place curve":
        return PlaceCurve(x, sigma)
    span = _span(fields["span"])
    if span.shape != (len(x), 2) or not (span[:, 0] < span[:, 1]).all():
        raise ValueError("span must be the least and the largest pixel of each channel")
    return Curve(x, sigma, span)


def _span(values: Any) -> Array:
    """Return ends of ranges; null is no end."""
    if not isinstance(values, list) or not all(isinstance(v, list) and len(v) == 2 for v in values):
        raise ValueError("span must be the least and the largest pixel of each channel")
    ends = [[-_LARGEST if a is None else a, _LARGEST if b is None else b] for a, b in values]
    found = _numbers("span", ends, 2)
    return np.where(np.abs(found) >= _LARGEST, np.copysign(np.inf, found), found)


def _mix(values: Any) -> Array:
    matrix = _numbers("mix", values, 2)
    n_rows, n_columns = matrix.shape
    if n_rows != n_columns or np.abs(matrix.T @ matrix - np.eye(n_columns)).max() > _ORTHONORMAL:
        raise ValueError("mix must be square with orthonormal columns")
    return matrix


def _spectrum(values: Any) -> Array:
    energies = _numbers("spectrum", values, 3)
    if energies.shape[1:] != (SIDE, SIDE):
        raise ValueError(f"spectrum must be {SIDE} x {SIDE} energies for each channel")
    if not ((energies >= 0).all() and (energies.mean(axis=(1, 2)) > 1 / _LARGEST).all()):
        raise ValueError("spectrum must have no negative energy, and some in each channel")
    return energies


def _check_together(model: NoiseModel) -> None:
    """Refuse parts that are about different numbers of channels."""
    arrays = (model.transform, model.spectrum, model.margin)
    counts = {len(values) for values in arrays if values is not None}
    if model.level.n_channels is not None:
        counts.add(model.level.n_channels)
    if len(counts) > 1:
        numbers = " and ".join(map(str, sorted(counts)))
        raise ValueError(f"its parts have different numbers of channels: {numbers}")
    if counts and isinstance(model.level, Constant) and not model.level.values.any():
        raise ValueError("noise of level 0 has no channels, mix or spectrum")


def _numbers(name: str, values: Any, ndim: int) -> Array:
    """Return finite numbers of so many axes, not empty."""
    if not _only_numbers(values):
        raise ValueError(f"{name} must be made of numbers")
    try:
        found = np.array(values, np.float64)
    except (ValueError, OverflowError, TypeError):
        raise ValueError(f"{name} must have rows of one length") from None
    if found.ndim != ndim or found.size == 0:
        raise ValueError(f"{name} must be {('a number', 'a list', 'a table', 'tables')[ndim]}")
    if not (np.abs(found) <= _LARGEST).all():
        raise ValueError(f"{name} must be finite, at most {_LARGEST:g}")
    return found


def _only_numbers(values: Any) -> bool:
    if isinstance(values, list):
        return all(map(_only_numbers, values))
    return isinstance(values, int | float) and not isinstance(values, bool)


def _positive(name: str, values: Any) -> Any:
    if not (np.asarray(values) >= 1 / _LARGEST).all():
        raise ValueError(f"{name} must be positive")
    return values


def _mapping(name: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{name} is missing")
    return value


def _finding(stored: Any) -> Finding | None:
    if stored is None:
        return None
    found = _mapping("finding", stored)
    reasons = found.get("reasons")
    if found.keys() != {"confidence", "reasons", "suspected"} or not isinstance(reasons, list):
        raise ValueError("finding has the fields confidence, reasons, suspected")
    if not all(isinstance(reason, str) for reason in reasons):
        raise ValueError("reasons must be words")
    sure, more = (float(_numbers(name, found[name], 0)) for name in ("confidence", "suspected"))
    return Finding(sure, tuple(reasons), more)


def _pixels(stored: Any) -> PixelRange | None:
    if stored is None:
        return None
    found = _mapping("pixels", stored)
    if found.keys() != {"dtype", "low", "high"}:
        raise ValueError("pixels has the fields dtype, low, high")
    try:
        dtype = np.dtype(str(found["dtype"])).name
    except TypeError:
        dtype = ""
    if dtype != found["dtype"] or np.dtype(dtype).kind not in "uif":
        raise ValueError("dtype must be one of NumPy's, such as uint16")
    return PixelRange(dtype, *(float(_numbers(name, found[name], 0)) for name in ("low", "high")))
