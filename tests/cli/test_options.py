"""Options of methods on the command line: help, completion, spelling; `-`; what --verbose tells."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from PIL import Image
from typer.testing import CliRunner

import symsmooth
from symsmooth import cli
from symsmooth.cli.arguments import DEFAULT_OPTIONS
from symsmooth.io import read_image, write_image
from symsmooth.methods import DEFAULT, METHODS

NOISY = np.clip(np.random.default_rng(0).normal(120, 20, (40, 48)), 0, 255).astype(np.uint8)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.chdir(tmp_path)
    write_image("in.png", NOISY)
    wide = {"COLUMNS": "200", "TERMINAL_WIDTH": "200", "NO_COLOR": "1"}
    return lambda *arguments, **more: CliRunner(env=wide).invoke(
        cli.app, [str(a) for a in arguments], **more
    )


def process(*arguments: str, **more: Any) -> subprocess.CompletedProcess[bytes]:
    code = "from symsmooth.cli import main; main()"
    environment = {**os.environ, **more.pop("env", {})}
    environment["PYTHONPATH"] = str(Path(symsmooth.__file__).parents[1])
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(
        command, capture_output=True, env=environment, timeout=60, check=False, **more
    )


# --- help ---------------------------------------------------------------------------------------


def test_the_help_of_denoise_lists_the_options_of_the_default_method(run: Any) -> None:
    text = run("denoise", "--help").stdout
    plain = " ".join(re.sub(r"[│╭╮╰╯─]", " ", text).split())
    own = METHODS[DEFAULT].options
    assert set(own) == set(DEFAULT_OPTIONS)
    for option in own.values():
        assert f"--{option.key} {'|'.join(option.choices)}" in plain
    assert "--quality preview|fast|balanced|best How much time to spend" in plain
    assert (
        "--noise auto|gaussian|poisson-gaussian|correlated|rician|FILE.json What kind of noise"
        in plain
    )
    assert "--strength NUMBER" in plain


def test_methods_shows_choices(run: Any) -> None:
    assert "of preview, fast, balanced, best" in " ".join(run("methods").stdout.split())
    rows = {
        row["name"]: row for row in map(json.loads, run("methods", "--json").stdout.splitlines())
    }
    assert rows["denoise"]["choices"]["tone"] == ["auto", "srgb", "linear"]


@pytest.mark.parametrize("name", METHODS)
def test_a_method_that_is_named_shows_what_its_options_do(run: Any, name: str) -> None:
    text = " ".join(re.sub(r"[│╭╮╰╯─]", " ", run("methods", name).stdout).split())
    for option in METHODS[name].options.values():
        default = "none" if option.default is None else option.default
        assert f"{option.key}={default}" in text
        assert option.help in text


# --- completion ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("symsmooth den", {"denoise"}),
        ("symsmooth denoise --method n", {"nlm", "nl_bayes"}),
        ("symsmooth denoise --qual", {"--quality"}),
        ("symsmooth denoise a.png --quality ", {"preview", "fast", "balanced", "best"}),
        ("symsmooth denoise --noise c", {"correlated"}),
        ("symsmooth compare a.png --methods denoise,bm", {"denoise,bm3d"}),
    ],
)
def test_the_shell_completes(line: str, expected: set[str]) -> None:
    words = {"_SYMSMOOTH_COMPLETE": "complete_bash", "COMP_WORDS": line}
    words["COMP_CWORD"] = str(len(line.split(" ")) - 1)
    done = process(env=words)
    assert set(done.stdout.decode().split()) == expected, done.stderr


# --- spelling -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["NLM", "Nlm", "nlm", "NL-Bayes"])
def test_methods_are_understood_however_they_are_spelled(run: Any, name: str) -> None:
    line = run("denoise", "in.png", "-o", "o.png", "--method", name).stdout
    assert f", {name.lower().replace('-', '_')}, " in line


def test_a_folder_that_is_not_there_ends_with_a_slash(run: Any) -> None:
    done = run("denoise", "in.png", "-o", "newfolder")
    assert done.exit_code == 2
    assert "end a folder with /: -o newfolder/" in done.stderr
    assert not Path("newfolder").exists()
    assert run("denoise", "in.png", "-o", "newfolder/", "--method", "gaussian").exit_code == 0
    assert Path("newfolder/in.png").exists()


def test_options_of_another_method_are_refused(run: Any) -> None:
    done = run("denoise", "in.png", "-o", "o.png", "--method", "nlm", "--quality", "fast")
    assert done.exit_code == 2
    assert "method nlm has no option quality; it has " in done.stderr
    done = run("denoise", "in.png", "-o", "o.png", "--quality", "slow")
    assert "quality must be one of preview, fast" in done.stderr


# --- what was decided ---------------------------------------------------------------------------


def test_verbose_tells_what_was_decided(run: Any) -> None:
    text = run("denoise", "in.png", "-o", "o.png", "--quality", "fast", "--verbose").stdout
    file, noise, check, method, seed = text.splitlines()[1:]
    assert "PNG, axes YX, no channels" in file
    model = symsmooth.estimate_noise(read_image("in.png").pixels)
    assert f"noise: estimated, {model}; {'; '.join(model.finding.reasons)}" in noise
    assert (
        "denoise, quality fast, strength 1.0, chroma_strength None, grain 0.0, tone auto" in method
    )
    assert "check: what was removed looks like noise" in check
    assert "seed 0, all cores" in seed
    given = run("denoise", "in.png", "-o", "p.png", "--method", "nlm", "--sigma", 9, "-v").stdout
    assert "noise: given, white Gaussian noise, sigma 9" in given


# --- standard input and output --------------------------------------------------------------------


def coded(format: str) -> bytes:
    buffer = io.BytesIO()
    if format == "TIFF":
        tifffile.imwrite(buffer, NOISY.astype(np.float32))
    elif format == "NPY":
        np.save(buffer, NOISY)
    else:
        Image.fromarray(NOISY).save(buffer, format)
    return buffer.getvalue()


@pytest.mark.parametrize("format", ["PNG", "TIFF", "NPY", "JPEG"])
def test_a_stream_becomes_a_stream_of_the_same_format(tmp_path: Path, format: str) -> None:
    done = process("denoise", "-", "--method", "nlm", "--sigma", "20", input=coded(format))
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith(b"-: 48x40 ")
    assert done.stderr.rstrip().endswith(b" -> -")
    path = tmp_path / "result"
    path.write_bytes(done.stdout)
    image = read_image(path)
    assert image.format == format
    if format != "JPEG":
        pixels = NOISY.astype(np.float32) if format == "TIFF" else NOISY
        assert np.array_equal(image.pixels, symsmooth.denoise_nlm(pixels, 20.0))


def test_a_stream_may_have_another_format_or_a_name(tmp_path: Path) -> None:
    asked = ("--method", "gaussian", "--sigma", "20")
    done = process("denoise", "-", "-o", "-", "--format", "tif", *asked, input=coded("PNG"))
    assert done.stdout[:2] in (b"II", b"MM")
    done = process("denoise", "-", "-o", "o.png", *asked, input=coded("PNG"), cwd=tmp_path)
    assert done.stdout.startswith(b"-: 48x40 ")
    assert (tmp_path / "o.png").exists()
    write_image(tmp_path / "in.png", NOISY)
    done = process("denoise", "in.png", "-o", "-", *asked, cwd=tmp_path)
    assert (
        done.stdout
        == process("denoise", "-", *asked, input=(tmp_path / "in.png").read_bytes()).stdout
    )


@pytest.mark.parametrize(
    ("arguments", "given", "message"),
    [
        (("-",), b"no picture", b"-: is not PNG"),
        (("-",), b"", b"-: is empty"),
        (("-", "b.png", "-o", "x/"), b"", b"- stands for one picture"),
        (("-", "-o", "o.png", "--format", "png"), b"", b"--format is for standard output"),
        (("-", "--format", "zarr"), coded("PNG"), b"a Zarr is a folder"),
        (("-", "--format", "doc"), coded("PNG"), b"cannot write '.doc'"),
        (("-", "--format", "jpg"), coded("TIFF"), b"JPEG holds 8-bit pixels"),
        (("a.png",), b"", b"-o is missing"),
        (("a.png", "-o", "b.png", "--tone"), b"", b"Option '--tone' requires an argument"),
        (("-o", "b.png", "--tone", "auto"), b"", b"Missing argument 'IN'; see symsmooth denoise --help"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_one_line_and_no_output(arguments, given, message, tmp_path) -> None:
    done = process("denoise", "--method", "gaussian", *arguments, input=given, cwd=tmp_path)
    assert done.returncode in (1, 2)
    assert message in done.stderr
    assert done.stderr.count(b"\n") == 1
    assert b"symsmooth-" not in done.stderr
    assert done.stdout == b""


def test_what_was_removed_is_looked_at(tmp_path) -> None:
    """In words with --verbose, as two numbers with --json."""
    noisy = np.random.default_rng(0).normal(0, 15, (96, 96)) + 8 * (np.arange(96) // 24)
    np.save(tmp_path / "in.npy", noisy)
    arguments = [
        "denoise",
        str(tmp_path / "in.npy"),
        "-o",
        str(tmp_path / "out.npy"),
        "--overwrite",
    ]
    told = CliRunner().invoke(cli.app, [*arguments, "--verbose"])
    assert "check: what was removed looks like noise (outlines 0.0" in told.output
    found = json.loads(CliRunner().invoke(cli.app, [*arguments, "--json"]).output)["check"]
    assert found["outlines"] < 0.05
    assert found["left"] < 0.2
