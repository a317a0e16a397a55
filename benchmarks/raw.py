"""Raw mosaics: denoised before development, after it, and by others, in one run on the same noise.

Usage: python benchmarks/raw.py FOLDER [--every N] [--quality Q] [--no-bm3d] [--out FOLDER].

FOLDER holds pictures, such as those of Kodak.  PSNR is that of developed pictures (sRGB, peak 1) against
the developed clean mosaic.  "planes" has the true transform and works on the four planes by themselves
(bm3d, if it is installed; our own implementation else), as raw data are commonly denoised.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from PIL import Image

import symsmooth
from symsmooth.core.metrics import psnr
from symsmooth.raw.mosaic import parse_pattern
from symsmooth.raw.noise import stabilise, undo_stabilise
from symsmooth_repro.provenance import provenance
from symsmooth_repro.sensor import Sensor

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


def methods(
    sensor: Sensor, quality: str, gains: list[float], with_planes: bool
) -> Iterator[tuple[str, Callable[..., np.ndarray]]]:
    """Yield names, and functions from noisy mosaics to developed pictures; note how far gains are off."""

    def after(mosaic: np.ndarray) -> np.ndarray:
        eight_bit = np.rint(255 * sensor.develop(mosaic)).astype(np.uint8)
        return symsmooth.denoise(eight_bit, quality=quality, channel_axis=-1, rng=0) / 255

    def before(mosaic: np.ndarray) -> np.ndarray:
        found = symsmooth.fit_denoise_raw(
            mosaic, sensor.pattern, sensor.black, sensor.white, quality=quality, rng=0
        )
        gains.append(abs(found.noise.photons.gain[1] / sensor.gain - 1))
        return sensor.develop(found.image)

    yield "noisy", sensor.develop
    yield "denoise, developed", after
    yield "denoise_raw", before
    if with_planes and sensor.pattern != "X-Trans":
        try:
            from bm3d import bm3d
        except ImportError:
            bm3d = symsmooth.denoise_bm3d
        yield "bm3d, planes", lambda m: sensor.develop(planes(m, sensor, bm3d))


class Group:
    """What was measured for one kind of mosaic at one peak."""

    def __init__(self, kind: str, peak: int) -> None:
        self.kind, self.peak = kind, peak
        self.gains: list[float] = []
        self.psnr: dict[str, list[float]] = {}

    def summary(self) -> dict[str, object]:
        """Return the means."""
        return {
            "kind": self.kind, "peak": self.peak, "pictures": len(self.gains),
            "psnr": {name: round(float(np.mean(values)), 3) for name, values in self.psnr.items()},
            "gain_error": round(float(np.mean(self.gains)), 4),
            "worst_gain_error": round(max(self.gains), 4),
        }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--quality", default="balanced")
    parser.add_argument("--no-bm3d", action="store_true")
    parser.add_argument("--out", type=Path, help="folder where raw.json is written")
    given = parser.parse_args()
    groups: dict[tuple[str, int], Group] = {}
    paths = list(enumerate(sorted(given.folder.glob("*.png"))))[:: given.every]
    for number, path in paths:
        scene = np.asarray(Image.open(path).convert("RGB")) / 255
        pattern = PATTERNS[number % len(PATTERNS)]
        kind = pattern if pattern == "X-Trans" else "Bayer"
        for peak in PEAKS:
            sensor = Sensor(peak, pattern)
            noisy, clean = sensor.expose(scene, seed=number)
            truth = sensor.develop(clean)
            group = groups.setdefault((kind, peak), Group(kind, peak))
            for name, work in methods(sensor, given.quality, group.gains, not given.no_bm3d):
                value = psnr(truth, work(noisy), 1.0)
                group.psnr.setdefault(name, []).append(value)
                print(f"{path.name} {pattern} peak {peak}: {name} {value:.2f}", flush=True)
            print(f"  gain off by {group.gains[-1]:.1%}", flush=True)
    found = [groups[key].summary() for key in sorted(groups)]
    for each in found:
        print(json.dumps(each))
    if given.out:
        told = provenance("", 1, 0.0)
        command = f"python benchmarks/raw.py {given.folder.name}/"
        command += f" --every {given.every}" * (given.every > 1)
        facts = {
            "date": told.date.split()[0], "symsmooth": f"{told.version}, commit {told.commit}",
            "command": command, "quality": given.quality,
        }  # fmt: skip
        text = json.dumps({"facts": facts, "groups": found}, indent=1)
        (given.out / "raw.json").write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main()
