"""Which noise an image has is answered in one place, and nothing is measured twice."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import symsmooth
from symsmooth import cli, noise
from symsmooth.core import blocks
from symsmooth.core.image import open_image
from symsmooth.io import write_image
from symsmooth.noise import NoiseEstimator, White, level

resolve_module = importlib.import_module("symsmooth.noise.resolve")  # the function has its name
rng = np.random.default_rng(0)
NOISY = np.clip(np.rint(rng.normal(120, 20, (72, 80))), 0, 255).astype(np.uint8)


@pytest.fixture
def estimates(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows with every look at the noise of a picture: its white level, or its regions."""
    counted: list[int] = []

    def counting(function):
        def wrapper(*arguments, **options):
            counted.append(1)
            return function(*arguments, **options)

        return wrapper

    for module, name in (
        (resolve_module, "picture_sigma"),
        (level, "picture_sigma"),
        (resolve_module, "find_model"),
        (resolve_module, "photon_law"),
    ):
        monkeypatch.setattr(module, name, counting(getattr(module, name)))
    return counted


def run(*arguments: object) -> None:
    done = CliRunner().invoke(cli.app, [str(a) for a in arguments])
    assert done.exit_code == 0, done.output


# --- the level is measured once a call ----------------------------------------------------------


@pytest.mark.parametrize("name", symsmooth.METHODS)
def test_by_a_function(estimates: list[int], name: str) -> None:
    symsmooth.METHODS[name](NOISY[:24, :24])
    assert len(estimates) == 1


@pytest.mark.parametrize("kind", ["auto", "gaussian", "poisson-gaussian", "correlated"])
def test_for_every_kind_of_noise(estimates: list[int], kind: str) -> None:
    symsmooth.denoise(NOISY, noise=kind, quality="preview")
    assert len(estimates) == 1


@pytest.mark.parametrize("method", ["denoise", "nlm", "gsf"])
def test_for_a_file(estimates: list[int], tmp_path: Path, method: str) -> None:
    write_image(tmp_path / "in.png", NOISY)
    run("denoise", tmp_path / "in.png", "-o", tmp_path / "out.png", "--method", method)
    assert len(estimates) == 1


def test_for_the_answer_alone(estimates: list[int], tmp_path: Path) -> None:
    write_image(tmp_path / "in.png", NOISY)
    run("noise", tmp_path / "in.png")
    assert len(estimates) == 1


def test_for_all_methods_of_a_comparison(estimates: list[int], tmp_path: Path) -> None:
    write_image(tmp_path / "in.png", NOISY)
    methods = "denoise:preview,gsf,nlm,denoise:preview:noise=correlated"
    run("compare", tmp_path / "in.png", "-o", tmp_path / "page.html", "--methods", methods)
    assert len(estimates) == 2  # its white level, for those that know no other, and its noise


def test_for_all_blocks_of_a_dask_array(
    estimates: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    import dask.array

    monkeypatch.setattr(blocks, "BLOCK_PIXELS", 128**2)
    array = dask.array.from_array(np.tile(NOISY, (3, 3)), chunks=80)
    for function in (symsmooth.denoise_nlm, lambda a: symsmooth.denoise(a, quality="preview")):
        estimates.clear()
        function(array).compute(scheduler="synchronous")
        assert len(estimates) == 1


@pytest.mark.parametrize("method", ["denoise", "nlm"])
def test_for_all_boxes_of_a_file(
    estimates: list[int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, method: str
) -> None:
    monkeypatch.setattr(blocks, "BLOCK_PIXELS", 128**2)
    monkeypatch.setattr("symsmooth.app.large._LARGE", 0)
    np.save(tmp_path / "in.npy", np.tile(NOISY, (2, 2)))
    run("denoise", tmp_path / "in.npy", "-o", tmp_path / "out.npy", "--method", method)
    assert len(estimates) == 1


@pytest.mark.parametrize("sigma", [20.0, 20, np.float32(20)])
def test_a_level_that_is_given_costs_nothing(estimates: list[int], sigma: float) -> None:
    symsmooth.denoise(NOISY, sigma, quality="preview")
    assert not estimates


# --- what is said is taken ----------------------------------------------------------------------


def test_a_model_that_was_found_gives_the_bits_that_finding_it_gives() -> None:
    found = symsmooth.estimate_noise(NOISY)
    again = symsmooth.denoise(NOISY, noise=found, quality="preview")
    assert np.array_equal(again, symsmooth.denoise(NOISY, quality="preview"))


def test_a_level_and_its_model_are_the_same() -> None:
    picture = open_image(NOISY)
    assert noise.resolve(picture, 20.0) == White(20.0) == noise.resolve(picture, noise=White(20.0))
    colours = np.dstack([NOISY, NOISY[::-1], NOISY[:, ::-1]])
    levels = noise.resolve(open_image(colours, -1), [1.0, 2.0, 3.0])
    assert np.array_equal(levels.level.values, [1, 2, 3])  # type: ignore[attr-defined]


def test_the_level_of_a_stack_is_the_median_of_its_slices() -> None:
    pictures = [
        open_image(np.random.default_rng(i).normal(100, s, (64, 64)))
        for i, s in enumerate((5, 9, 40))
    ]
    estimator = NoiseEstimator(lambda: pictures[2], lambda middle: [*pictures[:2], middle])
    assert noise.resolve(estimator, white_only=True).sigma == pytest.approx(9, rel=0.1)  # type: ignore[attr-defined]
    assert noise.resolve(estimator, white_only=True) == noise.resolve(estimator, noise="gaussian")


def test_nothing_is_opened_for_what_was_said() -> None:
    def fail() -> None:
        raise AssertionError("opened")

    assert noise.resolve(NoiseEstimator(fail), 20.0) == White(20.0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"sigma": 5.0, "noise": "correlated"}, "not with correlated noise"),
        ({"sigma": 5.0, "noise": White(5.0)}, "not with another model of noise"),
        ({"sigma": 5.0, "region": (0, 0, 20, 20)}, "without sigma and noise"),
        ({"noise": "gaussian", "region": (0, 0, 20, 20)}, "without sigma and noise"),
        ({"noise": "pink"}, "noise must be one of auto"),
        ({"sigma": [1.0, 2.0]}, "one for each of 1 channels"),
    ],
)
def test_contradictions_are_refused(said: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        noise.resolve(open_image(NOISY), **said)
