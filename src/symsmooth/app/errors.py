"""Errors that are the user's to repair."""

from __future__ import annotations


class UsageError(ValueError):
    """The command line asks for something that does not exist; the message is one line."""
