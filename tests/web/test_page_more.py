"""The page in a real browser: stacks, channels, kinds of noise, several pictures, reload, back, phones."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from symsmooth import cli
from symsmooth.io import read_image, write_image
from symsmooth_repro.sensor import Sensor

from ..conftest import audit
from ..dngs import dng
from ..serving import wait_for

rng = np.random.default_rng(0)


def first_image(page: Any) -> str:
    return str(page.locator("#lenses .base").first.get_attribute("src"))


@pytest.fixture(scope="module")
def series(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three frames of two channels, as ImageJ writes them; each of its own brightness."""
    import tifffile

    pixels = rng.normal(100, 8, (3, 2, 48, 64)) + 40 * np.arange(3)[:, None, None, None]
    path = tmp_path_factory.mktemp("in") / "series.tif"
    tifffile.imwrite(path, pixels.astype(np.uint16), imagej=True, metadata={"axes": "TCYX"})
    return path


def test_slices_and_channels_of_a_series(enter: Any, series: Path, tmp_path: Path) -> None:
    visitor = enter()
    page = visitor.page
    visitor.dropped(series)
    slider = page.get_by_label("Time, 3 frames")
    assert page.locator(".slice output").inner_text() == "2 of 3"  # the middle one
    assert "time 3, 2 channels" in page.locator(".found").inner_text()
    before = first_image(page)
    slider.focus()
    page.keyboard.press("ArrowRight")
    wait_for(lambda: first_image(page) != before)
    assert page.locator(".slice output").inner_text() == "3 of 3"
    assert "at=2" in first_image(page)
    page.locator("#channel").select_option("channel 2, magenta")
    assert "channel=1" in first_image(page)
    visitor.drawn()
    visitor.choose("quality", "Preview")
    visitor.choose("third", "Series")
    visitor.run()
    views = [url for url in visitor.opened.requests if "/view" in url and "panel=99" not in url]
    assert all("at=2" in url for url in views[-2:])  # the first look has a place of its own
    visitor.shot("series")
    assert audit(page) == []
    with page.expect_download() as waiting:
        page.locator("#download").click()
    made = tmp_path / "made.tif"
    options = ["--quality", "preview", "--time"]
    CliRunner().invoke(cli.app, ["denoise", str(series), "-o", str(made), *options])
    assert made.read_bytes() == Path(waiting.value.path()).read_bytes()
    assert read_image(made).pixels.shape == (3, 2, 48, 64)


def test_noise_of_a_box_that_is_drawn(enter: Any, tmp_path: Path) -> None:
    path = tmp_path / "ground.png"
    pixels = np.clip(rng.normal(128, 12, (96, 96)), 0, 255)
    pixels[32:64, 32:64] += 60
    write_image(path, np.clip(pixels, 0, 255).astype(np.uint8))
    visitor = enter()
    page = visitor.page
    visitor.dropped(path)
    visitor.choose("quality", "Preview")
    visitor.choose("noise", "Measured")
    assert page.locator("#go").is_disabled()  # there is no box yet
    page.locator("#mark").click()
    lens = page.locator(".lens").bounding_box()
    side = min(lens["width"], lens["height"])
    left, top = lens["x"] + (lens["width"] - side) / 2, lens["y"] + (lens["height"] - side) / 2
    page.mouse.move(left + 0.02 * side, top + 0.02 * side)
    page.mouse.down()
    page.mouse.move(left + 0.98 * side, top + 0.3 * side, steps=4)
    page.mouse.up()
    x, y, width, height = (
        int(page.locator(f"#box-{name}").input_value()) for name in ("x", "y", "width", "height")
    )
    assert (x, y) == (pytest.approx(2, abs=1), pytest.approx(2, abs=1))
    assert (width, height) == (pytest.approx(92, abs=2), pytest.approx(27, abs=2))
    assert page.locator(".box").is_visible()
    visitor.shot("box")
    assert audit(page) == []
    visitor.run()
    page.locator("#why summary").click()
    assert "measured on the ground you gave" in page.locator("#why").inner_text()
    assert page.locator("#why svg").count() == 2  # level against brightness, spectrum
    with page.expect_download() as waiting:
        page.locator("#download").click()
    made = tmp_path / "made.png"
    options = ["--quality", "preview", "--noise-from", f"{x},{y},{width},{height}"]
    CliRunner().invoke(cli.app, ["denoise", str(path), "-o", str(made), *options])
    assert made.read_bytes() == Path(waiting.value.path()).read_bytes()
    page.locator("#box-width").fill("8")
    page.locator("#box-width").press("Tab")
    assert page.locator("#go").is_disabled()
    assert "Too small" in page.locator("#panel").inner_text()


def test_colour_strength_and_grain_are_those_of_the_command_line(
    enter: Any, tmp_path: Path
) -> None:
    path, made = tmp_path / "colour.png", tmp_path / "made.png"
    write_image(path, rng.normal(120, 15, (64, 72, 3)).clip(0, 255).astype(np.uint8))
    visitor = enter()
    page = visitor.page
    visitor.dropped(path)
    visitor.choose("quality", "Preview")
    page.locator("#taste summary").click()
    assert "as strength" in page.locator("#taste").inner_text()
    page.locator("#chroma-strength").press("End")
    page.locator("#grain").press("ArrowRight")
    assert "3.00" in page.locator("#taste").inner_text()
    visitor.shot("taste")
    visitor.run()
    with page.expect_download() as waiting:
        page.locator("#download").click()
    options = ["--quality", "preview", "--chroma-strength", "3", "--grain", "0.05"]
    CliRunner().invoke(cli.app, ["denoise", str(path), "-o", str(made), *options])
    assert made.read_bytes() == Path(waiting.value.path()).read_bytes()
    page.locator("#taste button").click()
    assert page.locator("#grain").input_value() == "0"


def test_a_raw_file_is_denoised_as_a_mosaic(enter: Any, tmp_path: Path) -> None:
    sensor = Sensor(peak=300)
    scene = np.tile(np.linspace(0.05, 0.6, 128)[:, None], (96, 1, 3)).copy()
    path = tmp_path / "shot.dng"
    path.write_bytes(dng(sensor.expose(scene)[0], sensor))
    visitor = enter()
    page = visitor.page
    visitor.dropped(path)
    assert "raw mosaic RGGB" in page.locator(".found").inner_text()
    assert "before it is developed" in page.locator("#mosaic").inner_text()
    for nothing_to_choose in ("#mode", "#method", "#chroma-strength"):
        assert not page.locator(nothing_to_choose).is_visible()
    kinds = page.locator("#noise input:enabled").all()
    assert [kind.input_value() for kind in kinds] == ["auto", "file"]  # its sensor's law
    assert page.locator("#channel option").all_inner_texts() == ["colour", "red", "green", "blue"]
    visitor.choose("quality", "Preview")
    visitor.run()
    visitor.shot("raw")
    assert audit(page) == []
    page.locator("[data-mode=removed]").click()
    visitor.drawn()
    with page.expect_download() as waiting:
        page.locator("#download").click()
    assert waiting.value.suggested_filename == "shot-denoised.dng"
    made = tmp_path / "made.dng"
    options = ["--quality", "preview"]
    CliRunner().invoke(cli.app, ["denoise", str(path), "-o", str(made), *options])
    assert made.read_bytes() == Path(waiting.value.path()).read_bytes()
    with page.expect_download() as waiting:
        page.locator("#developed").click()
    assert waiting.value.suggested_filename == "shot-denoised.tif"
    made = tmp_path / "made.tif"
    CliRunner().invoke(cli.app, ["denoise", str(path), "-o", str(made), *options])
    seen = read_image(Path(waiting.value.path())).pixels
    np.testing.assert_array_equal(seen, read_image(made).pixels)
    with page.expect_download() as waiting:
        page.locator("#report").click()
    assert "raw mosaic RGGB" in Path(waiting.value.path()).read_text("utf-8")


def test_magnitudes_of_a_scanner(enter: Any, tmp_path: Path) -> None:
    import nibabel

    pixels = np.hypot(rng.normal(0, 9, (48, 40, 3)), rng.normal(0, 9, (48, 40, 3)))
    pixels[10:40, 10:30] += 90
    path, made = tmp_path / "head.nii.gz", tmp_path / "made.nii.gz"
    nibabel.save(nibabel.Nifti1Image(pixels.astype(np.float32), np.eye(4)), path)
    visitor = enter()
    page = visitor.page
    visitor.dropped(path)
    assert "NIfTI, 48 × 40 pixels, depth 3" in page.locator(".found").inner_text()
    visitor.choose("quality", "Preview")
    visitor.choose("noise", "Rician")
    visitor.run()
    assert "Rician noise" in page.locator(".found").inner_text()
    with page.expect_download() as waiting:
        page.locator("#download").click()
    assert waiting.value.suggested_filename == "head-denoised.nii.gz"
    options = ["--quality", "preview", "--noise", "rician"]
    CliRunner().invoke(cli.app, ["denoise", str(path), "-o", str(made), *options])
    np.testing.assert_array_equal(
        read_image(made).pixels, read_image(Path(waiting.value.path())).pixels
    )


def test_what_can_be_chosen_follows_the_method(
    enter: Any, photograph: Path, tmp_path: Path
) -> None:
    visitor = enter()
    page = visitor.page
    visitor.dropped(photograph)
    visitor.choose("noise", "Coarse")
    page.locator("#method").select_option("Bilateral")
    assert page.get_by_role("radio", name="Auto").is_checked()  # it knows white noise only
    assert page.get_by_role("radio", name="Coarse").is_disabled()
    assert not page.locator("#quality").is_visible()
    visitor.choose("noise", "White")
    page.locator("#level").fill("12.5")
    page.locator("#level").press("Tab")
    visitor.run()
    assert "12.5 of 255 (given)" in page.locator(".found").inner_text()
    with page.expect_download() as waiting:
        page.locator("#download").click()
    made = tmp_path / "made.png"
    options = ["--method", "bilateral", "--sigma", "12.5"]
    CliRunner().invoke(cli.app, ["denoise", str(photograph), "-o", str(made), *options])
    assert made.read_bytes() == Path(waiting.value.path()).read_bytes()


def test_almost_nothing_removed_is_said_with_a_remedy(enter: Any, tmp_path: Path) -> None:
    path = tmp_path / "smooth.npy"
    y, x = np.mgrid[:64, :64]
    np.save(path, np.hypot(y - 20.0, x - 30.0).astype(np.float32))
    visitor = enter()
    visitor.dropped(path)
    visitor.choose("quality", "Preview")
    visitor.run()
    text = visitor.reads("Almost nothing was removed")
    assert "--" not in text  # no words of the command line
    visitor.shot("nothing")
    assert audit(visitor.page) == []
    remedy = visitor.page.locator(".doubt button").first
    kind = {"Measure it": "Measured"}.get(
        remedy.inner_text(), remedy.inner_text().removeprefix("Choose ")
    )
    remedy.click()
    assert visitor.page.get_by_role("radio", name=kind).is_checked()


def test_a_result_survives_reload_and_back(enter: Any, photograph: Path) -> None:
    visitor = enter()
    page = visitor.page
    visitor.dropped(photograph)
    visitor.choose("quality", "Preview")
    visitor.run()
    address = page.url
    assert "/session/" in address
    page.reload()
    page.wait_for_selector("[data-ready]")
    visitor.reads("Done in")
    visitor.drawn()
    assert visitor.labels() == ["Noisy", "Denoised, preview quality"]
    assert page.get_by_role("radio", name="Preview").is_checked()  # as it was run
    page.go_back()
    page.locator("#start").wait_for()
    assert page.url == visitor.server.address
    assert not page.locator("#viewer").is_visible()
    page.go_forward()
    visitor.reads("Done in")
    assert page.url == address
    page.goto("about:blank")
    page.go_back()
    visitor.reads("Done in")
    page.locator("#leave").click()
    assert page.locator("#leave").inner_text() == "Really delete?"
    page.locator("#leave").click()
    page.locator("#start").wait_for()
    token = address.partition("/session/")[2].partition("#")[0]
    assert visitor.server.files(f"{token}") == []


def test_a_run_goes_on_while_the_page_is_reloaded(enter: Any, photograph: Path) -> None:
    visitor = enter()
    visitor.dropped(photograph)
    visitor.choose("quality", "Best")
    visitor.page.locator("#go").click()
    visitor.page.locator("#status progress").wait_for()
    visitor.page.reload()
    visitor.reads("Done in")


def test_several_pictures_at_once(enter: Any, tmp_path: Path) -> None:
    paths = [tmp_path / f"{name}.png" for name in ("one", "two", "three")]
    for path in paths:
        write_image(path, np.clip(rng.normal(128, 20, (64, 64)), 0, 255).astype(np.uint8))
    visitor = enter()
    page = visitor.page
    visitor.drop(*paths)
    page.locator("#files h2", has_text="3 pictures").wait_for()
    visitor.reads("Ready")
    visitor.choose("quality", "Preview")
    page.locator("#all").click()
    page.locator("#zip", has_text="3 results").wait_for()
    assert page.locator("#files .state").all_inner_texts() != []
    visitor.shot("several")
    assert audit(page) == []
    with page.expect_download() as waiting:
        page.locator("#zip").click()
    with zipfile.ZipFile(waiting.value.path()) as packed:
        assert sorted(packed.namelist()) == [f"{p.stem}-denoised.png" for p in sorted(paths)]
        for path in paths:
            made = tmp_path / "made.png"
            options = ["--quality", "preview", "--overwrite"]
            CliRunner().invoke(cli.app, ["denoise", str(path), "-o", str(made), *options])
            assert packed.read(f"{path.stem}-denoised.png") == made.read_bytes()
    page.get_by_role("button", name="one.png", exact=True).click()
    assert page.locator("#panel h2").inner_text() == "one.png"
    page.get_by_label("Remove one.png").click()
    page.locator("#files h2", has_text="2 pictures").wait_for()


def pinch(visitor: Any, x: float, y: float) -> None:
    """Part two fingers."""
    fingers = visitor.opened.context.new_cdp_session(visitor.page)
    for apart in (20, 40, 60, 80):
        kind = "touchStart" if apart == 20 else "touchMove"
        points = [{"x": x - apart, "y": y, "id": 0}, {"x": x + apart, "y": y, "id": 1}]
        fingers.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    fingers.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


def test_on_a_phone_the_picture_comes_first(enter: Any, photograph: Path) -> None:
    visitor = enter(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    page = visitor.page
    visitor.dropped(photograph)
    lens, panel = (page.locator(name).bounding_box() for name in (".lens", "#panel"))
    assert lens["y"] < 200
    assert lens["width"] > 350
    assert panel["y"] >= lens["y"] + lens["height"]
    go = page.locator("#go").bounding_box()
    assert go["y"] + go["height"] <= 844  # in reach without scrolling
    assert go["height"] >= 40
    visitor.choose("quality", "Preview")
    page.locator("#go").tap()
    visitor.reads("Done in")
    visitor.drawn()
    assert page.evaluate("scrollY") == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    visitor.shot("phone")
    zoomed = "document.querySelector('#lenses').classList.contains('zoomed')"
    page.locator("[data-do=in]").tap()
    assert page.evaluate(zoomed)
    page.locator("[data-do=fit]").tap()
    assert not page.evaluate(zoomed)
    pinch(visitor, lens["x"] + lens["width"] / 4, lens["y"] + 60)  # not on the divider
    assert page.evaluate(zoomed)


def test_tabs_of_sessions_that_ended_say_so(enter: Any, photograph: Path) -> None:
    visitor = enter()
    page = visitor.page
    visitor.dropped(photograph)
    token = page.url.partition("/session/")[2].partition("#")[0]
    headers = {"Origin": visitor.server.address.rstrip("/")}
    url = f"{visitor.server.address}api/sessions/{token}"
    assert visitor.opened.context.request.delete(url, headers=headers).status == 200
    visitor.reads("This session has ended")
    assert page.locator("#start").is_visible()
    assert page.url == visitor.server.address
