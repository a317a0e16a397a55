"""Connections: each brings a request soon, and no address has all of them.

uvicorn waits for the first line of a request for as long as somebody holds a connection open, and there are
only so many connections.  Here one on which nothing is asked is closed, and those of one address are
counted.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any, ClassVar

from uvicorn.protocols.http.h11_impl import H11Protocol

SECONDS = 10.0  # without a request after which a connection is closed
OF_ADDRESS = 500  # of one address: many people may share one, each with a few


class Connection(H11Protocol):
    """One connection of a browser."""

    _of_address: ClassVar[Counter[str]] = Counter()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin, unless there are too many from there."""
        super().connection_made(transport)
        self._address = str((transport.get_extra_info("peername") or ("",))[0])
        self._of_address[self._address] += 1
        self._last_request: Any = None
        self._idle_check = self.loop.call_later(SECONDS, self._close_if_idle)
        if self._of_address[self._address] > OF_ADDRESS:
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Count one less."""
        self._idle_check.cancel()
        self._of_address[self._address] -= 1
        if not self._of_address[self._address]:
            del self._of_address[self._address]
        super().connection_lost(exc)

    def _close_if_idle(self) -> None:
        """Close a connection on which no request was begun since the last check, and none is answered."""
        request = self.cycle
        if request is self._last_request and (request is None or request.response_complete):
            self.transport.close()
            return
        self._last_request = request
        self._idle_check = self.loop.call_later(SECONDS, self._close_if_idle)
