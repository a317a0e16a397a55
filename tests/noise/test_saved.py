"""Models of noise as text and as files: exact to the last bit, and not trusted."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symsmooth import denoise, estimate_noise, load_noise, save_noise
from symsmooth.io import FileError
from symsmooth.noise import Correlated, Heteroscedastic, PoissonGaussian, Rician, White
from symsmooth.noise.model import Finding, PixelRange
from symsmooth.noise.saved import MAX_CHARACTERS, from_json, to_json
from symsmooth.noise.spectrum import sample_energies

from .test_models import MODELS, coarse_noise

GREY = np.random.default_rng(0).poisson(np.linspace(5, 90, 64), (48, 64)).astype(np.float64)
COLOUR = (
    np.linspace(40, 200, 64)[:, np.newaxis]
    + np.zeros((64, 64, 1))
    + 6 * coarse_noise((64, 64, 3), seed=3)
)
SAVED = {name: model for name, model in MODELS.items() if name != "map"} | {
    "none": White(0.0),
    "rician": Rician(3.0, zero=0.5),
    "float32 levels": Heteroscedastic(np.array([1.1, 2.2, 5.3], np.float32)),
    "pedestal": PoissonGaussian((1.3,), (-20.0,), (17.0,)),
    "estimated grey": estimate_noise(GREY),
    "estimated photons": estimate_noise(GREY, noise="poisson-gaussian"),
    "estimated colour": estimate_noise(COLOUR, channel_axis=-1),
    "four channels": estimate_noise(
        np.concatenate([COLOUR, 300 - COLOUR[::-1, ::-1, :1]], -1), channel_axis=-1
    ),
    "with an empty channel": estimate_noise(
        np.stack([GREY, np.full_like(GREY, 3.0) + (GREY > 60), GREY[::-1]], -1), channel_axis=-1
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SAVED)
def test_a_model_from_a_file_denoises_to_the_same_bits(name, tmp_path: Path) -> None:
    model = SAVED[name]
    save_noise(model, tmp_path / "camera.json")
    again = load_noise(tmp_path / "camera.json")
    assert again == model
    assert again.finding == model.finding
    assert again.pixels == model.pixels
    assert to_json(again) == to_json(model)
    image, axis = (GREY, None) if model.n_channels in (None, 1) else (COLOUR, -1)
    if model.n_channels not in (None, 1, 3):
        image = np.concatenate([COLOUR, COLOUR[::-1]], -1)[..., : model.n_channels]
    results = [
        denoise(image, noise=each, channel_axis=axis, quality="preview", channels="together")
        for each in (model, again)
    ]
    assert np.array_equal(*results)
    assert [p.name for p in tmp_path.iterdir()] == ["camera.json"]


def test_people_can_read_it() -> None:
    camera = replace(
        PoissonGaussian((2.0,), (-188.0,), (100.0,)), pixels=PixelRange("uint16", 96, 4095)
    )
    text = to_json(replace(camera, finding=Finding(1.0, ("ten frames",))))
    assert json.loads(text) == {
        "format": "symsmooth noise",
        "version": 1,
        "about": "Poisson-Gaussian noise, variance 2 * signal + -188",
        "pixels": {"dtype": "uint16", "low": 96, "high": 4095},
        "level": {"law": "photons", "gain": [2.0], "offset": [-188.0], "black": [100.0]},
        "mix": None,
        "spectrum": None,
        "margin": None,
        "finding": {"confidence": 1.0, "reasons": ["ten frames"], "suspected": 0.0},
    }  # fmt: skip
    assert max(map(len, text.splitlines())) < 100
    rows = to_json(MODELS["correlated"]).splitlines()
    assert max(row.count(",") for row in rows) <= 8  # a line for each row of a table


def test_a_map_of_levels_is_not_kept() -> None:
    with pytest.raises(ValueError, match="give it as sigma"):
        to_json(MODELS["map"])


GOOD: dict[str, Any] = json.loads(to_json(MODELS["margin"]))
BAD: dict[str, dict[str, Any]] = {
    "its parts have different numbers of channels: 2 and 3": {"margin": [1.0, 1.0]},
    "unknown field 'levels'": {"levels": 3},
    "margin must be positive": {"margin": [1.0, 0.0, 1.0]},
    "margin must be a list": {"margin": 3.0},
    "level is missing": {"level": None},
    "no law that is one of constant, photons": {"level": {"law": "fractal"}},
    "law constant has the fields sigma": {"level": {"law": "constant", "sigma": 1.0, "gain": 2}},
    "sigma must be positive": {"level": {"law": "constant", "sigma": [1.0, -1.0, 2.0]}},
    "noise of level 0 has no channels": {"level": {"law": "constant", "sigma": 0.0}},
    "sigma must be made of numbers": {"level": {"law": "constant", "sigma": [True, 1, 2]}},
    "sigma must be finite": {"level": {"law": "constant", "sigma": 1e200}},
    "gain must be positive": {
        "level": {"law": "photons", "gain": [1, 0, 1], "offset": [0, 0, 0], "black": [0, 0, 0]}
    },
    "gain, offset and black must have": {
        "level": {"law": "photons", "gain": [1, 1, 1], "offset": [0], "black": [0, 0, 0]}
    },
    "brightness must grow": {"level": {"law": "place curve", "brightness": [2, 1], "sigma": [1, 1]}},
    "brightness must have rows of one length": {
        "level": {"law": "curve", "brightness": [[1, 2], [1]], "sigma": [[1, 1]], "span": [[0, 9]]}
    },
    "span must be the least": {
        "level": {"law": "curve", "brightness": [[1, 2]] * 3, "sigma": [[1, 1]] * 3, "span": [[9, 0]] * 3}
    },
    "orthonormal": {"mix": [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 0.0, 1.0]]},
    "mix must be a table": {"mix": [[[1.0]]]},
    "no negative energy": {"spectrum": [[[-1.0] * 8] * 8] * 3},
    "8 x 8 energies": {"spectrum": [[[1.0] * 8] * 7] * 3},
    "version must be a whole number": {"version": True},
    "of version 7, and this symsmooth knows 1; update": {"version": 7},
    "dtype must be one of NumPy's": {"pixels": {"dtype": "uint17", "low": 0, "high": 1}},
    "pixels has the fields": {"pixels": {"dtype": "uint8"}},
    "finding has the fields": {"finding": {"reasons": []}},
    "Rician noise has no mix": {"level": {"law": "rician", "sigma": 1.0, "zero": 0.0}},
}  # fmt: skip


@pytest.mark.parametrize("message", BAD)
def test_a_damaged_model_is_refused_in_one_line(message) -> None:
    from_json(json.dumps(GOOD))
    with pytest.raises(ValueError, match=r"is a (damaged )?noise model") as refused:
        from_json(json.dumps(GOOD | BAD[message]))
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[1]", "nonsense", '{"format": "other"}', "[" * 100_000, "NaN", "9" * 5000,
     " " * (MAX_CHARACTERS + 1),
     json.dumps(GOOD).replace("800.0", "NaN"), json.dumps(GOOD).replace("800.0", "-Infinity")],
    ids=lambda text: text[:12],
)  # fmt: skip
def test_what_is_no_model_is_refused_in_one_line(text: str, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(FileError, match=r"x\.json: is no noise model") as refused:
        load_noise(tmp_path / "x.json")
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 400


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_whatever_is_changed_in_a_file_it_is_refused_or_finite(data) -> None:
    """A leaf of the JSON becomes something else: one line, or a model that gives finite pixels."""
    stored = json.loads(json.dumps(GOOD))
    place: Any = stored
    while True:
        key = data.draw(
            st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place)))
        )
        if not (isinstance(place[key], dict | list) and place[key]):
            break
        place = place[key]
    place[key] = data.draw(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=3)
        | st.lists(st.floats(), max_size=3)
    )  # fmt: skip
    try:
        model = from_json(json.dumps(stored))
    except ValueError:
        return
    pixels = np.float32(COLOUR[:24, :24])
    bound = model.bind(pixels)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        white = bound.whiten(pixels)
    assert white.shape == pixels.shape


def test_files_that_are_none_are_refused(tmp_path: Path) -> None:
    for name, message in (("none.json", "no such file"), (".", "cannot be read|is no file")):
        with pytest.raises(FileError, match=message):
            load_noise(tmp_path / name)
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FileError, match="it is no text"):
        load_noise(tmp_path / "binary.json")
    with pytest.raises(FileError, match=r"name it .*camera\.json"):
        save_noise(White(1.0), tmp_path / "camera.yaml")
    with pytest.raises(FileError, match="there is no folder"):
        save_noise(White(1.0), tmp_path / "no" / "camera.json")


def test_a_model_is_refused_for_pixels_in_other_units() -> None:
    eight = np.random.default_rng(0).normal(120, 10, (64, 64)).clip(0, 255).astype(np.uint8)
    model = estimate_noise(eight)
    assert model.pixels is not None
    assert model.pixels.dtype == "uint8"
    with pytest.raises(
        ValueError, match=r"for uint8 pixels from .* and the image has uint16 pixels"
    ):
        denoise(eight.astype(np.uint16) * 257, noise=model, quality="preview")
    with pytest.raises(ValueError, match="in the same units"):
        denoise(eight / 255, noise=model, quality="preview")
    in_floats = denoise(eight.astype(np.float32), noise=model, quality="preview")
    assert np.abs(in_floats - denoise(eight, noise=model, quality="preview")).max() <= 0.51


def test_a_model_of_three_channels_serves_a_picture_of_which_fewer_count() -> None:
    """Blue is empty: what is left has the noise of red and green, with what they share."""
    shared = np.array([[1.0, 0.8, 0.3], [0.0, 0.6, 0.2], [0.0, 0.0, 2.0]])
    noise = 6 * np.random.default_rng(0).standard_normal((96, 96, 3)) @ shared
    mixed = np.linalg.eigh(shared.T @ shared)[1]
    model = Correlated(sample_energies(noise @ mixed), mixed)
    for own in ([0, 1], [2], [0, 2]):
        part = model.of_channels(np.array(own))
        white = part.whiten(np.float32(noise[..., own])).reshape(-1, len(own))
        assert np.allclose(np.cov(white.T), np.eye(len(own)), atol=0.05)
    pixels = 100 + noise
    pixels[..., 2] = 7.0
    found = denoise(pixels, noise=model, channel_axis=-1, quality="preview")
    assert (found[..., 2] == 7.0).all()
    assert found[..., :2].std() < 0.3 * pixels[..., :2].std()
