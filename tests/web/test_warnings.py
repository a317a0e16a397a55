"""What looks doubtful is said on the page as on the command line, in words of the page."""

from __future__ import annotations

import importlib
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from symsmooth.app.messages import JobWarning
from symsmooth.core.user_warnings import UnitsWarning
from symsmooth.io import write_image
from symsmooth.web import tasks
from symsmooth.web.sessions import VIEW
from symsmooth.web.settings import Settings
from symsmooth.web.worker import Reporter

LIMIT = 10**7
Y, X = np.mgrid[:64, :64]
SMOOTH = np.hypot(Y - 20.0, X - 30.0).astype(np.float32)
NOISY = np.clip(np.random.default_rng(0).normal(120, 20, (64, 64)), 0, 255).astype(np.uint8)


def reporter() -> Reporter:
    return Reporter(1, lambda *news: None, set())


def doubts(folder: Path, pixels: Any, work: str, **settings: Any) -> list[dict[str, Any]]:
    path, into = folder / "a.tif", folder / "run"
    into.mkdir()
    write_image(path, pixels)
    found = tasks.inspect_file(path, folder, LIMIT, reporter())
    asked = Settings.of({"quality": "preview", **settings}).as_json()
    if work == "denoise":
        view = {"view": folder / VIEW, "frames": []}
        place = {"at": (), "visible": None, "info": found["info"], **view}
        details = tasks.denoise(path, place, into, asked, 1, LIMIT, reporter())
    else:
        names = ["denoise", "gaussian"]
        details = tasks.compare(
            folder, None, names, (), into, asked, 1, LIMIT, reporter()
        )  # fmt: skip
    json.dumps(details, allow_nan=False)
    return details["warnings"]


@pytest.mark.parametrize("work", ["denoise", "compare"])
def test_when_almost_nothing_was_removed_it_is_said(tmp_path: Path, work: str) -> None:
    found = doubts(tmp_path, SMOOTH, work)
    assert found
    for doubt in found:  # methods that assume another noise have another remedy
        assert "lmost nothing was removed" in doubt["text"]
        assert "--" not in doubt["text"]  # no words of the command line
        assert doubt["try"]  # what the page can do about it


@pytest.mark.filterwarnings("ignore::symsmooth.core.user_warnings.UnitsWarning")  # as in a worker
@pytest.mark.parametrize("work", ["denoise", "compare"])
def test_a_level_that_may_be_meant_for_0_to_1_is_asked_about(tmp_path: Path, work: str) -> None:
    (doubt,) = doubts(tmp_path, NOISY, work, noise="white", level=0.02)
    assert "0 to 1" in doubt["text"]
    assert "--" not in doubt["text"]


@pytest.mark.parametrize("work", ["denoise", "compare"])
def test_nothing_is_said_without_a_reason(tmp_path: Path, work: str) -> None:
    assert doubts(tmp_path, NOISY, work) == []


def test_a_doubt_about_one_method_names_it() -> None:
    from symsmooth.web.tasks import _about

    texture, units = JobWarning("texture", "may be texture"), JobWarning("units", "too small")
    found = _about({texture: ["GSF"], units: ["GSF", "NLM"]}, 2)
    assert [str(each) for each in found] == ["GSF: may be texture", "too small"]
    assert [each.code for each in found] == ["texture", "units"]


def test_the_page_does_the_same_whatever_the_words_of_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A question about units, in other words, is still asked on the page and not printed by a worker."""
    module = importlib.import_module("symsmooth.noise.level")
    monkeypatch.setattr(module, "units_hint", lambda *given: "quite other words")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", UnitsWarning)  # as in a worker
        (doubt,) = doubts(tmp_path, NOISY, "denoise", noise="white", level=0.02)
    assert doubt == {"text": "Quite other words.", "try": []}


def test_the_page_shows_doubts_about_a_comparison(enter: Any, tmp_path: Path) -> None:
    path = tmp_path / "smooth.npy"
    np.save(path, SMOOTH)
    visitor = enter()
    visitor.dropped(path)
    visitor.choose("mode", "Compare")
    visitor.choose("quality", "Preview")
    visitor.run("Compared")
    assert "almost nothing was removed" in visitor.reads("nothing was removed").lower()
    assert visitor.page.locator(".doubt button").first.inner_text() == "Measure it"
