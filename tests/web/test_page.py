"""The page in a real browser: drop, run, look, compare, take home."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import symsmooth
from symsmooth import cli
from symsmooth.io import read_image, write_image

from ..conftest import audit
from ..serving import Server, wait_for

rng = np.random.default_rng(0)


@pytest.fixture(scope="module")
def tiff(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """16 bits, deflated, with a description and a resolution."""
    import tifffile
    from skimage import data

    clean = data.camera()[80:176, 200:328] * 150.0
    noisy = np.clip(clean + rng.normal(0, 3000, clean.shape) + 9000, 0, 65535)
    path = tmp_path_factory.mktemp("in") / "a <b>${1+1} {{x}} & c.tif"
    more = {"description": "made of light", "resolution": (300, 300), "compression": "zlib"}
    tifffile.imwrite(path, noisy.astype(np.uint16), **more)
    return path


def test_drop_run_divide_and_take_home_a_16_bit_tiff(
    enter: Any, tiff: Path, tmp_path: Path
) -> None:
    visitor = enter()
    page = visitor.page
    visitor.shot("empty")
    visitor.dropped(tiff)
    noisy = read_image(tiff)
    level = symsmooth.estimate_noise(noisy.pixels).words(noisy.pixels).level
    assert f"noise, about {level:.3g} of 65535" in page.locator(".found").inner_text()
    visitor.shot("dropped")
    visitor.choose("quality", "Preview")
    visitor.run()
    assert visitor.labels() == ["Noisy", "Denoised, preview quality"]
    visitor.shot("done")

    lens = page.locator(".lens").bounding_box()
    middle = lens["y"] + lens["height"] / 2
    page.mouse.move(lens["x"] + lens["width"] / 2, middle)
    page.mouse.down()
    page.mouse.move(lens["x"] + lens["width"] / 4, middle, steps=4)
    page.mouse.up()
    divider = page.locator(".divider")
    assert int(divider.get_attribute("aria-valuenow")) == pytest.approx(25, abs=1)
    divider.press("ArrowRight")
    assert int(divider.get_attribute("aria-valuenow")) == pytest.approx(27, abs=1)

    with page.expect_download() as waiting:
        page.locator("#download").click()
    taken = tmp_path / "taken.tif"
    waiting.value.save_as(taken)
    assert waiting.value.suggested_filename.endswith("-denoised.tif")
    again = read_image(taken)
    expected = symsmooth.denoise(noisy.pixels, quality="preview", rng=0)
    assert again.pixels.dtype == np.uint16
    np.testing.assert_array_equal(again.pixels, expected)
    import tifffile

    with tifffile.TiffFile(taken) as opened:
        tags = opened.pages[0].tags
        assert tags["ImageDescription"].value == "made of light"
        assert tags["XResolution"].value == (300, 1)
        assert opened.pages[0].compression == 8
    made = tmp_path / "cli.tif"
    CliRunner().invoke(cli.app, ["denoise", str(tiff), "-o", str(made), "--quality", "preview"])
    assert made.read_bytes() == taken.read_bytes()

    with page.expect_download() as waiting:
        page.locator("#report").click()
    report = Path(waiting.value.path()).read_text("utf-8")
    assert report.startswith("<!doctype html>")
    assert "{{x}}" not in report or "a _b" in report


def test_zoom_is_linked_and_kept(enter: Any, tmp_path: Path) -> None:
    path = tmp_path / "large.png"
    write_image(path, rng.integers(0, 255, (300, 420), np.uint8))
    visitor = enter()
    page = visitor.page
    visitor.dropped(path)
    visitor.choose("quality", "Preview")
    visitor.run()
    page.locator("[data-mode=side]").click()
    visitor.drawn()
    lens = page.locator(".lens").first
    lens.focus()
    for _ in range(3):
        page.keyboard.press("+")
    page.keyboard.press("ArrowRight")
    placed = "[...document.querySelectorAll('.world')].map(w => w.style.transform)"
    before = page.evaluate(placed)
    assert len(before) == 2
    assert before[0] == before[1]  # both look at the same place
    box = lens.bounding_box()
    page.mouse.move(box["x"] + 50, box["y"] + 50)
    page.mouse.wheel(0, -120)
    after = page.evaluate(placed)
    assert after[0] == after[1] != before[0]
    page.locator("#strength").press("ArrowRight")  # runs again, the place is kept
    visitor.reads("Done in")
    wait_for(lambda: page.locator("#strength").input_value() == "1.05")
    visitor.until("!document.querySelector('#status progress')")
    visitor.drawn()
    assert page.evaluate(placed) == after
    page.keyboard.press("Escape")
    page.locator("[data-do=fit]").click()
    assert page.evaluate("document.querySelector('#lenses').classList.contains('zoomed')") is False


def test_cancel_really_stops(enter: Any, server: Server, tmp_path: Path) -> None:
    path = tmp_path / "large.png"
    write_image(
        path, np.clip(rng.normal(100, 20, (1600, 2000)), 0, 255).astype(np.uint8) // 64 * 64
    )
    assert path.stat().st_size < 2**20  # as large as this server takes
    visitor, other = enter(), enter()
    for each in (visitor, other):
        each.dropped(path)
    visitor.choose("quality", "Best")
    visitor.page.locator("#go").click()
    visitor.page.locator("#status progress[value]").wait_for()
    other.choose("quality", "Preview")
    other.page.locator("#go").click()
    other.reads("Waiting: 1 run before yours")
    other.shot("waiting")
    visitor.shot("running")
    visitor.page.locator("#cancel").click()
    visitor.reads("Stopped after")
    other.page.locator("#status progress[value]").wait_for()  # the next one has its turn
    other.page.locator("#cancel").click()
    other.reads("Stopped after")
    worked, start = server.seconds_of_work(), time.monotonic()
    time.sleep(1)
    assert server.seconds_of_work() - worked < 0.5 * (time.monotonic() - start)
    assert visitor.page.locator("#cancel").count() == 0


def test_files_that_are_too_large_or_broken(enter: Any, tmp_path: Path, photograph: Path) -> None:
    visitor = enter()
    page = visitor.page
    large, broken = tmp_path / "large.npy", tmp_path / "broken.png"
    np.save(large, np.zeros((400, 400)))  # 1.28 MB
    broken.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    visitor.drop(large)
    visitor.reads("large.npy is larger than the 1 MB allowed here.")
    visitor.shot("too-large")
    visitor.dropped(photograph)
    visitor.choose("quality", "Preview")
    visitor.run()
    visitor.drop(broken)
    text = visitor.reads("cannot be read")
    assert "/" not in text  # no places on the server
    assert not page.locator("#viewer").is_visible()  # no result of another picture stands there
    assert page.locator("#go").is_disabled()
    assert page.locator("#download").count() == 0
    assert not page.locator("#panel").is_visible()  # there is nothing to set
    visitor.shot("broken")
    assert audit(page) == []
    page.get_by_label("Remove broken.png").click()
    visitor.reads("Done in")


def test_methods_side_by_side_with_a_reference(enter: Any, tmp_path: Path) -> None:
    visitor = enter()
    page = visitor.page
    page.get_by_role("button", name="Photograph, 8 bit", exact=True).click()
    visitor.reads("Ready")
    visitor.choose("quality", "Preview")
    visitor.choose("mode", "Compare")
    group = page.locator("#methods")
    group.get_by_label("BM3D").uncheck()
    assert page.locator("#go").is_disabled()  # one method is no comparison
    group.get_by_label("Bilateral").check()
    visitor.run("Compared 2 methods")
    numbers = page.locator("#numbers").inner_text()
    assert "PSNR, dB" in numbers
    assert "SSIM" in numbers
    page.locator("[data-mode=side]").click()
    visitor.drawn()
    assert [label.partition(" ·")[0] for label in visitor.labels()] == [
        "Noisy", "Automatic, preview quality", "Bilateral", "Clean",
    ]  # fmt: skip
    visitor.shot("compared")
    page.locator("[data-mode=removed]").click()
    assert len(visitor.labels()) == 2
    page.locator("[data-mode=divider]").click()
    page.get_by_label("Right").select_option("Clean")
    assert visitor.labels()[1] == "Clean"
    write_image(tmp_path / "small.png", np.zeros((9, 9), np.uint8))
    page.locator("#clean-picker").set_input_files(tmp_path / "small.png")
    page.locator("#clean .bad", has_text="small.png: is 9 x 9").wait_for()
    assert audit(page) == []


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_any_screen_by_keyboard_and_for_everybody(
    enter: Any, tiff: Path, width: int, scheme: str
) -> None:
    visitor = enter(viewport={"width": width, "height": 800}, color_scheme=scheme)
    page = visitor.page
    assert audit(page) == []
    visitor.dropped(tiff)
    visitor.choose("quality", "Preview")
    reached = "document.activeElement.id"
    page.locator(".lens").first.focus()
    for _ in range(14):
        page.keyboard.press("Tab")
        if page.evaluate(reached) == "go":
            break
    assert page.evaluate(reached) == "go"
    assert page.locator("#go").evaluate("e => getComputedStyle(e).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    visitor.reads("Done in")
    visitor.drawn()
    page.locator("#why summary").click()
    page.wait_for_timeout(200)
    assert audit(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(15, 19, 25)") == (scheme == "dark")
    visitor.shot(f"{scheme}-{width}")


def test_a_finished_photograph_is_seen_at_one_to_one(enter: Any, tmp_path: Path) -> None:
    """It is fitted until then; whoever fits it again has it fitted from then on."""
    path = tmp_path / "large.png"
    write_image(path, rng.integers(100, 104, (900, 1200), np.uint8))
    visitor = enter()
    page = visitor.page
    visitor.dropped(path)
    visitor.choose("quality", "Preview")

    def scale() -> int:
        return int(page.locator("#scale").inner_text().removesuffix(" %"))

    assert scale() < 100
    visitor.run()
    assert scale() == 100
    page.locator("[data-do=fit]").click()
    fitted = scale()
    assert fitted < 100
    visitor.run()
    assert scale() == fitted
