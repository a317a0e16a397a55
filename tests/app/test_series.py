"""A series whose frames are files: order, names, metadata, and that only whole files appear."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from PIL import Image
from typer.testing import CliRunner

from symsmooth import cli
from symsmooth.app.job import DenoiseJob
from symsmooth.app.messages import UsageError
from symsmooth.app.series import FrameRun, find_series
from symsmooth.app.stack import frames_around, frames_looked_at
from symsmooth.core.metrics import psnr
from symsmooth.io import read_image, write_image
from symsmooth.methods import METHODS
from symsmooth.noise import White

Array = np.ndarray[Any, Any]
Run = Callable[..., Any]
SIGMA, SIZE, COUNT = 20.0, 48, 5
FAST = ("--time", "--quality", "preview")


def scene(size: int = SIZE) -> Array:
    y, x = np.mgrid[:size, :size]
    grey = 120 + 60 * np.sin(y / 7) * np.cos(x / 9) + 40 * (x > size // 2)
    return np.stack([grey, 0.8 * grey, 200 - 0.6 * grey], axis=-1)


def noisy(number: int = 0) -> Array:
    rng = np.random.default_rng(number)
    pixels = scene() + SIGMA * rng.standard_normal((SIZE, SIZE, 3))
    return np.clip(np.rint(pixels), 0, 255).astype(np.uint8)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command in a folder with a series in it, whose names are not in order for a computer."""
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    for number in range(COUNT):
        name = f"in/f{2 * number + 1}.png"  # f9.png comes before f11.png
        Image.fromarray(noisy(number)).save(name, dpi=(100 + number, 100 + number))

    def call(*arguments: str) -> Any:
        return CliRunner().invoke(cli.app, arguments)

    return call


def names_in(folder: str) -> list[str]:
    return sorted(path.name for path in Path(folder).iterdir())


@pytest.mark.parametrize(
    "inputs", [["in/*.png"], ["in"], [f"in/f{n}.png" for n in (9, 1, 7, 3, 5)]]
)
def test_pictures_are_one_series_and_each_stays_a_file(run: Run, inputs: list[str]) -> None:
    result = run("denoise", *inputs, "-o", "out/", *FAST, "--json")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["shape"] == [COUNT, SIZE, SIZE, 3]
    assert (told["input"], told["output"]) == ("in", "out")
    assert names_in("out") == names_in("in")
    pixels = np.stack([noisy(number) for number in range(COUNT)])
    images = [read_image(f"out/f{2 * number + 1}.png") for number in range(COUNT)]
    after = np.stack([image.pixels for image in images])
    assert psnr(after, np.stack([scene()] * COUNT), 255.0) > 33.0
    assert psnr(pixels, np.stack([scene()] * COUNT), 255.0) < 23.0
    for number, image in enumerate(images):  # metadata of its own
        assert image.details.dpi[0] == pytest.approx(100 + number, abs=0.1)


def test_frames_help_each_other(run: Run) -> None:
    assert run("denoise", "in", "-o", "alone", "--quality", "preview", "-q").exit_code == 0
    assert run("denoise", "in", "-o", "together", *FAST, "-q").exit_code == 0
    alone, together = (
        psnr(read_image(f"{folder}/f5.png").pixels, scene(), 255.0)
        for folder in ("alone", "together")
    )
    assert together > alone + 1.0


def test_frames_are_in_natural_order_by_folder(run: Run) -> None:
    (found,) = find_series(["in/*.png"])
    assert [path.name for path in found] == ["f1.png", "f3.png", "f5.png", "f7.png", "f9.png"]
    for number in (10, 2):
        Path("b").mkdir(exist_ok=True)
        write_image(f"b/{number}.png", noisy())
    found = find_series(["in", "b"])
    assert [[path.name for path in paths] for paths in found][1] == ["2.png", "10.png"]
    with pytest.raises(UsageError, match=r"b.2\.png is alone in its folder"):
        find_series(["in", "b/2.png"])


def test_stacks_are_series_already(run: Run) -> None:
    for name in ("a.tif", "b.tif"):
        series = np.stack([noisy(number)[..., 0] for number in range(3)])
        tifffile.imwrite(name, series, imagej=True, metadata={"axes": "TYX"})
    assert find_series(["a.tif", "b.tif"]) == []
    result = run("denoise", "a.tif", "b.tif", "-o", "out/", *FAST)
    assert result.exit_code == 0, result.output
    assert len(result.stdout.splitlines()) == 2


def test_what_exists_is_skipped_but_helps(run: Run) -> None:
    assert run("denoise", "in", "-o", "whole", *FAST, "-q").exit_code == 0
    assert run("denoise", "in", "-o", "whole", *FAST).exit_code == 2
    before = Path("whole/f5.png").read_bytes()
    Path("whole/f5.png").unlink()
    Path("whole/f3.png").write_bytes(b"mine")
    result = run("denoise", "in", "-o", "whole", *FAST, "--resume")
    assert "skipped 4 of 5 frames" in result.output
    assert Path("whole/f5.png").read_bytes() == before
    assert Path("whole/f3.png").read_bytes() == b"mine"
    result = run("denoise", "in", "-o", "whole", *FAST, "--resume")
    assert (result.exit_code, result.stdout) == (0, "")


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (
            noisy()[:, :-1],
            "is 47x48 uint8 in 3 channels, frames before it 48x48 uint8 in 3 channels",
        ),
        (noisy()[..., 0], "a series has one size and dtype"),
        (noisy().astype(np.uint16), "a series has one size and dtype"),
        (b"no picture", "is not PNG"),
        (None, "cannot be read"),
    ],
)
def test_what_is_no_series_is_one_line_and_nothing_is_written(
    run: Run, frame: Any, words: str
) -> None:
    if isinstance(frame, np.ndarray):
        write_image("in/f9.png", frame)
    else:
        content = frame or Path("in/f9.png").read_bytes()[:-900]
        Path("in/f9.png").write_bytes(content)
    result = run("denoise", "in", "-o", "out", *FAST)
    assert result.exit_code == 1
    assert len(result.stderr.splitlines()) == 1
    assert "f9.png" in result.stderr
    assert words in result.stderr
    assert names_in("out") == []


def test_an_interrupt_leaves_whole_files_only(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(frames: Any, **_: Any) -> Iterator[Array]:
        yield next(iter(frames))
        raise KeyboardInterrupt

    monkeypatch.setattr("symsmooth.gsfw.denoise.denoise_frames", interrupted)
    result = run("denoise", "in", "-o", "out", *FAST)
    assert result.exit_code == 130
    assert names_in("out") == ["f1.png"]
    np.testing.assert_array_equal(read_image("out/f1.png").pixels, noisy(0))


def test_one_frame_of_a_burst(run: Run) -> None:
    result = run("denoise", "in/*.png", "-o", "best.png", "--frame", "2", "--quality", "preview")
    assert result.exit_code == 0, result.output
    assert "in/f5.png" in result.stdout
    best = read_image("best.png")
    assert best.pixels.shape == (SIZE, SIZE, 3)
    assert psnr(best.pixels, scene(), 255.0) > 33.0
    assert names_in(".") == ["best.png", "in"]
    result = run("denoise", "in", "-o", "best.png", "--frame", "5", "--overwrite")
    assert (result.exit_code, "frames are 0 to 4" in result.stderr) == (2, True)
    result = run("denoise", "in", "-o", "x.png", "--frame", "1", "--slices")
    assert (result.exit_code, "leave it out" in result.stderr) == (2, True)


@pytest.mark.parametrize("axes", ["TYX", "TCYX", "TZYX"])
def test_one_frame_of_a_stack(run: Run, axes: str) -> None:
    shape = tuple({"T": 4, "C": 2, "Z": 2}.get(letter, SIZE) for letter in axes)
    stack = np.random.default_rng(0).integers(90, 110, shape).astype(np.uint16)
    tifffile.imwrite("s.tif", stack, imagej=True, metadata={"axes": axes})
    result = run("denoise", "s.tif", "-o", "one.tif", "--frame", "1", "--quality", "preview")
    assert result.exit_code == 0, result.output
    one = read_image("one.tif").pixels
    assert one.shape == shape[1:]
    assert one.std() < stack.std()
    result = run("denoise", "s.tif", "-o", "two.tif", "--frame", "4")
    assert "frames are 0 to 3" in result.output
    write_image("flat.png", noisy())
    result = run("denoise", "flat.png", "-o", "two.png", "--frame", "0")
    assert (result.exit_code, "no axis of time" in result.stderr) == (1, True)


def test_frames_are_read_only_as_far_ahead_as_is_needed() -> None:
    n_read = 0

    def frames() -> Iterator[Array]:
        nonlocal n_read
        for number in range(60):
            n_read += 1
            yield noisy(number)[:24, :24, 0]

    job = DenoiseJob(METHODS["denoise"], {"quality": "preview"}, SIGMA, None, 1, 0, "time")
    own = FrameRun(job, [noisy()[:24, :24, 0]], None, 255.0, True, 30)
    ahead = [n_read - own.n_done for _ in own.pairs(frames())]
    assert len(ahead) == 60
    assert max(ahead) <= 27


def test_black_and_grey_frames_are_series_of_their_own() -> None:
    black = np.zeros((SIZE, SIZE, 3), np.uint8)
    grey = np.repeat(noisy(7)[..., :1], 3, axis=-1)
    film = [black, black, noisy(0), noisy(1), black, grey, grey, noisy(2)]
    job = DenoiseJob(METHODS["denoise"], {"quality": "preview"}, None, -1, 1, 0, "time")
    own = FrameRun(job, film, -1, 255.0, True, 3)
    after = [pixels for _, pixels in own.pairs(film)]
    for number in (0, 1, 4):
        np.testing.assert_array_equal(after[number], black)
    for number in (5, 6):
        assert (after[number][..., 0] == after[number][..., 2]).all()
    assert psnr(after[2], scene(), 255.0) > psnr(film[2], scene(), 255.0) + 8
    own = FrameRun(job, film, -1, 255.0, False, 3)  # one by one
    np.testing.assert_array_equal([pixels for _, pixels in own.pairs(film)][4], black)


def test_options_that_cannot_be_honoured_are_refused(run: Run) -> None:
    for option, words in (
        (("--method", "nlm"), "nlm knows of no time"),
        (("--tone", "srgb"), "would flicker"),
        (("--jobs", "2"), "leave out --jobs"),
        (("--scheduler", "tcp://x:1"), "a cluster takes pictures"),
    ):
        result = run("denoise", "in", "-o", "out", "--time", *option)
        assert (result.exit_code, words in result.stderr) == (2, True), result.stderr


def test_frames_that_are_looked_at_are_spread() -> None:
    for count in (1, 5, 12, 13, 40, 1000):
        looked_at = frames_looked_at(count)
        assert looked_at == sorted(set(looked_at))
        assert 0 <= looked_at[0] <= looked_at[-1] < count
        for number in (0, count // 2, count - 1):
            assert number in frames_around(number, count)
            assert len(frames_around(number, count)) == min(count, 23)


def test_a_sigma_that_was_given_is_used(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []

    def watched(frames: Any, **options: Any) -> Iterator[Array]:
        given.append(options["noise"])
        return iter(list(frames))

    monkeypatch.setattr("symsmooth.gsfw.denoise.denoise_frames", watched)
    assert run("denoise", "in", "-o", "out", "--time", "--sigma", "7").exit_code == 0
    assert given[0] == White(7.0)
