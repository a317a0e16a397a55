"""Many files: trees, patterns, what is done already, several at a time, one bad file among good ones."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from typer.testing import CliRunner

import symsmooth
from symsmooth import cli
from symsmooth.app.job import expand, plan_outputs
from symsmooth.app.messages import UsageError
from symsmooth.io import read_image, write_image

from ..barriers import Barrier, needs_pipes
from ..fakes import use_methods

Array = np.ndarray[Any, Any]


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Four pictures in folders, and something that is none."""
    monkeypatch.chdir(tmp_path)
    for i, name in enumerate(["in/a.tif", "in/x/a.tif", "in/x/b.tif", "in/x/y/c.tif"]):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        tifffile.imwrite(name, np.full((8, 9), i, np.uint16))
    Path("in/notes.txt").write_text("hello")
    return tmp_path


def run(*arguments: str) -> Any:
    return CliRunner().invoke(cli.app, ["denoise", *arguments, "--method", "identity"])


def files_in(folder: str) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in Path(folder).rglob("*") if p.is_file())


def test_a_pattern_keeps_the_tree(tree: Path) -> None:
    result = run("in/**/*.tif", "-o", "out/")
    assert result.exit_code == 0, result.output
    assert files_in("out") == ["a.tif", "x/a.tif", "x/b.tif", "x/y/c.tif"]
    assert len(result.stdout.splitlines()) == 4
    assert (read_image("out/x/y/c.tif").pixels == 3).all()


def test_resume_skips_what_is_done(tree: Path) -> None:
    Path("out/x").mkdir(parents=True)
    Path("out/x/a.tif").write_bytes(b"done")
    assert run("in/**/*.tif", "-o", "out/").exit_code == 2  # it exists: nothing is touched
    assert files_in("out") == ["x/a.tif"]
    result = run("in/**/*.tif", "-o", "out/", "--resume")
    assert result.exit_code == 0
    assert "skipped 1 of 4 files" in result.stderr
    assert Path("out/x/a.tif").read_bytes() == b"done"
    assert files_in("out") == ["a.tif", "x/a.tif", "x/b.tif", "x/y/c.tif"]
    again = run("in/**/*.tif", "-o", "out/", "--resume")
    assert (again.exit_code, again.stdout) == (0, "")


def test_resume_never_takes_an_input_for_an_output(tree: Path) -> None:
    result = run("in/a.tif", "-o", "in/", "--resume")
    assert result.exit_code == 2
    assert "is the input itself" in result.stderr


@pytest.mark.parametrize("jobs", ["1", "3"])
def test_it_goes_on_after_a_bad_file_and_lists_the_failures(tree: Path, jobs: str) -> None:
    Path("in/x/a.tif").write_bytes(b"II*\0 nonsense")
    Path("in/x/z.tif").write_bytes(b"")
    result = run("in/**/*.tif", "-o", "out/", "--jobs", jobs)
    assert result.exit_code == 1
    assert files_in("out") == ["a.tif", "x/b.tif", "x/y/c.tif"]
    assert len(result.stdout.splitlines()) == 3
    failures = result.stderr.splitlines()
    assert [line.split(": ")[2] for line in failures] == ["in/x/a.tif", "in/x/z.tif"]
    assert failures[1].endswith("is empty")


def test_lines_are_in_the_order_of_the_files_whatever_jobs_is(tree: Path) -> None:
    told = [
        [
            line.split(":")[0]
            for line in run("in/**/*.tif", "-o", f"o{n}/", "--jobs", n).stdout.splitlines()
        ]
        for n in ("1", "4")
    ]
    assert told[0] == told[1] == ["in/a.tif", "in/x/a.tif", "in/x/b.tif", "in/x/y/c.tif"]


def test_no_more_than_jobs_files_are_worked_on_at_a_time(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, now, most, workers = threading.Lock(), 0, 0, []

    def slow(image: Array, sigma: float, *, workers_: int = 0, workers: int | None = None) -> Array:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
            seen.append(workers)
        time.sleep(0.05)
        with lock:
            now -= 1
        return image

    seen: list[int | None] = workers
    use_methods(monkeypatch, {"slow": slow})
    for i in range(6):
        tifffile.imwrite(f"in/{i}.tif", np.zeros((4, 4), np.uint8))
    arguments = ["denoise", "in/*.tif", "-o", "out/", "--method", "slow", "--sigma", "1"]
    assert CliRunner().invoke(cli.app, [*arguments, "--jobs", "2"]).exit_code == 0
    assert most == 2
    assert all(n is not None and n >= 1 for n in seen)  # cores are shared out


def test_a_pattern_finds_no_outputs_no_chunks_and_something(tree: Path) -> None:
    zarr = pytest.importorskip("zarr")
    zarr.create_array("in/x/v.zarr", data=np.zeros((8, 8)), chunks=(4, 4))
    found = [str(below) for _, below in expand("in/**/*", Path("in/out"))]
    assert found == ["a.tif", "notes.txt", "x/a.tif", "x/b.tif", "x/v.zarr", "x/y/c.tif"]
    assert run("in/**/*.tif", "-o", "in/out/").exit_code == 0
    assert run("in/**/*.tif", "-o", "in/out/", "--resume").exit_code == 0
    assert files_in("in/out") == ["a.tif", "x/a.tif", "x/b.tif", "x/y/c.tif"]
    with pytest.raises(UsageError, match=r"no file matches in/\*\.png"):
        plan_outputs(["in/*.png"], "out/", False)


@pytest.fixture
def mixed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A folder of pictures of several formats, with other things between them; the pictures' names."""
    monkeypatch.chdir(tmp_path)
    Path("in/below").mkdir(parents=True)
    grey = np.arange(72, dtype=np.uint8).reshape(8, 9)
    for name in ("b.JPG", "a.png", "c.jpg", "d.tif", ".hidden.png", "below/e.png"):
        write_image(f"in/{name}", grey)
    np.save("in/f.npy", grey)
    Path("in/notes.txt").write_text("hello")
    Path("in/i.gif").write_bytes(b"GIF89a")
    return ["a.png", "b.JPG", "c.jpg", "d.tif", "f.npy"]


@pytest.mark.parametrize("out", ["out/", "out"])
def test_a_folder_stands_for_the_pictures_in_it(mixed: list[str], out: str) -> None:
    result = run("in", "-o", out)
    assert result.exit_code == 0, result.output
    assert files_in("out") == mixed
    assert [line.split(":")[0] for line in result.stdout.splitlines()] == [f"in/{n}" for n in mixed]
    (said,) = result.stderr.splitlines()
    assert all(name in said for name in ("below/", "i.gif", "notes.txt"))
    assert not any(name in said for name in (*mixed, "hidden"))
    quiet = run("in/", "-o", out, "--overwrite", "--quiet")
    assert (quiet.exit_code, quiet.output) == (0, "")


def test_a_folder_and_its_outputs_do_not_meet(mixed: list[str]) -> None:
    assert run("in", "-o", "in/out/").exit_code == 0
    assert run("in", "-o", "in/out/", "--resume").exit_code == 0
    assert files_in("in/out") == mixed
    onto_itself = run("in", "-o", "in")
    assert onto_itself.exit_code == 2
    assert "is the input itself" in onto_itself.stderr
    one_file = run("in", "-o", "all.png")
    assert one_file.exit_code == 2
    assert "must be a folder" in one_file.stderr


def test_what_is_named_like_a_picture_in_a_folder_and_is_none_is_an_error(mixed: list[str]) -> None:
    Path("in/empty.png").touch()
    result = run("in", "-o", "out/")
    assert result.exit_code == 1
    assert files_in("out") == mixed
    assert "in/empty.png: is empty" in result.stderr


def test_a_folder_without_pictures_says_so(tree: Path) -> None:
    Path("in/a.tif").unlink()
    result = run("in", "-o", "out/")
    assert result.exit_code == 2
    assert "in: holds no picture" in result.stderr
    assert not Path("out").exists()


def test_the_noise_of_a_folder_is_told(mixed: list[str]) -> None:
    Path("in/g").write_bytes(Path("in/a.png").read_bytes())  # known by its content
    result = CliRunner().invoke(cli.app, ["noise", "in"])
    assert result.exit_code == 0, result.output
    assert len(result.stdout.splitlines()) == len(mixed) + 1
    assert "notes.txt" in result.stderr


def test_a_zarr_is_a_picture_in_a_folder_and_no_folder_of_pictures(tree: Path) -> None:
    zarr = pytest.importorskip("zarr")
    zarr.create_array("in/v.zarr", data=np.zeros((8, 8), np.uint8), chunks=(4, 4))
    assert [path.name for path, _ in expand("in")] == ["a.tif", "v.zarr"]
    assert [path.name for path, _ in expand("in/v.zarr")] == ["v.zarr"]


def test_a_name_with_brackets_is_a_name_if_there_is_such_a_file(tree: Path) -> None:
    os.rename("in/a.tif", "in/a[1].tif")
    assert [str(p) for p, _ in expand("in/a[1].tif", Path("out"))] == ["in/a[1].tif"]


def test_bad_files_make_no_folders(tree: Path) -> None:
    Path("in/x/y/c.tif").write_bytes(b"nothing")
    assert run("in/**/*.tif", "-o", "out/").exit_code == 1
    assert not Path("out/x/y").exists()


@needs_pipes
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_all_jobs_and_leaves_no_half_files(
    tree: Path, barrier: Barrier, how: signal.Signals
) -> None:
    code = (
        "import symsmooth, time, signal\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "def endless(image, sigma, *, progress=None):\n"
        "    come()\n"
        "    while True:\n"
        "        time.sleep(0.01)\n"
        "        progress(0.5, 'waiting')\n"
        "from symsmooth import methods\n"
        "methods.METHODS = {'endless': methods.Method('endless', endless)}\n"
        "from symsmooth.cli import main; main()"
    )
    arguments = ["denoise", "in/**/*.tif", "-o", "out/", "--method", "endless", "--sigma", "1"]
    process = subprocess.Popen(
        [sys.executable, "-c", barrier.code + code, *arguments, "--jobs", "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(symsmooth.__file__).parents[1])},
    )
    barrier.wait(process, 2)  # both files that are worked on
    process.send_signal(how)
    out, err = process.communicate()
    assert process.returncode == 128 + how
    assert (out, err) == ("", "symsmooth: stopped; no half-written file was left behind\n")
    assert files_in("out") == []
