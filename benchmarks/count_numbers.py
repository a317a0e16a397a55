"""How many numbers that were set by hand decide results.

    python benchmarks/count_numbers.py [FOLDER ...]        as it is (src/symsmooth/noise, gsfw and raw)
    python benchmarks/count_numbers.py --at COMMIT ...     as it was

Counted are numbers in constants of modules, and in functions those that are no small whole number or
half.  Not counted are guards against division by zero, what a fitted file holds, and what only says how
something is measured or laid out (rings of frequencies, nodes of a table, counts of features, transforms).
"""

from __future__ import annotations

import argparse
import ast
import subprocess
from pathlib import Path

FOLDERS = ("src/symsmooth/noise", "src/symsmooth/gsfw", "src/symsmooth/raw")
TOO_SMALL = 1e-9  # a guard, not a decision
SMALL = {-2.0, -1.0, -0.5, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 12.0, 16.0}  # in functions
LAYOUT = {
    "_EDGES",
    "_RING_EDGES",
    "_ROWS",
    "GROUPS",
    "NODES",
    "REGION_FEATURES",
    "PICTURE_FEATURES",
    "_PAIRS",
    "SIDE",
    "_SIDE",
    "_STRIDE",
    "_ACROSS",
    "_STEP",
    "_PLACE",
    "LEVEL_RINGS",
    "_KNOTS",
    "_POINTS",
    "_VERSION",
    "NAMES",
    "_INDEX",
    "_BASIS",
    "_BASIS_1D",
    "_IN_GROUP",
    "_TO_WAYS",
    "_TO_ALL",
    "N_FLOORS",
    "_N_ENERGIES",
    "RADIUS",
    "RING",
    "PER_RING",
    "_LOW",
    "_HIGH",
    "_DIAGONAL",
    "_IN_SHAPES",
}


def decides(value: object, in_constant: bool) -> bool:
    """Whether a literal is a number that may decide something."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    if abs(value) <= TOO_SMALL:
        return False
    if in_constant:
        return True
    return float(value) not in SMALL


def count(source: str) -> int:
    """Return how many numbers a module has."""
    tree, total = ast.parse(source), 0
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)} <= LAYOUT:
                continue
            total += sum(
                decides(n.value, True) for n in ast.walk(node.value) if isinstance(n, ast.Constant)
            )
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            total += sum(
                decides(n.value, False) for n in ast.walk(node) if isinstance(n, ast.Constant)
            )
    return total


def read(folder: str, commit: str | None) -> dict[str, str]:
    """Return the modules of a folder, as they are or as they were."""
    if commit is None:
        return {file.name: file.read_text("utf-8") for file in sorted(Path(folder).glob("*.py"))}
    names = subprocess.run(
        ["git", "ls-tree", "--name-only", commit, f"{folder}/"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    found = {}
    for name in names:
        if name.endswith(".py"):
            shown = subprocess.run(
                ["git", "show", f"{commit}:{name}"], capture_output=True, text=True, check=True
            )
            found[Path(name).name] = shown.stdout
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folders", nargs="*", default=FOLDERS)
    parser.add_argument("--at", metavar="COMMIT")
    given = parser.parse_args()
    for folder in given.folders:
        modules = {
            name: (count(text), len(text.splitlines()))
            for name, text in read(folder, given.at).items()
        }
        numbers, lines = (sum(pair[i] for pair in modules.values()) for i in (0, 1))
        print(f"{folder}: {numbers} numbers in {lines} lines")
        for name, (own, length) in modules.items():
            if own:
                print(f"  {name:20s} {own:4d} in {length} lines")


if __name__ == "__main__":
    main()
