"""What a person reads when something cannot be done."""

from __future__ import annotations


class PageError(ValueError):
    """Something to be told in one sentence, with the status of the answer."""

    def __init__(self, text: str, status: int = 422) -> None:
        super().__init__(text)
        self.status = status


def nothing_here() -> PageError:
    """Return what is said of addresses at which there is nothing."""
    return PageError("There is nothing here.", 404)
