"""A model of noise as one matplotlib figure (extra ``repro``): level against brightness, spectrum."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.plotting import BLUE, GREY, ORANGE, require_matplotlib
from .regions import N_RINGS, RADIUS, RING, SIDE

_COLOURS = (GREY, BLUE, ORANGE)
_POINTS = 200


def noise_figure(model: Any, signal: tuple[float, float]) -> Any:
    """Return a figure of a model between two pixel values."""
    require_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    x = np.linspace(*signal, _POINTS)
    for number, level in enumerate(levels_at(model, x)):
        left.plot(x, level, color=_COLOURS[number % 3])
    left.set(xlabel="pixel value", ylabel="standard deviation of the noise", ylim=(0, None))
    frequencies, spectra = spectra_of(model)
    for number, spectrum in enumerate(spectra):
        right.plot(frequencies, spectrum, "o-", color=_COLOURS[number % 3])
    right.set(xlabel="frequency, cycles a pixel", ylabel="standard deviation there", ylim=(0, None))
    figure.suptitle(str(model), fontsize="medium")
    return figure


def levels_at(model: Any, x: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
    """Return the standard deviation of each channel at pixel values x."""
    if model.kind == "poisson-gaussian":
        lines = zip(model.gain, model.offset, strict=True)
        return [np.sqrt(np.maximum(gain * x + offset, 0.0)) for gain, offset in lines]
    if model.kind == "rician":
        return [model.level_at(x)]
    if model.kind == "correlated":
        levels = np.sqrt(model.variances.mean(axis=(1, 2)))
        if model.curve is not None:
            times = np.interp(x, model.curve.brightness, model.curve.times)
            return [level * times for level in levels]
    elif model.kind == "uneven":
        levels = model.levels if model.levels.ndim == 1 else np.array([model.levels.mean()])
    else:
        levels = np.array([model.sigma])
    return [np.full_like(x, level) for level in levels]


def spectra_of(model: Any) -> tuple[np.ndarray[Any, Any], list[np.ndarray[Any, Any]]]:
    """Return frequencies, and the standard deviation of each channel there; 1 if it is white."""
    rings = [np.equal(RING, k) for k in range(N_RINGS)]
    frequencies = np.array([RADIUS[ring].mean() for ring in rings]) / (2 * SIDE)
    if model.kind != "correlated":
        return frequencies, [np.ones(N_RINGS)]
    return frequencies, [
        np.sqrt([variances[ring].mean() for ring in rings]) for variances in model.variances
    ]
