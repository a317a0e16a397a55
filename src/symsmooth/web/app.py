"""The page: what it shows and what its controls do."""

from __future__ import annotations

import asyncio
import json
import logging
import shutil
from collections.abc import AsyncIterator, Callable
from functools import partial
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import gradio as gr

from ..cli.options import own_options
from ..methods import METHODS
from ..tiles import Cancelled
from . import tasks, words
from .examples import EXAMPLES, write_example
from .runs import Run, Runs
from .visits import Visit, VisitError, Visits

LEAST, MOST = 2, 4  # methods that are compared
_QUALITIES = ["preview", "fast", "balanced", "best"]
_ENDINGS = [".png", ".jpg", ".jpeg", ".bmp", ".webp", ".tif", ".tiff",
            ".fits", ".fit", ".fts", ".npy"]  # fmt: skip
_TICK = 0.15  # seconds between two looks at a run
_PAUSE = 0.35  # seconds a slider must rest before its run begins
_FONTS = ["system-ui", "-apple-system", "Segoe UI", "Roboto", "DejaVu Sans", "sans-serif"]
# Before a run: where does one look?  On a phone, bring what comes of it into view.
_WHERE = (
    "(...given) => { given[given.length - 1] = window.symsmooth?.looking ?? ''; return given; }"
)
_SEE = (
    "(...given) => { if (innerWidth < 700) document.querySelector('#bar').scrollIntoView(); "
    "return (%s)(...given); }"
)
_LOG = logging.getLogger(__name__)

Shown = tuple[Any, Any, Any, Any]  # viewer, status, downloads, the button that cancels


class Desk:
    """What the controls do, for every visitor."""

    def __init__(self, visits: Visits, runs: Runs, workers: int | None, most_bytes: int) -> None:
        self.visits, self.runs, self.workers, self.most_bytes = visits, runs, workers, most_bytes

    def visit(self, request: gr.Request) -> Visit:
        """Return the visit of whoever asks."""
        return self.visits.of(request.cookies, request.session_hash)

    def drop(self, name: str | None, request: gr.Request) -> tuple[Any, ...]:
        """Take a picture that was uploaded out of gradio's hands and look into it."""
        try:
            visit = self.visit(request)
            place = visit.place(Path(name or "").name, "dropped")
            _take(name, place)
        except (VisitError, OSError) as error:
            return (None, *_nothing_found(_message(error)))
        return (None, *self._look(visit, place, None))

    def example(self, name: str, request: gr.Request) -> tuple[Any, ...]:
        """Take an example, and what it was before noise came."""
        try:
            visit = self.visit(request)
            noisy, clean = write_example(name, visit.place("x", "example").parent)
        except (ValueError, OSError) as error:
            return _nothing_found(_message(error))
        return self._look(visit, noisy, clean)

    def _look(self, visit: Visit, path: Path, clean: Path | None) -> tuple[Any, ...]:
        try:
            tasks.receive(visit, path, tasks.UNPACKED * self.most_bytes)
        except (ValueError, OSError, MemoryError) as error:
            return _nothing_found(_message(error, visit))
        visit.reference = clean
        picture = visit.picture
        assert picture is not None
        top = _round_up(max(4 * picture.sigma, 0.1 * picture.reach))
        return (
            words.noise_of(picture),
            gr.update(
                maximum=top, step=top / 400, value=round(picture.sigma / top * 400) * top / 400
            ),
            True,
            words.viewer(visit),
            words.told("Ready. Choose a method and press Denoise.", "plain"),
            "",
            gr.update(interactive=False),
            _reference_told(clean),
        )

    def reference(self, name: str | None, request: gr.Request) -> tuple[Any, ...]:
        """Take the picture without noise, if it is known."""
        try:
            visit = self.visit(request)
            place = visit.place(Path(name or "").name, "reference")
            _take(name, place)
            with tasks.reading_at_most(tasks.UNPACKED * self.most_bytes):
                tasks.seeing.open_picture(place, "auto", None)
        except (ValueError, OSError) as error:
            return None, words.told(_message(error), "bad")
        visit.reference = place
        return None, _reference_told(place)

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

    def cancel(self, request: gr.Request) -> str:
        """Stop what runs."""
        visit = self.visit(request)
        visit.asked += 0 if visit.run is not None else 1
        visit.stop()
        return words.told("Stopping", "plain")

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
        mine = visit.asked
        visit.stop()
        if pause:
            await asyncio.sleep(pause)
        if visit.asked != mine:
            yield gr.skip(), gr.skip(), gr.skip(), gr.skip()
            return
        run = visit.run = self.runs.submit(work(visit))
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


def _message(error: BaseException, visit: Visit | None = None) -> str:
    """Return an error without the places of files on this machine."""
    text = str(error) or "There is not enough memory for this."
    for part in str(error).split():
        path = Path(part.rstrip(":,;"))
        if path.is_absolute():
            text = text.replace(str(path), path.name)
    return text


def _take(name: str | None, place: Path) -> None:
    """Move an uploaded file to where only its visit reaches it."""
    if not name or not Path(name).is_file():
        raise VisitError("The upload did not arrive; please drop the picture again.")
    shutil.move(name, place)


def _nothing_found(text: str) -> tuple[Any, ...]:
    told = words.told(text, "bad")
    return gr.skip(), gr.skip(), gr.skip(), gr.skip(), told, gr.skip(), gr.skip(), gr.skip()


def _reference_told(path: Path | None) -> str:
    text = "No clean picture is known: no PSNR and SSIM."
    return words.told(text if path is None else f"Clean picture: {path.name}", "plain")


def _round_up(value: float) -> float:
    """Return 1, 2 or 5 times a power of ten that is not less."""
    power = 10.0 ** len(f"{int(value)}") if value >= 1 else 1.0
    while power > 0 and not any(power / 10 * k < value for k in (1, 2, 5)):
        power /= 10
    return next((power / 10 * k for k in (1, 2, 5, 10) if power / 10 * k >= value), 1.0)


def make_page(
    visits: Visits, runs: Runs, workers: int | None, most_bytes: int
) -> tuple[gr.Blocks, dict[str, Any]]:
    """Return the page and how it looks."""
    desk = Desk(visits, runs, workers, most_bytes)
    with gr.Blocks(title="symsmooth", analytics_enabled=False, delete_cache=(600, 600)) as page:
        gr.HTML(
            '<div class="title"><h1>symsmooth</h1><p>Denoise a picture: nothing to train, '
            "nothing leaves this machine.</p></div>"
        )
        with gr.Row():
            with gr.Column(scale=1, min_width=300, elem_id="controls"):
                parts = _controls(most_bytes)
            with gr.Column(scale=3, min_width=320, elem_id="stage"):
                parts |= _stage()
        _connect(page, desk, parts)
    return page, {"theme": _theme(), "css": (files(__package__) / "page.css").read_text("utf-8")}


def _controls(most_bytes: int) -> dict[str, Any]:
    """Make the controls, in the order in which they are used."""
    c: dict[str, Any] = {}
    limit = f"{most_bytes / 2**20:.4g} MB"
    c["drop"] = gr.File(
        label=f"Picture, up to {limit}", file_types=_ENDINGS, height=120, elem_id="drop"
    )
    c["example"] = _choice("Or an example", dict.fromkeys(["", *EXAMPLES], ""), "example")
    c["found"] = gr.HTML("")
    with gr.Tabs():
        with gr.Tab("Denoise"):
            about = {name: _summary(name) for name in METHODS}
            c["method"] = _choice("Method", about, "method")
            c["start"] = gr.Button("Denoise", variant="primary", elem_id="start")
        with gr.Tab("Compare"):
            c["methods"] = gr.CheckboxGroup(
                [*METHODS],
                value=["denoise", "nlm"],
                label=f"{LEAST} to {MOST} methods",
                elem_id="methods",
            )
            c["clean"] = gr.File(
                label="Clean picture, if known", file_types=_ENDINGS, height=110, elem_id="clean"
            )
            c["clean_told"] = gr.HTML(_reference_told(None))
            c["start_compare"] = gr.Button("Compare", variant="primary", elem_id="start-compare")
    c["quality"] = gr.Radio(_QUALITIES, value="balanced", label="Quality", elem_id="quality")
    c["estimated"] = gr.Checkbox(True, label="Use the estimated noise", elem_id="estimated")
    c["sigma"] = gr.Slider(0, 100, value=0, label="Noise level σ", elem_id="sigma")
    c["strength"] = gr.Slider(0.2, 3, value=1, step=0.05, label="Strength", elem_id="strength")
    c["looking"] = gr.Textbox(visible=False)
    return c


def _stage() -> dict[str, Any]:
    """Make what shows how it goes and what came of it."""
    c: dict[str, Any] = {}
    with gr.Row(elem_id="bar"):
        c["status"] = gr.HTML(words.told("Drop a picture to begin.", "plain"), elem_id="status")
        c["cancel"] = gr.Button(
            "Cancel", variant="stop", interactive=False, elem_id="cancel", scale=0, min_width=110
        )
    c["downloads"] = gr.HTML("", elem_id="downloads")
    c["viewer"] = gr.HTML(words.nothing_yet(), elem_id="viewer")
    return c


def _choice(label: str, options: dict[str, str], name: str) -> gr.HTML:
    """Make a list of the browser's own, with a line about what is chosen: gradio's stays open on Tab."""
    first = next(iter(options))
    chosen = "".join(
        f'<option value="{escape(each)}" ${{value === {json.dumps(each)} ? "selected" : ""}}>'
        f"{escape(each) or 'choose'}</option>"
        for each in options
    )
    about = f"<small>${{({json.dumps(options)})[value] ?? ''}}</small>" if options[first] else ""
    return gr.HTML(
        first,
        html_template=f'<label class="choice"><span>{label}</span><select>{chosen}</select>{about}</label>',
        js_on_load="element.addEventListener('change', (event) => "
        "{ props.value = event.target.value; trigger('input'); });",
        elem_id=name,
    )


def _summary(name: str) -> str:
    """Return what a method is, in the words of its documentation."""
    words = (METHODS[name].__doc__ or "").partition("\n")[0].rstrip(".")
    words = words.removeprefix("Denoise an image with ").removeprefix("Denoise with ")
    return words[:1].upper() + words[1:]


def _connect(page: gr.Blocks, desk: Desk, c: dict[str, Any]) -> None:
    """Say what happens when a control is used."""
    quiet: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
    looked = [
        c[k]
        for k in (
            "found",
            "sigma",
            "estimated",
            "viewer",
            "status",
            "downloads",
            "cancel",
            "clean_told",
        )
    ]
    c["drop"].upload(desk.drop, c["drop"], [c["drop"], *looked], concurrency_limit=2, **quiet)
    c["example"].input(desk.example, c["example"], looked, concurrency_limit=2, **quiet)
    c["clean"].upload(desk.reference, c["clean"], [c["clean"], c["clean_told"]], **quiet)
    many: dict[str, Any] = {"concurrency_limit": None, "trigger_mode": "multiple", **quiet}
    shown = [c[k] for k in ("viewer", "status", "downloads", "cancel")]
    tuned = [c[k] for k in ("quality", "estimated", "sigma", "strength")]
    asked = [c["method"], *tuned, c["looking"]]
    c["start"].click(desk.denoise, asked, shown, js=_SEE % _WHERE, **many)
    c["strength"].input(desk.adjust, asked, shown, js=_WHERE, **many)
    c["sigma"].input(lambda: False, None, c["estimated"], concurrency_limit=None, **quiet).then(
        desk.adjust, asked, shown, js=_WHERE, **many
    )
    c["start_compare"].click(
        desk.compare, [c["methods"], *tuned], shown, js=_SEE % "(...given) => given", **many
    )
    c["cancel"].click(desk.cancel, None, c["status"], concurrency_limit=None, **quiet)
    c["method"].input(
        lambda name: gr.update(interactive="--quality" in own_options(METHODS[name])),
        c["method"], c["quality"], concurrency_limit=None, **quiet,
    )  # fmt: skip
    page.unload(desk.leave)


def _theme() -> gr.themes.Base:
    """Return gradio's plainest theme in our colours, with fonts every machine has."""
    theme = gr.themes.Base(
        primary_hue=gr.themes.colors.blue, neutral_hue=gr.themes.colors.slate,
        font=_FONTS, font_mono=["ui-monospace", "Menlo", "Consolas", "DejaVu Sans Mono", "monospace"],
    )  # fmt: skip
    return theme.set(
        body_background_fill="#f6f7f9", body_background_fill_dark="#10141a",
        block_background_fill="#ffffff", block_background_fill_dark="#181e26",
        body_text_color="#1d2430", body_text_color_dark="#e6eaf0",
        body_text_color_subdued="#5b6675", body_text_color_subdued_dark="#a3aebd",
        border_color_primary="#d9dee5", border_color_primary_dark="#303946",
        button_primary_background_fill="#1f5fbf", button_primary_background_fill_dark="#1f5fbf",
        button_primary_background_fill_hover="#184c9a", button_primary_background_fill_hover_dark="#184c9a",
        button_primary_text_color="#ffffff", button_primary_text_color_dark="#ffffff",
        color_accent="#1f5fbf", link_text_color="#1f5fbf", link_text_color_dark="#83b1ff",
        block_label_text_color="#5b6675", block_label_text_color_dark="#a3aebd",
    )  # fmt: skip
