"""Where a series stands still its noise is what changes between frames, whatever the scene shows."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.ndimage

import symsmooth
from symsmooth.app.stack import noise_of_frames
from symsmooth.core import blocks
from symsmooth.core.image import open_image
from symsmooth.core.metrics import psnr
from symsmooth.gsfw.series import _surveyed
from symsmooth.noise import NoiseModel, resolve
from symsmooth.noise.changes import (
    SQUARE_FREEDOM,
    _around,
    in_groups,
    measure_changes,
    runs_of,
)
from symsmooth.noise.evidence import PER_RING, energies
from symsmooth.noise.fit import _changes
from symsmooth.noise.stillness import (
    GROUP_FREEDOM,
    RING_FREEDOM,
    Stillness,
    correct,
    find_stillness,
)

SIDE, SIGMA = 128, 3.0


def texture(seed: int = 0, side: int = SIDE) -> np.ndarray:
    """Texture that is alike everywhere, as fine as noise: no single picture can tell them apart."""
    rng = np.random.default_rng(seed)
    fine = scipy.ndimage.gaussian_filter(rng.standard_normal((side, side)), 0.8)
    light = scipy.ndimage.gaussian_filter(rng.standard_normal((side, side)), 20)
    return (120 + 20 * fine / fine.std() + 25 * light / light.std()).astype(np.float32)


def still(scene: np.ndarray, n_frames: int = 9) -> np.ndarray:
    return np.repeat(scene[np.newaxis], n_frames, axis=0)


def with_noise(clean: np.ndarray, sigma: float = SIGMA, seed: int = 1) -> np.ndarray:
    noise = np.random.default_rng(seed).standard_normal(clean.shape)
    return (clean + sigma * noise).astype(np.float32)


def find(series: np.ndarray, axis: int | None = None, mask: np.ndarray | None = None) -> NoiseModel:
    return resolve(open_image(series, axis, mask, time_axis=0))


def find_in_space(series: np.ndarray, axis: int | None = None) -> NoiseModel:
    """Return the noise of the same pixels as slices, of which none is the next frame of another."""
    return resolve(open_image(series, axis))


def assert_same_level(one: NoiseModel, other: NoiseModel) -> None:
    at = np.linspace(0, 255, 20)
    np.testing.assert_array_equal(one.level_at(at), other.level_at(at))


def rolling(scene: np.ndarray, step: tuple[int, int], n_frames: int = 9) -> np.ndarray:
    return np.stack([np.roll(scene, (step[0] * t, step[1] * t), (0, 1)) for t in range(n_frames)])


def test_the_freedom_of_energies_is_that_of_white_noise() -> None:
    """Twice the squared mean over the variance, of regions that share no pixel."""
    found = energies(np.random.default_rng(0).standard_normal((1000, 1000, 1)).astype(np.float32))
    rings, groups = found[::3, ::3, 0], in_groups(found[:, :, 0])
    squares = _around(groups, 3)[2:-2:6, 2:-2:6]
    for values, freedom in (
        (rings, RING_FREEDOM), (groups[::3, ::3], GROUP_FREEDOM), (squares, SQUARE_FREEDOM)
    ):  # fmt: skip
        measured = 2 * values.mean(axis=(0, 1)) ** 2 / values.var(axis=(0, 1))
        np.testing.assert_allclose(measured, freedom, rtol=0.2)


def test_regions_that_are_chosen_have_no_bias() -> None:
    """Ratio and sum of the contrasts are independent: energies are those of the noise, in all rings."""
    pixels = with_noise(still(texture(), 12))
    picture = open_image(pixels, None, time_axis=0)
    changes = _changes([picture], slice(None))
    assert changes is not None
    assert changes.sure.mean() > 0.8
    found = find_stillness(changes, changes.brightness)
    known = np.isfinite(found.shared).all(axis=(1, 2))
    levels = np.sqrt(found.energy[known]) * picture.scale
    assert known.sum() >= 7
    np.testing.assert_allclose(np.median(levels, axis=0), SIGMA, rtol=0.02)


@pytest.mark.parametrize("sigma", [2.0, 5.0, 10.0])
def test_texture_everywhere_is_no_noise_where_it_stands_still(sigma: float) -> None:
    clean = still(texture())
    pixels = with_noise(clean, sigma)
    model = find(pixels)
    assert abs(find_in_space(pixels).sigma / sigma - 1) > 0.1  # it is, to a single picture
    assert model.sigma == pytest.approx(sigma, rel=0.02)
    assert model.coarse_share < 0.05
    assert any("nothing moves" in reason for reason in model.finding.reasons)
    options = {"time_axis": 0, "quality": "preview", "rng": 0}
    blind, known = (symsmooth.denoise(pixels, level, **options) for level in (None, sigma))
    assert psnr(blind, clean, 255.0) > psnr(known, clean, 255.0) - 0.03


@pytest.mark.parametrize("step", [(1, 0), (3, 5), (0, 40)])
def test_where_all_moves_the_bits_are_those_of_the_spatial_estimate(step: tuple[int, int]) -> None:
    pixels = with_noise(rolling(texture(), step))
    assert_same_level(find(pixels), find_in_space(pixels))


def test_two_frames_say_nothing_of_motion() -> None:
    pixels = with_noise(still(texture(), 2))
    assert_same_level(find(pixels), find_in_space(pixels))
    assert runs_of(pixels) == []
    assert [len(runs_of(np.arange(float(n)))) for n in (1, 2, 3, 5, 6, 12, 99)] == [
        0,
        0,
        1,
        1,
        2,
        4,
        4,
    ]


def test_what_stands_still_speaks_for_all() -> None:
    """Half of the picture moves: the other half has the noise of both."""
    clean = np.concatenate([still(texture(0)), rolling(texture(5), (0, 4))], axis=2)
    assert find(with_noise(clean)).sigma == pytest.approx(SIGMA, rel=0.04)


@pytest.mark.parametrize("shake", [0.05, 0.3, 1.0])
def test_a_trembling_camera_adds_no_noise(shake: float) -> None:
    rng, scene = np.random.default_rng(2), texture()
    frames = [
        scipy.ndimage.shift(scene, rng.normal(0, shake, 2), order=3, mode="grid-wrap")
        for _ in range(9)
    ]
    pixels = with_noise(np.stack(frames))
    wrong = abs(find_in_space(pixels).sigma - SIGMA)
    assert abs(find(pixels).sigma - SIGMA) <= wrong + 0.05 * SIGMA


@pytest.mark.parametrize("light", ["flicker", "bleaching", "sunset"])
def test_light_that_changes_does_not_raise_the_level(light: str) -> None:
    factor = {
        "flicker": 1 + 0.05 * np.random.default_rng(3).standard_normal(9),
        "bleaching": 0.9 ** np.arange(9.0),
        "sunset": 1 - 0.01 * np.arange(9.0),
    }[light]
    pixels = with_noise(still(texture()) * factor[:, np.newaxis, np.newaxis])
    assert find(pixels).sigma == pytest.approx(SIGMA, rel=0.03)


def held(pixels: np.ndarray, share: float) -> np.ndarray:
    """Return frames of which a codec skips squares of 16 pixels: a share of them stays as it was."""
    rng, found = np.random.default_rng(4), pixels.copy()
    squares = tuple(size // 16 for size in pixels.shape[1:3])
    for t in range(1, len(pixels)):
        is_held = np.kron(rng.random(squares) < share, np.ones((16, 16), bool))
        found[t][is_held] = found[t - 1][is_held]
    return found


@pytest.mark.parametrize("share", [0.3, 0.7, 1.0])
def test_noise_that_a_codec_froze_is_not_taken_for_picture(share: float) -> None:
    flat = scipy.ndimage.gaussian_filter(texture(), 12)
    pixels = np.clip(np.rint(held(with_noise(still(flat), 6.0), share)), 0, 255).astype(np.uint8)
    assert find(pixels).sigma > 0.95 * find_in_space(pixels).sigma
    assert find(pixels).sigma == pytest.approx(6.0, rel=0.1)


def test_changes_that_a_codec_left_out_are_not_taken_for_noise() -> None:
    """Pixels follow only changes that are large: what is left of the noise holds on for a while."""
    flat = scipy.ndimage.gaussian_filter(texture(), 12)
    pixels = with_noise(still(flat, 12), 6.0)
    for t in range(1, len(pixels)):
        small = np.abs(pixels[t] - pixels[t - 1]) < 9
        pixels[t][small] = pixels[t - 1][small]
    assert find(pixels).sigma > 0.95 * find_in_space(pixels).sigma


def test_a_recursive_filter_in_time_is_seen() -> None:
    """Cameras that smooth over time: noise that frames share changes less than there is of it."""
    flat = scipy.ndimage.gaussian_filter(texture(), 12)
    noise = 8 * np.random.default_rng(0).standard_normal((12, SIDE, SIDE))
    for t in range(1, 12):
        noise[t] = 0.6 * noise[t - 1] + 0.4 * noise[t]
    pixels = (flat + noise).astype(np.float32)
    assert find(pixels).sigma > 0.95 * find_in_space(pixels).sigma


def test_frames_that_were_repeated_count_once() -> None:
    pixels = np.repeat(with_noise(still(texture(), 9)), 2, axis=0)
    assert find(pixels).sigma == pytest.approx(SIGMA, rel=0.02)


def test_a_pattern_that_stays_belongs_to_the_scene() -> None:
    """As in the result: where nothing moves it is the mean of all frames, which keeps the pattern."""
    pattern = 3 * np.random.default_rng(6).standard_normal((SIDE, SIDE)).astype(np.float32)
    assert find(with_noise(still(texture() + pattern))).sigma == pytest.approx(SIGMA, rel=0.02)


def test_photons_keep_their_law() -> None:
    clean = np.clip(still(texture()), 10, None) / 2.55
    counts = np.random.default_rng(0).poisson(clean).astype(np.uint16)
    at = np.quantile(clean, [0.1, 0.5, 0.9])
    (levels,) = find(counts).level_at(at)
    np.testing.assert_allclose(levels, np.sqrt(at), rtol=0.06)
    law = resolve(open_image(counts, None, time_axis=0), noise="poisson-gaussian").photons
    assert law.gain[0] == pytest.approx(1.0, rel=0.15)


def test_coarse_noise_is_found_under_texture() -> None:
    noise = np.random.default_rng(7).standard_normal((9, SIDE, SIDE))
    coarse = scipy.ndimage.gaussian_filter(noise, (0, 0.8, 0.8))
    coarse *= 4 / coarse.std()
    model = find((still(texture()) + coarse).astype(np.float32))
    rings = energies(coarse[0].astype(np.float32)[..., np.newaxis]).mean(axis=(0, 1))[0]
    assert model.level.typical == pytest.approx(np.sqrt(rings @ PER_RING), rel=0.05)
    assert model.coarse_share > 0.5


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float64])
def test_units_do_not_matter(dtype: type) -> None:
    unit = {np.uint8: 1.0, np.uint16: 200.0, np.float64: 1e-3}[dtype]
    pixels = with_noise(still(texture())) * unit
    if np.dtype(dtype).kind == "u":
        pixels = np.clip(np.rint(pixels), 0, np.iinfo(dtype).max)
    assert find(pixels.astype(dtype)).sigma == pytest.approx(SIGMA * unit, rel=0.03)


def test_colours_and_channels_that_show_different_things() -> None:
    colour = np.stack([texture(), texture() * 0.8, 255 - texture()], axis=-1)
    (*_, last) = find(with_noise(still(colour)), -1).level_at(np.array([120.0]))
    np.testing.assert_allclose(last, SIGMA, rtol=0.03)
    apart = np.stack([texture(0), texture(1)], axis=-1)
    for level in find(with_noise(still(apart)), -1).level_at(np.array([120.0])):
        np.testing.assert_allclose(level, SIGMA, rtol=0.03)


def test_missing_pixels_black_frames_and_odd_sizes_do_no_harm() -> None:
    pixels = with_noise(still(texture()))[:, :97, :103]
    mask = np.zeros(pixels.shape, bool)
    mask[:, 20:40, 30:70] = True
    pixels[mask] = np.nan
    assert find(pixels, mask=mask).sigma == pytest.approx(SIGMA, rel=0.03)
    dark = with_noise(still(texture(), 12))
    dark[0] = dark[7] = 0.0  # runs with them show nothing
    assert find(dark).sigma == pytest.approx(SIGMA, rel=0.03)
    assert find(np.zeros((5, 64, 64), np.uint8)).sigma == 0.0
    assert measure_changes([]) is None


def test_the_weight_of_still_regions_is_continuous() -> None:
    """An estimate moves from its own value to what was measured as that becomes surer, and never beyond."""
    energy, spread = np.full((9, 1, 7), 4.0), np.full((9, 1, 7), 0.2)
    levels = []
    for doubt in (np.inf, 3.0, 1.0, 0.3, 0.1, 0.03, 0.0):
        found = Stillness(*(np.full(energy.shape, value) for value in (1.0, 0.01, doubt)))
        new, left, share = correct(energy, spread, found, 1e-6)
        levels.append(float(new.mean()))
        assert (left <= spread + 1e-12).all()
        assert 0 <= share <= 1
    assert levels[0] == 4.0
    assert levels[-1] == pytest.approx(1.0, rel=0.05)
    assert (np.diff(levels) < 0).all()


def test_arrays_and_frames_have_the_same_bits_when_noise_is_measured_between_them() -> None:
    pixels = with_noise(still(texture(side=64), 15))
    options = {"quality": "preview", "rng": 0}
    whole = symsmooth.denoise(pixels, time_axis=0, workers=2, **options)
    frames = symsmooth.denoise_frames(iter(pixels), workers=1, **options)
    np.testing.assert_array_equal(whole, np.stack(list(frames)))


def test_frames_of_files_are_asked_at_the_same_door() -> None:
    pixels = with_noise(still(texture(), 9))
    assert_same_level(resolve(noise_of_frames(list(pixels), None, "auto", "auto")), find(pixels))


def test_frames_that_are_cut_are_surveyed_in_runs(monkeypatch) -> None:
    assert [_surveyed(n) for n in (5, 7, 18)] == [
        [0, 1, 2, 3, 4], [0, 1, 2, 3, 4, 5], [3, 4, 5, 12, 13, 14],
    ]  # fmt: skip
    pixels = with_noise(still(texture(), 9))
    monkeypatch.setattr(blocks, "SERIES_PIXELS", 9 * 96 * 96)
    result = symsmooth.fit_denoise(pixels, time_axis=0, quality="preview", rng=0)
    assert result.noise.sigma == pytest.approx(SIGMA, rel=0.03)
