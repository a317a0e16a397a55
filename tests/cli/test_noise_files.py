"""Noise models as files, through the commands: saved, calibrated, given to every way of denoising."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from skimage import data
from typer.testing import CliRunner

from symsmooth import calibrate_noise, cli, denoise, estimate_noise, load_noise, save_noise
from symsmooth.app import large
from symsmooth.io import read_image
from symsmooth.noise import Correlated, PoissonGaussian

from ..dngs import dng
from .test_raw import SENSOR

FAST = ("--quality", "preview")
RNG = np.random.default_rng(0)


def shot(light: Any) -> np.ndarray:
    light = np.asarray(light, float)
    return np.rint(100 + 2 * RNG.poisson(light / 2) + RNG.normal(0, 4, light.shape)).astype(
        np.uint16
    )


LAW = PoissonGaussian((2.0,), (16 - 200.0,), (100.0,))
SCENE = shot(4.0 * data.camera()[128:224, 128:256])
FLATS = [shot(np.full((128, 128), light)) for light in (100.0, 100.0, 1500.0, 1500.0)]
DARKS = np.stack([shot(np.zeros((128, 128))) for _ in range(4)])


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    tifffile.imwrite("a.tif", SCENE)
    save_noise(LAW, "camera.json")
    Path("flats").mkdir()
    for number, flat in enumerate(FLATS):
        tifffile.imwrite(f"flats/{number}.tif", flat)
    tifffile.imwrite("darks.ome.tif", DARKS, metadata={"axes": "TYX"})
    return tmp_path


def run(*words: object) -> Any:
    return CliRunner().invoke(cli.app, [str(word) for word in words])


def fine(*words: object) -> Any:
    done = run(*words)
    assert done.exit_code == 0, done.output
    return done


def refused(*words: object) -> str:
    done = run(*words)
    assert done.exit_code in (1, 2), done.output
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("symsmooth: error: ")
    return done.stderr


def test_a_file_is_denoised_as_the_library_does_it(here: Path) -> None:
    told = json.loads(
        fine("denoise", "a.tif", "-o", "b.tif", "--noise", "camera.json", *FAST, "--json").stdout
    )
    assert np.array_equal(
        read_image("b.tif").pixels, denoise(SCENE, noise=LAW, quality="preview", rng=0)
    )
    assert told["noise"]["gain"] == [2.0]
    assert not told["noise"]["estimated"]
    assert told["warnings"] == []
    assert (
        "(given)" in fine("denoise", "flats", "-o", "out/", "--noise", "camera.json", *FAST).stdout
    )
    for number, flat in enumerate(FLATS):
        expected = denoise(flat, noise=LAW, quality="preview", rng=0)
        assert np.array_equal(read_image(f"out/{number}.tif").pixels, expected)


def test_slices_and_series_are_denoised_with_it(here: Path) -> None:
    fine("denoise", "darks.ome.tif", "-o", "s.ome.tif", "--noise", "camera.json", *FAST)
    first = denoise(DARKS[0], noise=LAW, quality="preview", rng=0)
    assert np.array_equal(read_image("s.ome.tif").pixels[0], first)
    fine("denoise", "darks.ome.tif", "-o", "t.ome.tif", "--time", "--noise", "camera.json", *FAST)
    together = denoise(DARKS, noise=LAW, quality="preview", rng=0, time_axis=0)
    assert np.array_equal(read_image("t.ome.tif").pixels, together)


def test_an_empty_slice_does_not_ask_for_units(here: Path) -> None:
    stack = np.stack([SCENE, np.zeros_like(SCENE)]).astype(np.float32)
    save_noise(estimate_noise(SCENE), "uint16.json")
    tifffile.imwrite("stack.tif", stack)
    fine("denoise", "stack.tif", "-o", "clean.tif", "--noise", "uint16.json", *FAST)
    fine(
        "denoise",
        "a.tif",
        "-o",
        "floats.tif",
        "--dtype",
        "float32",
        "--noise",
        "uint16.json",
        *FAST,
    )


def test_large_files_take_it_and_are_not_gone_on_with_by_another(here: Path, monkeypatch) -> None:
    monkeypatch.setattr(large, "_LARGE", 1000)
    done = fine("denoise", "a.tif", "-o", "b.tif", "--noise", "camera.json", *FAST, "--json")
    assert json.loads(done.stdout)["parameters"]["boxes"] >= 1
    whole = denoise(SCENE, noise=LAW, quality="preview", rng=0).astype(float)
    assert (read_image("b.tif").pixels - whole).std() < 5  # the noise is 40
    keys = []
    monkeypatch.setattr(
        large,
        "BoxPlan",
        lambda *parts: keys.append(parts[-1]) or (_ for _ in ()).throw(ValueError("seen")),
    )
    for gain in (2.0, 2.0 + 1e-9):  # the same in words
        save_noise(PoissonGaussian((gain,), (-184.0,), (100.0,)), "camera.json")
        run("denoise", "a.tif", "-o", "c.tif", "--noise", "camera.json", *FAST)
    assert len(set(keys)) == 2


def test_compare_gives_it_to_methods_that_know_of_it(here: Path) -> None:
    words = ("--methods", "denoise:preview,gaussian", "--noise", "camera.json")
    fine("compare", "a.tif", "-o", "page.html", *words)
    assert "photon (Poisson) noise" in Path("page.html").read_text(encoding="utf-8")
    assert "no such file" in refused("compare", "a.tif", "-o", "other.html", "--noise", "none.json")


def test_what_was_found_is_saved_and_gives_the_same_bits(here: Path) -> None:
    fine("noise", "a.tif", "--save", "found.json")
    model = estimate_noise(SCENE)
    assert load_noise("found.json") == model
    fine("denoise", "a.tif", "-o", "b.tif", "--noise", "found.json", *FAST)
    fine("denoise", "a.tif", "-o", "c.tif", *FAST)
    assert np.array_equal(read_image("b.tif").pixels, read_image("c.tif").pixels)


def test_several_pictures_give_one_model(here: Path) -> None:
    done = fine("noise", "flats", "a.tif", "--save", "found.json")
    assert done.stdout.count("\n") == 5
    assert "saved found.json" in done.stderr
    level = load_noise("found.json").level_at(np.array([1600.0]))[0].item()
    assert level == pytest.approx(np.sqrt(2 * 1500 + 16), rel=0.15)


def test_calibration_is_that_of_the_library(here: Path) -> None:
    done = fine("noise", "flats", "--calibrate", "--darks", "darks.ome.tif", "--save", "new.json")
    model = load_noise("new.json")
    assert model == calibrate_noise(
        [flat[..., None] for flat in FLATS], DARKS[..., None], channel_axis=-1
    )
    assert "read noise 4" in done.stdout
    told = json.loads(
        fine("noise", "flats", "--calibrate", "--darks", "darks.ome.tif", "--json").stdout
    )
    assert told["noise"]["gain"] == [pytest.approx(2.0, rel=0.05)]
    assert told["saved"] is None


def test_a_raw_file_keeps_its_law_and_takes_one(here: Path) -> None:
    noisy, _ = SENSOR.expose(data.astronaut()[60:188, 120:260] / 255.0)
    Path("in.dng").write_bytes(dng(noisy, SENSOR))
    fine("noise", "in.dng", "--save", "raw.json")
    for name, more in (("plain.dng", ()), ("given.dng", ("--noise", "raw.json"))):
        fine("denoise", "in.dng", "-o", name, *FAST, *more)
    plain, given = (read_image(name).pixels.astype(int) for name in ("plain.dng", "given.dng"))
    assert np.abs(plain - given).max() <= 1
    save_noise(Correlated(np.ones((3, 8, 8)), np.eye(3)), "coarse.json")
    assert "a raw mosaic needs the noise model of a sensor" in refused(
        "denoise", "in.dng", "-o", "x.dng", "--noise", "coarse.json"
    )
    assert "a calibration takes no raw files" in refused("noise", "in.dng", "in.dng", "--calibrate")


def test_what_cannot_be_is_refused_in_one_line_and_nothing_is_written(here: Path) -> None:
    before = sorted(path.name for path in here.iterdir())
    rgb = np.stack([shot(4.0 * data.camera()[128:224, 128:256]) for _ in range(3)], -1)
    tifffile.imwrite("rgb.tif", rgb, photometric="rgb")
    tifffile.imwrite("eight.tif", (SCENE // 8).astype(np.uint8))
    save_noise(estimate_noise(SCENE), "uint16.json")
    Path("bad.json").write_text('{"format": "symsmooth noise", "version": 1, "level": NaN}')
    out = ("-o", "out.tif")
    for words, message in (
        (
            ("denoise", "rgb.tif", *out, "--noise", "camera.json"),
            "for one channel, and the image has 3 channels",
        ),
        (("denoise", "eight.tif", *out, "--noise", "uint16.json"), "for uint16 pixels"),
        (("denoise", "a.tif", *out, "--noise", "none.json"), "none.json: no such file"),
        (("denoise", "a.tif", *out, "--noise", "bad.json"), "bad.json: is no noise model: NaN"),
        (
            ("denoise", "a.tif", *out, "--noise", "camera"),
            "a file of `symsmooth noise --save` ends in .json",
        ),
        (
            ("denoise", "a.tif", *out, "--noise", "camera.json", "--sigma", 3),
            "not with another model",
        ),
        (
            ("denoise", "a.tif", *out, "--noise", "camera.json", "--noise-from", "0,0,32,32"),
            "without sigma and noise",
        ),
        (
            ("denoise", "a.tif", *out, "--noise", "camera.json", "--method", "nlm"),
            "nlm has no option noise",
        ),
        (
            ("noise", "a.tif", "--save", "camera.json"),
            "exists; replace it, or give another name (--overwrite, --save)",
        ),
        (("noise", "a.tif", "--save", "camera.txt"), "name it camera.json"),
        (("noise", "a.tif", "--save", "no/camera.json"), "there is no folder no"),
        (("noise", "a.tif", "--darks", "darks.ome.tif"), "--darks goes with --calibrate"),
        (
            ("noise", "a.tif", "--calibrate", "--save", "new.json"),
            "one frame shows no noise by itself",
        ),
        (
            ("noise", "flats/0.tif", "flats/1.tif", "--calibrate", "--save", "new.json"),
            "add darks, or frames",
        ),
        (("noise", "a.tif", "flats", "--calibrate", "--save", "new.json"), "one shape and dtype"),
        (("noise", "none.tif", "--calibrate", "--save", "new.json"), "no such file"),
    ):
        assert message in refused(*words), words
    made = {"rgb.tif", "eight.tif", "uint16.json", "bad.json"}
    assert sorted(path.name for path in here.iterdir()) == sorted([*before, *made])
    fine("noise", "a.tif", "--save", "camera.json", "--overwrite")
    assert load_noise("camera.json") != LAW


def test_help_names_the_file() -> None:
    assert "FILE.json" in fine("denoise", "--help").stdout
