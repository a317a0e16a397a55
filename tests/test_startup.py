"""Start-up: nothing heavy is imported before it is needed, and nothing is compiled."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from PIL import Image

import symsmooth

DENOISE = (
    "import numpy as np, symsmooth; y = np.random.default_rng(0).random((40, 48)).cumsum(0)"
    "; results = [f(y, 0.1) for f in (symsmooth.denoise, symsmooth.denoise_nl_bayes)]"
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


def loaded(*names: str) -> str:
    return f"; import sys; print([m for m in {names!r} if m in sys.modules])"


def test_importing_loads_neither_numpy_nor_scipy() -> None:
    assert run("import symsmooth" + loaded("scipy", "numpy", "symsmooth._native")) == "[]"


def test_help_completion_and_the_server_start_without_numpy() -> None:
    code = (
        "from symsmooth.app import messages; from symsmooth.io import formats; import symsmooth.cli"
    )
    assert (
        run(code + loaded("scipy", "numpy", "symsmooth.io.images", "symsmooth.cli.files")) == "[]"
    )


def test_a_jpeg_is_denoised_without_what_only_others_need(tmp_path: Path) -> None:
    """Parts of SciPy that take long to load: Delaunay triangulations, sparse matrices, LAPACK, fits."""
    others = ("interpolate", "spatial", "sparse", "linalg", "optimize", "stats")
    source, target = tmp_path / "photo.jpg", tmp_path / "out.jpg"
    noisy = np.random.default_rng(0).normal(60, 12, (96, 96, 3)).clip(0, 255).astype(np.uint8)
    Image.fromarray(noisy).save(source, quality=95)
    arguments = ["denoise", str(source), "-o", str(target), "--quality", "preview"]
    code = f"import sys; sys.argv[1:] = {arguments!r}; from symsmooth.cli import main; main()"
    code = f"try:\n {code}\nexcept SystemExit: pass\nprint()" + loaded(
        *(f"scipy.{name}" for name in others), "dask", "tifffile", "matplotlib"
    )
    assert run(code).splitlines()[-1] == "[]"
    assert target.exists()


def test_nothing_is_compiled_at_run_time() -> None:
    """No compiler is imported, none is asked for, and none of the package's requirements is one."""
    assert run(DENOISE + loaded("numba", "llvmlite", "cffi", "torch", "distutils")) == "[]"
    requirements = symsmooth_requirements()
    assert not [r for r in requirements if r.startswith(("numba", "llvmlite", "cython"))]


def symsmooth_requirements() -> list[str]:
    from importlib.metadata import requires

    return [r.lower() for r in requires("symsmooth") or []]


def test_nothing_is_written_by_a_first_run(tmp_path: Path) -> None:
    """An empty home stays empty."""
    home = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    run(DENOISE, PYTHONDONTWRITEBYTECODE="1", **home)
    assert not [p for p in tmp_path.rglob("*") if "symsmooth" in str(p)]


def test_bits_are_the_same_in_each_process() -> None:
    code = (
        DENOISE + "; import hashlib; print([hashlib.md5(r.tobytes()).hexdigest() for r in results])"
    )
    assert run(code) == run(code)


def test_the_version_says_what_computes() -> None:
    from symsmooth import _native

    code = "import sys; from symsmooth.cli import main; sys.argv[1:] = ['--version', '--verbose']; main()"
    printed = run(code)
    assert f"symsmooth {symsmooth.__version__}" in printed
    assert (
        f"kernels for {_native.instruction_sets()[0]}" in printed or "SYMSMOOTH_ISA" in os.environ
    )
