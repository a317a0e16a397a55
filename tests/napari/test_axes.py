"""Which axis is what."""

from __future__ import annotations

import pytest

from napari_symsmooth.axes import guess_roles, letters_of


@pytest.mark.parametrize(
    ("labels", "letters"),
    [
        (("-2", "-1"), "YX"),
        (("-3", "-2", "-1"), "QYX"),
        (("z", "y", "x"), "ZYX"),
        (("T", "C", "Z", "Y", "X"), "QCZYX"),
        (("time", "channel", "y", "x"), "QCYX"),
        (("y", "x", "z"), "YXZ"),
        (("z", "slice", "y", "x"), "ZQYX"),
    ],
)
def test_labels_say_what_axes_are(labels, letters) -> None:
    assert letters_of(guess_roles(labels), rgb=False) == letters


def test_colours_come_last() -> None:
    assert letters_of(guess_roles(("t", "y", "x")), rgb=True) == "QYXC"


@pytest.mark.parametrize("role", ["volume", "channels"])
def test_two_axes_of_one_kind_are_refused(role) -> None:
    with pytest.raises(ValueError, match=f"only one axis can be {role}"):
        letters_of((role, role, "plane", "plane"), rgb=False)


def test_channels_beside_colours_are_refused() -> None:
    with pytest.raises(ValueError, match="only one axis can be channels"):
        letters_of(("channels", "plane", "plane"), rgb=True)


def test_a_series_has_flat_frames() -> None:
    assert letters_of(("series", "plane", "plane"), rgb=True) == "TYXC"
    with pytest.raises(ValueError, match="a series has flat frames"):
        letters_of(("series", "volume", "plane", "plane"), rgb=False)
