"""A warning has a code and remedies: programs compare these, so that its words can be mended freely."""

from __future__ import annotations

from typing import get_args

import pytest

from napari_symsmooth import run as napari_run
from symsmooth.app.messages import PLAIN, JobWarning, Remedy
from symsmooth.cli import console
from symsmooth.web import bridge

REMEDIES = get_args(Remedy)


def test_every_surface_has_words_for_the_remedies_it_can_meet() -> None:
    assert set(PLAIN) == set(console.REMEDIES) == set(bridge._REMEDIES) == set(REMEDIES)
    assert set(napari_run._REMEDIES) == set(REMEDIES) - {"floats", "series", "resume"}  # no files


@pytest.mark.parametrize("remedy", REMEDIES)
def test_other_words_have_the_same_remedies(remedy: Remedy) -> None:
    """What the page offers follows from what is in braces, whatever stands around it."""
    old = JobWarning("texture", f"what was said before; {{{remedy}}}", "7")
    new = JobWarning("texture", f"{{{remedy}}} is said in quite another way", "7")
    assert old.remedies == new.remedies == (remedy,)
    (first,), (second,) = bridge.warning_details([old]), bridge.warning_details([new])
    assert first["try"] == second["try"]
    assert "--" not in first["text"] + second["text"]
    assert "{" not in str(old) + str(new) + first["text"] + second["text"]


def test_words_of_users_are_left_alone() -> None:
    """A name with braces, or with an option of the command line in it, is no remedy."""
    warning = JobWarning("unchanged", "{value} {0} --noise correlated {x}: {coarse}", "3")
    assert warning.remedies == ("coarse",)
    assert console.said(warning) == "{value} {0} --noise correlated {x}: --noise correlated"
