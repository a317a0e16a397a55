"""A series of frames against the same frames one by one: PSNR and CPU seconds a frame.

    SYMSMOOTH_IMAGES=... python benchmarks/series.py [--sigma 20] [--quality fast] [--side 0] [--frames 12]

Sequences of ``video`` in that folder, in colour, white Gaussian noise that is drawn once a sequence (seed:
sigma); noise known, and found.  ``--side`` takes a square from the middle.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import numpy as np
from PIL import Image

import symsmooth
from symsmooth.core.metrics import psnr


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sigma", type=float, action="append")
    parser.add_argument("--quality", default="fast")
    parser.add_argument("--side", type=int, default=0)
    parser.add_argument("--frames", type=int, default=12)
    given = parser.parse_args()
    folders = sorted((Path(os.environ["SYMSMOOTH_IMAGES"]) / "video").iterdir())
    for sigma in given.sigma or [10.0, 20.0, 40.0]:
        rows = [_measure(folder, sigma, given) for folder in folders]
        alone, series, blind, ratio = np.array(rows).mean(axis=0)
        gains = [row[1] - row[0] for row in rows]
        print(
            f"sigma {sigma:g}, {given.quality}: frame by frame {alone:.2f}, series {series:.2f}, gain "
            f"{np.mean(gains):+.2f} (least {min(gains):+.2f}), blind {blind - series:+.2f}, "
            f"time x {ratio:.2f}",
            flush=True,
        )


def _measure(folder: Path, sigma: float, given: argparse.Namespace) -> tuple[float, ...]:
    clean = _read(folder, given.frames, given.side)
    noise = np.random.default_rng(int(sigma)).standard_normal(clean.shape, np.float32)
    noisy = clean + np.float32(sigma) * noise
    options = {"quality": given.quality, "channel_axis": -1, "rng": 0}
    began = time.process_time()
    alone = np.stack([symsmooth.denoise(frame, sigma, **options) for frame in noisy])
    between = time.process_time()
    series = symsmooth.denoise(noisy, sigma, time_axis=0, **options)
    ended = time.process_time()
    blind = symsmooth.denoise(noisy, time_axis=0, **options)
    found = [_mean_psnr(each, clean) for each in (alone, series, blind)]
    ratio = (ended - between) / (between - began)
    seconds = [(b - a) / len(clean) for a, b in ((began, between), (between, ended))]
    print(
        f"  {folder.name:10s} frame by frame {found[0]:.2f} dB, {seconds[0]:.2f} s a frame; "
        f"series {found[1]:.2f} dB, {seconds[1]:.2f} s; blind {found[2]:.2f} dB",
        flush=True,
    )
    return *found, ratio


def _read(folder: Path, count: int, side: int) -> np.ndarray:
    files = sorted(folder.iterdir())[:count]
    frames = np.stack([np.asarray(Image.open(file).convert("RGB"), np.float32) for file in files])
    if side:
        y, x = ((n - side) // 2 for n in frames.shape[1:3])
        frames = np.ascontiguousarray(frames[:, y : y + side, x : x + side])
    return frames


def _mean_psnr(found: np.ndarray, clean: np.ndarray) -> float:
    return float(np.mean([psnr(a, b, 255.0) for a, b in zip(found, clean, strict=True)]))


if __name__ == "__main__":
    main()
