"""Fit the noise estimator: simulate, train, fit margin and confidence, write the weights that are shipped.

    SYMSMOOTH_IMAGES=... python benchmarks/noise_fit/run.py WORK

Needs torch, and on Debian apt for the clean pictures.  Everything is kept in the folder WORK,
and a run that was stopped goes on where it was.  Two to three hours on two cores.
"""

from __future__ import annotations

import argparse
import pickle
import subprocess
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import dataset
import numpy as np
import pool

VERSION, SEED = 2, 0
STEP = 4  # shards that a process writes at a time
TARGET = Path(__file__).parents[2] / "src" / "symsmooth" / "noise" / "estimator.npz"
DATA = (
    "simulated pictures from Debian's "
    + ", ".join(pool.PACKAGES)
    + ", Kodak 13 to 24, train400 201 to 400 and scikit-image; real pairs: half of PolyU, SIDD and FMD"
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("work", type=Path)
    parser.add_argument("--shards", type=int, default=120, help="of 500 simulated pictures")
    parser.add_argument("--hard", type=int, default=12, help="shards of pictures that fail most")
    parser.add_argument("--steps", type=int, default=40_000, help="of the training")
    parser.add_argument(
        "--pictures", type=int, default=900, help="that are denoised to fit the margin"
    )
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    work = given.work
    work.mkdir(parents=True, exist_ok=True)
    pool.build(work)
    dataset.write_real(work)
    dataset.write_shards(work, True, 0, 2)
    dataset.write_shards(work, True, 0, 1, hard=True)
    parts = [
        (first, min(first + STEP, number), hard)
        for number, hard in ((given.shards, False), (given.hard, True))
        for first in range(0, number, STEP)
    ]
    with ProcessPoolExecutor(given.workers) as processes:
        for done in [processes.submit(dataset.write_shards, work, False, *part) for part in parts]:
            done.result()
    trained, rows = work / "trained.npz", work / "margins.pickle"
    if not trained.exists():
        from train import train

        part = work / "trained.part.npz"
        train(work, given.steps, part, seed=SEED)
        part.rename(trained)
    weights = dict(np.load(trained))
    import margin

    if not rows.exists():
        part = work / "margins.part"
        margin.collect(work, weights, given.pictures, part)
        part.rename(rows)
    write(weights | margin.fit_numbers(pickle.loads(rows.read_bytes())))


def write(weights: dict[str, np.ndarray]) -> None:
    """Write the weights with what is known of the fit."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        cwd=TARGET.parent,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    known = {"version": VERSION, "seed": SEED, "data": DATA, "commit": commit}
    arrays = {name: np.asarray(values, np.float32) for name, values in weights.items()}
    np.savez(TARGET, **arrays, **{name: np.array(value) for name, value in known.items()})
    print(f"{TARGET}: {TARGET.stat().st_size} bytes")


if __name__ == "__main__":
    main()
