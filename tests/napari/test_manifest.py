"""What napari finds of the plug-in."""

from __future__ import annotations

import numpy as np
import pytest

from napari_symsmooth.commands import add_to_context_menu

pytest.importorskip("napari", reason="napari is not installed: make napari-test")
pytest.importorskip("pytestqt", reason="pytest-qt is not installed: make napari-test")
npe2 = pytest.importorskip("npe2", reason="npe2 is not installed: make napari-test")

CONTEXT_MENU = "napari/layers/context"


def test_the_manifest_is_valid_and_all_it_names_is_there() -> None:
    manifest = npe2.PluginManifest.from_distribution("napari-symsmooth")
    manifest.validate_imports()
    named = {command.id for command in manifest.contributions.commands}
    assert {widget.command for widget in manifest.contributions.widgets} <= named
    assert {sample.command for sample in manifest.contributions.sample_data} <= named


@pytest.mark.parametrize("key", ["photons", "photograph", "colour", "volume"])
def test_samples_are_opened(make_napari_viewer, key) -> None:
    viewer = make_napari_viewer()
    (layer,) = viewer.open_sample("napari-symsmooth", key)
    assert layer.ndim == (3 if key == "volume" else 2)
    if key in ("photons", "volume"):
        assert {str(unit) for unit in layer.units} == {"micrometer"}


def test_the_command_denoises_the_selected_layer(make_napari_viewer, qtbot, monkeypatch) -> None:
    from napari_symsmooth.commands import denoise_selected_layer

    heard: list[str] = []
    monkeypatch.setattr("napari.utils.notifications.show_warning", heard.append)
    viewer = make_napari_viewer()
    denoise_selected_layer()
    assert heard == ["Select one image layer to denoise."]
    rng = np.random.default_rng(0)
    first = viewer.add_image(rng.normal(0, 1, (40, 40)), name="first")
    viewer.add_image(rng.normal(0, 1, (40, 40)), name="second")
    for name in ("first denoised", "first denoised [1]"):  # the widget is made once
        viewer.layers.selection.active = first
        denoise_selected_layer()
        qtbot.waitUntil(lambda name=name: name in viewer.layers, timeout=60_000)
        qtbot.wait(50)


def test_the_command_is_in_the_menus(make_napari_viewer, mock_app_model) -> None:
    make_napari_viewer()
    app = mock_app_model

    def commands(menu: str) -> list[str]:
        items = app.menus.get_menu(menu)
        return [item.command.id for item in items if hasattr(item, "command")]

    assert "napari-symsmooth.denoise_layer" in commands("napari/layers/filter")
    dispose = add_to_context_menu(app)
    add_to_context_menu(app)
    assert commands(CONTEXT_MENU).count("napari-symsmooth.denoise_layer") == 1
    dispose()
    assert "napari-symsmooth.denoise_layer" not in commands(CONTEXT_MENU)
