"""What is being done and what came of it, in plain words; methods name their steps in technical terms."""

from __future__ import annotations

from collections.abc import Mapping

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


def plain_parameters(parameters: Mapping[str, object]) -> list[str]:
    """Return what was chosen and found, each in a few words; how the tone was put right is no news.

    Examples
    --------
    >>> plain_parameters({"quality": "fast", "strength": 0.70001, "tone": 0.3861, "hot_pixels": 57})
    ['quality fast', 'strength 0.7', '57 hot pixels replaced']
    """
    found = []
    for name, value in parameters.items():
        if name == "hot_pixels":
            found.append(f"{value} hot pixel{'' if value == 1 else 's'} replaced")
        elif name == "n_specks":
            found.append(f"{value} specks replaced")
        elif name != "tone":
            found.append(f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}")
    return found


def tone_decision(parameters: Mapping[str, object]) -> list[str]:
    """Return a line about the tone, if there is anything to say.

    Examples
    --------
    >>> tone_decision({"tone": 0.386})
    ['tone: noise darkens the shadows of pictures with a tone curve; 39 % of that was put right']
    """
    tone = parameters.get("tone")
    if not isinstance(tone, float) or tone <= 0.0:
        return []
    share = f"{100 * tone:.0f} % of that was put right"
    return [f"tone: noise darkens the shadows of pictures with a tone curve; {share}"]
