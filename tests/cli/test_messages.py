"""What a newcomer meets: help without types of Python, and errors that say what would work."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from symsmooth.io import write_image

COMMANDS = (
    "denoise",
    "noise",
    "methods",
    "demo",
    "compare",
    "explain",
    "serve",
    "reproduce",
    "benchmark",
)

DENOISE = ("denoise", "a.png", "-o", "b.png")


def symsmooth(*arguments: object, given: bytes = b"") -> subprocess.CompletedProcess[str]:
    code = "from symsmooth.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        input=given, capture_output=True, env={**os.environ, "COLUMNS": "110"}, timeout=120,
    )  # fmt: skip
    return subprocess.CompletedProcess(
        done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
    )


@pytest.fixture
def picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    pixels = np.random.default_rng(0).normal(120, 20, (64, 64))
    write_image("a.png", np.clip(pixels, 0, 255).astype(np.uint8))
    return Path("a.png")


@pytest.mark.parametrize("command", [(), *((name,) for name in COMMANDS)])
def test_help_has_no_types_of_python(command: tuple[str, ...]) -> None:
    done = symsmooth(*command, "--help")
    assert done.returncode == 0
    for word in ("<", "bool", "list[", "int range", "float>"):
        assert word not in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("noise",), "Missing argument 'IN'; see symsmooth noise --help"),
        (("denose", "a.png"), "; see symsmooth --help"),
        (("compare", "a.png"), "; see symsmooth compare --help"),
        ((*DENOISE, "--sigma", "much"), "--sigma must be a number, got 'much'"),
        ((*DENOISE, "--workers", "0"), "--workers must be a whole number of at least 1, got '0'"),
        ((*DENOISE, "--seed", "x"), "--seed must be a whole number of at least 0, got 'x'"),
        ((*DENOISE, "--n-clusters", "3"), "No such option: --n-clusters"),
        ((*DENOISE, "--noise", "grainy"), "noise must be one of auto, "),
        (("denoise", "a.png", "a.png", "-o", "b"), "for several files; end it with /: -o b/"),
        (
            ("explain", "a.png", "-o", "e.html", "--side", "5"),
            "--side must be a whole number from 16 to 1024, got '5'",
        ),
        (("serve", "--port", "99999"), "--port must be a whole number from 0 to 65535, got '99999'"),
        (("serve", "--max-upload", "inf"), "--max-upload must be a number of at least 0.001, got 'inf'"),
        (("methods", "bm4d"), "there is no method 'bm4d'; use one of denoise, "),
    ],
)  # fmt: skip
def test_wrong_usage_is_one_line_that_says_what_would_work(
    arguments: tuple[str, ...], message: str, picture: Path
) -> None:
    done = symsmooth(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("symsmooth: error: ")
    assert done.stderr.count("\n") == 1
    assert message in done.stderr
    assert os.listdir() == ["a.png"]


def test_what_the_system_says_is_told_without_our_hidden_names(picture: Path) -> None:
    if not os.path.isdir("/proc/self"):
        pytest.skip("needs a folder that nobody can write to")
    done = symsmooth("denoise", picture, "-o", "/proc/b.png", "--quality", "preview")
    assert done.returncode == 1
    assert "/proc/b.png: cannot be written: " in done.stderr
    assert "; choose another place for it" in done.stderr
    assert "Errno" not in done.stderr
    assert ".part" not in done.stderr


def test_one_method_can_be_listed(picture: Path) -> None:
    done = symsmooth("methods", "NL-Bayes", "--json")
    assert done.returncode == 0
    assert done.stdout.count("\n") == 1
    assert '"name": "nl_bayes"' in done.stdout


def test_noise_reads_standard_input(picture: Path) -> None:
    piped = symsmooth("noise", "-", given=picture.read_bytes())
    named = symsmooth("noise", picture)
    assert piped.returncode == 0
    assert piped.stdout == named.stdout.replace("a.png", "-", 1)
    assert "give no other input" in symsmooth("noise", "-", picture, given=b"x").stderr
    assert symsmooth("noise", "-").stderr == "symsmooth: error: -: is empty\n"
