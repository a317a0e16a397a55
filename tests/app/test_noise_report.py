"""What a user is told: what noise was found and used, what is doubtful, what went wrong; real methods."""

from __future__ import annotations

import functools
import importlib
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.ndimage
from typer.testing import CliRunner

import symsmooth
from symsmooth import cli
from symsmooth.app import job, messages
from symsmooth.app.messages import UsageError
from symsmooth.io import read_image, write_image
from symsmooth.noise import Correlated, Heteroscedastic, PoissonGaussian, White
from symsmooth.noise.resolve import NAMES
from symsmooth.web import settings as catalogue

from ..fakes import use_methods

Run = Callable[..., Any]
BOTH = "give it alone or with Gaussian noise, not with correlated noise"
PREVIEW = ("--quality", "preview")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(cli.app, [str(a) for a in arguments])


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What the real methods are called with and return, in order."""
    heard: list[dict[str, Any]] = []

    def listening(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def method(image: Any, sigma: Any = None, **options: Any) -> Any:
            found = function(image, sigma, **options)
            heard.append({"method": function.__name__, "sigma": sigma, "found": found, **options})
            return found

        return method

    use_methods(
        monkeypatch, {name: listening(each.function) for name, each in symsmooth.METHODS.items()}
    )
    return heard


def coarse(shape: tuple[int, int] = (64, 72)) -> np.ndarray:
    """A picture in colour with coarse noise, uint8."""
    rng = np.random.default_rng(0)
    noise = scipy.ndimage.gaussian_filter(rng.normal(0, 60, (*shape, 3)), (1.2, 1.2, 0))
    y, x = np.indices(shape)
    wave = 120 + 50 * np.sin(x / 9) * np.cos(y / 11)
    return np.clip(np.rint(wave[..., None] + noise), 0, 255).astype(np.uint8)


def photons() -> np.ndarray:
    """A ramp with photon noise, float32."""
    ramp = np.linspace(20, 2000, 128) * np.ones((128, 1))
    return (2.0 * np.random.default_rng(0).poisson(ramp / 2)).astype(np.float32)


def white(sigma: float = 20.0) -> np.ndarray:
    noise = np.random.default_rng(0).normal(0, sigma, (64, 64))
    return np.clip(np.rint(120 + noise), 0, 255).astype(np.uint8)


FALLING = 1.0 / (1.0 + np.add.outer(np.arange(8.0), np.arange(8.0)) ** 2)  # energies
COARSE = Correlated(9.0 * FALLING[np.newaxis] / FALLING.mean(), np.eye(1))
PICTURES = {
    "c.png": (coarse, "correlated", "coarse (correlated) noise, about "),
    "p.npy": (photons, "poisson-gaussian", "photon (Poisson) noise, about "),
    "w.png": (white, "gaussian", "white noise, about "),
}


# --- what was used is what is told ------------------------------------------------------------


@pytest.mark.parametrize("name", PICTURES)
def test_denoise_tells_the_noise_in_plain_words_and_as_fields(run: Run, name: str) -> None:
    make, kind, words = PICTURES[name]
    write_image(name, make())
    out = Path(name).with_stem("out")
    line = run("denoise", name, "-o", out, *PREVIEW).stdout
    assert words in line
    assert line.count(" noise, ") == 1
    assert "sigma" not in line
    verbose = run("denoise", name, "-o", out, *PREVIEW, "--verbose", "--overwrite").stdout
    image = read_image(name)
    model = symsmooth.estimate_noise(image.pixels, channel_axis=image.channel_axis)
    assert f"[{model}]" in verbose
    told = json.loads(run("denoise", name, "-o", out, *PREVIEW, "--json", "--overwrite").stdout)
    assert told["noise"]["kind"] == kind == model.kind
    assert told["noise"]["estimated"] is True
    assert "sigma" not in told
    asked = json.loads(run("noise", name, "--json").stdout)
    assert asked["noise"] == told["noise"]  # one level for one file
    assert f"{told['noise']['level']:.3g} of " in line
    assert f"{told['noise']['level']:.3g} of " in run("noise", name).stdout
    assert f"[{model}]" in run("noise", name, "--verbose").stdout
    expected = symsmooth.denoise(
        image.pixels, quality="preview", channel_axis=image.channel_axis, rng=0
    )
    assert np.array_equal(read_image(out).pixels, expected)


def test_a_method_that_knows_only_white_noise_says_what_it_takes_it_for(run: Run) -> None:
    write_image("c.png", coarse())
    line = run("denoise", "c.png", "-o", "o.png", "--method", "bilateral").stdout
    level = symsmooth.estimate_sigma(coarse(), channel_axis=-1)
    assert f"assumed white noise, about {level:.3g} of 255" in line


def test_a_given_level_is_told_as_given(run: Run) -> None:
    write_image("c.png", coarse())
    result = run("denoise", "c.png", "-o", "o.png", *PREVIEW, "--sigma", 5)
    assert "white noise, 5 of 255 (given)" in result.stdout
    assert result.stderr == ""


@pytest.mark.parametrize(
    ("model", "words", "fields"),
    [
        (White(0.0), "no noise found", {"kind": "gaussian", "level": 0.0}),
        (Heteroscedastic(np.array([3.0, 4.0])), "white noise, about 3.54 of 255 (different from channel",
         {"kind": "gaussian", "levels": [3.0, 4.0]}),
        (PoissonGaussian((2.0, 4.0), (-1.0, -3.0)), "17.3 of 255 (variance 3 x signal - 2)",
         {"kind": "poisson-gaussian", "gain": [2.0, 4.0], "offset": [-1.0, -3.0]}),
        (Correlated(np.full((1, 8, 8), 9.0), np.eye(1)), "white noise, about 3 of 255",
         {"kind": "gaussian", "level": 3.0, "coarse_share": 0.0}),
        (COARSE, "coarse (correlated) noise, about 3 of 255", {"kind": "correlated"}),
    ],
)  # fmt: skip
def test_every_model_has_words_and_fields_for_json(model: Any, words: str, fields: Any) -> None:
    pixels = np.full((5, 5), 100.0 + 2 / 3)
    found = messages.describe(model, pixels, 255.0, given=False, assumed=False)
    assert words in found.words
    assert json.loads(json.dumps(found.fields)).items() >= fields.items()


# --- compare shows what denoise does ----------------------------------------------------------


@pytest.mark.parametrize("name", PICTURES)
def test_compare_runs_denoise_as_denoise_does(run: Run, calls: Any, name: str) -> None:
    make, kind, words = PICTURES[name]
    pixels = make()
    write_image(name, pixels)
    result = run("compare", name, "-o", "r.html", "--methods", "denoise:preview,bilateral")
    assert result.exit_code == 0, result.stderr
    axis = -1 if pixels.ndim == 3 else None
    ours, other = calls[1], calls[3]  # each after a small part to warm up
    assert [call["method"] for call in (ours, other)] == ["denoise", "denoise_bilateral"]
    assert ours["sigma"] is None
    assert ours["noise"].kind == kind
    expected = symsmooth.denoise(pixels, quality="preview", channel_axis=axis, rng=0)
    assert np.array_equal(ours["found"], expected)
    assert other["sigma"] == pytest.approx(symsmooth.estimate_sigma(pixels, channel_axis=axis))
    text = Path("r.html").read_text("utf-8")
    assert words in text
    level = messages.describe(ours["noise"], pixels, 1.0, given=False, assumed=False).brief
    assert level in text
    assert f"white, {other['sigma']:.4g}" in text


def test_compare_takes_a_noise_that_is_asked_for(run: Run, calls: Any) -> None:
    write_image("w.png", white())
    methods = "denoise:preview:noise=correlated,denoise:preview"
    result = run("compare", "w.png", "-o", "r.html", "--methods", methods)
    assert result.exit_code == 0, result.stderr
    laws = [type(call["noise"].level).__name__ for call in calls]
    assert laws[:2] == ["Constant", "Constant"]  # of one level
    assert laws[2] == laws[3]


def test_the_web_page_tells_the_same_noise(tmp_path: Path) -> None:
    from symsmooth.web import bridge
    from symsmooth.web.settings import Settings

    write_image(tmp_path / "c.png", coarse())
    image = read_image(tmp_path / "c.png")
    model, words, _ = bridge.noise_of_file(image)
    told = bridge.noise_details(model, words, 255.0, (0.0, 255.0))
    assert told["words"].startswith("coarse (correlated) noise, about ")
    job = bridge.make_job(Settings(quality="preview"), 0.0, 1)
    bridge.run_job([tmp_path / "c.png"], [tmp_path / "out.png"], job, lambda *_: None)
    expected = symsmooth.denoise(coarse(), quality="preview", channel_axis=-1, rng=0)
    assert np.array_equal(read_image(tmp_path / "out.png").pixels, expected)


# --- a level and another noise ----------------------------------------------------------------


def test_sigma_and_another_noise_are_refused_everywhere_with_the_same_words(run: Run) -> None:
    write_image("w.png", white())
    with pytest.raises(ValueError, match="sigma says") as library:
        symsmooth.denoise(white(), 5.0, noise="correlated")
    assert BOTH in str(library.value)
    result = run("denoise", "w.png", "-o", "new/", "--sigma", 5, "--noise", "correlated")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"symsmooth: error: {library.value}\n"
    assert not Path("new").exists()
    result = run(
        "compare", "w.png", "-o", "r.html", "--sigma", 5, "--methods", "denoise:noise=correlated"
    )
    assert (result.exit_code, result.stderr) == (2, f"symsmooth: error: {library.value}\n")
    with pytest.raises(
        UsageError, match="sigma says"
    ):  # what the web page and large files go through
        job.DenoiseJob(symsmooth.METHODS["denoise"], {"noise": "correlated"}, 5.0, "auto", 1, 0)
    accepted = run("denoise", "w.png", "-o", "o.png", *PREVIEW, "--sigma", 5, "--noise", "gaussian")
    assert accepted.exit_code == 0


@pytest.mark.parametrize("kind", symsmooth.METHODS["denoise"].options["noise"].choices)
def test_a_noise_that_is_asked_for_is_used(run: Run, kind: str) -> None:
    """The file is what the function returns with the same noise, and no other noise gives that."""
    write_image("w.png", rough())
    run("denoise", "w.png", "-o", "o.png", *PREVIEW, "--noise", kind)
    written = read_image("o.png").pixels
    for other in symsmooth.METHODS["denoise"].options["noise"].choices:
        if other not in ("auto", kind) and kind != "auto":
            assert not np.array_equal(
                written, symsmooth.denoise(rough(), quality="preview", noise=other)
            )
    expected = symsmooth.denoise(rough(), quality="preview", noise=kind, rng=0)
    assert np.array_equal(written, expected)


def rough() -> np.ndarray:
    """A picture from dark to bright with noise that each model takes for something else."""
    y, x = np.indices((72, 80))
    rng = np.random.default_rng(2)
    photons = rng.poisson(5 + 25 * x / 80 + 5 * np.sin(y / 7)) * 6.0
    grain = scipy.ndimage.gaussian_filter(rng.normal(0, 12, x.shape), 1.0) * 3
    return np.clip(np.rint(photons + grain), 0, 255).astype(np.uint8)


# --- what is doubtful -------------------------------------------------------------------------


def half(value: int) -> np.ndarray:
    """Noise, of which most is empty or saturated."""
    picture = white()
    picture[24:] = value
    return picture


def test_noise_of_which_most_is_empty_or_saturated_is_removed(run: Run) -> None:
    for value in (0, 255):
        write_image("h.png", half(value))
        assert run("denoise", "h.png", "-o", "o.png", *PREVIEW, "--overwrite").stderr == ""
        before, after = (read_image(name).pixels[:4].std() for name in ("h.png", "o.png"))
        assert after < 0.5 * before


@pytest.mark.parametrize(
    ("pixels", "parts"),
    [
        (
            np.indices((64, 64)).sum(0).astype(np.uint8),
            ("almost nothing was removed", "--noise-from X,Y,W,H measures it"),
        ),
        (
            np.where(np.indices((64, 64))[0] < 40, 0, np.indices((64, 64))[1]).astype(np.uint8),
            ("% of the pixels are exactly 0", "--noise-from X,Y,W,H measures it"),
        ),
    ],
)
def test_when_almost_nothing_was_removed_it_is_said_with_the_remedy(
    run: Run, pixels: np.ndarray, parts: tuple[str, ...]
) -> None:
    write_image("a.png", pixels)
    result = run("denoise", "a.png", "-o", "o.png", *PREVIEW)
    assert result.exit_code == 0
    (line,) = result.stderr.splitlines()
    assert line.startswith("symsmooth: warning: a.png: almost nothing was removed: ")
    for part in parts:
        assert part in line
    told = run("denoise", "a.png", "-o", "o.png", *PREVIEW, "--overwrite", "--json")
    assert [f"symsmooth: warning: a.png: {w}" for w in json.loads(told.stdout)["warnings"]] == [
        line
    ]
    quiet = run("denoise", "a.png", "-o", "o.png", *PREVIEW, "--overwrite", "-q")
    assert quiet.output == ""


@pytest.mark.parametrize(("removed", "said"), [(1.9, []), (0.5, ["almost-nothing"])])
def test_what_was_removed_is_compared_with_the_noise_and_not_with_the_stars(removed, said) -> None:
    """Noise of 2 under stars of 100000 was all removed, and called almost nothing."""
    sky = np.random.default_rng(0).normal(300.0, 2.0, (64, 64))
    sky[20, 20] = 1e5
    found = messages.describe(White(2.0), sky, 1e5, given=False, assumed=False)
    warned = messages.find_warnings(found, sky, 1e5, removed, None)
    assert [warning.code for warning in warned] == said


@pytest.mark.parametrize("pixels", [white(), np.full((40, 40), 7, np.uint8)])
def test_nothing_is_said_without_a_reason(run: Run, pixels: np.ndarray) -> None:
    write_image("a.png", pixels)
    assert run("denoise", "a.png", "-o", "o.png", *PREVIEW).stderr == ""
    assert run("denoise", "a.png", "-o", "b.png", "--method", "identity").stderr == ""


@pytest.mark.parametrize("in_boxes", [False, True])
def test_a_level_for_other_units_is_asked_about_on_one_line(
    run: Run, monkeypatch: pytest.MonkeyPatch, in_boxes: bool
) -> None:
    monkeypatch.setattr("symsmooth.app.large._LARGE", 0 if in_boxes else 2**28)
    np.save("a.npy", half(0))
    result = run("denoise", "a.npy", "-o", "o.npy", "--method", "gaussian", "--sigma", 0.05)
    assert result.exit_code == 0
    assert ("boxes 1" in result.stdout) == in_boxes
    (line,) = result.stderr.splitlines()
    assert line.startswith(
        "symsmooth: warning: a.npy: sigma 0.05 is very small for pixels from 0 to "
    )
    assert "was it meant for a picture of 0 to 1?" in line


def test_the_question_is_asked_once_whatever_its_words(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is known by its class, so that Python's own warning is kept back."""
    module = importlib.import_module("symsmooth.noise.level")
    monkeypatch.setattr(module, "units_hint", lambda *given: "quite other words")
    np.save("a.npy", half(0))
    result = run("denoise", "a.npy", "-o", "o.npy", "--method", "gaussian", "--sigma", 0.05)
    assert result.stderr == "symsmooth: warning: a.npy: quite other words\n"


@pytest.mark.parametrize("command", [("compare", "--methods", "gaussian"), ("explain",)])
def test_pages_ask_too(run: Run, command: tuple[str, ...]) -> None:
    write_image("a.png", half(0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = run(*command, "a.png", "-o", "r.html", "--sigma", 0.05)
    assert result.exit_code == 0
    (line,) = result.stderr.splitlines()
    assert "was it meant for a picture of 0 to 1?" in line


@pytest.mark.parametrize("make", [lambda: np.indices((64, 64)).sum(0).astype(np.uint8), white])
def test_large_files_tell_the_same(run: Run, monkeypatch: pytest.MonkeyPatch, make: Any) -> None:
    np.save("a.npy", make())
    small = run("denoise", "a.npy", "-o", "s.npy", *PREVIEW, "--json")
    monkeypatch.setattr("symsmooth.app.large._LARGE", 0)
    boxes = run("denoise", "a.npy", "-o", "l.npy", *PREVIEW, "--json")
    told = json.loads(small.stdout), json.loads(boxes.stdout)
    assert told[1]["parameters"]["boxes"] == 1
    assert told[0]["noise"] == told[1]["noise"]
    assert told[0]["warnings"] == told[1]["warnings"]
    assert len(told[0]["warnings"]) == (make is not white)


# --- errors for scripts -----------------------------------------------------------------------


def test_errors_are_json_on_stdout_if_asked_for(run: Run) -> None:
    write_image("w.png", white())
    Path("bad.png").write_bytes(b"no picture")
    for command in (("denoise", "-o", "out/", "--method", "identity"), ("noise",)):
        result = run(*command, "bad.png", "w.png", "gone.png", "--json")
        assert (result.exit_code, result.stderr) == (1, "")
        lines = [json.loads(line) for line in result.stdout.splitlines()]
        assert [line["input"] for line in lines] == ["bad.png", "w.png", "gone.png"]
        assert ["error" in line for line in lines] == [True, False, True]
        assert lines[2]["error"] == "gone.png: no such file"


def test_wrong_usage_is_json_too(run: Run) -> None:
    result = run("denoise", "a.png", "-o", "o.png", "--sigma", "-1", "--json")
    assert (result.exit_code, result.stderr) == (2, "")
    told = json.loads(result.stdout)
    assert told["input"] is None
    assert "--sigma must be" in told["error"]


def test_grey_that_was_saved_as_rgb_is_said(run: Run) -> None:
    write_image("g.png", np.stack([white()] * 3, -1))
    told = run("denoise", "g.png", "-o", "o.png", *PREVIEW)
    assert "grey, saved as RGB" in told.stdout
    fields = json.loads(run("denoise", "g.png", "-o", "p.png", *PREVIEW, "--json").stdout)
    assert fields["channels"] == "grey, saved as RGB"


# --- the kinds of noise: one list for everybody --------------------------------------------------


def test_the_list_is_what_methods_know() -> None:
    assert tuple(kind.name for kind in messages.NOISE_KINDS) == NAMES
    assert len({kind.word for kind in messages.NOISE_KINDS}) == len(NAMES)
    assert all(kind.about.endswith(".") for kind in messages.NOISE_KINDS)


def test_the_page_offers_all_of_it_a_box_and_a_file() -> None:
    assert tuple(catalogue.NOISE_NAMES.values()) == NAMES
    assert [*catalogue.NOISES] == [*catalogue.NOISE_NAMES, "box", "file"]
