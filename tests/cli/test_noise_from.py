"""--noise-from and the reasons of `noise`, with the real method."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.ndimage
from typer.testing import CliRunner

from symsmooth import cli, denoise, estimate_noise
from symsmooth.io import read_image, write_image


@pytest.fixture(scope="module")
def picture(tmp_path_factory) -> Path:
    """Coarse noise of standard deviation 6 on two shades of grey."""
    noise = scipy.ndimage.gaussian_filter(np.random.default_rng(0).standard_normal((96, 96)), 0.7)
    clean = np.where(np.arange(96) < 48, 90.0, 160.0)
    path = tmp_path_factory.mktemp("noisy") / "in.png"
    write_image(path, np.rint(clean + 6 * noise / noise.std()).astype(np.uint8))
    return path


def run(*arguments: object):
    return CliRunner().invoke(cli.app, [str(a) for a in arguments])


def test_it_gives_what_the_library_gives(picture: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.png"
    done = run(
        "denoise", picture, "-o", out, "--quality", "fast", "--noise-from", "2,3,40,60", "--json"
    )
    assert done.exit_code == 0, done.output
    pixels = read_image(picture).pixels
    model = estimate_noise(pixels, region=(2, 3, 40, 60))
    assert model.sigma == pytest.approx(6.0, rel=0.2)
    expected = denoise(pixels, noise=model, quality="fast", rng=0)
    assert np.array_equal(read_image(out).pixels, expected)
    assert json.loads(done.output)["noise"]["level"] == pytest.approx(model.sigma)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--noise-from", "1,2,3"], "X,Y,WIDTH,HEIGHT"),
        (["--noise-from", "0,0,9,9"], "at least 16 pixels a side inside a picture of 96 x 96"),
        (["--noise-from", "0,0,40,40", "--sigma", "3"], "without sigma and noise"),
        (["--noise-from", "0,0,40,40", "--noise", "gaussian"], "without sigma and noise"),
        (["--noise-from", "0,0,40,40", "--method", "nlm"], "nlm handles white noise only"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(picture, tmp_path, options, message) -> None:
    done = run("denoise", picture, "-o", tmp_path / "out.png", *options)
    assert done.exit_code != 0
    assert message in done.output
    assert not list(tmp_path.iterdir())


def test_noise_says_why_and_how_sure(picture: Path) -> None:
    fields = json.loads(run("noise", picture, "--json").output)["noise"]
    assert 0 <= fields["confidence"] <= 1
    assert fields["reasons"][0] in run("noise", picture).output
