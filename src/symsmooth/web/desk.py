"""What the controls do, for every visitor."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import re
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import gradio as gr

from ..methods import METHODS
from ..tiles import Cancelled
from . import tasks, words
from .examples import write_example
from .runs import Run, Runs
from .visits import Visit, VisitError, Visits

LEAST, MOST = 2, 4  # methods that are compared
_TICK = 0.15  # seconds between two looks at a run
_PAUSE = 0.35  # seconds a slider must rest before its run begins
_LOG = logging.getLogger(__name__)

Shown = tuple[Any, Any, Any, Any]
Looked = tuple[Any, ...]
# The parts of the page that change, in the order in which they are told.
SHOWN = ("viewer", "status", "downloads", "cancel")
LOOKED = ("drop", "example", "found", "sigma", "estimated", *SHOWN, "clean_told")


class Desk:
    """What the controls do, for every visitor."""

    def __init__(self, visits: Visits, runs: Runs, workers: int | None, most_bytes: int) -> None:
        self.visits, self.runs, self.workers, self.most_bytes = visits, runs, workers, most_bytes

    def visit(self, request: gr.Request) -> Visit:
        """Return the visit of whoever asks."""
        return self.visits.of(request.cookies, request.session_hash)

    def drop(self, name: str | None, request: gr.Request) -> Iterator[Looked]:
        """Take a picture that was uploaded out of gradio's hands and look into it."""
        yield from self._look(request, "", lambda visit: (_take(visit, name, "dropped"), None))

    def example(self, name: str, request: gr.Request) -> Iterator[Looked]:
        """Take an example, and what it was before noise came."""
        if name:
            yield from self._look(
                request, name, lambda visit: write_example(name, visit.place("x", "example").parent)
            )

    def _look(
        self, request: gr.Request, example: str, take: Callable[[Visit], tuple[Path, Path | None]]
    ) -> Iterator[Looked]:
        """Look into a picture and tell what was found."""
        visit = None
        yield _look_told(words.told("Looking at the picture", "plain"))
        try:
            visit = self.visit(request)
            path, clean = take(visit)
            tasks.receive(visit, path, tasks.UNPACKED * self.most_bytes)
        except (ValueError, OSError, MemoryError) as error:
            yield _look_told(words.told(_message(error, visit), "bad"))
            return
        visit.reference = clean
        picture = visit.picture
        assert picture is not None
        found = picture.found.level
        top = _round_up(4 * found or picture.reach / 10)
        level = round(found / top * 400) * top / 400
        yield (
            None,
            example,
            words.noise_of(picture),
            gr.update(maximum=top, step=top / 400, value=level),
            True,
            words.viewer(visit),
            words.told("Ready. Choose a method and press Denoise.", "plain"),
            "",
            gr.update(interactive=False),
            words.reference(clean),
        )

    def reference(self, name: str | None, request: gr.Request) -> tuple[None, str]:
        """Take the picture without noise, if it is known."""
        visit = None
        try:
            visit = self.visit(request)
            path = _take(visit, name, "reference")
            tasks.receive_reference(visit, path, tasks.UNPACKED * self.most_bytes)
        except (ValueError, OSError, MemoryError) as error:
            return None, words.told(_message(error, visit), "bad")
        return None, words.reference(path)

    async def denoise(
        self, method: str, quality: str, estimated: bool, sigma: float, strength: float,
        looking: str, request: gr.Request,
    ) -> AsyncIterator[Shown]:  # fmt: skip
        """Run a method, on what one looks at and then on the whole."""
        asked = tasks.Asked(method, quality, None if estimated else sigma, strength, looking)
        async for shown in self._run(
            request, 0.0, lambda v: partial(tasks.denoise, v, asked, self.workers)
        ):
            yield shown

    async def adjust(
        self, method: str, quality: str, estimated: bool, sigma: float, strength: float,
        looking: str, request: gr.Request,
    ) -> AsyncIterator[Shown]:  # fmt: skip
        """Run again once a slider rests."""
        asked = tasks.Asked(method, quality, None if estimated else sigma, strength, looking)
        async for shown in self._run(
            request, _PAUSE, lambda v: partial(tasks.denoise, v, asked, self.workers)
        ):
            yield shown

    async def compare(
        self, names: list[str], quality: str, estimated: bool, sigma: float, strength: float,
        request: gr.Request,
    ) -> AsyncIterator[Shown]:  # fmt: skip
        """Put methods side by side."""
        names = [name for name in METHODS if name in names]
        if not LEAST <= len(names) <= MOST:
            told = f"Choose {LEAST} to {MOST} methods; {len(names)} are chosen."
            yield gr.skip(), words.told(told, "bad"), gr.skip(), gr.skip()
            return
        asked = tasks.Asked("denoise", quality, None if estimated else sigma, strength)
        async for shown in self._run(
            request, 0.0, lambda v: partial(tasks.compare, v, names, asked, self.workers)
        ):
            yield shown

    def cancel(self, request: gr.Request) -> None:
        """Stop what runs; who follows it tells when it has."""
        visit = self.visit(request)
        visit.cancelled += 1
        visit.stop()

    async def stay(self, request: gr.Request) -> AsyncIterator[None]:
        """Last as long as the tab: an event that never ends.

        Gradio's page closes its stream when no event is left, and loses one that begins just then.
        """
        try:
            visit = self.visit(request)
        except VisitError:  # no cookie: told when something is asked for
            return
        while visit.here:
            await asyncio.sleep(0.5)
        yield None

    def leave(self, request: gr.Request) -> None:
        """Forget a visitor whose tab was closed."""
        self.visits.end(request.cookies, request.session_hash)

    async def _run(
        self, request: gr.Request, pause: float, work: Callable[[Visit], Any]
    ) -> AsyncIterator[Shown]:
        """Queue the work of a visit in place of what it ran before, and tell how it goes."""
        try:
            visit = self.visit(request)
            if visit.picture is None:
                raise VisitError("Drop a picture first, or take an example.")
        except VisitError as error:
            yield gr.skip(), words.told(str(error), "bad"), gr.skip(), gr.skip()
            return
        visit.asked += 1
        mine, cancelled = visit.asked, visit.cancelled
        visit.stop()
        if pause:
            await asyncio.sleep(pause)
        if visit.asked != mine or visit.cancelled != cancelled:
            told = gr.skip() if visit.asked != mine else words.told("Stopped", "plain")
            yield gr.skip(), told, gr.skip(), gr.skip()
            return
        run = visit.run = self.runs.submit(partial(tasks.telling_of_compilation, work(visit)))
        before, shown = "", visit.shown
        while not run.finished and visit.asked == mine:
            now = words.status(run, self.runs.ahead(run))
            if now != before or shown != visit.shown:
                viewer = words.viewer(visit) if shown != visit.shown else gr.skip()
                before, shown = now, visit.shown
                yield viewer, now, gr.skip(), gr.update(interactive=True)
            await asyncio.sleep(_TICK)
        if visit.asked == mine:
            kind, text = _ending(run, visit)
            viewer = words.viewer(visit) if shown != visit.shown else gr.skip()
            yield (
                viewer,
                words.told(text, kind),
                words.downloads(visit),
                gr.update(interactive=False),
            )


def _ending(run: Run, visit: Visit) -> tuple[str, str]:
    """Return how a run ended, as kind and text."""
    try:
        return "good", run.outcome()
    except Cancelled:
        seconds = run.seconds
        return "plain", "Stopped" if seconds is None else f"Stopped after {seconds:.1f} s"
    except (ValueError, TypeError, OSError, MemoryError) as error:
        return "bad", _message(error, visit)
    except Exception as error:
        _LOG.exception("a run failed")
        return "bad", f"This did not work: {type(error).__name__}. Try another method."


def _message(error: BaseException, visit: Visit | None) -> str:
    """Return an error without the places of files on this machine."""
    text = str(error) or "There is not enough memory for this."
    if visit is not None:
        text = re.sub(re.escape(f"{visit.folder}{os.sep}") + r"[\w-]+[/\\]", "", text)
    return text


def _take(visit: Visit, name: str | None, kind: str) -> Path:
    """Move an uploaded file to where only its visit reaches it."""
    if not name or not Path(name).is_file():
        raise VisitError("The upload did not arrive; please drop the picture again.")
    place = visit.place(Path(name).name, kind)
    shutil.move(name, place)
    return place


def _look_told(told: str) -> Looked:
    """Return that nothing changes but what is told."""
    skip = gr.skip()
    return None, skip, skip, skip, skip, skip, told, skip, skip, skip


def _round_up(value: float) -> float:
    """Return 1, 2 or 5 times a power of ten that is not less; 1 for 0."""
    power = 10.0 ** math.floor(math.log10(value)) if value > 0 else 1.0
    return next(power * k for k in (1, 2, 5, 10) if power * k >= value)
