"""Calibration: the law of a camera from frames of still scenes, and what is refused."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import scipy.ndimage
from skimage import data

from symsmooth import calibrate_noise, denoise
from symsmooth.core.metrics import psnr
from symsmooth.noise import PoissonGaussian
from symsmooth.noise.levels import Constant, Curve
from symsmooth.noise.saved import from_json, to_json


@dataclass
class Camera:
    """A sensor whose pixels are not alike: gain and black of each differ, corners are darker."""

    gain: float
    black: float
    read: float
    side: int = 512
    top: float = 4095.0
    seed: int = 0

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)
        shape = self.side, self.side
        y, x = np.mgrid[-1 : 1 : 1j * self.side, -1 : 1 : 1j * self.side]
        self.shading = (1 - 0.15 * (x**2 + y**2)) * (1 + 0.01 * self.rng.standard_normal(shape))
        self.pattern = self.rng.normal(0.0, 0.3 * self.read, shape)

    def shot(self, light: np.ndarray | float) -> np.ndarray:
        """A frame; ``light`` is in grey levels above black."""
        photons = self.rng.poisson(light * self.shading / self.gain)
        noise = self.rng.normal(0.0, self.read, photons.shape)
        pixels = self.black + self.pattern + self.gain * photons + noise
        return np.rint(pixels).clip(0, self.top).astype(np.uint16)

    @property
    def law(self):
        """The true law; rounding is noise, too."""
        offset = self.read**2 + 1 / 12 - self.gain * self.black
        return PoissonGaussian((self.gain,), (offset,), (self.black,))


CAMERAS = {
    "12 bit, low gain": (0.25, 64.0, 1.2),
    "12 bit, high gain": (4.0, 128.0, 9.0),
    "sCMOS": (2.17, 100.0, 3.4),
}
SCENE = 8.0 * data.camera().astype(float) + 40


@pytest.mark.parametrize("name", CAMERAS)
@pytest.mark.parametrize("kind", ["ten flats of five exposures", "ten flats of one, and darks"])
def test_gain_and_read_noise_are_found(name, kind) -> None:
    camera = Camera(*CAMERAS[name])
    if kind == "ten flats of five exposures":
        found = calibrate_noise(
            [camera.shot(x) for x in (80, 400, 1200, 2000, 2800) for _ in range(2)]
        )
    else:
        flats, darks = (
            [camera.shot(2000.0) for _ in range(10)],
            [camera.shot(0.0) for _ in range(6)],
        )
        found = calibrate_noise(flats, darks)
        assert found.photons.black[0] == pytest.approx(camera.black, abs=0.1)
    (gain,), (offset,) = found.photons.gain, found.photons.offset
    assert gain == pytest.approx(camera.gain, rel=0.01)
    assert np.sqrt(gain * camera.black + offset) == pytest.approx(
        np.hypot(camera.read, 12**-0.5), rel=0.05
    )
    assert found.spectrum is None
    assert found.pixels is not None
    assert found.pixels.dtype == "uint16"
    assert from_json(to_json(found)) == found


@pytest.mark.parametrize("name", CAMERAS)
def test_a_calibrated_camera_denoises_as_well_as_the_true_one(name) -> None:
    camera = Camera(*CAMERAS[name], side=256)
    clean = camera.black + 4.0 * data.camera()[128:384, 128:384]
    camera.shading, camera.pattern = np.ones_like(clean), np.zeros_like(clean)
    noisy = camera.shot(clean - camera.black).astype(np.float32)
    flats = [camera.shot(x) for x in (80, 400, 1200, 2000, 2800) for _ in range(2)]
    found = calibrate_noise(flats, [camera.shot(0.0) for _ in range(4)])
    got, best = (
        psnr(clean, denoise(noisy, noise=noise, quality="fast"), 1020.0)
        for noise in (found, camera.law)
    )
    assert abs(got - best) < 0.01


def frames(n: int = 4, scene: np.ndarray = SCENE, seed: int = 0, **changes) -> list[np.ndarray]:
    """Frames of a scene; ``move`` is by how many pixels, ``light`` a factor for each."""
    camera = Camera(2.0, 100.0, 4.0, seed=seed)
    camera.shading, camera.pattern = np.ones((512, 512)), np.zeros((512, 512))
    made = []
    for k in range(n):
        light = scene * np.broadcast_to(changes.get("light", lambda k: 1.0)(k), scene.shape)
        if "move" in changes:
            light = scipy.ndimage.shift(
                light, (changes["move"] * (k % 2), 0), order=1, mode="nearest"
            )
        made.append(camera.shot(light))
    return made


def law_of(found) -> tuple[float, float]:
    (gain,), (offset,) = found.photons.gain, found.photons.offset
    return gain, np.sqrt(max(gain * 100.0 + offset, 0.0))


@pytest.mark.parametrize("n", [2, 6])
def test_any_scene_that_stands_still_will_do(n) -> None:
    """Texture and edges say nothing: only differences between frames do."""
    gain, read = law_of(calibrate_noise(frames(n)))
    assert gain == pytest.approx(2.0, rel=0.015)
    assert read == pytest.approx(4.0, rel=0.15)


def test_light_that_drifts_is_corrected() -> None:
    gain, read = law_of(calibrate_noise(frames(light=lambda k: 1 + 0.03 * k)))
    assert gain == pytest.approx(2.0, rel=0.015)
    assert read == pytest.approx(4.0, rel=0.2)


def test_what_moves_in_a_small_part_is_left_out() -> None:
    def person(k: int) -> np.ndarray:
        factor = np.ones_like(SCENE)
        factor[200:300, 100 + 40 * k : 160 + 40 * k] = 0.3
        return factor

    gain, read = law_of(calibrate_noise(frames(light=person)))
    assert gain == pytest.approx(2.0, rel=0.015)
    assert read == pytest.approx(4.0, rel=0.2)


def test_cosmic_rays_and_hot_pixels_are_left_out() -> None:
    rng, shots = np.random.default_rng(1), [*frames(4), *frames(4, 0 * SCENE)]
    for shot in shots:
        shot[rng.integers(0, 512, 60), rng.integers(0, 512, 60)] = 4000
        shot[::64, ::64] = 3000  # hot in every frame
    gain, read = law_of(calibrate_noise(shots[:4], shots[4:]))
    assert gain == pytest.approx(2.0, rel=0.015)
    assert read == pytest.approx(4.0, rel=0.05)


def test_clipped_pixels_are_left_out() -> None:
    bright = [np.minimum(shot, 1200) for shot in frames(4)]
    gain, _ = law_of(calibrate_noise(bright))
    assert gain == pytest.approx(2.0, rel=0.02)
    cut = [np.maximum(shot, 100) - 100 for shot in frames(4, 0.1 * SCENE) + frames(4)]
    found = calibrate_noise(cut)
    assert found.photons.gain[0] == pytest.approx(2.0, rel=0.02)


@pytest.mark.parametrize("peak", [2.0, 20.0])
def test_counts_of_photons_are_not_taken_for_noise_that_was_cut_off(peak) -> None:
    rng, light = np.random.default_rng(0), data.camera() / 255 * peak
    counts = [rng.poisson(light).astype(np.uint8) for _ in range(6)]
    dark = [rng.poisson(0.01, light.shape).astype(np.uint8) for _ in range(6)]
    for found in (calibrate_noise(counts), calibrate_noise(counts, dark)):
        assert found.photons.gain[0] == pytest.approx(1.0, rel=0.01)
        assert abs(found.photons.offset[0]) < 0.01 * peak


def test_a_colour_camera_has_a_law_for_each_channel() -> None:
    rng, gains = np.random.default_rng(0), np.array([1.5, 2.0, 2.5])
    light = 8.0 * data.astronaut() + 20
    shots = [
        100 + gains * rng.poisson(light / gains) + rng.normal(0, 4, light.shape) for _ in range(4)
    ]
    found = calibrate_noise(shots, channel_axis=-1)
    assert np.allclose(found.photons.gain, gains, rtol=0.015)
    assert found.transform is None


def test_coarse_noise_that_channels_share_is_told_from_differences() -> None:
    """White after the model has taken spectrum and mix out, at all brightnesses."""
    rng, scene = np.random.default_rng(0), 4.0 * data.astronaut()[:256, :256] + 40
    shared = np.array([[1.0, 0.5, 0.3], [0.0, 0.8, 0.2], [0.0, 0.0, 0.9]])

    def shot() -> np.ndarray:
        white = rng.standard_normal(scene.shape)
        coarse = white + 0.35 * (np.roll(white, 1, 0) + np.roll(white, 1, 1))
        return scene + np.sqrt(2 * scene.mean(axis=-1, keepdims=True) + 16) * (coarse @ shared)

    found = calibrate_noise([shot() for _ in range(8)], channel_axis=-1)
    assert found.spectrum is not None
    assert found.transform is not None
    pair = [found.bind(np.float32(shot())).whiten(np.float32(shot())) for _ in range(2)]
    noise = (pair[0] - pair[1])[8:-8, 8:-8] / np.sqrt(2)
    assert np.allclose(np.cov(noise.reshape(-1, 3).T), np.eye(3), atol=0.12)
    for axis in (0, 1):
        neighbours = (noise * np.roll(noise, 1, axis)).mean(axis=(0, 1))
        assert np.abs(neighbours).max() < 0.08


def test_a_tone_curve_makes_a_curve_and_noise_of_one_level_a_constant() -> None:
    rng, light = np.random.default_rng(0), (data.camera() / 255.0) ** 2.2 + 0.01

    def developed() -> np.ndarray:
        noisy = light + rng.standard_normal(light.shape) * np.sqrt(0.002 * light + 1e-5)
        return np.rint(255 * noisy.clip(0, 1) ** (1 / 2.2)).astype(np.uint8)

    found = calibrate_noise([developed() for _ in range(6)])
    assert isinstance(found.level, Curve)
    slope = lambda x: 255 / 2.2 * x ** (1 / 2.2 - 1)  # noqa: E731
    for at in (0.2, 0.5):
        expected = slope(at) * np.sqrt(0.002 * at + 1e-5)
        assert found.level.at(np.array(255 * at ** (1 / 2.2)))[0] == pytest.approx(
            expected, rel=0.05
        )
    even = calibrate_noise([data.camera() + rng.normal(0, 7.0, (512, 512)) for _ in range(3)])
    assert isinstance(even.level, Constant)
    assert even.white_sigma == pytest.approx(7.0, rel=0.01)


def refused(*arguments, **options) -> str:
    with pytest.raises(ValueError, match=r".") as error:
        calibrate_noise(*arguments, **options)
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("move", [0.2, 1.0, 7.0])
def test_frames_that_moved_are_refused(move) -> None:
    assert "frames moved between shots" in refused(frames(move=move))


def test_light_that_flickers_in_parts_is_refused() -> None:
    wave = np.linspace(0, 6 * np.pi, 512)[:, np.newaxis]
    flicker = lambda k: 1 + 0.01 * np.sin(wave + k)  # noqa: E731
    assert "the light changed between frames in parts" in refused(frames(light=flicker))


def test_what_does_not_tell_the_law_is_refused_with_a_remedy() -> None:
    flat = np.full_like(SCENE, 800.0)
    assert "give two or more" in refused(frames(1))
    assert "no other of its brightness" in refused([*frames(2), *frames(1, 3 * flat)])
    assert "add darks, or frames of another exposure" in refused(frames(4, flat))
    assert "darks alone show read noise only" in refused([], frames(2, 0 * flat))
    assert "one dark frame" in refused(frames(2), frames(1, 0 * flat))
    assert "add darks, or frames of another" in refused(frames(2, 0 * flat), frames(2, 0 * flat))
    assert "frames are the same" in refused([frames(1)[0]] * 3)
    assert "one shape and dtype" in refused([frames(1)[0], frames(1)[0][:-16]])
    assert "at least 32 pixels a side" in refused([frames(1)[0][:20]] * 2)
    assert "integers or floats" in refused([frames(1)[0] > 300] * 2)
    cut = [np.maximum(shot, 100) - 100 for shot in frames(4, 0 * flat)]
    above = [np.maximum(shot, 100) - 100 for shot in frames(4)]
    assert "darks are clipped" in refused(above, cut)
    assert "clipped everywhere" in refused([np.minimum(s, 200) for s in frames(3, flat)])


def test_units_do_not_matter_and_missing_pixels_do_not_count() -> None:
    shots = [shot / 4095.0 for shot in frames(4)]
    for shot in shots:
        shot[40:60, 70:90] = np.nan
    found = calibrate_noise(shots)
    assert found.photons.gain[0] * 4095 == pytest.approx(2.0, rel=0.015)


def test_a_large_frame_is_looked_at_in_windows() -> None:
    rng, ramp = np.random.default_rng(0), np.linspace(50, 3000, 1600)
    shots = [(2.0 * rng.poisson(ramp / 2, (1100, 1600))).astype(np.uint16) for _ in range(2)]
    assert calibrate_noise(shots).photons.gain[0] == pytest.approx(2.0, rel=0.015)


def test_frames_of_which_no_part_is_usable_in_all_channels_are_refused() -> None:
    """Nothing was left to take the spectrum from: what was divided by it was no number."""
    rng, ramp, left = np.random.default_rng(0), np.linspace(50.0, 250.0, 128), np.arange(128) < 64
    shots = [rng.normal(ramp, 5.0, (128, 128)) for _ in range(4)]
    halves = [np.stack([np.where(own, s, 300.0) for own in (left, ~left)]) for s in shots]
    assert "clipped nearly everywhere" in refused(halves, channel_axis=0)
