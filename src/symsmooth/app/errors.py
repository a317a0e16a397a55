"""Errors that are the user's to repair."""

from __future__ import annotations


class UsageError(ValueError):
    """Something was asked for that does not exist, or cannot be done; the message is one line.

    Parameters
    ----------
    message : str
        Names things, not controls: "leave the dtype out".
    *options : str
        What it is about, for surfaces that name their controls: "dtype".
    """

    def __init__(self, message: str, *options: str) -> None:
        super().__init__(message)
        self.options = options
