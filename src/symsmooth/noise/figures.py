"""A model of noise as one matplotlib figure (extra ``plots``): level against brightness, spectrum."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.plotting import BLUE, GREY, ORANGE, require_matplotlib

_COLOURS = (GREY, BLUE, ORANGE)
_POINTS = 200


def noise_figure(model: Any, signal: tuple[float, float]) -> Any:
    """Return a figure of a model between two pixel values."""
    require_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    x = np.linspace(*signal, _POINTS)
    for number, level in enumerate(model.level_at(x)):
        left.plot(x, level, color=_COLOURS[number % 3])
    left.set(xlabel="pixel value", ylabel="standard deviation of the noise", ylim=(0, None))
    frequencies, spectra = model.rings()
    for number, spectrum in enumerate(spectra):
        right.plot(frequencies, spectrum, "o-", color=_COLOURS[number % 3])
    right.set(
        xlabel="frequency, cycles a pixel",
        ylabel="relative standard deviation there",
        ylim=(0, None),
    )
    figure.suptitle(str(model), fontsize="medium")
    return figure
