"""The widget in a viewer, off screen."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import symsmooth

napari = pytest.importorskip("napari", reason="napari is not installed: make napari-test")
pytest.importorskip("pytestqt", reason="pytest-qt is not installed: make napari-test")

WAIT = 60_000  # milliseconds
FAST = {"quality": "preview", "rng": 0}


@pytest.fixture
def noisy(camera) -> np.ndarray:
    rng = np.random.default_rng(0)
    return np.clip(255 * camera + rng.normal(0, 20, camera.shape), 0, 255).astype(np.uint8)


@pytest.fixture
def viewer(make_napari_viewer):
    return make_napari_viewer()


@pytest.fixture
def widget(viewer):
    _, widget = viewer.window.add_plugin_dock_widget("napari-symsmooth", "Denoise")
    widget.quality.value = "preview"
    return widget


@pytest.fixture
def said(monkeypatch) -> list[str]:
    """What napari was told to say."""
    heard: list[str] = []
    monkeypatch.setattr("napari_symsmooth.widget.show_warning", heard.append)
    return heard


@pytest.fixture
def finish(qtbot, widget):
    """Wait for the run that a button started."""

    def wait(button) -> None:
        button.native.click()
        qtbot.waitUntil(lambda: widget.run_button.enabled, timeout=WAIT)

    return wait


@pytest.fixture
def denoise(finish, widget, viewer):
    """Press Denoise; return the new layers."""

    def press() -> list:
        before = len(viewer.layers)
        finish(widget.run_button)
        return list(viewer.layers)[before:]

    return press


def test_a_picture_is_denoised_as_the_api_does_it(viewer, widget, denoise, noisy) -> None:
    viewer.add_image(noisy, name="cells")
    (result,) = denoise()
    assert result.name == "cells denoised"
    assert result.data.dtype == np.uint8
    assert np.array_equal(result.data, symsmooth.denoise(noisy, **FAST))
    assert widget.status.value.startswith("Done. White noise, about ")


def test_the_result_lies_where_the_layer_does_and_looks_like_it(
    viewer, widget, denoise, noisy
) -> None:
    layer = viewer.add_image(
        noisy, scale=(0.3, 0.2), translate=(5, 7), rotate=30, units=("um", "um"),
        axis_labels=("y", "x"), colormap="green", contrast_limits=(20, 190), gamma=0.8,
        blending="additive", metadata={"stain": "DAPI"},
    )  # fmt: skip
    widget.with_std.value = True
    result, uncertainty = denoise()
    for each in (result, uncertainty):
        assert np.array_equal(each.scale, layer.scale)
        assert np.array_equal(each.translate, layer.translate)
        assert np.array_equal(each.rotate, layer.rotate)
        assert each.units == layer.units
        assert each.axis_labels == layer.axis_labels
        assert each.metadata["stain"] == "DAPI"
    assert result.colormap.name == "green"
    assert tuple(result.contrast_limits) == (20, 190)
    assert (result.gamma, result.blending) == (0.8, "additive")
    assert uncertainty.data.shape == noisy.shape
    assert uncertainty.contrast_limits[1] == pytest.approx(uncertainty.data.max(), rel=0.01)


def test_metadata_say_what_was_decided(viewer, widget, denoise, noisy) -> None:
    layer = viewer.add_image(noisy, name="cells", metadata={"stain": "DAPI"})
    widget.strength.value = 1.5
    (result,) = denoise()
    notes = result.metadata["symsmooth"]
    assert notes["source"] == "cells"
    assert notes["strength"] == 1.5
    assert notes["noise"].startswith("white noise, about ")
    assert notes["version"] == symsmooth.__version__
    assert layer.metadata == {"stain": "DAPI"}


def test_colours(viewer, denoise, noisy) -> None:
    colours = np.stack([noisy, noisy.T, noisy[::-1]], axis=-1).astype(np.uint16)
    viewer.add_image(colours, rgb=True)
    (result,) = denoise()
    assert result.rgb
    assert np.array_equal(result.data, symsmooth.denoise(colours, channel_axis=-1, **FAST))


@pytest.mark.parametrize(
    ("labels", "role", "axis"),
    [
        (("z", "y", "x"), "volume", None),
        (("t", "y", "x"), "one by one", None),
        (("c", "y", "x"), "channels", 0),
        (None, "one by one", None),
    ],
)
def test_axes_are_what_their_labels_say(viewer, widget, denoise, noisy, labels, role, axis) -> None:
    stack = np.stack([noisy, noisy[::-1], noisy.T])
    viewer.add_image(stack, axis_labels=labels)
    assert widget.axes.roles == (role, "plane", "plane")
    widget.noise.kind.value, widget.noise.level.value = "white", 20.0
    (result,) = denoise()
    expected = symsmooth.denoise(stack, 20.0, channel_axis=axis, tone="linear", **FAST)
    if role == "one by one":
        expected = np.stack([symsmooth.denoise(plane, 20.0, **FAST) for plane in stack])
    assert np.array_equal(result.data, expected)


def test_time_can_be_a_series(viewer, widget, denoise, finish, noisy) -> None:
    series = np.stack([noisy] * 9)
    viewer.add_image(series, axis_labels=("t", "y", "x"))
    assert set(widget.axes.rows[0].choices) == {"one by one", "volume", "series", "channels"}
    widget.axes.rows[0].value = "series"
    widget.noise.kind.value, widget.noise.level.value = "white", 20.0
    (result,) = denoise()
    assert np.array_equal(result.data, symsmooth.denoise(series, 20.0, time_axis=0, **FAST))
    viewer.dims.set_current_step(0, 4)
    finish(widget.preview_button)
    preview = viewer.layers["denoised preview"]
    assert preview.data.shape == (1, 64, 64)
    assert preview.translate[0] == 4
    around = symsmooth.denoise(series[1:8], 20.0, time_axis=0, **FAST)
    assert np.array_equal(preview.data[0], around[3])


def test_strength_after_the_fact(viewer, widget, denoise, noisy) -> None:
    assert not widget.blend.strength.native.isVisibleTo(widget.native)
    colours = np.stack([noisy, noisy.T, noisy[::-1]], axis=-1)
    viewer.add_image(colours, rgb=True)
    (result,) = denoise()
    whole = result.data.copy()
    assert widget.blend.strength.native.isVisibleTo(widget.native)
    assert widget.blend.colour.native.isVisibleTo(widget.native)
    widget.blend.strength.value = 0.0
    assert not np.array_equal(result.data, colours)  # colour is still that of the result
    widget.blend.colour.value = 0.0
    assert np.array_equal(result.data, colours)
    assert result.metadata["symsmooth"]["blend"] == (0.0, 0.0)
    widget.blend.strength.value = widget.blend.colour.value = 1.0
    assert np.array_equal(result.data, whole)
    viewer.layers.remove(result)
    widget.blend.strength.value = 0.5  # there is nothing to blend
    assert not widget.blend.strength.native.isVisibleTo(widget.native)
    viewer.add_image(noisy)
    widget.layer.value = viewer.layers[-1]
    denoise()
    assert widget.blend.strength.native.isVisibleTo(widget.native)
    assert widget.blend.strength.value == 1.0
    assert not widget.blend.colour.native.isVisibleTo(widget.native)


def test_noise_is_saved_and_used_again(
    viewer, widget, denoise, said, noisy, tmp_path, monkeypatch
) -> None:
    from napari_symsmooth import widget as module

    path = tmp_path / "camera.json"
    answer = [str(path)]
    monkeypatch.setattr(module.QFileDialog, "getSaveFileName", lambda *_: (answer[0], ""))
    viewer.add_image(noisy)
    widget.save_button.native.click()
    assert "denoise or preview a layer first" in said[-1].lower()
    (first,) = denoise()
    answer[0] = ""
    widget.save_button.native.click()  # no name was given
    assert not path.exists()
    answer[0] = str(tmp_path / "camera.txt")
    widget.save_button.native.click()
    assert "is JSON" in said[-1]
    answer[0] = str(path)
    widget.save_button.native.click()
    assert widget.status.value == f"Saved {path}."
    widget.noise.kind.value, widget.noise.file.value = "from a file", path
    (second,) = denoise()
    assert np.array_equal(second.data, first.data)
    assert second.metadata["symsmooth"]["file"] == str(path)


def test_axes_can_be_chosen(viewer, widget, denoise, noisy) -> None:
    stack = np.stack([noisy, noisy[::-1]])
    viewer.add_image(stack)
    widget.axes.rows[0].value = "channels"
    widget.noise.kind.value, widget.noise.level.value = "white", 20.0
    (result,) = denoise()
    assert np.array_equal(result.data, symsmooth.denoise(stack, 20.0, channel_axis=0, **FAST))


def test_what_is_seen_of_a_layer() -> None:
    """Its visible corners, all of it if nothing was drawn; the middle 512 pixels a side at most."""
    from napari_symsmooth.layers import visible_box

    layer = napari.layers.Image(np.zeros((9, 3, 600, 700)))
    roles = ("volume", "one by one", "plane", "plane")
    layer.corner_pixels = np.array([[0, 0, 10, 20], [8, 2, 49, 59]])
    seen = visible_box(layer, roles, (7, 1, 0, 0))
    assert seen == (slice(5, 10), slice(1, 2), slice(10, 50), slice(20, 60))
    layer.corner_pixels = np.zeros((2, 4), int)
    seen = visible_box(layer, ("channels", *roles[1:]), (7, 1, 0, 0))
    assert seen == (slice(0, 9), slice(1, 2), slice(44, 556), slice(94, 606))


def test_what_is_seen_of_a_pyramid_is_in_full_resolution() -> None:
    from napari_symsmooth.layers import visible_box

    layer = napari.layers.Image([np.zeros((400, 400)), np.zeros((200, 200))], multiscale=True)
    layer.data_level = 1
    layer.corner_pixels = np.array([[10, 20], [49, 59]])
    rows, columns = visible_box(layer, ("plane", "plane"), (0, 0))
    assert (rows.start, rows.stop, columns.start, columns.stop) == (20, 99, 40, 119)


def test_a_preview_covers_what_is_seen(viewer, widget, finish, noisy, monkeypatch) -> None:
    from napari_symsmooth import widget as module

    seen = slice(1, 2), slice(10, 50), slice(20, 60)
    monkeypatch.setattr(module, "visible_box", lambda *_: seen)
    stack = np.stack([noisy, noisy[::-1], noisy.T])
    layer = viewer.add_image(stack, scale=(2, 0.5, 0.5), translate=(0, 3, 4))
    viewer.dims.set_current_step(0, 1)
    for _ in range(2):  # the second takes the place of the first
        finish(widget.preview_button)
        assert len(viewer.layers) == 2
    preview = viewer.layers["denoised preview"]
    assert preview.data.shape == (1, 40, 40)
    assert np.allclose(preview.translate, (2, 3 + 5, 4 + 10))
    assert viewer.layers.selection.active is layer
    change = preview.data[0].astype(float) - noisy[::-1][10:50, 20:60]
    assert 5 < change.std() < 25


def test_a_preview_of_a_volume_is_the_slice_that_is_seen(viewer, widget, finish, noisy) -> None:
    viewer.add_image(np.stack([noisy] * 9), axis_labels=("z", "y", "x"))
    viewer.dims.set_current_step(0, 7)
    finish(widget.preview_button)
    preview = viewer.layers["denoised preview"]
    assert preview.data.shape == (1, 64, 64)
    assert preview.translate[0] == 7


def test_a_run_is_cancelled(viewer, widget, qtbot, monkeypatch, noisy) -> None:
    """The run waits until it was told to end, then goes on: it must end by itself."""
    from napari_symsmooth import widget as module

    started, original = threading.Event(), module.run

    def wait_and_run(source, settings, watch, *rest):
        started.set()
        assert watch.cancel.wait(30)
        return original(source, settings, watch, *rest)

    monkeypatch.setattr(module, "run", wait_and_run)
    viewer.add_image(noisy)
    widget.run_button.native.click()
    qtbot.waitUntil(started.is_set, timeout=WAIT)
    assert not widget.run_button.enabled
    assert widget.denoise() is None  # one at a time
    widget.cancel_button.native.click()
    qtbot.waitUntil(lambda: widget.run_button.enabled, timeout=WAIT)
    assert widget.status.value == "Cancelled."
    assert len(viewer.layers) == 1


def test_progress_is_shown(viewer, widget, qtbot, noisy) -> None:
    viewer.add_image(np.stack([noisy] * 6))
    seen: list[int] = []
    widget.progress.changed.connect(seen.append)
    widget.quality.value = "balanced"
    widget.run_button.native.click()
    assert widget.progress.native.isVisibleTo(widget.native)
    qtbot.waitUntil(lambda: widget.run_button.enabled, timeout=WAIT)
    assert max(seen) > 0  # how far it came between two looks depends on the machine
    assert not widget.progress.native.isVisibleTo(widget.native)


def test_noise_from_a_rectangle(viewer, widget, denoise, said) -> None:
    rng = np.random.default_rng(0)
    image = viewer.add_image(rng.normal(100, 5, (80, 90)), scale=(2, 2), translate=(10, 20))
    widget.noise.kind.value = "from a rectangle"
    assert denoise() == []
    assert "Shapes layer" in said[-1]
    shapes = viewer.add_shapes(scale=(0.5, 0.5))
    assert denoise() == []
    assert "there is none" in said[-1]
    corners = [image.data_to_world(p) for p in ((8, 16), (8, 56), (40, 56), (40, 16))]
    shapes.add_rectangles([shapes.world_to_data(corner) for corner in corners])
    (result,) = denoise()
    assert result.metadata["symsmooth"]["region"] == (17, 9, 39, 31)
    assert result.metadata["symsmooth"]["noise"].startswith("white noise, about 5")


def test_doubts_are_shown(viewer, widget, denoise, said) -> None:
    viewer.add_image(np.add.outer(np.arange(64.0), np.arange(64.0)))
    (result,) = denoise()
    assert said[-1].startswith("Almost nothing was removed")
    assert said[-1] in widget.status.value
    assert result.metadata["symsmooth"]["warnings"]


def test_what_cannot_be_denoised_is_said_in_one_line(viewer, widget, denoise, said) -> None:
    viewer.add_image(np.eye(64, dtype=bool))
    assert denoise() == []
    assert said[-1].startswith("The layer holds bool values")
    viewer.layers.clear()
    widget.run_button.native.click()
    assert widget.status.value == "Open an image first."


def test_pyramids_are_denoised_in_full_resolution(viewer, denoise, noisy) -> None:
    viewer.add_image([noisy, noisy[::2, ::2]], multiscale=True)
    (result,) = denoise()
    assert not result.multiscale
    assert np.array_equal(result.data, symsmooth.denoise(noisy, **FAST))


def test_only_what_is_needed_is_asked_for(viewer, widget) -> None:
    def shown(control) -> bool:
        return control.native.isVisibleTo(widget.native)

    for kind, asked in (
        ("automatic", None),
        ("white", widget.noise.level),
        ("from a rectangle", widget.noise.shapes),
        ("from a file", widget.noise.file),
        ("photon", None),
    ):
        widget.noise.kind.value = kind
        others = (widget.noise.level, widget.noise.shapes, widget.noise.file)
        assert [row for row in others if shown(row)] == ([] if asked is None else [asked])
    viewer.add_image(np.zeros((8, 9)))
    assert not widget.axes.rows
    viewer.add_image(np.zeros((3, 8, 9)))
    widget.layer.value = viewer.layers[-1]
    assert shown(widget.axes.rows[0])


def test_a_widget_that_is_gone_ends_its_run(viewer, widget, qtbot, noisy) -> None:
    """Nothing is shown any more: pytest-qt fails if a slot raises."""
    viewer.add_image(np.stack([noisy] * 40))
    widget.quality.value = "best"
    worker = widget.denoise()
    with qtbot.waitSignal(worker.finished, timeout=WAIT):
        viewer.window.remove_dock_widget(widget.native)
        widget.native.deleteLater()
    assert len(viewer.layers) == 1
