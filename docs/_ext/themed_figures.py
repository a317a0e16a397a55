"""Figures of the gallery twice: dark ink for light pages, light ink for dark ones.

Pictures in a figure stay as they are; what is drawn around them (titles, axes, ticks, legends) takes the
colour of the page's text, on a transparent ground.  A thumbnail is half one picture, half another.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.spines import Spine
from matplotlib.text import Text
from PIL import Image

INK = {"light": "#1d2430", "dark": "#e6eaf0"}
WIDTH = 1600  # pixels: twice the width of a column of text
THUMBNAIL = (800, 560)
RIGHT_HALF = {  # which picture of its first figure is the right half of a thumbnail; else the last
    "01_photograph": 1,
    "02_unknown_noise": 3,
    "04_camera_noise": 2,
    "05_volume": 2,
    "06_uncertainty": 1,
}
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


def split_view(figure: Figure, right: int) -> Image.Image | None:
    """Return the first picture of a figure on the left, another on the right; None if there are no two."""
    shown = [axes.images[0] for axes in figure.axes if axes.images]
    if len(shown) < 2:
        return None
    halves = []
    for picture in (shown[0], shown[right]):
        rgb = picture.to_rgba(picture.get_array(), bytes=True)[..., :3]
        height, width = rgb.shape[:2]
        tall, wide = min(height, width * 7 // 10), min(width, height * 10 // 7)
        top, left = (height - tall) // 2, (width - wide) // 2
        cut = Image.fromarray(rgb[top : top + tall, left : left + wide])
        halves.append(np.asarray(cut.resize(THUMBNAIL, Image.Resampling.BICUBIC)))
    middle = THUMBNAIL[0] // 2
    joined = np.concatenate([halves[0][:, :middle], halves[1][:, middle:]], axis=1)
    joined[:, middle - 2 : middle + 2] = 255
    return Image.fromarray(joined)


def open_figures(names: dict[str, Any]) -> list[Figure]:
    """Return the figures of pyplot, and those an example holds itself, each once."""
    figures = [plt.figure(number) for number in plt.get_fignums()]
    own = [value for value in names.values() if isinstance(value, Figure)]
    figures += [figure for figure in own if figure not in figures and not figure.get_gid()]
    for figure in figures:
        figure.set_gid("shown")
    return figures


def describe(figure: Figure) -> str:
    """Return in words what a figure shows: the titles of its parts, or what its axes are."""
    parts = (
        axes.get_title() or " against ".join(filter(None, (axes.get_ylabel(), axes.get_xlabel())))
        for axes in figure.axes
    )
    return "; ".join(part.replace("\n", ", ") for part in parts if part) or "small pictures"


def scrape(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Save the open figures for both themes, each after a thumbnail; return what shows them."""
    places, shown = block_vars["image_path_iterator"], []
    example = Path(block_vars["src_file"]).stem
    for figure in open_figures(block_vars["example_globals"]):
        thumbnail, light = Path(next(places)), Path(next(places))
        view = split_view(figure, RIGHT_HALF.get(example, -1))
        for theme, ink in INK.items():
            path = light if theme == "light" else light.with_stem(light.stem + "_dark")
            recolour(figure, ink)
            figure.savefig(path, dpi=WIDTH / figure.get_figwidth(), transparent=True)
            name = path.relative_to(gallery_conf["src_dir"]).as_posix()
            shown.append(
                f".. image:: /{name}\n   :alt: {describe(figure)}\n"
                f"   :class: sphx-glr-single-img only-{theme}\n"
            )
        (view or Image.open(light)).save(thumbnail)
    plt.close("all")
    return "\n" + "\n".join(shown) + "\n"
