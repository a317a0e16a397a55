"""Files that were dropped are inspected, and refused where nothing can be done."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from symsmooth.io import FileError
from symsmooth.web import tasks

from ..serving import reporter

LIMIT = 10**7
rng = np.random.default_rng(0)


def test_a_file_gets_the_ending_of_what_it_holds(tmp_path: Path) -> None:
    for name in ("photo.jpg", "photo", "photo.txt"):
        path = tmp_path / name
        Image.fromarray(rng.integers(0, 256, (32, 32), np.uint8)).save(path, "PNG")
        found = tasks.inspect_file(path, tmp_path, LIMIT, reporter())
        assert found["path"].suffix == ".png"
        found["path"].unlink()


def test_pictures_of_nothing_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "nothing.npy"
    np.save(path, np.full((32, 32), np.nan))
    with pytest.raises(FileError, match="has no usable pixel"):
        tasks.inspect_file(path, tmp_path, LIMIT, reporter())


def test_a_picture_that_memory_cannot_hold_at_work_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "large.npy"
    np.save(path, rng.normal(100, 20, (64, 64)))
    monkeypatch.setattr("symsmooth.web.bridge.memory", lambda: 2**18)
    with pytest.raises(FileError, match="of memory at work; cut it first"):
        tasks.inspect_file(path, tmp_path, LIMIT, reporter())


def test_a_clean_picture_of_another_size_is_refused(tmp_path: Path) -> None:
    path, other = tmp_path / "a.npy", tmp_path / "clean" / "a.npy"
    other.parent.mkdir()
    np.save(path, rng.normal(100, 20, (32, 40)))
    np.save(other, rng.normal(100, 20, (32, 41)))
    tasks.inspect_file(path, tmp_path, LIMIT, reporter())
    with pytest.raises(FileError, match="is 32 x 41, the noisy picture 32 x 40"):
        tasks.inspect_reference(other, tmp_path, LIMIT, reporter())
