"""Checks of the options that methods share: what was wrong, what was given, what would work."""

from __future__ import annotations

import numbers

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


def make_rng(rng: int | np.random.Generator | None) -> np.random.Generator:
    """Return a generator; None is the fixed seed 0, so that results can be repeated."""
    return np.random.default_rng(0 if rng is None else rng)
