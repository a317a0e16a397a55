"""``symsmooth explain``: what is shown is what the equations say."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from symsmooth import cli
from symsmooth.core.image import open_image
from symsmooth.filters import weights
from symsmooth.filters.sinkhorn import sinkhorn_knopp
from symsmooth.io import write_image
from symsmooth_repro.explain.learning import H_S, PATCH, Learned, learn
from symsmooth_repro.explain.page import explain_page

from ..conftest import audit

SIGMA = 20.0


@pytest.fixture(scope="module")
def noisy(camera: np.ndarray) -> np.ndarray:
    return 255 * camera[:56] + np.random.default_rng(0).normal(0, SIGMA, (56, 64))


@pytest.fixture(scope="module")
def learned(noisy: np.ndarray) -> Learned:
    return learn(noisy, SIGMA)


def test_weights_are_those_of_the_filters(noisy: np.ndarray, learned: Learned) -> None:
    """Before: D^-1 W.  After: one Sinkhorn-Knopp iteration.  Both against the sparse matrix."""
    picture = open_image(noisy)
    h_r = SIGMA / picture.scale * PATCH
    W = weights.regulated_nlm(picture.noisy, PATCH, H_S, h_r).to_sparse()
    once = sinkhorn_knopp(W, 1)
    assert len(learned.neighbours) == 4
    for each in learned.neighbours:
        i = np.ravel_multi_index(each.place, noisy.shape)
        row = W[[i]].toarray()[0]
        np.testing.assert_allclose(each.before.ravel(), row / row.sum(), atol=1e-6)
        after = once.row_scale[i] * row * once.col_scale
        np.testing.assert_allclose(each.after.ravel(), after, atol=1e-6)
        assert each.similarity[each.place] == 1.0
        assert 0 <= each.weak_after <= 1


def test_maps_are_averages_over_clusters(learned: Learned) -> None:
    result = learned.result
    assert learned.clusters.shape == (56, 64, 3)
    assert 0 <= learned.clusters.min() <= learned.clusters.max() <= 1 + 1e-5
    assert learned.effective_clusters.min() >= 0.99
    assert learned.effective_clusters.max() <= result.refined_clusters
    assert np.isfinite(learned.appearance).all()
    near = np.abs(learned.appearance - result.pilot).mean()
    assert near < SIGMA / 2  # clusters look like what they stand for
    assert all(sum(share for share, _ in each.clusters) <= 1.001 for each in learned.neighbours)


def test_popular_patches_lose(learned: Learned) -> None:
    """after / before is larger for the less popular: the paper's argument."""
    for each in learned.neighbours:
        known = each.before > 1e-5 * each.before.max()
        ratio = each.after[known] / each.before[known]
        correlation = np.corrcoef(np.log(ratio), np.log(learned.popularity[known]))[0, 1]
        assert correlation < -0.5


@pytest.mark.parametrize("shape", [(9, 7), (17, 16, 3), (16, 20, 2)])
def test_small_and_coloured_pictures(shape: tuple[int, ...]) -> None:
    noisy = np.random.default_rng(1).normal(100, SIGMA, shape)
    text = explain_page("a.png", learn(noisy, SIGMA), {})
    assert text.startswith("<!doctype html>")


def test_a_large_picture_is_cut_to_its_busiest_part(noisy: np.ndarray) -> None:
    part = learn(noisy, SIGMA, side=24)
    assert part.noisy.shape == (24, 24)
    np.testing.assert_array_equal(part.noisy, noisy[part.part])


def test_without_noise_there_is_nothing_to_explain(noisy: np.ndarray) -> None:
    with pytest.raises(ValueError, match="there is no noise"):
        learn(noisy, 0.0)


# --- the command ------------------------------------------------------------------------------


def run(*arguments: object) -> Any:
    return CliRunner().invoke(cli.app, ["explain", *map(str, arguments)])


@pytest.fixture
def file(noisy: np.ndarray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_image("in.png", np.clip(np.rint(noisy), 0, 255).astype(np.uint8))
    return Path("in.png")


def test_the_page_is_written_whole(file: Path) -> None:
    result = run(file, "--out", "e.html", "--side", 48)
    assert result.exit_code == 0, result.stderr
    assert "the page is e.html" in result.stdout
    text = Path("e.html").read_text("utf-8")
    for part in ("48x48 pixels", "delta(k)", "SURE", "Good neighbours", "Its clusters"):
        assert part in text


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (("gone.png", "--out", "e.html"), 1, "no such file"),
        (("in.png", "--out", "e.html", "--sigma", "0"), 1, "there is no noise"),
        (("gone.png", "--out", "no/e.html"), 1, "no such file"),
        (("in.png", "--out", "in.png"), 2, "is a web page; name it in.html"),
    ],
)
def test_errors_are_one_line_and_leave_nothing(
    file: Path, arguments: tuple[str, ...], code: int, complaint: str
) -> None:
    result = run(*arguments)
    assert result.exit_code == code
    (line,) = result.stderr.splitlines()
    assert complaint in line
    assert [path.name for path in Path().iterdir()] == ["in.png"]


def test_what_to_install_is_said_in_one_line(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = run(file, "--out", "e.html")
    assert result.exit_code == 1
    (line,) = result.stderr.splitlines()
    assert "pip install 'symsmooth[plots]'" in line


# --- in a browser -----------------------------------------------------------------------------


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_it_opens_on_any_screen(
    visit: Any,
    learned: Learned,
    tmp_path: Path,
    width: int,
    scheme: str,
) -> None:
    path = tmp_path / "e.html"
    path.write_text(explain_page("<a>.png", learned, {"Note": "a < b"}), "utf-8")
    assert path.stat().st_size < 3e6
    page = visit(path, viewport={"width": width, "height": 800}, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    sizes = page.locator("main .panels img, .thumbs img").evaluate_all(
        "all => all.map(i => i.naturalWidth)"
    )
    assert len(sizes) > 60
    assert min(sizes) > 0
    assert page.locator(".plot svg").count() == 2
    assert page.locator("details.item").count() == len(learned.neighbours)
    assert page.locator("details.item[open]").count() == 1  # the most telling one
    assert page.evaluate("document.documentElement.scrollHeight") < 7000  # eight screens of a phone
    last = page.locator("details.item").last
    last.locator("summary").click()
    assert last.locator(".lens img").first.is_visible()
    assert not last.locator(".strip.reduced").count()  # few pixels, enlarged as they are
    for section in page.locator("main > section").all():
        assert section.locator("p, dl").count() > 0  # each figure is explained
    assert audit(page) == []
