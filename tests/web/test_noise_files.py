"""Noise models as files on the page: opened, used, saved, and refused in one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import symsmooth
from symsmooth import cli
from symsmooth.io import write_image
from symsmooth.noise import PoissonGaussian, White
from symsmooth.web import tasks
from symsmooth.web.sessions import NOISE, VIEW
from symsmooth_repro.sensor import Sensor

from ..conftest import audit
from ..dngs import dng
from ..serving import asked, reporter

LIMIT = 10**7
rng = np.random.default_rng(0)


def photons(path: Path) -> Path:
    clean = np.tile(np.linspace(20, 200, 72), (64, 1))
    write_image(path, np.clip(rng.poisson(clean / 3) * 3, 0, 255).astype(np.uint8))
    return path


def camera(path: Path) -> Path:
    symsmooth.save_noise(PoissonGaussian(gain=(3.0,), offset=(0.0,)), path)
    return path


def cli_makes(*words: str | Path) -> None:
    result = CliRunner().invoke(cli.app, [*map(str, words)])
    assert result.exit_code == 0, result.stderr


def open_noise(person: Any, content: bytes, name: str = "camera.json") -> tuple[int, Any]:
    return person.upload(name, content, **{"X-Noise": "yes"})


def test_a_model_is_opened_used_and_saved_again(come: Any, tmp_path: Path) -> None:
    person = come()
    path, model = photons(tmp_path / "a.png"), camera(tmp_path / "camera.json")
    picture = person.drop("a.png", path.read_bytes())
    status, answer = open_noise(person, model.read_bytes())
    assert status == 200, answer
    (opened,) = person.state()["models"]
    assert (opened["id"], opened["name"]) == (answer["model"], "camera.json")
    done = person.run("denoise", noise="file", model=opened["id"])
    assert done["ended"][0] == "good", done["ended"]
    cli_makes("denoise", path, "-o", tmp_path / "b.png", "--quality", "preview", "--noise", model)
    one = f"{person.here}/{picture['id']}"
    assert person.ask(f"{one}/result")[1] == (tmp_path / "b.png").read_bytes()
    assert person.ask(f"{one}/noise") == (200, model.read_bytes())


def test_what_was_found_can_be_saved(come: Any, tmp_path: Path) -> None:
    person = come()
    path = photons(tmp_path / "a.png")
    picture = person.drop("a.png", path.read_bytes())
    one = f"{person.here}/{picture['id']}"
    assert person.ask(f"{one}/noise")[0] == 404  # there is no result yet
    assert person.run("denoise")["result"]["model"] is True
    status, text = person.ask(f"{one}/noise")
    assert status == 200
    cli_makes("noise", path, "--save", tmp_path / "kept.json")
    assert text == (tmp_path / "kept.json").read_bytes()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"\x00\xff\x80", "camera.json: is no noise model: it is no text."),
        (b"{}", 'camera.json: is no noise model: it does not say "format": "symsmooth noise".'),
        (b"[" * 10_000, "camera.json: is no noise model:"),
    ],
)
def test_what_is_no_model_is_refused_in_one_line(come: Any, content: bytes, says: str) -> None:
    person = come()
    picture = person.drop("a.png", photons_bytes())
    status, answer = open_noise(person, content)
    assert (status, answer["error"].startswith(says)) == (422, True), answer
    assert "\n" not in answer["error"]
    assert person.state()["models"] == []
    assert not person.server.files("*/noise-*")
    for model in (None, "n1", "../../x", 3):
        given = {"pictures": [picture["id"]], "settings": {"noise": "file", "model": model}}
        status, answer = person.post(f"{person.here}/denoise", given)
        assert (status, "oise model" in answer["error"]) == (422, True), answer


def photons_bytes() -> bytes:
    import io

    from PIL import Image

    out = io.BytesIO()
    Image.fromarray(rng.poisson(50, (40, 48)).astype(np.uint8)).save(out, "PNG")
    return out.getvalue()


def test_a_model_of_other_units_says_so(come: Any, tmp_path: Path) -> None:
    person = come()
    person.drop("a.png", photons_bytes())
    found = symsmooth.estimate_noise(rng.normal(1000, 30, (64, 64)).astype(np.uint16))
    symsmooth.save_noise(found, tmp_path / "deep.json")
    _, answer = open_noise(person, (tmp_path / "deep.json").read_bytes())
    shown = person.run("denoise", noise="file", model=answer["model"])
    kind, text = shown["ended"]
    assert (kind, "uint16" in text, "\n" in text) == ("bad", True, False)


def test_a_raw_file_takes_the_law_of_its_sensor(tmp_path: Path) -> None:
    sensor = Sensor(peak=300)
    noisy, _ = sensor.expose(np.tile(np.linspace(0.05, 0.6, 96)[:, None], (64, 1, 3)).copy())
    path = tmp_path / "shot.dng"
    path.write_bytes(dng(noisy, sensor))
    cli_makes("noise", path, "--save", tmp_path / "sensor.json")
    info = tasks.inspect_file(path, tmp_path, LIMIT, reporter())["info"]
    assert (tmp_path / NOISE).read_bytes() == (tmp_path / "sensor.json").read_bytes()
    (tmp_path / "run").mkdir()
    settings = {**asked(), "noise": "file", "model": str(tmp_path / "sensor.json")}
    given = {"at": (), "visible": None, "info": info, "view": tmp_path / VIEW, "frames": []}
    made = tasks.denoise(path, given, tmp_path / "run", settings, 1, LIMIT, reporter())
    options = ["--quality", "preview", "--noise", tmp_path / "sensor.json"]
    cli_makes("denoise", path, "-o", tmp_path / "again.dng", *options)
    ours = tmp_path / "run" / made["files"][0]
    assert ours.read_bytes() == (tmp_path / "again.dng").read_bytes()
    assert made["noise"]["level"] == pytest.approx(info["noise"]["level"], rel=1e-6)
    symsmooth.save_noise(White(5.0), tmp_path / "white.json")
    settings["model"] = str(tmp_path / "white.json")
    with pytest.raises(ValueError, match="needs the noise model of a sensor"):
        tasks.denoise(path, given, tmp_path / "run", settings, 1, LIMIT, reporter())


def test_models_are_opened_and_saved_on_the_page(enter: Any, tmp_path: Path) -> None:
    path, model = photons(tmp_path / "a.png"), camera(tmp_path / "camera.json")
    (tmp_path / "other.json").write_text(json.dumps({"format": "something else"}))
    visitor = enter()
    page = visitor.page
    visitor.dropped(path)
    visitor.choose("quality", "Preview")
    visitor.choose("noise", "Saved")
    assert page.locator("#go").is_disabled()  # nothing is opened yet
    page.locator("#noise-picker").set_input_files(tmp_path / "other.json")
    visitor.reads("other.json: is no noise model")
    assert all("422" in text for text in visitor.opened.complaints)
    visitor.opened.complaints.clear()  # it was refused, as it should be
    page.locator("#noise-picker").set_input_files(model)
    page.locator("#model", has_text="camera.json").wait_for()
    visitor.run()
    visitor.shot("noise-model")
    assert audit(page) == []
    with page.expect_download() as waiting:
        page.locator("#save-noise").click()
    assert waiting.value.suggested_filename == "a-noise.json"
    assert Path(waiting.value.path()).read_bytes() == model.read_bytes()
    page.reload()
    page.locator("#model", has_text="camera.json").wait_for()  # it is still what was chosen
