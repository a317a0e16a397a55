"""Imports go down only; docs/architecture.md draws the same layers."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import symsmooth

LAYERS = [
    ["cli", "web", "experiments"],
    ["views"],
    ["pages"],
    ["methods", "blocks", "files"],
    ["automatic"],
    ["filters", "gsf", "gsfw", "baselines"],
    ["stages"],
    ["weights", "symmetrize", "mixture", "estimators", "selection", "figures"],
    ["patches", "tiles", "noise", "channels", "presets", "pyramid", "repetition", "grid"],
    ["image", "options", "_native"],
]
RANK = {name: rank for rank, names in enumerate(reversed(LAYERS)) for name in names}
ROOT = Path(symsmooth.__file__).parent
SOURCES = [p for p in ROOT.rglob("*.py") if p != ROOT / "__init__.py"]


def room(path: Path) -> str:
    """The module or sub-package a file belongs to."""
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported_rooms(path: Path) -> set[str]:
    """Rooms of the package that a file imports, by relative or absolute name."""
    here = ["symsmooth", *path.relative_to(ROOT).with_suffix("").parts]
    if path.name == "__init__.py":
        here = here[:-1]
    depth_of_package = len(here) if path.name == "__init__.py" else len(here) - 1
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name.split(".") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = here[: depth_of_package - node.level + 1] if node.level else []
            stem = base + (node.module.split(".") if node.module else [])
            names = [[*stem, alias.name] for alias in node.names]
        else:
            continue
        found |= {n[1] for n in names if n[0] == "symsmooth" and len(n) > 1 and n[1] in RANK}
    return found - {room(path)}


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_go_down_only(path: Path) -> None:
    assert room(path) in RANK, f"{room(path)} has no layer"
    upwards = {name for name in imported_rooms(path) if RANK[name] > RANK[room(path)]}
    assert not upwards, f"{path.name} imports {upwards} from a higher layer"


def test_the_checker_sees_imports() -> None:
    assert {"mixture", "image", "selection"} <= imported_rooms(ROOT / "gsf.py")
    assert "base" not in RANK
    assert imported_rooms(ROOT / "weights.py") >= {"_native", "patches", "tiles"}


def test_every_public_name_exists_and_is_documented() -> None:
    for name in symsmooth.__all__:
        value = getattr(symsmooth, name)
        if callable(value):
            assert value.__doc__, name


@pytest.mark.parametrize("module", [p for p in SOURCES if room(p) not in ("cli", "experiments")])
def test_nothing_prints_below_the_command_line(module: Path) -> None:
    calls = [
        node.func.id
        for node in ast.walk(ast.parse(module.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    ]
    assert "print" not in calls
