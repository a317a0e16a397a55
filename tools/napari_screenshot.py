"""Draw docs/images/napari.png: xvfb-run -s "-screen 0 1600x1000x24" python tools/napari_screenshot.py."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import napari
from qtpy.QtWidgets import QApplication

TARGET = Path(__file__).parent.parent / "docs" / "images" / "napari.png"


def wait(until: Callable[[], bool], seconds: float = 60.0) -> None:
    """Let Qt work until something is so."""
    end = time.monotonic() + seconds
    while not until() and time.monotonic() < end:
        QApplication.processEvents()
        time.sleep(0.01)


def main() -> None:
    """Denoise a sample, half of it laid over the noisy one, and take a picture of the window."""
    viewer = napari.Viewer(show=True)
    viewer.window.resize(1180, 600)
    viewer.open_sample("napari-symsmooth", "photons")
    _, widget = viewer.window.add_plugin_dock_widget("napari-symsmooth", "Denoise")
    widget.with_std.value = True
    widget.denoise()
    wait(lambda: widget.run_button.enabled)
    denoised = viewer.layers["few photons denoised"]
    denoised.translate = (0, denoised.data.shape[1] * denoised.scale[1])  # beside the noisy one
    viewer.layers.selection.active = viewer.layers["few photons"]
    viewer.scale_bar.visible = True
    viewer.reset_view()
    wait(lambda: False, seconds=2.0)
    viewer.screenshot(str(TARGET), canvas_only=False, flash=False)
    viewer.close()


if __name__ == "__main__":
    main()
