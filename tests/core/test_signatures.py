"""Parameters are written once, and shown in full wherever somebody looks."""

from __future__ import annotations

import inspect
import re
import types
from pathlib import Path
from typing import get_type_hints

import pytest

import symsmooth
from symsmooth.core.signatures import described, described_like, parameters_of

FUNCTIONS = sorted(
    name for name in symsmooth.__all__ if isinstance(getattr(symsmooth, name), types.FunctionType)
)
PAIRS = {
    "denoise": "fit_denoise",
    "denoise_gsf": "fit_gsf",
    "denoise_gsfw": "fit_gsfw",
    "denoise_raw": "fit_denoise_raw",
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_help_describes_every_parameter_in_order(name: str) -> None:
    function = getattr(symsmooth, name)
    entries = described(function.__doc__)
    parameters = list(inspect.signature(function).parameters)
    assert list(entries) == parameters
    assert all(re.search(r"\n    \S", text) for text in entries.values())
    assert "As for" not in "".join(entries.values())


@pytest.mark.parametrize(("returns_image", "returns_all"), PAIRS.items())
def test_pairs_have_one_signature(returns_image: str, returns_all: str) -> None:
    one, both = (getattr(symsmooth, name) for name in (returns_image, returns_all))
    signature = inspect.signature(one)
    assert signature.parameters == inspect.signature(both).parameters
    assert described(one.__doc__) == described(both.__doc__)
    assert signature.return_annotation == "Array"
    assert set(get_type_hints(inspect.unwrap(one))) == {*signature.parameters, "return"}
    result = get_type_hints(both)["return"].__name__
    assert f"Returns\n-------\n{result}" in both.__doc__


def test_a_parameter_of_one_name_has_one_type_and_one_default_in_all_methods() -> None:
    """But for sigma, of which ``denoise`` takes more, and images that are frames or blocks."""
    shared = ("channel_axis", "mask", "rng", "workers", "progress", "quality", "sinkhorn_iters")
    front = ("strength", "chroma_strength", "grain", "channels", "specks")
    for name in (*shared, *front):
        found = {
            (str(parameter.annotation), parameter.default)
            for function in (*symsmooth.METHODS, "frames")
            for parameter in [_parameters(function).get(name)]
            if parameter is not None
        }
        assert len(found) == 1, (name, found)


def _parameters(method: str) -> dict[str, inspect.Parameter]:
    name = "denoise" if method == "denoise" else f"denoise_{method}"
    return dict(inspect.signature(getattr(symsmooth, name)).parameters)


def test_own_descriptions_come_first_and_then_those_of_others() -> None:
    def other(a: int, b: int) -> None:
        """Do.

        Parameters
        ----------
        a : int
            Of the other.
        b : int
            Of the other.
        """

    @described_like(other)
    def function(a: int, b: int, workers: int, unknown: int) -> None:
        """Do.

        More about it.

        Parameters
        ----------
        b : int
            Its own.

        Returns
        -------
        None
        """

    entries = described(function.__doc__)
    assert list(entries) == ["a", "b", "workers"]
    assert "Of the other" in entries["a"]
    assert "Its own" in entries["b"]
    assert "Threads" in entries["workers"]
    assert function.__doc__ is not None
    assert function.__doc__.startswith("Do.\n\nMore about it.\n\nParameters\n----------\na : int\n")
    assert function.__doc__.endswith("\n\nReturns\n-------\nNone")


def test_without_docstrings_functions_still_work() -> None:
    def fit(image: int, sigma: int = 2) -> int:
        return image + sigma

    @parameters_of(fit)
    def denoise(*args: int, **options: int) -> int:
        return fit(*args, **options)

    assert denoise(1, sigma=3) == 4
    assert (fit.__doc__, denoise.__doc__) == (None, None)


@pytest.mark.slow
def test_type_checkers_see_all_parameters(tmp_path: Path) -> None:
    api = pytest.importorskip("mypy.api")
    program = tmp_path / "program.py"
    program.write_text(
        "import symsmooth\n"
        "reveal_type(symsmooth.denoise)\n"
        "reveal_type(symsmooth.denoise_gsf)\n"
        "symsmooth.denoise([[1.0]], chroma_strength='much')\n"
        "symsmooth.denoise_bm3d([[1.0]], qualty='fast')\n"
    )
    told, _, _ = api.run([str(program), "--cache-dir", str(tmp_path / "cache")])
    denoise, gsf = re.findall(r'Revealed type is "(.*)"', told)
    for shown, name in ((denoise, "denoise"), (gsf, "gsf")):
        assert all(f"{word}: " in shown or f"{word} " in shown for word in _parameters(name)), shown
    assert 'Argument "chroma_strength" to "denoise" has incompatible type "str"' in told
    assert 'Unexpected keyword argument "qualty" for "denoise_bm3d"' in told
