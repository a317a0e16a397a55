"""Noise that is not white, beside the bm3d package: simulated cameras and Poisson noise.

Usage: python benchmarks/noise.py [cameras] [poisson].  Needs SYMSMOOTH_IMAGES (kodak24, train400).

Cameras (symsmooth.experiments.camera), six Kodak pictures: the noisy picture, bm3d_rgb with the true
standard deviation, ``denoise`` without being told anything, ``denoise`` with the true spectrum; then the
worst gain over the noisy picture.  Poisson noise, 20 pictures of train400: bm3d between the true
generalised Anscombe transform and its exact inverse, ``denoise`` without being told anything, ``denoise``
with the true gain.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import bm3d
import numpy as np
from PIL import Image

import symsmooth
from symsmooth.core.metrics import psnr
from symsmooth.experiments.camera import CAMERAS, photograph
from symsmooth.noise import PoissonGaussian


def cameras(folder: Path) -> None:
    print("| camera | noisy | bm3d_rgb | blind | true spectrum | worst over noisy |")
    print("|---|---|---|---|---|---|")
    files = sorted((folder / "kodak24").glob("*.png"))[::4]
    for name, camera in CAMERAS.items():
        for times in (1.0, 4.0):
            rows = []
            for seed, file in enumerate(files):
                scene = np.asarray(Image.open(file).convert("RGB")) / 255.0
                noisy, clean = photograph(scene, camera.quieter(times), seed)
                noise = noisy - clean
                results = (
                    noisy,
                    bm3d.bm3d_rgb(noisy, float(noise.std())),
                    symsmooth.denoise(noisy, channel_axis=-1),
                    symsmooth.denoise(noisy, noise=noise, channel_axis=-1),
                )
                rows.append([psnr(result, clean) for result in results])
            table = np.array(rows)
            worst = (table[:, 2] - table[:, 0]).min()
            cells = " | ".join(f"{v:.2f}" for v in table.mean(axis=0))
            which = name if times == 1.0 else f"{name}, noise / {times:g}"
            print(f"| {which} | {cells} | {worst:+.2f} |", flush=True)


def poisson(folder: Path) -> None:
    print("| peak | gain off by | bm3d, true transform | blind | true gain |")
    print("|---|---|---|---|---|")
    files = sorted((folder / "train400").glob("*.png"))[::20]
    for peak in (5, 20, 100):
        rows, errors = [], []
        for seed, file in enumerate(files):
            clean = np.asarray(Image.open(file).convert("L")) / 255.0
            noisy = np.random.default_rng(seed).poisson(clean * peak) / peak
            true = PoissonGaussian((1 / peak,), (0.0,))
            stabilised = true.whiten(noisy[..., np.newaxis].astype(np.float32))
            scale = float(np.ptp(stabilised))  # bm3d wants pictures of about 0 to 1
            peer = bm3d.bm3d(stabilised[..., 0] / scale, 1 / scale) * scale
            results = (
                true.restore(peer.reshape(stabilised.shape).astype(np.float32))[..., 0],
                symsmooth.denoise(noisy),
                symsmooth.denoise(noisy, noise=true),
            )
            rows.append([psnr(result, clean) for result in results])
            found = symsmooth.estimate_noise(noisy, noise="poisson-gaussian")
            errors.append(abs(found.gain[0] * peak - 1))
        cells = " | ".join(f"{v:.3f}" for v in np.mean(rows, axis=0))
        print(f"| {peak} | {np.mean(errors):.1%} | {cells} |", flush=True)


if __name__ == "__main__":
    wanted = sys.argv[1:] or ["cameras", "poisson"]
    images = Path(os.environ["SYMSMOOTH_IMAGES"])
    if "cameras" in wanted:
        cameras(images)
    if "poisson" in wanted:
        poisson(images)
