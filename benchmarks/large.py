"""Time and memory of whole photographs: files in, files out, nothing given.

    SYMSMOOTH_IMAGES=... python benchmarks/large.py [--out FOLDER] [--sizes 0.26,12,24]

A photograph is the pictures of kodak24/ side by side, mirrored to its size, taken by a simulated camera and
written as JPEG.  Each program has a process of its own, which reads the file and writes one: seconds of the
wall, CPU seconds, and the peak of its memory, all of it.  Ours is the command line; OpenCV's and the
``bm3d`` package's are given the level of the noise, which the command line finds itself.  ``large.json`` is
written into the folder.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from symsmooth_repro.benchmark.peers import PEERS, installed_peers
from symsmooth_repro.camera import CAMERAS, photograph
from symsmooth_repro.provenance import provenance

FOLDER = Path(__file__).parent
PRESETS = ("preview", "fast", "balanced")
OTHERS = ("opencv-nlm", "bm3d")
MOST = {"bm3d": 1.0}  # megapixels: more would take an hour
SIDES = {0.26: (512, 512), 12.0: (3000, 4000), 24.0: (4000, 6000)}
ROWS = 1000  # that the camera takes at a time
LEVEL = 7.0  # about, of what the camera leaves
PEER = """
import sys
import numpy as np
from PIL import Image
from symsmooth_repro.benchmark.peers import PEERS
source, target, name, level = sys.argv[1:]
noisy = np.asarray(Image.open(source)).astype(float)
clean = PEERS[name].run(noisy, float(level))
Image.fromarray(np.clip(np.rint(clean), 0, 255).astype(np.uint8)).save(target, quality=95)
"""


def make_photograph(shape: tuple[int, int], target: Path) -> None:
    """Write a photograph as JPEG."""
    files = sorted((Path(os.environ["SYMSMOOTH_IMAGES"]) / "kodak24").glob("*.png"))
    tiles = [np.asarray(Image.open(file).convert("RGB")) for file in files]
    lines = [np.concatenate(tiles[at : at + 6], axis=1) for at in range(0, 24, 6)]
    scene = np.concatenate(lines, axis=0)[: shape[0], : shape[1]]
    missing = [(0, n - own) for n, own in zip(shape, scene.shape, strict=False)]
    scene = np.pad(scene, [*missing, (0, 0)], mode="symmetric")
    for at in range(0, shape[0], ROWS):
        rows = slice(at, at + ROWS)
        noisy, _ = photograph(scene[rows] / 255.0, CAMERAS["A"], at)
        scene[rows] = np.rint(255 * np.clip(noisy, 0, 1))
    Image.fromarray(scene).save(target, quality=95)


def measure(command: list[str]) -> dict[str, float]:
    """Return seconds, CPU seconds and the peak of memory in gigabytes of a command."""
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"failed: {' '.join(command)}")
    seconds = time.perf_counter() - began
    cpu = used.ru_utime + used.ru_stime
    return {"seconds": seconds, "cpu_seconds": cpu, "peak_gigabytes": used.ru_maxrss / 1e6}


def command_of(name: str, source: Path, target: Path) -> list[str]:
    """Return the command that denoises a file."""
    if name in PRESETS:
        program = Path(sys.executable).with_name("symsmooth")
        options = ["--quality", name, "--overwrite"]
        return [str(program), "denoise", str(source), "-o", str(target), *options]
    return [sys.executable, "-c", PEER, str(source), str(target), name, str(LEVEL)]


def rows_of(size: float, folder: Path) -> list[dict[str, Any]]:
    """Measure all programs on a photograph of so many megapixels."""
    source, target = folder / "photograph.jpg", folder / "clean.jpg"
    # A process begins with the memory of the one that starts it, which must stay small.
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as apart:
        apart.submit(make_photograph, SIDES[size], source).result()
    others = [name for name in OTHERS if name in installed_peers() and size <= MOST.get(name, 100)]
    rows = []
    for name in [*PRESETS, *others]:
        found = measure(command_of(name, source, target))
        label = f"symsmooth {name}" if name in PRESETS else PEERS[name].label
        rows.append({"megapixels": size, "method": label, **found})
        print(size, label, {key: round(value, 2) for key, value in found.items()}, flush=True)
    return rows


def main() -> None:
    """Measure, and keep what was found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=FOLDER / "results")
    parser.add_argument("--sizes", default="0.26,12,24")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = [
            row for size in given.sizes.split(",") for row in rows_of(float(size), Path(folder))
        ]
    told = provenance("", 1, 0.0)
    facts = {
        "date": told.date.split()[0], "symsmooth": f"{told.version}, commit {told.commit}",
        "machine": told.machine, "threads": len(os.sched_getaffinity(0)),
        "versions": ", ".join(PEERS[name].version for name in OTHERS if name in installed_peers()),
    }  # fmt: skip
    given.out.mkdir(exist_ok=True)
    kept = json.dumps({"facts": facts, "rows": rows}, indent=1)
    (given.out / "large.json").write_text(kept + "\n")


if __name__ == "__main__":
    main()
