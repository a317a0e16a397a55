"""What the controls do, for every visitor."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import gradio as gr

from ..core.parallel import Cancelled
from ..methods import METHODS
from . import html, tasks
from .crew import Crew
from .examples import write_example
from .runs import Run
from .sessions import Session, SessionError, Sessions
from .uploads import Uploads

MIN_METHODS, MAX_METHODS = 2, 4  # methods that are compared
_TICK = 0.15  # seconds between two looks at a run
_PAUSE = 0.35  # seconds a slider must rest before its run begins
_LOG = logging.getLogger(__name__)

Shown = tuple[Any, Any, Any, Any]
Looked = tuple[Any, ...]
File = dict[str, Any] | None  # as the guard lets it through: "path" is the token of an upload
# The parts of the page that change, in the order in which handlers return them.
SHOWN = ("viewer", "status", "downloads", "cancel")
LOOKED = ("drop", "example", "found", "sigma", "estimated", *SHOWN, "clean_told")


class Handlers:
    """What the controls do, for every visitor.

    Parameters
    ----------
    sessions, uploads
        Whose files are whose.
    readers, runners : Crew
        Who looks at pictures, and who runs methods.
    workers : int or None
        Threads of a run.
    """

    def __init__(
        self,
        sessions: Sessions,
        uploads: Uploads,
        readers: Crew,
        runners: Crew,
        workers: int | None,
    ) -> None:
        self.sessions, self.uploads = sessions, uploads
        self.readers, self.runners, self.workers = readers, runners, workers
        self.max_bytes = tasks.UNPACKED * uploads.limits.max_bytes

    def known(self, request: gr.Request) -> Session | None:
        """Return the session of whoever asks, if it has brought a picture."""
        return self.sessions.known(request.cookies, request.session_hash)

    def begin(self, request: gr.Request) -> Session:
        """Return the session of whoever brings a picture."""
        address = request.client.host if request.client else ""
        session = self.sessions.of(request.cookies, request.session_hash, address)
        self.uploads.check_room(session.folder)
        return session

    async def drop(self, file: File, request: gr.Request) -> AsyncIterator[Looked]:
        """Take a picture that was uploaded and look into it."""
        async for shown in self._look(
            request, "", lambda session: (self._take(session, file, "dropped"), None)
        ):
            yield shown

    async def example(self, name: str, request: gr.Request) -> AsyncIterator[Looked]:
        """Take an example, and what it was before noise came."""
        if name:
            async for shown in self._look(
                request, name, lambda session: write_example(name, session.new_folder("example"))
            ):
                yield shown

    async def _look(
        self, request: gr.Request, example: str, take: Callable[[Session], tuple[Path, Path | None]]
    ) -> AsyncIterator[Looked]:
        """Look into a picture and tell what was found."""
        session = place = None
        yield _status_only(html.message("Looking at the picture", "plain"))
        try:
            session = self.begin(request)
            path, clean = await asyncio.to_thread(take, session)
            place = path.parent
            picture, page = await self._read(session, tasks.look, path)
        except Cancelled:  # another picture came in its place, or the tab was closed
            yield _status_only(gr.skip())
            return
        except Exception as error:
            yield _status_only(html.message(_message(error, session), "bad"))
            return
        else:
            session.asked += 1  # what runs is of no interest any more
            session.stop()
            session.picture, session.reference = picture, clean
            session.files.clear()
            session.show(page)
        finally:
            if session is not None and place is not None:
                session.tidy(place)
        found = picture.found.level
        top = _round_up(4 * found or picture.reach / 10)
        level = round(found / top * 400) * top / 400
        yield (
            None,
            example,
            html.noise_of(picture),
            gr.update(maximum=top, step=top / 400, value=level),
            True,
            html.viewer(session),
            html.message("Ready. Choose a method and press Denoise.", "plain"),
            "",
            gr.update(interactive=False),
            html.reference(clean),
        )

    async def reference(self, file: File, request: gr.Request) -> tuple[None, Any]:
        """Take the picture without noise, if it is known."""
        session = path = None
        try:
            session = self.begin(request)
            path = self._take(session, file, "reference")
            await self._read(session, tasks.look_at_reference, path)
            session.reference = path
        except Cancelled:
            return None, gr.skip()
        except Exception as error:
            return None, html.message(_message(error, session), "bad")
        finally:
            if session is not None and path is not None:
                session.tidy(path.parent)
        return None, html.reference(path)

    def _take(self, session: Session, file: File, kind: str) -> Path:
        """Move an uploaded file to where only its session reaches it."""
        token = None if file is None else file.get("path")
        return self.uploads.take(session.owner, token, lambda name: session.place(name, kind))

    async def _read(self, session: Session, work: Callable[..., Any], path: Path) -> Any:
        """Have a file looked at, in place of one that is being looked at in the same way."""
        if work in session.readings:
            session.readings[work].stop()
        seconds = tasks.READING_SECONDS + path.stat().st_size / tasks.READING_BYTES
        run = self.readers.submit(work, path, self.max_bytes, group=session.group, seconds=seconds)
        session.readings[work] = run
        if not session.here:  # it ended while the file was taken
            run.stop()
        while not run.finished:
            await asyncio.sleep(_TICK / 3)
        return run.outcome()

    async def denoise(
        self, method: str, quality: str, estimated: bool, sigma: float, strength: float,
        looking: str, request: gr.Request,
    ) -> AsyncIterator[Shown]:  # fmt: skip
        """Run a method, on what one looks at and then on the whole."""
        asked = tasks.RunRequest(method, quality, None if estimated else sigma, strength, looking)
        async for shown in self._run(request, 0.0, tasks.denoise, asked):
            yield shown

    async def adjust(
        self, method: str, quality: str, estimated: bool, sigma: float, strength: float,
        looking: str, request: gr.Request,
    ) -> AsyncIterator[Shown]:  # fmt: skip
        """Run again once a slider rests."""
        asked = tasks.RunRequest(method, quality, None if estimated else sigma, strength, looking)
        async for shown in self._run(request, _PAUSE, tasks.denoise, asked):
            yield shown

    async def compare(
        self, names: list[str], quality: str, estimated: bool, sigma: float, strength: float,
        request: gr.Request,
    ) -> AsyncIterator[Shown]:  # fmt: skip
        """Put methods side by side."""
        names = [name for name in METHODS if name in names]
        if not MIN_METHODS <= len(names) <= MAX_METHODS:
            text = f"Choose {MIN_METHODS} to {MAX_METHODS} methods; {len(names)} are chosen."
            yield gr.skip(), html.message(text, "bad"), gr.skip(), gr.skip()
            return
        asked = tasks.RunRequest("denoise", quality, None if estimated else sigma, strength)
        async for shown in self._run(request, 0.0, tasks.compare, names, asked):
            yield shown

    def cancel(self, request: gr.Request) -> None:
        """Stop what runs; who follows it tells when it has."""
        session = self.known(request)
        if session is not None:
            session.cancelled += 1
            session.stop()

    async def stay(self, request: gr.Request) -> AsyncIterator[None]:
        """Last as long as the tab: an event that never ends.

        Gradio's page closes its stream when no event is left, and loses one that begins just then.
        """
        while self.sessions.is_open(request.cookies, request.session_hash):
            await asyncio.sleep(_TICK)
        yield None

    async def _run(
        self, request: gr.Request, pause: float, work: Callable[..., Any], *asked: Any
    ) -> AsyncIterator[Shown]:
        """Queue the work of a session in place of what it ran before, and tell how it goes."""
        session = self.known(request)
        try:
            if session is None or session.picture is None:
                raise SessionError("Drop a picture first, or take an example.")
            self.uploads.check_room(session.folder)
        except SessionError as error:
            yield gr.skip(), html.message(str(error), "bad"), gr.skip(), gr.skip()
            return
        session.asked += 1
        mine, cancelled = session.asked, session.cancelled
        session.stop()
        if pause:
            await asyncio.sleep(pause)
        if session.asked != mine or session.cancelled != cancelled or not session.here:
            status = gr.skip() if session.asked != mine else html.message("Stopped", "plain")
            yield gr.skip(), status, gr.skip(), gr.skip()
            return
        folder = session.new_folder("run")
        given = (
            (session.picture, session.reference) if work is tasks.compare else (session.picture,)
        )

        def on_part(page: Path) -> None:
            if session.asked == mine and session.here:
                session.show(page, partly=True)

        run = session.run = self.runners.submit(
            work, *given, *asked, self.workers, folder,
            group=session.group, on_part=on_part,
        )  # fmt: skip
        before, shown = "", session.shown
        try:
            while not run.finished and session.asked == mine:
                now = html.status(run, self.runners.runs.ahead(run))
                if now != before or shown != session.shown:
                    viewer = html.viewer(session) if shown != session.shown else gr.skip()
                    before, shown = now, session.shown
                    yield viewer, now, gr.skip(), gr.update(interactive=True)
                await asyncio.sleep(_TICK)
            if session.asked == mine:
                kind, text = _ending(run, session)
                viewer = html.viewer(session) if shown != session.shown else gr.skip()
                yield (
                    viewer,
                    html.message(text, kind),
                    html.downloads(session),
                    gr.update(interactive=False),
                )
        finally:
            run.when_finished(lambda: session.tidy(folder))


def _ending(run: Run, session: Session) -> tuple[str, str]:
    """Keep what came of a run; return how it ended, as kind and text."""
    try:
        made: tasks.RunResult = run.outcome()
    except Cancelled:
        seconds = run.seconds
        return "plain", "Stopped" if seconds is None else f"Stopped after {seconds:.1f} s"
    except Exception as error:
        return "bad", _message(error, session)
    session.show(made.report)
    session.files["report"] = made.report
    if made.result is not None:
        session.files["result"] = made.result
    return "good", made.message


def _message(error: BaseException, session: Session | None) -> str:
    """Return an error without the places of files on this machine."""
    if not isinstance(error, (ValueError, TypeError, OSError, MemoryError)):
        _LOG.error("work failed", exc_info=error)
        return f"This did not work: {error or type(error).__name__}. Try another method."
    text = str(error) or "There is not enough memory for this."
    if session is not None:
        text = re.sub(re.escape(f"{session.folder}{os.sep}") + r"[\w-]+[/\\]", "", text)
    return text


def _status_only(status: Any) -> Looked:
    """Return that nothing changes but the status."""
    skip = gr.skip()
    return None, skip, skip, skip, skip, skip, status, skip, skip, skip


def _round_up(value: float) -> float:
    """Return 1, 2 or 5 times a power of ten that is not less; 1 for 0."""
    power = 10.0 ** math.floor(math.log10(value)) if value > 0 else 1.0
    return next(power * k for k in (1, 2, 5, 10) if power * k >= value)
