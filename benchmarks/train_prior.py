"""Learn EPLL's prior of natural pictures and write the file that the package ships.

    python benchmarks/train_prior.py FOLDER -o src/symsmooth/baselines/natural.npz

FOLDER holds the pictures (ours: the 24 Kodak photographs, released for unrestricted use), which are
turned grey, scaled to [0, 1] and taken at three sizes.  The file is written after every step.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from symsmooth.baselines.epll import NATURAL_SIDE, save_prior
from symsmooth.baselines.patch_gmm import PatchPrior, em_step, first_prior
from symsmooth.core.image import Float
from symsmooth.core.parallel import Pool

SHRINK = (1, 2, 4)  # sizes at which the pictures are seen
COMPONENTS = 200
FLOOR = (1 / 255) ** 2  # variance taken for the pictures' own noise and rounding
SCHEDULE = ((50_000, 12), (200_000, 12), (600_000, 12), (2_000_000, 4))  # patches, steps of EM


def read_pictures(folder: Path) -> list[Float]:
    """Return the pictures of a folder, grey, in [0, 1], each at all sizes."""
    pictures = []
    for file in sorted(p for p in folder.iterdir() if p.suffix.lower() in (".png", ".tif", ".jpg")):
        grey = Image.open(file).convert("L")
        for factor in SHRINK:
            size = (grey.width // factor, grey.height // factor)
            resized = grey.resize(size, Image.Resampling.BICUBIC)
            pictures.append(np.asarray(resized, np.float32) / 255)
    return pictures


def sample_patches(pictures: Sequence[Float], count: int, rng: np.random.Generator) -> Float:
    """Return zero-mean patches (count, 64), as many of each picture, turned and mirrored at random."""
    parts = []
    for i, picture in enumerate(pictures):
        own = count * (i + 1) // len(pictures) - count * i // len(pictures)
        windows = np.lib.stride_tricks.sliding_window_view(picture, (NATURAL_SIDE, NATURAL_SIDE))
        patches = windows[tuple(rng.integers(0, size, own) for size in windows.shape[:2])]
        symmetry = rng.integers(0, 8, own)
        for number in range(8):
            mine = patches[symmetry == number]
            mine = mine.transpose(0, 2, 1) if number & 1 else mine
            mine = mine[:, ::-1] if number & 2 else mine
            patches[symmetry == number] = mine[:, :, ::-1] if number & 4 else mine
        parts.append(patches.reshape(own, -1))
    flat = np.concatenate(parts)
    rng.shuffle(flat)
    return flat - flat.mean(axis=1, keepdims=True)


def learn(
    patches: Float,
    n_components: int,
    schedule: Sequence[tuple[int, int]],
    rng: np.random.Generator,
    pool: Pool,
) -> Iterator[tuple[PatchPrior, float]]:
    """Yield the mixture after each step of EM, and the log-likelihood before it."""
    prior = first_prior(patches[: schedule[0][0]], n_components, FLOOR, rng)
    for count, steps in schedule:
        for _ in range(steps):
            prior, likelihood = em_step(patches[:count], prior, FLOOR, pool)
            yield prior, likelihood


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    rng = np.random.default_rng(args.seed)
    patches = sample_patches(read_pictures(args.folder), SCHEDULE[-1][0], rng)
    began = time.perf_counter()
    with Pool() as pool:
        for prior, likelihood in learn(patches, COMPONENTS, SCHEDULE, rng, pool):
            save_prior(args.output, prior)
            print(
                f"{time.perf_counter() - began:6.0f} s  log-likelihood {likelihood:.4f}", flush=True
            )


if __name__ == "__main__":
    main()
