"""Never a wrong picture: finite in, finite out, and no change that noise cannot explain."""

from __future__ import annotations

import numpy as np
import pytest

import symsmooth

PRESETS = ["preview", "fast", "balanced", "best"]
pytestmark = pytest.mark.filterwarnings("ignore:sigma .* is very small")  # here it is meant so


def star_field(peak: float = 1e5, sky: float = 300.0, side: int = 128) -> np.ndarray:
    """Stars of four orders of magnitude over a flat sky."""
    rng = np.random.default_rng(0)
    y, x = np.indices((side, side))
    image = np.full((side, side), sky)
    for _ in range(40):
        at_y, at_x = rng.uniform(0, side, 2)
        height, width = peak * 10 ** -rng.uniform(0, 4), rng.uniform(1, 2)
        image += height * np.exp(-((y - at_y) ** 2 + (x - at_x) ** 2) / (2 * width**2))
    return image


def as_kind(image: np.ndarray, kind: str) -> np.ndarray:
    """The field as float32, as 16-bit counts, or scaled to 0..1."""
    if kind == "counts":
        return np.clip(np.rint(image), 0, 65535).astype(np.uint16)
    return (image / 1e5 if kind == "unit" else image).astype(np.float32)


@pytest.mark.parametrize("quality", PRESETS)
@pytest.mark.parametrize("kind", ["float", "counts", "unit"])
@pytest.mark.parametrize("noise", [0.1, 2.0, 30.0])
@pytest.mark.parametrize("known", [True, False])
def test_stars_stay(noise, kind, quality, known) -> None:
    """Bright stars over little noise: nothing gets worse, no pixel moves further than noise reaches."""
    clean = star_field()
    noisy = as_kind(clean + noise * np.random.default_rng(1).standard_normal(clean.shape), kind)
    unit = 1e-5 if kind == "unit" else 1.0
    truth = np.clip(clean, 0, 65535) if kind == "counts" else clean * unit
    sigma, step = noise * unit, 1.0 if kind == "counts" else 0.0
    result = symsmooth.denoise(noisy, sigma if known else None, quality=quality)
    before, after = (np.sqrt(np.mean((v.astype(float) - truth) ** 2)) for v in (noisy, result))
    assert after <= before * (1.0 if step < sigma else 1.01)  # counts are rounded again
    assert np.abs(result.astype(float) - truth).max() <= 8 * max(sigma, step)


@pytest.mark.parametrize("ratio", [1e-8, 1e-7, 1e-6, 4e-6, 1e-5, 3e-5, 1e-4, 2.4e-4, 1e-3])
@pytest.mark.parametrize("quality", PRESETS)
def test_little_noise_does_no_harm(quality, ratio) -> None:
    """Two-valued and smooth parts, noise from none that float32 can hold to a thousandth of the range."""
    y, x = np.indices((64, 64))
    clean = np.stack([255.0 * (x // 9 % 2), 128 + 100 * np.sin(y / 7) * np.cos(x / 5)], axis=-1)
    noisy = clean + 255 * ratio * np.random.default_rng(0).standard_normal(clean.shape)
    result = symsmooth.denoise(noisy, 255 * ratio, quality=quality, channel_axis=-1)
    before, after = (np.sqrt(np.mean((v - clean) ** 2)) for v in (noisy, result))
    assert after <= 1.02 * before


def test_the_bound_is_counted() -> None:
    """A pixel that noise of this level cannot explain is held at 8 sigma, and the result says so."""
    noisy = np.random.default_rng(0).normal(0.0, 1.0, (48, 48))
    assert symsmooth.fit_gsfw(noisy, 1.0, quality="fast").n_bounded == 0
    noisy[20, 20] = 10.0
    found = symsmooth.fit_gsfw(noisy, 1.0, quality="fast")
    assert found.n_bounded == 1
    assert found.image[20, 20] == pytest.approx(2.0, abs=1e-4)
    hole = np.zeros((48, 48), bool)
    hole[20, 20] = True
    assert abs(symsmooth.denoise_gsfw(noisy, 1.0, quality="fast", mask=hole)[20, 20]) < 1.0
