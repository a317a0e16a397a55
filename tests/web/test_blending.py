"""Strength after the fact: what is shown and taken home lies between the picture and its result."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from symsmooth.core.blend import blend
from symsmooth.io import read_image
from symsmooth.web import pictures
from symsmooth.web.sessions import VIEW
from symsmooth.web.tasks import blend as blend_task

from ..serving import picture as sample
from ..serving import reporter, wait_for

rng = np.random.default_rng(0)


def colour_png() -> bytes:
    out = io.BytesIO()
    pixels = np.clip(rng.normal(120, 30, (40, 48, 3)), 0, 255).astype(np.uint8)
    Image.fromarray(pixels).save(out, "PNG")
    return out.getvalue()


def pixels_of(content: bytes) -> np.ndarray[Any, Any]:
    with Image.open(io.BytesIO(content)) as opened:
        return np.asarray(opened)


def test_a_view_is_blended_in_all_channels_before_one_is_chosen(tmp_path: Path) -> None:
    noisy, result = (rng.integers(0, 256, (20, 24, 3), np.uint8) for _ in range(2))
    np.save(tmp_path / VIEW, noisy)
    np.save(tmp_path / "result-0.npy", result)
    wanted: dict[str, Any] = {
        "first": tmp_path / "result-0.npy", "second": None, "at": (), "box": (2, 3, 9, 8), "channel": None,
        "channels": 3, "low": 0.0, "high": 255.0, "tints": [], "limits": [],
        "blend": (tmp_path / VIEW, 0.7, 0.2),
    }  # fmt: skip
    expected = blend(noisy, result, 0.7, 0.2, -1)[3:11, 2:11]
    np.testing.assert_array_equal(pixels_of(pictures.draw_view(wanted)), expected)
    one = pixels_of(pictures.draw_view({**wanted, "channel": 1}))
    np.testing.assert_array_equal(one, expected[..., 1])
    removed = {
        **wanted,
        "first": tmp_path / VIEW,
        "second": tmp_path / "result-0.npy",
        "low": -255.0,
    }
    left = (noisy[3:11, 2:11].astype(float) - expected + 255) / 2
    assert np.abs(pixels_of(pictures.draw_view(removed)) - left).max() <= 1


@pytest.mark.parametrize("name", ["a.nii.gz", "a.b.npy"])
def test_the_name_of_a_blend_keeps_its_ending(tmp_path: Path, name: str) -> None:
    if name.endswith("gz"):
        pytest.importorskip("nibabel")
    from symsmooth.io import write_image

    stem, ending = ("a", ".nii.gz") if name.endswith("gz") else ("a.b", ".npy")
    noisy, denoised = tmp_path / name, tmp_path / f"{stem}-denoised{ending}"
    write_image(noisy, np.zeros((6, 7, 8), np.float32))
    write_image(denoised, np.ones((6, 7, 8), np.float32))
    (made,) = blend_task([noisy], [denoised], 0.25, 0.25, 10**6, reporter())
    assert made.name == f"{stem}-denoised-blend{ending}"
    np.testing.assert_array_equal(read_image(made).pixels, np.full((6, 7, 8), 0.25))


def test_a_blend_is_asked_for_in_the_address(come: Any) -> None:
    person = come()
    sent = colour_png()
    dropped = person.drop("a.png", sent)
    done = person.run("gaussian")
    here = f"{person.here}/{dropped['id']}"
    noisy, result = pixels_of(sent), pixels_of(person.ask(f"{here}/result")[1])
    assert not np.array_equal(noisy, result)
    for words, expected in {
        "0.0": noisy,
        "100.100": result,
        "50.50": blend(noisy, result, 0.5),
        "70.20": blend(noisy, result, 0.7, 0.2, -1),
    }.items():
        status, content = person.ask(f"{here}/result?blend={words}")
        assert status == 200
        np.testing.assert_array_equal(pixels_of(content), expected)
        wanted = f"what=result&of={done['result']['number']}&panel=0&blend={words}"
        assert person.ask(f"{here}/view?{wanted}")[0] == 200
    for words in ("101.0", "5", "1.2.3", "x", "-1.5", "0.5e1"):
        assert person.ask(f"{here}/result?blend={words}")[0] == 404
        assert person.ask(f"{here}/view?what=result&of=1&blend={words}")[0] == 404


def test_the_archive_holds_the_blends_that_are_asked_for(come: Any) -> None:
    person = come()
    ids = [person.drop(f"{name}.png", colour_png())["id"] for name in "ab"]
    person.run("gaussian")
    singles = [
        person.ask(f"{person.here}/{id}/result{query}")[1]
        for id, query in zip(ids, ("?blend=70.20", ""), strict=True)
    ]
    status, packed = person.ask(f"{person.here}/results.zip?{ids[0]}=70.20")
    assert status == 200
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        assert archive.namelist() == ["a-denoised-blend.png", "b-denoised.png"]
        assert [archive.read(name) for name in archive.namelist()] == singles
    assert person.ask(f"{person.here}/results.zip?{ids[1]}=170.20")[0] == 404


def test_grey_pictures_have_one_slider_and_colour_two(enter: Any, tmp_path: Path) -> None:
    visitor = enter()
    page = visitor.page
    (tmp_path / "colour.png").write_bytes(colour_png())
    (tmp_path / "grey.png").write_bytes(sample(format="PNG"))
    visitor.dropped(tmp_path / "colour.png")
    assert page.locator("#blend").is_hidden()
    visitor.choose("quality", "Preview")
    visitor.run()
    assert page.locator("#blend input").count() == 2
    asked = len(page.locator("#lenses .base").all())
    page.locator("#share").fill("40")  # colour follows
    assert page.locator("#share-colour").input_value() == "40"
    page.locator("#share-colour").fill("90")
    page.locator("#share").fill("60")  # and does not any more
    wait_for(lambda: "60.90" in page.locator("#download").get_attribute("href"), 20)
    visitor.drawn()
    sources = [each.get_attribute("src") for each in page.locator("#lenses .base").all()]
    assert len(sources) == asked
    assert sorted("blend=60.90" in str(source) for source in sources) == [False, True]
    visitor.shot("blend")
    with page.expect_download() as waiting:
        page.locator("#download").click()
    assert waiting.value.suggested_filename == "colour-denoised-blend.png"
    page.locator("#share").fill("100")
    page.locator("#share-colour").fill("100")
    wait_for(lambda: "blend" not in page.locator("#download").get_attribute("href"), 20)
    visitor.dropped(tmp_path / "grey.png")
    visitor.run()
    assert page.locator("#blend input").count() == 1
    visitor.drawn()
    page.locator("#share").fill("30")
    wait_for(lambda: "=30.30" in page.locator("#zip").get_attribute("href"), 20)
    with page.expect_download() as waiting:
        page.locator("#zip").click()
    with zipfile.ZipFile(waiting.value.path()) as packed:
        assert packed.namelist() == ["colour-denoised.png", "grey-denoised-blend.png"]
    link = page.get_by_label("Download grey.png").get_attribute("href")
    assert link.endswith("blend=30.30")
