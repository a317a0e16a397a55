"""Large pictures, denoised in pieces: what is asked of a sample, and what must not show."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from skimage import data

import symsmooth
from symsmooth.core.metrics import psnr
from symsmooth.core.parallel import Cancelled
from symsmooth.gsfw import pieces
from symsmooth.gsfw.denoise import fit_denoise

SIGMA = 20.0


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is large here has 160 x 160 pixels, and is cut into four."""
    monkeypatch.setattr(pieces, "BLOCK_PIXELS", 150 * 150)
    monkeypatch.setattr(pieces, "_PIECE_PIXELS", 100 * 100)


def clean_picture(shape: tuple[int, int] = (190, 200)) -> np.ndarray:
    return data.astronaut()[20 : 20 + shape[0], 150 : 150 + shape[1]]


def noisy_picture(seed: int = 0, shape: tuple[int, int] = (190, 200)) -> np.ndarray:
    noise = np.random.default_rng(seed).normal(0, SIGMA, (*shape, 3))
    return np.clip(np.rint(clean_picture(shape) + noise), 0, 255).astype(np.uint8)


def whole(noisy: np.ndarray, monkeypatch: pytest.MonkeyPatch, **options: object) -> np.ndarray:
    with monkeypatch.context() as patch:
        patch.setattr(pieces, "BLOCK_PIXELS", 10**9)
        return symsmooth.denoise(noisy, **options)


def was_cut(noisy: np.ndarray, **options: object) -> bool:
    said: list[str] = []
    symsmooth.denoise(noisy, progress=lambda _, what: said.append(what), workers=1, **options)
    return any("piece" in what for what in said)


@pytest.mark.parametrize("options", [{}, {"sigma": SIGMA}, {"noise": "poisson-gaussian"}])
def test_the_bits_do_not_depend_on_the_workers(options) -> None:
    noisy = noisy_picture()
    first, *others = (
        symsmooth.denoise(noisy, quality="fast", channel_axis=-1, workers=n, **options)
        for n in (1, 2, 5)
    )
    assert all((first == other).all() for other in others)


@pytest.mark.parametrize("options", [{}, {"sigma": SIGMA}, {"strength": (1.0, 1.5)}])
def test_pieces_are_as_good_as_the_whole(options, monkeypatch) -> None:
    noisy, clean = noisy_picture(), clean_picture()
    options = {**options, "quality": "fast", "channel_axis": -1}
    assert was_cut(noisy, **options)
    in_pieces = symsmooth.denoise(noisy, **options)
    together = whole(noisy, monkeypatch, **options)
    assert psnr(clean, in_pieces, 255) > psnr(clean, together, 255) - 0.15
    assert psnr(in_pieces, together, 255) > 38.0


def test_no_seam_is_seen() -> None:
    """Where pieces meet, the error is that of any other place."""
    shape = (400, 400)
    noisy = np.random.default_rng(3).normal(100.0, SIGMA, shape)
    result = symsmooth.denoise(noisy, SIGMA, quality="fast")
    steps = np.abs(np.diff(result, axis=1)).mean(axis=0)
    assert steps[195:205].mean() < 1.5 * np.median(steps)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32", "float64", ">i4", "int64"])
@pytest.mark.parametrize("axis", [None, 0, -1])
def test_dtype_and_axes_come_back(dtype, axis) -> None:
    pixels = noisy_picture().astype(dtype)
    image = pixels[..., 0] if axis is None else np.moveaxis(pixels, -1, axis)
    result = symsmooth.denoise(image, SIGMA, quality="preview", channel_axis=axis)
    assert (result.dtype, result.shape) == (image.dtype, image.shape)
    assert result.std() < image.std()


def test_what_is_constant_stays() -> None:
    noisy = noisy_picture()
    noisy[:80] = (10, 200, 30)  # a letterbox that lies in two pieces
    result = symsmooth.denoise(noisy, quality="fast", channel_axis=-1)
    assert (result[:80] == noisy[:80]).all()
    constant = np.full((200, 200), 7, np.uint16)
    assert (symsmooth.denoise(constant) == constant).all()


def test_grey_saved_as_colour_stays_grey() -> None:
    grey = noisy_picture()[..., :1]
    result = symsmooth.denoise(np.repeat(grey, 3, -1), quality="fast", channel_axis=-1)
    assert (result == result[..., :1]).all()
    assert result.std() < grey.std()


def test_specks_are_counted_once_and_replaced() -> None:
    rng = np.random.default_rng(1)
    clean = data.camera()[100:300, 100:300]
    noisy = np.clip(np.rint(clean + rng.normal(0, 5, clean.shape)), 1, 254).astype(np.uint8)
    where = rng.random(clean.shape) < 0.01
    noisy[where] = np.where(rng.random(int(where.sum())) < 0.5, 0, 255)
    found = fit_denoise(noisy, quality="fast", specks="auto")
    assert 0.8 * where.sum() < found.n_specks < 1.2 * where.sum()
    assert np.abs(found.image[where].astype(float) - clean[where]).mean() < 12


def test_deviations_are_those_of_the_whole(monkeypatch) -> None:
    noisy = noisy_picture()[..., 0]
    found = fit_denoise(noisy, SIGMA, quality="fast", rng=3)
    with monkeypatch.context() as patch:
        patch.setattr(pieces, "BLOCK_PIXELS", 10**9)
        expected = fit_denoise(noisy, SIGMA, quality="fast", rng=3).std
    assert found.std.shape == expected.shape
    assert abs(float(found.std.mean() / expected.mean()) - 1) < 0.05


def test_what_cannot_be_cut_is_denoised_whole(monkeypatch) -> None:
    noisy = noisy_picture()[..., 0].astype(float)
    mask = np.zeros(noisy.shape, bool)
    mask[50:60, 50:60] = True
    level = np.full(noisy.shape, SIGMA)
    for options in ({"sigma": level}, {"sigma": SIGMA, "mask": mask}):
        options["quality"] = "preview"
        assert not was_cut(noisy, **options)
        together = whole(noisy, monkeypatch, **options)
        assert (symsmooth.denoise(noisy, **options) == together).all()
    holes = np.where(mask, np.nan, noisy)
    assert np.isfinite(symsmooth.denoise(holes, SIGMA, quality="preview")).all()


def test_tone_is_decided_once_for_all_pieces() -> None:
    """A picture whose shadows were darkened by a curve is corrected alike in dark and bright pieces."""
    rng = np.random.default_rng(0)
    light = np.linspace(0.002, 0.3, 400)[np.newaxis, :, np.newaxis] * np.ones((200, 1, 3))
    seen = np.clip(light + rng.normal(0, 0.05, light.shape), 0, 1)
    encoded = np.where(seen < 0.0031308, 12.92 * seen, 1.055 * seen ** (1 / 2.4) - 0.055)
    noisy = np.rint(255 * encoded).astype(np.uint8)
    found = fit_denoise(noisy, quality="fast", channel_axis=-1)
    assert found.tone > 0.5


@pytest.mark.parametrize("workers", [1, 2])
def test_progress_rises_to_one(workers) -> None:
    seen: list[float] = []
    symsmooth.denoise(
        noisy_picture(),
        quality="preview",
        channel_axis=-1,
        workers=workers,
        progress=lambda fraction, _: seen.append(fraction),
    )
    assert seen == sorted(seen)
    assert seen[-1] == 1.0


@pytest.mark.parametrize("workers", [1, 2])
def test_it_stops_when_it_is_told_to(workers) -> None:
    stop, before = threading.Event(), set(threading.enumerate())

    def soon(fraction: float, _: str) -> None:
        if fraction > 0.1:
            stop.set()

    with pytest.raises(Cancelled):
        symsmooth.denoise(
            noisy_picture(shape=(190, 330)),
            quality="balanced",
            channel_axis=-1,
            workers=workers,
            progress=symsmooth.stop_when(stop, soon),
        )
    assert set(threading.enumerate()) <= before


def test_an_error_in_a_piece_reaches_the_caller(monkeypatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise FloatingPointError("broken")

    monkeypatch.setattr(pieces, "remove_noise", broken)
    with pytest.raises(FloatingPointError, match="broken"):
        symsmooth.denoise(noisy_picture()[..., 0], SIGMA, workers=2)
