"""Learn EPLL's prior of natural pictures and write the file that the package ships.

    python benchmarks/train_prior.py FOLDER -o src/symsmooth/baselines/natural.npz

FOLDER holds the pictures (ours: the 24 Kodak photographs, released for unrestricted use).
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from PIL import Image

from symsmooth.baselines.gaussian import PatchPrior, em_step, first_prior
from symsmooth.image import Float
from symsmooth.tiles import Pool

SIDE = 8
FLOOR = (1 / 255) ** 2  # eigenvalues: the pictures' own noise and rounding
SCHEDULE = ((50_000, 12), (200_000, 12), (600_000, 6), (2_000_000, 4))  # patches, steps of EM


def read_grey(folder: Path) -> list[Float]:
    files = sorted(p for p in folder.iterdir() if p.suffix.lower() in (".png", ".tif", ".jpg"))
    return [np.asarray(Image.open(f).convert("L"), np.float32) / 255 for f in files]


def sample_patches(pictures: list[Float], count: int, rng: np.random.Generator) -> Float:
    """Return zero-mean patches (count, 64), as many of each picture, turned and mirrored at random."""
    parts = []
    for i, picture in enumerate(pictures):
        own = count * (i + 1) // len(pictures) - count * i // len(pictures)
        windows = np.lib.stride_tricks.sliding_window_view(picture, (SIDE, SIDE))
        ys, xs = (rng.integers(0, size, own) for size in windows.shape[:2])
        patches = windows[ys, xs]
        eight = rng.integers(0, 8, own)
        for turn in range(8):
            mine = patches[eight == turn]
            mine = mine.transpose(0, 2, 1) if turn & 1 else mine
            mine = mine[:, ::-1] if turn & 2 else mine
            patches[eight == turn] = mine[:, :, ::-1] if turn & 4 else mine
        parts.append(patches.reshape(own, -1))
    flat = np.concatenate(parts)
    rng.shuffle(flat)
    return flat - flat.mean(axis=1, keepdims=True)


def learn(
    patches: Float, n_components: int, schedule: tuple[tuple[int, int], ...], pool: Pool,
    rng: np.random.Generator, checkpoint: Path | None = None,
) -> PatchPrior:  # fmt: skip
    prior = first_prior(patches, n_components, FLOOR, rng)
    for count, steps in schedule:
        for step in range(steps):
            began = time.perf_counter()
            prior, likelihood = em_step(patches[:count], prior, FLOOR, pool)
            print(f"{count} patches, step {step}: {len(prior.weights)} components, "
                  f"log-likelihood {likelihood:.4f}, {time.perf_counter() - began:.1f} s", flush=True)  # fmt: skip
            if checkpoint is not None:
                np.savez(checkpoint, weights=prior.weights, covariances=prior.covariances)
    return prior


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--components", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--checkpoint", type=Path)
    parser.add_argument("--halves", action="store_true")
    args = parser.parse_args()
    rng = np.random.default_rng(args.seed)
    pics = read_grey(args.folder)
    if args.halves:
        pics += [np.asarray(Image.fromarray(p).resize((p.shape[1] // 2, p.shape[0] // 2), Image.Resampling.BICUBIC)) for p in pics]
    patches = sample_patches(pics, SCHEDULE[-1][0], rng)
    with Pool(None) as pool:
        learn(patches, args.components, SCHEDULE, pool, rng, args.checkpoint)
