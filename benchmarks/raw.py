"""Raw mosaics: denoised before development, after it, and by others, in one run on the same noise.

Usage: python benchmarks/raw.py FOLDER [--every N] [--quality Q].

FOLDER holds pictures, such as those of Kodak.  PSNR is that of developed pictures (sRGB, peak 1) against
the developed clean mosaic.  "planes" has the true transform and works on the four planes by themselves
(bm3d, if it is installed; our own implementation else), as raw data are commonly denoised.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from PIL import Image

import symsmooth
from symsmooth.core.metrics import psnr
from symsmooth.experiments.sensor import Sensor
from symsmooth.raw.mosaic import parse_pattern
from symsmooth.raw.noise import stabilise, undo_stabilise

PEAKS = (20, 100, 500)
PATTERNS = ("RGGB", "BGGR", "GRBG", "GBRG", "X-Trans")


def planes(mosaic: np.ndarray, sensor: Sensor, denoise: Callable[..., np.ndarray]) -> np.ndarray:
    """Denoise the planes of a Bayer mosaic one by one, with the true transform."""
    pattern = parse_pattern(sensor.pattern)
    light = mosaic.astype(np.float32) - sensor.black
    stabilised = stabilise(light, pattern, sensor.noise)
    for y, x in np.ndindex(2, 2):
        plane = stabilised[y::2, x::2]
        stabilised[y::2, x::2] = denoise(np.ascontiguousarray(plane, np.float64), 1.0)
    return undo_stabilise(stabilised, pattern, sensor.noise) + sensor.black


def methods(sensor: Sensor, quality: str) -> Iterator[tuple[str, Callable[..., np.ndarray]]]:
    """Yield names, and functions from noisy mosaics to developed pictures."""

    def after(mosaic: np.ndarray) -> np.ndarray:
        eight_bit = np.rint(255 * sensor.develop(mosaic)).astype(np.uint8)
        return symsmooth.denoise(eight_bit, quality=quality, channel_axis=-1, rng=0) / 255

    def before(mosaic: np.ndarray) -> np.ndarray:
        found = symsmooth.fit_denoise_raw(
            mosaic, sensor.pattern, sensor.black, sensor.white, quality=quality, rng=0
        )
        gains.append(found.noise.gain[1] / sensor.gain - 1)
        return sensor.develop(found.image)

    gains: list[float] = []
    yield "noisy", sensor.develop
    yield "denoise, developed", after
    yield "denoise_raw", before
    if sensor.pattern != "X-Trans":
        try:
            from bm3d import bm3d
        except ImportError:
            bm3d = symsmooth.denoise_bm3d
        yield "bm3d, planes", lambda m: sensor.develop(planes(m, sensor, bm3d))
    print(f"  gain off by {abs(gains[-1]):.1%}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--quality", default="balanced")
    given = parser.parse_args()
    found: dict[tuple[str, int], list[tuple[str, float]]] = {}
    for number, path in enumerate(sorted(given.folder.glob("*.png"))[:: given.every]):
        scene = np.asarray(Image.open(path).convert("RGB")) / 255
        pattern = PATTERNS[number % len(PATTERNS)]
        for peak in PEAKS:
            sensor = Sensor(peak, pattern)
            noisy, clean = sensor.expose(scene, seed=number)
            truth = sensor.develop(clean)
            kind = "X-Trans" if pattern == "X-Trans" else "Bayer"
            for name, work in methods(sensor, given.quality):
                value = psnr(truth, work(noisy), 1.0)
                found.setdefault((kind, peak), []).append((name, value))
                print(f"{path.name} {pattern} peak {peak}: {name} {value:.2f}", flush=True)
    for (kind, peak), rows in found.items():
        names = dict.fromkeys(name for name, _ in rows)
        means = {name: np.mean([v for n, v in rows if n == name]) for name in names}
        print(kind, "peak", peak, ", ".join(f"{n} {v:.2f}" for n, v in means.items()))


if __name__ == "__main__":
    main()
