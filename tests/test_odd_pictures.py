"""Text, line art and other pictures that photographs are not: never below BM3D by more than 0.1 dB.

The peer's figures are those of the PyPI package bm3d 4.0.3 (``bm3d.bm3d(noisy, sigma)``) on the same noise:
seeds 0 and 1, or 0 to 7 for tiny pictures; PSNR of the mean squared error, nothing clipped.  (It
crashes on the 8 x 8 picture, which therefore has no figure.)
"""

from __future__ import annotations

import numpy as np
import pytest

from symsmooth import denoise
from symsmooth.noise import add_noise

from .odd_pictures import pictures

SIGMAS = (10, 25, 50)
BM3D = {  # PSNR at sigma 10, 25, 50 of 255
    "text": (31.546, 23.645, 18.646),
    "faint text": (32.625, 25.879, 22.927),
    "line art": (32.911, 26.720, 22.631),
    "constant": (52.123, 44.163, 38.151),
    "ramp": (45.217, 37.891, 32.401),
    "shallow ramp": (48.500, 43.777, 38.522),
    "steep ramps": (42.748, 36.429, 31.516),
    "diagonal ramp": (45.604, 37.841, 33.348),
    "round gradient": (43.183, 36.871, 31.898),
    "steps": (49.336, 38.201, 30.914),
    "checkerboard 2": (46.909, 38.948, 32.929),
    "checkerboard 4": (52.160, 44.208, 38.201),
    "checkerboard 8": (51.777, 43.802, 37.728),
    "checkerboard 16": (48.051, 36.506, 30.429),
    "saturated": (33.611, 27.924, 23.891),
    "stars": (41.092, 34.022, 27.948),
    "thin stripes": (46.113, 38.158, 31.985),
    "slanted stripes": (43.280, 34.534, 28.893),
    "zone plate": (31.025, 25.603, 21.955),
    "tiny 12x12": (30.145, 25.234, 22.898),
    "tiny 16x16": (34.559, 29.495, 25.835),
    "tiny 20x24": (30.934, 26.767, 25.132),
    "tiny 24x24": (32.146, 29.636, 27.980),
}
# Where we are not there yet, and how far below BM3D we are: sigma -> dB.
SHORT = {
    "checkerboard 8": {10: 0.92, 25: 2.48, 50: 3.52},  # it is one coefficient of its 8 x 8 cosines
}


@pytest.fixture(scope="module")
def drawn() -> dict[str, np.ndarray]:
    return pictures()


def error_of(clean: np.ndarray, sigma: float) -> float:
    """Mean squared error of the flagship over the seeds."""
    seeds = range(8) if clean.size < 1000 else range(2)
    errors = [np.mean((denoise(add_noise(clean, sigma, k), sigma) - clean) ** 2) for k in seeds]
    return float(np.mean(errors))


@pytest.mark.parametrize("grey_levels", SIGMAS)
@pytest.mark.parametrize("name", BM3D)
def test_not_below_bm3d(drawn, name, grey_levels) -> None:
    ours = -10 * np.log10(error_of(drawn[name], grey_levels / 255))
    against = ours - BM3D[name][SIGMAS.index(grey_levels)]
    print(f"{name} at {grey_levels}: {ours:.2f}, {against:+.2f} against BM3D")
    short = SHORT.get(name, {}).get(grey_levels)
    if short is not None:
        assert against > -short - 0.1  # no worse than it is
        if against < -0.1:
            pytest.xfail(f"{against:+.2f} dB against BM3D")
    assert against >= -0.1


@pytest.mark.parametrize("grey_levels", SIGMAS)
def test_the_tiniest_gains(drawn, grey_levels) -> None:
    sigma = grey_levels / 255
    assert error_of(drawn["tiny 8x8"], sigma) < (0.9 if grey_levels == 10 else 0.4) * sigma**2


def test_values_and_sizes_are_as_promised(drawn) -> None:
    assert set(BM3D) | {"tiny 8x8"} == set(drawn)
    for name, picture in drawn.items():
        assert picture.ndim == 2, name
        assert picture.min() >= 0, name
        assert picture.max() <= 1, name
