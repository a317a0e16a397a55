"""What the controls offer and say, and what becomes of it."""

from __future__ import annotations

import re
from typing import Any

import pytest

from symsmooth.app.job import DenoiseJob
from symsmooth.io import FileError, format_of
from symsmooth.io.formats import FORMATS, is_raw_name, is_video_name
from symsmooth.methods import DEFAULT, METHODS
from symsmooth.web import bridge
from symsmooth.web import settings as catalogue
from symsmooth.web.settings import PageError, Settings

ONLY_READ = {".webm", ".avi"}  # containers of videos


def test_the_page_offers_every_method_as_it_is() -> None:
    assert {method.name for method in catalogue.METHODS} == set(METHODS)
    assert catalogue.METHODS[0].name == DEFAULT
    for entry in catalogue.METHODS:
        method = METHODS[entry.name]
        assert entry.quality == ("quality" in method.options), entry.name
        assert entry.noise == ("noise" in method.accepts), entry.name
        assert entry.strength == ("strength" in method.options), entry.name
        assert entry.title, entry.name
        assert entry.about.endswith("."), entry.name
        assert entry.time == ("time_axis" in method.accepts), entry.name
    assert set(catalogue.QUALITIES) == set(METHODS[DEFAULT].options["quality"].choices)


def test_the_page_takes_every_file_that_can_be_read() -> None:
    for ending in catalogue.ENDINGS:
        name = f"a{ending}" if ending != ".gz" else "a.nii.gz"  # some systems look at the last part
        if not (is_raw_name(name) or is_video_name(name) or ending in ONLY_READ):
            assert format_of(name), ending
    with pytest.raises(FileError) as refused:
        format_of("a.unknown")
    known = set(re.findall(r"\.[a-z0-9.]+", str(refused.value).partition("use one of")[2]))
    assert len(known) > 15
    known |= {*FORMATS["VIDEO"].read_only, *ONLY_READ}
    assert known - {".zarr"} <= set(catalogue.ENDINGS)  # a folder cannot be dropped


@pytest.mark.parametrize(
    "given",
    [
        None, [], {"unknown": 1}, {"method": "identity"}, {"method": ["denoise"]},
        {"quality": "great"}, {"noise": "pink"}, {"third": "x"}, {"channels": "no"},
        {"strength": 0}, {"strength": "1"}, {"strength": True}, {"strength": float("nan")},
        {"level": -1, "noise": "white"}, {"level": "5"}, {"level": float("inf")},
        {"strength": 10**400}, {"level": 10**400},
        {"chroma_strength": -1}, {"chroma_strength": 0.001}, {"chroma_strength": "1"},
        {"chroma_strength": True}, {"chroma_strength": float("nan")}, {"chroma_strength": 11},
        {"grain": -0.1}, {"grain": 1.1}, {"grain": None}, {"grain": float("nan")}, {"grain": "1"},
        {"noise": "box"}, {"noise": "box", "box": [1, 2, 3]}, {"box": [0, 0, -1, 5]},
        {"box": [0.5, 0, 20, 20]}, {"noise": "coarse", "method": "bm3d"},
        {"noise": "file"}, {"noise": "file", "model": "/etc/passwd"}, {"model": 5},
        {"noise": "file", "model": "n1", "method": "bm3d"},
    ],
)  # fmt: skip
def test_settings_that_cannot_be_are_one_sentence(given: Any) -> None:
    with pytest.raises(PageError, match=r"^[A-Z][^\n]+[.]$"):
        Settings.of(given)


def job(**given: Any) -> DenoiseJob:
    return bridge.make_job(Settings.of(given), 10.0, None)


def test_settings_become_what_the_command_line_says() -> None:
    assert job().options == {"quality": "balanced"}
    assert job(noise="photon").options["noise"] == "poisson-gaussian"
    assert job(noise="coarse").options["noise"] == "correlated"
    assert job(noise="rician").options["noise"] == "rician"
    assert job(noise="white").options["noise"] == "gaussian"
    assert job(noise="white", level=5).sigma == 5
    assert "noise" not in job(noise="white", level=5).options
    assert job(noise="auto", level=5).sigma is None  # of another kind: not used
    assert job(noise="box", box=[1, 2, 30, 40]).noise_region == (1, 2, 30, 40)
    assert job(strength=2.0).options["strength"] == 2.0
    assert job(method="bm3d", strength=2.0).sigma == 20.0  # it assumes more noise
    assert job(method="bm3d", strength=2.0, noise="white", level=3).sigma == 6.0
    assert job(chroma_strength=0, grain=0.25).options == {
        "quality": "balanced", "chroma_strength": 0, "grain": 0.25
    }  # fmt: skip
    assert job(method="gaussian", chroma_strength=2.0, grain=0.5).options == {}  # it has no such
    assert job(channels="apart").options["channels"] == "apart"
    assert "channels" not in job(method="bm3d", channels="apart").options
    assert job(third="time").third == "time"
