"""What the controls do: sessions begin and end, pictures are inspected, denoised, compared and taken home.

All of it happens on the server's event loop; the work itself is done in the processes of two pools.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import os
import re
import shutil
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..core.parallel import Cancelled
from ..io.formats import natural_order
from .pool import Pool, Run
from .sessions import VIEW, Picture, Result, Session
from .settings import BY_NAME, EXAMPLES, MAX_METHODS, MIN_METHODS, PageError, Settings, nothing_here

UNPACKED = 4  # times the upload limit is what pixels may take in memory
SECONDS = 60.0  # that inspecting or drawing something may take ...
_BYTES = 1e6  # ... and a second more for so many bytes that are inspected
_RUN_SECONDS = 3600.0  # that a run may take
_ABSENT = 3600.0  # seconds without a sign of a session after which it makes room for the next one
_LOG = logging.getLogger(__name__)


class Controller:
    """What the controls do.

    Files of sessions are in a ``folder``; ``readers`` inspect and draw pictures, ``runners`` run methods,
    with so many threads (``workers``); a file that is dropped has ``max_bytes`` at most.
    """

    def __init__(
        self, folder: Path, readers: Pool, runners: Pool, max_bytes: int, workers: int | None
    ) -> None:
        self._folder, self.max_bytes, self._workers = folder, max_bytes, workers
        self._readers, self._runners = readers, runners
        self._max_pixels = UNPACKED * max_bytes
        self._sessions: dict[str, Session] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def wake(self) -> None:
        """Get ready for work: somebody is here."""
        self._readers.wake()
        self._runners.wake()

    async def close(self) -> None:
        """End all work at once."""
        await self._readers.close()
        await self._runners.close()

    # --- sessions -------------------------------------------------------------------------

    def begin(self, owner: str) -> Session:
        """Begin a session; those that nobody has looked at for long end."""
        for session in [*self._sessions.values()]:
            if time.monotonic() - session.last_sign > _ABSENT:
                self.end(session)
        session = Session.begin(self._folder, owner)
        self._sessions[session.token] = session
        return session

    def find(self, token: str, owner: str) -> Session | None:
        """Return the session of an address if it is theirs who ask, else None."""
        session = self._sessions.get(token)
        if session is None or not hmac.compare_digest(session.owner.encode(), owner.encode()):
            return None
        session.last_sign = time.monotonic()
        return session

    def end(self, session: Session) -> None:
        """Stop what a session had started, and delete its files."""
        self._sessions.pop(session.token, None)
        session.is_open = False
        pictures = [*session.pictures.values()]
        for picture in pictures:
            picture.stop()

        async def delete() -> None:
            for run in [run for picture in pictures for run in picture.runs]:
                with suppress(Exception):
                    await run.outcome()  # nothing is written any more
            await asyncio.to_thread(shutil.rmtree, session.folder, ignore_errors=True)

        self._start(delete())

    def check_room(self, more: int = 0) -> None:
        """Refuse more work where the disk is nearly full."""
        if shutil.disk_usage(self._folder).free < more + self._max_pixels:
            raise PageError("There is no room on the disk; remove some pictures.", 507)

    # --- pictures that come ---------------------------------------------------------------

    async def receive(self, path: Path, size: int, chunks: AsyncIterator[bytes]) -> None:
        """Write what is sent to a file as it comes."""
        self.check_room(size)
        with open(path, "xb") as target:
            async for chunk in chunks:  # a piece of 64 kB at most
                size -= target.write(chunk)
        if size:
            raise PageError("The upload was interrupted; send the file again.", 400)

    def add(self, session: Session, path: Path) -> Picture:
        """Take a file in a folder of its own as a picture, and have it inspected."""
        picture = session.new_picture(path.parent, path.name)
        self._read(session, picture, "inspect_file", path, path.parent)
        return picture

    def example(self, session: Session, name: str) -> Picture:
        """Take an example, and what it was before noise came."""
        if name not in EXAMPLES:
            raise PageError("There is no such example.")
        session.check_count(1)
        picture = session.new_picture(session.new_folder("picture"), name)
        self._read(session, picture, "example", name, picture.folder)
        return picture

    def _read(self, session: Session, picture: Picture, work: str, *given: Any) -> None:
        """Have a picture inspected and keep what is found."""
        paths = picture.sources if picture.frames else given[:1]
        run = picture.reading = self._readers.submit(
            work, *given, self._max_pixels, seconds=_seconds(*paths)
        )

        def keep(found: dict[str, Any]) -> None:
            picture.path, picture.info = found["path"], found["info"]
            picture.name = picture.name if picture.frames else found["path"].name
            picture.reference = found.get("reference")
            picture.reference_name = found.get("reference_name", "")

        self._follow(session, picture, run, keep, lambda: _forget(picture.folder))

    def add_reference(self, session: Session, picture: Picture, path: Path) -> None:
        """Take a file in a folder of its own as what a picture was without noise."""
        run = self._readers.submit(
            "inspect_reference", path, picture.folder, self._max_pixels, seconds=_seconds(path)
        )
        picture.reading, picture.reference_error, before = run, "", picture.ended

        def keep(found: dict[str, Any]) -> None:
            _forget(picture.reference)
            picture.reference, picture.reference_name = path.parent, path.name
            picture.ended = before

        def fail() -> None:
            _forget(path.parent)
            picture.reference_error, picture.ended = picture.ended[1], before

        self._follow(session, picture, run, keep, fail)

    async def add_noise(self, session: Session, path: Path) -> str:
        """Take a file in a folder of its own as a noise model, or say in one line why it is none."""
        words = await self.draw(session, "inspect_noise", path)
        session.models[path.parent.name] = path, words
        session.changed()
        return path.parent.name

    # --- pictures that are one series -----------------------------------------------------

    def join(self, session: Session, pictures: Sequence[Picture]) -> Picture:
        """Make one series of pictures, in the natural order of their names; they are kept for later."""
        frames = [each for picture in pictures for each in picture.frames or (picture,)]
        kinds = [_frame_kind(frame) for frame in frames]
        odd = next((n for n, kind in enumerate(kinds) if kind != kinds[0]), None)
        if len(frames) < 2:
            raise PageError("A series has two frames at least; add pictures.")
        if odd is not None:
            raise PageError(
                f"{frames[odd].name} is {kinds[odd]}, and {frames[0].name} {kinds[0]}; frames of a series "
                "are alike."
            )
        frames.sort(key=lambda frame: natural_order(Path(frame.name)))
        for picture in pictures:
            picture.stop()
            del session.pictures[picture.id]
            _forget(picture.folder if picture.frames else None)
        first, last = (Path(frame.name).stem for frame in (frames[0], frames[-1]))
        series = session.new_picture(session.new_folder("picture"), f"{first} to {last}")
        series.frames = tuple(frames)
        self._read(session, series, "inspect_series", series.sources, series.folder)
        return series

    def split(self, session: Session, series: Picture) -> None:
        """Take a series apart again."""
        if not series.frames:
            raise PageError("This is no series.")
        session.check_count(len(series.frames) - 1)
        frames, series.frames = series.frames, ()
        self.remove(session, series)
        session.pictures |= {frame.id: frame for frame in frames}

    def remove(self, session: Session, picture: Picture) -> None:
        """Forget a picture."""
        session.pictures.pop(picture.id, None)
        for each in (picture, *picture.frames):
            each.stop()
            result = None if each.result is None else each.result.folder
            for folder in (each.folder, each.reference, result):
                _forget(folder)
        session.changed()

    # --- runs -----------------------------------------------------------------------------

    def denoise(
        self, session: Session, picture: Picture, settings: Settings, at: Any, visible: Any
    ) -> None:
        """Run a method, on the part that is on the screen and then on the whole."""
        given = {
            "at": at, "visible": visible, "info": picture.ready(), "view": picture.folder / VIEW,
            "frames": picture.sources if picture.frames else [],
        }  # fmt: skip
        self._run(session, picture, "denoise", settings, None, picture.path, given)

    def compare(
        self, session: Session, picture: Picture, names: list[str], settings: Settings, at: Any
    ) -> None:
        """Put methods side by side."""
        names = [name for name in BY_NAME if name in names]
        if not MIN_METHODS <= len(names) <= MAX_METHODS:
            text = f"Choose {MIN_METHODS} to {MAX_METHODS} methods; {len(names)} are chosen."
            raise PageError(text)
        if picture.ready()["mosaic"]:
            raise PageError("Methods are compared on developed pictures, not on a raw mosaic.")
        given = (picture.folder, picture.reference, names, at)
        self._run(session, picture, "compare", settings, at, *given)

    def _run(
        self, session: Session, picture: Picture, kind: str, settings: Settings,
        at: tuple[int, ...] | None, *given: Any,
    ) -> None:  # fmt: skip
        """Queue the work in place of what runs for this picture."""
        self.check_room()
        asked = {**settings.as_json(), "model": None}
        if settings.noise == "file":  # the work is told where the model is
            asked["model"] = str(session.model(settings.model))
        folder, number = session.new_folder("run"), session.number()
        picture.stop()
        picture.part, picture.ended, picture.running = None, ("", ""), kind

        def on_part(part: dict[str, Any]) -> None:
            if picture.run is run and session.is_open:
                picture.part_folder, picture.part = folder, {**part, "number": number}
                session.changed()

        run = picture.run = self._runners.submit(
            kind, *given, folder, asked, self._workers, self._max_pixels,
            seconds=_RUN_SECONDS, on_part=on_part,
        )  # fmt: skip

        def keep(details: dict[str, Any]) -> None:
            files = tuple(folder / name for name in details.pop("files", ()))
            old, picture.part = picture.result, None
            picture.result = Result(number, kind, folder, settings, details, at, files)
            _forget(None if old is None else old.folder)

        def fail() -> None:
            if picture.run is run:
                picture.part = None
            if picture.ended[0] == "bad" and picture.result is not None:
                _forget(picture.result.folder)  # nothing old stands under an error
                picture.result = None
            _forget(folder)

        self._follow(session, picture, run, keep, fail)

    def cancel(self, session: Session) -> None:
        """Stop what runs; inspecting a picture is not a run."""
        for picture in session.pictures.values():
            if picture.run is not None:
                picture.run.stop()

    def _follow(
        self, session: Session, picture: Picture, run: Run,
        keep: Callable[[Any], None], fail: Callable[[], None],
    ) -> None:  # fmt: skip
        """Wait for a run and note how it ended."""

        async def follow() -> None:
            made, ended = None, ("good", "")
            try:
                made = await run.outcome()
            except Cancelled:
                took = "" if run.seconds is None else f" after {run.seconds:.1f} s"
                ended = ("plain", f"Stopped{took}")
            except Exception as error:
                ended = ("bad", _message(error, session))
            is_last = session.is_open and run in picture.runs
            if is_last:
                picture.ended = ended
            if is_last and made is not None and picture.id in session.pictures:
                keep(made)
            else:
                fail()
            if picture.run is run:
                picture.run = None
            if picture.reading is run:
                picture.reading = None
            session.changed()

        session.changed()
        self._start(follow())

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # --- what is shown and taken home -----------------------------------------------------

    async def results(
        self, session: Session, picture: Picture, shares: tuple[float, float] | None
    ) -> list[Path]:
        """Return the files that came of a picture, or their blends with what they were made of."""
        if picture.result is None or picture.info is None:
            return []
        files = [*picture.result.files]
        if shares is None or not files:
            return files
        if not picture.info["blends"]:
            raise nothing_here()
        given = (picture.sources, files, *shares, self._max_pixels)
        blended: list[Path] = await self.draw(session, "blend", *given)
        return blended

    async def draw(self, session: Session, work: str, *given: Any) -> Any:
        """Have something small done at once; what it returns, or a PageError."""
        try:
            return await self._readers.submit(work, *given, seconds=SECONDS).outcome()
        except Cancelled as error:
            raise PageError("This is no longer here.") from error
        except Exception as error:
            raise PageError(_message(error, session)) from error


def _seconds(*paths: Any) -> float:
    """Return how long inspecting files may take; an example is none yet."""
    return SECONDS + sum(p.stat().st_size for p in paths if isinstance(p, Path)) / _BYTES


def _forget(folder: Path | None) -> None:
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)


def _frame_kind(picture: Picture) -> str:
    """Return size and kind of a picture that may be a frame, in words; or refuse it."""
    info = picture.ready()
    if info["mosaic"] or info["others"] or info["images"] > 1:
        raise PageError(f"{picture.name} is no flat picture, as a frame of a series is.")
    channels = f", {info['channels']} channels" if info["channels"] > 1 else ""
    return f"{info['width']} × {info['height']} {info['dtype']}{channels}"


def _message(error: BaseException, session: Session) -> str:
    """Return an error without the places of files on this machine."""
    if not isinstance(error, (ValueError, TypeError, OSError, MemoryError)):
        _LOG.error("work failed", exc_info=error)
        return f"This did not work: {error or type(error).__name__}. Try another method."
    text = str(error) or "There is not enough memory for this."
    shown = re.sub(re.escape(f"{session.folder}{os.sep}") + r"[\w-]+[/\\]", "", text)
    return shown if shown.endswith((".", "!", "?")) else f"{shown}."
