"""One list of the kinds of noise, for everybody."""

from __future__ import annotations

from symsmooth.app.noise_report import NOISE_KINDS
from symsmooth.noise.resolve import NAMES
from symsmooth.web import catalogue


def test_the_list_is_what_methods_know() -> None:
    assert tuple(kind.name for kind in NOISE_KINDS) == NAMES
    assert len({kind.word for kind in NOISE_KINDS}) == len(NAMES)
    assert all(kind.about.endswith(".") for kind in NOISE_KINDS)


def test_the_page_offers_all_of_it_a_box_and_a_file() -> None:
    assert tuple(catalogue.NOISE_NAMES.values()) == NAMES
    assert [*catalogue.NOISES] == [*catalogue.NOISE_NAMES, "box", "file"]
