"""``symsmooth compare``: what the page tells, how it is limited, and that it opens anywhere."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.ndimage
from typer.testing import CliRunner

from symsmooth import cli
from symsmooth.app.messages import UsageError
from symsmooth.cli.arguments import parse_methods
from symsmooth.core.metrics import psnr
from symsmooth.io import write_image
from symsmooth.reports.compare import Comparison, Result, compare_page, radial_spectrum
from symsmooth.reports.pictures import Range, busiest, display_range, encode, reduce, reduction

from ..conftest import audit

rng = np.random.default_rng(0)
Run = Callable[..., Any]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(cli.app, [str(a) for a in arguments])


@pytest.fixture
def pictures(tmp_path: Path, camera: np.ndarray) -> tuple[Path, Path]:
    clean = np.rint(255 * camera).astype(np.uint8)[:48]
    noisy = np.clip(np.rint(clean + rng.normal(0, 20, clean.shape)), 0, 255).astype(np.uint8)
    write_image(tmp_path / "clean.png", clean)
    write_image(tmp_path / "in.png", noisy)
    return tmp_path / "in.png", tmp_path / "clean.png"


def made(noisy: np.ndarray, count: int = 2, **given: Any) -> str:
    results = [Result(f"m{n}", noisy, 0.5, "20", {"k": n}) for n in range(count)]
    return compare_page(Comparison("a.png", noisy, 20.0, 255.0, results, **given))


# --- what is asked for ------------------------------------------------------------------------


def parse(text: str) -> Any:
    return parse_methods(text)


def test_methods_with_qualities_and_options() -> None:
    asked = parse("denoise:fast, nlm:sinkhorn-iters=1,gsf")
    assert [a.label for a in asked] == ["denoise:fast", "nlm:sinkhorn-iters=1", "gsf"]
    assert [dict(a.options) for a in asked] == [{"quality": "fast"}, {"sinkhorn_iters": 1}, {}]
    assert [a.method.name for a in parse("")] == ["denoise", "gsf", "bm3d", "nlm"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("magic", "no method 'magic'"),
        ("nlm:fast", "no quality"),
        ("denoise:quick", "quality must be"),
        ("gsf,gsf", "twice"),
        ("gsf,", "empty name"),
        ("nlm:colour=1", "no option colour"),
    ],
)
def test_what_does_not_exist_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=re.escape(complaint)) as caught:
        parse(text)
    assert "\n" not in str(caught.value)


# --- the command ------------------------------------------------------------------------------


def test_the_page_has_numbers_and_the_file_is_whole(run: Run, pictures: Any) -> None:
    noisy, clean = pictures
    given = ("--reference", clean, "--methods", "bilateral,nlm:sinkhorn-iters=1", "--sigma", 20)
    result = run("compare", noisy, *given, "--out", "r.html")
    assert result.exit_code == 0, result.stderr
    assert "the page is r.html" in result.stdout
    text = Path("r.html").read_text("utf-8")
    for part in (
        "PSNR, dB",
        "SSIM",
        "sinkhorn_iters 1",
        "64x48 uint8",
        "white noise, 20 of 255 (given)",
    ):
        assert part in text
    again = run("compare", noisy, *given, "--out", "r.html")
    assert again.exit_code == 2
    assert "r.html exists" in again.stderr
    assert run("compare", noisy, *given, "--out", "r.html", "--overwrite").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (("in.png", "--out", "r.pdf"), 2, "r.pdf: is a web page; name it r.html (-o)"),
        (("in.png", "--out", "report"), 2, "name it report.html"),
        (("in.png", "--out", "in.png/r.html"), 2, "in.png is a file, not a folder"),
        (("in.png", "--out", "r.html", "--slice", "two"), 2, "--slice must be a number"),
        (("in.png", "--out", "r.html", "--slice", "0,1"), 1, "has no slice 0,1"),
        (("gone.png", "--out", "no/r.html"), 1, "no such file"),
        (("in.png", "--out", "."), 2, "is a folder"),
        (("in.png", "--out", "r.html", "--sigma", "-1"), 2, "--sigma must be"),
        (("gone.png", "--out", "r.html"), 1, "no such file"),
        (("in.png", "--out", "r.html", "--slice", "3"), 1, "has no slice 3"),
        (("in.png", "--out", "r.html", "--reference", "small.png"), 1, "has shape"),
        (("in.png", "--out", "r.html", "--methods", "bilateral:h-r=-1"), 1, "h_r"),
    ],
)
def test_errors_are_one_line_and_leave_nothing(
    run: Run, pictures: Any, arguments: tuple[str, ...], code: int, complaint: str
) -> None:
    write_image("small.png", np.zeros((5, 5), np.uint8))
    before = sorted(Path().iterdir())
    result = run("compare", "--methods", "bilateral", *arguments)
    assert result.exit_code == code
    (line,) = result.stderr.splitlines()
    assert complaint in line
    assert sorted(Path().iterdir()) == before


def test_methods_that_found_no_noise_are_told_of(run: Run) -> None:
    """Of noise that is no longer white they find none: the comparison would be of nothing."""
    noise = np.random.default_rng(7).standard_normal((128, 128))
    smooth = scipy.ndimage.gaussian_filter(noise, 1.6)
    write_image("in.png", np.rint(120 + 6 * smooth / smooth.std()).astype(np.uint8))
    result = run("compare", "in.png", "--methods", "denoise:preview,nlm", "--out", "r.html")
    assert result.exit_code == 0, result.stderr
    text = Path("r.html").read_text("utf-8")
    page_says = "nlm knows white noise only, found none and changed nothing" in text.lower()
    assert page_says == ("changed nothing; give its level, such as --sigma" in result.stderr)
    assert page_says


@pytest.mark.parametrize("kind", ["colour", "sixteen", "float", "stack"])
def test_kinds_of_pictures(run: Run, kind: str) -> None:
    base = rng.normal(100, 20, (24, 20))
    pixels = {
        "colour": np.stack([base] * 3, axis=-1).astype(np.uint8),
        "sixteen": (base * 40).astype(np.uint16),
        "float": np.where(base > 150, np.nan, base).astype(np.float32),
        "stack": np.stack([base] * 3).astype(np.float32),
    }[kind]
    name = "in.png" if kind in ("colour", "sixteen") else "in.tif"
    write_image(name, pixels)
    result = run("compare", name, "--methods", "gaussian,bilateral", "--out", "r.html")
    assert result.exit_code == 0, result.stderr
    text = Path("r.html").read_text("utf-8")
    assert ("slice 1 of 3" in text) == (kind == "stack")
    assert ("black is 0, white is 255" in text) == (kind == "colour")


@pytest.mark.parametrize("command", ["compare", "explain"])
def test_slices_are_chosen_and_missing_folders_are_made(run: Run, command: str) -> None:
    import tifffile

    pixels = rng.normal(100, 10, (2, 3, 40, 48)) + 300 * np.arange(6).reshape(2, 3, 1, 1)
    tifffile.imwrite("in.tif", pixels.astype(np.uint16), imagej=True, metadata={"axes": "TZYX"})
    more = ("--methods", "gaussian") if command == "compare" else ("--side", 24)
    for number, (piece, place) in enumerate(
        [("4", "T 1 of 2, Z 1 of 3"), ("0,2", "T 0 of 2, Z 2 of 3"), ("", "T 1 of 2, Z 1 of 3")]
    ):
        out = Path("pages") / "of" / f"{command}-{number}.html"
        chosen = ("--slice", piece) if piece else ()
        result = run(command, "in.tif", *chosen, *more, "--out", out)
        assert result.exit_code == 0, result.stderr
        text = out.read_text("utf-8")
        assert f"slice {place}" in text
        brightness = float(re.search(r"black is ([\d.]+)", text)[1])
        assert brightness // 300 == (2 if piece == "0,2" else 4)  # the slice that was asked for
    outside = run(command, "in.tif", "--slice", "2,0", *more, "--out", "r.html")
    assert outside.exit_code == 1
    assert "has no slice 2,0; it has 2 (T) x 3 (Z), counted from 0" in outside.stderr


# --- numbers -> what is shown -----------------------------------------------------------------


def test_ranges() -> None:
    ramp = np.linspace(0, 4000, 10001).astype(np.uint16)
    shown = display_range(ramp)
    assert (shown.low, shown.high) == pytest.approx((4, 3996), abs=1)
    assert display_range(np.array([np.nan, 2.0])) == Range(2.0, 2.0)
    np.testing.assert_array_equal(Range(0, 2)(np.array([[-1.0, 1.0, np.nan]])), [[0, 0.5, 0]])
    assert Range(0, 1)(np.zeros((4, 5, 2))).shape == (4, 5)
    assert Range(0, 1)(np.zeros((4, 5, 3))).shape == (4, 5, 3)


def test_down_scaling_takes_means() -> None:
    pixels = np.arange(7 * 9.0).reshape(7, 9)
    np.testing.assert_allclose(reduce(pixels, 2), pixels[:6, :8].reshape(3, 2, 4, 2).mean((1, 3)))
    assert reduction(1000, 1000) == 1
    assert reduction(4096, 4096) == 3


def test_the_busiest_part_is_where_things_happen() -> None:
    pixels = np.zeros((90, 120))
    pixels[60:80, 70:100] = rng.random((20, 30))
    y, x = busiest(pixels, 40)
    assert (y.stop - y.start, x.stop - x.start) == (40, 40)
    assert y.start <= 60 <= 80 <= y.stop
    assert x.start <= 70 <= 100 <= x.stop


def test_what_does_not_fit_is_compressed_more_and_said_so() -> None:
    noise = rng.random((64, 64))
    assert encode([noise], [noise])[2] == "compressed without loss"
    for budget in (9000, 6000, 3000):
        pictures, noises, told = encode([noise], [noise], budget)
        assert sum(map(len, pictures + noises)) <= budget
        assert "with loss" in told or "sides divided by 2" in told
    assert "sides divided by" in told


def test_psnr_and_spectrum_of_known_noise() -> None:
    assert psnr(np.full((4, 4), 10.0), np.zeros((4, 4)), 255.0) == pytest.approx(28.13, abs=0.01)
    _, power = radial_spectrum(rng.normal(size=(256, 256)))
    assert np.abs(power[3:] - 1).max() < 0.2


def test_one_megapixel_in_colour_stays_under_15_mb() -> None:
    """White noise in four results and the noisy picture: nothing compresses worse."""
    noisy = rng.integers(0, 256, (1000, 1000, 3), dtype=np.uint8)
    other = [rng.integers(0, 256, noisy.shape, dtype=np.uint8) for _ in range(2)]
    results = [Result(f"m{n}", other[n % 2], 1.0, "20") for n in range(4)]
    text = compare_page(Comparison("a.png", noisy, 20.0, 255.0, results, noisy))
    assert len(text.encode()) < 15e6
    assert "with loss" in text


def test_a_large_picture_is_down_scaled_and_a_part_is_not() -> None:
    noisy = np.zeros((1500, 1600), np.uint8)
    noisy[700:900, 300:500] = rng.integers(0, 256, (200, 200))
    text = made(noisy, 1)
    assert "the whole is down-scaled by 2" in text
    assert "A part in full size" in text


def test_without_matplotlib_there_are_no_plots_but_a_page(monkeypatch: Any) -> None:
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    text = made(rng.normal(100, 20, (16, 16)))
    assert "pip install &#x27;symsmooth[plots]&#x27;" in text


# --- in a browser -----------------------------------------------------------------------------


@pytest.fixture
def report(tmp_path: Path) -> Path:
    noisy = rng.integers(0, 256, (60, 90, 3), dtype=np.uint8)
    path = tmp_path / "r.html"
    path.write_text(made(noisy, 3, reference=noisy), "utf-8")
    return path


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_it_opens_on_any_screen(visit: Any, report: Path, width: int, scheme: str) -> None:
    page = visit(report, viewport={"width": width, "height": 800}, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    sizes = page.locator(".panels img").evaluate_all("all => all.map(i => i.naturalWidth)")
    assert sizes == [90] * 8
    assert page.locator(".overlay").is_visible()
    box = page.locator(".overlay .lens").bounding_box()
    assert box["width"] / box["height"] == pytest.approx(1.5, rel=0.01)
    assert audit(page) == []


def test_the_divider_by_mouse_and_by_keyboard(visit: Any, report: Path) -> None:
    page = visit(report, viewport={"width": 1280, "height": 800})
    lens = page.locator(".overlay .lens")
    lens.scroll_into_view_if_needed()
    box = lens.bounding_box()
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] / 2, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 4, middle, steps=4)
    page.mouse.up()
    split = "Number(document.querySelector('.overlay input').value)"
    assert page.evaluate(split) == pytest.approx(25, abs=1)
    clip = page.locator(".overlay .clip").evaluate("e => e.style.clipPath")
    assert clip.startswith("inset(0px 7")
    assert page.evaluate("document.querySelector('.strip').classList.contains('zoomed')") is False
    before = page.evaluate(split)
    page.keyboard.press("ArrowRight")
    assert page.evaluate(split) > before
    page.get_by_label("Right").select_option("m1: removed")
    assert page.locator(".tag.right").text_content() == "m1: removed"


def test_pictures_and_method_noise_zoom_together(visit: Any, report: Path) -> None:
    page = visit(report)
    page.locator(".panels .lens").last.focus()
    page.keyboard.press("+")
    transforms = page.evaluate(
        "[...document.querySelectorAll('.lens img')].map(i => getComputedStyle(i).transform)"
    )
    assert len(set(transforms)) == 1
    assert transforms[0].startswith("matrix(1.6")
