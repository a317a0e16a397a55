"""What is told of a wrong request."""

from __future__ import annotations


class UsageError(ValueError):
    """The command line asks for something that does not exist; the message is one line."""
