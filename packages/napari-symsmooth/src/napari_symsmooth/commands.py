"""Commands of the menus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_COMMAND = "napari-symsmooth.denoise_layer"
_CONTEXT_MENU = "napari/layers/context"


def denoise_selected_layer() -> None:
    """Open the widget, if it is not there yet, and denoise the selected image layer as it says."""
    import napari
    from napari.utils.notifications import show_warning

    viewer = napari.current_viewer()
    layer = viewer.layers.selection.active if viewer is not None else None
    if not isinstance(layer, napari.layers.Image):
        show_warning("Select one image layer to denoise.")
        return
    dock, widget = viewer.window.add_plugin_dock_widget("napari-symsmooth", "Denoise")
    dock.show()
    panel = getattr(
        widget, "_magic_widget", widget
    )  # napari has the Qt widget of one it had before
    panel.layer.value = layer
    panel.denoise()


def on_activate(context: Any) -> None:
    """Put the command into the context menu of layers.

    napari does not take plug-ins' entries for that menu from their manifest yet, so that it has ours only
    after the plug-in was used; Layers > Filter has it always.
    """
    from app_model import Application

    app = Application.get_app("napari")
    if app is not None:
        context.register_disposable(add_to_context_menu(app))


def add_to_context_menu(app: Any) -> Callable[[], None]:
    """Put the command into the context menu of layers unless it is there; return what takes it out."""
    from app_model.types import MenuItem

    known = app.menus.get_menu(_CONTEXT_MENU) if _CONTEXT_MENU in app.menus else []
    if any(getattr(item, "command", None) and item.command.id == _COMMAND for item in known):
        return lambda: None
    command = {"id": _COMMAND, "title": "Denoise with symsmooth"}
    image = "num_selected_image_layers == 1"
    item = MenuItem(command=command, when=image, group="1_conversion")
    dispose: Callable[[], None] = app.menus.append_menu_items([(_CONTEXT_MENU, item)])
    return dispose
