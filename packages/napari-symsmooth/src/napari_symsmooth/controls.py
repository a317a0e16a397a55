"""The controls of the widget; made with magicgui."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

import napari.layers
from magicgui.widgets import (
    CheckBox,
    ComboBox,
    Container,
    FileEdit,
    FloatSlider,
    FloatSpinBox,
    Label,
    ProgressBar,
    PushButton,
    create_widget,
)
from qtpy.QtWidgets import QSizePolicy

from symsmooth.app.messages import NOISE_KINDS
from symsmooth.gsfw.presets import PRESETS

from .axes import CHOICES, Role, guess_roles
from .layers import full_shape
from .run import NoiseChoice

_SMALLEST, _LARGEST = 0.2, 3.0  # strength: below, hardly anything is removed; above, all detail is
_QUALITY = "How much time to spend: preview is the fastest, best the slowest."
_NOISE = "\n".join(
    [f"{kind.word}: {kind.about}" for kind in NOISE_KINDS]
    + ["from a rectangle: Measured on flat ground that you mark."]
    + ["from a file: A model of your camera, as “Save noise” and symsmooth noise write it."]
)
_STRENGTH = "Above 1 for a smoother picture, below 1 for more detail."
_LEVEL = "Standard deviation of the noise in the units of the pixels; 0 to have it estimated."
_SHAPES = "Draw a rectangle on flat ground, at least 16 pixels a side, and keep it selected."
_MODEL = "A noise model, such as camera.json; it must be about pixels in the same units."
_BLEND = "How much of the noise reduction the result has: 0 is the layer, 1 the result. At once."
_BLEND_COLOUR = "The same for colour, which is what red, green and blue differ in."
_STD = "Add a layer with the standard deviation of the result at each pixel."
_AXIS = (
    "one by one: each plane by itself. volume: planes above and below help. series: frames help each "
    "other, wherever things move. "
    "channels: together where they show the same things."
)


def layer_choice() -> Any:
    """Return a choice among the image layers of the viewer."""
    return create_widget(annotation=napari.layers.Image, name="layer", label="Layer")


def quality_choice() -> ComboBox:
    """Return a choice among the presets."""
    return ComboBox(
        name="quality", label="Quality", choices=list(PRESETS), value="balanced", tooltip=_QUALITY
    )


class NoiseControls:
    """Which noise it is, and what must be said of it: rows of a form."""

    def __init__(self) -> None:
        choices = list(get_args(NoiseChoice))
        self.kind = ComboBox(name="kind", label="Noise", choices=choices, tooltip=_NOISE)
        self.level = FloatSpinBox(
            name="level", label="Level", min=0.0, max=1e9, step=0.1, value=0.0, tooltip=_LEVEL
        )
        self.shapes = create_widget(
            annotation=napari.layers.Shapes,
            name="shapes",
            label="Rectangle",
            options={"tooltip": _SHAPES},
        )
        self.file = FileEdit(name="file", label="Model", mode="r", filter="*.json", tooltip=_MODEL)
        self.rows = [self.kind, self.level, self.shapes, self.file]
        self.kind.changed.connect(self.show_what_is_asked)

    def show_what_is_asked(self, kind: str) -> None:
        """Show the level for white noise, the rectangle for noise that is measured, the name of a file."""
        self.level.visible = kind == "white"
        self.shapes.visible = kind == "from a rectangle"
        self.file.visible = kind == "from a file"


class AxisControls:
    """What each axis of a layer is that is not one of the plane: rows of a form, below a certain one."""

    def __init__(self, form: Container, below: Any) -> None:
        self._form, self._below = form, below
        self._guessed: tuple[Role, ...] = ()
        self.rows: dict[int, ComboBox] = {}

    def show_layer(self, layer: Any, dims_labels: Sequence[str]) -> None:
        """Show the axes of a layer, with what their labels say of them."""
        for row in self.rows.values():
            self._form.remove(row)
        self.rows = {}
        labels = () if layer is None else axis_labels(layer, dims_labels)
        self._guessed = guess_roles(labels)
        first = self._form.index(self._below) + 1
        for axis, role in enumerate(self._guessed):
            if role != "plane":
                known = f"Axis {labels[axis] if labels[axis].isalpha() else axis}"
                row = _axis_row(f"{known} ({full_shape(layer)[axis]})", axis, role, layer.rgb)
                self._form.insert(first + len(self.rows), row)
                self.rows[axis] = row

    @property
    def roles(self) -> tuple[Role, ...]:
        """What each axis is."""
        return tuple(
            self.rows[axis].value if axis in self.rows else role
            for axis, role in enumerate(self._guessed)
        )


def _axis_row(label: str, axis: int, role: Role, rgb: bool) -> ComboBox:
    choices = [choice for choice in CHOICES if not (rgb and choice == "channels")]
    return ComboBox(name=f"axis_{axis}", label=label, choices=choices, value=role, tooltip=_AXIS)


def form(rows: Sequence[Any]) -> Container:
    """Return rows with their labels."""
    made = Container(name="form")
    made.margins = (0, 0, 0, 0)
    made.extend(rows)  # labels get one width when rows are added, not when they are given at once
    return made


def axis_labels(layer: Any, dims_labels: Sequence[str]) -> tuple[str, ...]:
    """Return the names of a layer's axes: its own, or those of the viewer if it has none."""
    own = tuple(layer.axis_labels)
    of_viewer = tuple(dims_labels)[-layer.ndim :]
    unnamed = not any(any(letter.isalpha() for letter in label) for label in own)
    return of_viewer if unnamed and len(of_viewer) == len(own) else own


def strength_slider() -> FloatSlider:
    """Return a slider for the strength."""
    return FloatSlider(
        name="strength",
        label="Strength",
        min=_SMALLEST,
        max=_LARGEST,
        step=0.05,
        value=1.0,
        tooltip=_STRENGTH,
    )


class BlendControls:
    """How much of the noise reduction the newest result has: two sliders that are there once it is."""

    def __init__(self) -> None:
        self.strength = _share_slider("blend", "Result", _BLEND)
        self.colour = _share_slider("blend_colour", "Result, colour", _BLEND_COLOUR)
        self.rows = [self.strength, self.colour]
        self.show(False, False)

    def show(self, visible: bool, colour: bool) -> None:
        """Show the sliders, at full strength."""
        for slider, shown in ((self.strength, visible), (self.colour, visible and colour)):
            with slider.changed.blocked():
                slider.value = 1.0
            slider.visible = shown


def _share_slider(name: str, label: str, tooltip: str) -> FloatSlider:
    return FloatSlider(
        name=name,
        label=label,
        min=0.0,
        max=1.0,
        step=0.01,
        value=1.0,
        tooltip=tooltip,
        tracking=False,  # a stack is blended when the slider is let go
    )


def std_box() -> CheckBox:
    """Return whether the uncertainty is asked for."""
    return CheckBox(name="with_std", text="Uncertainty as a layer", tooltip=_STD)


def button(name: str, text: str, tooltip: str) -> PushButton:
    """Return a button."""
    return PushButton(name=name, text=text, tooltip=tooltip)


def buttons(row: Sequence[PushButton]) -> Container:
    """Return buttons side by side."""
    made = Container(name="buttons", layout="horizontal", labels=False, widgets=row)
    made.margins = (0, 0, 0, 0)
    return made


def progress_bar() -> ProgressBar:
    """Return a bar in percent, hidden until there is something to show."""
    return ProgressBar(name="progress", min=0, max=100, value=0, visible=False)


def text_line(name: str) -> Label:
    """Return a text that is broken into lines as the widget's width asks."""
    label = Label(name=name, value="")
    policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)
    policy.setHeightForWidth(True)
    label.native.setWordWrap(True)
    label.native.setSizePolicy(policy)  # magicgui keeps labels at the size of their first text
    return label
