"""Methods that are none, in the place of the real ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from symsmooth import methods
from symsmooth.methods import Method


def use_methods(
    monkeypatch: pytest.MonkeyPatch, functions: dict[str, Callable[..., Any] | Method]
) -> None:
    """Let these, and no others, be the methods there are."""
    made = {
        name: given if isinstance(given, Method) else Method(name, given)
        for name, given in functions.items()
    }
    monkeypatch.setattr(methods, "METHODS", made)
