"""Errors that are the user's to repair, and signals that end things as Ctrl-C does."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_NAMES = ("SIGTERM", "SIGHUP")  # a batch system, a closed terminal; Windows has no SIGHUP


class UsageError(ValueError):
    """Something was asked for that does not exist, or cannot be done; the message is one line.

    It names things, not controls ("leave the dtype out"); ``options`` are what it is about, for surfaces
    that name their controls: "dtype".
    """

    def __init__(self, message: str, *options: str) -> None:
        super().__init__(message)
        self.options = options


class EndedBySignal(KeyboardInterrupt):
    """What these signals raise; whoever cleans up after Ctrl-C cleans up after them."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def ending_on_signals() -> Iterator[None]:
    """Raise :class:`EndedBySignal` in the main thread for the first such signal, and ignore others.

    A signal that was ignored before, as ``nohup`` does it, stays so.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    known = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]
    handled = [number for number in known if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.getsignal(number) for number in handled}

    def end(number: int, _: object) -> None:
        for each in handled:  # another must not disturb the cleaning up
            signal.signal(each, signal.SIG_IGN)
        raise EndedBySignal(number)

    try:
        for number in handled:
            signal.signal(number, end)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
