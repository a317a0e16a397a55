"""``GSFResult.plot``: a fit as a figure."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import symsmooth
from symsmooth.core.plotting import MissingMatplotlib
from symsmooth.mixture.figures import flat_view, sure_curve
from symsmooth.mixture.gsf import GSFResult

SIGMA = 20.0


@pytest.fixture(scope="module")
def fitted(camera: np.ndarray) -> GSFResult:
    noisy = 255 * camera[:56] + np.random.default_rng(0).normal(0, SIGMA, (56, 64))
    return symsmooth.fit_gsf(noisy, SIGMA)


def test_a_fit_can_be_plotted(fitted: GSFResult) -> None:
    figure = fitted.plot()
    titles = [axes.get_title() for axes in figure.axes]
    assert titles[2:] == ["pilot (pass 1)", "average u", "result"]
    assert len(titles) == 5
    figure.canvas.draw()


@pytest.mark.parametrize(("shape", "axis"), [((3, 12, 12), 0), ((6, 10, 10), None)])
def test_colour_and_volumes_can_be_plotted(shape: tuple[int, ...], axis: int | None) -> None:
    noisy = np.random.default_rng(2).normal(100, SIGMA, shape)
    result = symsmooth.fit_gsf(noisy, SIGMA, n_clusters=9, channel_axis=axis)
    for fit in (result, symsmooth.fit_gsf(noisy, 0.0, channel_axis=axis)):
        figure = fit.plot()
        figure.canvas.draw()
        shown = figure.axes[-1].images[0].get_array()
        assert figure.axes[-1].get_title() == "result"
        assert shown.shape[:2] == shape[1:]


def test_a_plot_without_matplotlib_says_what_to_install(
    fitted: GSFResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingMatplotlib, match=r"symsmooth.plots") as caught:
        fitted.plot()
    assert "\n" not in str(caught.value)


def test_the_curve_is_least_where_lambda_is_best(fitted: GSFResult) -> None:
    sure = fitted.sure
    fidelities, errors = sure_curve(sure)
    best = fidelities[np.argmin(errors)]
    assert best == pytest.approx(max(sure.best_fidelity, fidelities[0]), rel=0.3)
    assert flat_view(np.zeros((4, 5, 6, 2)), 3).shape == (5, 6)
