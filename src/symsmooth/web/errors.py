"""What visitors read when something cannot be done."""

from __future__ import annotations


class SessionError(ValueError):
    """Something a visitor should know, in one sentence."""


class RefusedError(Exception):
    """A request that is not answered: a status and why."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status, self.text = status, text
