"""Checks of the options that methods share: what was wrong, what was given, what would work."""

from __future__ import annotations

import numbers
from typing import Any, TypeGuard

import numpy as np


def check_odd(name: str, value: int) -> None:
    """Refuse anything but an odd whole number."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 1:
        raise ValueError(f"{name} must be an odd whole number, got {value!r}; use 3 or 5")
    if value % 2 == 0:
        raise ValueError(f"{name} must be odd, got {value}; use {max(value - 1, 1)} or {value + 1}")


def check_positive(name: str, value: float | None) -> None:
    """Refuse numbers that are not positive and finite; None means chosen for you."""
    if value is not None and not (isinstance(value, numbers.Real) and 0 < value < np.inf):
        raise ValueError(
            f"{name} must be a positive number, got {value!r}; use None to have it chosen"
        )


def check_at_least_one(name: str, value: int | None) -> None:
    """Refuse counts below one; None means chosen for you."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 1:
        raise ValueError(
            f"{name} must be a whole number of at least 1, got {value!r}; use None to have it chosen"
        )


def check_one_of(name: str, value: object, choices: tuple[str, ...]) -> None:
    """Refuse what is not one of the choices."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}, got {value!r}")


def check_strength(strength: object, name: str = "strength", *, or_zero: bool = False) -> None:
    """Refuse what cannot multiply a noise level sensibly."""
    if not (_is_number(strength) and (0.01 <= strength <= 100 or (or_zero and strength == 0))):
        zero = ", 0 to leave it as it is" if or_zero else ""
        raise ValueError(
            f"{name} must be a number from 0.01 to 100, got {strength!r}; "
            f"use 1 for the noise as it is, less to keep more detail, more for a smoother image{zero}"
        )


def split_strength(strength: Any, chroma_strength: Any = None) -> tuple[float, float]:
    """Return the strengths for luminance and for colour; one number is for both."""
    luma, chroma = strength, strength if chroma_strength is None else chroma_strength
    if isinstance(strength, (tuple, list)):
        if len(strength) != 2:
            raise ValueError(
                f"strength must be a number or two, for luminance and for colour, got {strength!r}"
            )
        if chroma_strength is not None:
            raise ValueError("strength is given for colour already; leave out chroma_strength")
        luma, chroma = strength
    name = "strength" if chroma_strength is None else "chroma_strength"
    both = bool(luma == chroma)  # nothing at all would be done with 0
    check_strength(luma, or_zero=not both)
    check_strength(chroma, name, or_zero=not both)
    return float(luma), float(chroma)


def check_share(name: str, value: object) -> None:
    """Refuse what is no number from 0 to 1."""
    if not (_is_number(value) and 0 <= value <= 1):
        raise ValueError(
            f"{name} must be a number from 0 to 1, got {value!r}; use 0 for none of it, 1 for all"
        )


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def make_rng(rng: int | np.random.Generator | None) -> np.random.Generator:
    """Return a generator; None is the fixed seed 0, so that results can be repeated."""
    if isinstance(rng, np.random.Generator):
        return rng
    if rng is None:
        return np.random.default_rng(0)
    if isinstance(rng, bool) or not isinstance(rng, numbers.Integral) or rng < 0:
        raise TypeError(
            f"rng must be a whole number of 0 or more, a numpy.random.Generator or None, got {rng!r}"
        )
    return np.random.default_rng(int(rng))
