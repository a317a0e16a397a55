"""What import-linter (``make check``) cannot say of the house; docs/architecture.md draws it."""

from __future__ import annotations

import ast
import doctest
import inspect
import re
from functools import cache
from pathlib import Path

import pytest

import napari_symsmooth
import symsmooth
import symsmooth_repro

ROOT = Path(symsmooth.__file__).parent
SOURCES = sorted(ROOT.rglob("*.py"))
BESIDE = [Path(package.__path__[0]) for package in (symsmooth_repro, napari_symsmooth)]
ALL = SOURCES + [path for folder in BESIDE for path in sorted(folder.rglob("*.py"))]


def short(path: Path) -> str:
    """The name of a module below its package's parent."""
    return next(str(path.relative_to(f.parent)) for f in (ROOT, *BESIDE) if path.is_relative_to(f))


def names_from_the_root(path: Path) -> set[str]:
    """Public names that a module takes from the package itself, which would hide where they come from."""
    package = ["symsmooth", *path.relative_to(ROOT).parts[:-1]]
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name == "symsmooth"}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = base + (node.module.split(".") if node.module else [])
            if module == ["symsmooth"]:
                found |= {alias.name for alias in node.names}
    homes = ("", ".py", ".pyi")  # a package, a module, the compiled core
    return {name for name in found if not any((ROOT / f"{name}{end}").exists() for end in homes)}


@pytest.mark.parametrize("path", SOURCES, ids=short)
def test_names_come_from_where_they_are_defined(path: Path) -> None:
    """Imports through the package root are not seen by import-linter; the version alone lives there."""
    assert names_from_the_root(path) <= {"__version__"}


def test_public_names_are_what_their_modules_define() -> None:
    from symsmooth.filters.filters import denoise_nlm
    from symsmooth.mixture.gsf import denoise_gsf

    assert symsmooth.denoise_gsf is denoise_gsf
    assert symsmooth.denoise_nlm is denoise_nlm
    for name in set(symsmooth.__all__) - {"METHODS", "__version__"}:
        value = getattr(symsmooth, name)
        home = inspect.getmodule(value)
        assert value.__doc__, name
        assert getattr(home, name) is value


def test_the_stub_lists_all_names() -> None:
    stub = ast.parse((ROOT / "__init__.pyi").read_text("utf-8"))
    listed = next(node.value for node in stub.body if isinstance(node, ast.Assign))
    assert sorted(ast.literal_eval(listed)) == sorted(symsmooth.__all__)


@pytest.mark.parametrize("name", symsmooth.METHODS)
def test_the_examples_of_methods_hold(name: str) -> None:
    """Decorated functions are passed over by doctest when it walks through modules."""
    function = inspect.unwrap(symsmooth.METHODS[name].function)
    (test,) = doctest.DocTestFinder(recurse=False).find(function, name, globs={})
    assert test.examples
    assert doctest.DocTestRunner().run(test).failed == 0


@pytest.mark.parametrize("module", ALL, ids=short)
def test_nothing_prints_below_the_command_line(module: Path) -> None:
    if module.parent.name == "cli":
        return
    calls = [
        node.func.id
        for node in ast.walk(ast.parse(module.read_text("utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    ]
    assert "print" not in calls


@cache
def rooms() -> dict[str, set[str]]:
    """What the map in docs/architecture.md names: words by tree and room, as in symsmooth/core."""
    page = Path(__file__).parents[1] / "docs" / "architecture.md"
    text = page.read_text("utf-8").split("```text\n")[1].split("```")[0]
    found: dict[str, set[str]] = {}
    tree = room = ""
    for line in text.splitlines():
        if line and not line.startswith(" "):
            tree = line.strip("/").rpartition("/")[2]
        elif re.match(r"  \w", line):
            first = line.split()[0]
            room = tree if first.endswith(".py") or first.strip("/") == tree else f"{tree}/{first}"
        found.setdefault(room.strip("/"), set()).update(re.findall(r"\w+", line))
    return found


@pytest.mark.parametrize("path", ALL, ids=short)
def test_the_map_names_every_module(path: Path) -> None:
    if path.stem == "__init__":
        path = path.parent
    name = Path(short(path))
    words = rooms().get(str(name.parent), set())
    assert str(name) in rooms() or name.stem in words, f"docs/architecture.md does not name {name}"


@pytest.mark.parametrize("path", ALL, ids=short)
def test_no_module_is_long(path: Path) -> None:
    assert len(path.read_text("utf-8").splitlines()) <= 600


def long_functions(path: Path) -> list[str]:
    """Functions of more than 60 lines after their signature and docstring, which list options in full."""
    found = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        has_docstring = ast.get_docstring(node) is not None
        start = node.body[0].end_lineno if has_docstring else node.body[0].lineno - 1
        assert node.end_lineno is not None
        assert start is not None
        if node.end_lineno - start > 60:
            found.append(node.name)
    return found


@pytest.mark.parametrize("path", ALL, ids=short)
def test_no_function_is_long(path: Path) -> None:
    assert long_functions(path) == []


def test_the_glossary_is_short_and_true() -> None:
    page = (Path(__file__).parents[1] / "docs" / "architecture.md").read_text("utf-8")
    table = page.split("## Words\n")[1].split("\n## ")[0]
    words = [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("| ")][2:]
    assert len(words) <= 40
    assert len(set(words)) == len(words)
    text = "".join(path.read_text("utf-8").lower() for path in ALL)
    for word in (each for line in words for each in line.split(", ")):
        assert re.search(rf"\b{re.escape(word.lower())}", text), word


def strings_of(path: Path) -> list[str]:
    """Return the strings of a module, those of documentation left out."""
    tree = ast.parse(path.read_text("utf-8"))
    plain = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    return [node.value for node in nodes if isinstance(node.value, str) and id(node) not in plain]


@pytest.mark.parametrize(
    "path",
    [p for p in SOURCES if p.is_relative_to(ROOT / "app") or p.is_relative_to(ROOT / "io")],
    ids=short,
)
def test_messages_below_the_command_line_name_things_not_flags(path: Path) -> None:
    """The page and napari say them too; the command line adds its flags (cli.console)."""
    flags = [text for text in strings_of(path) if re.search(r"(^|\W)--[a-z]", text)]
    assert flags == []
