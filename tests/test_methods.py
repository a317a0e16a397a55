"""The registry: what a method is, read off its signature."""

from __future__ import annotations

from typing import Literal

import pytest

import symsmooth
from symsmooth.methods import HIDDEN_METHODS, Method, find_method, method_of


def blur(
    image, sigma=None, *, width: int | None = None, kind: Literal["box", "tent"] = "box", rng=None
):
    """Blur an image.

    More.
    """
    return image


def test_a_record_says_what_its_function_says() -> None:
    method = Method("blur", blur)
    assert method.summary == "Blur an image."
    assert list(method.options) == ["width", "kind"]
    assert method.options["kind"].choices == ("box", "tent")
    assert method.options["width"].choices == ()
    assert "rng" in method.accepts
    assert "mask" not in method.accepts
    assert method("picture", 3.0) == "picture"


def test_options_read_words_and_say_what_they_expect() -> None:
    options = Method("blur", blur).options
    assert (options["width"].parse("3"), options["width"].parse("none")) == (3, None)
    with pytest.raises(ValueError, match="width must be a whole number or none, got 'wide'"):
        options["width"].parse("wide")
    with pytest.raises(ValueError, match="kind must be one of box, tent, got 'gauss'"):
        options["kind"].parse("gauss")


def test_what_cannot_be_written_as_a_word_is_not_offered() -> None:
    noise = symsmooth.METHODS["denoise"].options["noise"]
    assert noise.choices == ("auto", "gaussian", "poisson-gaussian", "correlated", "rician")
    assert noise.expects == "one of auto, gaussian, poisson-gaussian, correlated, rician"
    with pytest.raises(ValueError, match=r"noise must be one of auto, .*, got 'grainy'"):
        noise.parse("grainy")


@pytest.mark.parametrize("spelled", ["nl_bayes", "NL-Bayes", " nl_bayes "])
def test_names_are_understood_as_people_write_them(spelled) -> None:
    assert find_method(spelled) is symsmooth.METHODS["nl_bayes"]


def test_methods_that_are_none_are_known_but_not_listed() -> None:
    assert find_method("identity") is HIDDEN_METHODS["identity"]
    assert "identity" not in symsmooth.METHODS
    with pytest.raises(
        ValueError, match="there is no method 'magic'; use one of denoise, gaussian"
    ):
        find_method("magic")


@pytest.mark.parametrize("name", symsmooth.METHODS)
def test_a_function_knows_its_record(name) -> None:
    method = symsmooth.METHODS[name]
    assert method_of(method.function) is method
    public = "denoise" if name == "denoise" else f"denoise_{name}"
    assert method.function is getattr(symsmooth, public)
