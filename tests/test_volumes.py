"""A volume is more than its slices."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.ndimage
from skimage.restoration import denoise_nl_means

from symsmooth import METHODS, denoise, denoise_gsf, denoise_gsfw
from symsmooth.core import blocks
from symsmooth.core.metrics import psnr
from symsmooth.noise import add_noise

SIGMA = 0.1


def cells(side: int, seed: int = 0) -> np.ndarray:
    """Balls of many sizes and brightnesses, with a grain inside, shells around, on a slow background."""
    rng = np.random.default_rng(seed)
    places = np.indices((side,) * 3)
    volume = 0.2 + 0.1 * np.sin(places[0] / 17) * np.cos(places[2] / 23)
    grain = scipy.ndimage.gaussian_filter(rng.standard_normal((side,) * 3), 1.5)
    grain *= 0.08 / grain.std()
    for _ in range(side**3 // 12_000):
        centre, radius, light = rng.uniform(0, side, 3), rng.uniform(4, 14), rng.uniform(0.3, 0.9)
        distance = np.sqrt(((places.T - centre) ** 2).sum(axis=-1)).T
        volume = np.where(distance < radius, light + grain, volume)
        volume = np.where(np.abs(distance - radius) < 1.0, 1.0, volume)
    return scipy.ndimage.gaussian_filter(volume, 0.6)


@pytest.mark.slow
def test_a_volume_is_better_off_than_its_slices() -> None:
    clean = cells(96)
    noisy = add_noise(clean, SIGMA, 0)
    whole = psnr(denoise(noisy, SIGMA), clean)
    slices = psnr(np.stack([denoise(part, SIGMA) for part in noisy]), clean)
    peer = max(  # at its best
        psnr(denoise_nl_means(noisy, 3, 5, h=h * SIGMA, sigma=SIGMA, fast_mode=True), clean)
        for h in (0.4, 0.6, 0.8, 1.0)
    )
    print(f"volume {whole:.2f}, slices {slices:.2f}, NLM in 3-D {peer:.2f}")
    assert whole >= slices + 1.0
    assert whole >= peer + 1.0


@pytest.mark.parametrize(
    ("method", "options"),
    [
        (denoise_gsfw, {"quality": "fast"}),
        (denoise_gsfw, {"quality": "balanced"}),
        (denoise_gsf, {"n_clusters": 1500, "h_s": 4.0, "patch_size": 3}),
    ],
    ids=["fast", "balanced", "gsf"],
)
def test_a_volume_in_blocks_is_that_of_one_block(monkeypatch, method, options) -> None:
    """Blocks change no more than another seed does: inside, and where two of them meet."""
    clean = cells(44)[:30]
    noisy = add_noise(clean, SIGMA, 0)
    whole, other = (method(noisy, SIGMA, rng=seed, **options) for seed in (0, 1))
    monkeypatch.setattr(blocks, "BLOCK_PIXELS", 22**3)
    joined = method(noisy, SIGMA, rng=0, **options)
    assert not np.array_equal(joined, whole)
    usual = np.sqrt(np.mean((other - whole) ** 2))
    assert usual < 0.12 * SIGMA
    change = (joined - whole) ** 2
    for region in (np.s_[:], np.s_[8:-8, 8:-8, 8:-8], np.s_[:, 18:26], np.s_[:, :, 18:26]):
        assert np.sqrt(change[region].mean()) < 1.2 * usual
    assert psnr(joined, clean) > min(psnr(whole, clean), psnr(other, clean)) - 0.05


@pytest.mark.parametrize("shape", [(1, 100, 20), (100, 1, 20), (2, 70, 9)], ids=str)
@pytest.mark.parametrize("method", METHODS)
def test_every_method_takes_thin_volumes(method, shape) -> None:
    """More rows or slices than a strip of work holds: noise alone becomes less."""
    clean = np.full(shape, 0.5)
    noisy = add_noise(clean, SIGMA, 0)
    result = METHODS[method](noisy, SIGMA)
    assert result.shape == shape
    assert psnr(result, clean) > psnr(noisy, clean)
