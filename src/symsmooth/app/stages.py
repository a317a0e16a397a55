"""What is being done, in plain words; methods name their steps in technical terms."""

from __future__ import annotations

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
