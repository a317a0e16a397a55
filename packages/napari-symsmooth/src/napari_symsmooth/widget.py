"""The widget: denoise a layer, or see in advance what that would do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Any

import napari.layers
from magicgui.widgets import Container
from napari.qt.threading import create_worker
from napari.utils.notifications import show_warning
from qtpy.QtCore import QTimer
from qtpy.QtWidgets import QFileDialog

from symsmooth import __version__
from symsmooth.core.parallel import Cancelled
from symsmooth.io.noise_files import save_noise
from symsmooth.noise import Noise

from . import controls
from .axes import Role
from .layers import (
    Box,
    Source,
    like_layer,
    like_layer_with_other_values,
    moved,
    open_layer,
    place_in,
    rectangle_in,
    seen_slice,
    visible_box,
)
from .run import Result, Settings, Watch, run
from .strengths import Blendable

_MILLISECONDS = 100  # between two checks of how far a run is
_PREVIEW_NAME = "denoised preview"


class DenoiseWidget(Container):
    """Denoise a layer of a viewer in a worker thread.

    Parameters
    ----------
    napari_viewer : napari.Viewer
    """

    def __init__(self, napari_viewer: Any) -> None:
        self._viewer = napari_viewer
        self.layer = controls.layer_choice()
        self.quality = controls.quality_choice()
        self.noise = controls.NoiseControls()
        self.strength = controls.strength_slider()
        self.with_std = controls.std_box()
        self.blend = controls.BlendControls()
        self.preview_button = controls.button(
            "preview_button", "Preview", "Denoise what is seen, up to 512 x 512 pixels of it."
        )
        self.run_button = controls.button("run_button", "Denoise", "Denoise all of the layer.")
        self.cancel_button = controls.button("cancel_button", "Cancel", "Stop the run.")
        self.save_button = controls.button(
            "save_button", "Save noise", "Keep the noise of the last run for other pictures."
        )
        self.progress = controls.progress_bar()
        self.status = controls.text_line("status")
        rows = [self.layer, self.quality, *self.noise.rows, self.strength, self.with_std]
        rows += self.blend.rows
        form = controls.form(rows)
        buttons = controls.buttons(
            [self.preview_button, self.run_button, self.cancel_button, self.save_button]
        )
        super().__init__(labels=False, widgets=[form, buttons, self.progress, self.status])
        self.axes = controls.AxisControls(form, below=self.layer)
        self._watch: Watch | None = None
        self._is_closed = False
        self._model: Noise | None = None  # of the last run
        self._result: tuple[Any, Blendable] | None = None  # its layer, and what it is made of
        self._timer = QTimer(self.native)
        self._timer.setInterval(_MILLISECONDS)
        self._timer.timeout.connect(self._show_progress)
        self._connect()

    def _connect(self) -> None:
        self.layer.changed.connect(self._show_axes)
        self.preview_button.changed.connect(lambda: self.preview())
        self.run_button.changed.connect(lambda: self.denoise())
        self.cancel_button.changed.connect(lambda: self.cancel())
        self.save_button.changed.connect(lambda: self._ask_where_to_save())
        for slider in self.blend.rows:
            slider.changed.connect(lambda _: self._blend_result())
        self.native.destroyed.connect(self._close)
        self.noise.show_what_is_asked(self.noise.kind.value)
        self._show_running(False)
        self._show_axes()

    def denoise(self) -> Any:
        """Denoise all of the layer; return the worker, None if it could not start."""
        return self._start(preview=False)

    def preview(self) -> Any:
        """Denoise what is seen of the layer; return the worker, None if it could not start."""
        return self._start(preview=True)

    def save_noise(self, path: str) -> None:
        """Keep the noise of the last run as a file, such as camera.json."""
        if self._model is None:
            self._say("denoise or preview a layer first; its noise can be saved then")
            return
        try:
            save_noise(self._model, path)
        except ValueError as error:
            self._say(str(error))
        else:
            self.status.value = f"Saved {path}."

    def _ask_where_to_save(self) -> None:
        if self._model is None:
            self.save_noise("")
            return
        path, _ = QFileDialog.getSaveFileName(
            self.native, "Save noise", "camera.json", "Noise models (*.json)"
        )
        if path:
            self.save_noise(path)

    def cancel(self) -> None:
        """End what is running."""
        if self._watch is not None:
            self._watch.cancel.set()

    def _close(self) -> None:
        """End what is running; nothing can be shown any more."""
        self._is_closed = True
        self.cancel()

    def _start(self, preview: bool) -> Any:
        layer = self.layer.value
        if self._watch is not None or layer is None:
            self.status.value = (
                "Open an image first." if layer is None else "Wait, or cancel the run."
            )
            return None
        roles: tuple[Role, ...] = self.axes.roles
        place = place_in(layer, self._viewer.dims.point)
        try:
            source, settings = open_layer(layer, roles), self._settings(layer, roles)
            box = visible_box(layer, roles, place) if preview else None
            part = None if box is None else source.within(box)
        except ValueError as error:
            self._say(str(error))
            return None
        watch = self._watch = Watch()
        task = partial(run, source, settings, watch, place, part)
        worker = create_worker(_unless_cancelled, task, _start_thread=False)
        if box is None:
            finish = partial(self._add_result, layer, source, settings)
        else:
            finish = partial(self._show_preview, layer, roles, settings, place, box)
        worker.returned.connect(partial(self._end, finish))
        worker.errored.connect(self._fail)
        self._show_running(True)
        worker.start()
        return worker

    def _settings(self, layer: Any, roles: tuple[Role, ...]) -> Settings:
        region = None
        if self.noise.kind.value == "from a rectangle":
            if self.noise.shapes.value is None:
                raise ValueError("add a Shapes layer and draw a rectangle on flat ground")
            region = rectangle_in(layer, roles, self.noise.shapes.value, self._viewer.dims.point)
        file = str(self.noise.file.value) if self.noise.kind.value == "from a file" else ""
        return Settings(
            self.quality.value, self.noise.kind.value, self.noise.level.value, region,
            file, self.strength.value, self.with_std.value,
        )  # fmt: skip

    def _end(self, finish: Callable[[Result], None], result: Result | str | None) -> None:
        """Show what came of a run: a result, why there is none, or nothing if it was cancelled."""
        self._watch = None
        if self._is_closed:
            return
        self._show_running(False)
        if result is None:
            self.status.value = "Cancelled."
        elif isinstance(result, str):
            self._say(result)
        else:
            self._model = result.model
            finish(result)
            self.status.value = f"Done. {_sentence(result.noise.words)}"
            for warning in result.warnings:
                self._say(warning, after=f"{self.status.value}\n")

    def _fail(self, error: Exception) -> None:
        """Show that there was an error nobody thought of; napari shows where."""
        self._watch = None
        if self._is_closed:
            return
        self._show_running(False)
        self.status.value = f"Failed: {error}"

    def _say(self, text: str, after: str = "") -> None:
        """Say what must be known, here and where napari says such things."""
        sentence = _sentence(text)
        self.status.value = after + sentence
        show_warning(sentence)

    def _add_result(self, layer: Any, source: Source, settings: Settings, result: Result) -> None:
        notes = _notes(layer, settings, result)
        attributes = like_layer(layer, f"{layer.name} denoised", notes)
        blendable = Blendable(source, result.image)
        denoised = napari.layers.Image(blendable.made(), **attributes)
        self._result = denoised, blendable
        self.blend.show(True, blendable.has_colour)
        self._viewer.add_layer(denoised)
        if result.std is not None:
            attributes = like_layer_with_other_values(layer, f"{layer.name} uncertainty", notes)
            uncertainty = napari.layers.Image(result.std, **attributes)
            self._viewer.add_layer(uncertainty)
            uncertainty.visible = False
            self._viewer.layers.selection.active = denoised

    def _blend_result(self) -> None:
        """Make the newest result what the sliders say, without denoising again."""
        if self._result is None or self._result[0] not in self._viewer.layers:
            self.blend.show(False, False)
            return
        shown, blendable = self._result
        strength = self.blend.strength.value
        colour = self.blend.colour.value if blendable.has_colour else strength
        blendable.write(shown.data, strength, colour)
        shown.metadata["symsmooth"]["blend"] = (strength, colour)
        shown.refresh()

    def _show_preview(
        self,
        layer: Any,
        roles: tuple[Role, ...],
        settings: Settings,
        place: tuple[int, ...],
        box: Box,
        result: Result,
    ) -> None:
        """Lay the denoised part over the layer, in place of the last preview."""
        pixels, shown = seen_slice(result.image, roles, box, place)
        attributes = like_layer(layer, _PREVIEW_NAME, _notes(layer, settings, result))
        attributes["translate"] = moved(layer, shown)
        if _PREVIEW_NAME in self._viewer.layers:
            self._viewer.layers.remove(_PREVIEW_NAME)
        self._viewer.add_layer(napari.layers.Image(pixels, **attributes))
        self._viewer.layers.selection.active = layer

    def _show_axes(self) -> None:
        self.axes.show_layer(self.layer.value, self._viewer.dims.axis_labels)

    def _show_running(self, running: bool) -> None:
        self.cancel_button.enabled = running
        self.preview_button.enabled = self.run_button.enabled = not running
        self.progress.visible = running
        self.progress.value = 0
        if running:
            self.status.value = ""
            self._timer.start()
        else:
            self._timer.stop()

    def _show_progress(self) -> None:
        if self._watch is not None:
            self.progress.value = round(100 * self._watch.fraction)
            self.status.value = f"{self._watch.what} ..."


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _unless_cancelled(task: Callable[[], Result]) -> Result | str | None:
    """Run a task in a worker thread; return None if it was cancelled, what was wrong if that is known."""
    try:
        return task()
    except Cancelled:
        return None
    except (ValueError, TypeError) as error:
        return str(error)
    except MemoryError:
        return "there is not enough memory; crop the layer, or use symsmooth denoise on the file"


def _notes(layer: Any, settings: Settings, result: Result) -> dict[str, Any]:
    """Return what is kept in the metadata of a result: what was asked for and what was decided."""
    return {
        "version": __version__,
        "source": layer.name,
        **asdict(settings),
        "noise": result.noise.words,
        "noise_model": result.noise.detail,
        "warnings": list(result.warnings),
    }
