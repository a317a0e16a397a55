"""What is done for visitors: pictures are inspected, run through methods, and followed until they are done.

All of it happens on the server's event loop; the work itself is in the processes of two queues.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import shutil
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..app.batch import natural_order
from ..core.parallel import Cancelled
from .catalogue import BY_NAME, EXAMPLES, MAX_METHODS, MIN_METHODS, VIDEO_ENDINGS
from .errors import RefusedError, SessionError
from .noise_files import NoiseFile, path_of
from .pictures import VIEW, Picture, Result
from .process_queue import ProcessQueue
from .runs import Run
from .sessions import Session, Sessions, safe_name
from .settings import Settings
from .uploads import Uploads

UNPACKED = 4  # times the upload limit is what pixels may take in memory
SECONDS = 20.0  # that inspecting a file may take ...
_BYTES = 1e6  # ... and a second more for so many bytes
_FRAMES_SECONDS = 100.0  # more for frames: twelve are looked at, and all are unpacked
_RUN_SECONDS = 3600.0  # that a run may take: others wait for their turns
_VIEW_SECONDS = 30.0  # that drawing what is shown may take
_REPORT_SECONDS = 120.0  # that a report, or developing a raw file, may take
_TICK = 0.04  # seconds between two checks of a run
_LOG = logging.getLogger(__name__)


class Controller:
    """What the controls do, for every visitor.

    Parameters
    ----------
    sessions, uploads
        Whose files are whose.
    readers, runners : ProcessQueue
        What inspects and draws pictures, and what runs methods.
    workers : int or None
        Threads of a run.
    """

    def __init__(
        self,
        sessions: Sessions,
        uploads: Uploads,
        readers: ProcessQueue,
        runners: ProcessQueue,
        workers: int | None,
    ) -> None:
        self.sessions, self.uploads = sessions, uploads
        self.readers, self.runners, self.workers = readers, runners, workers
        self.max_pixels = UNPACKED * uploads.limits.max_bytes
        self._followed: set[asyncio.Task[None]] = set()

    def wake(self) -> None:
        """Get ready for work: somebody is here."""
        self.readers.wake()
        self.runners.wake()

    async def check_room(self, session: Session | None) -> None:
        """Refuse more work for a visit whose files, or all files, take too much of the disk.

        They are counted in a thread, and once a request: there may be many of them.
        """
        if session is not None:
            await asyncio.to_thread(self.uploads.check_room, session.folder)

    # --- pictures that come ---------------------------------------------------------------

    def make_picture(self, session: Session, name: str) -> Picture:
        """Make room for a picture."""
        if len(session.pictures) >= self.sessions.limits.pictures:
            limit = self.sessions.limits.pictures
            raise SessionError(f"There may be {limit} pictures at a time; remove some of them.")
        folder = session.new_folder("picture")
        id = f"p{folder.name.rpartition('-')[2]}"
        picture = session.pictures[id] = Picture(id, safe_name(name), folder)
        return picture

    def inspect_file(self, session: Session, picture: Picture, path: Path) -> None:
        """Have a file in a picture's folder inspected."""
        self._read(session, picture, "inspect_file", path, picture.folder)

    def example(self, session: Session, name: str) -> Picture:
        """Take an example, and what it was before noise came."""
        if name not in EXAMPLES:
            raise SessionError("There is no such example.")
        picture = self.make_picture(session, name)
        self._read(session, picture, "example", name, picture.folder)
        return picture

    def _read(self, session: Session, picture: Picture, work: str, *given: Any) -> None:
        """Have a picture inspected and keep what is found."""
        size = sum(path.stat().st_size for path in _files_in(given[0]))
        frames = bool(picture.frames) or picture.name.lower().endswith(VIDEO_ENDINGS)
        more = _FRAMES_SECONDS if frames else 0.0
        run = picture.reading = self.readers.submit(
            work, *given, self.max_pixels,
            group=session.group, seconds=SECONDS + size / _BYTES + more,
        )  # fmt: skip
        session.changed()

        def keep(found: dict[str, Any]) -> None:
            picture.path, picture.info = found["path"], found["info"]
            picture.name = picture.name if picture.frames else found["path"].name
            picture.reference = found.get("reference")
            picture.reference_name = found.get("reference_name", "")

        def fail() -> None:
            shutil.rmtree(picture.folder, ignore_errors=True)

        self._follow(session, picture, run, keep, fail)

    async def open_noise(self, session: Session, path: Path) -> NoiseFile:
        """Take a file as a noise model, or say in one line why it is none."""
        if len(session.models) >= self.sessions.limits.pictures:
            raise SessionError("There are too many noise models; begin another visit.")
        words = await self.draw(session, "inspect_noise", path)
        id = f"n{path.parent.name.rpartition('-')[2]}"
        opened = session.models[id] = NoiseFile(id, path, words)
        session.changed()
        return opened

    # --- pictures that are one series -----------------------------------------------------

    def join(self, session: Session, pictures: Sequence[Picture]) -> Picture:
        """Make one series of pictures, in the natural order of their names; they are kept for later."""
        frames = [each for picture in pictures for each in picture.frames or (picture,)]
        kinds = [_frame_kind(frame, self.check_ready(frame)) for frame in frames]
        odd = next((n for n, kind in enumerate(kinds) if kind != kinds[0]), None)
        if len(frames) < 2:
            raise SessionError("A series has two frames at least; add pictures.")
        if odd is not None:
            raise SessionError(
                f"{frames[odd].name} is {kinds[odd]}, and {frames[0].name} {kinds[0]}; frames of a series "
                "are alike."
            )
        frames.sort(key=lambda frame: natural_order(Path(frame.name)))
        folder = session.new_folder("picture")
        id = f"p{folder.name.rpartition('-')[2]}"
        first, last = (Path(frame.name).stem for frame in (frames[0], frames[-1]))
        series = Picture(id, f"{first} to {last}", folder, frames=tuple(frames))
        for picture in pictures:
            picture.stop()
            del session.pictures[picture.id]
            self._forget(picture.folder if picture.frames else None)
        session.pictures[id] = series
        self._read(session, series, "inspect_series", series.sources, folder)
        return series

    def split(self, session: Session, series: Picture) -> None:
        """Take a series apart again."""
        if not series.frames:
            raise SessionError("This is no series.")
        if len(session.pictures) - 1 + len(series.frames) > self.sessions.limits.pictures:
            limit = self.sessions.limits.pictures
            raise SessionError(f"There may be {limit} pictures at a time; remove some of them.")
        frames, series.frames = series.frames, ()
        self.remove(session, series)
        session.pictures |= {frame.id: frame for frame in frames}
        session.changed()

    def inspect_reference(self, session: Session, picture: Picture, path: Path) -> None:
        """Have the picture without noise inspected; it has a folder of its own."""
        run = self.readers.submit(
            "inspect_reference", path, picture.folder, self.max_pixels,
            group=session.group, seconds=SECONDS + path.stat().st_size / _BYTES,
        )  # fmt: skip
        picture.reading, picture.reference_error, before = run, "", picture.ended
        session.changed()

        def keep(found: dict[str, Any]) -> None:
            self._forget(picture.reference)
            picture.reference, picture.reference_name = path.parent, path.name
            picture.ended = before

        def fail() -> None:
            self._forget(path.parent)
            picture.reference_error, picture.ended = picture.ended[1], before

        self._follow(session, picture, run, keep, fail)

    # --- runs -----------------------------------------------------------------------------

    def denoise(
        self, session: Session, picture: Picture, settings: Settings, at: Any, visible: Any
    ) -> None:
        """Run a method, on the part that is on the screen and then on the whole."""
        info = self.check_ready(picture)
        folder = session.new_folder("run")
        given = {"at": at, "visible": visible, "sigma": info["noise"]["sigma"]}
        given |= {"noise": info["noise"]} | {k: info[k] for k in ("turns", "stored") if k in info}
        given |= {
            "view": picture.folder / VIEW,
            "frames": picture.sources if picture.frames else [],
        }
        self._run(session, picture, "denoise", folder, settings, None, picture.path, given, folder)

    def compare(
        self, session: Session, picture: Picture, names: list[str], settings: Settings, at: Any
    ) -> None:
        """Put methods side by side."""
        names = [name for name in BY_NAME if name in names]
        if not MIN_METHODS <= len(names) <= MAX_METHODS:
            text = f"Choose {MIN_METHODS} to {MAX_METHODS} methods; {len(names)} are chosen."
            raise SessionError(text)
        if self.check_ready(picture)["mosaic"]:
            raise SessionError("Methods are compared on developed pictures, not on a raw mosaic.")
        folder = session.new_folder("run")
        self._run(
            session, picture, "compare", folder, settings, at,
            picture.path, picture.folder, picture.reference, names, at, folder,
        )  # fmt: skip

    def _run(
        self, session: Session, picture: Picture, kind: str, folder: Path, settings: Settings,
        at: tuple[int, ...] | None, *given: Any,
    ) -> None:  # fmt: skip
        """Queue the work in place of what runs for this picture."""
        picture.stop()
        picture.part, picture.ended, picture.running = None, ("", ""), kind
        number = session.number()

        def on_part(part: dict[str, Any]) -> None:  # in a thread
            if picture.run is run and session.is_open:
                picture.part_folder, picture.part = folder, {**part, "number": number}
                session.changed()

        run = picture.run = self.runners.submit(
            kind, *given, _asked(session, settings), self.workers, self.max_pixels,
            group=session.group, seconds=_RUN_SECONDS, on_part=on_part,
        )  # fmt: skip
        session.changed()

        def keep(details: dict[str, Any]) -> None:
            names = details.pop("files", ())
            old, picture.part = picture.result, None
            files = tuple(folder / name for name in names)
            picture.result = Result(number, kind, folder, settings, details, at, files)
            self._forget(None if old is None else old.folder)

        def fail() -> None:
            if picture.run is run:
                picture.part = None
            if picture.ended[0] == "bad" and picture.result is not None:
                self._forget(picture.result.folder)  # nothing old stands under an error
                picture.result = None
            self._forget(folder)

        self._follow(session, picture, run, keep, fail)

    def folder_of(self, picture: Picture, number: int) -> Path | None:
        """Return the folder of a result, or of a part that is done before it."""
        if picture.result is not None and picture.result.number == number:
            return picture.result.folder
        if picture.part is not None and picture.part["number"] == number:
            return picture.part_folder
        return None

    def cancel(self, session: Session) -> None:
        """Stop what runs; inspecting a picture is not a run."""
        for picture in session.pictures.values():
            if picture.run is not None:
                picture.run.stop()

    def remove(self, session: Session, picture: Picture) -> None:
        """Forget a picture."""
        session.pictures.pop(picture.id, None)
        for each in (picture, *picture.frames):
            each.stop()
            result = None if each.result is None else each.result.folder
            for folder in (each.folder, each.reference, result):
                self._forget(folder)
        session.changed()

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
            raise RefusedError(404, "There is nothing here.")
        given = (picture.sources, files, *shares, self.max_pixels)
        blended: list[Path] = await self.draw(session, "blend", *given)
        return blended

    async def draw(self, session: Session, work: str, *given: Any) -> Any:
        """Have something small done at once; what it returns, or a SessionError."""
        seconds = _VIEW_SECONDS if work == "draw" else _REPORT_SECONDS
        run = self.readers.submit(work, *given, group=session.group, seconds=seconds)
        while not run.finished:
            await asyncio.sleep(_TICK)
        try:
            return run.outcome()
        except Cancelled as error:
            raise SessionError("This is no longer here.") from error
        except Exception as error:
            raise SessionError(message(error, session)) from error

    # --- following ------------------------------------------------------------------------

    def check_ready(self, picture: Picture) -> dict[str, Any]:
        """Return what was found in a picture, or say that nothing was yet."""
        if picture.info is None or picture.path is None:
            raise SessionError("This picture is not ready yet.")
        return picture.info

    def _follow(
        self, session: Session, picture: Picture, run: Run,
        keep: Callable[[Any], None], fail: Callable[[], None],
    ) -> None:  # fmt: skip
        """Wait for a run and note how it ended."""

        async def follow() -> None:
            while not run.finished:
                await asyncio.sleep(_TICK)
            is_last = session.is_open and run in (picture.reading, picture.run)
            try:
                made = run.outcome()
            except Cancelled:
                if is_last:
                    took = "" if run.seconds is None else f" after {run.seconds:.1f} s"
                    picture.ended = ("plain", f"Stopped{took}")
                fail()
            except Exception as error:
                if is_last:
                    picture.ended = ("bad", message(error, session))
                fail()
            else:
                if is_last and picture.id in session.pictures:
                    picture.ended = ("good", "")
                    keep(made)
                else:
                    fail()
            if picture.run is run:
                picture.run = None
            if picture.reading is run:
                picture.reading = None
            session.changed()

        self._start(follow())

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._followed.add(task)
        task.add_done_callback(self._followed.discard)

    def _forget(self, folder: Path | None) -> None:
        if folder is not None:
            with suppress(OSError):
                shutil.rmtree(folder)


def _asked(session: Session, settings: Settings) -> dict[str, Any]:
    """Return settings for the work, which is told where the noise model is that they name."""
    if settings.noise != "file":
        return {**settings.as_json(), "model": None}
    return {**settings.as_json(), "model": str(path_of(session.models, settings.model))}


def _files_in(given: object) -> list[Path]:
    """Return the files that are to be inspected: one, or those of a series; an example has none yet."""
    every = given if isinstance(given, list) else [given]
    return [each for each in every if isinstance(each, Path)]


def _frame_kind(picture: Picture, info: dict[str, Any]) -> str:
    """Return size and kind of a picture that may be a frame, in words; or refuse it."""
    if info["mosaic"] or info["others"] or info["images"] > 1:
        raise SessionError(f"{picture.name} is no flat picture, as a frame of a series is.")
    channels = f", {info['channels']} channels" if info["channels"] > 1 else ""
    return f"{info['width']} × {info['height']} {info['dtype']}{channels}"


def message(error: BaseException, session: Session) -> str:
    """Return an error without the places of files on this machine."""
    if not isinstance(error, (ValueError, TypeError, OSError, MemoryError)):
        _LOG.error("work failed", exc_info=error)
        return f"This did not work: {error or type(error).__name__}. Try another method."
    text = str(error) or "There is not enough memory for this."
    shown = re.sub(re.escape(f"{session.folder}{os.sep}") + r"[\w-]+[/\\]", "", text)
    return shown if shown.endswith((".", "!", "?")) else f"{shown}."
