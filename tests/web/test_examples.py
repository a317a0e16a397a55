"""Examples: each is noisy, and comes with its clean picture."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from symsmooth.core.metrics import psnr
from symsmooth.web import tasks
from symsmooth.web.pictures import write_example
from symsmooth.web.sessions import VIEW
from symsmooth.web.settings import EXAMPLES

from ..serving import reporter

LIMIT = 10**7


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_is_noisy_and_has_its_clean_picture(tmp_path: Path, name: str) -> None:
    found = tasks.example(name, tmp_path, LIMIT, reporter())
    json.dumps(found["info"], allow_nan=False)
    assert found["info"]["noise"]["level"] > 0
    noisy = np.load(tmp_path / VIEW)
    clean = np.load(found["reference"] / VIEW)
    assert noisy.shape == clean.shape
    assert 10 < psnr(noisy, clean, float(np.ptp(clean))) < 32
    assert [each["letter"] for each in found["info"]["others"]] == (
        ["Z"] if name == "stack" else []
    )
    assert (found["info"]["channels"] == 3) == (name == "colour")


def test_there_is_no_other_example(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no example"):
        write_example("passwd", tmp_path, tmp_path)
