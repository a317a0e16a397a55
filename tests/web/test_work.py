"""The work itself, as a worker does it: examples, comparisons, views and reports."""

from __future__ import annotations

import io
import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from PIL import Image

from symsmooth.core.metrics import psnr
from symsmooth.core.parallel import Cancelled
from symsmooth.io import FileError, read_image, write_image
from symsmooth.web import drawing, tasks
from symsmooth.web.catalogue import EXAMPLES
from symsmooth.web.denoising import PART
from symsmooth.web.examples import write_example
from symsmooth.web.pictures import VIEW
from symsmooth.web.settings import Settings
from symsmooth.web.worker import Reporter

from ..serving import ROOT

LIMIT = 10**7
rng = np.random.default_rng(0)


def reporter() -> Reporter:
    return Reporter(1, lambda *news: None, set())


def asked(**given: Any) -> dict[str, Any]:
    return Settings.of({"quality": "preview", **given}).as_json()


def make(folder: Path, name: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder / name


# --- examples ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_is_noisy_and_has_its_clean_picture(tmp_path: Path, name: str) -> None:
    found = tasks.example(name, tmp_path, LIMIT, reporter())
    json.dumps(found["info"], allow_nan=False)
    assert found["info"]["noise"]["level"] > 0
    noisy = np.load(tmp_path / VIEW)
    clean = np.load(found["reference"] / VIEW)
    assert noisy.shape == clean.shape
    assert 10 < psnr(noisy, clean, float(np.ptp(clean))) < 32
    assert [each["letter"] for each in found["info"]["others"]] == (
        ["Z"] if name == "stack" else []
    )
    assert (found["info"]["channels"] == 3) == (name == "colour")


def test_there_is_no_other_example(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no example"):
        write_example("passwd", tmp_path, tmp_path)


# --- comparisons and reports ------------------------------------------------------------------


def stack_with_reference(tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    """Three slices and what they were without noise."""
    clean = np.broadcast_to(40.0 * np.hypot(*np.mgrid[-24:24, -24:24]), (3, 48, 48))
    noisy = clean + rng.normal(0, 30, clean.shape)
    path, reference = make(tmp_path, "stack.tif"), make(tmp_path / "clean", "stack.tif")
    for place, pixels in ((path, noisy), (reference, clean)):
        tifffile.imwrite(place, pixels.astype("f4"), imagej=True, metadata={"axes": "ZYX"})
    found = tasks.look(path, tmp_path, LIMIT, reporter())
    assert tasks.look_at_reference(reference, tmp_path, LIMIT, reporter()) == {}
    return path, found


def test_methods_are_compared_on_one_slice_with_the_clean_one(tmp_path: Path) -> None:
    path, found = stack_with_reference(tmp_path)
    into = tmp_path / "run"
    into.mkdir()
    names = ["denoise", "gaussian", "bm3d"]
    told = tasks.compare(
        path, tmp_path, tmp_path / "clean", names, (2,), into, asked(), 1, LIMIT, reporter()
    )
    json.dumps(told, allow_nan=False)
    assert told["clean"]
    noisy, clean = np.load(tmp_path / VIEW)[2], np.load(tmp_path / "clean" / VIEW)[2]
    peak = float(np.ptp(noisy))
    assert told["noisy"]["psnr"] == pytest.approx(psnr(noisy, clean, peak))
    for number, panel in enumerate(told["panels"]):
        made = np.load(into / f"result-{number}.npy")
        assert panel["psnr"] == pytest.approx(psnr(made, clean, peak))
        assert panel["psnr"] > told["noisy"]["psnr"]
        assert panel["removed"] == pytest.approx(np.std(noisy - made), rel=1e-3)
    given = {"name": "stack.tif", "info": found["info"], "told": told, "at": (2,)}
    page = tasks.report(given, tmp_path, into, tmp_path / "clean", "compare", reporter())
    text = page.read_text("utf-8")
    assert page.name == "stack-compared.html"
    assert "depth 3" in text
    assert "PSNR" in text


def test_a_comparison_of_a_slice_there_is_not_is_refused(tmp_path: Path) -> None:
    path, _ = stack_with_reference(tmp_path)
    for at in ((3,), (0, 0, 0)):
        with pytest.raises(ValueError, match="no such slice"):
            tasks.compare(
                path, tmp_path, None, ["denoise", "gaussian"], at, tmp_path, asked(), 1, LIMIT,
                reporter(),
            )  # fmt: skip


def test_a_report_of_one_result_needs_no_clean_picture(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    write_image(path, np.clip(rng.normal(120, 20, (64, 64)), 0, 255).astype(np.uint8))
    found = tasks.look(path, tmp_path, LIMIT, reporter())
    into = tmp_path / "run"
    into.mkdir()
    place = {"at": (), "looking": None, "sigma": found["info"]["noise"]["sigma"]}
    told = tasks.denoise(path, place, into, asked(), 1, LIMIT, reporter())
    given = {"name": "a.png", "info": found["info"], "told": told, "at": ()}
    page = tasks.report(given, tmp_path, into, None, "denoise", reporter())
    assert page.name == "a-denoised.html"
    assert "Slice" not in page.read_text("utf-8")


def test_a_clean_picture_of_another_size_is_refused(tmp_path: Path) -> None:
    path, other = make(tmp_path, "a.npy"), make(tmp_path / "clean", "a.npy")
    np.save(path, rng.normal(100, 20, (32, 40)))
    np.save(other, rng.normal(100, 20, (32, 41)))
    tasks.look(path, tmp_path, LIMIT, reporter())
    with pytest.raises(FileError, match="is 32 x 41, the noisy picture 32 x 40"):
        tasks.look_at_reference(other, tmp_path, LIMIT, reporter())


# --- looking ----------------------------------------------------------------------------------


def test_a_file_gets_the_ending_of_what_it_holds(tmp_path: Path) -> None:
    for name in ("photo.jpg", "photo", "photo.txt"):
        path = tmp_path / name
        Image.fromarray(rng.integers(0, 256, (32, 32), np.uint8)).save(path, "PNG")
        found = tasks.look(path, tmp_path, LIMIT, reporter())
        assert found["path"].suffix == ".png"
        found["path"].unlink()


def test_pictures_of_nothing_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "nothing.npy"
    np.save(path, np.full((32, 32), np.nan))
    with pytest.raises(FileError, match="has no usable pixel"):
        tasks.look(path, tmp_path, LIMIT, reporter())


def test_a_picture_that_memory_cannot_hold_at_work_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "large.npy"
    np.save(path, rng.normal(100, 20, (64, 64)))
    monkeypatch.setattr("symsmooth.web.bridge.memory", lambda: 2**18)
    with pytest.raises(FileError, match="of memory at work; cut it first"):
        tasks.look(path, tmp_path, LIMIT, reporter())


def test_processes_get_ready_and_leave_nothing(tmp_path: Path) -> None:
    tasks.get_ready_to_look(tmp_path, reporter())
    tasks.get_ready_to_run(1, reporter())
    assert [*tmp_path.iterdir()] == []


# --- views ------------------------------------------------------------------------------------


def view(first: Path, **more: Any) -> np.ndarray[Any, Any]:
    """What is drawn, as pixels."""
    wanted = {"first": first, "second": None, "at": (), "box": None, "channel": None,
              "channels": 1, "low": 0.0, "high": 255.0, **more}  # fmt: skip
    with Image.open(io.BytesIO(tasks.draw(wanted, reporter()))) as opened:
        return np.asarray(opened)


def test_a_view_is_a_slice_a_box_a_channel_or_a_difference(tmp_path: Path) -> None:
    pixels = rng.integers(0, 256, (3, 20, 24, 3), np.uint8)
    first, second = tmp_path / "first.npy", tmp_path / "second.npy"
    np.save(first, pixels)
    np.save(second, pixels // 2)
    of_colour: dict[str, Any] = {"channels": 3, "at": (1,)}
    np.testing.assert_array_equal(view(first, **of_colour), pixels[1])
    np.testing.assert_array_equal(view(first, **of_colour, box=(4, 2, 8, 6)), pixels[1, 2:8, 4:12])
    np.testing.assert_array_equal(view(first, **of_colour, channel=2), pixels[1, ..., 2])
    removed = view(first, **of_colour, second=second, low=-255.0)
    expected = (pixels[1] - pixels[1] // 2 + 255.0) / 2
    assert np.abs(removed - expected).max() <= 1


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"at": (3,)}, "no such slice"), ({"at": ()}, "no such slice"),
        ({"at": (0, 0)}, "no such slice"), ({"box": (0, 0, 5)}, "no such part"),
        ({"box": (99, 0, 5, 5)}, "no such part"), ({"channel": 3}, "no such channel"),
    ],
)  # fmt: skip
def test_views_there_are_not_are_refused(
    tmp_path: Path, more: dict[str, Any], message: str
) -> None:
    path = tmp_path / "a.npy"
    np.save(path, np.zeros((3, 20, 24, 3), np.uint8))
    with pytest.raises(ValueError, match=message):
        view(path, **{"channels": 3, "at": (0,), **more})


def test_large_pictures_are_drawn_in_small() -> None:
    assert drawing.reduction(2048, 2048) == 1
    assert drawing.reduction(2049, 2048) == 2
    assert drawing.reduction(20_000, 10_000) == 7


def test_numbers_are_those_that_json_knows() -> None:
    given = {"a": np.float32(1.5), "b": [np.nan, np.inf, (np.int64(3), "x")], "c": None}
    assert drawing.finite(given) == {"a": 1.5, "b": [None, None, [3, "x"]], "c": None}


# --- the part one looks at --------------------------------------------------------------------


def denoise_looking_at(path: Path, into: Path, looking: Any, **settings: Any) -> list[Any]:
    """What is told while a picture is denoised."""
    news: list[Any] = []
    watching = Reporter(1, lambda number, *told: news.append(told), set())
    into.mkdir()
    found = tasks.look(path, path.parent, LIMIT, reporter())
    at = tuple(found["info"]["middle"])
    place = {"at": at, "looking": looking, "sigma": found["info"]["noise"]["sigma"]}
    tasks.denoise(path, place, into, asked(**settings), 1, LIMIT, watching)
    return news


@pytest.mark.parametrize("channels", [1, 3])
def test_what_one_looks_at_is_done_first(tmp_path: Path, channels: int) -> None:
    path, into = tmp_path / "a.png", tmp_path / "run"
    shape = (300, 300, 3) if channels == 3 else (300, 300)
    write_image(path, np.clip(rng.normal(120, 20, shape), 0, 255).astype(np.uint8))
    news = denoise_looking_at(path, into, (40, 50, 90, 80))
    (part,) = [told[1] for told in news if told[0] == "part"]
    assert part == {"box": [40, 50, 90, 80], "at": (), "panel": PART}
    done = np.load(into / f"result-{PART}.npy")
    assert done.shape[:2] == (80, 90)
    whole = np.load(into / "result-0.npy")[50:130, 40:130].astype(float)
    assert np.abs(done - whole).mean() < 4  # it is much like what comes after
    fractions = [told[1] for told in news if told[0] == "progress"]
    assert fractions == sorted(fractions)


def test_volumes_and_small_pictures_are_done_at_once(tmp_path: Path) -> None:
    small = tmp_path / "small.npy"
    np.save(small, rng.normal(100, 20, (48, 48)))
    news = denoise_looking_at(small, tmp_path / "run", (0, 0, 48, 48))
    assert not [told for told in news if told[0] == "part"]
    volume = tmp_path / "volume.tif"
    stack = rng.normal(100, 20, (4, 48, 48)).astype("f4")
    tifffile.imwrite(volume, stack, imagej=True, metadata={"axes": "ZYX"})
    news = denoise_looking_at(volume, tmp_path / "run2", (0, 0, 16, 16))
    assert not [told for told in news if told[0] == "part"]


def test_a_packed_volume_keeps_both_of_its_endings(tmp_path: Path) -> None:
    pytest.importorskip("nibabel")
    path = tmp_path / "head.nii.gz"
    write_image(path, rng.normal(100, 20, (3, 32, 32)).astype("f4"))
    denoise_looking_at(path, tmp_path / "run", None)
    assert read_image(tmp_path / "run" / "head-denoised.nii.gz").format == "NIFTI.GZ"


# --- the process ------------------------------------------------------------------------------


def test_work_tells_how_far_it_is_now_and_then_and_stops_when_asked_to() -> None:
    told: list[Any] = []
    stopped: set[int] = set()
    watched = Reporter(7, lambda *news: told.append(news), stopped)
    for _ in range(100):
        watched.progress(0.5, "one")
    watched.progress(0.6, "two")
    assert told[0] == (7, "progress", 0.5, "one")
    assert told[-1] == (7, "progress", 0.6, "two")
    assert len(told) < 10
    assert watched.seconds >= 0
    stopped.add(7)
    with pytest.raises(Cancelled, match="stopped during two"):
        watched.progress(0.7, "two")


def test_a_worker_answers_each_call_and_ends_when_nobody_asks() -> None:
    """What it hears and says are pickles; how work ends is told by name."""
    calls = [
        ("call", 1, "tests.serving:chatter", ()),
        ("call", 2, "tests.serving:fail", ("told",)),
        ("call", 3, "tests.serving:fail", ("other",)),
        ("stop", 4),
        ("call", 4, "tests.serving:wait_to_be_stopped", ()),
        ("call", 5, "tests.serving:take_memory", ()),
    ]
    code = (
        f"import sys; sys.path.insert(0, {ROOT!r}); "
        "from symsmooth.web.worker import main; main(2**28)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        for call in calls:
            process.stdin.write(pickle.dumps(call))
        process.stdin.flush()
        answers = {}
        while len(answers) < 5:
            number, kind, *rest = pickle.load(process.stdout)
            if kind != "progress":
                answers[number] = [kind, *rest[:2]]
        process.stdin.close()
        assert process.wait(30) == 0
    assert answers[1] == ["done", process.pid]
    assert answers[2] == ["failed", "told", "what went wrong"]
    assert answers[3] == ["failed", "other", "ZeroDivisionError"]
    assert answers[4] == ["failed", "Cancelled", "stopped during waiting"]
    assert answers[5] == ["failed", "told", "There is not enough memory for this."]
