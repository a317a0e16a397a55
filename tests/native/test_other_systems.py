"""The kernels are compiled for macOS and Windows, with zig's compiler (``make slow`` installs it)."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NATIVE = ROOT / "src" / "symsmooth" / "native"
ONCE = ("dispatch", "lists", "memory")
SYSTEMS = {
    "aarch64-macos": {"baseline": []},
    "x86_64-windows-gnu": {"baseline": ["-mcpu=x86_64_v2"], "avx2": ["-mcpu=x86_64_v3"]},
}


def kernels() -> list[str]:
    """The sources that are built for each instruction set, as CMake lists them."""
    listed = re.search(r"^set\(kernels (.*)\)$", (ROOT / "CMakeLists.txt").read_text(), re.M)
    assert listed is not None
    return listed[1].split()


@pytest.mark.slow
@pytest.mark.parametrize("system", SYSTEMS)
def test_the_kernels_compile_and_link(system: str, tmp_path: Path) -> None:
    pytest.importorskip("ziglang")
    zig = [sys.executable, "-m", "ziglang", "c++", "-target", system, "-std=c++20", "-O2"]
    zig += ["-Wall", "-Wextra", "-Werror"]
    if system.startswith("x86_64"):
        zig.append("-DSYMSMOOTH_X86")
    units = [(name, "once", []) for name in ONCE]
    for isa, options in SYSTEMS[system].items():
        units += [(name, isa, [f"-DSYMSMOOTH_ISA={isa}", *options]) for name in kernels()]
    objects = []
    for name, isa, options in units:
        objects.append(str(tmp_path / f"{isa}_{name}.o"))
        subprocess.run(
            [*zig, *options, "-c", str(NATIVE / f"{name}.cpp"), "-o", objects[-1]], check=True
        )
    library = tmp_path / "kernels.library"
    subprocess.run([*zig, "-shared", *objects, "-o", str(library)], check=True)
    assert library.stat().st_size > 50_000
