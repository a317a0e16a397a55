"""What the axes of a layer are: by their labels, or as the user says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

Role = Literal["plane", "one by one", "volume", "series", "channels"]

CHOICES: tuple[Role, ...] = ("one by one", "volume", "series", "channels")
"""What an axis can be that is not one of the two of a plane."""

_DEPTH = {"z", "depth", "plane", "slice"}
_CHANNELS = {"c", "ch", "channel", "channels", "band", "wavelength"}
_LETTERS = {
    "one by one": "Q",
    "volume": "Z",
    "series": "T",
    "channels": "C",
}  # as files name their axes


def guess_roles(labels: Sequence[str]) -> tuple[Role, ...]:
    """Return what each axis is, colours of an RGB layer left out.

    Axes that are called y and x make the plane, else the last two do.  Depth makes a volume, channels are
    denoised together; time, and what has no name, is done one by one unless the user makes it a series.

    Examples
    --------
    >>> guess_roles(("t", "z", "y", "x"))
    ('one by one', 'volume', 'plane', 'plane')
    >>> guess_roles(("-3", "-2", "-1"))
    ('one by one', 'plane', 'plane')
    """
    names = [label.strip().lower() for label in labels]
    plane = {len(names) - 2, len(names) - 1}
    if names.count("y") == names.count("x") == 1:
        plane = {names.index("y"), names.index("x")}
    roles: list[Role] = []
    for axis, name in enumerate(names):
        role: Role = "one by one"
        if axis in plane:
            role = "plane"
        elif name in _DEPTH and "volume" not in roles:
            role = "volume"
        elif name in _CHANNELS and "channels" not in roles:
            role = "channels"
        roles.append(role)
    return tuple(roles)


def letters_of(roles: Sequence[Role], rgb: bool) -> str:
    """Return a letter for each axis as image files have them, the colours of an RGB layer last.

    Examples
    --------
    >>> letters_of(("one by one", "volume", "plane", "plane"), rgb=False)
    'QZYX'
    """
    for role in ("volume", "series", "channels"):
        if roles.count(role) + (rgb and role == "channels") > 1:
            raise ValueError(f"only one axis can be {role}; make the others one by one")
    if "volume" in roles and "series" in roles:
        raise ValueError("a series has flat frames; make the axis of the volume one by one")
    plane = iter("YX")
    letters = "".join(next(plane) if role == "plane" else _LETTERS[role] for role in roles)
    return letters + "C" * rgb
