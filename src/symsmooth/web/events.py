"""What the page receives while it is open: its state when that changes, progress while something runs."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Any

from .controller import Controller
from .pictures import progress_of
from .sessions import Session

_TICK = 0.1  # seconds between two checks
_SIGN = 15.0  # seconds after which a silent stream shows that it is still there


def state_of(controller: Controller, session: Session) -> dict[str, Any]:
    """Return all that the page shows."""
    return {
        "visit": session.token,
        "version": session.version,
        "pictures": [picture.as_json() for picture in session.pictures.values()],
        "models": [model.as_json() for model in session.models.values()],
        "progress": progress_in(controller, session),
    }


def progress_in(controller: Controller, session: Session) -> dict[str, Any]:
    """Return how far the work on each picture is."""

    def ahead(run: Any) -> int:
        return max(queue.runs.ahead(run) for queue in (controller.readers, controller.runners))

    found = {id: progress_of(picture, ahead) for id, picture in session.pictures.items()}
    return {id: progress for id, progress in found.items() if progress is not None}


async def stream(controller: Controller, session: Session) -> AsyncIterator[str]:
    """Send a tab what happens, as server-sent events, until it is closed or the visit ends."""
    with controller.sessions.tab(session):
        version, sent, last = -1, "", time.monotonic()
        while session.is_open:
            if session.version != version:
                version = session.version
                yield _event("state", state_of(controller, session))
                sent, last = "", time.monotonic()
            else:
                now = json.dumps(progress_in(controller, session))
                if now != sent:
                    sent, last = now, time.monotonic()
                    yield f"event: progress\ndata: {now}\n\n"
                elif time.monotonic() - last > _SIGN:
                    last = time.monotonic()
                    yield ": here\n\n"
            await asyncio.sleep(_TICK)
        yield _event("gone", {})


def _event(kind: str, data: Any) -> str:
    return f"event: {kind}\ndata: {json.dumps(data)}\n\n"
