"""Warnings for whoever calls this package: each points at their line, and has a class to be filtered by."""

from __future__ import annotations

import sys
import warnings


class UnitsWarning(UserWarning):
    """A noise level that seems to be in other units than the pixels."""


def warn_user(message: str, category: type[UserWarning] = UserWarning) -> None:
    """Give a warning that points at the line outside this package that called it."""
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and _is_ours(frame.f_globals.get("__name__", "")):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] == __name__.partition(".")[0]
