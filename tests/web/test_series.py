"""Time on the page: stacks, videos and pictures that are frames of one series."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from symsmooth import cli
from symsmooth.io import read_image, video, write_image
from symsmooth.web import tasks
from symsmooth.web.sessions import VIEW
from symsmooth.web.tasks import PART
from symsmooth.web.worker import Reporter

from ..clips import COUNT, HEIGHT, WIDTH, av, make_clip
from ..conftest import audit
from ..serving import asked, reporter, wait_for

LIMIT = 10**7
needs_av = pytest.mark.skipif(av is None, reason="the extra video is not installed")
rng = np.random.default_rng(0)


def frame(number: int, shape: tuple[int, ...] = (40, 48)) -> np.ndarray[Any, Any]:
    """A noisy frame; a bright square moves through it."""
    pixels = rng.normal(100, 12, shape)
    pixels[10:20, 3 * number : 3 * number + 10] += 90
    return np.clip(pixels, 0, 255).astype(np.uint8)


def png(pixels: np.ndarray[Any, Any]) -> bytes:
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "PNG")
    return out.getvalue()


def cli_makes(*words: str | Path) -> None:
    result = CliRunner().invoke(cli.app, ["denoise", *map(str, words), "--quality", "preview"])
    assert result.exit_code == 0, result.stderr


def run(path: Path, folder: Path, **given: Any) -> tuple[dict[str, Any], list[Any]]:
    """Denoise a file, or frames, as the page does; return what came of it, and what was reported."""
    folder.mkdir()
    messages: list[Any] = []
    watching = Reporter(1, lambda number, *message: messages.append(message), set())
    settings = asked(**given.pop("settings", {}))
    given = {"at": (1,), "visible": None, "view": path.parent / VIEW, "frames": [], **given}
    return tasks.denoise(path, given, folder, settings, 1, LIMIT, watching), messages


@needs_av
@pytest.mark.parametrize("ending", [".mp4", ".avi"])
def test_a_video_is_denoised_as_the_command_line_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    """Frame by frame; x264 itself gives the same bits twice only without the newest instructions."""
    plain = {"crf": "12", "x264-params": "asm=0"}
    monkeypatch.setitem(video._OPTIONS, "libx264", plain)
    codec = "libx264" if ending == ".mp4" else "mpeg4"
    path = make_clip(tmp_path / f"clip{ending}", codec, sound=ending == ".mp4")
    info = tasks.inspect_file(path, tmp_path, LIMIT, reporter())["info"]
    assert (info["width"], info["height"], info["channels"]) == (WIDTH, HEIGHT, 3)
    assert info["others"] == [{"letter": "T", "name": "Time", "size": COUNT}]
    assert (info["thirds"], info["blends"], info["rate"] > 1) == (["time", "none"], False, True)
    made, messages = run(path, tmp_path / "run", info=info)
    target = tmp_path / "run" / made["files"][0]
    assert target.name == ("clip-denoised.mp4" if ending == ".mp4" else "clip-denoised.mkv")
    cli_makes(path, "-o", tmp_path / f"again{target.suffix}")
    with av.open(target) as ours, av.open(tmp_path / f"again{target.suffix}") as theirs:
        pairs = zip(ours.decode(video=0), theirs.decode(video=0), strict=True)
        assert all(np.array_equal(a.to_ndarray(), b.to_ndarray()) for a, b in pairs)
    view, shown = (np.load(each) for each in (tmp_path / VIEW, tmp_path / "run" / "result-0.npy"))
    assert view.shape == shown.shape == (COUNT, HEIGHT, WIDTH, 3)
    assert shown[:, :6, :6].std() < view[:, :6, :6].std()
    (part,) = [message[1] for message in messages if message[0] == "part"]
    assert part == {"box": [0, 0, WIDTH, HEIGHT], "at": (1,), "panel": PART}  # of the frame shown
    fractions = [message[1] for message in messages if message[0] == "progress"]
    assert fractions == sorted(fractions)


@needs_av
def test_a_video_that_is_turned_is_shown_upright(tmp_path: Path) -> None:
    path = make_clip(tmp_path / "clip.mp4", rotation=90)
    info = tasks.inspect_file(path, tmp_path, LIMIT, reporter())["info"]
    assert (info["width"], info["height"], info["turns"] % 2) == (HEIGHT, WIDTH, 1)
    box = {"noise": "box", "box": [2, 4, 20, 40]}
    made, _ = run(path, tmp_path / "run", settings=box, info=info)
    assert "ground" in made["noise"]["detail"] or made["noise"]["reasons"]
    assert np.load(tmp_path / "run" / "result-0.npy").shape == (COUNT, WIDTH, HEIGHT, 3)


@needs_av
def test_what_cannot_be_done_to_a_video_is_said_in_words_of_the_page(tmp_path: Path) -> None:
    path = make_clip(tmp_path / "clip.mp4")
    with pytest.raises(ValueError, match=r"10 frames.*allowed here; cut it"):
        tasks.inspect_file(path, tmp_path, 10_000, reporter())
    info = tasks.inspect_file(path, tmp_path, LIMIT, reporter())["info"]
    for number, (settings, says) in enumerate(
        [
            ({"method": "bm3d", "third": "time"}, "BM3D knows of no time; choose .* Automatic"),
            ({"third": "volume"}, "no slices of a volume"),
        ]
    ):
        with pytest.raises(ValueError, match=says):
            run(path, tmp_path / f"run{number}", settings=settings, info=info)


def test_a_stack_without_names_can_be_a_series(tmp_path: Path) -> None:
    path = tmp_path / "stack.npy"
    np.save(path, np.stack([frame(n) for n in range(4)]))
    info = tasks.inspect_file(path, tmp_path, LIMIT, reporter())["info"]
    assert info["thirds"] == ["none", "volume", "time"]
    made, messages = run(path, tmp_path / "run", settings={"third": "time"}, info=info)
    cli_makes(path, "-o", tmp_path / "again.npy", "--time")
    target = tmp_path / "run" / made["files"][0]
    assert target.read_bytes() == (tmp_path / "again.npy").read_bytes()
    assert [message[1]["at"] for message in messages if message[0] == "part"] == [(1,)]


def test_pictures_become_one_series_and_pictures_again(come: Any, tmp_path: Path) -> None:
    person = come()
    frames = {f"f{n}.png": png(frame(n)) for n in (10, 9, 1)}
    ids = [person.drop(name, content)["id"] for name, content in frames.items()]
    (tmp_path / "frames").mkdir()
    for name, content in frames.items():
        (tmp_path / "frames" / name).write_bytes(content)
    status, answer = person.post(f"{person.here}/join", {"pictures": ids})
    assert status == 200, answer
    (shown,) = person.wait()["pictures"]
    assert (shown["name"], shown["frames"]) == ("f1 to f10", 3)  # in the natural order
    assert (shown["info"]["others"][0]["size"], shown["info"]["thirds"]) == (3, ["time"])
    done = person.run("denoise")
    assert done["ended"][0] == "good", done["ended"]
    cli_makes(tmp_path / "frames", "-o", tmp_path / "quiet", "--time")
    one = f"{person.here}/{shown['id']}"
    results: dict[str, list[Any]] = {}
    for query in ("", "?blend=40.40"):
        status, packed = person.ask(f"{one}/result{query}")
        assert status == 200
        with zipfile.ZipFile(io.BytesIO(packed)) as archive:
            results[query] = [archive.read(name) for name in archive.namelist()]
            if not query:
                assert archive.namelist() == [f"f{n}-denoised.png" for n in (1, 9, 10)]
    expected = [(tmp_path / "quiet" / f"f{n}.png") for n in (1, 9, 10)]
    for n, path in enumerate(expected):
        (tmp_path / "ours.png").write_bytes(results[""][n])
        ours = read_image(tmp_path / "ours.png").pixels
        np.testing.assert_array_equal(ours, read_image(path).pixels)
    assert results["?blend=40.40"] != results[""]
    status, packed = person.ask(f"{person.here}/results.zip")
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        assert archive.namelist()[0] == "f1 to f10/f1-denoised.png"
    wanted = f"what=result&of={done['result']['number']}&panel=0&at=2"
    assert person.ask(f"{one}/view?{wanted}")[0] == 200
    assert person.post(f"{one}/split")[0] == 200
    assert sorted(each["name"] for each in person.state()["pictures"]) == sorted(frames)
    assert person.post(f"{person.here}/{ids[0]}/split")[0] == 422  # it is no series


def test_pictures_that_are_not_alike_are_no_series(come: Any) -> None:
    person = come()
    ids = [
        person.drop("a.png", png(frame(0)))["id"],
        person.drop("b.png", png(frame(0, (40, 50))))["id"],
    ]
    for given, says in (
        (ids, "b.png is 50 × 40 uint8, and a.png 48 × 40 uint8"),
        (ids[:1], "two frames at least"),
        (["p99"], "Drop a picture first"),
    ):
        status, answer = person.post(f"{person.here}/join", {"pictures": given})
        assert (status, says in answer["error"]) == (422, True), answer
    assert len(person.state()["pictures"]) == 2  # they are as they were


@needs_av
def test_a_video_is_played_on_the_page(enter: Any, tmp_path: Path) -> None:
    path = make_clip(tmp_path / "clip.mp4")
    visitor = enter()
    page = visitor.page
    visitor.dropped(path)
    slider, place = page.get_by_label(f"Time, {COUNT} frames"), page.locator(".slice output")
    assert place.inner_text() == f"6 of {COUNT}"
    visitor.choose("quality", "Preview")
    visitor.run()
    assert page.locator(".divider").count() == 1  # before and after, of a frame
    assert page.locator("#blend").is_hidden()
    page.locator("#play").click()
    assert page.locator("#play").inner_text() == "Pause"
    wait_for(lambda: place.inner_text() != f"6 of {COUNT}", 20)
    visitor.shot("video")
    assert audit(page) == []
    page.keyboard.press("Space")  # the button has the focus
    assert page.locator("#play").inner_text() == "Play"
    now = int(place.inner_text().split()[0])
    lens = page.locator(".lens").first
    lens.focus()
    page.keyboard.press(".")
    wait_for(lambda: place.inner_text() == f"{now % COUNT + 1} of {COUNT}", 20)
    page.keyboard.press(",")
    wait_for(lambda: place.inner_text() == f"{now} of {COUNT}", 20)
    page.keyboard.press("Space")
    assert page.locator("#play").inner_text() == "Pause"
    slider.focus()

    def moved_by_hand() -> bool:
        """Moving the slider ends the play; while it plays it may be at either end just now."""
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowLeft")
        return page.locator("#play").inner_text() == "Play"

    wait_for(moved_by_hand, 20)
    page.keyboard.press("Home")
    wait_for(lambda: place.inner_text() == f"1 of {COUNT}", 20)
    with page.expect_download() as waiting:
        page.locator("#download").click()
    assert waiting.value.suggested_filename == "clip-denoised.mp4"
    page.locator("#method").select_option("gaussian")
    assert page.locator("#third input[value=time]").is_disabled()
    assert page.locator("#third input[value=none]").is_checked()


def test_pictures_are_joined_on_the_page(enter: Any, tmp_path: Path) -> None:
    paths = []
    for number in range(3):
        paths.append(tmp_path / f"f{number}.png")
        write_image(paths[-1], frame(number))
    write_image(tmp_path / "other.png", frame(0, (50, 60)))
    visitor = enter()
    page = visitor.page
    visitor.drop(tmp_path / "other.png", *paths)
    page.locator("#join", has_text="One series of 3 frames").wait_for()
    page.locator("#join").click()
    page.get_by_label("Time, 3 frames").wait_for()
    visitor.choose("quality", "Preview")
    visitor.run()
    assert page.locator("#blend").is_visible()
    visitor.shot("joined")
    assert audit(page) == []
    with page.expect_download() as waiting:
        page.locator("#download").click()
    assert waiting.value.suggested_filename == "f0 to f2-denoised.zip"
    page.get_by_label("Split f0 to f2").click()
    page.locator("#files h2", has_text="4 pictures").wait_for()
