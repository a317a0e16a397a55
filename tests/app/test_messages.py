"""What is said: warnings with a code and remedies, which programs compare; steps in plain words."""

from __future__ import annotations

import re
from typing import get_args

import numpy as np
import pytest
from skimage import data
from typer.testing import CliRunner

import symsmooth
from napari_symsmooth import run as napari_run
from symsmooth import METHODS, cli
from symsmooth.app.messages import PLAIN, JobWarning, Remedy, plain_stage
from symsmooth.cli import console
from symsmooth.io import write_image
from symsmooth.web import bridge

from ..dngs import dng

REMEDIES = get_args(Remedy)
JARGON = {"members", "estimates", "clusters", "aggregation", "eigenvectors", "wiener", "steering"}


def test_every_surface_has_words_for_the_remedies_it_can_meet() -> None:
    assert set(PLAIN) == set(console.REMEDIES) == set(bridge._REMEDIES) == set(REMEDIES)
    assert set(napari_run._REMEDIES) == set(REMEDIES) - {"floats", "series", "resume"}  # no files


@pytest.mark.parametrize("remedy", REMEDIES)
def test_other_words_have_the_same_remedies(remedy: Remedy) -> None:
    """What the page offers follows from what is in braces, whatever stands around it."""
    old = JobWarning("texture", f"what was said before; {{{remedy}}}", "7")
    new = JobWarning("texture", f"{{{remedy}}} is said in quite another way", "7")
    assert old.remedies == new.remedies == (remedy,)
    (first,), (second,) = bridge.warning_details([old]), bridge.warning_details([new])
    assert first["try"] == second["try"]
    assert "--" not in first["text"] + second["text"]
    assert "{" not in str(old) + str(new) + first["text"] + second["text"]


def test_words_of_users_are_left_alone() -> None:
    """A name with braces, or with an option of the command line in it, is no remedy."""
    warning = JobWarning("unchanged", "{value} {0} --noise correlated {x}: {coarse}", "3")
    assert warning.remedies == ("coarse",)
    assert console.said(warning) == "{value} {0} --noise correlated {x}: --noise correlated"


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
