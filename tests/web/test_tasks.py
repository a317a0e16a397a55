"""What workers do to a picture: every axis keeps its name, every read its limit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mrcfile
import nibabel
import numpy as np
import pytest
import scipy.ndimage
import tifffile
from typer.testing import CliRunner

from symsmooth import cli
from symsmooth.io import FileError, limit_decoded_size, read_image, read_images, write_image
from symsmooth.web import tasks
from symsmooth.web.sessions import VIEW
from symsmooth.web.settings import Settings
from symsmooth.web.tasks import visible_part
from symsmooth.web.worker import Reporter
from symsmooth_repro.sensor import Sensor

from ..dngs import dng

rng = np.random.default_rng(0)
LIMIT = 10**7


def reporter() -> Reporter:
    return Reporter(1, lambda *news: None, set())


def inspect(path: Path) -> dict[str, Any]:
    found = tasks.inspect_file(path, path.parent, LIMIT, reporter())
    json.dumps(found["info"], allow_nan=False)  # a browser can read it
    return found


def denoise(path: Path, folder: Path, **given: Any) -> dict[str, Any]:
    folder.mkdir(exist_ok=True)
    settings = Settings.of({"quality": "preview", **given.pop("settings", {})}).as_json()
    place = {"at": (), "visible": None, "view": path.parent / VIEW, "frames": [], **given}
    if "info" not in place:
        place["info"] = inspect(path)["info"]
    return tasks.denoise(path, place, folder, settings, 1, LIMIT, reporter())


@pytest.mark.parametrize(
    ("axes", "shape", "others", "channels", "thirds"),
    [
        ("YX", (40, 50), [], 1, []),
        ("ZYX", (4, 40, 50), ["Depth"], 1, ["volume", "none"]),
        ("TYX", (4, 40, 50), ["Time"], 1, ["none", "volume", "time"]),
        ("TZYX", (2, 3, 40, 50), ["Time", "Depth"], 1, ["volume", "none", "time"]),
        ("TZCYX", (2, 3, 2, 40, 50), ["Time", "Depth"], 2, ["volume", "none", "time"]),
    ],
)
def test_axes_have_the_names_of_the_file(
    tmp_path: Path, axes: str, shape: tuple[int, ...], others: list[str], channels: int,
    thirds: list[str],
) -> None:  # fmt: skip
    path = tmp_path / "a.tif"
    pixels = rng.normal(100, 20, shape).astype(np.uint16)
    tifffile.imwrite(path, pixels, imagej=True, metadata={"axes": axes})
    info = inspect(path)["info"]
    assert [axis["name"] for axis in info["others"]] == others
    assert [axis["size"] for axis in info["others"]] == list(shape[: len(others)])
    assert (info["width"], info["height"], info["channels"]) == (50, 40, channels)
    assert info["thirds"] == thirds
    view = np.load(tmp_path / VIEW)
    expected = np.moveaxis(pixels, axes.index("C"), -1) if "C" in axes else pixels
    np.testing.assert_array_equal(view, expected)


@pytest.mark.parametrize("name", ["head.nii.gz", "head.nii", "grid.mrc"])
def test_files_of_scanners_and_microscopes_come_back_as_they_were(
    tmp_path: Path, name: str
) -> None:
    path = tmp_path / name
    pixels = np.hypot(100 + rng.normal(0, 9, (3, 40, 48)), rng.normal(0, 9, (3, 40, 48)))
    if name.endswith(".mrc"):
        mrcfile.write(path, pixels.astype(np.float32))
    else:
        nibabel.save(nibabel.Nifti1Image(pixels.astype(np.float32).T, np.eye(4)), path)
    info = inspect(path)["info"]
    assert [axis["size"] for axis in info["others"]] == [3]
    made = denoise(path, tmp_path / "run", settings={"noise": "rician"})
    assert made["files"] == [name.replace(".", "-denoised.", 1)]
    assert made["noise"]["kind"] == "rician"
    again = read_image(tmp_path / "run" / made["files"][0])
    assert again.pixels.shape == read_image(path).pixels.shape
    assert (
        cli_makes(path, "--quality", "preview", "--noise", "rician")
        == (tmp_path / "run" / made["files"][0]).read_bytes()
    )


@pytest.mark.parametrize("name", ["shot.dng", "shot.tif"])
def test_a_mosaic_becomes_a_dng_and_is_shown_developed(tmp_path: Path, name: str) -> None:
    sensor = Sensor(peak=300)
    noisy, _ = sensor.expose(np.tile(np.linspace(0.05, 0.6, 96)[:, None], (64, 1, 3)).copy())
    path = tmp_path / name
    path.write_bytes(dng(noisy, sensor))
    found = inspect(path)
    path, info = found["path"], found["info"]
    assert path.name == "shot.dng"  # named as what it is
    assert info["mosaic"] == "raw mosaic RGGB"
    assert info["noise"]["kind"] == "poisson-gaussian"
    view = np.load(tmp_path / VIEW)
    assert view.shape == (*noisy.shape, 3)
    assert view.dtype == np.uint8
    made = denoise(path, tmp_path / "run", info=info)
    assert made["files"] == ["shot-denoised.dng"]
    expected = read_image(tmp_path / "run" / made["files"][0]).pixels
    assert expected.dtype == noisy.dtype
    assert np.std(expected.astype(float) - noisy) > 10
    assert (
        cli_makes(path, "--quality", "preview")
        == (tmp_path / "run" / made["files"][0]).read_bytes()
    )
    shown = np.load(tmp_path / "run" / "result-0.npy")
    assert shown.shape == view.shape
    assert made["panels"][0]["removed"] > 0
    for wrong in ({"noise": "white"}, {"method": "bm3d"}, {"chroma_strength": 2.0}):
        with pytest.raises(ValueError, match=r"^[^-\n]+$"):  # no words of the command line
            denoise(path, tmp_path / "wrong", settings=wrong, info=info)


def test_raw_files_have_limits_and_damaged_ones_are_refused(tmp_path: Path) -> None:
    sensor = Sensor(peak=300)
    whole = dng(sensor.expose(np.full((96, 96, 3), 0.3))[0], sensor)
    path = tmp_path / "a.dng"
    path.write_bytes(whole)
    with pytest.raises(FileError, match=r"more than the 0 MB of pixels"):
        tasks.inspect_file(path, tmp_path, 96 * 96 * 2 - 1, reporter())
    for length in (len(whole) // 2, len(whole) - 9, 200):
        path.write_bytes(whole[:length])
        with pytest.raises(FileError, match=r"^[^\n]+$"):
            tasks.inspect_file(path, tmp_path, LIMIT, reporter())


def cli_makes(path: Path, *options: str) -> bytes:
    """Return what the command line makes of a file, with the same name."""
    out = path.parent / "cli"
    done = CliRunner().invoke(cli.app, ["denoise", str(path), "-o", f"{out}/", *options])
    assert done.exit_code == 0, done.stderr
    (made,) = out.iterdir()
    return made.read_bytes()


def test_all_of_a_stack_is_done(tmp_path: Path) -> None:
    path = tmp_path / "stack.tif"
    write_image(path, rng.normal(100, 20, (3, 40, 40)).astype(np.float32))
    inspect(path)
    made = denoise(path, tmp_path / "run")
    result = read_image(tmp_path / "run" / made["files"][0]).pixels
    assert result.shape == (3, 40, 40)
    np.testing.assert_array_equal(np.load(tmp_path / "run" / "result-0.npy"), result)


def test_a_box_is_measured_on_the_slice_it_was_drawn_on(tmp_path: Path) -> None:
    path = tmp_path / "stack.tif"
    levels = np.array([2.0, 5.0, 20.0])[:, None, None]
    write_image(path, (100 + levels * rng.normal(size=(3, 48, 48))).astype(np.float32))
    inspect(path)
    asked = {"noise": "box", "box": [0, 0, 48, 48]}
    found = [
        denoise(path, tmp_path / f"run{n}", at=(n,), settings=asked)["noise"]["level"]
        for n in range(3)
    ]
    np.testing.assert_allclose(found, levels.ravel(), rtol=0.15)


def test_channels_apart_are_pictures_of_their_own(tmp_path: Path) -> None:
    import symsmooth

    path = tmp_path / "channels.tif"
    pixels = np.clip(rng.normal(128, 20, (3, 40, 40)), 0, 255).astype(np.uint8)
    tifffile.imwrite(path, pixels, imagej=True, metadata={"axes": "CYX"})
    assert inspect(path)["info"]["apart"]
    made = denoise(
        path, tmp_path / "run",
        settings={"channels": "apart", "noise": "white", "level": 20.0},
    )  # fmt: skip
    result = read_image(tmp_path / "run" / made["files"][0]).pixels
    alone = symsmooth.denoise(
        pixels, 20.0, quality="preview", rng=0, channel_axis=0, channels="apart"
    )
    np.testing.assert_array_equal(result, alone)
    write_image(tmp_path / "colour.png", np.moveaxis(pixels, 0, -1))
    assert not inspect(tmp_path / "colour.png")["info"]["apart"]  # it could not be written


def test_pictures_with_holes_are_described_in_numbers_that_json_knows(tmp_path: Path) -> None:
    path = tmp_path / "holes.npy"
    pixels = rng.normal(100, 20, (40, 40))
    pixels[3, 4], pixels[5, 6] = np.nan, np.inf
    np.save(path, pixels)
    inspect(path)
    json.dumps(denoise(path, tmp_path / "run"), allow_nan=False)
    flat = tmp_path / "flat.npy"
    np.save(flat, np.full((40, 40), 7.0))
    inspect(flat)
    json.dumps(denoise(flat, tmp_path / "run2"), allow_nan=False)


@pytest.mark.parametrize("ending", ["png", "tif", "fits", "npy", "webp"])
def test_what_unpacks_to_too_much_is_refused_before_it_is(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"zeros.{ending}"
    write_image(path, np.zeros((400, 500), np.uint8))
    with limit_decoded_size(200_000 if ending != "webp" else 600_000):
        read_images(path)
    with pytest.raises(FileError, match=r"more than the 0 MB of pixels"):
        tasks.inspect_file(path, tmp_path, 199_999, reporter())
    place = {"at": (), "visible": None, "info": inspect(path)["info"], "frames": []}
    place["view"] = tmp_path / VIEW
    with pytest.raises(FileError, match=r"more than the 0 MB of pixels"):
        tasks.denoise(path, place, tmp_path, Settings().as_json(), 1, 199_999, reporter())


def test_methods_that_found_no_noise_are_named(tmp_path: Path) -> None:
    path, folder = tmp_path / "coarse.png", tmp_path / "run"
    noise = np.random.default_rng(7).standard_normal((128, 128))
    smooth = scipy.ndimage.gaussian_filter(noise, 1.2)
    write_image(path, np.rint(120 + 6 * smooth / smooth.std()).astype(np.uint8))
    inspect(path)
    folder.mkdir()
    names = ["denoise", "nlm"]
    asked = Settings.of({"quality": "preview"}).as_json()
    details = tasks.compare(tmp_path, None, names, (), folder, asked, 1, LIMIT, reporter())
    assert details["panels"][1]["removed"] == 0
    (doubt,) = (each for each in details["warnings"] if "Non-local means" in each["text"])
    assert doubt["text"].startswith("Non-local means knows white noise only, found none")
    assert "--" not in doubt["text"]
    assert doubt["try"] == ["white"]


def test_the_part_that_is_on_the_screen() -> None:
    assert visible_part(None, (400, 400)) is None  # small: at once
    assert visible_part((0, 0, 3000, 2000), (2000, 3000)) == (1276, 776, 448, 448)
    assert visible_part((2700, 0, 300, 200), (2000, 3000)) == (2700, 0, 300, 200)
    for nonsense in ((0, 0, 0, 0), (10**9, 10**9, 5, 5), (1, 2), (0, 0, 10**9, 1)):
        found = visible_part(nonsense, (2000, 3000))
        assert found is not None
        x, y, width, height = found
        assert np.zeros((2000, 3000))[y : y + height, x : x + width].shape == (height, width)


def test_no_name_of_a_file_is_one_of_ours(tmp_path: Path) -> None:
    """A picture may be called as the files beside it are."""
    for name in ("view.npy", "result-0.npy"):
        path = tmp_path / name
        pixels = np.clip(rng.normal(100, 20, (40, 40)), 0, 255).astype(np.uint8)
        np.save(path, pixels)
        inspect(path)
        denoise(path, tmp_path / f"run-{path.stem}")
        np.testing.assert_array_equal(np.load(path), pixels)


def test_black_and_white_are_those_of_all_slices(tmp_path: Path) -> None:
    path = tmp_path / "series.tif"
    write_image(path, (np.arange(5.0)[:, None, None] * 100 + np.zeros((5, 32, 32))).astype("f4"))
    assert inspect(path)["info"]["ranges"]["all"] == [0.0, 400.0]
