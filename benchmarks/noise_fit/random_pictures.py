"""What becomes of random noisy pictures of the simulator: how many come back worse, how many untouched.

    SYMSMOOTH_IMAGES=... python benchmarks/noise_fit/random_pictures.py WORK [--count 600]

Scenes are those that the fit has not seen; nothing is given, quality ``fast``. A picture is worse
if its PSNR falls by more than 0.1 dB, and left if it gains less than 0.3 dB where more than 2 are
to be had with a sample of its noise.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
import simulate
from pool import Pool
from report import psnr

import symsmooth

SEED, SIDE = 777, 192
WORSE, UNTOUCHED, POSSIBLE = -0.1, 0.3, 2.0  # dB


def main() -> None:
    """Draw pictures, denoise them, and print those that fail."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("work", type=Path)
    parser.add_argument("--count", type=int, default=600)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    pool, rng = Pool(given.work, kept_back=True), np.random.default_rng(SEED)
    gains: list[float] = []
    n_worse = n_left = 0
    while len(gains) < given.count:
        drawn = simulate.draw(rng, pool, size=SIDE)
        if drawn.kind == "none":
            continue
        clean = 255.0 * drawn.clean.squeeze()
        noisy = (255 * drawn.one).squeeze().astype(np.float32)
        if drawn.step:
            noisy = np.rint(255 * np.clip(drawn.one, 0, 1)).astype(np.uint8).squeeze()
        axis = -1 if noisy.ndim == 3 else None
        found = symsmooth.denoise(noisy, channel_axis=axis, quality="fast")
        before = psnr(noisy, clean)
        gains.append(psnr(found, clean) - before)
        if gains[-1] >= UNTOUCHED:
            continue
        sample = noisy - clean
        best = symsmooth.denoise(noisy, noise=sample, channel_axis=axis, quality="fast")
        possible = psnr(best, clean) - before
        worse, left = gains[-1] < WORSE, possible > POSSIBLE
        n_worse, n_left = n_worse + worse, n_left + left
        if worse or left:
            text = f"{len(gains):4d} {drawn.kind:9s} noisy {before:.2f} gain {gains[-1]:+.2f}"
            print(f"{text} (with a sample {possible:+.2f})", flush=True)
    print(f"{len(gains)}: {n_worse} worse, {n_left} left, mean gain {np.mean(gains):.2f} dB")


if __name__ == "__main__":
    main()
