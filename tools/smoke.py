"""Try an installed symsmooth in a minute: import, an array, a PNG through the command line.

Also symsmooth-repro and napari-symsmooth, where they are installed.

Usage: python tools/smoke.py [--wheel].  Run it outside the sources.  Needs nothing beyond the package's
own dependencies.  With --wheel no compiler may be needed: it is hidden from the programs that are run.
"""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
import tempfile
from pathlib import Path


def main() -> None:
    """Run all parts; the first that fails ends with a traceback."""
    if "--wheel" in sys.argv[1:]:
        os.environ["CC"] = os.environ["CXX"] = "no-compiler"
    import numpy as np
    from PIL import Image

    import symsmooth

    version = importlib.metadata.version("symsmooth")
    assert symsmooth.__version__ == version, (symsmooth.__version__, version)
    check_array(np, symsmooth)
    with tempfile.TemporaryDirectory() as folder:
        check_command(np, Image, Path(folder), version)
    found = ["symsmooth", *filter(is_installed, ("symsmooth-repro", "napari-symsmooth"))]
    check_reproduce("symsmooth-repro" in found)
    if "napari-symsmooth" in found:
        check_plugin(np)
    assert {importlib.metadata.version(name) for name in found} == {version}
    which = f"Python {sys.version.split()[0]}, {sys.platform}"
    print(f"{', '.join(found)} {version}: all works, {which}")


def check_array(np, symsmooth) -> None:  # type: ignore[no-untyped-def]
    """Check that noise goes and the type stays."""
    clean = np.add.outer(np.arange(96.0), np.arange(80.0))
    noisy = clean + np.random.default_rng(0).normal(0, 10, clean.shape)
    for name, method in symsmooth.METHODS.items():
        error = np.abs(method(noisy, 10.0) - clean).mean()
        assert error < 5.0, f"{name}: mean error {error:.2f} where the noise has 8"
    counts = noisy.clip(0, 255).astype(np.uint8)
    assert symsmooth.denoise(counts).dtype == np.uint8
    one, two = (symsmooth.denoise(noisy, workers=workers) for workers in (1, 2))
    assert (one == two).all(), "the number of threads changes the result"


def check_command(np, image, folder: Path, version: str) -> None:  # type: ignore[no-untyped-def]
    """Denoise a PNG."""
    source, target = folder / "noisy.png", folder / "clean.png"
    ramp = np.add.outer(np.arange(64.0), np.arange(64.0))
    noisy = ramp + np.random.default_rng(1).normal(0, 12, ramp.shape) + 40
    image.fromarray(noisy.clip(0, 255).astype(np.uint8)).save(source)
    run = [sys.executable, "-c", "from symsmooth.cli import main; main()"]
    told = subprocess.run([*run, "--version"], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == f"symsmooth {version}", told.stdout
    subprocess.run([*run, "denoise", str(source), "-o", str(target)], check=True, cwd=folder)
    result = np.asarray(image.open(target), float)
    assert np.abs(result - ramp - 40).mean() < 5.0
    done = subprocess.run([*run, "methods"], capture_output=True, text=True, check=True)
    assert "nl_bayes" in done.stdout


def is_installed(package: str) -> bool:
    """Whether there is such a package."""
    try:
        importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def check_reproduce(expected: bool) -> None:
    """Check that the commands of symsmooth-repro are there, or that what is missing is said in a line."""
    run = [sys.executable, "-c", "from symsmooth.cli import main; main()"]
    listed = subprocess.run([*run, "--help"], capture_output=True, text=True, check=True).stdout
    assert all((name in listed) == expected for name in ("reproduce", "benchmark", "explain")), (
        listed
    )
    words = [*run, "reproduce", "--list"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if expected:
        assert (done.returncode, "Table IV" in done.stdout) == (0, True), done
    else:
        (line,) = done.stderr.splitlines()
        assert (done.returncode, "pip install symsmooth-repro" in line) == (2, True), done


def check_plugin(np) -> None:  # type: ignore[no-untyped-def]
    """Check what napari is told of the plug-in, and a sample; napari itself need not be there."""
    from importlib.resources import files

    from napari_symsmooth.samples import photograph

    (entry,) = importlib.metadata.entry_points(group="napari.manifest", name="napari-symsmooth")
    package, _, manifest = entry.value.partition(":")
    assert "name: napari-symsmooth" in files(package).joinpath(manifest).read_text("utf-8")
    ((pixels, _, kind),) = photograph()
    assert (pixels.dtype, kind) == (np.uint8, "image")


if __name__ == "__main__":
    main()
