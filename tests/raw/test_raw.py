"""Raw mosaics as arrays: patterns, noise, defects, highlights, and what denoising them must give."""

from __future__ import annotations

import numpy as np
import pytest
from skimage import data

import symsmooth
from symsmooth.core.metrics import psnr
from symsmooth.core.parallel import Pool
from symsmooth.noise import PoissonGaussian
from symsmooth.raw.mosaic import XTRANS, lattice, parse_pattern, tiled
from symsmooth.raw.noise import profile_noise, stabilise, undo_stabilise
from symsmooth.raw.phases import denoise_by_phase
from symsmooth_repro.sensor import Sensor

BAYER = ("RGGB", "BGGR", "GRBG", "GBRG")
PATTERNS = (*BAYER, "X-Trans")


@pytest.fixture(scope="module")
def scene() -> np.ndarray:
    return data.astronaut()[60:252, 120:312] / 255.0


def denoised(sensor: Sensor, noisy: np.ndarray, **options: object) -> np.ndarray:
    given = {"quality": "fast", "rng": 0} | options
    return symsmooth.denoise_raw(noisy, sensor.pattern, sensor.black, sensor.white, **given)


@pytest.mark.parametrize("name", PATTERNS)
def test_a_lattice_leads_from_a_colour_to_the_same(name: str) -> None:
    pattern = parse_pattern(name)
    colours = tiled(pattern, (48, 48))
    for colour in range(3):
        for dy, dx in lattice(pattern, colour):
            y, x = np.nonzero(colours == colour)
            inside = (y + dy >= 0) & (y + dy < 48) & (x + dx >= 0) & (x + dx < 48)
            assert (colours[(y + dy)[inside], (x + dx)[inside]] == colour).all()


def test_patterns_have_many_names() -> None:
    assert np.array_equal(parse_pattern("rggb"), parse_pattern("RG/GB"))
    assert np.array_equal(parse_pattern("GBRG"), [[1, 2], [0, 1]])
    assert np.array_equal(parse_pattern(XTRANS), parse_pattern("x-trans"))


@pytest.mark.parametrize("wrong", ["RGB", "RGXB", "RG/G", "", [[0, 1], [1, 1]], [[0.0, 1.0]], 5])
def test_what_is_no_pattern_is_refused_in_one_line(wrong: object) -> None:
    with pytest.raises(ValueError, match="pattern must") as error:
        parse_pattern(wrong)  # type: ignore[arg-type]
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", PATTERNS)
def test_stabilising_is_undone_without_bias(name: str) -> None:
    pattern = parse_pattern(name)
    noise = PoissonGaussian((1.0, 2.0, 0.5), (4.0, 1.0, 0.0)).photons
    rng = np.random.default_rng(0)
    shape = (480, 480)
    gain = np.array(noise.gain)[tiled(pattern, shape)]
    read = np.array(noise.offset)[tiled(pattern, shape)]
    light = 30.0
    noisy = gain * rng.poisson(light / gain, shape) + np.sqrt(read) * rng.standard_normal(shape)
    stabilised = stabilise(noisy.astype(np.float32), pattern, noise)
    for colour in range(3):
        own = tiled(pattern, shape) == colour
        assert stabilised[own].var() == pytest.approx(1.0, abs=0.05)
        flat = np.full(shape, stabilised[own].mean(), np.float32)
        assert undo_stabilise(flat, pattern, noise)[own].mean() == pytest.approx(light, rel=0.01)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_denoising_the_mosaic_beats_denoising_the_picture(pattern: str, scene: np.ndarray) -> None:
    sensor = Sensor(100, pattern)
    noisy, clean = sensor.expose(scene)
    truth = sensor.develop(clean)
    before = psnr(sensor.develop(denoised(sensor, noisy)), truth)
    eight_bit = np.rint(255 * sensor.develop(noisy)).astype(np.uint8)
    after = psnr(symsmooth.denoise(eight_bit, quality="fast", channel_axis=-1, rng=0) / 255, truth)
    assert before > after + 0.8
    assert before > psnr(sensor.develop(noisy), truth) + 5.0


@pytest.mark.parametrize("pattern", ["GRBG", "X-Trans"])
def test_full_resolution_beats_planes(pattern: str, scene: np.ndarray) -> None:
    """What packed planes lose is the point of taking the colour off."""
    sensor = Sensor(500, pattern)
    noisy, clean = sensor.expose(scene)
    tile = parse_pattern(pattern)
    light = noisy.astype(np.float32) - sensor.black
    stabilised = stabilise(light, tile, sensor.noise.photons)
    rows, columns = tile.shape
    for y, x in np.ndindex(rows, columns):
        plane = stabilised[y::rows, x::columns]
        stabilised[y::rows, x::columns] = symsmooth.denoise_gsfw(plane, 1.0, quality="fast", rng=0)
    planes = undo_stabilise(stabilised, tile, sensor.noise.photons) + sensor.black
    truth = sensor.develop(clean)
    ours = denoised(sensor, noisy, noise=sensor.noise)
    assert psnr(sensor.develop(ours), truth) > psnr(sensor.develop(planes), truth) + 0.5


def test_two_opinions_are_better_than_one(scene: np.ndarray) -> None:
    sensor = Sensor(100)
    noisy, clean = sensor.expose(scene)
    tile = parse_pattern("RGGB")
    stabilised = stabilise(noisy.astype(np.float32) - sensor.black, tile, sensor.noise.photons)
    rng = np.random.default_rng(0)
    alone = denoise_by_phase(stabilised, 1.0, rng, Pool(1))
    phases = undo_stabilise(alone, tile, sensor.noise.photons) + sensor.black
    both = denoised(sensor, noisy, noise=sensor.noise, quality="balanced")
    fast = denoised(sensor, noisy, noise=sensor.noise)
    truth = sensor.develop(clean)
    one, two, first = (psnr(sensor.develop(image), truth) for image in (phases, both, fast))
    assert two > max(one, first) + 0.1


@pytest.mark.parametrize("peak", [20, 100])
@pytest.mark.parametrize("pattern", ["RGGB", "X-Trans"])
def test_gain_is_found(peak: float, pattern: str) -> None:
    sensor = Sensor(peak, pattern)
    noisy, _ = sensor.expose(data.astronaut() / 255.0)
    found = symsmooth.estimate_raw_noise(noisy, pattern, sensor.black, sensor.white)
    assert np.allclose(found.photons.gain, sensor.gain, rtol=0.1)


@pytest.mark.parametrize("pattern", ["RGGB", "X-Trans"])
def test_gain_is_found_where_noise_is_little(pattern: str) -> None:
    """Groups of few flat patches have too small a variance: with those it was 6 to 12 % too low."""
    sensor = Sensor(500, pattern)
    noisy, _ = sensor.expose(data.astronaut() / 255.0, seed=1)
    found = symsmooth.estimate_raw_noise(noisy, pattern, sensor.black, sensor.white)
    assert np.allclose(found.photons.gain, sensor.gain, rtol=0.04)


def test_a_colour_with_other_noise_has_its_own_law(scene: np.ndarray) -> None:
    """Some cameras multiply red and blue before they are stored."""
    sensor = Sensor(100, "RGGB", black=0)
    noisy, _ = sensor.expose(np.tile(scene, (2, 2, 1)))
    red = noisy.astype(np.float32)
    red[0::2, 0::2] *= 3
    gain = symsmooth.estimate_raw_noise(red, "RGGB").photons.gain
    assert gain[0] == pytest.approx(3 * gain[1], rel=0.3)


def test_clipped_green_does_not_make_colours_differ() -> None:
    """A bright sky clips green first: there it has no noise, which is no law of the sensor."""
    bright = data.astronaut() / 255.0
    bright[:256] = 0.99
    sensor = Sensor(500)
    noisy, _ = sensor.expose(bright)
    noisy = np.minimum(noisy, 13500)
    found = symsmooth.estimate_raw_noise(noisy, "RGGB", sensor.black, 13500)
    assert (noisy == 13500).mean() > 0.2
    assert len(set(found.photons.gain)) == 1
    assert np.allclose(found.photons.gain, sensor.gain, rtol=0.3)


def test_dark_frames_have_noise_that_does_not_grow() -> None:
    rng = np.random.default_rng(0)
    dark = rng.normal(1000.0, 5.0, (128, 128))
    found = symsmooth.fit_denoise_raw(dark, "RGGB", 1000.0, quality="fast", rng=0)
    assert np.sqrt(found.noise.photons.offset[1]) == pytest.approx(5.0, rel=0.15)
    assert found.image.std() < 1.5
    assert found.image.mean() == pytest.approx(1000.0, abs=0.5)


def test_noise_profiles_are_in_units_of_white() -> None:
    sensor = Sensor(100)
    span = sensor.white - sensor.black
    pair = (sensor.gain / span, sensor.noise.photons.offset[0] / span**2)
    assert np.allclose(profile_noise(pair, span).gain, sensor.noise.photons.gain)
    assert np.allclose(profile_noise([*pair] * 3, span).offset, sensor.noise.photons.offset)
    for wrong in ([1.0, 2.0, 3.0, 4.0], [-1.0, 0.0], [np.nan, 0.0], [0.0, 0.0]):
        with pytest.raises(ValueError, match="NoiseProfile"):
            profile_noise(wrong, span)


def test_hot_and_dead_pixels_are_replaced(scene: np.ndarray) -> None:
    sensor = Sensor(500)
    noisy, clean = sensor.expose(scene)
    rng = np.random.default_rng(1)
    at = tuple(rng.integers(8, 184, (2, 30)))
    spoilt = noisy.copy()
    spoilt[at] = np.where(rng.random(30) < 0.5, sensor.white - 1, sensor.black)
    far = np.abs(spoilt[at].astype(float) - clean[at]) > 40 * np.sqrt(sensor.gain * 500)
    found = symsmooth.fit_denoise_raw(
        spoilt, "RGGB", sensor.black, sensor.white, quality="fast", rng=0
    )
    error = np.abs(found.image[at].astype(float) - clean[at])[far]
    assert far.sum() > 5
    assert np.median(error) < 0.05 * np.median(np.abs(spoilt[at].astype(float) - clean[at])[far])


def test_grain_is_a_share_of_what_was_removed(scene: np.ndarray) -> None:
    sensor = Sensor(100)
    noisy, _ = sensor.expose(scene)
    noisy = noisy.astype(np.float32)
    hot = 20, 20  # in the dark, where nothing else is bright
    noisy[hot] = sensor.white - 1
    smooth = denoised(sensor, noisy, quality="preview")
    grainy = denoised(sensor, noisy, quality="preview", grain=0.4)
    expected = smooth + 0.4 * (noisy - smooth)
    expected[hot] = smooth[hot]
    assert np.isclose(grainy, expected, rtol=1e-4, atol=1e-2).mean() > 0.999
    assert grainy[hot] == smooth[hot] < 0.5 * sensor.white


def test_points_of_light_are_no_defects() -> None:
    """A star is as bright as a hot pixel, but lights the pixels beside it too."""
    y, x = np.indices((96, 96))
    light = np.full((96, 96), 50.0)
    for row in range(8, 96, 16):
        light += 3000 * np.exp(-((y - row) ** 2 + (x - row) ** 2) / (2 * 0.7**2))
    stars = np.random.default_rng(0).poisson(light).astype(np.uint16)
    noise = PoissonGaussian((1.0,), (1.0,))
    found = symsmooth.fit_denoise_raw(stars, "RGGB", noise=noise, quality="fast", rng=0)
    assert found.n_defects == 0
    assert found.image.max() > 0.9 * stars.max()


def test_clipped_highlights_stay_clipped(scene: np.ndarray) -> None:
    sensor = Sensor(100)
    bright = scene.copy()
    bright[40:80, 40:80] = 1.5
    noisy, _ = sensor.expose(np.clip(bright, 0, 2))
    clipped = noisy[50:70, 50:70] >= sensor.white
    found = symsmooth.fit_denoise_raw(
        noisy, "RGGB", sensor.black, sensor.white, quality="fast", rng=0
    )
    assert clipped.mean() > 0.5
    assert (found.image[50:70, 50:70][clipped] == sensor.white).all()
    assert found.n_highlights > 400


def test_missing_pixels_are_filled_in_their_own_colour() -> None:
    colours = tiled(parse_pattern("RGGB"), (96, 96))
    clean = np.array([100.0, 400.0, 200.0])[colours]
    noisy = np.random.default_rng(0).poisson(clean).astype(float)
    hole = np.zeros((96, 96), bool)
    hole[30:50, 30:60] = True
    noisy[hole] = np.nan
    image = symsmooth.denoise_raw(noisy, "RGGB", noise=PoissonGaussian((1.0,), (0.0,)), rng=0)
    assert np.isfinite(image).all()
    assert np.abs(image - clean)[hole].max() < 0.15 * 400
    again = symsmooth.denoise_raw(
        np.where(hole, 0.0, noisy), "RGGB", noise=PoissonGaussian((1.0,), (0.0,)), mask=hole, rng=0
    )
    assert np.allclose(again[~hole], image[~hole], rtol=1e-3)


@pytest.mark.parametrize(("pattern", "quality"), [("X-Trans", "fast"), ("RGGB", "balanced")])
def test_same_bits_for_any_number_of_threads(pattern: str, quality: str, scene: np.ndarray) -> None:
    sensor = Sensor(100, pattern)
    noisy, _ = sensor.expose(scene[:120, :100])
    one, two = (denoised(sensor, noisy, workers=n, quality=quality) for n in (1, 3))
    assert np.array_equal(one, two)


@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (5, 4), (13, 31), (3, 200)])
@pytest.mark.parametrize("pattern", ["BGGR", "X-Trans"])
def test_any_size_will_do(shape: tuple[int, int], pattern: str) -> None:
    noisy = np.random.default_rng(0).poisson(50.0, shape).astype(np.uint16)
    image = symsmooth.denoise_raw(noisy, pattern, quality="fast", rng=0)
    assert image.shape == shape
    assert image.dtype == np.uint16


def test_black_may_be_a_tile() -> None:
    rng = np.random.default_rng(0)
    black = np.array([[100.0, 200.0], [300.0, 400.0]])
    light = rng.poisson(80.0, (64, 64))
    image = symsmooth.denoise_raw(light + tiled(black, light.shape), "RGGB", black, rng=0)
    plain = symsmooth.denoise_raw(light.astype(float), "RGGB", rng=0)
    assert np.allclose(image - tiled(black, light.shape), plain, atol=0.5)


def test_constant_mosaics_stay() -> None:
    flat = np.full((64, 64), 77, np.uint16)
    assert np.array_equal(symsmooth.denoise_raw(flat, "RGGB", 10), flat)


def test_what_makes_no_sense_is_refused() -> None:
    flat = np.ones((8, 8))
    with pytest.raises(ValueError, match="2-D"):
        symsmooth.denoise_raw(np.ones((8, 8, 8)), "RGGB")
    with pytest.raises(ValueError, match="white must be above black"):
        symsmooth.denoise_raw(flat, "RGGB", 10.0, 10.0)
    with pytest.raises(ValueError, match="black must be"):
        symsmooth.denoise_raw(flat, "RGGB", np.nan)
    with pytest.raises(ValueError, match="quality must be"):
        symsmooth.denoise_raw(flat, "RGGB", quality="fine")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="noise must be a PoissonGaussian"):
        symsmooth.denoise_raw(flat, "RGGB", noise=3.0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="one channel or three"):
        symsmooth.denoise_raw(flat, "RGGB", noise=PoissonGaussian((1.0, 1.0), (0.0, 0.0)))
