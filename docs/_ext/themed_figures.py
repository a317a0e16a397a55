"""Figures of the gallery twice: dark ink for light pages, light ink for dark ones.

Pictures in a figure stay as they are; what is drawn around them (titles, axes, ticks, legends) takes the
colour of the page's text, on a transparent ground.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.spines import Spine
from matplotlib.text import Text

INK = {"light": "#1d2430", "dark": "#e6eaf0"}
WIDTH = 1600  # pixels: twice the width of a column of text
STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": 10.0,
    "axes.titlesize": 10.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": matplotlib.cycler(color=["#2f7de1", "#e0761b", "#17967a", "#b04fb8"]),
    "image.cmap": "gray",
    "image.interpolation": "nearest",
    "legend.frameon": False,
}


def reset(gallery_conf: dict[str, Any], name: str) -> None:
    """Give every example the same style to start with."""
    matplotlib.rcdefaults()
    matplotlib.use("agg")
    matplotlib.rcParams.update(STYLE)


def recolour(figure: Figure, ink: str) -> None:
    """Draw all that is not a picture or a curve in one colour."""
    for text in figure.findobj(Text):
        if text.get_bbox_patch() is None:  # a label on a patch of its own keeps its colour
            text.set_color(ink)
    for spine in figure.findobj(Spine):
        spine.set_edgecolor(ink)
    for legend in figure.findobj(Legend):
        legend.get_frame().set_alpha(0.0)
    for axes in figure.axes:
        axes.tick_params(color=ink, which="both")
        axes.patch.set_alpha(0.0)


def scrape(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Save the open figures for both themes; return what shows them."""
    places, shown = block_vars["image_path_iterator"], []
    for number in plt.get_fignums():
        figure = plt.figure(number)
        light = Path(next(places))
        for theme, ink in INK.items():
            path = light if theme == "light" else light.with_stem(light.stem + "_dark")
            recolour(figure, ink)
            figure.savefig(path, dpi=WIDTH / figure.get_figwidth(), transparent=True)
            name = path.relative_to(gallery_conf["src_dir"]).as_posix()
            label = figure.get_label() or block_vars["example_globals"]["__doc__"].split("\n")[0]
            shown.append(
                f".. image-sg:: /{name}\n   :alt: {label}\n   :srcset: /{name}\n"
                f"   :class: sphx-glr-single-img, only-{theme}\n"
            )
    plt.close("all")
    return "\n" + "\n".join(shown) + "\n"
