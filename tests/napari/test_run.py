"""What is done to the pixels of a layer; napari is not needed for it."""

from __future__ import annotations

import subprocess
import sys
from typing import get_args

import numpy as np
import pytest

import symsmooth
from napari_symsmooth import samples
from napari_symsmooth.layers import Source
from napari_symsmooth.run import (
    _REMEDIES,
    NoiseChoice,
    Settings,
    Watch,
    find_noise,
    run,
)
from napari_symsmooth.strengths import Blendable
from symsmooth.app.messages import NOISE_KINDS, describe, find_warnings
from symsmooth.core.blend import blend
from symsmooth.noise import White, estimate_noise

FAST = {"quality": "preview", "rng": 0}


@pytest.fixture
def noisy(camera) -> np.ndarray:
    rng = np.random.default_rng(0)
    return (255 * camera + rng.normal(0, 20, camera.shape)).astype(np.float32)


def work(pixels, axes, rgb=False, place=None, **settings):
    source = Source(pixels, axes, rgb)
    place = place or (0,) * len(axes)
    return run(source, Settings(quality="preview", **settings), Watch(), place)


def test_a_plane_is_what_the_api_makes_of_it(noisy) -> None:
    assert np.array_equal(work(noisy, "YX").image, symsmooth.denoise(noisy, **FAST))


def test_planes_have_one_noise(noisy) -> None:
    stack = np.stack([noisy, noisy[::-1], noisy.T])
    found = work(stack, "QYX", noise="white", level=20.0)
    for plane, denoised in zip(stack, found.image, strict=True):
        assert np.array_equal(denoised, symsmooth.denoise(plane, 20.0, **FAST))


def test_a_volume_is_denoised_as_one(noisy) -> None:
    volume = np.stack([noisy] * 3)
    found = work(volume, "ZYX", noise="white", level=20.0)
    assert np.array_equal(found.image, symsmooth.denoise(volume, 20.0, channel_axis=None, **FAST))


def test_channels_are_denoised_together(noisy) -> None:
    channels = np.stack([noisy, noisy[::-1]])
    found = work(channels, "CYX", noise="white", level=20.0)
    assert np.array_equal(found.image, symsmooth.denoise(channels, 20.0, channel_axis=0, **FAST))


def test_three_channels_of_8_bits_are_no_photograph(noisy) -> None:
    """Only the colours of an RGB layer may have a tone curve."""
    channels = np.clip(np.stack([noisy, noisy[::-1], noisy.T]), 0, 255).astype(np.uint8)
    found = work(channels, "CYX", noise="white", level=20.0)
    linear = symsmooth.denoise(channels, 20.0, channel_axis=0, tone="linear", **FAST)
    assert np.array_equal(found.image, linear)


def test_alpha_is_kept_and_uncertainty_has_no_colours(noisy) -> None:
    colours = np.clip(np.stack([noisy, noisy.T, noisy[::-1]], axis=-1), 0, 255).astype(np.uint16)
    alpha = np.arange(64 * 64, dtype=np.uint16).reshape(64, 64, 1)
    found = work(np.concatenate([colours, alpha], -1), "YXC", rgb=True, with_std=True)
    assert np.array_equal(found.image[..., 3:], alpha)
    assert np.array_equal(found.image[..., :3], symsmooth.denoise(colours, channel_axis=-1, **FAST))
    assert found.std.shape == (64, 64)
    assert (found.std > 0).all()


def test_frames_of_a_series_help_each_other_as_on_the_command_line(noisy) -> None:
    series = np.stack([noisy + i for i in range(4)])
    found = work(series, "TYX", noise="white", level=20.0, with_std=True)
    expected = symsmooth.fit_denoise(series, 20.0, time_axis=0, **FAST)
    assert np.array_equal(found.image, expected.image)
    assert np.array_equal(found.std, expected.std)
    moved = work(np.moveaxis(series, 0, 2), "YXT", noise="white", level=20.0)
    assert np.array_equal(moved.image, np.moveaxis(expected.image, 0, 2))


def test_noise_comes_from_a_file(noisy, tmp_path) -> None:
    model = estimate_noise(noisy)
    path = tmp_path / "camera.json"
    symsmooth.save_noise(model, path)
    found = work(noisy, "YX", noise="from a file", file=str(path))
    assert np.array_equal(found.image, symsmooth.denoise(noisy, noise=model, **FAST))
    assert found.noise.fields["estimated"] is False
    with pytest.raises(ValueError, match="no such file"):
        work(noisy, "YX", noise="from a file", file=str(tmp_path / "none.json"))


def test_strength_after_the_fact(noisy) -> None:
    """The bits of the layer at 0, of the result at 1; alpha stays, and colour has a strength of its own."""
    colours = np.clip(np.stack([noisy, noisy.T, noisy[::-1]], axis=-1), 0, 255).astype(np.uint8)
    pixels = np.stack([np.concatenate([colours, colours[..., :1]], -1)] * 2)
    source = Source(pixels, "QYXC", True)
    denoised = run(source, Settings(quality="preview"), Watch(), (0, 0, 0)).image
    blendable = Blendable(source, denoised)
    shown = blendable.made()
    blendable.write(shown, 0.0, 0.0)
    assert np.array_equal(shown, pixels)
    blendable.write(shown, 1.0, 1.0)
    assert np.array_equal(shown, denoised)
    blendable.write(shown, 0.6, 0.2)
    assert np.array_equal(shown[..., 3], pixels[..., 3])
    between = blend(colours, denoised[0, ..., :3], 0.6, 0.2, -1)
    assert np.array_equal(shown[0, ..., :3], between)


def test_time_of_volumes_with_channels(noisy) -> None:
    pixels = np.broadcast_to(noisy, (2, 2, 3, 64, 64)).astype(np.uint16)
    found = work(pixels, "QCZYX", noise="white", level=20.0)
    expected = symsmooth.denoise(pixels[0], 20.0, channel_axis=0, **FAST)
    assert found.image.dtype == np.uint16
    assert all(np.array_equal(each, expected) for each in found.image)


def test_lazy_arrays_are_loaded_piece_by_piece(noisy) -> None:
    array = pytest.importorskip("dask.array", reason="dask is not installed")
    stack = np.stack([noisy, noisy[::-1]])
    lazy = array.from_array(stack, chunks=(1, 64, 64))
    assert np.array_equal(work(lazy, "QYX").image, work(stack, "QYX").image)


def test_noise_is_measured_on_the_rectangle_of_the_plane_that_is_seen(noisy) -> None:
    flat = np.random.default_rng(1).normal(100, 7, (64, 64)).astype(np.float32)
    source = Source(np.stack([noisy, flat]), "QYX", False)
    settings = Settings(noise="from a rectangle", region=(8, 16, 40, 32))
    model = find_noise(source, settings, (1, 0, 0))
    assert model.sigma == pytest.approx(7, rel=0.1)
    assert str(model) == str(estimate_noise(flat, region=(8, 16, 40, 32)))


def test_a_part_has_the_noise_of_the_whole(noisy) -> None:
    source = Source(noisy, "YX", False)
    part = source.within((slice(0, 32), slice(8, 40)))
    found = run(source, Settings(quality="preview"), Watch(), (0, 0), part)
    assert found.noise.detail == str(estimate_noise(noisy))
    assert found.image.shape == (32, 32)


def test_uncertainty_is_that_of_the_api(noisy) -> None:
    found = work(noisy, "YX", noise="white", level=20.0, with_std=True)
    expected = symsmooth.fit_gsfw(noisy, 20.0, **FAST)
    assert np.array_equal(found.std, expected.std)


def test_uncertainty_is_known_for_coarse_noise_too(noisy) -> None:
    found = work(noisy, "YX", noise="coarse", with_std=True)
    assert found.std.shape == noisy.shape
    assert (found.std > 0).all()


def test_empty_frames_stay_as_they_are(noisy) -> None:
    stack = np.stack([np.full_like(noisy, np.nan), noisy, noisy])
    found = work(stack, "QYX")
    assert np.isnan(found.image[0]).all()
    assert np.isfinite(found.image[1:]).all()
    with pytest.raises(ValueError, match="no usable pixel"):
        work(np.full_like(stack, np.nan), "QYX")


def test_a_run_is_cancelled() -> None:
    watch = Watch()
    watch.cancel.set()
    noisy = np.random.default_rng(0).normal(0, 1, (64, 64))
    with pytest.raises(symsmooth.Cancelled):
        run(Source(noisy, "YX", False), Settings(), watch, (0, 0))


def test_a_run_says_how_far_it_is(noisy) -> None:
    watch = Watch()
    run(Source(np.stack([noisy] * 4), "QYX", False), Settings(quality="preview"), watch, (0, 0, 0))
    assert watch.fraction == pytest.approx(1.0)
    assert watch.what.startswith("slice 4 of 4: ")


def test_warnings_speak_of_the_widget_not_of_the_command_line() -> None:
    """Whatever is said: nothing was removed, texture or noise, too small a level."""
    scene = np.add.outer(np.arange(64.0), np.arange(64.0))
    nothing = describe(White(0.0), scene, 126.0, given=False, assumed=False)
    suspicious = describe(White(0.001), scene, 126.0, given=False, assumed=False)
    suspicious.fields["suspected"] = 3.0
    coarse = describe(White(1.0), scene, 126.0, given=False, assumed=False)
    coarse.fields.update(kind="correlated", confidence=0.3)
    said = [
        *find_warnings(nothing, scene, 126.0, 0.0, None),
        *find_warnings(suspicious, scene, 126.0, 0.0, None),
        *find_warnings(coarse, scene, 126.0, 1.0, None),
        *find_warnings(nothing, scene, 126.0, 0.0, 0.01),
    ]
    assert len(said) == 4
    for warning in said:
        assert "--" not in warning.say(_REMEDIES)


def test_almost_nothing_removed_is_said() -> None:
    ramp = np.add.outer(np.arange(64.0), np.arange(64.0)).astype(np.float32)
    assert work(ramp, "YX").warnings[0].startswith("almost nothing was removed")


@pytest.mark.parametrize(
    "make", [samples.few_photons, samples.photograph, samples.colour_photograph, samples.volume]
)
def test_samples_are_noisy_pictures(make) -> None:
    (pixels, attributes, kind), *_ = make()
    assert kind == "image"
    assert attributes["name"]
    axis = -1 if attributes.get("rgb") else None
    plane = pixels[len(pixels) // 2] if pixels.ndim == 3 and axis is None else pixels
    assert symsmooth.estimate_sigma(plane, channel_axis=axis) > 0


def test_napari_is_imported_by_nobody_else() -> None:
    code = (
        "import sys, symsmooth, napari_symsmooth, napari_symsmooth.commands, napari_symsmooth.samples;"
        "print([m for m in ('napari', 'magicgui', 'qtpy', 'app_model', 'scipy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_kinds_of_noise_are_those_of_everybody() -> None:
    words = [kind.word for kind in NOISE_KINDS]
    assert list(get_args(NoiseChoice)) == [*words, "from a rectangle", "from a file"]


def test_magnitudes_lose_their_bias_as_by_the_api(noisy) -> None:
    magnitudes = np.hypot(noisy, np.random.default_rng(1).normal(0, 20, noisy.shape))
    found = work(magnitudes.astype(np.float32), "YX", noise="Rician")
    expected = symsmooth.denoise(magnitudes.astype(np.float32), noise="rician", **FAST)
    assert np.array_equal(found.image, expected)
