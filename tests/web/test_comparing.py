"""Methods side by side on one slice, and reports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile

from symsmooth.core.metrics import psnr
from symsmooth.io import write_image
from symsmooth.web import tasks
from symsmooth.web.sessions import VIEW

from ..serving import asked, reporter

LIMIT = 10**7
rng = np.random.default_rng(0)


def make(folder: Path, name: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder / name


def stack_with_reference(tmp_path: Path) -> dict[str, Any]:
    """Three slices and what they were without noise."""
    clean = np.broadcast_to(40.0 * np.hypot(*np.mgrid[-24:24, -24:24]), (3, 48, 48))
    noisy = clean + rng.normal(0, 30, clean.shape)
    path, reference = make(tmp_path, "stack.tif"), make(tmp_path / "clean", "stack.tif")
    for place, pixels in ((path, noisy), (reference, clean)):
        tifffile.imwrite(place, pixels.astype("f4"), imagej=True, metadata={"axes": "ZYX"})
    found = tasks.inspect_file(path, tmp_path, LIMIT, reporter())
    assert tasks.inspect_reference(reference, tmp_path, LIMIT, reporter()) == {}
    return found


def test_methods_are_compared_on_one_slice_with_the_clean_one(tmp_path: Path) -> None:
    found = stack_with_reference(tmp_path)
    into = tmp_path / "run"
    into.mkdir()
    names = ["denoise", "gaussian", "bm3d"]
    details = tasks.compare(
        tmp_path, tmp_path / "clean", names, (2,), into, asked(), 1, LIMIT, reporter()
    )
    json.dumps(details, allow_nan=False)
    assert details["clean"]
    noisy, clean = np.load(tmp_path / VIEW)[2], np.load(tmp_path / "clean" / VIEW)[2]
    peak = float(np.ptp(noisy))
    assert details["noisy"]["psnr"] == pytest.approx(psnr(noisy, clean, peak))
    for number, panel in enumerate(details["panels"]):
        made = np.load(into / f"result-{number}.npy")
        assert panel["psnr"] == pytest.approx(psnr(made, clean, peak))
        assert panel["psnr"] > details["noisy"]["psnr"]
        assert panel["removed"] == pytest.approx(np.std(noisy - made), rel=1e-3)
    given = {"name": "stack.tif", "info": found["info"], "details": details, "at": (2,)}
    page = tasks.report(given, tmp_path, into, tmp_path / "clean", "compare", reporter())
    text = page.read_text("utf-8")
    assert page.name == "stack-compared.html"
    assert "depth 3" in text
    assert "PSNR" in text


def test_a_comparison_of_a_slice_there_is_not_is_refused(tmp_path: Path) -> None:
    stack_with_reference(tmp_path)
    for at in ((3,), (0, 0, 0)):
        with pytest.raises(ValueError, match="no such slice"):
            tasks.compare(
                tmp_path, None, ["denoise", "gaussian"], at, tmp_path, asked(), 1, LIMIT,
                reporter(),
            )  # fmt: skip


def test_a_report_of_one_result_needs_no_clean_picture(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    write_image(path, np.clip(rng.normal(120, 20, (64, 64)), 0, 255).astype(np.uint8))
    found = tasks.inspect_file(path, tmp_path, LIMIT, reporter())
    into = tmp_path / "run"
    into.mkdir()
    place = {
        "at": (),
        "visible": None,
        "info": found["info"],
        "view": tmp_path / VIEW,
        "frames": [],
    }
    details = tasks.denoise(path, place, into, asked(), 1, LIMIT, reporter())
    given = {"name": "a.png", "info": found["info"], "details": details, "at": ()}
    page = tasks.report(given, tmp_path, into, None, "denoise", reporter())
    assert page.name == "a-denoised.html"
    assert "Slice" not in page.read_text("utf-8")
