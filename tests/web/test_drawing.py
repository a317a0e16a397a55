"""Slices, boxes, channels and differences, drawn as PNG files."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from symsmooth.io import ImageFile
from symsmooth.web import pictures, tasks

from ..serving import reporter

rng = np.random.default_rng(0)


def view(first: Path, **more: Any) -> np.ndarray[Any, Any]:
    """What is drawn, as pixels."""
    wanted = {"first": first, "second": None, "at": (), "box": None, "channel": None,
              "channels": 1, "low": 0.0, "high": 255.0, "tints": [], "limits": [], "blend": None,
              **more}  # fmt: skip
    with Image.open(io.BytesIO(tasks.draw(wanted, reporter()))) as opened:
        return np.asarray(opened)


def test_a_view_is_a_slice_a_box_a_channel_or_a_difference(tmp_path: Path) -> None:
    pixels = rng.integers(0, 256, (3, 20, 24, 3), np.uint8)
    first, second = tmp_path / "first.npy", tmp_path / "second.npy"
    np.save(first, pixels)
    np.save(second, pixels // 2)
    of_colour: dict[str, Any] = {"channels": 3, "at": (1,)}
    np.testing.assert_array_equal(view(first, **of_colour), pixels[1])
    np.testing.assert_array_equal(view(first, **of_colour, box=(4, 2, 8, 6)), pixels[1, 2:8, 4:12])
    np.testing.assert_array_equal(view(first, **of_colour, channel=2), pixels[1, ..., 2])
    removed = view(first, **of_colour, second=second, low=-255.0)
    expected = (pixels[1] - pixels[1] // 2 + 255.0) / 2
    assert np.abs(removed - expected).max() <= 1


def test_two_channels_are_green_and_magenta_each_in_its_own_range(tmp_path: Path) -> None:
    pixels = np.zeros((20, 24, 2), np.float32)
    pixels[:10, :, 0] = 4.0  # a dim one above
    pixels[:, :12, 1] = 900.0  # a bright one on the left
    first, second = tmp_path / "first.npy", tmp_path / "second.npy"
    np.save(first, pixels)
    np.save(second, pixels)
    both: dict[str, Any] = {"channels": 2, "tints": ["green", "magenta"]}
    shown = view(first, **both, limits=[(0.0, 4.0), (0.0, 900.0)])
    corners = [tuple(shown[y, x].tolist()) for y, x in ((0, 0), (0, 23), (19, 0), (19, 23))]
    assert corners == [(255, 255, 255), (0, 255, 0), (255, 0, 255), (0, 0, 0)]
    removed = view(first, **both, limits=[(-1.0, 1.0)] * 2, second=second)
    assert np.ptp(removed) == 0  # nothing was: it is grey all over
    assert abs(int(removed[0, 0, 0]) - 127) <= 1
    one = view(first, channels=2, channel=0, low=0.0, high=4.0)
    assert one.shape == (20, 24)


@pytest.mark.parametrize(
    ("axes", "shape", "axis", "format", "n_tints"),
    [
        ("CYX", (2, 9, 8), 0, "TIFF", 2), ("TCYX", (5, 2, 9, 8), 1, "TIFF", 2),
        ("CYX", (4, 9, 8), 0, "TIFF", 4), ("CYX", (3, 9, 8), 0, "TIFF", 0),
        ("YXS", (9, 8, 3), 2, "TIFF", 0), ("YXS", (9, 8, 4), 2, "TIFF", 0),
        ("YXC", (9, 8, 4), 2, "NPY", 0), ("YX", (9, 8), None, "PNG", 0),
        ("CYX", (30, 9, 8), 0, "TIFF", 0),
    ],
)  # fmt: skip
def test_channels_that_are_no_colours_get_colours(
    axes: str, shape: tuple[int, ...], axis: int | None, format: str, n_tints: int
) -> None:
    tints = pictures.tints_of(ImageFile(np.zeros(shape), axis, None, format, axes=axes))
    assert len(set(tints)) == n_tints


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"at": (3,)}, "no such slice"), ({"at": ()}, "no such slice"),
        ({"at": (0, 0)}, "no such slice"), ({"box": (0, 0, 5)}, "no such part"),
        ({"box": (99, 0, 5, 5)}, "no such part"), ({"channel": 3}, "no such channel"),
    ],
)  # fmt: skip
def test_views_there_are_not_are_refused(
    tmp_path: Path, more: dict[str, Any], message: str
) -> None:
    path = tmp_path / "a.npy"
    np.save(path, np.zeros((3, 20, 24, 3), np.uint8))
    with pytest.raises(ValueError, match=message):
        view(path, **{"channels": 3, "at": (0,), **more})


def test_large_pictures_are_drawn_in_small() -> None:
    assert pictures.reduction(2048, 2048, pictures.MAX_SHOWN) == 1
    assert pictures.reduction(2049, 2048, pictures.MAX_SHOWN) == 2
    assert pictures.reduction(20_000, 10_000, pictures.MAX_SHOWN) == 7


def test_numbers_are_those_that_json_knows() -> None:
    given = {"a": np.float32(1.5), "b": [np.nan, np.inf, (np.int64(3), "x")], "c": None}
    assert pictures.finite(given) == {"a": 1.5, "b": [None, None, [3, "x"]], "c": None}
