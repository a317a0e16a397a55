"""Mean PSNR of the presets beside the bm3d package, same pictures, same noise.

Usage: python benchmarks/quality.py [--sigmas 5 15 25 50 100] [--colour].  Needs SYMSMOOTH_IMAGES: 40
pictures of train400 and 8 of Kodak in grey, or six of Kodak in colour.  Prints the mean gain over bm3d
and the worst.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np
from PIL import Image

import symsmooth
from symsmooth.core.metrics import psnr


def pictures(colour: bool) -> dict[str, np.ndarray]:
    """Return the development pictures by name, values in [0, 1]."""
    folder = Path(os.environ["SYMSMOOTH_IMAGES"])
    kodak = sorted((folder / "kodak24").glob("*.png"))
    if colour:
        return {f.stem: np.asarray(Image.open(f).convert("RGB")) / 255.0 for f in kodak[::4]}
    grey = [*sorted((folder / "train400").glob("*.png"))[::10][:40], *kodak[::3]]
    return {f.stem: np.asarray(Image.open(f).convert("L")) / 255.0 for f in grey}


def main() -> None:
    import bm3d

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sigmas", type=float, nargs="+", default=[15, 25, 50])
    parser.add_argument("--presets", nargs="+", default=["preview", "fast", "balanced", "best"])
    parser.add_argument("--colour", action="store_true")
    arguments = parser.parse_args()
    peer = bm3d.bm3d_rgb if arguments.colour else bm3d.bm3d
    axis = -1 if arguments.colour else None
    print("| sigma | bm3d | " + " | ".join(f"{p}: gain (worst)" for p in arguments.presets) + " |")
    print("|---" * (len(arguments.presets) + 2) + "|")
    for grey_levels in arguments.sigmas:
        sigma = grey_levels / 255
        rows = []
        for seed, clean in enumerate(pictures(arguments.colour).values()):
            noisy = clean + sigma * np.random.default_rng(seed).standard_normal(clean.shape)
            row = [psnr(peer(noisy, sigma), clean)]
            for preset in arguments.presets:
                denoised = symsmooth.denoise(noisy, sigma, quality=preset, channel_axis=axis)
                row.append(psnr(denoised, clean))
            rows.append(row)
        table = np.array(rows)
        gains = table[:, 1:] - table[:, :1]
        cells = [f"{g.mean():+.3f} ({g.min():+.2f})" for g in gains.T]
        print(
            f"| {grey_levels:g} | {table[:, 0].mean():.2f} | " + " | ".join(cells) + " |",
            flush=True,
        )


if __name__ == "__main__":
    main()
