"""Dask arrays: denoised block by block, or refused with what to do instead."""

from __future__ import annotations

import numpy as np
import pytest

import symsmooth
from symsmooth.core.image import holds_dask

da = pytest.importorskip("dask.array")


def broken() -> object:
    """A dask array that must not be computed."""

    def fail(_: object) -> np.ndarray:
        raise AssertionError("computed")

    return da.zeros((64, 64)).map_blocks(fail, dtype=float, meta=np.empty((0, 0)))


@pytest.mark.parametrize(
    "function",
    [
        symsmooth.fit_denoise,
        symsmooth.fit_gsf,
        symsmooth.fit_gsfw,
        symsmooth.estimate_noise,
        symsmooth.estimate_sigma,
    ],
    ids=lambda function: function.__name__,
)
def test_what_needs_all_pixels_says_so_and_loads_none(function) -> None:
    with pytest.raises(TypeError, match=r"dask array.*compute\(\).*symsmooth\.denoise"):
        function(broken())


def test_so_does_a_dataarray_of_one() -> None:
    xarray = pytest.importorskip("xarray")
    given = xarray.DataArray(broken(), dims=("y", "x"))
    assert holds_dask(given)
    with pytest.raises(TypeError, match="dask array"):
        symsmooth.estimate_sigma(given)
    assert not holds_dask(xarray.DataArray(np.zeros((4, 4))))


@pytest.mark.parametrize("name", symsmooth.METHODS)
def test_every_method_takes_one_lazily(name) -> None:
    lazy = symsmooth.METHODS[name](broken(), 1.0)
    assert holds_dask(lazy)
    assert lazy.shape == (64, 64)
