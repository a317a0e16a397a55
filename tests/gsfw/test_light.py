"""Light that changes from frame to frame is kept, and draws no frame towards the others."""

from __future__ import annotations

import numpy as np
import pytest
from skimage import data

import symsmooth
from symsmooth.core.metrics import psnr
from symsmooth.gsfw import stages
from symsmooth.gsfw.light import give_back_light

OPTIONS = {"quality": "fast", "rng": 0}
N_FRAMES = 7


def with_noise(clean: np.ndarray, sigma: float, seed: int = 0) -> np.ndarray:
    noise = np.random.default_rng(seed).standard_normal(clean.shape)
    return (clean + sigma * noise).astype(np.float32)


def lit(gains: np.ndarray, size: int = 112) -> np.ndarray:
    """Return a window that moves over a picture, each frame with a light of its own."""
    scene = data.camera().astype(np.float32) * 0.7
    frames = [scene[180 : 180 + size, 200 + t : 200 + t + size] for t in range(len(gains))]
    return np.stack(frames) * gains[:, np.newaxis, np.newaxis].astype(np.float32)


def gains_over_alone(clean: np.ndarray, sigma: float, seed: int = 0) -> np.ndarray:
    pixels = with_noise(clean, sigma, seed)
    series = symsmooth.denoise(pixels, sigma, time_axis=0, **OPTIONS)
    alone = [symsmooth.denoise(frame, sigma, **OPTIONS) for frame in pixels]
    both = zip(series, alone, clean, strict=True)
    return np.array([psnr(a, c, 255.0) - psnr(b, c, 255.0) for a, b, c in both])


@pytest.mark.parametrize("sigma", [10.0, 40.0])
@pytest.mark.parametrize("light", ["ramp", "flash"])
def test_no_frame_whose_light_is_its_own_is_worse_than_alone(light: str, sigma: float) -> None:
    """An exposure that grows by 5 % a frame, and a flash."""
    at = np.arange(N_FRAMES)
    gains = 1.05**at if light == "ramp" else np.where(at == 2, 1.5, 1.0)
    assert gains_over_alone(lit(gains), sigma).min() > -0.05


def test_frames_after_a_cut_are_no_worse_than_alone() -> None:
    """Each frame shows another scene: none has to do with any other.

    A draw of noise and clusters moves the mean by 0.03 dB; of ten it is -0.05.
    Frames of nothing but fine texture, which differ from themselves as much, are not told apart.
    """
    scenes = [data.camera()[100:212, 100:212], data.coins()[100:212, 60:172]]
    scenes += [data.moon()[200:312, 200:312], data.chelsea()[60:172, 100:212, 1]]
    scenes += [data.astronaut()[:112, 150:262, 1]]
    clean = np.stack(scenes).astype(np.float32)
    gains = np.mean([gains_over_alone(clean, 20.0, seed) for seed in range(6)], axis=0)
    assert gains.mean() > -0.08
    assert gains.min() > -0.15


def test_a_change_of_light_below_the_noise_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A still scene, one frame of which is brighter by a tenth of the noise."""
    sigma, brighter = 40.0, 4.0
    clean = np.repeat(data.moon()[np.newaxis, 100:228, 100:228].astype(np.float32), 6, axis=0)
    clean[1] += brighter
    pixels = with_noise(clean, sigma)
    kept = symsmooth.denoise(pixels, sigma, time_axis=0, **OPTIONS)
    assert abs((kept[1] - clean[1]).mean()) < 0.25 * brighter
    monkeypatch.setattr(stages, "give_back_light", lambda noisy, denoised, sigma: denoised)
    lost = symsmooth.denoise(pixels, sigma, time_axis=0, **OPTIONS)
    assert abs((kept[1] - clean[1]).mean()) < 0.5 * abs((lost[1] - clean[1]).mean())


def test_noise_is_not_given_back() -> None:
    """Of what was removed rightly, next to nothing comes back; what is more than noise comes back whole."""
    noise = np.random.default_rng(3).standard_normal((70, 3, 131, 2)).astype(np.float32)
    clean = np.zeros_like(noise)
    assert np.square(give_back_light(noise, clean, 1.0)).mean() < 2e-4
    lighter = noise + np.linspace(0.5, 1.0, 131, dtype=np.float32)[:, np.newaxis]
    found = give_back_light(lighter, clean, 1.0)[:, :, 30:-30]
    assert np.abs(found - (lighter - noise)[:, :, 30:-30]).max() < 0.12
