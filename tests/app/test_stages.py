"""What is shown of a run is in plain words: no name of a step or parameter that only we know."""

from __future__ import annotations

import re

import numpy as np
import pytest
from skimage import data
from typer.testing import CliRunner

import symsmooth
from symsmooth import METHODS, cli
from symsmooth.app.messages import plain_stage
from symsmooth.io import write_image

from ..dngs import dng

JARGON = {"members", "estimates", "clusters", "aggregation", "eigenvectors", "wiener", "steering"}


@pytest.mark.parametrize("name", METHODS)
def test_steps_of_methods_are_said_in_plain_words(name: str) -> None:
    image = np.random.default_rng(0).normal(100, 20, (40, 40))
    told: set[str] = set()
    METHODS[name](image, 20.0, progress=lambda _, what: told.add(plain_stage(what)))
    assert told
    assert not any(word.strip(":,") in JARGON for line in told for word in line.split())


def test_the_result_line_has_words_and_verbose_says_the_rest(tmp_path) -> None:
    photo = data.astronaut()[:96, 180:276]
    noisy = photo + np.random.default_rng(0).normal(0, 25, photo.shape)
    write_image(tmp_path / "a.jpg", noisy.clip(0, 255).astype(np.uint8))
    words = ["denoise", str(tmp_path / "a.jpg"), "-o", str(tmp_path / "b.jpg"), "--quality", "fast"]
    line = CliRunner().invoke(cli.app, words).stdout
    assert "tone" not in line
    verbose = CliRunner().invoke(cli.app, [*words, "--verbose", "--overwrite"]).stdout
    result = symsmooth.fit_denoise(noisy.clip(0, 255).astype(np.uint8), channel_axis=-1)
    assert ("tone: noise darkens" in verbose) == (result.tone > 0)


def test_hot_pixels_are_counted_in_words(tmp_path) -> None:
    from symsmooth_repro.sensor import Sensor

    sensor = Sensor(100)
    mosaic, _ = sensor.expose(data.astronaut()[60:188, 120:260] / 255.0)
    mosaic[50, 60] = sensor.white - 1
    (tmp_path / "a.dng").write_bytes(dng(mosaic, sensor))
    words = ["denoise", str(tmp_path / "a.dng"), "-o", str(tmp_path / "b.dng")]
    line = CliRunner().invoke(cli.app, [*words, "--quality", "preview"]).stdout
    assert re.search(r", \d+ hot pixels? replaced, ", line)
