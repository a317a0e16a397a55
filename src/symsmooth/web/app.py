"""The page: what it shows."""

from __future__ import annotations

import json
from html import escape
from importlib.resources import files
from typing import Any

import gradio as gr

from ..methods import METHODS
from . import html
from .examples import EXAMPLES
from .handlers import LOOKED, MAX_METHODS, MIN_METHODS, SHOWN, Handlers

_QUALITIES = ["preview", "fast", "balanced", "best"]
_ENDINGS = [".png", ".jpg", ".jpeg", ".bmp", ".webp", ".tif", ".tiff",
            ".fits", ".fit", ".fts", ".npy"]  # fmt: skip
_EVENTS = (
    10_000  # at once: every open tab has one that lasts (Handlers.stay), gradio's 40 is too few
)
_FONTS = ["system-ui", "-apple-system", "Segoe UI", "Roboto", "DejaVu Sans", "sans-serif"]
# Before a run: where does one look?  On a phone, bring what comes of it into view.
_WHERE = (
    "(...given) => { given[given.length - 1] = window.symsmooth?.looking ?? ''; return given; }"
)
_SEE = (
    "(...given) => { if (innerWidth < 700) document.querySelector('#bar').scrollIntoView(); "
    "return (%s)(...given); }"
)


def make_page(handlers: Handlers, max_bytes: int) -> tuple[gr.Blocks, dict[str, Any]]:
    """Return the page and how it looks."""
    with gr.Blocks(title="symsmooth", analytics_enabled=False) as page:
        gr.HTML(
            '<div class="title"><h1>symsmooth</h1><p>Denoise a picture: nothing to train, '
            "nothing leaves this machine.</p></div>"
        )
        with gr.Row():
            with gr.Column(scale=1, min_width=300, elem_id="controls"):
                parts = _controls(max_bytes)
            with gr.Column(scale=3, min_width=320, elem_id="stage"):
                parts |= _stage()
        _connect(page, handlers, parts)
    page.max_threads = _EVENTS
    page.queue(api_open=False)
    return page, {"theme": _theme(), "css": (files(__package__) / "page.css").read_text("utf-8")}


def _controls(max_bytes: int) -> dict[str, Any]:
    """Make the controls, in the order in which they are used."""
    c: dict[str, Any] = {}
    limit = f"{max_bytes / 2**20:.4g} MB"
    c["drop"] = gr.File(
        label=f"Picture, up to {limit}", file_types=_ENDINGS, height=140, elem_id="drop"
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
                label=f"{MIN_METHODS} to {MAX_METHODS} methods",
                elem_id="methods",
            )
            c["clean"] = gr.File(
                label="Clean picture, if known", file_types=_ENDINGS, height=140, elem_id="clean"
            )
            c["clean_told"] = gr.HTML(html.reference(None))
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
        c["status"] = gr.HTML(html.message("Drop a picture to begin.", "plain"), elem_id="status")
        c["cancel"] = gr.Button(
            "Cancel", variant="stop", interactive=False, elem_id="cancel", scale=0, min_width=110
        )
    c["downloads"] = gr.HTML("", elem_id="downloads")
    c["viewer"] = gr.HTML(html.nothing_yet(), elem_id="viewer")
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
    words = METHODS[name].summary.rstrip(".")
    words = words.removeprefix("Denoise an image with ").removeprefix("Denoise with ")
    return words[:1].upper() + words[1:]


def _connect(page: gr.Blocks, handlers: Handlers, c: dict[str, Any]) -> None:
    """Say what happens when a control is used."""
    quiet: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
    looked, shown = [c[name] for name in LOOKED], [c[name] for name in SHOWN]
    many: dict[str, Any] = {"concurrency_limit": None, "trigger_mode": "multiple", **quiet}
    # Not preprocessed: gradio would look for a file where there is just the token of an upload.
    raw: dict[str, Any] = {"preprocess": False, **many}
    c["drop"].upload(handlers.drop, c["drop"], looked, **raw)
    c["example"].input(handlers.example, c["example"], looked, **many)
    c["clean"].upload(handlers.reference, c["clean"], [c["clean"], c["clean_told"]], **raw)
    tuned = [c[k] for k in ("quality", "estimated", "sigma", "strength")]
    asked = [c["method"], *tuned, c["looking"]]
    c["start"].click(handlers.denoise, asked, shown, js=_SEE % _WHERE, **many)
    c["strength"].input(handlers.adjust, asked, shown, js=_WHERE, **many)
    c["sigma"].input(lambda: False, None, c["estimated"], concurrency_limit=None, **quiet).then(
        handlers.adjust, asked, shown, js=_WHERE, **many
    )
    c["start_compare"].click(
        handlers.compare, [c["methods"], *tuned], shown, js=_SEE % "(...given) => given", **many
    )
    c["cancel"].click(handlers.cancel, None, None, concurrency_limit=None, **quiet)
    c["method"].input(
        lambda name: gr.update(interactive="quality" in METHODS[name].options),
        c["method"], c["quality"], concurrency_limit=None, **quiet,
    )  # fmt: skip
    page.load(handlers.stay, None, None, concurrency_limit=None, **quiet)
    page.unload(lambda: None)  # or the page would not keep the connection that tells it is open


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
