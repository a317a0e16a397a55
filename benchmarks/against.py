"""One version beside another: PSNR and time on the same pictures, interleaved.

    SYMSMOOTH_IMAGES=... python benchmarks/against.py OTHER_PYTHON [--quality fast] [--sets phones]

OTHER_PYTHON is the interpreter of an environment in which the other version is installed.  Each version has
a process of its own, which is given one picture at a time, in turn; times are CPU seconds of one thread, as
a ratio to the other version's.  Noise is found by each version itself, but for white noise, which is known.

Sets: cameras (PolyU), phones (SIDD), microscopes (FMD), simulated (two cameras), white-colour (sigma 10 and
25), white-grey (sigma 25); every so many-th picture of the development halves.
"""

from __future__ import annotations

import argparse
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

DATA = Path(os.environ.get("SYMSMOOTH_IMAGES", "."))
# What a version does: it knows nothing of this one's modules.
WORKER = """
import pickle, sys, time, warnings
import numpy as np
import symsmooth
warnings.simplefilter("ignore")
answers, sys.stdout = sys.stdout.buffer, sys.stderr
while True:
    try:
        noisy, options = pickle.load(sys.stdin.buffer)
    except EOFError:
        break
    began = time.process_time()
    result = np.asarray(symsmooth.denoise(noisy, workers=1, rng=0, **options))
    pickle.dump((result, time.process_time() - began), answers)
    answers.flush()
"""
Case = tuple[np.ndarray, np.ndarray, dict[str, Any]]  # noisy, clean, what denoise is told


class Version:
    """A version in a process of its own."""

    def __init__(self, python: str) -> None:
        self._process = subprocess.Popen(
            [python, "-c", WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def run(self, case: Case, quality: str) -> tuple[float, float]:
        """Return PSNR and CPU seconds."""
        noisy, clean, options = case
        to, back = self._process.stdin, self._process.stdout
        assert to is not None
        assert back is not None
        pickle.dump((noisy, {**options, "quality": quality}), to)
        to.flush()
        result, seconds = pickle.load(back)
        error = np.clip(result.astype(float), 0, 255) - clean
        return float(10 * np.log10(255**2 / np.mean(error**2))), seconds


def cases(name: str, every: int) -> Iterator[Case]:
    """Return the pictures of a set."""
    kodak = sorted((DATA / "kodak24").glob("*.png"))
    if name in ("cameras", "phones", "microscopes"):
        yield from _real({"cameras": "polyu", "phones": "sidd", "microscopes": "fmd"}[name], every)
    elif name == "simulated":
        from symsmooth_repro.camera import CAMERAS, photograph

        for camera in CAMERAS.values():
            for file in kodak[:12:every]:
                noisy, clean = photograph(np.asarray(Image.open(file)) / 255.0, camera, 1)
                yield np.rint(255 * noisy).astype(np.uint8), 255 * clean, {"channel_axis": -1}
    elif name == "white-colour":
        for sigma in (10.0, 25.0):
            yield from (_white(file, sigma) for file in kodak[::every])
    else:
        files = sorted((DATA / "train400").iterdir())
        yield from (_white(file, 25.0) for file in files[:: 8 * every])


def _real(collection: str, every: int) -> Iterator[Case]:
    sys.path.insert(0, str(Path(__file__).parent / "noise_fit"))
    from dataset import real_pairs

    own = [pair for pair in real_pairs() if pair[0] == collection]
    for _, _, noisy, clean in own[::every]:
        axis = -1 if noisy.shape[-1] == 3 else None
        yield noisy.squeeze(), clean.squeeze().astype(float), {"channel_axis": axis}


def _white(file: Path, sigma: float) -> Case:
    clean = np.asarray(Image.open(file)).astype(float)
    noise = np.random.default_rng(0).normal(0, sigma, clean.shape)
    axis = -1 if clean.ndim == 3 else None
    return (clean + noise).astype(np.float32), clean, {"channel_axis": axis, "sigma": sigma}


SETS = ("cameras", "phones", "microscopes", "simulated", "white-colour", "white-grey")


def main() -> None:
    """Compare set by set."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("other", help="Python of the environment of the other version")
    parser.add_argument("--quality", default="fast,balanced")
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--every", type=int, default=6)
    given = parser.parse_args()
    other, this = Version(given.other), Version(sys.executable)
    print("| pictures | quality | other, dB | this, dB | gain | time |\n|---|---|---|---|---|---|")
    for name in given.sets.split(","):
        every = list(cases(name, given.every))
        for quality in given.quality.split(","):
            for version in (other, this):
                version.run(every[0], quality)  # what is loaded late is loaded now
            found = np.array([[v.run(case, quality) for v in (other, this)] for case in every])
            (before, after), (slow, quick) = found[..., 0].mean(0), found[..., 1].sum(0)
            print(
                f"| {name} ({len(every)}) | {quality} | {before:.3f} | {after:.3f} | "
                f"{after - before:+.3f} | x {quick / slow:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
