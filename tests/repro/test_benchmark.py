"""symsmooth benchmark: which pictures are pairs, which noise is added, what is told, and going on."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from symsmooth import cli
from symsmooth.core.metrics import psnr
from symsmooth.io import FileError
from symsmooth_repro.benchmark.contestants import Contestant
from symsmooth_repro.benchmark.folders import find_sets
from symsmooth_repro.benchmark.measuring import Measurement, measure
from symsmooth_repro.benchmark.peers import PEERS
from symsmooth_repro.benchmark.trials import REAL, Noise, Scene, Trial, load, plan_trials
from symsmooth_repro.processes import measure_all
from symsmooth_repro.provenance import provenance

from ..barriers import needs_pipes

SIDE = 32
COMMAND = "from symsmooth.cli import main\nif __name__ == '__main__': main()"


def picture(path: Path, seed: int = 0, *, colour: bool = False, side: int = SIDE) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    ramp = np.add.outer(np.arange(side), np.arange(side)) * 3.0 + 30
    grain = np.random.default_rng(seed).normal(0, 8, ramp.shape) if seed else 0.0
    pixels = np.clip(ramp + grain, 0, 255).astype(np.uint8)
    Image.fromarray(np.dstack([pixels] * 3) if colour else pixels).save(path)
    return path


def run(folder: Path, out: Path, *words: str) -> tuple[int, str]:
    command = ["benchmark", str(folder), "-o", str(out), "--peers", "none", "--workers", "1"]
    done = CliRunner().invoke(cli.app, [*command, "--methods", "denoise:preview,gaussian", *words])
    return done.exit_code, done.output


def measurements(out: Path) -> list[dict[str, object]]:
    return json.loads((out / "benchmark.json").read_text("utf-8"))["measurements"]


# --- which pictures belong together ------------------------------------------------------------


@pytest.mark.parametrize(
    ("noisy", "clean"),
    [
        ("x_real.png", "x_mean.png"),
        ("0001_NOISY_SRGB_010.PNG", "0001_GT_SRGB_010.PNG"),
        ("noisy/x.png", "gt/x.png"),
        ("noisy/x.jpg", "clean/x.png"),
        ("raw/a/x.png", "gt/a/x.png"),
        ("avg16/3/shot.png", "gt/3/mean.png"),
    ],
)
def test_pairs_are_found(tmp_path, noisy, clean) -> None:
    paths = picture(tmp_path / "set" / noisy, 1), picture(tmp_path / "set" / clean)
    (found,) = find_sets(tmp_path / "set")
    (source,) = found.sources
    assert (source.noisy, source.clean) == tuple(path.resolve() for path in paths)
    assert found.is_paired
    assert found.name == "set"


def test_each_folder_is_a_set(tmp_path) -> None:
    """Averages beside single shots, clean pictures beside pairs; names that only sound like pairs."""
    for name in (
        "fmd/raw/1.png",
        "fmd/avg2/1.png",
        "fmd/gt/1.png",
        "plain/surreal.png",
        "plain/b.png",
    ):
        picture(tmp_path / name)
    found = {each.name: each for each in find_sets(tmp_path)}
    root = tmp_path.name
    assert set(found) == {f"{root}/fmd/raw", f"{root}/fmd/avg2", f"{root}/plain"}
    assert not found[f"{root}/plain"].is_paired
    assert [s.name for s in found[f"{root}/plain"].sources] == ["b", "surreal"]


def test_what_has_no_other_half_is_told_never_taken_for_clean(tmp_path) -> None:
    for name in ("a_real.png", "a_mean.png", "b_real.png", "c_mean.png"):
        picture(tmp_path / "files" / name)
    for name in ("noisy/1.png", "noisy/2.png", "gt/1.png", "gt/3.png"):
        picture(tmp_path / "folders" / name)
    assert find_sets(tmp_path / "files")[0].left_out == ("b_real.png", "c_mean.png")
    assert find_sets(tmp_path / "folders")[0].left_out == ("2", "gt/3")
    picture(tmp_path / "lonely" / "noisy" / "1.png")
    picture(tmp_path / "single" / "b_real.png")
    for place in (tmp_path / "lonely", tmp_path / "lonely" / "noisy", tmp_path / "single"):
        with pytest.raises(FileError):
            find_sets(place)
    with pytest.raises(FileError, match="no such folder"):
        find_sets(tmp_path / "nothing")


# --- which noise ---------------------------------------------------------------------------------


def test_white_noise_is_what_the_tables_say(tmp_path) -> None:
    for name in "abc":
        picture(tmp_path / f"{name}.png")
    (found,) = find_sets(tmp_path)
    trials = plan_trials(found, [Noise("white", 25.0)], False, 2)
    assert [trial.source.name for trial in trials] == ["a", "c"]
    scene = load(trials[1])  # the third picture keeps its number if others are left out
    expected = np.random.default_rng(25002).standard_normal((SIDE, SIDE)) * 25
    np.testing.assert_array_equal(scene.noisy, scene.clean + expected)
    assert (
        (scene.noisy.min() < 0) or (scene.noisy.max() > 255) or not np.allclose(scene.noisy % 1, 0)
    )
    assert scene.sigma == 25.0


def test_poisson_noise_and_cameras_know_their_noise(tmp_path) -> None:
    source = find_sets(picture(tmp_path / "a.png", colour=True, side=33).parent)[0].sources[0]
    counts = load(Trial("s", source, Noise("poisson", 50.0), 1))
    assert counts.model.photons.gain == (255 / 50,) * 3
    variance = (counts.noisy - counts.clean).var()
    assert variance == pytest.approx(float((counts.clean * 255 / 50).mean()), rel=0.15)
    shot = load(Trial("s", source, Noise("camera", camera="A"), 1))
    assert shot.noisy.dtype == np.uint8
    assert shot.noisy.shape == (32, 32, 3)  # a mosaic has even sides


def test_results_for_files_are_clipped_and_rounded() -> None:
    clean = np.full((16, 16), 254.0)
    answer = np.full((16, 16), 256.4)
    real = Scene(np.full((16, 16), 250, np.uint8), clean, 255.0, 4.0)
    added = Scene(np.full((16, 16), 250.0), clean, 255.0, 4.0)
    assert real.score(answer)[0] == pytest.approx(psnr(np.full(1, 255.0), np.full(1, 254.0), 255))
    assert added.score(answer)[0] == pytest.approx(psnr(np.full(1, 256.4), np.full(1, 254.0), 255))


@pytest.mark.parametrize("name", PEERS)
@pytest.mark.parametrize("colour", [False, True])
def test_a_peer_removes_noise(name, colour, camera) -> None:
    if not PEERS[name].is_installed:
        pytest.skip(f"{name} is not installed")
    clean = 255 * (np.dstack([camera] * 3) if colour else camera)
    noisy = clean + np.random.default_rng(0).normal(0, 20, clean.shape)
    assert psnr(PEERS[name].run(noisy, 20.0), clean, 255) > psnr(noisy, clean, 255) + 1
    assert any(letter.isdigit() for letter in PEERS[name].version)


# --- the command ---------------------------------------------------------------------------------


def test_a_run_writes_three_files_and_tells_how(tmp_path) -> None:
    picture(tmp_path / "in" / "a.png", side=48)
    code, printed = run(
        tmp_path / "in", tmp_path / "out", "--sigmas", "10", "--label", "development"
    )
    assert code == 0, printed
    page = (tmp_path / "out" / "benchmark.md").read_text("utf-8")
    for word in (
        "**development**",
        "Date",
        "Versions",
        "numpy",
        "default_rng(1000 sigma",
        "seconds, blind",
    ):
        assert word in page
    with open(tmp_path / "out" / "benchmark.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {(row["method"], row["known"]) for row in rows} == {
        (f"symsmooth {name}", known)
        for name in ("denoise:preview", "gaussian")
        for known in ("True", "False")
    }
    for row in rows:
        assert float(row["psnr"]) > float(row["noisy_psnr"]) + 3
        assert float(row["seconds"]) > 0
    assert {row["noise_kind"] for row in rows if "preview" in row["method"]} == {"gaussian"}
    assert "gaussian 1" in printed


def test_pairs_use_the_noise_of_the_files(tmp_path) -> None:
    picture(tmp_path / "in" / "noisy" / "a.png", 1, colour=True)
    picture(tmp_path / "in" / "gt" / "a.png", colour=True)
    code, printed = run(tmp_path / "in", tmp_path / "out", "--sigmas", "10")
    assert code == 0, printed
    assert "no noise was added" in printed
    assert {row["noise"] for row in measurements(tmp_path / "out")} == {str(REAL)}


def test_what_is_measured_is_not_measured_again(tmp_path) -> None:
    picture(tmp_path / "in" / "a.png")
    arguments = (tmp_path / "in", tmp_path / "out", "--sigmas", "10", "--only", "known")
    run(*arguments)
    first = measurements(tmp_path / "out")
    cells = sorted((tmp_path / "out" / "cells").iterdir())
    assert len(cells) == 2
    cells[0].unlink()
    times = cells[1].stat().st_mtime_ns
    run(*arguments)
    second = measurements(tmp_path / "out")
    assert cells[0].exists()
    assert cells[1].stat().st_mtime_ns == times
    assert [row["psnr"] for row in first] == [row["psnr"] for row in second]
    picture(tmp_path / "in" / "a.png", 3)  # another picture under the same name
    run(*arguments)
    assert len(list((tmp_path / "out" / "cells").iterdir())) == 4


# It waits before the measurement after the first.
WAITS = """
from symsmooth_repro.processes import Worker
asked, send = [], Worker.send
def send_or_wait(self, task):
    if asked:
        barrier()
    asked.append(True)
    return send(self, task)
Worker.send = send_or_wait
"""


@needs_pipes
def test_a_killed_run_goes_on(tmp_path, barrier) -> None:
    for name in "abc":
        picture(tmp_path / "in" / f"{name}.png")
    words = ["benchmark", str(tmp_path / "in"), "-o", str(tmp_path / "out"), "--peers", "none"]
    words += ["--methods", "denoise:preview,gaussian", "--workers", "1"]
    process = subprocess.Popen(
        [sys.executable, "-c", barrier.code + WAITS + COMMAND, *words],
        start_new_session=True, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    cells = tmp_path / "out" / "cells"
    barrier.wait(process)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    done = {path.name: path.stat().st_mtime_ns for path in cells.glob("*.json")}
    assert len(done) == 1
    code, printed = run(tmp_path / "in", tmp_path / "out")
    assert code == 0, printed
    assert len(measurements(tmp_path / "out")) == 3 * 3 * 2 * 2
    assert all((cells / name).stat().st_mtime_ns == when for name, when in done.items())


def test_a_failure_is_told_and_the_rest_is_kept(tmp_path) -> None:
    for name, side in (("a_real", 32), ("a_mean", 32), ("b_real", 32), ("b_mean", 24)):
        picture(tmp_path / "in" / f"{name}.png", 1, side=side)
    code, printed = run(tmp_path / "in", tmp_path / "out", "--only", "blind")
    assert code == 1
    assert "has shape (32, 32), the clean one (24, 24)" in printed
    assert {row["picture"] for row in measurements(tmp_path / "out")} == {"a_real"}


class Bomb:
    """Ends the process that unpickles it."""

    def __reduce__(self) -> tuple[object, tuple[int]]:
        return end_process, (3,)


def end_process(code: int) -> None:
    os._exit(code)


def test_a_process_that_dies_costs_one_measurement(tmp_path) -> None:
    picture(tmp_path / "a.png")
    (trial,) = plan_trials(find_sets(tmp_path)[0], [Noise("white", 10.0)], False, 1)
    tasks = {
        "bomb": Bomb(),
        "good": Measurement(trial, Contestant("g", "gaussian"), True, 1, 1),
        "wrong": Measurement(trial, Contestant("x", "nonsense"), True, 1, 1),
    }
    found = dict(measure_all(measure, tasks, jobs=1))
    assert list(found) == list(tasks)
    assert found["bomb"] == "its process ended with 3"
    assert isinstance(found["good"], dict), found
    assert "no method" in str(found["wrong"])


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--only", "sometimes"], "known, blind or both"),
        (["--sigmas", "ten"], "must be numbers"),
        (["--sigmas", "-5"], "above 0"),
        (["--cameras", "Z"], "no camera"),
        (["--peers", "nobody"], "no peer"),
    ],
)
def test_wrong_usage_is_told(tmp_path, words, told) -> None:
    code, printed = run(tmp_path, tmp_path / "out", *words)
    assert (code, told in printed) == (2, True), printed


def test_the_commit_is_of_the_package_not_of_where_it_is_installed(tmp_path, monkeypatch) -> None:
    """An environment may lie inside somebody else's repository."""
    from symsmooth_repro import provenance as module

    package = tmp_path / "venv" / "symsmooth"
    package.mkdir(parents=True)
    git = ["git", "-C", str(tmp_path), "-c", "user.name=x", "-c", "user.email=x@example.org"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    monkeypatch.setattr(module, "ROOT", package)
    assert provenance("", 1, 0.0).commit == ""


def test_a_changed_package_is_told_and_nothing_else_is(tmp_path, monkeypatch) -> None:
    """Results that are kept beside it do not make another package of it."""
    from symsmooth_repro import provenance as module

    package = tmp_path / "src" / "symsmooth"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (tmp_path / "kept.csv").write_text("1")
    git = ["git", "-C", str(tmp_path), "-c", "user.name=x", "-c", "user.email=x@example.org"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "x"]):
        subprocess.run([*git, *words], check=True)
    monkeypatch.setattr(module, "ROOT", package)
    (tmp_path / "kept.csv").write_text("2")
    commit = provenance("", 1, 0.0).commit
    assert len(commit) >= 7
    assert "+" not in commit
    (package / "__init__.py").write_text("x = 1")
    assert provenance("", 1, 0.0).commit == commit + "+"
