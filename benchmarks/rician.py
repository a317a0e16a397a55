"""Rician noise: a head phantom denoised with and without the model, and by dipy if it is installed.

Usage: python benchmarks/rician.py [--sigmas 3 9 15] [--depth 32] [--quiet] [--out FOLDER].

The head is made of ellipsoids, peak 100; noise is in percent of it.  Sigma is estimated by ours; dipy is
given the true one.  Times are kept with --quiet: on a machine with nothing else to do.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.ndimage

import symsmooth
from symsmooth.core.metrics import psnr
from symsmooth_repro.provenance import provenance

PEAK = 100.0
ELLIPSOIDS = (  # centre and half axes (z, y, x), of half the sides; what it adds
    ((0.0, 0.0, 0.0), (0.90, 0.90, 0.72), 60.0),
    ((0.0, 0.0, 0.0), (0.82, 0.82, 0.64), -30.0),
    ((0.0, -0.1, 0.0), (0.60, 0.60, 0.50), 40.0),
    ((0.0, 0.05, 0.2), (0.35, 0.30, 0.12), -45.0),
    ((0.0, 0.05, -0.2), (0.35, 0.30, 0.12), -45.0),
    ((0.1, -0.4, 0.0), (0.20, 0.12, 0.25), 30.0),
)
Denoiser = Callable[[np.ndarray], np.ndarray]


def head(depth: int, side: int) -> np.ndarray:
    """Return a head of ellipsoids in air (depth, side, side)."""
    axes = [np.linspace(-1, 1, n) for n in (depth, side, side)]
    grid = np.meshgrid(*axes, indexing="ij")
    clean = np.zeros((depth, side, side))
    for centre, half, value in ELLIPSOIDS:
        inside = sum(((g - c) / h) ** 2 for g, c, h in zip(grid, centre, half, strict=True)) <= 1
        clean[inside] += value
    y = grid[1] * np.pi
    clean += np.where(clean > 20, 5 * np.sin(4 * y) * np.cos(3 * grid[2] * np.pi), 0.0)  # tissue
    return np.clip(clean, 0.0, PEAK)


def magnitudes(clean: np.ndarray, sigma: float, seed: int) -> np.ndarray:
    """Return the magnitudes of complex pixels with noise in both parts."""
    real, imaginary = sigma * np.random.default_rng(seed).standard_normal((2, *clean.shape))
    return np.hypot(clean + real, imaginary)


def methods(sigma: float) -> Iterator[tuple[str, bool, Denoiser]]:
    """Yield names, whether they are ours, and functions of a volume."""
    yield "noisy", False, lambda volume: volume
    for quality in ("preview", "fast", "balanced"):
        yield (
            f'denoise(noise="rician", quality="{quality}")',
            True,
            lambda volume, quality=quality: symsmooth.denoise(
                volume, noise="rician", quality=quality, rng=0
            ),
        )
    yield (
        'denoise(quality="balanced"), no model',
        True,
        lambda volume: symsmooth.denoise(volume, rng=0, channel_axis=None),
    )
    if importlib.util.find_spec("dipy") is not None:
        yield from dipys(sigma)


def dipys(sigma: float) -> Iterator[tuple[str, bool, Denoiser]]:
    """Yield what dipy has for magnitudes: two kinds of non-local means, and the blend of its example."""
    from dipy.denoise.adaptive_soft_matching import adaptive_soft_matching
    from dipy.denoise.nlmeans import nlmeans

    def nlm(
        volume: np.ndarray, patch: int = 1, block: int | None = None, method: str = "blockwise"
    ) -> Any:
        return nlmeans(
            volume, sigma, patch_radius=patch, block_radius=block, rician=True, method=method
        )

    def blended(volume: np.ndarray) -> np.ndarray:
        fine, coarse = nlm(volume, 1, 1), nlm(volume, 2, 1)
        return np.asarray(adaptive_soft_matching(volume, fine, coarse, sigma))

    yield "dipy nlmeans, classic", False, lambda volume: np.asarray(nlm(volume, method="classic"))
    yield "dipy nlmeans, blockwise", False, lambda volume: np.asarray(nlm(volume))
    yield "dipy adaptive_soft_matching", False, blended


def measure(clean: np.ndarray, sigma: float, quiet: bool) -> Iterator[dict[str, Any]]:
    """Yield what each method makes of one volume."""
    noisy = magnitudes(clean, sigma, round(10 * sigma))
    inside = clean > 0
    air = scipy.ndimage.binary_erosion(~inside, iterations=3)
    for name, ours, denoise in methods(sigma):
        if name != "noisy":
            denoise(noisy[:8, :32, :32])  # libraries loaded
        start = time.perf_counter()
        image = denoise(noisy)
        seconds = time.perf_counter() - start
        yield {
            "sigma": sigma, "method": name, "ours": ours,
            "psnr": round(psnr(image, clean, PEAK), 3),
            "inside": round(psnr(image[inside], clean[inside], PEAK), 3),
            "air_bias": round(float(image[air].mean()) / sigma, 4),
            "seconds": round(seconds, 3) if quiet else None,
        }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sigmas", type=float, nargs="+", default=[3.0, 9.0, 15.0])
    parser.add_argument("--depth", type=int, default=32)
    parser.add_argument("--quiet", action="store_true")
    parser.add_argument("--out", type=Path, help="folder where rician.json is written")
    given = parser.parse_args()
    clean = head(given.depth, 2 * given.depth)
    rows = []
    for sigma in given.sigmas:
        for row in measure(clean, sigma, given.quiet):
            print(json.dumps(row), flush=True)
            rows.append(row)
    if given.out:
        told = provenance("", 1, 0.0)
        facts = {
            "date": told.date.split()[0], "symsmooth": f"{told.version}, commit {told.commit}",
            "command": "python benchmarks/rician.py", "machine": told.machine,
            "shape": list(clean.shape),
        }  # fmt: skip
        text = json.dumps({"facts": facts, "rows": rows}, indent=1)
        (given.out / "rician.json").write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main()
