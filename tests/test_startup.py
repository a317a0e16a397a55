"""Start-up: nothing heavy is imported before it is needed; compiled kernels find a place or none."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import symsmooth

KERNELS = Path(symsmooth.__file__).parent / "_kernels"
TINY = "import numpy as np, symsmooth; symsmooth.denoise_bilateral(np.eye(8), 0.1)"
WITH_CACHE_COUNT = (
    TINY
    + "; from symsmooth._kernels.window import symmetric_window_strip as f"
    + "; print(sum(f.stats.cache_hits.values()), sum(f.stats.cache_misses.values()))"
)


def run(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_importing_loads_neither_numba_nor_scipy() -> None:
    loaded = run(
        "import sys, symsmooth; print([m for m in ('numba', 'scipy', 'numpy') if m in sys.modules])"
    )
    assert loaded == "[]"


def test_kernels_are_kept_in_the_cache_directory(tmp_path) -> None:
    first = run(WITH_CACHE_COUNT, NUMBA_CACHE_DIR=str(tmp_path))
    assert first == "0 1"
    assert any(tmp_path.rglob("*.nbc"))
    assert run(WITH_CACHE_COUNT, NUMBA_CACHE_DIR=str(tmp_path)) == "1 0"


def test_a_damaged_cache_is_made_again(tmp_path) -> None:
    run(TINY, NUMBA_CACHE_DIR=str(tmp_path))
    for pattern, damage in (
        (
            "*.nbi",
            lambda data: data[: len(data) // 2],
        ),  # cut off        ("*.nbc", lambda data: b"\x93NUMPY" + data[8:]),
    ):
        damaged = list(tmp_path.rglob(pattern))
        assert damaged
        for path in damaged:
            path.write_bytes(damage(path.read_bytes()))
        assert run(WITH_CACHE_COUNT, NUMBA_CACHE_DIR=str(tmp_path)) == "0 1"
    assert run(WITH_CACHE_COUNT, NUMBA_CACHE_DIR=str(tmp_path)) == "1 0"


def test_bits_are_the_same_compiled_or_from_the_cache(tmp_path) -> None:
    """Fast arithmetic is rounded as it was compiled, and functions can be compiled in two ways."""
    code = (
        "import hashlib, numpy as np, symsmooth; y = np.random.default_rng(0).random((40, 48)).cumsum(0)"
        "; results = [f(y, 0.1) for f in (symsmooth.denoise_gsfw, symsmooth.denoise_nl_bayes)]"
        "; print([hashlib.md5(r.tobytes()).hexdigest() for r in results])"
    )
    first, second = (run(code, NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(2))
    assert first == second


def test_processes_that_start_at_once_do_not_disturb_each_other(tmp_path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    running = [subprocess.Popen([sys.executable, "-c", TINY], env=environment) for _ in range(3)]
    assert [process.wait() for process in running] == [0, 0, 0]
    assert run(WITH_CACHE_COUNT, NUMBA_CACHE_DIR=str(tmp_path)) == "1 0"


@pytest.mark.skipif(sys.platform == "win32", reason="permissions work differently")
def test_a_read_only_installation_without_a_home_still_works(tmp_path) -> None:
    """A file where the cache directory should be: nobody, not even root, can write there."""
    installed = tmp_path / "site" / "symsmooth"
    shutil.copytree(
        Path(symsmooth.__file__).parent, installed, ignore=shutil.ignore_patterns("__pycache__")
    )
    for folder in [installed, *(p for p in installed.rglob("*") if p.is_dir())]:
        (folder / "__pycache__").write_text("not a folder")
    nowhere = tmp_path / "file"
    nowhere.write_text("")
    environment = {
        "HOME": str(nowhere),
        "XDG_CACHE_HOME": str(nowhere / "cache"),
        "NUMBA_CACHE_DIR": "",
    }
    where = "; print(symsmooth.__file__)"
    output = run(
        TINY + where, PYTHONPATH=str(installed.parent), PYTHONDONTWRITEBYTECODE="1", **environment
    )
    assert output == str(installed / "__init__.py")


def loops(tree: ast.AST) -> Iterator[ast.For]:
    """Loops that hold no other loop."""
    for node in ast.walk(tree):
        if isinstance(node, ast.For):
            inside = [part for each in node.body for part in ast.walk(each)]
            if not any(isinstance(part, ast.For | ast.While) for part in inside):
                yield node


@pytest.mark.parametrize("path", sorted(KERNELS.glob("*.py")), ids=lambda path: path.stem)
def test_no_sum_shares_a_loop_with_writes_to_another_array(path: Path) -> None:
    """Such a loop is vectorised at some addresses only, and its sum rounded in another way."""
    for loop in loops(ast.parse(path.read_text(encoding="utf-8"))):
        parts = [part for each in loop.body for part in ast.walk(each)]
        sums = [p for p in parts if isinstance(p, ast.AugAssign) and isinstance(p.target, ast.Name)]
        sums = [
            p for p in sums if isinstance(p.op, ast.Add) and not isinstance(p.value, ast.Constant)
        ]
        targets = [t for p in parts if isinstance(p, ast.Assign) for t in p.targets]
        targets += [p.target for p in parts if isinstance(p, ast.AugAssign)]
        written = {ast.unparse(t.value) for t in targets if isinstance(t, ast.Subscript)}
        read = {
            ast.unparse(p.value)
            for p in parts
            if isinstance(p, ast.Subscript) and isinstance(p.ctx, ast.Load)
        }
        assert not (sums and written and read - written), f"{path.name}:{loop.lineno}"
