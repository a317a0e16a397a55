"""What is seldom asked on the command line: one line each, and what to do instead."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from symsmooth import cli
from symsmooth.app import large
from symsmooth.app.messages import UsageError
from symsmooth.cli.arguments import parse_methods
from symsmooth.io import write_image
from symsmooth.io.images import rounded

serve = importlib.import_module("symsmooth.cli.serve")  # the package has a function of that name
NOISY = np.clip(np.random.default_rng(0).normal(120, 20, (40, 48)), 0, 255).astype(np.uint8)


def run(*words: object) -> Any:
    return CliRunner().invoke(cli.app, [*map(str, words)])


def refused(done: Any, message: str) -> None:
    assert done.exit_code in (1, 2), done.output
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    write_image(tmp_path / "a.png", NOISY)
    return tmp_path / "a.png"


def test_methods_are_named_once_and_not_too_many() -> None:
    with pytest.raises(UsageError, match="names nlm twice"):
        parse_methods("nlm,gaussian,nlm")
    many = ",".join(f"nlm:window={n}" for n in range(3, 61, 2))
    with pytest.raises(UsageError, match=r"names \d+ methods; use at most"):
        parse_methods(many)


def test_an_output_folder_that_cannot_be_made_is_told(picture: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    refused(run("denoise", picture, "-o", f"{tmp_path}/file/x/"), "cannot be made")


def test_an_axis_there_is_not_is_told(picture: Path, tmp_path: Path) -> None:
    done = run("denoise", picture, "-o", tmp_path / "o.png", "--channel-axis", "7")
    refused(done, "has no axis 7; its shape is (40, 48)")


def test_no_input_on_a_terminal_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from symsmooth.cli import files

    class Terminal:
        buffer = type("", (), {"isatty": staticmethod(lambda: True)})()

    monkeypatch.setattr(files.sys, "stdin", Terminal())
    with pytest.raises(UsageError, match="standard input is a terminal; send a picture to it"):
        files._read_stdin(tmp_path)


def test_a_file_there_is_not_goes_nowhere(tmp_path: Path) -> None:
    refused(run("denoise", tmp_path / "none.png", "-o", "-"), "no such file")


@pytest.mark.skipif(os.name != "posix", reason="pipes of POSIX")
def test_a_reader_that_leaves_is_no_error_in_words() -> None:
    """As in ``symsmooth methods | head -1``."""
    code = "from symsmooth.cli import main; main()"
    with subprocess.Popen(
        [sys.executable, "-c", code, "methods"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1


# --- serve ------------------------------------------------------------------------------------


def test_a_server_that_others_reach_says_so_and_opens_a_browser(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[str] = []
    opened: list[Any] = []

    def ready(host: str, port: int, size: int, workers: Any, tell: Any, names: Any) -> None:
        tell("http://10.0.0.1:7860/")

    class Timer:
        def __init__(self, seconds: float, function: Any, given: list[str]) -> None:
            opened.extend(given)

        def start(self) -> None:
            pass

    monkeypatch.setattr("symsmooth.web.server.serve", ready)
    monkeypatch.setattr(serve.threading, "Timer", Timer)
    serve.run("10.0.0.1", 7860, 2**20, None, True, told.append)
    assert "there is no password" in told[1]
    assert opened == ["http://10.0.0.1:7860/"]
    serve.run("localhost", 7860, 2**20, None, False, told.append)
    assert len(told) == 3
    assert len(opened) == 1


@pytest.mark.parametrize(
    ("host", "near"),
    [("127.0.0.1", True), ("127.8.8.8", True), ("::1", True), ("localhost", True),
     ("0.0.0.0", False), ("10.0.0.1", False), ("example.org", False)],
)  # fmt: skip
def test_which_addresses_are_this_machine_alone(host: str, near: bool) -> None:
    from symsmooth.web.guard import is_loopback

    assert is_loopback(host) == near


# --- files box by box -------------------------------------------------------------------------


def test_boxes_say_what_they_cannot_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "a.npy"
    np.save(source, NOISY)
    monkeypatch.setattr(large, "_LARGE", -1)
    done = run("denoise", source, "-o", tmp_path / "o.npy", "--noise-from", "0,0,20,20")
    refused(done, "a noise region is for images that fit in memory")
    done = run("denoise", source, "-o", tmp_path / "o.npy", "--scheduler", "tcp://127.0.0.1:1")
    refused(done, "a cluster writes Zarr; -o must end in .zarr")
    (tmp_path / "b.png").write_bytes(b"no picture")
    done = run(
        "denoise", tmp_path / "b.png", "-o", tmp_path / "o.zarr", "--scheduler", "tcp://127.0.0.1:1"
    )
    refused(done, "is not PNG")


def test_boxes_keep_opacity_and_its_dtype(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tifffile = pytest.importorskip("tifffile")
    source = tmp_path / "a.tif"
    pixels = np.random.default_rng(0).integers(0, 256, (64, 64, 4), np.uint8)
    tifffile.imwrite(source, pixels, photometric="rgb", extrasamples=["unassalpha"], tile=(16, 16))
    monkeypatch.setattr(large, "_LARGE", -1)
    done = run("denoise", source, "-o", tmp_path / "o.tif", "--dtype", "float32")
    refused(done, "the file has opacity, which keeps its dtype")


def test_boxes_take_the_axis_that_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stack that is called channels is denoised as channels, in boxes as in memory."""
    from symsmooth.io import read_image

    source = tmp_path / "a.npy"
    np.save(source, np.random.default_rng(0).normal(100, 10, (5, 48, 48)))
    words = ("--method", "gaussian", "--sigma", "10", "--channel-axis", "0")
    assert run("denoise", source, "-o", tmp_path / "whole.npy", *words).exit_code == 0
    monkeypatch.setattr(large, "_LARGE", -1)
    assert run("denoise", source, "-o", tmp_path / "boxes.npy", *words).exit_code == 0
    whole, boxes = (read_image(tmp_path / f"{name}.npy").pixels for name in ("whole", "boxes"))
    np.testing.assert_allclose(boxes, whole, atol=1e-3)


def test_pixels_that_become_floats_are_not_rounded() -> None:
    large_values = np.array([1e300, -2.5, np.nan])
    as_float = rounded(large_values, np.dtype(np.float32))
    assert as_float[0] == np.inf
    assert as_float[1] == -2.5
    assert rounded(large_values, np.dtype(np.float64)) is large_values
    assert rounded(np.array([-5.0, 2.4, 300.0, np.nan]), np.dtype(np.uint8)).tolist() == [
        0, 2, 255, 0,
    ]  # fmt: skip


# --- pages ------------------------------------------------------------------------------------


def test_a_comparison_of_a_picture_without_pixels_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.full((32, 32), np.nan))
    done = run("compare", tmp_path / "a.npy", "-o", tmp_path / "o.html", "--methods", "gaussian")
    refused(done, "has no usable pixel")


def test_a_comparison_of_a_picture_without_noise_says_so(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.full((48, 48), 7.0))
    out = tmp_path / "o.html"
    done = run("compare", tmp_path / "a.npy", "-o", out, "--methods", "gaussian,nlm")
    assert done.exit_code == 0, done.output
    assert "There is no noise: nothing was to be removed." in out.read_text("utf-8")
