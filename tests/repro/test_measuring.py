"""What measures, inside its process: one answer a question, whatever is asked."""

from __future__ import annotations

from dataclasses import replace
from multiprocessing import Pipe
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from symsmooth import cli
from symsmooth.io import FileError, write_image
from symsmooth.noise import PoissonGaussian
from symsmooth_repro.benchmark import contestants
from symsmooth_repro.benchmark.contestants import Contestant
from symsmooth_repro.benchmark.folders import find_sets
from symsmooth_repro.benchmark.measuring import Measurement, measure
from symsmooth_repro.benchmark.peers import PEERS, Peer
from symsmooth_repro.benchmark.trials import Noise, Scene, Trial, load, plan_trials
from symsmooth_repro.camera import CAMERAS, photograph, random_camera
from symsmooth_repro.cli.reproduce import following
from symsmooth_repro.model import Cell
from symsmooth_repro.processes import Worker, serve
from symsmooth_repro.runner import Run, Tally, run_cells
from symsmooth_repro.store import Store, key_of

from ..reduced import observations, tiny_image_set


def scene(sigma: float = 20.0, model: Any = None, channels: int = 1) -> Scene:
    rng = np.random.default_rng(0)
    clean = np.add.outer(np.arange(48.0), np.arange(48.0)) + 60
    clean = np.dstack([clean] * 3) if channels == 3 else clean
    return Scene(clean + rng.normal(0, sigma, clean.shape), clean, 255.0, sigma, model)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(
    "contestant",
    [
        Contestant("ours", "denoise", {"quality": "preview"}),
        Contestant("blur", "gaussian"),
        contestants.peer("skimage-tv"),
    ],
)
def test_a_contestant_denoises_and_says_what_it_found(
    contestant: Contestant, channels: int, known: bool
) -> None:
    noisy = scene(channels=channels)
    contestants.warm_up(contestant, noisy, 1)
    found = contestants.run(contestant, noisy, known, 1, 2)
    assert noisy.score(found.image)[0] > noisy.scores[0] + 3
    assert found.seconds > 0
    assert bool(found.noise) == (contestant.method == "denoise")  # others know white noise only


def test_noise_that_is_known_is_told_as_it_is() -> None:
    model = PoissonGaussian((2.0,), (5.0,))
    noisy = scene(model=model)
    found = contestants.run(
        Contestant("ours", "denoise", {"quality": "preview"}), noisy, True, 1, 1
    )
    assert found.noise == str(model)
    assert found.kind == "poisson-gaussian"


def test_a_warm_up_that_fails_is_told_when_it_is_measured() -> None:
    wrong = Contestant("x", "nlm", {"window": 4})
    contestants.warm_up(wrong, scene(), 1)
    with pytest.raises(ValueError, match="window must be odd"):
        contestants.run(wrong, scene(), True, 1, 1)


def picture(path: Path, *, colour: bool = False) -> Path:
    ramp = np.clip(np.add.outer(np.arange(32), np.arange(32)) * 3.0 + 30, 0, 255).astype(np.uint8)
    Image.fromarray(np.dstack([ramp] * 3) if colour else ramp).save(path)
    return path


def test_a_process_measures_until_nobody_asks(tmp_path: Path) -> None:
    """Also if whoever asked is gone before the answer."""
    picture(tmp_path / "a.png")
    (trial,) = plan_trials(find_sets(tmp_path)[0], [Noise("white", 20.0)], False, 1)
    good = Measurement(trial, Contestant("g", "gaussian"), True, 1, 1)
    ours, theirs = Pipe()
    for each in (good, replace(good, contestant=Contestant("x", "nlm", {"window": 4}))):
        ours.send(each)
    ours.send(good)
    answers: list[Any] = []

    class Connection:
        """Its other side is gone after two answers."""

        def recv(self) -> Any:
            return theirs.recv()

        def send(self, answer: Any) -> None:
            if len(answers) == 2:
                raise BrokenPipeError
            answers.append(answer)

    serve(Connection(), measure)  # type: ignore[arg-type]
    assert answers[0]["psnr"] > answers[0]["noisy_psnr"]
    assert answers[0]["shape"] == [32, 32]
    assert answers[1].startswith("ValueError: window must be odd")
    ours.close()
    serve(theirs, measure)  # ends at once
    theirs.close()


def test_a_cell_is_measured_and_kept(tmp_path: Path) -> None:
    images, store, run = tiny_image_set(), Store(tmp_path), Run()
    (cell,) = observations(1)
    options = {"method": "nlm", "sigma": 20, "seed": 0, "options": {"window": 4}}
    wrong = Cell("denoise", "man", options)
    run_cells(run, [cell, wrong], images, store, 2, lambda text, tally: None)
    kept = store.load(key_of(cell, images))
    assert kept is not None
    assert kept["psnr"] == run.results[key_of(cell, images)]["psnr"]
    assert store.load(key_of(wrong, images)) is None
    (failure,) = run.failures.values()
    assert "ValueError: window must be odd" in failure


def test_a_worker_that_is_killed_costs_one_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another takes its place."""
    images, store, run = tiny_image_set(), Store(tmp_path), Run()
    send, killed = Worker.send, []

    def send_and_kill(self: Worker, task: Any) -> Any:
        connection = send(self, task)
        if not killed:
            assert self._process is not None
            killed.append(self._process)
            self._process.kill()
        return connection

    monkeypatch.setattr(Worker, "send", send_and_kill)
    run_cells(run, observations(3), images, store, 1, lambda text, tally: None)
    assert len(run.results) == 2
    (failure,) = run.failures.values()
    assert failure.endswith("its process ended with -9")


def test_a_process_that_is_killed_while_it_waits_costs_one_measurement(tmp_path: Path) -> None:
    picture(tmp_path / "a.png")
    (trial,) = plan_trials(find_sets(tmp_path)[0], [Noise("white", 20.0)], False, 1)
    asked = Measurement(trial, Contestant("g", "gaussian"), True, 1, 1)
    worker = Worker(measure)

    def answer() -> Any:
        worker.send(asked)
        return worker.receive()

    try:
        assert isinstance(answer(), dict)
        assert worker._process is not None
        worker._process.kill()
        worker._process.join()
        assert answer() == "its process ended with -9"
        assert isinstance(answer(), dict)
    finally:
        worker.close()


# --- pictures ---------------------------------------------------------------------------------


def trial_of(folder: Path, noise: Noise, *, grey: bool = False) -> Trial:
    return Trial("set", find_sets(folder)[0].sources[0], noise, 1, grey)


def test_pictures_are_read_as_they_are_meant(tmp_path: Path) -> None:
    unit = np.random.default_rng(0).random((16, 16)).astype("f4")
    for name, pixels, peak in (
        ("unit.tif", unit, 1.0),
        ("float.tif", 100 * unit, 100 * float(unit.max())),
        ("one.tif", unit[..., np.newaxis], 1.0),
    ):
        folder = tmp_path / name
        folder.mkdir()
        write_image(folder / name, pixels)
        found = load(trial_of(folder, Noise("white", 10.0)))
        assert found.clean.shape == (16, 16)
        np.testing.assert_allclose(found.clean, pixels.reshape(16, 16) * (255 / peak), rtol=1e-6)
    picture(tmp_path / "colour.png", colour=True)
    grey = load(trial_of(tmp_path, Noise("white", 10.0), grey=True))
    assert grey.clean.ndim == 2


def test_pictures_that_cannot_be_measured_are_refused(tmp_path: Path) -> None:
    picture(tmp_path / "grey.png")
    with pytest.raises(FileError, match="simulated cameras need colour"):
        load(trial_of(tmp_path, Noise("camera", camera="A")))
    for name, shape in (("stack", (4, 16, 16)), ("many", (16, 16, 5))):
        folder = tmp_path / name
        folder.mkdir()
        write_image(folder / "a.tif", np.zeros(shape, np.uint8))
        with pytest.raises(FileError, match="must be one grey or colour picture"):
            load(trial_of(folder, Noise("white", 10.0)))
    pair = tmp_path / "pair"
    pair.mkdir()
    picture(pair / "x_mean.png")
    Image.fromarray(np.zeros((8, 8), np.uint8)).save(pair / "x_real.png")
    with pytest.raises(FileError, match=r"has shape \(8, 8\), the clean one \(32, 32\)"):
        load(trial_of(pair, Noise("real")))


def test_random_cameras_bend_sharpen_and_resize() -> None:
    rng = np.random.default_rng(0)
    picture = rng.random((32, 32, 3)) * 0.5 + 0.25
    shapes = set()
    for seed in range(12):
        camera = random_camera(np.random.default_rng(seed))
        noisy, clean = photograph(picture, camera, seed)
        assert noisy.shape == clean.shape == (*(round(camera.size * 32),) * 2, 3)
        assert 0 <= clean.min() <= clean.max() <= 1
        assert 0.001 < np.std(noisy - clean) < 0.4
        shapes.add(noisy.shape)
    assert len(shapes) > 1
    plain = replace(CAMERAS["A"], contrast=0.0, sharpen=0.0, size=1.0)
    bent = replace(plain, contrast=0.5)
    assert np.abs(photograph(picture, plain)[1] - photograph(picture, bent)[1]).max() > 0.01


# --- peers and the command --------------------------------------------------------------------


def test_a_peer_is_there_if_all_it_needs_is(monkeypatch: pytest.MonkeyPatch) -> None:
    from symsmooth_repro.benchmark import peers

    def nothing(noisy: Any, sigma: float) -> Any:
        return noisy

    assert Peer("a", "A", ("numpy",), "numpy", nothing).is_installed
    assert not Peer("a", "A", ("numpy", "no_such_module"), "numpy", nothing).is_installed
    ffmpeg = Peer("f", "F", ("filter:bm3d",), "ffmpeg", nothing)
    monkeypatch.setattr(peers.shutil, "which", lambda name: "/usr/bin/ffmpeg")
    for there in (True, False):
        filters = frozenset({"bm3d"} if there else {"scale"})
        monkeypatch.setattr(peers, "_ffmpeg_filters", lambda filters=filters: filters)
        assert ffmpeg.is_installed == there
    monkeypatch.setattr(peers.shutil, "which", lambda name: None)
    assert not ffmpeg.is_installed


FFMPEG = """#!{python}
import sys
words = sys.argv[1:]
if "-version" in words:
    print("ffmpeg version 7.1 Copyright")
elif "-filters" in words:
    print("Filters:\\n TSC bm3d  N->V  Block-Matching 3D\\n T.. nlmeans  V->V  Non-local means")
elif "broken" in " ".join(words):
    sys.exit("no such filter: broken")
else:
    sys.stdout.buffer.write(bytes(255 - b for b in sys.stdin.buffer.read()))
"""


def test_ffmpeg_gets_and_gives_pixels_through_pipes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that inverts pictures stands in for it."""
    import os
    import sys

    from symsmooth_repro.benchmark import peers

    program = tmp_path / "ffmpeg"
    program.write_text(FFMPEG.format(python=sys.executable))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    for cached in (peers._ffmpeg_filters, peers._ffmpeg_version):
        cached.cache_clear()
    try:
        peer = PEERS["ffmpeg-bm3d"]
        assert peer.is_installed
        assert peer.version == "ffmpeg 7.1"
        rng = np.random.default_rng(0)
        for shape in ((6, 8), (6, 8, 3)):
            pixels = rng.integers(0, 256, shape)
            for name in ("ffmpeg-bm3d", "ffmpeg-nlmeans"):
                np.testing.assert_array_equal(PEERS[name].run(pixels, 10.0), 255 - pixels)
        with pytest.raises(ValueError, match=r"^ffmpeg: no such filter: broken"):
            peers._ffmpeg(lambda sigma: "broken")(np.zeros((4, 4)), 1.0)
    finally:
        for cached in (peers._ffmpeg_filters, peers._ffmpeg_version):
            cached.cache_clear()


def benchmark(folder: Path, out: Path, *words: str) -> Any:
    command = ["benchmark", str(folder), "-o", str(out), "--workers", "1", "--only", "known"]
    return CliRunner().invoke(cli.app, [*command, "--methods", "gaussian", *words])


def test_what_a_benchmark_cannot_do_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    picture(tmp_path / "a.png")
    (tmp_path / "file").touch()
    done = benchmark(tmp_path, tmp_path / "file")
    assert (done.exit_code, len(done.stderr.splitlines())) == (2, 1)
    assert "is a file; give a folder" in done.stderr
    monkeypatch.setattr(Peer, "is_installed", property(lambda self: False))
    done = benchmark(tmp_path, tmp_path / "out", "--peers", "bm3d")
    assert done.exit_code == 2
    assert "bm3d is not installed; pip install 'symsmooth-repro[bench]'" in done.stderr
    done = benchmark(tmp_path / "nothing", tmp_path / "out", "--peers", "none")
    assert (done.exit_code, len(done.stderr.splitlines())) == (1, 1)


def test_a_benchmark_that_is_interrupted_says_that_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(asked: Any, tell: Any) -> Any:
        raise KeyboardInterrupt

    picture(tmp_path / "a.png")
    monkeypatch.setattr("symsmooth_repro.benchmark.run.run_benchmark", interrupt)
    done = benchmark(tmp_path, tmp_path / "out", "--peers", "none")
    assert done.exit_code != 0
    assert "finished measurements are kept; run the same command to continue" in done.stderr


def test_noise_that_is_asked_for_with_pairs_is_told_to_be_left_out(tmp_path: Path) -> None:
    picture(tmp_path / "x_mean.png")
    noisy = np.random.default_rng(0).integers(0, 256, (32, 32), np.uint8)
    Image.fromarray(noisy).save(tmp_path / "x_real.png")
    done = benchmark(tmp_path, tmp_path / "out", "--peers", "none", "--sigmas", "10")
    assert done.exit_code == 0, done.output
    assert "the pictures are pairs; no noise was added" in done.stderr


def test_a_bar_and_lines_tell_how_many_cells_are_done(capsys: pytest.CaptureFixture[str]) -> None:
    lines: list[str] = []
    tally = Tally(4, 4.0, 2)
    with following(False, lines.append) as tell:
        tell("", tally)
        tell("", tally)
        for _ in range(4):
            tally.done += 1
            tally.paid += 1.0
            tell("nlm man", tally)
    assert lines[:2] == ["2 measurements are there already", "4 measurements to make"]
    assert lines[-1].startswith("4 of 4 ")
    with following(True, lines.append) as tell:
        tell("nlm man", tally)
    assert len(lines) < 6


def reproduce(*words: str) -> Any:
    return CliRunner().invoke(cli.app, ["reproduce", *words])


def test_a_reproduction_that_is_interrupted_or_fails_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raised: list[BaseException] = [KeyboardInterrupt(), FileError("out: cannot be made: full")]

    def fail(*given: Any, **more: Any) -> Any:
        raise raised[0]

    monkeypatch.setattr("symsmooth_repro.reproduction.reproduce", fail)
    done = reproduce("sure", "--out", str(tmp_path / "out"))
    assert done.exit_code != 0
    assert "finished measurements are kept" in done.stderr
    raised.pop(0)
    done = reproduce("sure", "--out", str(tmp_path / "out"))
    assert (done.exit_code, len(done.stderr.splitlines())) == (1, 1)
    assert "cannot be made: full" in done.stderr
