"""A file is denoised: the part on the screen first, then all of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest
import tifffile
from typer.testing import CliRunner

from symsmooth import cli
from symsmooth.app import job
from symsmooth.io import formats, read_image, write_image
from symsmooth.web import bridge, tasks
from symsmooth.web.sessions import VIEW
from symsmooth.web.tasks import PART
from symsmooth.web.worker import Reporter

from ..serving import asked, reporter

LIMIT = 10**7
rng = np.random.default_rng(0)


def denoise_visible(path: Path, into: Path, visible: Any, **settings: Any) -> list[Any]:
    """What is reported while a picture is denoised."""
    messages: list[Any] = []
    watching = Reporter(1, lambda number, *message: messages.append(message), set())
    into.mkdir()
    found = tasks.inspect_file(path, path.parent, LIMIT, reporter())
    at = tuple(found["info"]["middle"])
    view = {"view": path.parent / VIEW, "frames": []}
    place = {"at": at, "visible": visible, "info": found["info"], **view}
    tasks.denoise(path, place, into, asked(**settings), 1, LIMIT, watching)
    return messages


@pytest.mark.parametrize("channels", [1, 3])
def test_what_is_on_the_screen_is_done_first(tmp_path: Path, channels: int) -> None:
    path, into = tmp_path / "a.png", tmp_path / "run"
    shape = (300, 300, 3) if channels == 3 else (300, 300)
    write_image(path, np.clip(rng.normal(120, 20, shape), 0, 255).astype(np.uint8))
    messages = denoise_visible(path, into, (40, 50, 90, 80))
    (part,) = [message[1] for message in messages if message[0] == "part"]
    assert part == {"box": [40, 50, 90, 80], "at": (), "panel": PART}
    done = np.load(into / f"result-{PART}.npy")
    assert done.shape[:2] == (80, 90)
    whole = np.load(into / "result-0.npy")[50:130, 40:130].astype(float)
    assert np.abs(done - whole).mean() < 4  # it is much like what comes after
    fractions = [message[1] for message in messages if message[0] == "progress"]
    assert fractions == sorted(fractions)


def test_of_a_large_picture_all_that_is_on_the_screen_has_a_preview(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "_LARGE", 700 * 600)
    path, seen = tmp_path / "a.png", []
    pixels = np.tile(rng.normal(120, 20, (350, 325)), (2, 2))
    write_image(path, np.clip(pixels, 0, 255).astype(np.uint8))
    real = bridge.denoise_pixels

    def denoise_pixels(job: Any, model: Any, part: Any, *rest: Any) -> Any:
        seen.append((job.options["quality"], part.shape, model))
        return real(job, model, part, *rest)

    monkeypatch.setattr(bridge, "denoise_pixels", denoise_pixels)
    messages = denoise_visible(path, tmp_path / "run", (10, 20, 500, 480), quality="fast")
    (part,) = [message[1] for message in messages if message[0] == "part"]
    assert part["box"] == [10, 20, 500, 480]  # wider than the part of a small picture
    ((quality, shape, model),) = seen
    assert (quality, shape) == ("preview", (480, 500))
    found, *_ = bridge.noise_of_file(read_image(path))
    assert model == found  # the noise of the whole, not that of the part


def test_volumes_and_small_pictures_are_done_at_once(tmp_path: Path) -> None:
    small = tmp_path / "small.npy"
    np.save(small, rng.normal(100, 20, (48, 48)))
    messages = denoise_visible(small, tmp_path / "run", (0, 0, 48, 48))
    assert not [message for message in messages if message[0] == "part"]
    volume = tmp_path / "volume.tif"
    stack = rng.normal(100, 20, (4, 48, 48)).astype("f4")
    tifffile.imwrite(volume, stack, imagej=True, metadata={"axes": "ZYX"})
    messages = denoise_visible(volume, tmp_path / "run2", (0, 0, 16, 16))
    assert not [message for message in messages if message[0] == "part"]


@pytest.mark.parametrize("ending", ["png", "jpg", "tif"])
def test_a_run_reads_its_file_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    """Noise, first look, result and numbers come of one reading; the result is read to be shown."""
    path, read = tmp_path / f"a.{ending}", []
    write_image(path, np.clip(rng.normal(120, 20, (300, 300)), 0, 255).astype(np.uint8))
    info = tasks.inspect_file(path, tmp_path, LIMIT, reporter())["info"]
    (tmp_path / "run").mkdir()
    real = formats.read_opened
    for module in (formats, job):
        monkeypatch.setattr(module, "read_opened", lambda f: read.append(f.path.name) or real(f))
    view = {"view": tmp_path / VIEW, "frames": []}
    place = {"at": (), "visible": (0, 0, 90, 90), "info": info, **view}
    tasks.denoise(path, place, tmp_path / "run", asked(), 1, LIMIT, reporter())
    assert read == [f"a.{ending}", f"a-denoised.{ending}"]


def test_a_grey_picture_in_false_colours_is_what_the_command_line_makes_of_it(
    tmp_path: Path,
) -> None:
    """The noise is found in the grey values, so nothing may be found in the colours before."""
    path = tmp_path / "painted.png"
    colours = np.rint(255 * matplotlib.colormaps["hot"](np.arange(256))[:, :3]).astype(np.uint8)
    wave = 120 + 60 * np.sin(np.arange(96) / 9) * np.ones((96, 1))
    write_image(path, colours[np.clip(wave + rng.normal(0, 20, (96, 96)), 0, 255).astype(int)])
    denoise_visible(path, tmp_path / "run", (0, 0, 40, 40))
    out = tmp_path / "out.png"
    options = ["--quality", "preview"]
    told = CliRunner().invoke(cli.app, ["denoise", str(path), "-o", str(out), *options])
    assert "grey in false colours" in told.output
    assert out.read_bytes() == (tmp_path / "run" / "painted-denoised.png").read_bytes()


def test_a_packed_volume_keeps_both_of_its_endings(tmp_path: Path) -> None:
    pytest.importorskip("nibabel")
    path = tmp_path / "head.nii.gz"
    write_image(path, rng.normal(100, 20, (3, 32, 32)).astype("f4"))
    denoise_visible(path, tmp_path / "run", None)
    assert read_image(tmp_path / "run" / "head-denoised.nii.gz").format == "NIFTI.GZ"


def test_the_first_look_is_on_the_side_of_the_result(enter: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    write_image(path, np.clip(rng.normal(120, 20, (900, 900)), 0, 255).astype(np.uint8)[:700])
    visitor = enter()
    page = visitor.page
    visitor.dropped(path)
    page.locator("#method").select_option("epll")  # takes long enough to be looked at
    page.locator("#go").click()
    page.locator("img.part").wait_for(state="attached")
    left = "getComputedStyle(document.querySelector('img.part').closest('.clip')).clipPath"
    assert (
        page.evaluate(left) == "none"
    )  # the noisy half is cut off at the divider, the other is not
    page.locator("#cancel").click()
    visitor.reads("Stopped")
